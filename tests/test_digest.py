"""The digest: order, merging, bounds, determinism, text safety; each document valid against both schemas."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import fastjsonschema
import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckdn.digest import build, finding_line, finding_lines, render_text, serialise, verdict_line
from ckdn.jsonout import dumps
from ckdn.masking import MASK
from ckdn.model import Ending, Facts, ProofLine, Record
from ckdn.verdict import decide

ROOT = Path(__file__).parents[1]
OURS = json.loads((ROOT / "schemas/ckdn.digest.v2.schema.json").read_text())
PEERS = json.loads((ROOT / "tests/data/peer/ckdn.digest.v2.schema.json").read_text())
FINDING = json.loads((ROOT / "schemas/ckdn.finding.v1.schema.json").read_text())
by_our_schema = fastjsonschema.compile(OURS)
by_peers_schema = jsonschema.Draft202012Validator(PEERS)
by_finding_schema = fastjsonschema.compile(FINDING)

HELD = (ProofLine("report", True),)
RUN_DIR = ".agent-runs/20250101T120000Z-lint"


def lint(
    path: str = "a.py", line: int = 1, column: int = 1, code: str = "E1", message: str = "m", **more: Any
) -> Record:
    values = {"id": f"{path}:{line}:{column} {code}", "kind": "lint_violation", "severity": "error", "failing": True}
    return Record(**(values | {"message": message, "path": path, "line": line, "column": column, "code": code} | more))


def failed(test: str, message: str = "assert 0", **more: Any) -> Record:
    return Record(id=test, kind="test_failure", severity="error", failing=True, message=message, test=test, **more)


def facts_of(records: list[Record], **more: Any) -> Facts:
    values: dict[str, Any] = {"spec": "lint", "understood": True, "problems": (), "records": records, "summary": {}}
    return Facts(**(values | {"proof": HELD} | more))


def digest(records: list[Record], rc: int = 1, *, facts: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    known, ending = facts_of(records, **(facts or {})), Ending(rc)
    document = build(
        **{"check": "lint", "run_dir": RUN_DIR, "ending": ending, "verdict": decide(ending, known), "facts": known}
        | more
    )
    return valid(document)


def valid(document: dict[str, Any]) -> dict[str, Any]:
    again = json.loads(serialise(document))
    assert again == document
    by_our_schema(again)
    by_peers_schema.validate(again)
    return document


def messages(document: dict[str, Any]) -> list[str]:
    return [finding["message"] for finding in document.get("findings", [])]


# -- the document ----------------------------------------------------------------------------------------------------


def test_a_pass_is_sparse_and_its_bytes_are_these() -> None:
    document = digest([], 0, facts={"summary": {"tests": 3, "failures": 0}}, artifacts=["full.log"])
    assert serialise(document) == (
        b'{"check":"lint","rc":0,"run_dir":".agent-runs/20250101T120000Z-lint","schema":"ckdn.digest/2",'
        b'"status":"pass","summary":{"failures":0,"tests":3}}\n'
    )


def test_a_fail_lists_what_failed_and_nothing_else() -> None:
    records = [lint("b.py", 3, 7, "F1", "é unused"), lint(severity="info", failing=False)]
    assert digest(records, artifacts=["full.log", "meta.json"]) == {
        "schema": "ckdn.digest/2",
        "check": "lint",
        "status": "fail",
        "status_reason": "1 failing finding",
        "rc": 1,
        "run_dir": RUN_DIR,
        "findings_total": 1,
        "findings": [{"id": "b.py:3:7 F1", "kind": "lint_violation", "message": "é unused"}],
        "artifacts": ["full.log", "meta.json"],
    }


def test_a_run_without_facts() -> None:
    ending = Ending(124, "timed out after 5 s", timed_out=True)
    document = build(
        check="t",
        run_dir=r"runs\t",
        ending=ending,
        verdict=decide(ending, None),
        facts=None,
        log_tail=["collecting\r\n", "", "1 of 3\r2 of 3\n"],
        notes=["partial: extra arguments"],
        baseline={"known": 1, "new": 0},
        gate={"status": "unavailable", "policy": "new-findings"},
    )
    assert valid(document) == {
        "schema": "ckdn.digest/2",
        "check": "t",
        "status": "error",
        "status_reason": "timed out after 5 s",
        "rc": 124,
        "run_dir": "runs/t",
        "timed_out": True,
        "notes": ["partial: extra arguments"],
        "baseline": {"known": 1, "new": 0},
        "gate": {"status": "unavailable", "policy": "new-findings"},
        "log_tail": ["collecting", "2 of 3"],
    }


def test_an_interrupted_run_lists_what_it_found() -> None:
    ending, known = Ending(130, "interrupted", interrupted=True), facts_of([lint()])
    document = valid(build(check="t", run_dir="-", ending=ending, verdict=decide(ending, known), facts=known))
    assert document["interrupted"] is True
    assert document["status"] == "error"
    assert messages(document) == ["m"]


def test_notes_come_from_the_caller_the_verdict_the_facts_in_this_order() -> None:
    known = {"notes": ("from the facts", "partial: x"), "rc_class": "crash", "guards_skipped": ("a == b",)}
    assert digest([lint()], facts=known, notes=["partial: x"])["notes"] == [
        "partial: x",
        "stopped early, more may be wrong",
        "from the facts",
        "no guard was held: 1 skipped for numbers the tool does not give",
    ]


def test_findings_expected_on_zero_are_listed_and_the_first_note_says_so() -> None:
    document = digest([lint()], 0, facts={"zero_expected": True, "notes": ("other",)})
    assert document["status"] == "pass"
    assert messages(document) == ["m"]
    assert document["notes"][0] == "1 failing finding with exit code 0, expected by findings_on_zero"


def test_further_problems_of_a_confused_parse_are_notes() -> None:
    document = digest([], 1, facts={"understood": False, "problems": ("first", "second")})
    assert "first" in document["status_reason"]
    assert document["notes"] == ["second"]


def test_gate_failures_are_listed_once() -> None:
    document = digest([], 0, facts={"gate_failures": ("line coverage % 80 < 90",)})
    assert (document["status"], document["gate_failures"]) == ("fail", ["line coverage % 80 < 90"])
    assert "coverage" not in document["status_reason"]


# -- order and merging -----------------------------------------------------------------------------------------------


def test_order_is_severity_path_line_column() -> None:
    records = [
        lint("a.py", 1, message="warning", severity="warning"),
        lint("b.py", 2, message="b2"),
        lint("a.py", 10, message="a10"),
        lint("a.py", 9, 5, message="a9:5"),
        lint("a.py", 9, 4, message="a9:4"),
    ]
    assert messages(digest(records)) == ["a9:4", "a9:5", "a10", "b2", "warning"]


def test_equal_findings_of_a_file_become_one() -> None:
    records = [lint("a.py", line) for line in (9, 4, 12)] + [lint("b.py", 1)]
    assert digest(records)["findings"] == [
        {
            "id": "a.py:4:1 E1",
            "kind": "lint_violation",
            "message": "m \u00d73",
            "detail": ["also at lines 9, 12"],
        },
        {"id": "b.py:1:1 E1", "kind": "lint_violation", "message": "m"},
    ]
    assert digest(records)["findings_total"] == 4


def test_equal_findings_of_one_place_need_no_list_of_places() -> None:
    assert digest([lint(column=c) for c in (1, 5, 9)])["findings"][0] == {
        "id": "a.py:1:1 E1",
        "kind": "lint_violation",
        "message": "m \u00d73",
    }


def test_a_hundred_equal_findings_do_not_hide_the_one_that_differs() -> None:
    records = [lint("a.py", 1, message="same") for _ in range(100)] + [lint("pay.py", 9, 1, "S608", "SQL injection")]
    assert messages(digest(records)) == ["same \u00d7100", "SQL injection"]


def test_files_are_merged_only_when_more_than_top_remain() -> None:
    records = [lint(f"{name}.py", line) for name in "abc" for line in (3, 5)]
    assert messages(digest(records, top=3)) == ["m \u00d72", "m \u00d72", "m \u00d72"]
    document = digest(records, top=2)
    assert document["findings"] == [
        {
            "id": "a.py:3:1 E1",
            "kind": "lint_violation",
            "message": "m \u00d76",
            "detail": ["also at line 5", "also in b.py:3, c.py:3"],
        }
    ]
    assert document["findings_total"] == 6
    assert "findings_truncated" not in document
    assert digest(records, top=2, max_snippet_lines=1)["findings"][0]["detail"] == ["also in a.py:5, b.py:3, c.py:3"]


def test_different_messages_kinds_codes_and_tests_never_merge() -> None:
    records = [
        lint(line=1, message="one"),
        lint(line=2, message="two"),
        lint(line=3, message="two", code="E2"),
        lint(line=4, message="two", kind="type_error"),
        failed("t.py::a"),
        failed("t.py::b"),
        failed("t.py::b[1]", path="t.py", line=3),
        failed("t.py::b[2]", path="t.py", line=3),
    ]
    assert len(digest(records)["findings"]) == len(records)
    assert digest(records, top=7)["findings_truncated"] == 1


def test_an_id_that_says_more_than_the_place_is_not_merged_away() -> None:
    records = [lint("req.txt", 0, 0, message="vulnerable", id=f"req.txt {name}") for name in ("flask", "jinja2")]
    assert [f["id"] for f in digest(records)["findings"]] == ["req.txt flask", "req.txt jinja2"]
    packages = [Record(id=p, kind="package_failure", severity="error", failing=True, message="failed") for p in "ab"]
    assert len(digest(packages)["findings"]) == 2


def test_a_test_that_failed_twice_is_counted() -> None:
    assert messages(digest([failed("a::b"), failed("a::b")])) == ["assert 0 \u00d72"]


def test_what_is_beyond_top_is_counted() -> None:
    records = [lint(line=n, message=f"m{n}") for n in range(1, 31)] + [lint(line=40, message="m30")]
    document = digest(records, top=20)
    assert (len(document["findings"]), document["findings_total"], document["findings_truncated"]) == (20, 31, 11)
    assert digest(records, top=0)["findings_truncated"] == 31


# -- one fact, one place ---------------------------------------------------------------------------------------------


def test_location_stands_where_the_id_does_not_give_it() -> None:
    at = {"path": "t.py", "line": 3, "column": 2}
    assert digest([failed("t.py::a", **at)])["findings"][0]["location"] == "t.py:3:2"
    assert "location" not in digest([lint("t.py", 3, 2)])["findings"][0]
    assert digest([lint("t.py", 3, 2, id="t.py:30 E1")])["findings"][0]["location"] == "t.py:3:2"


def test_message_and_detail_do_not_repeat_each_other_or_the_place() -> None:
    record = lint(
        message="a.py:1:1: unused\nsecond line\nthird line",
        detail=("unused", "", "third line", "    code(1)   "),
    )
    assert digest([record])["findings"] == [
        {
            "id": "a.py:1:1 E1",
            "kind": "lint_violation",
            "message": "unused",
            "detail": ["second line", "third line", "    code(1)"],
        }
    ]


def test_windows_paths_have_forward_slashes() -> None:
    document = digest([lint("src\\a.py", 1, 2), failed("t", path="src\\t.py", line=4)])
    assert [f["id"] for f in document["findings"]] == ["src/a.py:1:2 E1", "t"]
    assert document["findings"][1]["location"] == "src/t.py:4"


# -- bounds ----------------------------------------------------------------------------------------------------------


def test_long_strings_are_cut_marked_and_counted() -> None:
    record = failed("t.py::a[" + "y" * 2_000_000 + "-end]", "x" * 2_000_000, detail=("d" * 2_000_000,))
    finding = digest([record])["findings"][0]
    assert len(finding["id"]) == 200
    assert "\u2026" in finding["id"]
    assert finding["id"].endswith("-end]")
    assert finding["message"].endswith("x[+1999611]\u2026")
    assert len(finding["message"]) == 400
    assert finding["detail"][0].endswith("d[+1999771]\u2026")
    assert len(finding["detail"][0]) == 240


def test_the_count_of_a_cut_is_right_to_the_character() -> None:
    for length in [*range(401, 540), 9_990, 10_383, 10_384, 99_999, 100_380]:
        message = digest([lint(message="x" * length)])["findings"][0]["message"]
        kept, _, gone = message.removesuffix("]\u2026").partition("[+")
        assert len(message) == 400
        assert len(kept) + int(gone) == length


def test_detail_keeps_its_last_lines_and_counts_the_others() -> None:
    lines = tuple(f"line {n}" for n in range(30))
    assert digest([lint(detail=lines)], max_snippet_lines=3)["findings"][0]["detail"] == [
        "\u2026 28 lines cut",
        "line 28",
        "line 29",
    ]
    document = digest([lint(detail=lines)], max_snippet_lines=1)
    assert document["findings"][0]["detail"] == ["line 29"]
    assert document["notes"] == ["\u2026 29 detail lines cut"]
    document = digest([lint(detail=lines)], max_snippet_lines=0)
    assert "detail" not in document["findings"][0]
    assert document["notes"] == ["\u2026 30 detail lines cut"]


def test_many_notes_gate_failures_and_artifacts_are_counted() -> None:
    many = [f"n{n}" for n in range(30)]
    document = digest([], facts={"gate_failures": tuple(many)}, notes=many, artifacts=many)
    for key in ("notes", "gate_failures", "artifacts"):
        assert document[key] == [*many[:19], "\u2026 11 more"]


def test_the_summary_is_bounded_and_keeps_zeros_and_the_largest_of_a_tally() -> None:
    summary = {
        "tests": 0,
        "by_code": {f"E{n:03}": n for n in range(100)},
        "files": [{"path": f"{n}.py", "missing": n} for n in range(100)],
        "percent": 93.5,
        "nan": float("nan"),
        "huge": 10**5000,
        "none": None,
    }
    shown = digest([], 0, facts={"summary": summary})["summary"]
    assert shown["tests"] == 0
    assert shown["by_code"] == {f"E{n:03}": n for n in range(60, 100)} | {"\u2026": "60 more"}
    assert shown["files"][39:] == [{"path": "39.py", "missing": 39}, "\u2026 60 more"]
    assert (shown["percent"], shown["nan"], shown["none"]) == (93.5, None, None)
    assert shown["huge"] == "2^16609\u2026"


def big(**more: Any) -> dict[str, Any]:
    records = [lint(f"{n:02}.py", 1, message=f"{n} " + "é" * 300, detail=("z" * 200,) * 8) for n in range(15)]
    summary = {"tests": 15, "by_code": {f"E{n}": n for n in range(40)}}
    log = [f"log {n} " + "l" * 100 for n in range(40)]
    return digest(records, facts={"summary": summary}, log_tail=log, notes=["partial: x", "other"], **more)


def test_a_digest_shrinks_in_its_order() -> None:
    whole = big(max_digest_bytes=10**6)
    size = len(serialise(whole))
    less_log = big(max_digest_bytes=size - 1000)
    assert less_log["log_tail"][0].startswith("\u2026 ")
    assert less_log["log_tail"][1:] == whole["log_tail"][-len(less_log["log_tail"]) + 1 :]
    assert less_log["findings"] == whole["findings"]

    less_detail = big(max_digest_bytes=size - 15_000)
    assert less_detail["log_tail"] == ["\u2026 40 lines cut"]
    assert less_detail["findings"][0] == whole["findings"][0]
    assert "detail" not in less_detail["findings"][-1]
    assert (
        f"\u2026 {8 * sum('detail' not in f for f in less_detail['findings'])} detail lines cut" in less_detail["notes"]
    )
    assert less_detail["summary"] == whole["summary"]

    less_findings = big(max_digest_bytes=4_000)
    assert 0 < len(less_findings["findings"]) < 15
    assert len(less_findings["findings"]) + less_findings["findings_truncated"] == 15
    assert less_findings["summary"]["tests"] == 15
    assert less_findings["summary"]["by_code"] == {"E37": 37, "E38": 38, "E39": 39, "\u2026": "37 more"}

    least = big(max_digest_bytes=1)
    assert {
        "schema",
        "check",
        "status",
        "rc",
        "run_dir",
        "status_reason",
        "findings_total",
        "findings_truncated",
    } == set(least)
    assert len(serialise(least)) < 250


@pytest.mark.parametrize("limit", [300, 500, 1000, 2000, 5000, 8000, 12_000, 16_384, 20_000, 50_000])
def test_the_bound_holds_in_bytes(limit: int) -> None:
    assert len(serialise(big(max_digest_bytes=limit))) <= limit


# -- text is untrusted -----------------------------------------------------------------------------------------------


def test_secrets_are_masked_in_every_string() -> None:
    secret = "ghp_" + "aB3" * 12
    record = lint(message=f"bad {secret}", detail=(f"x {secret}",), id=f"i {secret}", url=f"u{{{secret}}}")
    document = digest(
        [record],
        facts={"summary": {secret: [secret]}, "notes": (secret,), "gate_failures": (secret,)},
        log_tail=[secret, "DB_PASSWORD=hunter"],
        artifacts=[secret],
        notes=[f"n {secret}"],
        gate={"status": "fail", "policy": "p", "reason": secret},
    )
    for text in (serialise(document).decode(), render_text(document), dumps(finding_line(record, "c", "s"))):
        assert secret not in text
        assert MASK in text
    assert document["log_tail"] == [MASK, f"DB_PASSWORD={MASK}"]


def test_a_cut_never_hides_half_a_secret_from_the_mask() -> None:
    secret = "ghp_" + "aB3" * 12
    for start in range(340, 400):
        assert "ghp_" not in messages(digest([lint(message="x " * (start // 2) + " " * (start % 2) + secret)]))[0]


def test_a_private_key_in_the_log_tail_is_masked_over_its_lines() -> None:
    key = ["-----BEGIN PRIVATE KEY-----", "MII" + "aB3" * 20, "-----END PRIVATE KEY-----"]
    assert digest([], log_tail=["before", *key, "after"])["log_tail"] == ["before", MASK, "after"]


# -- properties ------------------------------------------------------------------------------------------------------

hostile = st.one_of(
    st.sampled_from(
        ["", "a.py", "m", "\x1b[31mred", "a\nb", "\u202e", "\ud800", "x" * 500, "😀" * 300, '"\\' * 150, "\r"]
    ),
    st.text(st.characters(exclude_categories=()), max_size=12),
)
numbers = st.one_of(st.integers(0, 3), st.sampled_from([-1, 10**30, 10**4000]))
any_record = st.builds(
    Record,
    id=st.one_of(hostile, st.sampled_from(["a.py:1:1 X", "a.py:2:1 X", "a.py::t"])),
    kind=hostile,
    severity=st.sampled_from(["error", "warning", "info"]),
    failing=st.booleans(),
    message=st.one_of(hostile, st.just("m")),
    path=st.one_of(st.sampled_from(["a.py", "b.py", "c\\d.py"]), hostile),
    line=numbers,
    column=numbers,
    code=st.one_of(st.just("X"), hostile),
    test=st.one_of(st.just(""), hostile),
    url=hostile,
    detail=st.lists(hostile, max_size=4).map(tuple),
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.floats(), hostile),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(hostile, inner, max_size=4)),
    max_leaves=12,
)
some_texts = st.lists(hostile, max_size=4)
any_run = st.fixed_dictionaries(
    {
        "check": hostile,
        "run_dir": hostile,
        "top": st.integers(0, 6),
        "max_snippet_lines": st.integers(0, 4),
        "max_digest_bytes": st.sampled_from([0, 300, 1000, 3000, 16384]),
        "log_tail": some_texts,
        "artifacts": some_texts,
        "notes": some_texts,
    }
)
any_ending = st.builds(Ending, rc=st.integers(-70, 260), failure=hostile)


def built(records: list[Record], summary: dict[str, Any], ending: Ending, run: dict[str, Any]) -> dict[str, Any]:
    known = facts_of(records, summary=summary, gate_failures=tuple(run["notes"]), zero_expected=True)
    return build(ending=ending, verdict=decide(ending, known), facts=known, **run)


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [s for key, item in value.items() for s in (key, *strings(item))]
    if isinstance(value, list):
        return [s for item in value for s in strings(item)]
    return [value] if isinstance(value, str) else []


@settings(max_examples=300)
@given(st.lists(any_record, max_size=8), st.dictionaries(hostile, json_values, max_size=4), any_ending, any_run)
def test_every_digest_is_valid_bounded_and_clean(
    records: list[Record], summary: dict[str, Any], ending: Ending, run: dict[str, Any]
) -> None:
    document = valid(built(records, summary, ending, run))
    assert len(serialise(document)) <= max(run["max_digest_bytes"], 250)
    for text in strings(document):
        assert all(unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") for c in text)
        assert not set(text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\ufeff")
    for finding in document.get("findings", []):
        assert len(finding["id"]) <= 200
        assert len(finding["message"]) <= 400
        assert len(finding.get("detail", [])) <= run["max_snippet_lines"]
        assert all(len(line) <= 240 for line in finding.get("detail", []))
    assert len(document.get("findings", [])) <= run["top"]
    assert document.get("findings_total", 0) == sum(r.failing for r in records)
    assert "\n" not in verdict_line(document)
    assert render_text(document).endswith("\n")


@settings(max_examples=200)
@given(st.data(), st.lists(any_record, max_size=8), any_ending, any_run)
def test_the_order_of_the_records_does_not_show(
    data: st.DataObject, records: list[Record], ending: Ending, run: dict[str, Any]
) -> None:
    other = data.draw(st.permutations(records))
    summary = {"b": 1, "a": 2}
    again = {"a": 2, "b": 1}
    assert serialise(built(records, summary, ending, run)) == serialise(built(list(other), again, ending, run))


@given(st.lists(any_record, max_size=8), any_ending, any_run)
def test_listed_merged_and_truncated_add_up(records: list[Record], ending: Ending, run: dict[str, Any]) -> None:
    document = built(records, {}, ending, run | {"max_digest_bytes": 10**6})
    shown = 0
    for finding in document.get("findings", []):
        _, mark, count = finding["message"].rpartition(" \u00d7")
        shown += int(count) if mark and count.isdigit() else 1
    assert shown + document.get("findings_truncated", 0) == document.get("findings_total", 0)


@given(st.lists(any_record, max_size=6), hostile, hostile)
def test_finding_lines_are_the_findings_and_valid(records: list[Record], check: str, spec: str) -> None:
    expected = [dumps(finding_line(record, check, spec)) for record in records]
    lines = b"".join(finding_lines(records, check, spec)).decode()
    assert lines == "".join(line + "\n" for line in expected)
    assert lines.splitlines() == expected
    if check.isprintable() and spec.isprintable() and check and spec:
        for line in expected:
            by_finding_schema(json.loads(line))


def test_finding_lines_of_many_records_with_a_secret_among_them() -> None:
    secret = "ghp_" + "aB3" * 12
    records = [lint(f"{n % 7}.py", n, message=secret if n % 300 == 7 else f"m{n}") for n in range(1, 2000)]
    lines = b"".join(finding_lines(records, "lint", "ruff")).decode()
    assert lines == "".join(dumps(finding_line(record, "lint", "ruff")) + "\n" for record in records)
    assert secret not in lines
    assert lines.count(MASK) == 7


# -- for people ------------------------------------------------------------------------------------------------------


def test_the_text_form() -> None:
    records = [lint("a.py", 3, 1), lint("a.py", 5, 1), failed("t.py::x", "assert 1 == 2", path="t.py", line=9)]
    document = digest(records, notes=["partial: x"], top=2)
    assert render_text(document) == (
        "lint: fail, rc 1, 3 findings\n"
        "a.py:3:1 E1 m \u00d72\n"
        " also at line 5\n"
        "t.py:9 t.py::x assert 1 == 2\n"
        "note: partial: x\n"
    )
    assert render_text(digest(records, top=1)).endswith(f"\n\u2026 1 more: {RUN_DIR}/findings.jsonl\n")
    assert render_text(digest([], 0)) == "lint: pass\n"
    assert render_text(digest([], 3, facts={"promises_findings": False}, log_tail=["boom"])) == (
        "lint: fail: exit code 3\nboom\n"
    )


def test_the_verdict_line() -> None:
    assert verdict_line(digest([], 0, facts={"summary": {"counts": {"tests": 3, "failures": 0}}})) == (
        "lint: pass (failures 0, tests 3)"
    )
    assert verdict_line(digest([lint()])) == f"lint: fail, rc 1, 1 finding ({RUN_DIR})"
    assert verdict_line(digest([lint()]), color=True) == f"lint: \x1b[1;31mfail\x1b[0m, rc 1, 1 finding ({RUN_DIR})"


def tool(*command: str, cwd: Path) -> str:
    return subprocess.run([sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True, check=False).stdout


def test_the_text_form_is_not_larger_than_ruffs_own(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\nimport sys, json\nl = 1\ntry:\n    pass\nexcept:\n    undefined\n")
    run = ["ruff", "check", "--isolated", "--no-cache", "--select", "E,F", "--output-format"]
    found = json.loads(tool(*run, "json", "a.py", cwd=tmp_path))
    records = [
        lint("a.py", f["location"]["row"], f["location"]["column"], f["code"], f["message"], url=f["url"])
        for f in found
    ]
    assert len(records) >= 6
    by_code: dict[str, int] = {}
    for record in records[:6]:
        by_code[record.code] = by_code.get(record.code, 0) + 1
    summary = {"violation_count": 6, "fixable_count": 4, "by_code": by_code}
    document = digest(records[:6], facts={"summary": summary}, artifacts=["full.log", "meta.json", "ruff.json"])
    concise = tool(*run, "concise", "a.py", cwd=tmp_path)
    # the tool's bytes for the same six findings
    others = "".join(line + "\n" for line in concise.splitlines()[6 : len(records)])
    raw = len(concise.encode()) - len(others.encode())
    assert len(render_text(document).encode()) <= raw
    assert len(serialise(document)) <= 400 + 1.5 * raw


def test_the_text_form_is_not_larger_than_mypys_own(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(x: int) -> str:\n    return x\n\nf('a')\n")
    raw = tool("mypy", "--no-incremental", "--config-file=", "a.py", cwd=tmp_path)
    rows = [line for line in raw.splitlines() if ": error: " in line]
    records = []
    for row in rows:
        place, _, rest = row.partition(": error: ")
        path, _, line = place.partition(":")
        message, _, code = rest.rstrip("]").rpartition("  [")
        records.append(lint(path, int(line), 0, code, message, kind="type_error", id=f"{place} {code}"))
    assert len(records) == 2
    document = digest(records, facts={"summary": {"error_count": 2}}, artifacts=["full.log", "meta.json"])
    assert len(render_text(document).encode()) <= len(raw.encode())
    assert len(serialise(document)) <= 400 + 1.5 * len(raw.encode())


def test_forty_reformats_fit_in_less_than_blacks_own() -> None:
    """What black prints for forty files, by hand: it is not among the tools of the test environment."""
    names = [f"src/package/module_{n}.py" for n in range(40)]
    raw = "".join(f"would reformat {name}\n" for name in names) + "\nOh no!\n40 files would be reformatted.\n"
    records = [lint(name, 0, 0, "", "would reformat", id=name, kind="format") for name in names]
    document = digest(records, artifacts=["full.log", "meta.json"])
    text = render_text(document)
    assert all(name in text for name in names)
    assert len(text.encode()) <= len(raw.encode())
    assert len(serialise(document)) <= 400 + 1.5 * len(raw.encode())


# -- canonical JSON --------------------------------------------------------------------------------------------------


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
        lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    ),
    st.booleans(),
)
def test_canonical_json_is_jsons_own(value: Any, sort_keys: bool) -> None:
    expected = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)
    assert dumps(value, sort_keys) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), [float("nan")]])
def test_what_is_no_json_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not a JSON number"):
        dumps(value)


@pytest.mark.parametrize("value", [{1: 2}, b"x", {"a": {1, 2}}])
def test_what_is_no_json_type_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        dumps(value)


def test_building_a_digest_loads_neither_json_nor_re() -> None:
    script = f"""
import sys
sys.path[:0] = {sys.path!r}
from ckdn.digest import build, serialise
from ckdn.model import Ending, Facts, ProofLine
from ckdn.verdict import decide
facts = Facts("s", True, (), [], {{"tests": 1}}, proof=(ProofLine("report", True),))
ending = Ending(0)
serialise(build(check="c", run_dir="-", ending=ending, verdict=decide(ending, facts), facts=facts))
print(sorted({{"json", "re", "typing", "dataclasses", "enum", "pathlib", "collections"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
