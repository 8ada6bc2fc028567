"""What can be known of a JMESPath tree without data: types, arity, names, and how large its results can get.

The tree is described in :mod:`ckdn.spec.jmes`, which is what the rest of the program uses.
"""

from __future__ import annotations

from ckdn.errors import near
from ckdn.spec.jmes_functions import (
    ANY,
    ARRAY,
    BOOLEAN,
    EXPREF,
    FUNCTIONS,
    MASKS,
    NULL,
    NUMBER,
    OBJECT,
    TYPE_NAMES,
    TYPE_OF,
    names,
    wanted,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

    Ast = tuple[Any, ...]

MAX_GROWTH = 4096
"""How many times over a result may repeat its input: ``[@, @] | [@, @] | …`` doubles with every part."""

OPERATORS = {"eq": "==", "ne": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}

ROW = -1
"""In place of a mask: the current value is the predicate's row."""


class ExpressionError(ValueError):
    """An expression that does not load. ``str()`` is the message, one line, without place and mend."""

    def __init__(self, what: str, offset: int | None = None, mend: str = "") -> None:
        super().__init__(" ".join(what.split()))
        self.offset = offset
        """0-based place in the text; None when not known."""
        self.mend = mend


class Checker:
    """Walks a tree with the mask of types each part can have; ``check`` gives the node back, perhaps rewritten."""

    lenient = True
    """Whether ``*`` may stand after a list, null though it is: the official suite has ``*||*|*``."""

    def check(self, node: Ast, current: int) -> tuple[Ast, int]:
        """Raises :class:`ExpressionError` when the node can never be evaluated."""
        method: Callable[[Ast, int], tuple[Ast, int]] = getattr(self, "_" + node[0])
        return method(node, current)

    def _need(self, base: int, mask: int, what: str, offset: int | None = None) -> None:
        """Refuses a step that can only ever give null."""
        if not base & mask:
            mend = "say which items: [0] for one, [*] for all" if base & ARRAY else ""
            raise ExpressionError(f"{what} of {names(base)} is always null", offset, mend)

    def _field(self, node: Ast, current: int) -> tuple[Ast, int]:
        self._need(current, OBJECT, f".{node[1]}", node[2])
        return node, ANY

    def _current(self, node: Ast, current: int) -> tuple[Ast, int]:
        return node, current

    def _index(self, node: Ast, current: int) -> tuple[Ast, int]:
        self._need(current, ARRAY, f"[{node[1]}]")
        return node, ANY

    def _slice(self, node: Ast, current: int) -> tuple[Ast, int]:
        self._need(current, ARRAY, "a slice")
        return node, ARRAY | NULL

    def _literal(self, node: Ast, _current: int) -> tuple[Ast, int]:
        return node, TYPE_OF[type(node[1])]

    def _chain(self, node: Ast, current: int) -> tuple[Ast, int]:
        parts: list[Ast] = []
        for part in node[1]:
            part, current = self.check(part, current)
            parts.append(part)
        return ("chain", tuple(parts)), current

    def _any_of(self, node: Ast, current: int) -> tuple[Ast, int]:
        checked = [self.check(part, current) for part in node[1]]
        mask = 0
        for _, part in checked:
            mask |= part
        return (node[0], tuple(part for part, _ in checked)), mask

    _and = _or = _any_of

    def _not(self, node: Ast, current: int) -> tuple[Ast, int]:
        return ("not", self.check(node[1], current)[0]), BOOLEAN

    def _cmp(self, node: Ast, current: int) -> tuple[Ast, int]:
        _, op, left, right, offset = node
        left, left_mask = self.check(left, current)
        right, right_mask = self.check(right, current)
        self._compared(OPERATORS[op], (left, left_mask), (right, right_mask), offset)
        return ("cmp", op, left, right, offset), BOOLEAN if op in ("eq", "ne") else BOOLEAN | NULL

    def _compared(self, op: str, left: tuple[Ast, int], right: tuple[Ast, int], offset: int) -> None:
        """For predicates: whether the comparison can hold at all."""

    def _flatten(self, node: Ast, current: int) -> tuple[Ast, int]:
        base, mask = self.check(node[1], current)
        self._need(mask, ARRAY, "[]")
        return ("flatten", base), ARRAY | NULL

    def _project(self, node: Ast, current: int) -> tuple[Ast, int]:
        base, mask = self.check(node[1], current)
        self._need(mask, ARRAY, "[*]")
        return ("project", base, self.check(node[2], ANY)[0]), ARRAY | NULL

    def _values(self, node: Ast, current: int) -> tuple[Ast, int]:
        base, mask = self.check(node[1], current)
        if not (self.lenient and mask & ARRAY):
            self._need(mask, OBJECT, "*")
        return ("values", base, self.check(node[2], ANY)[0]), ARRAY | NULL

    def _filter(self, node: Ast, current: int) -> tuple[Ast, int]:
        base, mask = self.check(node[1], current)
        self._need(mask, ARRAY, "[?…]")
        return ("filter", base, self.check(node[2], ANY)[0], self.check(node[3], ANY)[0]), ARRAY | NULL

    def _list(self, node: Ast, current: int) -> tuple[Ast, int]:
        parts = tuple(self.check(part, current)[0] for part in node[1])
        return ("list", parts), ARRAY | (NULL & current if current != ROW else 0)

    def _dict(self, node: Ast, current: int) -> tuple[Ast, int]:
        pairs = tuple((key, self.check(part, current)[0]) for key, part in node[1])
        return ("dict", pairs), OBJECT | NULL & current

    def _expref(self, node: Ast, _current: int) -> tuple[Ast, int]:
        raise ExpressionError("& stands only where a function takes an expression: sort_by(list, &field)", node[2])

    def _call(self, node: Ast, current: int) -> tuple[Ast, int]:
        _, name, arguments, offset = node
        if name not in FUNCTIONS:
            raise ExpressionError(f"unknown function {name}()", offset, near(name, FUNCTIONS))
        signature, variadic, result = FUNCTIONS[name]
        least, count = len(signature), len(arguments)
        if count < least or (count > least and not variadic):
            many = f"{'at least ' if variadic else ''}{least} argument{'s' * (least > 1)}"
            raise ExpressionError(f"{name}() takes {many}, not {count}", offset)
        checked: list[Ast] = []
        for position, argument in enumerate(arguments):
            takes = signature[min(position, least - 1)]
            if argument[0] == "expref" and takes[0] == EXPREF:
                checked.append(("expref", self.check(argument[1], ANY)[0], argument[2]))
                continue
            argument, mask = self.check(argument, current)
            _check_argument(name, takes, argument, mask, offset)
            checked.append(argument)
        self._called(name, checked)
        return ("call", name, tuple(checked), offset), result

    def _called(self, name: str, arguments: list[Ast]) -> None:
        """For predicates: whether the call can be true at all."""


def _check_argument(name: str, takes: tuple[int, tuple[int, ...]], node: Ast, mask: int, offset: int) -> None:
    if takes[0] == EXPREF:
        raise ExpressionError(f"{name}() takes an expression here", offset, "write & before it")
    if not mask & takes[0]:
        raise ExpressionError(f"{name}() takes {wanted(takes)}, not {names(mask)}", offset)
    if takes[1] and node[0] == "literal" and node[1]:
        held = {TYPE_OF[type(item)] for item in node[1]}
        if len(held) > 1 or not held <= set(takes[1]):
            kinds = " and ".join(sorted(TYPE_NAMES[bit] for bit in held))
            raise ExpressionError(f"{name}() takes {wanted(takes)}, not one that holds {kinds}", offset)


class PredicateChecker(Checker):
    """Knows the row's fields; whatever would silently be null, and so false, is refused."""

    lenient = False

    def __init__(
        self,
        fields: Mapping[str, str | None],
        values: Mapping[str, tuple[Any, ...]],
        options: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.fields = fields
        self.values = values
        self.options = options
        self.touched = False
        """Whether any name was met at the row's level."""

    def _unknown_field(self, name: str, offset: int) -> NoReturn:
        mend = near(name, [*self.fields, "rc", *(["options"] if self.options else [])])
        if any(name in allowed for allowed in self.values.values()):
            mend = f"write text in single quotes: '{name}'"
        raise ExpressionError(f"the row has no field {shown(name)}", offset, mend)

    def _unknown_option(self, step: Ast | None, offset: int) -> NoReturn:
        if step is None or step[0] != "field":
            raise ExpressionError("options is no value: name one of them", offset, near("", self.options))
        raise ExpressionError(f"the spec declares no option {shown(step[1])}", offset, near(step[1], self.options))

    def _field(self, node: Ast, current: int) -> tuple[Ast, int]:
        if current != ROW:
            return super()._field(node, current)
        _, name, offset = node
        self.touched = True
        if name == "rc":
            return ("rc", offset), NUMBER | NULL
        if name == "options":
            self._unknown_option(None, offset)
        if name not in self.fields:
            self._unknown_field(name, offset)
        return node, _field_mask(self.fields[name])

    def _chain(self, node: Ast, current: int) -> tuple[Ast, int]:
        parts = node[1]
        if current != ROW or parts[0][:2] != ("field", "options"):
            return super()._chain(node, current)
        self.touched = True
        if parts[1][0] != "field" or parts[1][1] not in self.options:
            self._unknown_option(parts[1], parts[0][2])
        name = parts[1][1]
        option: Ast = ("option", name, parts[0][2])
        mask = _option_mask(self.options[name])
        if len(parts) == 2:
            return option, mask
        rest, mask = super()._chain(("chain", parts[2:]), mask)
        return ("chain", (option, *rest[1])), mask

    def _current(self, node: Ast, current: int) -> tuple[Ast, int]:
        if current == ROW:
            raise ExpressionError("a predicate names fields of the row, not the row as a whole", node[1])
        return node, current

    def _index(self, node: Ast, current: int) -> tuple[Ast, int]:
        if current == ROW:
            mend = f"write a list of one number as `[{node[1]}]` in backticks"
            raise ExpressionError(f"[{node[1]}] takes an item of a list, and a row is none", mend=mend)
        return super()._index(node, current)

    def _slice(self, node: Ast, current: int) -> tuple[Ast, int]:
        if current == ROW:
            raise ExpressionError("a slice is taken of a list, and a row is none")
        return super()._slice(node, current)

    def _dict(self, node: Ast, current: int) -> tuple[Ast, int]:
        if current == ROW:
            raise ExpressionError("{…} builds an object; a predicate is true or false")
        return super()._dict(node, current)

    def _compared(self, op: str, left: tuple[Ast, int], right: tuple[Ast, int], offset: int) -> None:
        masks = left[1], right[1]
        if op not in ("==", "!="):
            for node, mask in (left, right):
                if not mask & NUMBER:
                    raise ExpressionError(f"{op} orders numbers; {_described(node)} is {_type_shown(mask)}", offset)
        elif not masks[0] & masks[1] & ~NULL and NULL not in masks:
            sides = " and ".join(f"{_described(node)} is {_type_shown(mask)}" for node, mask in (left, right))
            raise ExpressionError(f"{sides}: {op} between them is always {'true' if op == '!=' else 'false'}", offset)
        else:
            self._check_allowed(left[0], right[0])
            self._check_allowed(right[0], left[0])

    def _called(self, name: str, arguments: list[Ast]) -> None:
        if name == "contains":
            listed, sought = arguments
            if listed[0] == "literal" and isinstance(listed[1], list):
                for item in listed[1]:
                    self._check_allowed(sought, ("literal", item, listed[2]))
            elif listed[0] == "list":
                for part in listed[1]:
                    self._check_allowed(sought, part)

    def _check_allowed(self, node: Ast, literal: Ast) -> None:
        """A literal beside a field (or option) must be one of the values that one can have."""
        if literal[0] != "literal" or literal[1] is None:
            return
        if node[0] == "field":
            allowed = self.values.get(node[1])
        elif node[0] == "option":
            allowed = self.options[node[1]].get("enum")
        else:
            return
        if allowed is None:
            return
        value = literal[1]
        same = [a for a in allowed if a == value and isinstance(a, bool) == isinstance(value, bool)]
        if not same:
            mend = near(str(value), [str(a) for a in allowed])
            raise ExpressionError(f"{_described(node)} is never {shown(value)}", literal[2], mend)


def _field_mask(declared: str | None) -> int:
    return ANY if declared is None else MASKS[declared] | NULL


def _option_mask(schema: Mapping[str, Any]) -> int:
    types = schema.get("type", ())
    mask = NULL
    for name in (types,) if isinstance(types, str) else types:
        mask |= NUMBER if name == "integer" else MASKS[name]
    return mask if types else ANY


def _described(node: Ast) -> str:
    kind = node[0]
    if kind == "field":
        return str(node[1])
    if kind == "option":
        return f"options.{node[1]}"
    if kind == "rc":
        return "rc"
    if kind == "literal":
        return shown(node[1])
    return f"{node[1]}()" if kind == "call" else "the other side"


def _type_shown(mask: int) -> str:
    return names(mask & ~NULL or mask)


def shown(value: object) -> str:
    if isinstance(value, str):
        text = "'" + "".join(char if char.isprintable() else "?" for char in value) + "'"
    else:
        import json  # only for messages

        text = json.dumps(value)
    return text if len(text) <= 60 else text[:59] + "…"


def bound_growth(ast: Ast) -> None:
    """Refuses a tree whose result can repeat its input too often. Raises :class:`ExpressionError`."""
    _growth(ast, 1)


def _growth(node: Ast, size: int) -> int:
    """An upper bound of the result's size when the input's is ``size``. Multi-selects repeat what they are given
    without copying it, so the engine's count of what is built does not see it. Raises past :data:`MAX_GROWTH`."""
    kind = node[0]
    if kind == "chain":
        for part in node[1]:
            size = _growth(part, size)
    elif kind in ("and", "or"):
        size = max(_growth(part, size) for part in node[1])
    elif kind == "list":
        size = sum(_growth(part, size) for part in node[1])
    elif kind == "dict":
        size = sum(_growth(part, size) for _, part in node[1])
    elif kind in ("not", "flatten"):
        size = _growth(node[1], size)
    elif kind == "cmp":
        size = max(_growth(node[2], size), _growth(node[3], size))
    elif kind in ("project", "values", "filter"):
        base = _growth(node[1], size)
        size = max(_growth(part, base) for part in node[2:])
    elif kind == "literal":
        size *= _literal_size(node[1])
    elif kind == "call":
        size = _call_growth(node, size)
    if size > MAX_GROWTH:
        raise ExpressionError(f"the result can repeat its input more than {MAX_GROWTH} times", mend="build less of it")
    return size


def _call_growth(node: Ast, size: int) -> int:
    _, name, arguments, _ = node
    plain = [_growth(argument, size) for argument in arguments if argument[0] != "expref"]
    largest = max(plain)
    each = [_growth(argument[1], largest) for argument in arguments if argument[0] == "expref"]
    if name == "merge":
        return sum(plain)
    return each[0] if name == "map" else largest


def _literal_size(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return max(1, sum(map(_literal_size, value))) if isinstance(value, list) else 1
