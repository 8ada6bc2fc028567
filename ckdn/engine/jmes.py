"""JMESPath evaluated: a tree of :mod:`ckdn.spec.jmes` compiled to closures.

Values are what :func:`json.loads` builds (exact types, no subclasses, no NaN). Results may share parts with the input
and with literals of the expression: treat them as read-only. The meaning is the `jmespath` library's (1.1), which the
tests hold against it, with these differences, all of them where the library lets a bare Python exception out or a
value that is no JSON: ``merge`` checks every argument, ``contains('text', x)`` and ``<`` between a number and a string
are errors that say so, ``to_number('nan')`` is null, numbers past a float's range are errors.

An evaluation is bounded by counts (:class:`Budget`), not by a clock; what a tree can repeat without building it is
bounded at load.
"""

from __future__ import annotations

from ckdn.engine.jmes_functions import BY, FREE, Budget, EvaluationError, check, excerpt, plain_call
from ckdn.spec.jmes_functions import ARRAY, FUNCTIONS, NUMBER, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ckdn.spec.jmes import Ast

    Function = Callable[[Any], Any]


def compile(ast: Ast, budget: Budget | None = None) -> Function:
    """A function from a value to the expression's result.

    It raises :class:`EvaluationError`. Not to be called by two threads at once.
    """
    compiler = _Compiler(budget or Budget())
    function = compiler.function(ast)
    if budget is not None or not compiler.counts:
        return function
    reset = compiler.budget.reset

    def evaluate(value: Any) -> Any:
        reset()
        return function(value)

    return evaluate


def compile_predicate(ast: Ast) -> Callable[[dict[str, Any], dict[str, Any]], bool]:
    """A function from a row and a scope ``{"options": {name: value}, "rc": int | None}`` to JMESPath's truth.

    Unlike in extraction, text beside ``<`` and its kin is an error: a predicate orders numbers, and "9" < "10" is
    false. Raises :class:`EvaluationError`. Not to be called by two threads at once.
    """
    compiler = _Compiler(Budget())
    compiler.orders_text = False
    test = compiler.test(ast)
    if not compiler.counts and not compiler.scoped:
        return lambda row, _scope: test(row)
    reset, cell = compiler.budget.reset, compiler.scope

    def holds(row: dict[str, Any], scope: dict[str, Any]) -> bool:
        reset()
        cell[0] = scope
        return test(row)

    return holds


def truthy(value: Any) -> bool:
    """JMESPath's truth: all but null, false and what is empty; 0 is true."""
    return bool(value) or type(value) is int or type(value) is float


def equal(left: Any, right: Any) -> bool:
    """JMESPath's equality: Python's, but no boolean equals a number."""
    try:
        return bool(left == right) and (type(left) is bool) == (type(right) is bool)
    except RecursionError:
        raise EvaluationError("the values compared are nested too deep") from None


def _ordered(op: str, text: bool) -> Callable[[Any, Any], bool | None]:
    """``op`` between two values: null when one of them is neither a number nor text."""
    import operator  # a C module that is always loaded

    compare: Callable[[Any, Any], bool] = {
        "lt": operator.lt,
        "lte": operator.le,
        "gt": operator.gt,
        "gte": operator.ge,
    }[op]
    takes = {int: NUMBER, float: NUMBER, str: STRING}

    def ordered(left: Any, right: Any) -> bool | None:
        kinds = takes.get(type(left)), takes.get(type(right))
        if kinds == (NUMBER, NUMBER):
            return compare(left, right)
        if not text and STRING in kinds:
            shown = excerpt(left if kinds[0] == STRING else right)
            raise EvaluationError(f"{shown} is text and cannot be ordered as a number")
        if None in kinds:
            return None
        if kinds[0] != kinds[1]:
            raise EvaluationError(f"a number and a string have no order: {excerpt(left)} and {excerpt(right)}")
        return compare(left, right)

    return ordered


class _Compiler:
    """One method a kind of node; each gives a function of the current value."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.counts = False
        """Whether anything was compiled that spends from the budget."""
        self.scope: list[dict[str, Any]] = [{}]
        """The one cell through which a predicate's functions see the scope of the evaluation under way."""
        self.scoped = False
        self.orders_text = True

    def function(self, node: Ast) -> Function:
        method: Callable[[Ast], Function] = getattr(self, "_" + node[0])
        return method(node)

    def test(self, node: Ast) -> Callable[[Any], bool]:
        """Like :meth:`function`, for where only the truth of the result counts."""
        kind = node[0]
        if kind == "and" or kind == "or":
            return _connected(kind, [self.test(part) for part in node[1]])
        if kind == "cmp" and node[1] in ("eq", "ne"):
            return self._cmp(node)
        if kind == "not":
            return self._not(node)
        function = self.function(node)
        if kind == "cmp":
            return lambda value: function(value) is True

        def holds(value: Any) -> bool:
            result = function(value)
            return bool(result) or type(result) is int or type(result) is float

        return holds

    def _step(self) -> Callable[[int], None]:
        self.counts = True
        return self.budget.step

    # Values and paths

    def _field(self, node: Ast) -> Function:
        name = node[1]
        return lambda value: value.get(name) if type(value) is dict else None

    def _current(self, _node: Ast) -> Function:
        return lambda value: value

    def _literal(self, node: Ast) -> Function:
        literal = node[1]
        return lambda _value: literal

    def _index(self, node: Ast) -> Function:
        return _path((node[1],))

    def _slice(self, node: Ast) -> Function:
        part, step = slice(*node[1:]), self._step()

        def sliced(value: Any) -> Any:
            if type(value) is not list:
                return None
            step(len(value))
            return value[part]

        return sliced

    def _option(self, node: Ast) -> Function:
        name, scope, self.scoped = node[1], self.scope, True
        return lambda _value: scope[0]["options"].get(name)

    def _rc(self, _node: Ast) -> Function:
        scope, self.scoped = self.scope, True
        return lambda _value: scope[0]["rc"]

    def _chain(self, node: Ast) -> Function:
        functions: list[Function] = []
        keys: list[str | int] = []
        for part in node[1]:
            if part[0] in ("field", "index"):
                keys.append(part[1])
                continue
            if keys:
                functions.append(_path(tuple(keys)))
                keys = []
            functions.append(self.function(part))
        if keys:
            functions.append(_path(tuple(keys)))
        if len(functions) == 1:
            return functions[0]
        if len(functions) == 2:
            first, second = functions
            return lambda value: second(first(value))

        def chain(value: Any) -> Any:
            for function in functions:
                value = function(value)
            return value

        return chain

    # Logic

    def _and(self, node: Ast) -> Function:
        *functions, last = [self.function(part) for part in node[1]]

        def conjunction(value: Any) -> Any:
            for function in functions:
                result = function(value)
                if not truthy(result):
                    return result
            return last(value)

        return conjunction

    def _or(self, node: Ast) -> Function:
        *functions, last = [self.function(part) for part in node[1]]

        def alternative(value: Any) -> Any:
            for function in functions:
                result = function(value)
                if truthy(result):
                    return result
            return last(value)

        return alternative

    def _not(self, node: Ast) -> Function:
        test = self.test(node[1])
        return lambda value: not test(value)

    def _cmp(self, node: Ast) -> Function:
        _, op, left, right, _ = node
        if op not in ("eq", "ne"):
            ordered, first, second = _ordered(op, self.orders_text), self.function(left), self.function(right)
            if right[0] == "literal":
                bound = right[1]
                return lambda value: ordered(first(value), bound)
            return lambda value: ordered(first(value), second(value))
        if left[0] == "literal":
            left, right = right, left
        first = self.function(left)
        if right[0] == "literal" and type(right[1]) is str:
            literal = right[1]  # text equals nothing but text: no need to look at types
            if op == "eq" and left[0] == "field":
                name = left[1]
                return lambda value: value.get(name) == literal if type(value) is dict else False
            if op == "eq":
                return lambda value: first(value) == literal
            return lambda value: first(value) != literal
        second = self.function(right)
        if op == "eq":
            return lambda value: equal(first(value), second(value))
        return lambda value: not equal(first(value), second(value))

    # Projections

    def _flatten(self, node: Ast) -> Function:
        base, step = self.function(node[1]), self._step()

        def flatten(value: Any) -> Any:
            items = base(value)
            if type(items) is not list:
                return None
            step(len(items))
            flat: list[Any] = []
            for item in items:
                if type(item) is list:
                    step(len(item))
                    flat += item
                else:
                    flat.append(item)
            return flat

        return flatten

    def _project(self, node: Ast) -> Function:
        base, each = self.function(node[1]), self._each(node[2])

        def project(value: Any) -> Any:
            items = base(value)
            return each(items) if type(items) is list else None

        return project

    def _values(self, node: Ast) -> Function:
        base, each = self.function(node[1]), self._each(node[2])

        def values(value: Any) -> Any:
            items = base(value)
            return each(list(items.values())) if type(items) is dict else None

        return values

    def _each(self, rhs: Ast) -> Callable[[list[Any]], list[Any]]:
        step = self._step()
        if rhs[0] == "current":

            def present(items: list[Any]) -> list[Any]:
                step(len(items))
                return [item for item in items if item is not None]

            return present
        function = self.function(rhs)

        def each(items: list[Any]) -> list[Any]:
            step(len(items))
            return [result for item in items if (result := function(item)) is not None]

        return each

    def _filter(self, node: Ast) -> Function:
        base, each, test = self.function(node[1]), self._each(node[2]), self.test(node[3])
        step = self._step()

        def filtered(value: Any) -> Any:
            items = base(value)
            if type(items) is not list:
                return None
            step(len(items))
            return each([item for item in items if test(item)])

        return filtered

    # Building

    def _list(self, node: Ast) -> Function:
        functions, step = [self.function(part) for part in node[1]], self._step()
        count = len(functions)

        def build(value: Any) -> Any:
            if value is None:
                return None
            step(count)
            return [function(value) for function in functions]

        return build

    def _dict(self, node: Ast) -> Function:
        pairs, step = [(key, self.function(part)) for key, part in node[1]], self._step()
        count = len(pairs)

        def build(value: Any) -> Any:
            if value is None:
                return None
            step(count)
            return {key: function(value) for key, function in pairs}

        return build

    def _call(self, node: Ast) -> Function:
        name, arguments = node[1], node[2]
        signature = FUNCTIONS[name][0]
        self.counts = self.counts or name not in FREE
        if name in BY:
            by = BY[name]
            takes = next(s for s in signature if s[0] == ARRAY)
            listed, key = sorted(arguments, key=lambda argument: bool(argument[0] == "expref"))
            of, each, budget = self.function(listed), self.function(key[1]), self.budget

            def call_by(value: Any) -> Any:
                items = of(value)
                check(name, takes, items)
                budget.step(len(items))
                return by(each, items)

            return call_by
        return plain_call(name, [self.function(argument) for argument in arguments], self.budget)


def _connected(kind: str, tests: list[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    if len(tests) == 2:
        first, second = tests
        if kind == "and":
            return lambda value: first(value) and second(value)
        return lambda value: first(value) or second(value)
    if kind == "and":

        def every(value: Any) -> bool:
            for test in tests:  # noqa: SIM110 (a generator costs more than the tests)
                if not test(value):
                    return False
            return True

        return every

    def some(value: Any) -> bool:
        for test in tests:  # noqa: SIM110
            if test(value):
                return True
        return False

    return some


def _path(keys: tuple[str | int, ...]) -> Function:
    """Fields and indices in a row: ``a``, ``a.b``, ``a.b[0]``."""
    if len(keys) == 1 and type(keys[0]) is str:
        name = keys[0]
        return lambda value: value.get(name) if type(value) is dict else None
    if len(keys) == 2 and type(keys[0]) is str and type(keys[1]) is str:
        outer, inner = keys

        def nested(value: Any) -> Any:
            if type(value) is not dict:
                return None
            value = value.get(outer)
            return value.get(inner) if type(value) is dict else None

        return nested

    def path(value: Any) -> Any:
        for key in keys:
            if type(value) is dict:
                value = value.get(key)  # an index finds nothing: the keys are text
            elif type(value) is list and type(key) is int:
                try:
                    value = value[key]
                except IndexError:
                    return None
            else:
                return None
        return value

    return path
