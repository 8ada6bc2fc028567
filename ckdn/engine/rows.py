"""Row sets: fields, where, dedup, group, leaf and without; then whoever asked for the rows.

Rows are pushed through as they come. Only what needs all rows at once (group, leaf, without, lookups into them) keeps
them until the end of its pass.
"""

from __future__ import annotations

from ckdn.engine import jmes
from ckdn.engine.fields import as_text, compile_field, kept_function, node_function, number_from
from ckdn.engine.jmes_functions import EvaluationError
from ckdn.engine.source import BoundPassed, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ckdn.engine.fields import Context, Row
    from ckdn.spec.types import Fold, Leaf, RowSet, Step

    Sink = Callable[[Row], None]

MAX_HELD_ROWS = 2_000_000
"""Rows kept for one grouped, looked-up or filtered row set."""
MAX_WALK_DEPTH = 64
MAX_FOLD_TEXT = 1 << 20
"""Characters kept of one `concat`; what is beyond is dropped from its front (the end of an output tells most)."""


def predicate(ast: Any, context: Context) -> Callable[[Row], bool] | None:
    """A compiled predicate over a row; None for none."""
    if ast is None:
        return None
    test, scope = jmes.compile_predicate(ast), context.scope
    return lambda row: test(row, scope)


class Rows:
    """One row set at work."""

    def __init__(self, spec: RowSet, format: str, context: Context) -> None:
        self.spec = spec
        self.name = spec.name
        self.context = context
        self.sinks: list[Sink] = []
        self.count = 0
        self.format = format
        self.fields = [(f.name, compile_field(f, format, context)) for f in spec.fields]
        self.needs_object = format in ("json", "ndjson") and any(
            c.kind == "get" and jmes_names(c.expression) for f in spec.fields for c in f.candidates
        )
        self.where = predicate(spec.where, context)
        self.seen: set[tuple[Any, ...]] = set()
        self.held: list[Row] | None = [] if spec.group or spec.leaf or spec.without else None
        self.without: tuple[Rows, tuple[str, ...], Callable[[Row], bool] | None] | None = None
        self.kept: list[Row] | None = None
        """Finished rows, if another row set looks into these."""

    def push(self, node: Any, row: Row) -> None:
        """Take one raw row: what the source gave (``row``), and the node that fields look at."""
        if self.needs_object and not isinstance(node, dict):
            raise Refused(f"an item is no object but {kind_word(node)}")
        name = ""
        try:
            for name, read in self.fields:
                row[name] = read(node, row)
        except EvaluationError as e:
            raise Refused(f"the field `{name}`: {e}") from None
        if self.where is not None and not self.where(row):
            return
        if self.spec.dedup:
            key = hashable([row.get(name) for name in self.spec.dedup])
            if key in self.seen:
                return
            if len(self.seen) >= MAX_HELD_ROWS:
                raise BoundPassed(f"more than {MAX_HELD_ROWS} rows of `{self.name}`")
            self.seen.add(key)
        if self.held is None:
            self.out(row)
        else:
            self.hold(self.held, row)

    def hold(self, rows: list[Row], row: Row) -> None:
        """Keep a row, within the bound."""
        if len(rows) >= MAX_HELD_ROWS:
            raise BoundPassed(f"more than {MAX_HELD_ROWS} rows of `{self.name}`")
        rows.append(row)

    def out(self, row: Row) -> None:
        """A finished row."""
        self.count += 1
        if self.kept is not None:
            self.hold(self.kept, row)
        for sink in self.sinks:
            sink(row)

    def finish(self) -> None:
        """The source is at its end: group, pick leaves, drop what others say, and hand the rows on."""
        if self.held is None:
            return
        rows, self.held = self.held, None
        if self.spec.group:
            rows = grouped(rows, self.spec.group, self.spec.fold, self.context)
        if self.spec.leaf is not None:
            rows = leaves(rows, self.spec.leaf, self.spec.group, self.context)
        if self.without is not None:
            others, same, where = self.without
            said = {hashable([o.get(n) for n in same]) for o in others.kept or () if where is None or where(o)}
            rows = [row for row in rows if hashable([row.get(n) for n in same]) not in said]
        for row in rows:
            self.out(row)

    def keep(self) -> None:
        """Keep finished rows for those who look into them."""
        if self.kept is None:
            self.kept = []


def jmes_names(ast: Any) -> bool:
    """Whether a JMESPath expression reads a key of its node (``@`` and literals do not)."""
    return isinstance(ast, tuple) and bool(ast) and ast[0] in ("field", "chain")


def kind_word(value: Any) -> str:
    """What a node is, with an article."""
    words = {list: "an array", str: "a text", bool: "a boolean", dict: "an object"}
    return "null" if value is None else words.get(type(value), "a number")


def hashable(values: list[Any]) -> tuple[Any, ...]:
    """Values as a key; structures by their text; 1 and true differ."""
    return tuple(
        [as_text(v) if isinstance(v, list | dict) else (v, True) if isinstance(v, bool) else v for v in values]
    )


def grouped(rows: list[Row], keys: tuple[str, ...], folds: tuple[Fold, ...], context: Context) -> list[Row]:
    """One row per different key values, in the order of their first row."""
    groups: dict[tuple[Any, ...], Row] = {}
    plans = [(fold, predicate(fold.where, context), FOLDS[fold.verb]) for fold in folds]
    for row in rows:
        key = hashable([row.get(k) for k in keys])
        group = groups.get(key)
        if group is None:
            group = groups[key] = {k: row.get(k) for k in keys}
            for fold, _, _ in plans:
                group[fold.name] = 0 if fold.verb == "count" else None
        for fold, where, apply in plans:
            if where is not None and not where(row):
                continue
            value = row.get(fold.field) if fold.field else True
            if fold.only and value not in fold.only:
                continue
            if value is not None:
                group[fold.name] = apply(group[fold.name], value, fold)
    return list(groups.values())


def fold_concat(held: Any, value: Any, fold: Fold) -> Any:
    """Texts are joined, other values listed."""
    if isinstance(value, str):
        return ((held or "") + value)[-MAX_FOLD_TEXT:]
    return [*held, value] if isinstance(held, list) else [value] if held is None else [held, value]


def fold_sum(held: Any, value: Any, fold: Fold) -> Any:
    """The sum of numbers."""
    return (held or 0) + number_from(fold.field, value)


def fold_max(held: Any, value: Any, fold: Fold) -> Any:
    """The largest number."""
    number = number_from(fold.field, value)
    return number if held is None else max(held, number)


FOLDS: dict[str, Callable[[Any, Any, Fold], Any]] = {
    "first": lambda held, value, fold: value if held is None else held,
    "last": lambda held, value, fold: value,
    "sum": fold_sum,
    "max": fold_max,
    "count": lambda held, value, fold: held + 1,
    "concat": fold_concat,
    "any": lambda held, value, fold: bool(held) or jmes.truthy(value),
}


def leaves(rows: list[Row], leaf: Leaf, group: tuple[str, ...], context: Context) -> list[Row]:
    """The rows without those that only stand for a child that is there too."""
    where = predicate(leaf.where, context)
    if leaf.separator:
        return named_leaves(rows, leaf, tuple(k for k in group if k != leaf.name), where)
    return deep_leaves(rows, leaf, where)


def named_leaves(rows: list[Row], leaf: Leaf, keys: tuple[str, ...], where: Callable[[Row], bool] | None) -> list[Row]:
    """A row hides each row whose name is its own cut at a separator, within equal keys."""
    parents: set[tuple[Any, ...]] = set()
    for row in rows:
        if where is None or where(row):
            name = as_text(row.get(leaf.name))
            at = name.rfind(leaf.separator)
            while at > 0:
                parents.add((*hashable([row.get(k) for k in keys]), name[:at]))
                at = name.rfind(leaf.separator, 0, at)

    def hidden(row: Row) -> bool:
        key = (*hashable([row.get(k) for k in keys]), as_text(row.get(leaf.name)))
        return key in parents and (where is None or where(row))

    return [row for row in rows if not hidden(row)]


def deep_leaves(rows: list[Row], leaf: Leaf, where: Callable[[Row], bool] | None) -> list[Row]:
    """A row hides the next (or last) shallower row, by the width of its indentation or a number."""

    def depth(row: Row) -> int | float:
        value = row.get(leaf.depth)
        if isinstance(value, str):
            return len(value)
        return 0 if value is None else number_from(leaf.depth, value)

    ordered = list(reversed(rows)) if leaf.parent == "before" else rows
    result: list[Row] = []
    waiting: list[float] = []
    for row in ordered:
        own = depth(row)
        children = False
        while waiting and waiting[-1] > own:
            waiting.pop()
            children = True
        if where is None or where(row):
            waiting.append(own)
            if children:
                continue
        result.append(row)
    return list(reversed(result)) if leaf.parent == "before" else result


class Walk:
    """The steps of one row set through a JSON document (or through one record, or one streamed item)."""

    def __init__(self, rows: Rows, context: Context) -> None:
        self.rows = rows
        self.steps = [WalkStep(step, "json") for step in rows.spec.steps]
        self.taken = 0
        """Items of the first step so far: its index goes on over several files and records."""

    def root(self, document: Any) -> None:
        """Walk a whole document."""
        self.step(document, 0, {})

    def item(self, item: Any) -> None:
        """Take one item of a root array that is streamed: the first step selected the array itself."""
        self.enter(item, 0, {}, 0)

    def step(self, node: Any, number: int, kept: Row) -> None:
        """Apply one step to a node and go on with what it selects."""
        if number == len(self.steps):
            self.rows.push(node, dict(kept))
            return
        step = self.steps[number]
        if step.descend:
            self.descend(node, number, kept)
        else:
            self.select(node, number, kept)

    def select(self, node: Any, number: int, kept: Row) -> None:
        """What a step selects, each item once."""
        step = self.steps[number]
        value = step.select(node)
        if value is None:
            if not step.optional:
                raise Refused(f"the rows `{self.rows.name}` are not where the spec expects them")
            return
        if step.entries:
            if not isinstance(value, dict) and value != []:  # PHP writes an empty map as a list
                raise Refused(f"the rows `{self.rows.name}`: {kind_word(value)} where keys were expected")
            value = [{"key": k, "value": v} for k, v in value.items()] if value else []
        for position, item in enumerate(value if isinstance(value, list) else [value]):
            self.enter(item, number, kept, position)

    def enter(self, item: Any, number: int, kept: Row, position: int) -> None:
        """Keep what the step keeps of an item and go one step in."""
        step = self.steps[number]
        if number == 0:
            position, self.taken = self.taken, self.taken + 1
        self.step(item, number + 1, step.kept(item, kept, position))

    def descend(self, node: Any, number: int, kept: Row) -> None:
        """Apply a step to a node and to all nodes below it along one key."""
        step = self.steps[number]
        value = step.select(node)
        if value is None and not step.optional:
            raise Refused(f"the rows `{self.rows.name}` are not where the spec expects them")
        for position, item in enumerate(value if isinstance(value, list) else [] if value is None else [value]):
            self.enter(item, number, kept, position)
            if isinstance(item, dict) and item.get(step.descend) is not None:
                self.below(item, number, kept, 0)

    def below(self, item: Any, number: int, kept: Row, depth: int) -> None:
        """The children of an item, each as an item of the same step."""
        step = self.steps[number]
        children = item[step.descend]
        if depth >= MAX_WALK_DEPTH:
            raise BoundPassed(f"the rows `{self.rows.name}` are nested deeper than {MAX_WALK_DEPTH}")
        inner = step.kept(item, kept, 0)
        for position, child in enumerate(children if isinstance(children, list) else [children]):
            self.enter(child, number, inner, position)
            if isinstance(child, dict) and child.get(step.descend) is not None:
                self.below(child, number, inner, depth + 1)


class WalkStep:
    """A compiled step."""

    __slots__ = ("descend", "entries", "index", "keep", "optional", "select")

    def __init__(self, step: Step, format: str) -> None:
        self.select = node_function(step.select, format) if format == "json" else node_set(step.select)
        self.keep = [(name, kept_function(expression, format)) for name, expression in step.keep]
        self.index = step.index
        self.entries = step.entries
        self.descend = step.descend
        self.optional = step.optional

    def kept(self, item: Any, outer: Row, position: int) -> Row:
        """What the row has after this step. A value that is absent here does not hide what an outer step kept."""
        if not self.keep and not self.index:
            return outer
        row = dict(outer)
        for name, read in self.keep:
            value = read(item)
            if value is not None or name not in row:
                row[name] = value
        if self.index:
            row[self.index] = position
        return row


def node_set(expression: str) -> Callable[[Any], Any]:
    """An inner select of xml rows: the list of elements it gives."""
    from ckdn.engine.xmldoc import compiled  # only specs with xml inputs

    evaluate = compiled(expression)

    def read(element: Any) -> Any:
        found = evaluate(element)
        if not isinstance(found, list) or any(isinstance(item, str) for item in found):
            raise Refused(f"`{expression}` selects no elements")
        return found

    return read


class XmlWalk:
    """The steps of one row set below a streamed element."""

    def __init__(self, rows: Rows, context: Context) -> None:
        self.rows = rows
        self.steps = [WalkStep(step, "xml") for step in rows.spec.steps]
        self.taken = 0

    def element(self, element: Any) -> None:
        """Take one element of the first step."""
        self.enter(element, 0, {}, self.taken)
        self.taken += 1

    def enter(self, element: Any, number: int, kept: Row, position: int) -> None:
        """Keep what a step keeps of an element and go on with what the next one selects."""
        kept = self.steps[number].kept(element, kept, position)
        if number + 1 == len(self.steps):
            self.rows.push(element, dict(kept))
            return
        for position, item in enumerate(self.steps[number + 1].select(element)):
            self.enter(item, number + 1, kept, position)


class Index:
    """A lookup into finished rows: field values by key values, the first row that has them."""

    def __init__(self, rows: Rows, field: str, keys: tuple[str, ...]) -> None:
        self.rows = rows
        self.field = field
        self.keys = keys
        self.table: dict[tuple[Any, ...], Any] | None = None

    def find(self, key: tuple[Any, ...]) -> Any:
        """The field of the first row with these values, or None."""
        if self.table is None:
            self.table = {}
            for row in self.rows.kept or ():
                self.table.setdefault(hashable([row.get(k) for k in self.keys]), row.get(self.field))
        return self.table.get(hashable(list(key)))
