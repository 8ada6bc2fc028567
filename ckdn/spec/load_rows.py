"""Loading the row half of a spec: sources (steps, lines, other rows), fields and the refinements of rows."""

from __future__ import annotations

from ckdn.errors import near
from ckdn.spec import expressions as ex
from ckdn.spec.cursor import Cursor, short
from ckdn.spec.load_lines import load_lines
from ckdn.spec.types import (
    JSON,
    LOG,
    RECORD_FIELDS,
    TEXT,
    XML,
    Candidate,
    Field,
    Fold,
    Input,
    Leaf,
    RowSet,
    Step,
    Without,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_FIELDS = 64
SOURCES = ("each", "lines", "from")
RIDERS = ("between", "per", "otherwise")
REFINEMENTS = ("fields", "where", "dedup", "group", "fold", "leaf", "without")
ROW_KEYS = ("in", *SOURCES, *RIDERS, *REFINEMENTS)
STEP_KEYS = ("select", "keep", "index", "entries", "descend", "optional")
CANDIDATE_KEYS = ("get", "of", "lookup", "value", "template")
LISTED_KEYS = (*CANDIDATE_KEYS, "on")
"""What an item of ``first`` may hold."""
REFINE_KEYS = ("match", "replace", "map", "as", "absent", "default", "offset", "under", "args")
FIELD_KEYS = (*LISTED_KEYS, "first", *REFINE_KEYS, "template_of")
AS_KINDS = ("int", "number", "percent", "path", "uri")
FOLDS = ("first", "last", "sum", "max", "count", "concat", "any")
FOLD_KEYS = (*FOLDS, "where", "only")
NUMBER_FOLDS = ("sum", "max", "count")
LEAF_KEYS = ("name", "sep", "depth", "parent", "where")
WITHOUT_KEYS = ("rows", "same", "where")
PARENTS = ("before", "after")


class Rows:
    """The row sets of one spec while they are read: their scopes, and what is known for messages."""

    def __init__(self, inputs: dict[str, Input], options: ex.Options) -> None:
        self.inputs = inputs
        self.options = options
        self.sets: dict[str, RowSet] = {}
        self.scopes: dict[str, ex.Scope] = {}
        self.cursors: dict[str, Cursor] = {}
        self.declared: tuple[str, ...] = ()
        """Names in the ``rows`` block, so that a mention before the definition resolves."""
        self.used: set[str] = set()
        """Row sets that something looks at."""
        self.read: set[str] = set()
        """Inputs that something reads."""

    def load(self, name: str, cursor: Cursor, parts: dict[str, Cursor]) -> None:
        """Read one row set (a named one, or the source a finding holds inline)."""
        row, scope, format = RowSet(name), ex.Scope(), ""
        sources = [key for key in SOURCES if key in parts]
        if len(sources) == 1:
            format = self.source(row, sources[0], cursor, parts, scope)
        else:
            said = "has no source" if not sources else f"has {' and '.join(sources)}"
            cursor.fail(f"{cursor.named()} {said}", "give exactly one of each, lines, from")
            scope.blur()
            format = ex.UNKNOWN
        for rider in RIDERS:
            if rider in parts and sources != ["lines"]:
                parts[rider].fail(f"`{rider}` only goes with `lines`")
        self.refine(row, parts, scope, format)
        self.sets[name], self.scopes[name], self.cursors[name] = row, scope, cursor

    def source(self, row: RowSet, kind: str, cursor: Cursor, parts: dict[str, Cursor], scope: ex.Scope) -> str:
        """Read where the rows come from; afterwards ``scope`` has the fields that come along.

        Gives the format of the nodes that fields look at; empty for rows without nodes.
        """
        source = parts[kind]
        if kind == "from":
            row.origin = self.other(source)
            scope.merge(self.scope_of(row.origin))
            if "in" in parts:
                parts["in"].fail("`in` does not go with `from`", "take it out: the other rows have their input already")
            return ""
        given = self.input_for(parts.get("in"), cursor, f"`{kind}`", TEXT if kind == "lines" else "")
        row.input = given.name
        if kind == "lines":
            row.lines = load_lines(source, parts, scope, given, self.options)
            return ""
        row.steps = load_steps(source, given, scope)
        return given.format

    def scope_of(self, name: str) -> ex.Scope:
        """The fields of rows that are there; any field when the name is wrong, which is told already."""
        if name in self.scopes:
            return self.scopes[name]
        scope = ex.Scope()
        scope.blur()
        return scope

    def other(self, cursor: Cursor) -> str:
        """The name of rows that stand before these."""
        name = cursor.text()
        self.used.add(name)
        if name and name not in self.declared:
            cursor.fail(f"{cursor.named()} names unknown rows `{short(name)}`", near(name, self.declared))
            return ""
        if name and name not in self.sets:
            cursor.fail(f"{cursor.named()} names rows `{name}`, which are defined later", f"move `{name}` up")
            return ""
        return name

    def input_for(self, cursor: Cursor | None, owner: Cursor, reader: str, wanted: str) -> Input:
        """The input of a source: the one ``in`` names, or the only one that fits. ``reader`` is for messages."""
        found = self.named_input(cursor, reader, wanted) if cursor is not None else self.only_input(owner, wanted)
        self.read.add(found.name)
        return found

    def named_input(self, cursor: Cursor, reader: str, wanted: str) -> Input:
        """The input that ``in`` names."""
        name = cursor.text()
        if name in self.inputs:
            found = self.inputs[name]
            if wanted and found.format != wanted:
                cursor.fail(f"{reader} read text, and the input `{name}` is {found.format}")
            elif not wanted and found.format == TEXT:
                cursor.fail(f"{reader} needs json, ndjson or xml, and the input `{name}` is text")
            else:
                return found
        elif name:
            cursor.fail(f"{cursor.named()} names unknown input `{short(name)}`", near(name, self.inputs))
        return Input("", LOG, ex.UNKNOWN)

    def only_input(self, owner: Cursor, wanted: str) -> Input:
        """The only input of a kind; the log that is not declared counts where there is no other."""
        fitting = [i for i in self.inputs.values() if (i.format == TEXT) == (wanted == TEXT)]
        listed = [i for i in fitting if i.name != LOG] or fitting
        if len(listed) == 1:
            return listed[0]
        if listed:
            use = " or ".join(i.name for i in listed)
            owner.fail(f"{owner.named()} has several inputs to read", f"say `in:` {use}")
        else:
            use = "use `lines`, or declare a json, ndjson or xml input" if wanted != TEXT else "declare a text input"
            owner.fail(f"{owner.named()} has no input it could read", use)
        return Input("", LOG, ex.UNKNOWN)

    # --- refinements ---------------------------------------------------------------------------------------------

    def refine(self, row: RowSet, parts: dict[str, Cursor], scope: ex.Scope, format: str) -> None:
        """Read fields, where, dedup, group and fold, leaf, without: in the order in which the engine applies them."""
        if "fields" in parts:
            children = parts["fields"].mapping()
            if len(children) > MAX_FIELDS:
                parts["fields"].fail(f"{parts['fields'].named()} has {len(children)} fields", f"at most {MAX_FIELDS}")
            row.fields = tuple(self.field(key, c, scope, format) for key, c in children.items())
        if "where" in parts:
            row.where = ex.predicate(parts["where"], scope, self.options)
        if "dedup" in parts:
            row.dedup = self.names(parts["dedup"], scope)
        if "group" in parts:
            row.group = self.names(parts["group"], scope)
            row.fold = self.folds(parts.get("fold"), scope, row.group)
        elif "fold" in parts:
            parts["fold"].fail("`fold` without `group`", "name the fields to group by")
        if "leaf" in parts:
            row.leaf = self.leaf(parts["leaf"], scope)
        if "without" in parts:
            row.without = self.without(parts["without"], scope)

    def names(self, cursor: Cursor, scope: ex.Scope) -> tuple[str, ...]:
        """A list of fields, at least one."""
        items = cursor.items(lone=True)
        if not items:
            cursor.fail(f"{cursor.named()} is empty", "name at least one field")
        return tuple(ex.field_name(item, scope.fields) for item in items)

    def folds(self, cursor: Cursor | None, scope: ex.Scope, group: tuple[str, ...]) -> tuple[Fold, ...]:
        """The folded fields of a group; afterwards rows have the group's fields and these."""
        before, folds = scope.copy(), []
        for name in [n for n in scope.fields if n not in group]:
            scope.fields.pop(name)
            scope.values.pop(name, None)
        for name, child in cursor.mapping().items() if cursor else ():
            if name in group:
                child.fail(f"{child.named()}: `{name}` is a field of `group`", "give the folded field another name")
            ex.check_name(child, name)
            fold = self.fold(name, child, before)
            if fold is None:
                scope.add(name, None)
                continue
            folds.append(fold)
            known = before.fields.get(fold.field)
            kind = "number" if fold.verb in NUMBER_FOLDS else "boolean" if fold.verb == "any" else known
            values = (fold.only or before.values.get(fold.field, ())) if fold.verb in ("first", "last") else ()
            scope.add(name, None if fold.verb == "concat" and known != "string" else kind, values)
        return tuple(folds)

    def fold(self, name: str, cursor: Cursor, before: ex.Scope) -> Fold | None:
        """One fold: a verb alone (the field has the same name), or ``{VERB: field or values, where, only}``."""
        if isinstance(cursor.value, str):
            verb = cursor.choice(FOLDS)
            if verb != "count":
                self.same_field(name, cursor, before)
            field = Fold(name, verb, name if name in before.fields else "")
            self.check_summed(cursor, field, before)
            return field
        parts = cursor.mapping(FOLD_KEYS)
        verbs = [v for v in FOLDS if v in parts]
        if len(verbs) != 1:
            if cursor.sound:
                cursor.fail(f"{cursor.named()} needs exactly one verb", f"one of {', '.join(FOLDS)}")
            return None
        child = parts[verbs[0]]
        fold = Fold(name, verbs[0], name)
        if isinstance(child.value, list):
            self.same_field(name, cursor, before)
            only: Cursor | None = child
            if "only" in parts:
                parts["only"].fail(f"`only` beside a list for {verbs[0]}", "write the values once")
        else:
            fold.field = ex.field_name(child, before.fields)
            only = parts.get("only")
        if only is not None:
            fold.only = self.wanted_values(only, fold.field, before)
        self.check_summed(child, fold, before)
        fold.where = ex.predicate(parts["where"], before, self.options) if "where" in parts else None
        return fold

    def same_field(self, name: str, cursor: Cursor, before: ex.Scope) -> None:
        """A fold that names no field folds the one of its own name."""
        if name not in before.fields:
            said = f"{cursor.named()} folds the field `{short(name)}`, which does not exist"
            cursor.fail(said, near(name, before.fields))

    def check_summed(self, cursor: Cursor, fold: Fold, before: ex.Scope) -> None:
        """Only numbers have a sum and a largest one."""
        kind = before.fields.get(fold.field)
        if fold.verb in ("sum", "max") and kind in ("string", "boolean"):
            said = f"{cursor.named()}: the {fold.verb} of `{fold.field}`, which is a {kind}"
            cursor.fail(said, "give the field `as: int` or `as: number`")

    def wanted_values(self, cursor: Cursor, field: str, before: ex.Scope) -> tuple[Any, ...]:
        """``only``: the values that count, each one that the field can have."""
        items = cursor.items()
        if isinstance(cursor.value, list) and not items:
            cursor.fail(f"{cursor.named()} is empty, so no value counts", "name at least one value")
        for item in items:
            check_value(item, field, before)
        return tuple(item.scalar() for item in items)

    def leaf(self, cursor: Cursor, scope: ex.Scope) -> Leaf:
        """Which rows hide their parents."""
        parts = cursor.mapping(LEAF_KEYS)
        leaf = Leaf("")
        if "name" in parts:
            leaf.name = ex.field_name(parts["name"], scope.fields)
        elif cursor.sound:
            cursor.fail("`leaf` needs `name`", "give the field that tells the rows apart")
        if cursor.sound and ("sep" in parts) == ("depth" in parts):
            cursor.fail("`leaf` needs exactly one of sep and depth")
        if "sep" in parts:
            leaf.separator = parts["sep"].text()
        if "depth" in parts:
            leaf.depth = ex.field_name(parts["depth"], scope.fields)
        if "parent" in parts:
            leaf.parent = parts["parent"].choice(PARENTS)
            if "depth" not in parts:
                parts["parent"].fail("`parent` only goes with `depth`", "take it out: names tell parent and child")
        if "where" in parts:
            leaf.where = ex.predicate(parts["where"], scope, self.options)
        return leaf

    def without(self, cursor: Cursor, scope: ex.Scope) -> Without | None:
        """Which rows are dropped because other rows say the same."""
        parts = cursor.mapping(WITHOUT_KEYS)
        if "rows" not in parts or "same" not in parts:
            if cursor.sound:
                cursor.fail("`without` needs `rows` and `same`")
            return None
        rows = self.other(parts["rows"])
        theirs = self.scope_of(rows)
        same = self.names(parts["same"], scope)
        for name in same:
            if name in scope.fields and name not in theirs.fields:
                said = f"{parts['same'].named()}: rows `{rows}` have no field `{short(name)}`"
                parts["same"].fail(said, near(name, theirs.fields))
            self.check_comparable(parts["same"], f"{rows}.{name}", (theirs, name), (scope, name))
        where = ex.predicate(parts["where"], theirs, self.options) if "where" in parts else None
        return Without(rows, same, where)

    def check_comparable(
        self, cursor: Cursor, shown: str, theirs: tuple[ex.Scope, str], mine: tuple[ex.Scope, str]
    ) -> None:
        """Two fields that are to be equal must be of one type."""
        kinds = [scope.fields.get(name) for scope, name in (theirs, mine)]
        if None not in kinds and kinds[0] != kinds[1]:
            said = f"{cursor.named()}: `{shown}` is a {kinds[0]} and `{mine[1]}` is a {kinds[1]}: never equal"
            cursor.fail(said, "give one of them `as:`")

    # --- fields --------------------------------------------------------------------------------------------------

    def field(self, name: str, cursor: Cursor, scope: ex.Scope, format: str) -> Field:
        """One field form; afterwards rows have the field. ``format`` is empty for rows without a node."""
        ex.check_name(cursor, name)
        parts = {} if isinstance(cursor.value, str) else cursor.mapping(FIELD_KEYS)
        if isinstance(cursor.value, str):
            candidates: tuple[Candidate, ...] = (self.get(cursor, scope, format),)
        elif "first" in parts:
            for key in (*LISTED_KEYS, "template_of"):
                if key in parts:
                    parts[key].fail(f"`{key}` beside `first`", "put it into the list")
            candidates = tuple(self.candidate(c, scope, format) for c in parts["first"].items())
            if parts["first"].value == []:
                parts["first"].fail(f"{parts['first'].named()} is empty", "list what to try, in order")
        elif "template_of" in parts:
            for key in LISTED_KEYS:
                if key in parts:
                    parts[key].fail(f"`{key}` beside `template_of`", "keep one of them")
            candidates = (Candidate("of", ex.field_name(parts["template_of"], scope.fields)),)
        else:
            candidates = (self.candidate(cursor, scope, format, parts),)
        field = Field(name, candidates)
        source = self.source_kind(candidates, scope, format)
        self.refinements(field, parts, scope, source)
        kind, values = refined(field, source)
        if field.has_default and kind and ex.literal_kind(field.default) not in (kind, None):
            said = f"{parts['default'].named()} is a {ex.literal_kind(field.default)} where values are of type {kind}"
            parts["default"].fail(said)
        scope.add(name, kind, values)
        return field

    def refinements(
        self, field: Field, parts: dict[str, Cursor], scope: ex.Scope, source: tuple[str | None, tuple[Any, ...]]
    ) -> None:
        """match, replace, map, as, absent, default, offset, under and message arguments."""
        if "match" in parts:
            field.match = ex.regex(parts["match"], line=False)
            if field.match and ex.compiled(field.match).groups > 1:
                said = f"{parts['match'].named()} has several groups, and only the first is taken"
                parts["match"].fail(said, "write (?:…) for those that only group")
        if "replace" in parts:
            field.replace = tuple(self.replacement(parts["replace"], *p) for p in parts["replace"].mapping().items())
        if "map" in parts:
            known = source[1] if not field.match and not field.replace else ()
            field.map = self.mapped(parts["map"], field.name, known)
        if "as" in parts:
            field.as_ = parts["as"].choice(AS_KINDS)
        if "absent" in parts:
            field.absent = tuple(c.scalar() for c in parts["absent"].items(lone=True))
        if "default" in parts:
            field.default, field.has_default = parts["default"].scalar(), True
            if parts["default"].value is None:
                parts["default"].fail(f"{parts['default'].named()} is nothing", "leave it out: a field may be absent")
        if "offset" in parts:
            field.offset = parts["offset"].integer()
            if field.offset == 0 and parts["offset"].value == 0:
                parts["offset"].fail(f"{parts['offset'].named()} is 0", "leave it out, or write 1 for 0-based places")
        if "under" in parts:
            field.under = ex.field_name(parts["under"], scope.fields)
        if ("args" in parts) != ("template_of" in parts):
            given = parts["args"] if "args" in parts else parts["template_of"]
            given.fail("`args` and `template_of` go together")
        elif "args" in parts:
            field.args = ex.field_name(parts["args"], scope.fields)
            field.template_of = parts["template_of"].text()

    def replacement(self, owner: Cursor, key: str, cursor: Cursor) -> tuple[str, str]:
        """One pair of ``replace``: the regex stands as the key."""
        pattern = ex.regex(Cursor(owner.document, (*owner.path, key), key, owner.problems), line=False)
        return pattern, ex.replacement(cursor, pattern)

    def mapped(self, cursor: Cursor, name: str, known: tuple[Any, ...]) -> tuple[tuple[str, Any], ...]:
        """``map``: values by their text. Of a field whose values are known, each must be mapped."""
        pairs = tuple((key, child.scalar()) for key, child in cursor.mapping().items())
        if cursor.value == {}:
            cursor.fail(f"{cursor.named()} is empty")
        check_map(cursor, [key for key, _ in pairs], known, f"`{name}`")
        return pairs

    def get(self, cursor: Cursor, scope: ex.Scope, format: str) -> Candidate:
        """``get``: an extraction on the node; on rows without a node, JMESPath over the row."""
        if format:
            return Candidate("get", ex.extraction(cursor, format))
        return Candidate("of_row", ex.row_expression(cursor, scope))

    def candidate(
        self, cursor: Cursor, scope: ex.Scope, format: str, parts: dict[str, Cursor] | None = None
    ) -> Candidate:
        """One of get, of, lookup, value, template."""
        if parts is None:
            if isinstance(cursor.value, str):
                return self.get(cursor, scope, format)
            parts = cursor.mapping(LISTED_KEYS)
        kinds = [k for k in CANDIDATE_KEYS if k in parts]
        if len(kinds) != 1:
            if cursor.sound:
                said = "nothing to take" if not kinds else " and ".join(kinds)
                mend = "give exactly one of get, of, first, lookup, value, template"
                cursor.fail(f"{cursor.named()} has {said}", mend)
            return Candidate("get")
        kind, child = kinds[0], parts[kinds[0]]
        if "on" in parts and kind != "lookup":
            parts["on"].fail("`on` only goes with `lookup`")
        if kind == "get":
            return self.get(child, scope, format)
        if kind == "of":
            return Candidate("of", ex.field_name(child, scope.fields))
        if kind == "value":
            if child.value is None:
                child.fail(f"{child.named()} is nothing", "give a text, a number, true or false")
            return Candidate("value", child.scalar())
        if kind == "template":
            return Candidate("template", ex.template(child, scope.fields))
        return self.lookup(child, parts, scope)

    def lookup(self, cursor: Cursor, parts: dict[str, Cursor], scope: ex.Scope) -> Candidate:
        """``lookup: rows.field`` with ``on: {their: mine}``."""
        rows, _, field = cursor.text().partition(".")
        candidate = Candidate("lookup", rows=rows, field=field)
        self.used.add(rows)
        theirs = self.scope_of(rows)
        if rows not in self.sets:
            later = rows in self.declared
            said = f"{cursor.named()} looks into {'later' if later else 'unknown'} rows `{short(rows)}`"
            cursor.fail(said, f"move `{rows}` up" if later else near(rows, self.declared))
        elif not field:
            cursor.fail(f"{cursor.named()} names no field of `{rows}`", f"write {rows}.FIELD")
        elif field not in theirs.fields:
            cursor.fail(f"{cursor.named()}: rows `{rows}` have no field `{short(field)}`", near(field, theirs.fields))
        if "on" not in parts:
            cursor.fail(f"{cursor.named()} needs `on`", "write on: {THEIR FIELD: MY FIELD}")
            return candidate
        pairs = []
        for key, child in parts["on"].mapping().items():
            if key not in theirs.fields:
                child.fail(f"{child.named()}: rows `{rows}` have no field `{short(key)}`", near(key, theirs.fields))
            mine = ex.field_name(child, scope.fields)
            self.check_comparable(child, f"{rows}.{key}", (theirs, key), (scope, mine))
            pairs.append((key, mine))
        if parts["on"].value == {}:
            parts["on"].fail(f"{parts['on'].named()} is empty", "write on: {THEIR FIELD: MY FIELD}")
        candidate.on = tuple(pairs)
        return candidate

    def source_kind(
        self, candidates: tuple[Candidate, ...], scope: ex.Scope, format: str
    ) -> tuple[str | None, tuple[Any, ...]]:
        """The type and the values that a field takes before it is refined."""
        found = [self.candidate_kind(c, scope, format) for c in candidates]
        kinds = {kind for kind, _ in found}
        values = tuple(v for _, some in found for v in some) if all(some for _, some in found) else ()
        return kinds.pop() if len(kinds) == 1 else None, values

    def candidate_kind(self, candidate: Candidate, scope: ex.Scope, format: str) -> tuple[str | None, tuple[Any, ...]]:
        """The type and the values of one candidate."""
        kind, expression = candidate.kind, candidate.expression
        if kind == "get":
            return ex.kind_of_value(expression, format), ()
        if kind == "of" or (kind == "of_row" and isinstance(expression, tuple) and expression[0] == "field"):
            name = expression if kind == "of" else expression[1]
            return scope.fields.get(name), scope.values.get(name, ())
        if kind == "of_row":
            return ex.kind_of_value(expression, JSON), ()
        if kind == "value":
            return ex.literal_kind(expression), () if expression is None else (expression,)
        if kind == "template":
            return "string", ()
        theirs = self.scope_of(candidate.rows)
        return theirs.fields.get(candidate.field), theirs.values.get(candidate.field, ())


def refined(field: Field, source: tuple[str | None, tuple[Any, ...]]) -> tuple[str | None, tuple[Any, ...]]:
    """The type and the values of a field after its refinements."""
    kind, values = source
    if field.match or field.replace:
        kind, values = "string", ()
    if field.map is not None:
        mapped = [v for _, v in field.map if v is not None]
        kinds = {ex.literal_kind(v) for v in mapped}
        kind, values = kinds.pop() if len(kinds) == 1 else None, tuple(dict.fromkeys(mapped))
    if field.as_ or field.offset or field.under or field.args:
        number = field.as_ in ("int", "number", "percent") or (field.offset and not field.as_)
        kind, values = "number" if number and not field.under else "string", ()
    if values and field.has_default:
        values = (*values, field.default)
    return kind, values


def check_value(cursor: Cursor, field: str, scope: ex.Scope) -> None:
    """A value that stands beside a field must be one that the field can have."""
    value, allowed, kind = cursor.value, scope.values.get(field, ()), scope.fields.get(field)
    if allowed and not any(a == value and isinstance(a, bool) == isinstance(value, bool) for a in allowed):
        cursor.fail(f"{cursor.named()}: `{field}` is never {shown(value)}", near(str(value), map(str, allowed)))
    elif kind and ex.literal_kind(value) not in (kind, None):
        cursor.fail(f"{cursor.named()}: `{field}` is a {kind}, and {shown(value)} is none")


def check_map(cursor: Cursor, keys: list[str], known: tuple[Any, ...], what: str) -> None:
    """A map over known values must have each of them, and no other."""
    from ckdn.spec.jmes_check import shown as as_json  # true, not True

    texts = [v if isinstance(v, str) else as_json(v) for v in known]
    if not texts:
        return
    for key in keys:
        if key != "*" and key not in texts:
            cursor.fail(f"{cursor.named()} maps `{short(key)}`, which never comes", near(key, texts), below=(key,))
    lacking = [f"`{short(text)}`" for text in dict.fromkeys(texts) if text not in keys]
    if lacking and "*" not in keys and all(key in texts for key in keys):
        cursor.fail(f"{cursor.named()} has no key for {', '.join(lacking)}, which {what} can be", 'map it, or add "*"')


def shown(value: Any) -> str:
    """A constant in a message."""
    from ckdn.spec.jmes_check import shown as as_json  # on the error path

    return as_json(value)


# --- steps


def load_steps(cursor: Cursor, given: Input, scope: ex.Scope) -> tuple[Step, ...]:
    """``each``: an expression, or a list of steps."""
    items = [cursor] if isinstance(cursor.value, str) else cursor.items()
    steps = [load_step(item, given, scope, position == 0) for position, item in enumerate(items)]
    if cursor.value == []:
        cursor.fail(f"{cursor.named()} has no steps")
    return tuple(steps)


def load_step(item: Cursor, given: Input, scope: ex.Scope, first: bool) -> Step:
    """One step: a select, and what of its node the rows keep."""
    parts = {"select": item} if isinstance(item.value, str) else item.mapping(STEP_KEYS)
    step = Step(None)
    if "select" in parts:
        step.select = load_select(parts["select"], given, first)
    elif item.sound:
        item.fail(f"{item.named()} has no `select`", "say where to go from the node before")
    step.entries = "entries" in parts and parts["entries"].flag()
    step.optional = "optional" in parts and parts["optional"].flag()
    if "descend" in parts:
        step.descend = parts["descend"].text()
    if given.format == XML:
        for key in ("entries", "descend", "optional"):
            if key in parts:
                parts[key].fail(f"`{key}` is for json", "in xml an element that is not there gives no rows")
    elif step.entries and step.descend:
        parts["descend"].fail("`descend` beside `entries`", "walk the levels in steps of their own")
    if "keep" in parts:
        step.keep = tuple(load_kept(name, c, step, given, scope) for name, c in parts["keep"].mapping().items())
    if "index" in parts:
        step.index = parts["index"].text()
        if step.index and ex.check_name(parts["index"], step.index):
            scope.add(step.index, "number")
    return step


def load_kept(name: str, cursor: Cursor, step: Step, given: Input, scope: ex.Scope) -> tuple[str, Any]:
    """One kept value: a field of every row below."""
    ex.check_name(cursor, name)
    expression = ex.extraction(cursor, given.format)
    if given.format != XML:
        check_entry(cursor, expression, step)
    scope.add(name, ex.kind_of_value(expression, given.format))
    return name, expression


def check_entry(cursor: Cursor, expression: Any, step: Step) -> None:
    """What ``entries`` walks has two keys."""
    if step.entries and expression is not None:
        from ckdn.spec import jmes  # the names of one expression

        for name in sorted(jmes.names_used(expression)):
            if name not in ("key", "value"):
                said = f"{cursor.named()} names `{short(name)}`, and an entry has only `key` and `value`"
                cursor.fail(said, f"write value.{name}")


def load_select(cursor: Cursor, given: Input, first: bool) -> Any:
    """Where the rows are: from the root for the first step, from the node before for the others."""
    if given.format == ex.UNKNOWN:
        return None
    if given.format == XML:
        return stream_path(cursor, given) if first else inner_path(cursor)
    ast = ex.jmespath(cursor)
    if first:
        check_root(cursor, ast, given)
    return ast


def check_root(cursor: Cursor, ast: Any, given: Input) -> None:
    """An expression from the root must fit the root's declared shape."""
    needs = ex.root_needs(ast)
    if needs and given.root_kind in ("array", "object") and needs != given.root_kind:
        mend = "start with @ or [*]" if given.root_kind == "array" else "start with a key"
        cursor.fail(f"{cursor.named()} asks an {needs}, and the root is an {given.root_kind}", mend)


def stream_path(cursor: Cursor, given: Input) -> str:
    """The first select of xml rows: a path the engine can stream (``/a/b`` or ``//name``, predicates on attributes)."""
    text = ex.xpath(cursor)
    if not text:
        return ""
    from ckdn.spec.xml_path import StreamPathError, parse  # only specs with xml inputs

    try:
        paths = parse(text)
    except StreamPathError as e:
        cursor.fail(f"{cursor.named()}: {e}", e.mend, offset=e.offset)
        return ""
    for steps in paths:
        root = steps[0]
        if given.root_names and not root.anywhere and root.name != "*" and root.name not in given.root_names:
            names = "> or <".join(given.root_names)
            cursor.fail(f"{cursor.named()} starts at <{short(root.name)}>, and the root is <{names}>")
    return text


def inner_path(cursor: Cursor) -> str:
    """A further select of xml rows: elements, seen from the element before."""
    text = ex.xpath(cursor)
    if not text:
        return ""
    from ckdn.spec.xml_path import last_step  # only specs with xml inputs

    last = last_step(text)
    if ex.kind_of_value(text, XML) != "string" or not isinstance(ex.evaluate_probe(text), list):
        cursor.fail(f"{cursor.named()} gives no elements", "name the elements that are rows")
    elif last.startswith(("@", "attribute::", "text(")):
        cursor.fail(f"{cursor.named()} gives texts, and rows are elements", "take the element, and the text as a field")
    elif text.startswith("/"):
        cursor.fail(f"{cursor.named()} starts at the root", "name what is below the element before: a/b or .//a")
    return text


# --- the passes


def staged(rows: Rows) -> tuple[RowSet, ...]:
    """The row sets in the order of the file, each with the pass in which it is made.

    Rows that come from one source are made together, and after every row set that one of them looks into.
    """
    sets = rows.sets

    def tree(name: str) -> str:
        while sets[name].origin:
            name = sets[name].origin
        return name

    stages = {tree(name): 0 for name in sets}
    for _ in range(len(stages) + 1):
        moved = ""
        for name, row in sets.items():
            mine = tree(name)
            for other in looks_into(row):
                if other in sets and stages[mine] <= stages[tree(other)]:
                    stages[mine], moved = stages[tree(other)] + 1, name
            if row.without is not None and row.without.rows in sets:
                stages[mine] = max(stages[mine], stages[tree(row.without.rows)])
        if not moved:
            break
    else:
        cursor = rows.cursors[moved]
        said = f"{cursor.named()} looks into rows that are made in the same pass"
        cursor.fail(said, "give one of them a source of its own, with `each` or `lines` instead of `from`")
    for name, row in sets.items():
        row.stage = stages[tree(name)]
    return tuple(sets.values())


def looks_into(row: RowSet) -> list[str]:
    """The rows that the fields of a row set look up."""
    return [c.rows for field in row.fields for c in field.candidates if c.kind == "lookup" and c.rows]


def record_scope(scopes: Mapping[str, ex.Scope], names: tuple[str, ...]) -> ex.Scope:
    """The fields of records: what the rows of the findings have, in the types of records."""
    scope = ex.Scope()
    for name in names:
        scope.merge(scopes[name])
    for name in RECORD_FIELDS:
        if name in scope.fields and name != "detail":
            scope.add(name, ex.group_kind(name), scope.values.get(name, ()) if ex.group_kind(name) == "string" else ())
    return scope
