"""The truth table of the verdict: an independent oracle, and the four invariants over the whole input space."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckdn.model import ERROR, FAIL, PARSE_MISMATCH, PASS, STATUSES, Ending, Facts, ProofLine, Record, Verdict
from ckdn.verdict import STOPPED_EARLY, decide

HOLDS = (ProofLine("report", True),)
UNPROVEN = ProofLine("summary.tests > summary.skipped", False, "tests 0 > skipped 0 does not hold")
BROKEN = (ProofLine("report", True), UNPROVEN)


def record(failing: bool = True) -> Record:
    return Record(id="a.py:1 X", kind="k", severity="error" if failing else "info", failing=failing, message="m")


def facts(**changes: object) -> Facts:
    values: dict[str, object] = {
        "spec": "s",
        "understood": True,
        "problems": (),
        "records": [],
        "summary": {},
        "proof": HOLDS,
    }
    return Facts(**(values | changes))  # type: ignore[arg-type]


text = st.text(max_size=8)
texts = st.lists(text, max_size=2).map(tuple)
endings = st.builds(
    Ending,
    rc=st.one_of(st.just(0), st.just(1), st.integers(-70, 300)),
    failure=st.sampled_from(["", "", "", "timed out after 5 s"]),
    timed_out=st.sampled_from([False, False, False, True]),
    interrupted=st.sampled_from([False, False, False, True]),
)
any_facts = st.builds(
    Facts,
    spec=text,
    understood=st.booleans(),
    problems=texts,
    records=st.lists(st.booleans().map(record), max_size=3),
    summary=st.just({}),
    gate_failures=texts,
    guards_held=st.integers(0, 2),
    guards_skipped=texts,
    guards_broken=texts,
    proof=st.lists(st.builds(ProofLine, text, st.booleans(), text), max_size=3).map(tuple),
    notes=texts,
    promises_findings=st.booleans(),
    zero_expected=st.booleans(),
    rc_class=st.sampled_from(["", "clean", "findings", "crash"]),
    bound_passed=st.sampled_from(["", "", "more than 200000 records"]),
)
maybe_facts = st.one_of(st.none(), any_facts)


def oracle(ending: Ending, known: Facts | None) -> tuple[str, int]:
    """The contract's six rules, written as a list of (rule, condition, status), not as the code is."""
    rc0 = ending.rc == 0
    failing = known is not None and any(r.failing for r in known.records)
    table = [
        (1, bool(ending.failure) or ending.timed_out or ending.interrupted or ending.rc < 0, ERROR),
        (1, known is not None and known.bound_passed != "", ERROR),
        (2, known is None and rc0, PARSE_MISMATCH),
        (2, known is None, ERROR),
    ]
    if known is not None:
        confused = not known.understood or known.problems != () or known.guards_broken != ()
        proven = len(known.proof) > 0 and all(line.holds for line in known.proof)
        table += [
            (2, confused and rc0, PARSE_MISMATCH),
            (2, confused, ERROR),
            (3, failing and not rc0, FAIL),
            (3, failing and not known.zero_expected, PARSE_MISMATCH),
            (4, known.gate_failures != (), FAIL),
            (5, not rc0 and not known.promises_findings and known.rc_class != "crash", FAIL),
            (5, not rc0, ERROR),
            (6, proven, PASS),
            (6, True, PARSE_MISMATCH),
        ]
    return next((status, rule) for rule, condition, status in table if condition)


@given(endings, maybe_facts)
def test_the_verdict_is_the_tables(ending: Ending, known: Facts | None) -> None:
    verdict = decide(ending, known)
    assert (verdict.status, verdict.rule) == oracle(ending, known)


def test_the_verdict_is_the_tables_for_every_combination() -> None:
    """What hypothesis samples, exhaustively: two values of everything that a rule reads."""
    flags = itertools.product([False, True], repeat=11)
    for failure, nonzero, understood, broken, failing, expected, gate, promises, crash, proven, bound in flags:
        ending = Ending(1 if nonzero else 0, "killed by SIGSEGV" if failure else "")
        known = facts(
            understood=understood,
            problems=() if understood else ("torn",),
            guards_broken=("a == b",) if broken else (),
            records=[record()] if failing else [],
            zero_expected=expected,
            gate_failures=("coverage",) if gate else (),
            promises_findings=promises,
            rc_class="crash" if crash else "",
            proof=HOLDS if proven else BROKEN,
            bound_passed="more than 200000 records" if bound else "",
        )
        verdict = decide(ending, known)
        assert (verdict.status, verdict.rule) == oracle(ending, known)


@given(endings, maybe_facts)
def test_text_never_turns_a_nonzero_exit_green(ending: Ending, known: Facts | None) -> None:
    if ending.rc != 0:
        assert decide(ending, known).status != PASS


@given(maybe_facts)
def test_exit_zero_never_survives_contradicting_evidence(known: Facts | None) -> None:
    status = decide(Ending(0), known).status
    contradiction = known is None or (
        (known.failing and not known.zero_expected)
        or known.gate_failures
        or known.guards_broken
        or known.problems
        or known.bound_passed
        or not known.understood
        or not known.proof
        or not all(line.holds for line in known.proof)
    )
    assert (status == PASS) == (not contradiction)


@given(endings, any_facts, text)
def test_a_confused_parse_never_reads_as_clean(ending: Ending, known: Facts, problem: str) -> None:
    for confused in (
        None,
        facts(**{f: getattr(known, f) for f in Facts._fields} | {"understood": False}),
        facts(**{f: getattr(known, f) for f in Facts._fields} | {"problems": (problem,)}),
        facts(**{f: getattr(known, f) for f in Facts._fields} | {"guards_broken": (problem,)}),
    ):
        status = decide(ending, confused).status
        assert status == PARSE_MISMATCH if ending.rc == 0 and status != ERROR else status == ERROR


@given(endings, maybe_facts)
def test_a_run_cut_short_is_never_a_verdict(ending: Ending, known: Facts | None) -> None:
    short = ending.failure or ending.timed_out or ending.interrupted or ending.rc < 0
    if short or (known is not None and known.bound_passed):
        assert decide(ending, known).status == ERROR


@given(endings, maybe_facts)
def test_a_reason_stands_exactly_when_the_status_is_not_pass(ending: Ending, known: Facts | None) -> None:
    verdict = decide(ending, known)
    assert verdict.status in STATUSES
    assert bool(verdict.reason) == (verdict.status != PASS)


@pytest.mark.parametrize(
    ("ending", "known", "verdict"),
    [
        (Ending(0), facts(), Verdict(PASS, "", 6)),
        (Ending(124, "timed out after 5 s", timed_out=True), facts(), Verdict(ERROR, "timed out after 5 s", 1)),
        (Ending(-11), None, Verdict(ERROR, "killed by SIGSEGV", 1)),
        (Ending(-63), None, Verdict(ERROR, "killed by signal 63", 1)),
        (
            Ending(0),
            facts(bound_passed="more than 200000 records"),
            Verdict(ERROR, "a bound was passed: more than 200000 records", 1),
        ),
        (
            Ending(0),
            None,
            Verdict(PARSE_MISMATCH, "exit code 0 but the output was not understood: the parser gave no facts", 2),
        ),
        (
            Ending(2),
            facts(understood=False, problems=("ruff.json is missing", "x")),
            Verdict(ERROR, "exit code 2 and the output was not understood: ruff.json is missing", 2),
        ),
        (
            Ending(0),
            facts(guards_broken=("declared.errors == records.error",)),
            Verdict(
                PARSE_MISMATCH,
                "exit code 0 but the output was not understood: declared.errors == records.error does not hold",
                2,
            ),
        ),
        (Ending(1), facts(records=[record()]), Verdict(FAIL, "1 failing finding", 3)),
        (
            Ending(2),
            facts(records=[record(), record()], rc_class="crash"),
            Verdict(FAIL, "2 failing findings", 3, (STOPPED_EARLY,)),
        ),
        (
            Ending(0),
            facts(records=[record(), record(), record()]),
            Verdict(PARSE_MISMATCH, "3 failing findings with exit code 0", 3),
        ),
        (
            Ending(0),
            facts(records=[record()], zero_expected=True),
            Verdict(PASS, "", 6, ("1 failing finding with exit code 0, expected by findings_on_zero",)),
        ),
        (Ending(0), facts(gate_failures=("line coverage % 80 < 90",)), Verdict(FAIL, "1 gate failed", 4)),
        (Ending(7), facts(gate_failures=("a", "b")), Verdict(FAIL, "2 gates failed", 4)),
        (Ending(3), facts(promises_findings=False), Verdict(FAIL, "exit code 3", 5)),
        (
            Ending(3),
            facts(promises_findings=False, rc_class="crash"),
            Verdict(ERROR, "exit code 3 is a crash of the tool", 5),
        ),
        (Ending(1), facts(), Verdict(ERROR, "exit code 1 but no finding was extracted", 5)),
        (Ending(1), facts(records=[record(False)]), Verdict(ERROR, "exit code 1 but no finding was extracted", 5)),
        (
            Ending(0),
            facts(proof=BROKEN),
            Verdict(PARSE_MISMATCH, "exit code 0 without proof: tests 0 > skipped 0 does not hold", 6),
        ),
        (Ending(0), facts(proof=()), Verdict(PARSE_MISMATCH, "exit code 0 without proof: the spec names none", 6)),
    ],
)
def test_each_rule_names_its_evidence(ending: Ending, known: Facts | None, verdict: Verdict) -> None:
    assert decide(ending, known) == verdict
