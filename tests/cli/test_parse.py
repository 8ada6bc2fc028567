"""``ckdn parse`` as contract 3 has it: what is read, what is printed, which exit code, and that nothing is written."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.projects import ROOT, SCHEMAS, Done, Project, faults, linter

MYPY = "a.py:3: error: bad  [arg-type]\na.py:3: note: see there\nFound 1 error in 1 file (checked 2 source files)\n"
CLEAN = "Success: no issues found in 2 source files\n"
FACTS = {
    "spec", "understood", "records_total", "findings_total", "summary", "gate_failures", "guards", "proof", "notes"
}  # fmt: skip
SEVERAL = """\
options:
  limit: {type: integer, default: 3, minimum: 1, maximum: 9}
  share: {type: number}
  strict: {type: boolean, default: false}
  level: {type: string, enum: [low, high]}
  names: {type: array, items: {type: string}, default: []}
inputs:
  report: {file: "out/*.txt", format: text}
  extra: {file: extra.txt, format: text, optional: true}
findings:
  - kind: lint_violation
    in: report
    lines: ['^(?P<path>[^:]+):(?P<line>\\d+): (?P<severity>error|warning): (?P<message>.+)$']
    where: "line > 0 || options.strict || options.level == 'low' || contains(options.names, path)"
  - kind: lint_violation
    in: extra
    lines: ['^extra (?P<message>.+)$']
summary: {limit: options.limit}
gates: [{number: records, min: options.share, label: records}]
proof: [report, {match: '^done$'}]
"""


def lines(done: Done) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.fixture
def several(project: Project) -> Project:
    """A project with a spec that has options and several inputs."""
    project.config("")
    project.write(
        "parsers.d/several.yaml", f"schema: ckdn.spec/1\nname: several\ntitle: s\ncategory: linter\n{SEVERAL}"
    )
    return project


# --- inputs


def test_file_stdin_and_named_input_say_the_same(project: Project) -> None:
    project.write("m.log", MYPY)
    by_file = project.ckdn("parse", "mypy", "m.log")
    assert by_file.code == 0
    assert by_file.err == ""
    assert project.ckdn("parse", "mypy", "-", stdin=MYPY.encode()).out == by_file.out
    assert project.ckdn("parse", "mypy", "--input", "log=m.log").out == by_file.out
    assert project.ckdn("parse", "mypy", "--input", "log=-", stdin=MYPY.encode()).out == by_file.out


def test_a_file_is_read_where_it_is(project: Project, tmp_path: Path) -> None:
    (tmp_path / "m.log").write_text(MYPY)
    assert project.ckdn("parse", "mypy", str(tmp_path / "m.log")).code == 0
    assert project.ckdn("parse", "mypy", "../m.log").code == 0


def test_file_is_the_first_input_and_others_are_named(several: Project) -> None:
    several.write("r.txt", "a.py:1: error: one\n")
    several.write("e.txt", "extra two\n")
    several.write("l.txt", "done\n")
    done = several.ckdn(
        "parse", "several", "r.txt", "--input", "extra=e.txt", "--input", "log=l.txt", "--format", "findings"
    )
    assert [r["message"] for r in lines(done)] == ["one", "two"]
    facts = several.ckdn("parse", "several", "r.txt", "--input", "log=l.txt").digest
    assert [p["holds"] for p in facts["proof"]] == [True, True]


def test_an_input_that_is_not_bound_is_missing_if_first_and_empty_otherwise(several: Project) -> None:
    several.write("r.txt", "a.py:1: warning: w\n")
    facts = several.ckdn("parse", "several", "r.txt").digest
    assert facts["understood"] is True
    assert [p["holds"] for p in facts["proof"]] == [True, False]
    done = several.ckdn("parse", "several", "--input", "log=r.txt")
    assert done.code == 1
    assert done.err == "ckdn: not understood: the input `report` was not given\n"
    assert done.digest["understood"] is False


def test_several_files_for_a_glob_are_read_as_one(several: Project) -> None:
    several.write("1.txt", "a.py:1: error: one\n")
    several.write("2.txt", "b.py:2: error: two\n")
    for arguments in (["1.txt", "--input", "report=2.txt"], ["--input", "report=1.txt", "--input", "report=2.txt"]):
        done = several.ckdn("parse", "several", *arguments, "--format", "findings")
        assert [r["path"] for r in lines(done)] == ["a.py", "b.py"]
    refusal = several.refused("parse", "mypy", "1.txt", "--input", "log=2.txt")
    assert refusal == ["ckdn: --input: the input `log` was given 2 files: 1.txt, 2.txt; it is one file"]


def test_stdin_is_read_by_every_pass(project: Project) -> None:
    """unittest's rows need two passes; a chooser's variant opens the input again."""
    case = ROOT / "fixtures" / "unittest" / "findings"
    log = (case / "log.txt").read_bytes()
    by_file = project.ckdn("parse", "unittest", str(case / "log.txt"), "--format", "findings")
    by_stdin = project.ckdn("parse", "unittest", "-", "--format", "findings", stdin=log)
    assert by_file.out
    assert by_stdin.out == by_file.out
    rc = ["--rc", "1", "--format", "digest"]
    assert (
        project.ckdn("parse", "mypy", "-", *rc, stdin=MYPY.encode()).digest
        == project.ckdn("parse", "mypy", "-", "--option", "format=text", *rc, stdin=MYPY.encode()).digest
    )


def test_a_large_stdin_from_a_pipe(project: Project) -> None:
    data = b"x" * 8000 + b"\n"
    done = project.ckdn("parse", "mypy", "-", stdin=data * 9000 + MYPY.encode())
    assert done.digest["findings_total"] == 1


def test_what_cannot_be_read_is_refused(project: Project) -> None:
    os.mkfifo(project.path / "fifo")
    assert project.refused("parse", "mypy", "none.log") == ["ckdn: none.log: cannot be read: No such file or directory"]
    assert "no regular file" in project.refused("parse", "mypy", "fifo")[0]
    assert "no regular file" in project.refused("parse", "mypy", ".")[0]
    assert "has no input `lgo`" in project.refused("parse", "mypy", "--input", "lgo=x")[0]
    assert "did you mean log?" in project.refused("parse", "mypy", "--input", "lgo=x")[0]
    assert "not NAME=VALUE" in project.refused("parse", "mypy", "--input", "x")[0]
    assert "stdin was given to two inputs" in project.refused("parse", "ruff", "-", "--input", "log=-")[0]


def test_stdin_that_is_closed_or_cannot_be_read(project: Project) -> None:
    project.write("m.log", MYPY)
    assert project.shell_ckdn("$CKDN parse mypy m.log <&-").code == 0
    done = project.shell_ckdn("$CKDN parse mypy - <&-")
    assert (done.code, done.digest["records_total"]) == (0, 0)
    done = project.shell_ckdn("$CKDN parse mypy - 0>only-for-writing")
    assert (done.code, done.out) == (2, b"")
    assert done.err == "ckdn: ckdn parse: stdin cannot be read: Bad file descriptor\n"


# --- formats


def test_facts_have_their_keys_and_no_status(project: Project) -> None:
    facts = project.ckdn("parse", "mypy", "-", stdin=MYPY.encode()).digest
    assert faults(facts) == []
    assert FACTS | {"schema"} == set(facts)
    assert (facts["records_total"], facts["findings_total"], facts["understood"]) == (1, 1, True)
    assert facts["guards"] == {"held": 1, "skipped": 0, "broken": []}
    assert facts["summary"] == {"by_code": {"arg-type": 1}, "error_count": 1}
    assert all(not line["holds"] for line in facts["proof"] if "Success" in line["line"])


def test_findings_are_every_record_failing_or_not(several: Project) -> None:
    several.write("r.txt", "".join(f"a.py:{n}: {s}: m\n" for n, s in enumerate(["error", "warning"] * 60, 1)))
    records = lines(several.ckdn("parse", "several", "r.txt", "--format", "findings"))
    assert len(records) == 120
    assert [r["failing"] for r in records[:2]] == [True, False]
    assert {r["spec"] for r in records} == {"several"}
    finding = SCHEMAS["ckdn.finding/1"]
    assert not [e.message for r in records for e in finding.iter_errors(r)]
    facts = several.ckdn("parse", "several", "r.txt").digest
    assert (facts["records_total"], facts["findings_total"]) == (120, 60)


def test_no_records_are_no_lines(project: Project) -> None:
    done = project.ckdn("parse", "mypy", "-", "--format", "findings", stdin=CLEAN.encode())
    assert (done.code, done.out, done.err) == (0, b"", "")


def test_the_digest_is_what_a_run_gives(project: Project) -> None:
    project.write("m.log", "noise\n" + MYPY)
    project.write("b.log", "crashed\n" * 50)
    for name, code in [("m", 1), ("m", 2), ("m", 0), ("b", 1), ("b", 0), ("b", 2)]:
        project.config("")
        project.shell("mypy", f"cat {name}.log; exit {code}", parser="mypy")
        run = project.run("mypy")
        parsed = project.ckdn("parse", "mypy", f"{name}.log", "--rc", str(code), "--format", "digest")
        assert parsed.code == run.code
        expected = {key: value for key, value in run.digest.items() if key != "artifacts"}
        assert parsed.digest == {**expected, "run_dir": "-"}


def test_a_digest_needs_the_exit_code(project: Project) -> None:
    assert "--rc" in project.refused("parse", "mypy", "-", "--format", "digest")[0]
    assert "invalid choice" in project.refused("parse", "mypy", "-", "--format", "xml")[0]
    assert "invalid int" in project.refused("parse", "mypy", "-", "--rc", "x")[0]


# --- exit codes


@pytest.mark.parametrize(
    ("text", "rc", "code"),
    [
        (MYPY, None, 0), (CLEAN, None, 0), ("", None, 0), (MYPY.replace("1 error", "2 errors"), None, 1),
        (MYPY, 1, 1), (MYPY, 2, 2), (MYPY, 0, 1), (CLEAN, 0, 0), (CLEAN, 1, 1), ("", 0, 1), (MYPY, -11, 1),
        (MYPY, 255, 255), (MYPY, 256, 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("format", ["facts", "findings"])
def test_exit_codes(project: Project, text: str, rc: int | None, code: int, format: str) -> None:
    """Without --rc: understood or not, whatever the proof. With it: what a run would give."""
    arguments = [] if rc is None else ["--rc", str(rc)]
    done = project.ckdn("parse", "mypy", "-", "--format", format, *arguments, stdin=text.encode())
    assert done.code == code
    broken = "2 errors" in text
    assert (done.err != "") == broken
    if broken:
        assert done.err.startswith("ckdn: not understood: the numbers disagree")


def test_what_was_extracted_is_printed_though_not_understood(project: Project) -> None:
    text = MYPY.replace("1 error", "2 errors").encode()
    done = project.ckdn("parse", "mypy", "-", "--format", "findings", stdin=text)
    assert (done.code, len(lines(done))) == (1, 1)


def test_an_unknown_spec_is_named_with_near_names(project: Project) -> None:
    assert project.refused("parse", "mypi", "-") == ["ckdn: unknown spec 'mypi'; did you mean mypy?"]
    for name in ("", "no/such", "../mypy", "_launchers", "x" * 3000, "mypy\x1b[31m", "mypy.yaml"):
        (line,) = project.refused("parse", name, "-")
        assert line.startswith("ckdn: unknown spec '")
        assert "\x1b" not in line


def test_usage_is_one_line(project: Project) -> None:
    assert len(project.refused("parse")) == 1
    assert len(project.refused("parse", "mypy", "-", "--nope")) == 1
    assert len(project.refused("prase")) == 1


# --- options


def test_options_are_read_by_their_types(several: Project) -> None:
    several.write("r.txt", "")

    def limit(*arguments: str) -> Any:
        return several.ckdn("parse", "several", "r.txt", *arguments).digest["summary"]["limit"]

    assert limit() == 3
    assert limit("--option", "limit=7", "--option", "share=0.5", "--option", "strict=true") == 7
    assert limit("--option", "level=high", "--option", 'names=["a","b c"]', "--option", "names=a, b") == 3


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("limt=3", "did you mean limit?"),
        ("limit=x", "give an integer"),
        ("limit=1.5", "give an integer"),
        ("limit=0", "at least 1"),
        ("limit=10", "at most 9"),
        ("share=nan", "give a number"),
        ("strict=yes", "give true or false"),
        ("level=hgh", "did you mean high?"),
        ("names=[", "JSON list"),
        ("fail_on=eror", "did you mean error?"),
        ("fail_on=", "at least 1"),
        ("findings_on_zero=yes", "expected"),
        ("limit", "not NAME=VALUE"),
    ],
)
def test_an_option_that_is_wrong_is_refused(several: Project, option: str, said: str) -> None:
    several.write("r.txt", "")
    (line,) = several.refused("parse", "several", "r.txt", "--option", option)
    assert said in line


def test_every_option_that_is_wrong_is_told_at_once(several: Project) -> None:
    several.write("r.txt", "")
    assert len(several.refused("parse", "several", "r.txt", "--option", "limit=x", "--option", "nope=1")) == 2


def test_options_of_checks_are_options_of_every_spec(several: Project) -> None:
    several.write("r.txt", "a.py:1: warning: w\n")
    several.write("l.txt", "done\n")
    base = ["parse", "several", "r.txt", "--input", "log=l.txt", "--format", "digest"]
    assert several.ckdn(*base, "--rc", "0").status == "pass"
    assert several.ckdn(*base, "--rc", "1", "--option", "fail_on=error,warning").status == "fail"
    assert several.ckdn(*base, "--rc", "0", "--option", 'fail_on=["warning"]').status == "parse_mismatch"
    expected = ["--option", "fail_on=warning", "--option", "findings_on_zero=expected"]
    assert several.ckdn(*base, "--rc", "0", *expected).status == "pass"
    empty = ["parse", "unittest", "-", "--rc", "0", "--format", "digest"]
    text = b"-" * 70 + b"\nRan 0 tests in 0.000s\n\nOK\n"
    assert several.ckdn(*empty, stdin=text).status == "parse_mismatch"
    assert several.ckdn(*empty, "--option", "allow_empty=true", stdin=text).status == "pass"


def test_an_option_chooses_the_variant(project: Project) -> None:
    record = (
        '{"file": "a.py", "line": 3, "column": 0, "message": "bad", "hint": null, "code": "x", "severity": "error"}'
    )
    done = project.ckdn("parse", "mypy", "-", "--option", "format=json", "--format", "findings", stdin=record.encode())
    (found,) = lines(done)
    assert (found["check"], found["spec"], found["column"]) == ("mypy", "mypy_json", 1)


# --- surroundings


def test_nothing_is_written(project: Project, tmp_path: Path) -> None:
    project.config("")
    project.write("m.log", MYPY)
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    for format in ("facts", "findings", "digest"):
        project.ckdn("parse", "mypy", "m.log", "--rc", "1", "--format", format)
    assert sorted(str(p) for p in tmp_path.rglob("*")) == before


def test_specs_of_the_project_are_used_from_a_subfolder_too(project: Project) -> None:
    (project.path / ".git").mkdir()
    project.config('[run]\nspecs = ["more"]\n')
    project.write("parsers.d/mylint.yaml", linter())
    project.write("more/other.toml", OTHER)
    sub = project.path / "sub"
    sub.mkdir()
    text = f"{project.path}/sub/a.py:1: bad\n".encode()
    for name in ("mylint", "other"):
        done = project.ckdn("parse", name, "-", "--format", "findings", stdin=text, cwd=sub)
        assert [r["path"] for r in lines(done)] == ["sub/a.py"]


OTHER = """\
schema = "ckdn.spec/1"
name = "other"
title = "other"
category = "linter"
proof = ["exit_code"]
[[findings]]
kind = "lint_violation"
lines = ['^(?P<path>[^:]+):(?P<line>\\d+): (?P<message>.+)$']
"""


def test_without_a_config_the_folders_own_specs_are_used(project: Project) -> None:
    project.write("parsers.d/mylint.yaml", linter())
    done = project.ckdn("parse", "mylint", "-", stdin=b"a.py:1: bad\n")
    assert done.digest["findings_total"] == 1
    done = project.ckdn("parse", "mylint", "-", "--cwd", str(project.path), stdin=b"a.py:1: bad\n", cwd=project.home)
    assert done.digest["findings_total"] == 1
    assert "unknown spec" in project.refused("parse", "mylint", "-", cwd=project.home)[0]


def test_a_spec_that_does_not_load_is_refused_with_every_problem(project: Project) -> None:
    project.write("parsers.d/mylint.yaml", linter().replace("proof", "prof").replace("(?P<line>", "(?P<line"))
    found = project.refused("parse", "mylint", "-")
    assert len(found) >= 2
    assert all(line.startswith("ckdn: parsers.d/mylint.yaml:") for line in found)


def test_a_closed_stdout_changes_no_code(project: Project) -> None:
    project.write("m.log", MYPY)
    assert project.shell_ckdn("$CKDN parse mypy m.log --rc 7 >&-").code == 7
    assert project.shell_ckdn("$CKDN parse mypy m.log --rc 7 >/dev/full").code == 7
    assert project.shell_ckdn("{ $CKDN parse mypy m.log --rc 7 --format findings; echo $? >&2; } | :").err == "7\n"
    assert project.shell_ckdn("$CKDN parse --help >/dev/full").code == 0
    assert project.shell_ckdn("$CKDN --version >&-").code == 0


def test_secrets_and_controls_do_not_come_out(project: Project) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    text = f"a.py:3: error: \x1b[31m{token}\x1b[0m \u202e!  [x]\nFound 1 error in 1 file\n".encode()
    for arguments in ([], ["--format", "findings"], ["--rc", "1", "--format", "digest"]):
        done = project.ckdn("parse", "mypy", "-", *arguments, stdin=text)
        assert token.encode() not in done.out
        assert b"\x1b" not in done.out
        assert "\u202e" not in done.out.decode()


def test_output_is_utf8_in_any_locale(project: Project) -> None:
    text = "grün.py:3: error: schön ✓  [x]\nFound 1 error in 1 file\n".encode()
    env = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = project.ckdn("parse", "mypy", "-", "--format", "findings", stdin=text, env=env)
    assert lines(done)[0]["message"] == "schön ✓"


def test_the_shared_tools_see_the_wording(project: Project) -> None:
    """Both workplace tools tell a missing spec from a crash by these two things."""
    done = project.ckdn("parse", "no_such_tool", str(Path(shutil.which("true") or sys.executable)))
    assert (done.code, done.out) == (2, b"")
    assert "unknown spec" in done.err
