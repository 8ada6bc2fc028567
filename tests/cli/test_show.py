"""``ckdn show``: which run a reference means, and what is printed of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.projects import Project


@pytest.fixture
def stored(project: Project) -> Project:
    """A project with two checks; `red` has run twice, `green` once, last."""
    project.shell("red", "echo boo; exit 3")
    project.shell("green", "echo fine")
    project.shell("never", "true")
    project.run("red")
    project.run("red")
    project.run("green")
    return project


def of(project: Project, check: str) -> list[str]:
    return [name for name in project.run_names() if name.partition("-")[2].partition("-")[0] == check]


def test_a_check_means_its_newest_run_and_nothing_means_the_latest(stored: Project) -> None:
    newest = stored.run("red")
    green = (stored.runs_dir / of(stored, "green")[0] / "digest.json").read_bytes()
    assert stored.ckdn("show", "red").out == newest.out
    assert stored.ckdn("show", "green").out == green
    assert stored.ckdn("show").out == newest.out
    assert stored.ckdn("show").code == 0


def test_a_run_id_and_a_unique_prefix_of_one(stored: Project) -> None:
    (name,) = of(stored, "green")
    digest = (stored.runs_dir / name / "digest.json").read_bytes()
    assert stored.ckdn("show", name).out == digest
    assert stored.ckdn("show", name[:-1]).out == digest
    assert "means 3 runs" in stored.refused("show", name[:6])[0]


def test_without_latest_the_newest_whole_run_is_shown(stored: Project) -> None:
    shutil.rmtree(stored.runs_dir / of(stored, "green")[0])
    newest = (stored.runs_dir / of(stored, "red")[-1] / "digest.json").read_bytes()
    assert stored.ckdn("show").out == newest
    (stored.runs_dir / "latest").unlink()
    assert stored.ckdn("show").out == newest


def test_references_that_mean_nothing(stored: Project) -> None:
    assert "did you mean red?" in stored.refused("show", "redd")[0]
    assert "run it: ckdn run never" in stored.refused("show", "never")[0]
    for reference in ("", "../..", "latest", ".locks", "x" * 300):
        assert "no run and no check" in stored.refused("show", reference)[0]


def test_a_project_without_runs(project: Project) -> None:
    project.shell("a", "true")
    assert "no run is stored" in project.refused("show")[0]
    assert "no whole run" in project.refused("show", "a")[0]
    assert not project.runs_dir.exists()


def test_an_unfinished_run_is_none(stored: Project) -> None:
    newest = of(stored, "red")[-1]
    (stored.runs_dir / newest / "digest.json").unlink()
    older = of(stored, "red")[0]
    assert stored.ckdn("show", "red").out == (stored.runs_dir / older / "digest.json").read_bytes()
    assert "no run and no check" in stored.refused("show", newest)[0]


def test_text_is_what_a_run_prints_as_text(stored: Project) -> None:
    assert stored.ckdn("show", "red", "--format", "text").out == b"red: fail: exit code 3\nboo\n"


def test_the_log(project: Project) -> None:
    project.shell("a", r"printf 'one\r\ntwo\033[31m!\033[0m\n\nno newline'; exit 1")
    project.run("a")
    assert project.ckdn("show", "a", "--log").out == b"one\ntwo!\n\nno newline\n"
    assert project.ckdn("show", "--log", "--tail", "2").out == b"\nno newline\n"
    assert project.ckdn("show", "--log", "--tail", "0").out == b""
    assert project.ckdn("show", "--log", "--tail", "99").out == b"one\ntwo!\n\nno newline\n"


def test_an_empty_log_is_nothing(project: Project) -> None:
    project.shell("a", "true")
    project.run("a")
    assert project.ckdn("show", "--log").out == b""
    assert project.ckdn("show", "--log", "--tail", "5").out == b""


def test_a_long_tail_of_a_long_log_is_whole(project: Project) -> None:
    project.check("a", "{python}", "-c", "for n in range(50_000): print('line', n, 'x' * 40)")
    project.run("a")
    lines = project.ckdn("show", "--log", "--tail", "20000").out.splitlines()
    assert len(lines) == 20_000
    assert [lines[0].split()[1], lines[-1].split()[1]] == [b"30000", b"49999"]
    assert len(project.ckdn("show", "--log").out.splitlines()) == 50_000


def test_a_tail_that_begins_inside_a_private_key_shows_nothing_of_it(project: Project) -> None:
    """A key longer than the tail: its markers are both outside of what would be shown."""
    body = [f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9U{n:05}" for n in range(60)]
    project.write("key.pem", "\n".join(["-----BEGIN PRIVATE KEY-----", *body]) + "\n")
    project.config("[run]\nlog_tail_lines = 20\n")
    project.shell("a", "yes filler | head -30000; cat key.pem; exit 1")
    done = project.run("a")
    shown = [
        done.out,
        project.ckdn("show", "--log", "--tail", "20").out,
        project.ckdn("show", "--log").out,
        project.ckdn("run", "a", "--format", "text").out,
        project.ckdn(
            "parse", "generic", str(project.run_dir(done.digest) / "full.log"), "--rc", "1", "--format", "digest"
        ).out,
    ]
    assert [text for text in shown if b"MIIEvQ" in text] == []
    assert b"MIIEvQ" in project.log(done.digest)


def test_a_log_in_another_encoding(project: Project) -> None:
    project.check(
        "a", "{python}", "-c", "import sys; sys.stdout.buffer.write(('x\\n' * 500 + 'grün\\n').encode('utf-16'))"
    )
    project.run("a")
    assert project.ckdn("show", "--log", "--tail", "1").out.decode() == "grün\n"


def test_a_run_without_its_log(stored: Project) -> None:
    (name,) = of(stored, "green")
    (stored.runs_dir / name / "full.log").unlink()
    assert "the run has no log" in stored.refused("show", "green", "--log")[0]


def test_usage(stored: Project) -> None:
    assert "--tail goes with --log" in stored.refused("show", "--tail", "3")[0]
    assert "--tail is negative" in stored.refused("show", "--log", "--tail", "-1")[0]
    assert "invalid int" in stored.refused("show", "--log", "--tail", "x")[0]


def test_config_and_cwd(stored: Project, tmp_path: Path) -> None:
    digest = stored.ckdn("show", "green").out
    assert stored.ckdn("show", "green", "--cwd", str(stored.path), cwd=tmp_path).out == digest
    assert stored.ckdn("show", "green", env={"CKDN_CWD": str(stored.path)}, cwd=tmp_path).out == digest
    config = str(stored.path / "ckdn.toml")
    assert stored.ckdn("show", "green", env={"CKDN_CONFIG": config}).out == digest


def test_a_closed_stdout_changes_no_code(stored: Project) -> None:
    assert stored.shell_ckdn("$CKDN show >&-").code == 0
    assert stored.shell_ckdn("$CKDN show --log >/dev/full").code == 0
