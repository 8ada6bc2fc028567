"""Comparisons over numbers: what parses, and what each refusal says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckdn.spec.compare import ComparisonError, names, parse
from ckdn.spec.types import Comparison


@pytest.mark.parametrize(
    ("text", "left", "op", "right"),
    [
        ("declared.errors == records.error", ("declared.errors",), "==", ("records.error",)),
        ("declared.failed+declared.errors<=records", ("declared.failed", "declared.errors"), "<=", ("records",)),
        ("rows.file > 0", ("rows.file",), ">", (0,)),
        ("0 != failing.warning + 12 + records", (0,), "!=", ("failing.warning", 12, "records")),
        ("summary.counts.tests >= options.min_tests", ("summary.counts.tests",), ">=", ("options.min_tests",)),
        ("a<b", ("a",), "<", ("b",)),
        ("summary.by-code.E501_x.2 < 1", ("summary.by-code.E501_x.2",), "<", (1,)),
    ],
)
def test_parses(text: str, left: tuple[object, ...], op: str, right: tuple[object, ...]) -> None:
    assert parse(text) == Comparison(text, op, left, right)


def test_text_is_kept_on_one_line() -> None:
    assert parse(" a\n  ==\tb ").text == "a == b"


def test_names_are_each_listed_once() -> None:
    assert names(parse("a.b + 1 + c == a.b + d")) == ("a.b", "c", "d")


@pytest.mark.parametrize(
    ("text", "message", "offset", "mend"),
    [
        ("", "no comparison here", 0, "join two sums by one of == != <= >= < >"),
        ("records", "no comparison here", 7, "join two sums by one of == != <= >= < >"),
        ("a = b", "unexpected '='", 2, "write =="),
        ("a => b", "unexpected '=>'", 2, "write >="),
        ("a =< b", "unexpected '=<'", 2, "write <="),
        ("a <> b", "unexpected '<>'", 2, "write !="),
        ("a < b < c", "a comparison has one operator", 6, "write two comparisons"),
        ("a == b && c == d", "unexpected '&'", 7, "write two comparisons"),
        ("a == b | c", "unexpected '|'", 7, "a comparison has no alternatives"),
        ("a - b == c", "unexpected '-'", 2, "there is no minus: move it to the other side with +"),
        ("a == -1", "unexpected '-'", 5, "there is no minus: move it to the other side with +"),
        ("a == 1.5", "'1.5' is neither a name nor a whole number", 5, "whole numbers only"),
        ("a == .5", "unexpected '.'", 5, "whole numbers only"),
        ("a == 5x", "'5x' is neither a name nor a whole number", 5, ""),
        ("a == 1234567890123456789", "a number of more than 18 digits", 5, ""),
        ("a == ", "a name or a number is missing here", 5, ""),
        ("== a", "a name or a number is missing here", 0, ""),
        ("a + == b", "a name or a number is missing after this +", 2, ""),
        ("a == b +", "a name or a number is missing after this +", 7, ""),
        ("+ a == b", "a name or a number is missing before this +", 0, ""),
        ("a + + b == c", "a name or a number is missing before this +", 4, ""),
        ("a b == c", "two terms without a + between them", 2, ""),
        ("a. == b", "the name 'a.' ends in or has an empty part", 0, ""),
        ("a..b == b", "the name 'a..b' ends in or has an empty part", 0, ""),
        ("a == 'b'", "unexpected '''", 5, ""),
        ("a == é", "unexpected 'é'", 5, ""),
        ("1 == 1", "this comparison names no number, so it is always the same", 0, ""),
        ("a" * 1025, "the comparison is longer than 1024 characters", 1024, ""),
    ],
)
def test_refusals(text: str, message: str, offset: int, mend: str) -> None:
    with pytest.raises(ComparisonError) as caught:
        parse(text)
    assert (str(caught.value), caught.value.offset, caught.value.mend) == (message, offset, mend)


@given(st.text(alphabet="ab.+-=<>!019 _&'\n\u0660", max_size=12))
def test_any_text_is_a_comparison_or_a_located_refusal(text: str) -> None:
    try:
        comparison, refusal = parse(text), None
    except ComparisonError as error:
        comparison, refusal = None, error
    if refusal:
        assert refusal.offset is not None
        assert 0 <= refusal.offset <= len(text)
    else:
        assert names(comparison)
        assert parse(comparison.text) == comparison
