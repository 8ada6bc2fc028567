"""What a run loads: imports are most of its start-up, which is paid on every save (tests/data/run_modules.txt)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = ROOT / "tests" / "data" / "run_modules.txt"
MAIN = "import sys; sys.argv[0] = 'ckdn'; from ckdn.cli import main; sys.exit(main())"
CONFIG = """
[check.yes]
command = "true"
parser = "generic"
"""


def loaded(python: Path, folder: Path, *arguments: str) -> set[str]:
    """The modules that this Python imports for a script beyond what it imports for none; exit code 0 is required.

    Read from ``-X importtime``: it also sees what is imported while the process ends.
    """
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CKDN_", "CI"))}
    environment = {**plain, "XDG_CACHE_HOME": str(folder / "cache")}
    command = [str(python), "-X", "importtime", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:") and "|" in line]
    return {line.rpartition("|")[2].strip() for line in lines} - {"imported package"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "ckdn.toml").write_text(CONFIG, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run_modules(environments: dict[str, Path], project: Path) -> set[str]:
    """What a warm run of ``true`` loads from an installed wheel."""
    python = environments["wheel"]
    loaded(python, project, "-c", MAIN, "run", "yes")
    return loaded(python, project, "-c", MAIN, "run", "yes") - loaded(python, project, "-c", "pass")


def allowed() -> list[str]:
    lines = ALLOWED.read_text(encoding="utf-8").splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.partition("#")[0].strip()]


def test_a_warm_run_loads_only_the_listed_modules(run_modules: set[str]) -> None:
    assert sorted(run_modules - set(allowed())) == []


def test_the_list_names_no_module_of_ours_that_is_not_loaded(run_modules: set[str]) -> None:
    """Modules of the standard library differ between versions of Python; ours do not."""
    assert sorted(name for name in set(allowed()) - run_modules if name.split(".")[0] == "ckdn") == []


def test_the_list_is_sorted() -> None:
    assert allowed() == sorted(set(allowed()))


def test_the_measure_sees_imports(environments: dict[str, Path], project: Path) -> None:
    python = environments["wheel"]
    assert "json" in loaded(python, project, "-c", "import json")
    assert "json" not in loaded(python, project, "-c", "pass")
