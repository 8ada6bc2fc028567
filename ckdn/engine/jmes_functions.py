"""JMESPath's functions, and what an evaluation may spend.

:mod:`ckdn.engine.jmes` compiles the calls; which types a function takes stands in :mod:`ckdn.spec.jmes_functions`.
"""

from __future__ import annotations

from ckdn.spec.jmes_functions import FUNCTIONS, NUMBER, STRING, TYPE_NAMES, TYPE_OF, names, wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Function = Callable[[Any], Any]

MAX_STEPS = 4_000_000
"""Elements looked at or built in one evaluation: 200,000 records through a dozen projections; a second at the worst."""
MAX_TEXT = 8 * 1024 * 1024
"""Characters of text built in one evaluation by ``join``, ``to_string`` and ``reverse``."""


class EvaluationError(ValueError):
    """An expression met a value it cannot work on, or passed a bound; the message is one line."""


class Budget:
    """What an evaluation may still spend. Given to :func:`compile`, it is shared by all evaluations; else each has its
    own."""

    __slots__ = ("_steps", "_text", "max_steps", "max_text")

    def __init__(self, max_steps: int = MAX_STEPS, max_text: int = MAX_TEXT) -> None:
        self.max_steps = max_steps
        self.max_text = max_text
        self.reset()

    def reset(self) -> None:
        self._steps = self.max_steps
        self._text = self.max_text

    def step(self, count: int) -> None:
        self._steps -= count
        if self._steps < 0:
            raise EvaluationError(f"the expression takes more than {self.max_steps} steps")

    def text(self, count: int) -> None:
        self._text -= count
        if self._text < 0:
            raise EvaluationError(f"the expression builds more than {self.max_text} characters of text")


def plain_call(name: str, arguments: list[Function], budget: Budget) -> Function:
    function, signature = _FUNCTIONS[name], FUNCTIONS[name][0]
    takes = [signature[min(i, len(signature) - 1)] for i in range(len(arguments))]
    type_of = TYPE_OF
    if len(arguments) == 1 and not takes[0][1]:
        only, wants = arguments[0], takes[0]
        mask = wants[0]

        def call_one(value: Any) -> Any:
            argument = only(value)
            if not type_of.get(type(argument), 0) & mask:
                check(name, wants, argument)
            return function(budget, argument)

        return call_one

    def call(value: Any) -> Any:
        values = [argument(value) for argument in arguments]
        for wants, argument in zip(takes, values, strict=True):
            if wants[1] or not type_of.get(type(argument), 0) & wants[0]:
                if type(argument) is list:
                    budget.step(len(argument))
                check(name, wants, argument)
        return function(budget, *values)

    return call


def check(name: str, takes: tuple[int, tuple[int, ...]], value: Any) -> None:
    """Raises unless ``value`` is of a type the argument takes, its elements included."""
    mask, elements = takes
    kind = TYPE_OF.get(type(value), 0)
    if not kind & mask:
        raise EvaluationError(f"{name}() takes {wanted(takes)}, not {names(kind)}")
    if not elements or not value:
        return
    first = TYPE_OF[type(value[0])]
    expected = first if first in elements else elements[0]
    for item in value:
        if TYPE_OF[type(item)] != expected:
            held = TYPE_NAMES[TYPE_OF[type(item)]]
            among = f" among {TYPE_NAMES[expected]}s" if expected == first else ""
            raise EvaluationError(f"{name}() takes {wanted(takes)}; found {held}{among}")


def excerpt(value: Any) -> str:
    text = "".join(char if char.isprintable() else "?" for char in str(value)[:41])
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _avg(budget: Budget, items: list[Any]) -> Any:
    try:
        return _finite("avg", _sum(budget, items) / len(items)) if items else None
    except OverflowError:
        raise EvaluationError("avg(): the result is too large for a number") from None


def _sum(budget: Budget, items: list[Any]) -> Any:
    try:
        return _finite("sum", sum(items))
    except OverflowError:
        raise EvaluationError("sum(): the result is too large for a number") from None


def _finite(name: str, number: Any) -> Any:
    if type(number) is float and not abs(number) < float("inf"):
        raise EvaluationError(f"{name}(): the result is too large for a number")
    return number


def _ceil(_budget: Budget, number: float) -> int:
    from math import ceil  # 0.3 ms where it is a shared object

    return ceil(number)


def _floor(_budget: Budget, number: float) -> int:
    from math import floor  # see _ceil

    return floor(number)


def _contains(budget: Budget, subject: Any, sought: Any) -> bool:
    budget.step(len(subject) if type(subject) is list else len(subject) >> 8)
    try:
        return sought in subject
    except TypeError:
        raise EvaluationError(
            f"contains() looks in a string for a string, not {names(TYPE_OF[type(sought)])}"
        ) from None
    except RecursionError:
        raise EvaluationError("contains(): the values are nested too deep") from None


def _join(budget: Budget, glue: str, items: list[str]) -> str:
    budget.text(sum(map(len, items)) + len(glue) * len(items))
    return glue.join(items)


def _keys(budget: Budget, value: dict[str, Any]) -> list[str]:
    budget.step(len(value))
    return list(value)


def _values(budget: Budget, value: dict[str, Any]) -> list[Any]:
    budget.step(len(value))
    return list(value.values())


def _merge(budget: Budget, *values: dict[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for value in values:
        budget.step(len(value))
        merged.update(value)
    return merged


def _not_null(_budget: Budget, *values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _reverse(budget: Budget, value: Any) -> Any:
    if type(value) is str:
        budget.text(len(value))
    else:
        budget.step(len(value))
    return value[::-1]


def _to_number(_budget: Budget, value: Any) -> Any:
    if type(value) is int or type(value) is float:
        return value
    if type(value) is not str:
        return None
    try:
        return int(value)
    except ValueError:
        pass
    try:
        number = float(value)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None  # also not for NaN


def _to_string(budget: Budget, value: Any) -> str:
    if type(value) is str:
        return value
    from json import dumps  # 5 ms, and rarely wanted

    try:
        text = dumps(value, separators=(",", ":"))
    except RecursionError:
        raise EvaluationError("to_string(): the value is nested too deep") from None
    budget.text(len(text))
    return text


def _type(_budget: Budget, value: Any) -> str:
    return TYPE_NAMES[TYPE_OF[type(value)]]


def _sort(_budget: Budget, items: list[Any]) -> list[Any]:
    return sorted(items)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": lambda _budget, number: abs(number),
    "avg": _avg,
    "ceil": _ceil,
    "contains": _contains,
    "ends_with": lambda _budget, text, end: text.endswith(end),
    "floor": _floor,
    "join": _join,
    "keys": _keys,
    "length": lambda _budget, value: len(value),
    "max": lambda _budget, items: max(items, default=None),
    "merge": _merge,
    "min": lambda _budget, items: min(items, default=None),
    "not_null": _not_null,
    "reverse": _reverse,
    "sort": _sort,
    "starts_with": lambda _budget, text, start: text.startswith(start),
    "sum": _sum,
    "to_array": lambda _budget, value: value if type(value) is list else [value],
    "to_number": _to_number,
    "to_string": _to_string,
    "type": _type,
    "values": _values,
}


def _map(each: Function, items: list[Any]) -> list[Any]:
    return [each(item) for item in items]


def _sort_by(each: Function, items: list[Any]) -> list[Any]:
    keys = _sort_keys("sort_by", each, items)
    return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__)]


def _max_by(each: Function, items: list[Any]) -> Any:
    keys = _sort_keys("max_by", each, items)
    return items[max(range(len(items)), key=keys.__getitem__)] if items else None


def _min_by(each: Function, items: list[Any]) -> Any:
    keys = _sort_keys("min_by", each, items)
    return items[min(range(len(items)), key=keys.__getitem__)] if items else None


def _sort_keys(name: str, each: Function, items: Iterable[Any]) -> list[Any]:
    """What ``items`` are ordered by: all numbers or all strings."""
    keys = [each(item) for item in items]
    kinds = [TYPE_OF[type(key)] for key in keys]
    for kind in kinds:
        if not kind & (NUMBER | STRING):
            raise EvaluationError(f"{name}() orders by numbers or by strings; found {TYPE_NAMES[kind]}")
        if kind != kinds[0]:
            raise EvaluationError(f"{name}() orders by numbers or by strings; found both")
    return keys


FREE = frozenset(
    ("abs", "ceil", "ends_with", "floor", "length", "not_null", "starts_with", "to_array", "to_number", "type")
)
"""Functions whose work does not grow with their arguments: they spend nothing."""

BY = {"map": _map, "max_by": _max_by, "min_by": _min_by, "sort_by": _sort_by}
