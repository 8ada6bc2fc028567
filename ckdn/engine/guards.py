"""Comparisons evaluated over the numbers of one output: guards and proof."""

from __future__ import annotations

from ckdn.model import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from ckdn.spec.types import Comparison

    Number = int | float


class Result(Struct):
    """What became of one comparison."""

    holds: bool | None
    """None when a number is absent."""
    shown: str
    """The comparison with each number beside its name: ``tests 0 > skipped 0``."""
    absent: tuple[str, ...] = ()
    """The names that have no number, each once."""


def evaluate(comparison: Comparison, lookup: Callable[[str], Number | None], *, partial_sums: bool = False) -> Result:
    """``comparison`` over the numbers that ``lookup`` gives; None is absent, and so is a float that is not finite.

    Integers compare exactly, also beside floats. With ``partial_sums`` an absent part of a sum counts as nothing when
    another declared part is there: a tool that says `1 failure` and no word of errors declares one.
    """
    found = {term: _finite(lookup(term)) for term in (*comparison.left, *comparison.right) if isinstance(term, str)}
    if partial_sums:
        for side in (comparison.left, comparison.right):
            if any(found[t] is not None for t in side if isinstance(t, str) and "declared." in t):
                found.update({t: 0 for t in side if isinstance(t, str) and found[t] is None})
    absent = tuple(name for name, number in found.items() if number is None)
    numbers = {name: number for name, number in found.items() if number is not None}
    shown = f"{_shown(comparison.left, found)} {comparison.op} {_shown(comparison.right, found)}"
    if absent:
        return Result(None, shown, absent)
    left, right = _total(comparison.left, numbers), _total(comparison.right, numbers)
    return Result(_holds(comparison.op, left, right), shown)


def _holds(op: str, left: Number | Fraction, right: Number | Fraction) -> bool:
    if op == "==":
        return left == right
    if op == "!=":
        return left != right
    if op == "<":
        return left < right
    if op == "<=":
        return left <= right
    return left > right if op == ">" else left >= right


def _finite(number: Number | None) -> Number | None:
    return None if number is None or not abs(number) < float("inf") else number


def _total(terms: tuple[str | int, ...], numbers: dict[str, Number]) -> Number | Fraction:
    values = [numbers[term] if isinstance(term, str) else term for term in terms]
    if len(values) == 1:
        return values[0]
    if not any(isinstance(value, float) for value in values):
        return sum(values)
    from fractions import Fraction  # 10 ms, and only for sums with floats: they neither round nor overflow

    return sum(map(Fraction, values), Fraction())


def _shown(terms: tuple[str | int, ...], found: dict[str, Number | None]) -> str:
    return " + ".join(f"{_short(t)} {_digits(found[t])}" if isinstance(t, str) else str(t) for t in terms)


def _short(name: str) -> str:
    """Numbers of the summary are known by what the digest calls them."""
    return name.removeprefix("summary.")


def _digits(number: Number | None) -> str:
    if number is None:
        return "absent"
    if isinstance(number, float) and number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return str(number)
