"""The user cache: it changes no byte of a result, is trusted only when it is private, and never outlives a change."""

from __future__ import annotations

import binascii
import marshal
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ckdn import cache
from tests.projects import ROOT, Done, Project, linter

NEUTRAL = re.compile(rb"\d{8}T\d{6}Z-[a-z]+(-\d+)?")


@pytest.fixture
def own(project: Project, tmp_path: Path) -> Project:
    """A project with a cache of its own and a spec of its own."""
    project.env["XDG_CACHE_HOME"] = str(tmp_path / "xdg")
    project.write("parsers.d/mylint.yaml", linter())
    project.shell("a", "echo a.py:3: bad; exit 1", parser="mylint")
    return project


def folder(project: Project) -> Path:
    return Path(project.env["XDG_CACHE_HOME"]) / "ckdn"


def entries(project: Project) -> list[Path]:
    return sorted(folder(project).iterdir()) if folder(project).is_dir() else []


def neutral(done: Done) -> bytes:
    return NEUTRAL.sub(b"RUN", done.out)


def loads(project: Project, module: str, *arguments: str) -> bool:
    """Whether ckdn imports a module for that command line."""
    code = f"import sys; from ckdn.cli import main; main(); print({module!r} in sys.modules, file=sys.stderr)"
    measured = Project(project.path, project.home, Path(project.env["XDG_CACHE_HOME"]))
    measured.command = lambda *given: [sys.executable, "-c", code, *given]  # type: ignore[method-assign]
    return measured.ckdn(*arguments).err.splitlines()[-1] == "True"


def test_cold_and_warm_and_without_give_equal_bytes(own: Project) -> None:
    cold = own.run("a")
    assert len(entries(own)) == 2
    warm = own.run("a")
    without = own.run("a", env={"CKDN_CACHE": "off"})
    assert neutral(cold) == neutral(warm) == neutral(without)
    metas = [own.meta(done.digest) for done in (cold, warm, without)]
    for meta in metas:
        for key in ("started_at", "duration_s", "command", "digest_bytes"):  # the run directory's name is in these
            del meta[key]
    assert metas[0] == metas[1] == metas[2]


def test_a_warm_run_reads_neither_config_nor_spec_again(own: Project) -> None:
    assert loads(own, "ckdn.spec.load", "run", "a")
    assert not loads(own, "ckdn.spec.load", "run", "a")
    assert not loads(own, "tomllib", "run", "a")


@pytest.mark.parametrize("env", [{"CKDN_CACHE": "off"}, {"CI": "true"}, {"XDG_CACHE_HOME": "relative"}])
def test_where_it_is_off_nothing_is_kept(own: Project, env: dict[str, str]) -> None:
    assert own.run("a", env=env).status == "fail"
    assert not folder(own).exists()
    assert not (own.path / "relative").exists()


def test_where_it_is_off_nothing_is_read(own: Project) -> None:
    own.run("a")
    for entry in entries(own):
        spoil(entry, lambda value: "spoilt")
    assert own.run("a", env={"CI": "true"}).status == "fail"
    assert own.run("a", env={"CKDN_CACHE": "off"}).status == "fail"


def spoil(entry: Path, change: Callable[[object], object]) -> None:
    """Give an entry another value, with a sound checksum."""
    data = marshal.dumps(change(marshal.loads(entry.read_bytes()[4:])))
    entry.write_bytes(binascii.crc32(data).to_bytes(4, "big") + data)


# --- who is trusted


def test_it_is_private(own: Project) -> None:
    own.run("a")
    assert folder(own).stat().st_mode & 0o777 == 0o700
    assert {entry.stat().st_mode & 0o777 for entry in entries(own)} == {0o600}


POISONS: dict[str, Callable[[Path], object]] = {
    "folder open to others": lambda cache: cache.chmod(0o755),
    "folder of a group": lambda cache: cache.chmod(0o770),
    "entries open to others": lambda cache: [e.chmod(0o644) for e in cache.iterdir()],
    "entries are links": lambda cache: [linked(e) for e in cache.iterdir()],
    "folder is a link": lambda cache: linked(cache),
    "torn": lambda cache: [e.write_bytes(e.read_bytes()[:-9]) for e in cache.iterdir()],
    "torn in the checksum": lambda cache: [e.write_bytes(e.read_bytes()[:3]) for e in cache.iterdir()],
    "empty": lambda cache: [e.write_bytes(b"") for e in cache.iterdir()],
    "a bit flipped": lambda cache: [e.write_bytes(e.read_bytes()[:-1] + b"!") for e in cache.iterdir()],
    "no marshal": lambda cache: [
        e.write_bytes(binascii.crc32(b"??").to_bytes(4, "big") + b"??") for e in cache.iterdir()
    ],
}


def linked(path: Path) -> None:
    """The same content behind a link."""
    path.rename(path.with_name(f"{path.name}.real"))
    path.symlink_to(path.with_name(f"{path.name}.real"))


@pytest.mark.parametrize("poison", POISONS)
def test_a_cache_that_cannot_be_trusted_is_not_used(own: Project, poison: str) -> None:
    """It would turn the red check green; what was kept is first made to say so."""
    own.run("a")
    for entry in entries(own):
        if entry.name.startswith("config"):
            spoil(entry, lambda value: turned(value))
    assert own.run("a").status == "pass", "the poison itself has no effect"
    POISONS[poison](folder(own))
    assert own.run("a").status == "fail"
    assert own.run("a").status == "fail"


def turned(value: object) -> object:
    """The kept config with another command and spec: the same file, and green."""
    (run, checks, *rest), state = value  # type: ignore[misc]
    checks = tuple((name, ("true",), "generic", *other) for name, _, _, *other in checks)
    return (run, checks, *rest), state


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to give a file away")
@pytest.mark.parametrize("what", ["folder", "entries"])
def test_another_users_cache_is_not_used(own: Project, what: str) -> None:
    own.run("a")
    for entry in entries(own):
        if entry.name.startswith("config"):
            spoil(entry, lambda value: turned(value))
    for path in [folder(own)] if what == "folder" else entries(own):
        os.chown(path, 65534, 65534)
    assert own.run("a").status == "fail"


def test_a_fifo_in_it_does_not_block(own: Project) -> None:
    own.run("a")
    for entry in entries(own):
        entry.unlink()
        os.mkfifo(entry, 0o600)
    assert own.run("a").status == "fail"


def test_a_cache_that_cannot_be_written_is_no_problem(own: Project) -> None:
    Path(own.env["XDG_CACHE_HOME"]).write_text("a file")
    assert own.run("a").status == "fail"


def test_another_version_of_the_code_starts_anew(own: Project, tmp_path: Path) -> None:
    """A clone changes without a new version number; what it kept before may mean something else now."""
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "ckdn", copy / "ckdn", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "parsers.d", copy / "parsers.d")
    shutil.copytree(ROOT / "schemas", copy / "schemas")
    shutil.copy(ROOT / "pyproject.toml", copy)
    own.env["PYTHONPATH"] = str(copy)
    own.run("a")
    before = entries(own)
    own.run("a")
    assert entries(own) == before
    os.utime(copy / "ckdn" / "spec" / "load.py", (1, 1))
    own.run("a")
    assert set(before) < set(entries(own))


def test_keys_differ_by_every_part() -> None:
    keys = [cache.key_of("spec", "a", "b"), cache.key_of("spec", "ab", ""), cache.key_of("config", "a", "b")]
    assert len(set(keys)) == 3


def test_it_does_not_grow_for_ever(tmp_path: Path) -> None:
    for number in range(cache.MAX_ENTRIES + 20):
        cache.put(str(tmp_path), f"spec-{number}", number)
    assert len(list(tmp_path.iterdir())) == cache.MAX_ENTRIES
    assert cache.get(str(tmp_path), f"spec-{cache.MAX_ENTRIES + 19}") == cache.MAX_ENTRIES + 19


def test_a_value_that_cannot_be_kept_is_not(tmp_path: Path) -> None:
    cache.put(str(tmp_path), "spec-1", object())
    assert list(tmp_path.iterdir()) == []


# --- changes are seen at once


def test_a_changed_spec_is_seen(own: Project) -> None:
    assert own.run("a").digest["findings"][0]["kind"] == "lint_violation"
    path = own.path / "parsers.d/mylint.yaml"
    before = path.stat()
    path.write_text(path.read_text().replace("lint_violation", "code_violation"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert own.run("a").digest["findings"][0]["kind"] == "code_violation"


def test_a_spec_that_breaks_is_seen(own: Project) -> None:
    own.run("a")
    path = own.path / "parsers.d/mylint.yaml"
    text = path.read_text()
    path.write_text(text.replace("proof", "prof"))
    assert "parsers.d/mylint.yaml" in own.refused("run", "a")[0]
    path.unlink()
    assert "unknown spec" in own.refused("run", "a")[0]
    path.write_text(text)
    assert own.run("a").status == "fail"


def test_a_change_in_an_extended_spec_is_seen(own: Project) -> None:
    own.write("parsers.d/child.yaml", "schema: ckdn.spec/1\nname: child\ntitle: c\ncategory: linter\nextends: mylint\n")
    own.config("")
    own.shell("a", "echo a.py:3: bad; exit 1", parser="child")
    for kind in ("lint_violation", "other_kind", "third_kind"):
        own.write("parsers.d/mylint.yaml", linter().replace("lint_violation", kind))
        for _ in range(2):
            assert own.run("a").digest["findings"][0]["kind"] == kind


def test_a_changed_config_is_seen(own: Project) -> None:
    own.run("a")
    path = own.path / "ckdn.toml"
    before = path.stat()
    path.write_text(path.read_text().replace("exit 1", "exit 5"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert own.run("a").code == 5
    path.write_text(path.read_text().replace("parser", "parsr"))
    assert any("did you mean parser?" in line for line in own.refused("run", "a"))


def test_an_option_that_a_spec_no_longer_has_is_refused(own: Project) -> None:
    more = "options: {limit: {type: integer}}\ngates: [{number: records, max: options.limit, label: records}]\n"
    own.write("parsers.d/mylint.yaml", linter(more=more))
    own.config("")
    own.shell("a", "echo a.py:3: bad; exit 1", parser="mylint", limit=3)
    own.run("a")
    own.run("a")
    own.write("parsers.d/mylint.yaml", linter())
    assert "no such option" in own.refused("run", "a")[0]


def test_a_spec_that_comes_to_shadow_another_is_refused(own: Project) -> None:
    own.shell("r", "echo '[]' > $1/ruff.json", parser="ruff")
    own.run("r")
    own.run("r")
    own.write("parsers.d/ruff.yaml", (ROOT / "parsers.d" / "ruff.yaml").read_text("utf-8") + "\n")
    assert "exists twice" in own.refused("run", "r")[0]


def test_the_same_config_in_another_folder_is_another_one(own: Project, tmp_path: Path) -> None:
    own.config('[check.a]\ncommand = "pwd"\nparser = "generic"\n')
    other = Project(tmp_path / "other", own.home, Path(own.env["XDG_CACHE_HOME"]))
    other.config((own.path / "ckdn.toml").read_text())
    for project in (own, other, own, other):
        done = project.run("a")
        assert project.log(done.digest).decode().strip() == str(project.path)
