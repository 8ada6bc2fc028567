"""Settings of hypothesis and the fixtures that several test modules share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.projects import Project

ROOT = Path(__file__).resolve().parent.parent

# No deadline: no test of ours depends on the clock. The fast tier is the same on every machine and run (derandomize);
# the full tier searches further, each time elsewhere.
settings.register_profile("fast", deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "full", deadline=None, max_examples=2000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("CKDN_TEST_PROFILE", "fast"))


def _run(command: list[str | Path], cwd: Path, **environment: str) -> str:
    """The stdout of a command that must succeed."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CKDN_", "COVERAGE"))}
    done = subprocess.run(command, cwd=cwd, env={**plain, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def command() -> Callable[..., str]:
    """Runs a command that must succeed, without this environment's Python and ckdn settings, and gives its stdout."""
    return _run


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An sdist of the checkout and a wheel built from that sdist."""
    out = tmp_path_factory.mktemp("dist")
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT], out)
    (sdist,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return {"sdist": sdist, "wheel": wheel}


@pytest.fixture(scope="session")
def environments(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A Python with the wheel installed and one with the checkout installed for editing.

    Their dependencies are this Python's (a path file); .pth files there are not followed, so its ckdn is not theirs.
    """
    pythons = {}
    installed: dict[str, list[str | Path]] = {
        "wheel": [built["wheel"]],
        "editable": ["--no-build-isolation", "-e", ROOT],
    }
    for form, source in installed.items():
        folder = tmp_path_factory.mktemp(form) / "with space"
        _run([sys.executable, "-m", "venv", "--without-pip", folder], folder.parent)
        python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        own = Path(_run([python, "-c", where], folder).strip())
        ours = _run([sys.executable, "-c", where], folder).strip()
        (own / "dependencies.pth").write_text(ours + "\n", encoding="utf-8")
        pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "install"]
        offline = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", "--force-reinstall"]
        _run([*pip, *offline, *source], folder)
        pythons[form] = python
    return pythons


@pytest.fixture(scope="session")
def forms(
    built: dict[str, Path], environments: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Callable[..., str]]:
    """Form of installation → a function that runs its Python with arguments, in an empty folder."""
    folder = tmp_path_factory.mktemp("elsewhere")

    def runner(python: str | Path, **environment: str) -> Callable[..., str]:
        return lambda *arguments: _run([python, *arguments], folder, PYTHONDONTWRITEBYTECODE="1", **environment)

    return {
        "checkout": runner(sys.executable, PYTHONPATH=str(ROOT)),
        "editable": runner(environments["editable"]),
        "wheel": runner(environments["wheel"]),
        "zip": runner(sys.executable, PYTHONPATH=str(built["wheel"])),
    }


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of every throw-away project: only the first one reads the built-in specs from their files."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def project(tmp_path: Path, shared_cache: Path) -> Project:
    """An empty project with a home of its own."""
    home = tmp_path / "home"
    home.mkdir()
    return Project(tmp_path / "project", home, shared_cache)


def pytest_configure() -> None:
    """A suite that was started in the background ignores SIGINT, and so would the processes that tests interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
