"""The faults that the cases kept beside the checkout show elsewhere: what is right there, on a copy of each folder.

Skipped where there are no such cases. The kinds are tested afresh in the other modules; here stand the very inputs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from tests.projects import ROOT, Project, finished

CASES = ROOT.parent / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="no cases beside this checkout")


@pytest.fixture
def case(project: Project, request: pytest.FixtureRequest) -> Project:
    """A copy of the case whose number the test's name begins with (``test_31_…``)."""
    number = request.function.__name__.split("_")[1]
    (source,) = CASES.glob(f"{number}-*")
    shutil.copytree(source, project.path, dirs_exist_ok=True)
    for path in [project.path, *project.path.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    return project


def test_07_an_empty_log_is_no_evidence(case: Project) -> None:
    case.config('[check.mypy]\ncommand = "true --check"\nparser = "mypy"\n')  # the others have no spec yet
    done = case.run("mypy")
    assert (done.code, done.status) == (1, "parse_mismatch")


def test_17_items_of_an_unknown_shape(case: Project) -> None:
    case.config((case.path / "ckdn.toml").read_text().partition("[check.pa]")[0])
    done = case.run("r")
    assert (done.code, done.status) == (1, "parse_mismatch")


def test_29_wrapped_messages_are_whole(case: Project) -> None:
    done = case.run("m")
    (finding,) = done.digest["findings"]
    assert done.status == "fail"
    assert finding["id"].startswith("a.py:2")
    assert finding["id"].endswith(" return-value")
    assert finding["message"].startswith("Incompatible return value type (got ")
    assert finding["message"].endswith('expected "list[dict[str, tuple[int, int]]]")')


def test_31_commands_that_are_none(case: Project) -> None:
    """All of them are refused at load; an array is a command."""
    for name in ("quote", "blank", "nul", "arr"):
        lines = case.refused("run", name)
        assert [line.split(":")[2] for line in lines] == ["2", "5", "8"]
    assert "unbalanced quote" in lines[0]
    assert "is empty" in lines[1]
    assert "NUL" in lines[2]
    case.config('[check.arr]\ncommand = ["echo", "hi"]\nparser = "generic"\n')
    assert case.log(case.run("arr").digest) == b"hi\n"


def test_33_an_unknown_spec_is_refused_before_anything_runs(case: Project) -> None:
    for name in ("a", "b", "c"):
        (line,) = case.refused("run", name)
        assert line.startswith("ckdn: ckdn.toml:6:1: unknown spec `pytst`")


def test_35_a_runs_dir_that_cannot_be_written(case: Project) -> None:
    """As a file in its place: whoever runs this test, root too, cannot write there."""
    case.write("ro/.agent-runs", "")
    done = case.ckdn("run", "x", "--config", "ckdn.toml", "--cwd", "ro")
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith("ckdn: cannot write runs_dir")


def test_45_a_check_that_reads_stdin_neither_waits_nor_takes_it(case: Project) -> None:
    process = case.start("run", "s", stdin=subprocess.PIPE)
    out, _ = process.communicate(timeout=120)  # stdin stays open until this is over
    assert (process.returncode, json.loads(out)["status"]) == (0, "pass")
    done = case.shell_ckdn("printf 'one\\ntwo\\n' | { $CKDN run s >&2; cat; }")
    assert done.out == b"one\ntwo\n"


def test_47_death_by_a_signal_is_named(case: Project) -> None:
    done = case.run("k")
    assert (done.code, done.status, done.digest["rc"]) == (1, "error", -11)
    assert "SIGSEGV" in done.digest["status_reason"]


def test_49_two_runs_of_a_check_at_once(case: Project) -> None:
    case.config('[check.a]\ncommand = "sh -c \'printf + > fifo; sleep 60\'"\nparser = "generic"\n')
    subprocess.run(["mkfifo", case.path / "fifo"], check=True)
    first = case.start("run", "a")
    assert (case.path / "fifo").read_bytes() == b"+"
    (line,) = case.refused("run", "a")
    assert f"already running (pid {first.pid})" in line
    first.send_signal(signal.SIGTERM)
    done = finished(first)
    case.verify(done)
    assert done.code == 143


def test_51_a_line_of_blanks_costs_no_more_than_others(case: Project) -> None:
    """It would take minutes where patterns backtrack; the check's own timeout is 5 s."""
    case.write("l.txt", "a.py:1: error: x" + " " * 40_000 + "y\n")
    done = case.run("m")
    assert (done.code, done.status) == (1, "fail")
    (record,) = case.records(done.digest)
    assert (record["path"], record["line"]) == ("a.py", 1)


def test_55_binary_output(case: Project) -> None:
    case.config((case.path / "ckdn.toml").read_text().replace("python3", "{python}"))
    done = case.run("g")
    assert (done.code, done.status) == (1, "fail")
    assert all(c.isprintable() for line in done.digest["log_tail"] for c in line)
    assert "bad red" in done.digest["log_tail"][-1]
    assert "title" not in done.digest["log_tail"][-1]


def test_59_negative_and_zero_limits(case: Project) -> None:
    lines = case.refused("run", "r")
    assert [line.split(":")[2] for line in lines] == ["2", "3", "4"]
    case.config((case.path / "ckdn.toml").read_text().partition("[check.r]")[2].join(["[check.r]", ""]))
    done = case.run("r")
    assert (done.digest["findings_total"], len(case.records(done.digest))) == (3, 3)
    assert [record.get("line") for record in case.records(done.digest)] == [None, 1, 2]


def test_63_windows_paths(case: Project) -> None:
    (record,) = case.records(case.run("r").digest)
    assert (record["path"], record["line"], record["column"]) == ("C:/w/a b.py", 3, 9)
    (record,) = case.records(case.run("m").digest)
    assert (record["path"], record["line"], record["code"]) == ("C:/w/a.py", 3, "arg-type")


def test_65_secrets_in_the_log_tail(case: Project) -> None:
    done = case.run("g")
    secret = b"wJalrXUtnFEMI"
    assert secret not in done.out
    assert b"AWS_SECRET_ACCESS_KEY" in done.out
    assert secret not in case.ckdn("show", "g", "--log").out
    assert secret in case.log(done.digest)


def test_67_truncated_reports(case: Project) -> None:
    case.config('[check.r]\ncommand = "sh -c \'cp t.json $0/ruff.json; exit 0\' {run_dir}"\nparser = "ruff"\n')
    done = case.run("r")
    assert (done.code, done.status) == (1, "parse_mismatch")
    assert "ruff.json" in done.digest["status_reason"]


def test_73_the_config_is_found_from_a_subfolder(case: Project) -> None:
    (case.path / ".git").mkdir()
    sub = case.path / "sub"
    done = case.ckdn("run", "a", cwd=sub)
    assert done.code == 0  # sub/pyproject.toml has its own check `a`: the nearest one holds
    assert (sub / ".agent-runs").is_dir()
    (sub / "pyproject.toml").unlink()
    case.verify(case.ckdn("run", "a", cwd=sub))
    assert case.run_names()


def test_75_repeated_findings_leave_room_for_the_others(case: Project) -> None:
    subprocess.run([sys.executable, "mk.py"], cwd=case.path, check=True)
    done = case.run("r")
    assert done.digest["findings_total"] == 101
    ids = [finding["id"] for finding in done.digest["findings"]]
    assert ids == ["a.py:1:1 E501", "pay.py:9:1 S608"]
    assert "\u00d7100" in done.digest["findings"][0]["message"]
    assert len(case.records(done.digest)) == 101


def test_77_a_child_that_takes_no_term_delays_no_green(case: Project) -> None:
    """The child stays for ever and the grace is a day: that the run ends at all says that it waits for neither."""
    os.mkfifo(case.path / "fifo")
    text = (case.path / "ckdn.toml").read_text().replace("sleep 20", "read line <fifo")
    case.config(text + "\n[run]\ngrace = 86400\n")
    done = case.run("b")
    assert (done.code, done.status) == (0, "pass")
    assert done.digest["notes"] == ["still running after the command had ended, stopped: sh"]
    os.close(os.open(case.path / "fifo", os.O_RDWR))  # lets the child go, and with it the guardian


def test_79_a_broken_pipe_keeps_the_code(case: Project) -> None:
    done = case.shell_ckdn("{ $CKDN run f; echo rc=$? >&2; } | { exec 0<&-; :; }")
    assert done.err == "rc=7\n"


def test_81_output_before_a_timeout_is_there(case: Project) -> None:
    text = (case.path / "ckdn.toml").read_text().replace("python3", "{python}")
    case.config(text + "\n[run]\ngrace = 0.1\n")
    for name in ("b", "b2"):
        done = case.run(name, env={"PYTHONUNBUFFERED": None})
        assert (done.code, done.digest["timed_out"]) == (124, True)
        assert done.digest["log_tail"][0] == "step 1 ok"
        assert done.digest["log_tail"][1].startswith("ERROR: cannot reach db")


def test_every_case_tried_here_exists() -> None:
    numbers = [name.split("_")[1] for name in globals() if name.startswith("test_") and name.split("_")[1].isdigit()]
    there = {path.name.partition("-")[0] for path in CASES.iterdir() if path.is_dir()}
    assert sorted(set(numbers) - there) == []
