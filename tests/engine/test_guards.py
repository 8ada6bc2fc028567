"""Comparisons evaluated: three outcomes, exact numbers, and the numbers beside the names."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckdn.engine.guards import Result, evaluate
from ckdn.spec.compare import parse

OPERATORS = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "holds", "shown"),
    [
        ("summary.tests > summary.skipped", False, "tests 0 > skipped 0"),
        ("summary.counts.tests >= 0", True, "counts.tests 7 >= 0"),
        ("declared.errors == records.error", False, "declared.errors 3 == records.error 2"),
        ("declared.errors == records.error + 1", True, "declared.errors 3 == records.error 2 + 1"),
        ("summary.rate < options.limit", True, "rate 79.5 < options.limit 80"),
        ("summary.rate != 79", True, "rate 79.5 != 79"),
        ("records.error <= 1", False, "records.error 2 <= 1"),
    ],
)
def test_the_numbers_stand_beside_the_names(text: str, holds: bool, shown: str) -> None:
    numbers = {
        "summary.tests": 0, "summary.skipped": 0, "summary.counts.tests": 7, "declared.errors": 3, "records.error": 2,
        "summary.rate": 79.5, "options.limit": 80.0,
    }  # fmt: skip
    assert evaluate(parse(text), numbers.get) == Result(holds, shown)


def test_absent_numbers_make_no_outcome() -> None:
    comparison = parse("declared.failed + declared.errors + declared.failed <= records")
    result = evaluate(comparison, {"records": 2, "declared.errors": 1}.get)
    assert result == Result(
        None, "declared.failed absent + declared.errors 1 + declared.failed absent <= records 2", ("declared.failed",)
    )


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_is_absent(number: float) -> None:
    assert evaluate(parse("a != 1"), {"a": number}.get).holds is None


def test_integers_are_exact() -> None:
    large = 2**53
    assert evaluate(parse("a == b"), {"a": large + 1, "b": large}.get).holds is False
    assert evaluate(parse("a == b"), {"a": large + 1, "b": float(large)}.get).holds is False
    assert evaluate(parse("a + b == c"), {"a": large, "b": 1.0, "c": large + 1}.get).holds is True
    assert evaluate(parse("a + b > c"), {"a": 10**400, "b": 0.5, "c": 10**400}.get).holds is True


@given(st.sampled_from(sorted(OPERATORS)), *[st.integers(-5, 5)] * 3)
def test_operators(op: str, a: int, b: int, c: int) -> None:
    result = evaluate(parse(f"a + b {op} c"), {"a": a, "b": b, "c": c}.get)
    assert result == Result(OPERATORS[op](a + b, c), f"a {a} + b {b} {op} c {c}")
