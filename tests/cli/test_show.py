"""``ckdn show``: which run a reference means, and what is printed of it."""

from __future__ import annotations

import json
import os
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


# --- what is stored may be anything


def refusal(project: Project, *arguments: str) -> str:
    (line,) = project.refused("show", "red", *arguments)
    return line


def test_only_a_regular_file_is_a_digest(stored: Project, tmp_path: Path) -> None:
    digest = stored.runs_dir / of(stored, "red")[-1] / "digest.json"
    digest.unlink()
    os.mkfifo(digest)
    assert "digest.json: is no regular file" in refusal(stored)
    digest.unlink()
    secret = tmp_path / "secret"
    secret.write_text("{}")
    digest.symlink_to(secret)
    for form in ("json", "text"):
        assert "digest.json: is a link" in refusal(stored, "--format", form)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{torn", "cannot be read: "),
        (b"", "cannot be read: "),
        (b"\xff", "cannot be read: "),
        (b"[]", "is no JSON object"),
        (b"{}", "is no digest of ckdn: "),
        (b'{"schema":"ckdn.digest/2"}', "is no digest of ckdn: "),
        (b'{"a":NaN}', "NaN is no JSON"),
        (b"[" * 200_000, "nested too deep"),
        (b'{"a":"' + b"x" * (1 << 20) + b'"}', "larger than 1048576 bytes"),
    ],
)
def test_what_is_no_digest_is_refused(stored: Project, content: bytes, why: str) -> None:
    (stored.runs_dir / of(stored, "red")[-1] / "digest.json").write_bytes(content)
    assert why in refusal(stored)


@pytest.mark.parametrize("value", ["[" * 400 + "]" * 400, "[" * 900 + "]" * 900, "1e999", "1" * 5000])
def test_a_value_that_no_digest_has_is_no_defect(stored: Project, value: str) -> None:
    path = stored.runs_dir / of(stored, "red")[-1] / "digest.json"
    path.write_text(path.read_text().replace("{", f'{{"summary":{{"x":{value}}},', 1))
    assert stored.ckdn("show", "red").code in (0, 2)


def test_a_bad_meta_stops_nothing(stored: Project) -> None:
    run = stored.runs_dir / of(stored, "red")[-1]
    digest = (run / "digest.json").read_bytes()
    (run / "meta.json").write_bytes(b"[" * 200_000)
    assert stored.ckdn("show", "red").out == digest
    (run / "meta.json").unlink()
    os.mkfifo(run / "meta.json")
    assert stored.ckdn("show", "red").out == digest


def test_what_was_put_into_a_digest_is_cleaned_and_masked(stored: Project) -> None:
    path = stored.runs_dir / of(stored, "red")[-1] / "digest.json"
    document = json.loads(path.read_bytes())
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    document["log_tail"] = ["\x1b[31mred\x1b[0m", token]
    path.write_text(json.dumps(document))
    for form in ("json", "text"):
        done = stored.ckdn("show", "red", "--format", form)
        assert done.code == 0
        assert b"red" in done.out
        assert b"\x1b" not in done.out
        assert b"u001b" not in done.out
        assert token.encode() not in done.out


def test_a_log_that_is_a_link_is_not_read(stored: Project, tmp_path: Path) -> None:
    log = stored.runs_dir / of(stored, "red")[-1] / "full.log"
    log.unlink()
    (tmp_path / "other").write_text("other")
    log.symlink_to(tmp_path / "other")
    assert "the log cannot be read" in refusal(stored, "--log")
