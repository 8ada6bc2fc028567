"""Comparisons over numbers: ``declared.errors == records.error``, ``declared.failed + declared.errors <= records``.

A sum, one of ``== != <= >= < >``, a sum; a sum is names and whole numbers joined by ``+``. Which names exist is for the
loader to say: :func:`names` lists those that stand in a comparison.
"""

from __future__ import annotations

from ckdn.spec.jmes_check import ExpressionError, shown
from ckdn.spec.types import Comparison

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LENGTH = 1024
"""Characters of one comparison."""
MAX_DIGITS = 18
OPERATORS = ("==", "!=", "<=", ">=", "<", ">")
_MENDS = {
    "=": "write ==",
    "=<": "write <=",
    "=>": "write >=",
    "<>": "write !=",
    "-": "there is no minus: move it to the other side with +",
    ".": "whole numbers only",
    "&": "write two comparisons",
    "|": "a comparison has no alternatives",
}


class ComparisonError(ExpressionError):
    """A comparison that does not parse; ``offset`` and ``mend`` as in :class:`ExpressionError`."""


def parse(text: str) -> Comparison:
    """The comparison in ``text``. Raises :class:`ComparisonError`."""
    if len(text) > MAX_LENGTH:
        raise ComparisonError(f"the comparison is longer than {MAX_LENGTH} characters", MAX_LENGTH)
    tokens = list(_tokens(text))
    operators = [i for i, (_, token) in enumerate(tokens) if token in OPERATORS]
    if len(operators) > 1:
        raise ComparisonError("a comparison has one operator", tokens[operators[1]][0], "write two comparisons")
    if not operators:
        offset = tokens[-1][0] if len(tokens) > 1 else 0
        raise ComparisonError("no comparison here", offset, f"join two sums by one of {' '.join(OPERATORS)}")
    at = operators[0]
    operator = str(tokens[at][1])
    end = (tokens[at][0], "")
    comparison = Comparison(" ".join(text.split()), operator, _sum([*tokens[:at], end]), _sum(tokens[at + 1 :]))
    if not names(comparison):
        raise ComparisonError("this comparison names no number, so it is always the same", 0)
    return comparison


def names(comparison: Comparison) -> tuple[str, ...]:
    """The names in it, each once, in the order of the text."""
    return tuple(dict.fromkeys(t for t in (*comparison.left, *comparison.right) if isinstance(t, str)))


def _sum(tokens: list[tuple[int, str | int]]) -> tuple[str | int, ...]:
    """``tokens`` of one side, the last one (empty) marking where it ends."""
    terms: list[str | int] = []
    for position, (offset, token) in enumerate(tokens[:-1]):
        if position % 2 == 0:
            if token == "+":
                raise ComparisonError("a name or a number is missing before this +", offset)
            terms.append(token)
        elif token != "+":
            raise ComparisonError("two terms without a + between them", offset)
    if len(tokens) % 2:
        where = "after this +" if len(tokens) > 1 else "here"
        raise ComparisonError(f"a name or a number is missing {where}", tokens[-2 if len(tokens) > 1 else -1][0])
    return tuple(terms)


def _tokens(text: str) -> Iterator[tuple[int, str | int]]:
    """(offset, name or operator or number) …, and an empty one at the end."""
    i = 0
    while i < len(text):
        char = text[i]
        if char.isspace():
            i += 1
            continue
        end = i + 1
        if _is_part(char):
            while end < len(text) and _continues(text, end):
                end += 1
            yield i, _term(text[i:end], i)
        elif char == "+":
            yield i, "+"
        else:
            two, one = text[i : i + 2], char
            token = next((o for o in OPERATORS if o in (two, one)), "")
            if not token or two in _MENDS:
                mend = _MENDS.get(two) or _MENDS.get(one, "")
                raise ComparisonError(f"unexpected {shown(two if two in _MENDS else one)}", i, mend)
            end = i + len(token)
            yield i, token
        i = end
    yield len(text), ""


def _term(word: str, offset: int) -> str | int:
    if word.isdigit():
        if len(word) > MAX_DIGITS:
            raise ComparisonError(f"a number of more than {MAX_DIGITS} digits", offset)
        return int(word)
    if word[0].isdigit():
        mend = "whole numbers only" if word.replace(".", "").isdigit() else ""
        raise ComparisonError(f"{shown(word)} is neither a name nor a whole number", offset, mend)
    if word[-1] in ".-" or ".." in word:
        raise ComparisonError(f"the name {shown(word)} ends in or has an empty part", offset)
    return word


def _is_part(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")


def _continues(text: str, at: int) -> bool:
    return _is_part(text[at]) or text[at] in ".-"
