"""Several checks in one run: an alias, names, all of them; one aggregate."""

from __future__ import annotations

import json
import os
import signal

from ckdn import rundir
from tests.projects import Done, Project, faults, finished

CONFIG = """\
[check.green]
command = "true"
parser = "generic"
[check.red]
command = "sh -c 'exit 3'"
parser = "generic"
[check.late]
command = "true"
parser = "generic"
[check.fast]
members = ["red", "late"]
[check.whole]
members = ["red", "late", "green"]
fail_fast = false
[check.fine]
members = ["green", "late"]
"""


def aggregate(project: Project, *arguments: str) -> tuple[Done, dict[str, object]]:
    done = project.ckdn("run", *arguments)
    document = done.digest
    assert faults(document) == []
    return done, document


def states(document: dict[str, object]) -> list[tuple[str, str]]:
    members = document["members"]
    assert isinstance(members, list)
    return [(m["check"], m["status"]) for m in members]


def test_an_alias_is_green_when_all_its_members_are(project: Project) -> None:
    project.config(CONFIG)
    done, document = aggregate(project, "fine")
    assert (done.code, document["status"], document["rc"]) == (0, "pass", 0)
    assert states(document) == [("green", "pass"), ("late", "pass")]
    assert done.err == ""


def test_the_first_red_member_gives_status_and_code(project: Project) -> None:
    project.config(CONFIG)
    done, document = aggregate(project, "whole")
    assert (done.code, document["status"], document["rc"]) == (3, "fail", 3)
    assert states(document) == [("red", "fail"), ("late", "pass"), ("green", "pass")]


def test_fail_fast_lists_what_was_skipped(project: Project) -> None:
    project.config(CONFIG)
    assert states(aggregate(project, "fast")[1]) == [("red", "fail"), ("late", "skipped")]
    assert states(aggregate(project, "whole", "--fail-fast")[1])[1:] == [("late", "skipped"), ("green", "skipped")]


def test_all_checks_in_the_order_of_the_config(project: Project) -> None:
    project.config(CONFIG)
    document = aggregate(project, "--all")[1]
    assert document["alias"] == "*"
    assert states(document) == [("green", "pass"), ("red", "fail"), ("late", "pass")]


def test_several_names_and_an_alias_among_them(project: Project) -> None:
    project.config(CONFIG)
    document = aggregate(project, "late", "fine")[1]
    assert document["alias"] == "late,fine"
    assert states(document) == [("late", "pass"), ("green", "pass")]


def test_a_refused_member_costs_only_itself(project: Project) -> None:
    project.config(CONFIG.replace('"green", "late"]', '"broken", "late"]'))
    project.check("broken", "true", parser="broken")
    project.write("parsers.d/broken.yaml", "schema: ckdn.spec/1\nname: broken\n")
    done, document = aggregate(project, "broken", "late")
    assert states(document) == [("broken", "error"), ("late", "pass")]
    assert (done.code, document["status"]) == (2, "error")


def test_the_aggregate_is_stored_and_shown_and_its_members_live_with_it(project: Project) -> None:
    project.config("[run]\nkeep = 1\n" + CONFIG)
    done, document = aggregate(project, "whole")
    assert project.ckdn("show").out == done.out
    assert project.ckdn("show", "whole").out == done.out
    members = document["members"]
    assert isinstance(members, list)
    digest = json.loads((project.path / members[0]["run_dir"] / "digest.json").read_text())
    assert digest["check"] == "red"
    text = project.ckdn("show", "whole", "--format", "text").out.decode()
    assert text == "whole: fail, 2 of 3 checks pass, rc 3\n red: fail\n"


def test_text_shows_each_member_and_the_whole(project: Project) -> None:
    project.config(CONFIG)
    done = project.ckdn("run", "fine", "--format", "text")
    assert done.out.decode().splitlines() == ["green: pass", "late: pass", "fine: pass, 2 of 2 checks pass"]
    assert project.ckdn("run", "fine", "--quiet").out == b""


def test_a_busy_member_is_named_with_its_reason_without_a_terminal(project: Project) -> None:
    project.config(CONFIG)
    with rundir.lock(str(project.runs_dir), "green"):
        for form in ("json", "text"):
            done = project.ckdn("run", "whole", "--format", form)
            assert done.err.splitlines() == [f"ckdn: green: check `green` is already running (pid {os.getpid()})"]
            assert done.code == 3
        assert len(project.ckdn("run", "fine", "--quiet").err.splitlines()) == 1
    assert project.ckdn("run", "fine").err == ""


def test_an_interrupt_ends_the_group_with_its_aggregate(project: Project) -> None:
    project.config(CONFIG)
    project.shell("slow", "printf + > fifo; exec sleep 600")
    os.mkfifo(project.path / "fifo")
    process = project.start("run", "green", "slow", "late")
    with (project.path / "fifo").open("rb") as file:
        assert file.read(1) == b"+"
    process.send_signal(signal.SIGINT)
    done = finished(process)
    assert faults(done.digest) == []
    assert states(done.digest) == [("green", "pass"), ("slow", "error"), ("late", "skipped")]
    assert (done.code, done.digest["rc"], done.digest["interrupted"]) == (130, 130, True)


# --- a limit on open files


def test_too_few_open_files_are_a_refusal(project: Project) -> None:
    project.config(CONFIG)
    project.run("green")
    for number in range(6, 24):
        done = project.shell_ckdn(f"ulimit -n {number}; exec $CKDN run green")
        if done.code == 0:
            assert done.status == "pass"
            break
        assert (done.code, done.out) == (2, b""), (number, done)
        (line,) = done.err.splitlines()
        assert line.startswith("ckdn: too many files are open"), number
    assert 8 < number < 23
