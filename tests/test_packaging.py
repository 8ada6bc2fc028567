"""The sdist and the wheel hold what the checkout holds; packaged data is found in every form of installation."""

from __future__ import annotations

import email
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ckdn
from ckdn import resources

ROOT = Path(__file__).resolve().parent.parent
DATA = ("parsers.d", "providers.d", "schemas")
NEEDED_TO_BUILD = (".ci", "ckdn", "parsers.d", "schemas", "pyproject.toml", "README.md", "LICENSE", ".gitignore")

# What a form of installation must agree on; run by that form's own Python, outside the checkout.
PROBE = """
import hashlib, json, sys
before = set(sys.modules)
from ckdn import resources
first = {kind: {name: hashlib.sha256(resources.read(kind, name)).hexdigest() for name in NAMES.get(kind, ())}
         for kind in resources.KINDS}
loaded = sorted(set(sys.modules) - before)
compiled = {name[:-5]: resources.compiled(name[:-5]) is not None for name in NAMES.get("parsers.d", ())}
print(json.dumps({
    "data": first,
    "names": {kind: resources.names(kind) for kind in resources.KINDS},
    "origin": resources.origin("parsers.d", "ruff.yaml"),
    "absent": [resources.read("schemas", "no.such"), resources.read("schemas", "../ckdn/__init__.py"),
               resources.read("parsers.d", "")],
    "compiled": compiled,
    "loaded": loaded,
    "package": sys.modules["ckdn"].__path__[0],
}))
"""


def tracked(*folders: str) -> list[str]:
    """The files that belong to the checkout, ``/`` between the parts; in an unpacked sdist all files."""
    if not (ROOT / ".git").exists():
        found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
        return sorted(path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts)
    # Files that are new and not ignored count: they would be shipped.
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *folders]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(name for name in set(listed.split("\0")) if name and (ROOT / name).is_file())


@pytest.fixture(scope="session")
def in_wheel(built: dict[str, Path]) -> dict[str, bytes]:
    with zipfile.ZipFile(built["wheel"]) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


FORMS = ["checkout", "editable", "wheel", "zip"]


@pytest.fixture(scope="session")
def probes(forms: dict[str, Callable[..., str]]) -> dict[str, Any]:
    names = {kind: [Path(name).name for name in tracked(kind) if name.count("/") == 1] for kind in DATA}
    script = f"NAMES = {names!r}\n{PROBE}"
    return {form: json.loads(python("-c", script)) for form, python in forms.items()}


def test_the_wheel_has_the_data_of_the_checkout(in_wheel: dict[str, bytes]) -> None:
    shipped = {
        name.removeprefix("ckdn/_data/"): content
        for name, content in in_wheel.items()
        if name.startswith(tuple(f"ckdn/_data/{kind}/" for kind in DATA))
    }
    assert shipped == {name: (ROOT / name).read_bytes() for name in tracked(*DATA)}
    assert any(name.startswith("parsers.d/") for name in shipped)
    assert any(name.startswith("schemas/") for name in shipped)


def test_the_wheel_has_the_package_and_nothing_else(in_wheel: dict[str, bytes]) -> None:
    shipped = {name for name in in_wheel if not name.startswith("ckdn/_data/") and ".dist-info/" not in name}
    assert shipped == set(tracked("ckdn"))
    assert "ckdn/py.typed" in shipped


def test_the_wheel_has_every_spec_compiled(in_wheel: dict[str, bytes]) -> None:
    specs = {Path(name).stem for name in tracked("parsers.d")} - {"_launchers"}
    compiled = {Path(name).stem for name in in_wheel if name.startswith("ckdn/_data/compiled/")}
    assert specs <= compiled
    assert not (ROOT / "ckdn" / "_data").exists(), "the build left files in the source tree"


def test_the_sdist_has_what_building_and_testing_need(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        inside = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    folders = [".ci", "ckdn", "docs", "examples", "fixtures", *DATA, "tests"]
    files = ["CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", ".gitignore"]
    assert inside - {"PKG-INFO"} == {*tracked(*folders), *files}


def test_the_wheel_from_the_checkout_is_the_wheel_from_the_sdist(
    built: dict[str, Path], command: Callable[..., str], tmp_path: Path
) -> None:
    command([sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path, ROOT], tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == hashlib.sha256(built["wheel"].read_bytes()).hexdigest()


def test_metadata(in_wheel: dict[str, bytes]) -> None:
    folder = f"ckdn-{ckdn.__version__}.dist-info"
    metadata = email.message_from_bytes(in_wheel[f"{folder}/METADATA"])
    assert metadata["Name"] == "ckdn"
    assert metadata["Version"] == ckdn.__version__
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "Private :: Do Not Upload" in metadata.get_all("Classifier", [])
    needed = {line.partition(">")[0] for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert needed == {"google-re2", "jmespath", "jsonschema", "lxml", "pyyaml"}
    assert b"ckdn = ckdn.cli:main" in in_wheel[f"{folder}/entry_points.txt"]
    assert f"{folder}/licenses/LICENSE" in in_wheel


@pytest.mark.parametrize("form", FORMS)
def test_data_is_found(form: str, probes: dict[str, Any]) -> None:
    probe = probes[form]
    expected = {
        kind: {Path(name).name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in tracked(kind)}
        for kind in DATA
    }
    assert probe["data"] == expected
    assert probe["names"] == {kind: sorted(names) for kind, names in expected.items()}
    assert probe["origin"] == "<ckdn>/parsers.d/ruff.yaml"
    assert probe["absent"] == [None, None, None]


@pytest.mark.parametrize("form", FORMS)
def test_each_form_uses_its_own_package(form: str, probes: dict[str, Any]) -> None:
    package = Path(probes[form]["package"])
    inside_checkout = package == ROOT / "ckdn"
    assert inside_checkout == (form in ("checkout", "editable"))
    assert (package.parent.suffix == ".whl") == (form == "zip")


@pytest.mark.parametrize("form", FORMS)
def test_compiled_specs_are_in_wheels_only(form: str, probes: dict[str, Any]) -> None:
    compiled = {name: found for name, found in probes[form]["compiled"].items() if not name.startswith("_")}
    assert compiled
    assert set(compiled.values()) == {form in ("wheel", "zip")}


@pytest.mark.parametrize("form", ["checkout", "editable", "wheel"])
def test_reading_data_loads_no_other_module(form: str, probes: dict[str, Any]) -> None:
    assert probes[form]["loaded"] == ["__future__", "ckdn", "ckdn.resources", "errno"]


def test_a_kind_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no such kind of data: 'fixtures'"):
        resources.read("fixtures", "x")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of what building a wheel needs, to be broken."""
    copy = tmp_path / "sources"
    for name in tracked(*NEEDED_TO_BUILD):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    return copy


def test_a_spec_that_does_not_load_fails_the_build(sources: Path) -> None:
    spec = sources / "parsers.d" / "ruff.yaml"
    spec.write_text(spec.read_text(encoding="utf-8") + "\nproofs: []\n", encoding="utf-8")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(sources.parent)]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "ruff.yaml" in done.stderr
    assert "proofs" in done.stderr
    assert not list(sources.parent.glob("*.whl"))
    assert not (sources / "ckdn" / "_data").exists()
