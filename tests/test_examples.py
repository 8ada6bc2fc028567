"""The sample projects: every planted fault becomes a finding at its place, green is green, broken tools never are."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest
import yaml

from tests.projects import ROOT, Project

EXAMPLES = ROOT / "examples"
PLANTED = yaml.safe_load((EXAMPLES / "python-sample" / "faults.yaml").read_text("utf-8"))
CHECKS = ("tests", "lint", "types", "build")


def copied(name: str, project: Project) -> Project:
    """A sample project in a folder of its own, without what tools have left in it."""
    ignored = shutil.ignore_patterns(".agent-runs", ".mypy_cache", ".ruff_cache", "__pycache__")
    shutil.copytree(EXAMPLES / name, project.path, dirs_exist_ok=True, ignore=ignored)
    return project


def place(path: str | None, line: int | None, column: int | None) -> str:
    return ":".join(str(part) for part in (path, line, column) if part)


def fits(fault: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether a record is that fault: everything that the list says of it, and nothing where it says nothing."""
    said = "\n".join([record["message"], *record.get("detail", [])])
    frame = fault.get("test_frame", "").rpartition(":")
    return (
        place(record.get("path"), record.get("line"), fault.get("column") and record.get("column"))
        == place(fault.get("path"), fault.get("line"), fault.get("column"))
        and ("code" not in fault or record.get("code") == fault["code"])
        and ("test" not in fault or record.get("test") == fault["test"])
        and fault.get("message_contains", "") in said
        and (not frame[0] or f'{frame[0]}", line {frame[2]}' in said)
    )


@pytest.mark.parametrize("check", CHECKS)
def test_every_planted_fault_is_found_at_its_place(project: Project, check: str) -> None:
    done = copied("python-sample", project).run(check)
    assert (done.code, done.status) == (1, "fail")
    planted = [fault for fault in PLANTED["faults"] if fault["check"] == check and fault.get("count", 1)]
    records = project.records(done.digest)
    assert [fault for fault in planted if sum(fits(fault, record) for record in records) != fault.get("count", 1)] == []
    assert len(records) == sum(fault.get("count", 1) for fault in planted) == PLANTED["totals"][check]
    assert done.digest.get("findings_total", 0) == PLANTED["totals"][check]
    for fault in PLANTED["faults"]:
        if fault["check"] == check and "log_contains" in fault:
            assert any(fault["log_contains"] in line for line in done.digest["log_tail"])
    # The digest has room for all of them: who reads only that misses none.
    places = [finding.get("location", finding["id"]) for finding in done.digest.get("findings", [])]
    assert len(places) == PLANTED["totals"][check]
    for at in [place(f["path"], f["line"], f.get("column")) for f in planted if "path" in f]:
        assert any(shown == at or shown.startswith((f"{at} ", f"{at}:")) for shown in places)


@pytest.mark.parametrize("check", CHECKS)
def test_the_mended_project_is_green(project: Project, check: str) -> None:
    done = copied("python-green", project).run(check)
    assert (done.code, done.status) == (0, "pass")
    assert "findings_total" not in done.digest


def test_the_list_for_people_names_the_same_faults() -> None:
    rows = (EXAMPLES / "python-sample" / "FAULTS.md").read_text("utf-8").splitlines()
    table = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if row.startswith("| ")][1:]
    assert [row[0] for row in table] == [fault["check"] for fault in PLANTED["faults"]]
    for row, fault in zip(table, PLANTED["faults"], strict=True):
        at = place(fault.get("path"), fault.get("line"), fault.get("column")) or fault["test"].rpartition(".")[2]
        assert f"`{at}`" in row[2]


# --- broken tools, on the green project: what would pass must not when the tool is broken

LINT = "{python} -m ruff check --output-format json --output-file {run_dir}/ruff.json ."
GREEN = {
    "tests": ("{python} -m unittest", "unittest"),
    "lint": (LINT, "ruff"),
    "types": ("{python} -m mypy", "mypy"),
}
AFTER = "sh -c '\"$@\"; {}' sh "
"""A shell that runs the real tool and then does something to its end."""
BROKEN = {
    "killed": "sh -c 'kill -KILL $$' ",
    "killed at its end": AFTER.format("kill -KILL $$"),
    "crashed at its end": AFTER.format("kill -SEGV $$"),
    "silent": "true ",
    "red at its end": AFTER.format("exit 1"),
    "red with an unknown code": AFTER.format("exit 77"),
    "missing": "no-such-tool-anywhere ",
    "not executable": "./not_executable ",
    "timed out": AFTER.format("sleep 60"),
}
WANTED = {
    "killed": 1,
    "killed at its end": 1,
    "crashed at its end": 1,
    "missing": 127,
    "not executable": 126,
    "timed out": 124,
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("check", GREEN)
def test_a_broken_tool_is_never_green(project: Project, check: str, how: str) -> None:
    copied("python-green", project)
    (project.path / "not_executable").write_text("#!/bin/sh\n")
    command, parser = GREEN[check]
    timeout = "timeout = 1\n" if how == "timed out" else ""
    project.config(
        f"[run]\ngrace = 0.1\n[check.a]\ncommand = '''{BROKEN[how]}{command}'''\nparser = \"{parser}\"\n{timeout}"
    )
    done = project.run("a")
    assert done.status in ("error", "parse_mismatch")
    assert done.code == WANTED.get(how, done.code) != 0


@pytest.mark.parametrize(
    ("check", "command"),
    [
        ("tests", "{python} -m unittest --no-such-flag"),
        ("tests", "{python} -m unittest discover -s no_such_folder"),
        ("tests", "{python} -m unittest no_such_module"),
        ("tests", "{python} -m unittest -k no_such_test"),
        ("tests", "{python} -m unitest"),
        ("lint", LINT + " --no-such-flag"),
        ("lint", LINT.replace("ruff.json", "other.json")),
        ("lint", "{python} -m ruff check --output-format json ."),
        ("lint", "{python} -m ruff check ."),
        ("lint", LINT.replace("json --", "sarif --")),
        ("lint", "{python} -m ruff check --output-format json --output-file {run_dir}/ruff.json pages"),
        ("lint", "{python} -m ruff check --output-format json --output-file {run_dir}/ruff.json no_such_folder"),
        ("lint", "sh -c 'head -c 1 >$1/ruff.json </dev/zero' sh {run_dir}"),
        ("types", "{python} -m mypy --no-such-flag"),
        ("types", "{python} -m mypy no_such_file.py"),
        ("types", "{python} -m mypy pages"),
        ("types", "{python} -m mypy --config-file no_such.ini shop"),
        ("types", "{python} -m mypy --version"),
        ("types", "{python} -m mypy --help"),
    ],
)
def test_a_tool_called_wrongly_is_never_green(project: Project, check: str, command: str) -> None:
    copied("python-green", project)
    project.config(f'[check.a]\ncommand = "{command}"\nparser = "{GREEN[check][1]}"\n')
    done = project.run("a")
    assert done.status != "pass"
    assert done.code != 0


@pytest.mark.parametrize("percent", [0, 10, 50, 90, 99])
@pytest.mark.parametrize("code", [0, 1])
def test_a_truncated_report_is_never_green_nor_a_verdict(project: Project, percent: int, code: int) -> None:
    copied("python-sample", project)
    report = project.path / "whole.json"
    project.shell("whole", f"ruff check --output-format json --output-file {report} .", parser="generic")
    project.run("whole")
    data = report.read_bytes()
    project.write("cut.json", data[: len(data) * percent // 100])
    project.shell("cut", f"cp cut.json $1/ruff.json; exit {code}", parser="ruff")
    done = project.run("cut")
    assert done.status == ("error" if code else "parse_mismatch")


def test_yesterdays_report_is_not_todays(project: Project) -> None:
    """The tool fails to start and an old report lies where it would have written."""
    copied("python-green", project)
    project.write("old/ruff.json", "[]")
    project.shell("a", "cp -p old/ruff.json $1/ruff.json; ruff check --no-such-flag; exit 0", parser="ruff")
    os.utime(project.path / "old/ruff.json", (1_500_000_000, 1_500_000_000))
    done = project.run("a")
    assert done.status == "parse_mismatch"
    assert "stale" in done.digest["status_reason"]
