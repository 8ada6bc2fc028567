"""What a run loads: imports are most of its start-up, which is paid on every save (tests/data/run_modules*.txt).

The lists are of a warm run from an installed wheel. Ours must be loaded exactly as listed; of the standard library and
the dependencies nothing else may be loaded (it differs between versions of Python what they load themselves).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parent / "data"
LISTS = {"yes": "run_modules.txt", "json": "run_modules_json.txt", "text": "run_modules_text.txt"}
"""Check → the list of what it may load; the first holds for all of them."""
MAIN = "import sys; sys.argv[0] = 'ckdn'; from ckdn.cli import main; sys.exit(main())"
CONFIG = """
[check.yes]
command = "true"
parser = "generic"
[check.json]
command = ["sh", "-c", "cp report.json $1/ruff.json; exit 1", "sh", "{run_dir}"]
parser = "ruff"
[check.text]
command = ["sh", "-c", "cat mypy.txt; exit 1"]
parser = "mypy"
"""
REPORT = '[{"code":"F401","filename":"a.py","location":{"row":3,"column":8},"message":"unused","fix":null}]'
TEXT = "a.py:3: error: bad  [arg-type]\nFound 1 error in 1 file (checked 2 source files)\n"
HEAVY = (
    *("argparse", "typing", "dataclasses", "pathlib", "subprocess", "json", "re", "enum", "hashlib", "logging"),
    *("contextlib", "tempfile", "inspect", "importlib.metadata", "importlib.resources", "signal", "shutil", "glob"),
    *("tomllib", "yaml", "jmespath", "lxml", "re2", "jsonschema", "fastjsonschema"),
)


def loaded(python: Path, folder: Path, *arguments: str, code: int = 0) -> set[str]:
    """The modules that this Python imports for a script; its exit code must be the given one.

    Read from ``-X importtime``: it also sees what is imported while the process ends.
    """
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CKDN_", "CI"))}
    environment = {**plain, "XDG_CACHE_HOME": str(folder / "cache")}
    command = [str(python), "-X", "importtime", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:") and "|" in line]
    return {line.rpartition("|")[2].strip() for line in lines} - {"imported package"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, content in (("ckdn.toml", CONFIG), ("report.json", REPORT), ("mypy.txt", TEXT)):
        (folder / name).write_text(content, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run_modules(environments: dict[str, Path], folder: Path) -> dict[str, set[str]]:
    """Check → what a warm run of it loads from an installed wheel, beyond a bare interpreter."""
    python = environments["wheel"]
    bare = loaded(python, folder, "-c", "pass")
    found = {}
    for check in LISTS:
        code = 0 if check == "yes" else 1
        loaded(python, folder, "-c", MAIN, "run", check, code=code)
        found[check] = loaded(python, folder, "-c", MAIN, "run", check, code=code) - bare
    return found


def listed(name: str) -> list[str]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.partition("#")[0].strip()]


def allowed(check: str) -> set[str]:
    """What a check may load: the common list and its own."""
    return {*listed(LISTS["yes"]), *listed(LISTS[check])}


@pytest.mark.parametrize("check", LISTS)
def test_a_warm_run_loads_only_the_listed_modules(run_modules: dict[str, set[str]], check: str) -> None:
    assert sorted(run_modules[check] - allowed(check)) == []


@pytest.mark.parametrize("check", LISTS)
def test_the_lists_name_no_module_of_ours_that_is_not_loaded(run_modules: dict[str, set[str]], check: str) -> None:
    own = {name for name in listed(LISTS[check]) if name.split(".")[0] == "ckdn"}
    assert sorted(own - run_modules[check]) == []


def test_no_heavy_module_is_on_the_common_list() -> None:
    assert sorted(set(HEAVY) & set(listed(LISTS["yes"]))) == []
    assert sorted({"re", "json", "enum"} & set(listed(LISTS["text"]))) == []


@pytest.mark.parametrize("name", LISTS.values())
def test_the_lists_are_sorted(name: str) -> None:
    assert listed(name) == sorted(set(listed(name)))


def test_the_measure_sees_imports(environments: dict[str, Path], folder: Path) -> None:
    python = environments["wheel"]
    assert "json" in loaded(python, folder, "-c", "import json")
    assert "json" not in loaded(python, folder, "-c", "pass")
