"""Loading the row half of a spec: sources (steps, lines, other rows), fields and the refinements of rows."""

from __future__ import annotations

from ckdn.errors import near
from ckdn.spec import expressions as ex
from ckdn.spec.types import (
    INTEGER_FIELDS,
    JSON,
    TEXT,
    XML,
    Candidate,
    Field,
    Fold,
    Input,
    Leaf,
    LineRule,
    Lines,
    RowSet,
    Step,
    Without,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ckdn.spec.cursor import Cursor

MAX_FIELDS = 64
MAX_RULES = 64
SOURCES = ("each", "lines", "from")
RIDERS = ("between", "per", "otherwise")
REFINEMENTS = ("fields", "where", "dedup", "group", "fold", "leaf", "without")
ROW_KEYS = ("in", *SOURCES, *RIDERS, *REFINEMENTS)
VERBS = ("new", "add", "attach", "set", "unset", "push", "pop", "end", "skip")
CANDIDATE_KEYS = ("get", "of", "lookup", "value", "template")
FIELD_KEYS = (
    *CANDIDATE_KEYS, "on", "first", "match", "replace", "map", "as", "absent", "default", "offset", "under", "args",
    "template_of",
)  # fmt: skip
AS_KINDS = ("int", "number", "percent", "path", "uri")
FOLDS = ("first", "last", "sum", "max", "count", "concat", "any")
NUMBER_FOLDS = ("sum", "max", "count")
OPTION_KEYS = ("type", "enum", "minimum", "maximum", "items", "default", "description")


class Rows:
    """The row sets of one spec while they are read: their scopes, and what is known for messages."""

    def __init__(self, inputs: dict[str, Input], options: dict[str, dict[str, Any]]) -> None:
        self.inputs = inputs
        self.options = options
        self.sets: dict[str, RowSet] = {}
        self.scopes: dict[str, ex.Scope] = {}
        self.declared: tuple[str, ...] = ()
        """Names in the ``rows`` block, so that a mention before the definition resolves."""

    def load(self, name: str, cursor: Cursor, parts: dict[str, Cursor]) -> None:
        """Read one row set (a named one, or the source a finding holds inline)."""
        scope = ex.Scope()
        sources = [key for key in SOURCES if key in parts]
        if len(sources) != 1:
            said = "has no source" if not sources else f"has {' and '.join(sources)}"
            cursor.fail(f"{cursor.named()} {said}", "give exactly one of each, lines, from")
            self.sets[name], self.scopes[name] = RowSet(name), scope
            return
        source = parts[sources[0]]
        row = RowSet(name)
        for rider in RIDERS:
            if rider in parts and sources[0] != "lines":
                parts[rider].fail(f"`{rider}` only goes with `lines`")
        if sources[0] == "from":
            row.origin = self.other(source)
            if row.origin:
                scope = self.scopes[row.origin].copy()
            if "in" in parts:
                parts["in"].fail("`in` does not go with `from`", "the other rows have their input already")
        else:
            given = self.input_for(parts.get("in"), cursor, TEXT if sources[0] == "lines" else "")
            row.input = given.name
            if sources[0] == "lines":
                row.lines = load_lines(source, parts, scope, given, self.options)
            else:
                row.steps = load_steps(source, given.format, scope)
        format = self.inputs[row.input].format if row.input and row.steps else TEXT
        self.refine(row, parts, scope, format)
        self.sets[name], self.scopes[name] = row, scope

    def other(self, cursor: Cursor) -> str:
        """The name of rows that stand before these."""
        name = cursor.text()
        if name and name not in self.sets:
            if name in self.declared:
                cursor.fail(f"{cursor.named()} names rows `{name}`, which are defined later", f"move `{name}` up")
            else:
                cursor.fail(f"{cursor.named()} names unknown rows `{name}`", near(name, self.declared))
            return ""
        return name

    def input_for(self, cursor: Cursor | None, owner: Cursor, wanted: str) -> Input:
        """The input of a source: the one ``in`` names, or the only one that fits."""
        if cursor is not None:
            name = cursor.text()
            if name in self.inputs:
                found = self.inputs[name]
                if wanted and found.format != wanted:
                    cursor.fail(f"`lines` read text, and the input `{name}` is {found.format}")
                elif not wanted and found.format == TEXT:
                    cursor.fail(f"`each` walks json, ndjson or xml, and the input `{name}` is text", "use `lines`")
                return found
            cursor.fail(f"{cursor.named()} names unknown input `{name}`", near(name, self.inputs))
            return Input("", "log")
        fitting = [i for i in self.inputs.values() if (i.format == TEXT) == (wanted == TEXT)]
        listed = [i for i in fitting if i.name != "log"] or fitting
        if len(listed) == 1:
            return listed[0]
        if listed:
            owner.fail(
                f"{owner.named()} has several inputs to read", "say `in:` " + " or ".join(i.name for i in listed)
            )
        else:
            use = "declare one in `inputs`, or use `lines` for text" if wanted != TEXT else "declare a text input"
            owner.fail(f"{owner.named()} has no input it could read", use)
        return Input("", "log", JSON if wanted != TEXT else TEXT)

    def refine(self, row: RowSet, parts: dict[str, Cursor], scope: ex.Scope, format: str) -> None:
        """Read fields, where, dedup, group and fold, leaf, without: in the order in which the engine applies them."""
        if "fields" in parts:
            children = parts["fields"].mapping()
            if len(children) > MAX_FIELDS:
                parts["fields"].fail(f"{len(children)} fields", f"at most {MAX_FIELDS}")
            walks = bool(row.steps)
            row.fields = tuple(self.field(key, c, scope, format if walks else "") for key, c in children.items())
        if "where" in parts:
            row.where = ex.predicate(parts["where"], scope, self.options)
        if "dedup" in parts:
            row.dedup = tuple(ex.field_name(c, scope.fields) for c in parts["dedup"].items(lone=True))
        if "group" in parts:
            row.group = tuple(ex.field_name(c, scope.fields) for c in parts["group"].items(lone=True))
            row.fold = self.folds(parts.get("fold"), scope, row.group)
        elif "fold" in parts:
            parts["fold"].fail("`fold` without `group`", "name the fields to group by")
        if "leaf" in parts:
            row.leaf = self.leaf(parts["leaf"], scope)
        if "without" in parts:
            row.without = self.without(parts["without"], scope)

    def folds(self, cursor: Cursor | None, scope: ex.Scope, group: tuple[str, ...]) -> tuple[Fold, ...]:
        """The folded fields of a group; afterwards rows have the group's fields and these."""
        before, folds = scope.copy(), []
        for name in [n for n in scope.fields if n not in group]:
            scope.fields.pop(name)
            scope.values.pop(name, None)
        for name, child in cursor.mapping().items() if cursor else ():
            verb, field, where, only = self.fold(name, child, before)
            if verb:
                folds.append(Fold(name, verb, field, where, only))
                known = before.fields.get(field)
                kind = "number" if verb in NUMBER_FOLDS else "boolean" if verb == "any" else known
                scope.add(name, None if verb == "concat" and known != "string" else kind, only)
        return tuple(folds)

    def fold(self, name: str, cursor: Cursor, before: ex.Scope) -> tuple[str, str, Any, tuple[Any, ...]]:
        """One fold: a verb alone (the field has the same name), or ``{VERB: field or values, where, only}``."""
        if isinstance(cursor.value, str):
            verb = cursor.choice(FOLDS)
            if verb != "count" and name not in before.fields:
                cursor.fail(
                    f"{cursor.named()} folds the field `{name}`, which does not exist", near(name, before.fields)
                )
            return verb, name if name in before.fields else "", None, ()
        parts = cursor.mapping((*FOLDS, "where", "only"))
        verbs = [v for v in FOLDS if v in parts]
        if len(verbs) != 1:
            cursor.fail(f"{cursor.named()} needs exactly one verb", f"one of {', '.join(FOLDS)}")
            return "", "", None, ()
        child = parts[verbs[0]]
        if isinstance(child.value, list):
            only = tuple(c.scalar() for c in child.items())
            field = name
            if name not in before.fields:
                child.fail(
                    f"{cursor.named()} folds the field `{name}`, which does not exist", near(name, before.fields)
                )
        else:
            field = ex.field_name(child, before.fields)
            only = tuple(c.scalar() for c in parts["only"].items()) if "only" in parts else ()
        where = ex.predicate(parts["where"], before, self.options) if "where" in parts else None
        return verbs[0], field, where, only

    def leaf(self, cursor: Cursor, scope: ex.Scope) -> Leaf:
        """Which rows hide their parents."""
        parts = cursor.mapping(("name", "sep", "depth", "parent", "where"))
        leaf = Leaf("")
        if "name" in parts:
            leaf.name = ex.field_name(parts["name"], scope.fields)
        else:
            cursor.fail("`leaf` needs `name`", "the field that tells the rows apart")
        if ("sep" in parts) == ("depth" in parts):
            cursor.fail("`leaf` needs exactly one of sep and depth")
        if "sep" in parts:
            leaf.separator = parts["sep"].text()
        if "depth" in parts:
            leaf.depth = ex.field_name(parts["depth"], scope.fields)
        if "parent" in parts:
            leaf.parent = parts["parent"].choice(("before", "after"))
        if "where" in parts:
            leaf.where = ex.predicate(parts["where"], scope, self.options)
        return leaf

    def without(self, cursor: Cursor, scope: ex.Scope) -> Without:
        """Which rows are dropped because other rows say the same."""
        parts = cursor.mapping(("rows", "same", "where"))
        if "rows" not in parts or "same" not in parts:
            cursor.fail("`without` needs `rows` and `same`")
            return Without("", ())
        rows = self.other(parts["rows"])
        theirs = self.scopes[rows] if rows else ex.Scope()
        same = tuple(ex.field_name(c, scope.fields) for c in parts["same"].items(lone=True))
        for name in same:
            if rows and name not in theirs.fields:
                parts["same"].fail(f"rows `{rows}` have no field `{name}`", near(name, theirs.fields))
        where = ex.predicate(parts["where"], theirs, self.options) if "where" in parts else None
        return Without(rows, same, where)

    def field(self, name: str, cursor: Cursor, scope: ex.Scope, format: str) -> Field:
        """One field form; afterwards rows have the field. ``format`` is empty for rows without a node."""
        if not name.replace("_", "a").isalnum() or name[0].isdigit():
            cursor.fail(f"`{name}` is no field name", "letters, digits and _")
        if isinstance(cursor.value, str):
            field = Field(name, (self.get(cursor, scope, format),))
            scope.add(name, self.plain_kind(field, scope))
            return field
        parts = cursor.mapping(FIELD_KEYS)
        if "first" in parts:
            for key in CANDIDATE_KEYS:
                if key in parts:
                    parts[key].fail(f"`{key}` beside `first`", "put it into the list")
            candidates = tuple(self.candidate(c, scope, format) for c in parts["first"].items())
        elif "template_of" in parts:
            candidates = (Candidate("of", ex.field_name(parts["template_of"], scope.fields)),)
        else:
            candidates = (self.candidate(cursor, scope, format, parts),)
        field = Field(name, candidates)
        self.refinements(field, parts, scope)
        scope.add(name, self.refined_kind(field, scope), mapped_values(field))
        return field

    def refinements(self, field: Field, parts: dict[str, Cursor], scope: ex.Scope) -> None:
        """match, replace, map, as, absent, default, offset, under and message arguments."""
        if "match" in parts:
            field.match = ex.regex(parts["match"])
        if "replace" in parts:
            pairs = parts["replace"].mapping()
            field.replace = tuple((key_regex(parts["replace"], k), c.text(empty=True)) for k, c in pairs.items())
        if "map" in parts:
            mapping = parts["map"].mapping()
            field.map = tuple((key, c.scalar()) for key, c in mapping.items())
        if "as" in parts:
            field.as_ = parts["as"].choice(AS_KINDS)
        if "absent" in parts:
            field.absent = tuple(c.scalar() for c in parts["absent"].items(lone=True))
        if "default" in parts:
            field.default, field.has_default = parts["default"].scalar(), True
        if "offset" in parts:
            field.offset = parts["offset"].integer()
        if "under" in parts:
            field.under = ex.field_name(parts["under"], scope.fields)
        if ("args" in parts) != ("template_of" in parts):
            given = parts["args"] if "args" in parts else parts["template_of"]
            given.fail("`args` and `template_of` go together")
        elif "args" in parts:
            field.args = ex.field_name(parts["args"], scope.fields)
            field.template_of = parts["template_of"].text()

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
            parts = cursor.mapping((*CANDIDATE_KEYS, "on"))
        kinds = [k for k in CANDIDATE_KEYS if k in parts]
        if len(kinds) != 1:
            said = "nothing to take" if not kinds else " and ".join(kinds)
            cursor.fail(f"{cursor.named()} has {said}", "give exactly one of get, of, first, lookup, value, template")
            return Candidate("value")
        kind, child = kinds[0], parts[kinds[0]]
        if "on" in parts and kind != "lookup":
            parts["on"].fail("`on` only goes with `lookup`")
        if kind == "get":
            return self.get(child, scope, format)
        if kind == "of":
            return Candidate("of", ex.field_name(child, scope.fields))
        if kind == "value":
            return Candidate("value", child.scalar())
        if kind == "template":
            return Candidate("template", ex.template(child, scope.fields))
        return self.lookup(child, parts, scope)

    def lookup(self, cursor: Cursor, parts: dict[str, Cursor], scope: ex.Scope) -> Candidate:
        """``lookup: rows.field`` with ``on: {their: mine}``."""
        rows, _, field = cursor.text().partition(".")
        candidate = Candidate("lookup", rows=rows, field=field)
        if rows not in self.sets:
            later = f"move `{rows}` up" if rows in self.declared else near(rows, self.declared)
            cursor.fail(f"{cursor.named()} looks into unknown or later rows `{rows}`", later)
            return candidate
        theirs = self.scopes[rows].fields
        if field not in theirs:
            cursor.fail(f"rows `{rows}` have no field `{field}`", near(field, theirs))
        if "on" not in parts:
            cursor.fail("`lookup` needs `on`", "on: {their field: my field}")
            return candidate
        pairs = []
        for key, child in parts["on"].mapping().items():
            if key not in theirs:
                child.fail(f"rows `{rows}` have no field `{key}`", near(key, theirs))
            pairs.append((key, ex.field_name(child, scope.fields)))
        candidate.on = tuple(pairs)
        return candidate

    def plain_kind(self, field: Field, scope: ex.Scope) -> str | None:
        """The type of a field that only takes a value."""
        candidate = field.candidates[0]
        if candidate.kind == "of":
            return scope.fields.get(candidate.expression)
        if candidate.kind == "template":
            return "string"
        if candidate.kind == "value":
            return literal_kind(candidate.expression)
        return None

    def refined_kind(self, field: Field, scope: ex.Scope) -> str | None:
        """The type of a field after its refinements."""
        if field.as_ in ("int", "number", "percent"):
            return "number"
        if field.as_ or field.args:
            return "string"
        if field.map is not None:
            kinds = {literal_kind(v) for _, v in field.map}
            return kinds.pop() if len(kinds) == 1 else None
        if field.match or field.replace:
            return "string"
        return self.plain_kind(field, scope) if len(field.candidates) == 1 else None


def literal_kind(value: Any) -> str | None:
    """The predicate type of a constant."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else None


def mapped_values(field: Field) -> tuple[Any, ...]:
    """The values a mapped field can have; empty when any."""
    if field.map is None or field.as_:
        return ()
    values = [v for _, v in field.map]
    return tuple([*values, field.default] if field.has_default else values)


def key_regex(owner: Cursor, key: str) -> str:
    """A regex that stands as a key (of ``replace``)."""
    from ckdn.spec.cursor import Cursor  # the class itself, which the type checker alone needs elsewhere

    return ex.regex(Cursor(owner.document, (*owner.path, key), key, owner.problems))


def load_steps(cursor: Cursor, format: str, scope: ex.Scope) -> tuple[Step, ...]:
    """``each``: an expression, or a list of steps."""
    if isinstance(cursor.value, str):
        return (Step(stream_path(cursor) if format == XML else ex.jmespath(cursor)),)
    steps = []
    for position, item in enumerate(cursor.items()):
        parts = item.mapping(("select", "keep", "index", "entries", "descend", "optional"))
        step = Step(None)
        if "select" not in parts:
            item.fail(f"{item.named()} has no `select`")
        elif format == XML:
            step.select = stream_path(parts["select"]) if position == 0 else ex.xpath(parts["select"])
        else:
            step.select = ex.jmespath(parts["select"])
        keep = parts["keep"].mapping() if "keep" in parts else {}
        step.keep = tuple((name, ex.extraction(c, format)) for name, c in keep.items())
        if "index" in parts:
            step.index = parts["index"].text()
        step.entries = "entries" in parts and parts["entries"].flag()
        if "descend" in parts:
            step.descend = parts["descend"].text()
        step.optional = "optional" in parts and parts["optional"].flag()
        if format == XML and (step.entries or step.descend):
            item.fail("`entries` and `descend` walk json", "in xml use a select with `//` or a deeper path")
        for name in keep:
            scope.add(name, None)
        if step.index:
            scope.add(step.index, "number")
        steps.append(step)
    if not steps:
        cursor.fail(f"{cursor.named()} has no steps")
    return tuple(steps)


def stream_path(cursor: Cursor) -> str:
    """The first select of xml rows: a path the engine can stream (``/a/b`` or ``//name``, predicates on attributes)."""
    text = ex.xpath(cursor)
    if not text:
        return ""
    from ckdn.spec.xml_path import StreamPathError, parse  # only specs with xml inputs

    try:
        parse(text)
    except StreamPathError as e:
        cursor.fail(f"{cursor.named()}: {e}", "start with /a/b or //name; predicates may look at attributes only")
    return text


def load_lines(
    cursor: Cursor, parts: dict[str, Cursor], scope: ex.Scope, given: Input, options: dict[str, dict[str, Any]]
) -> Lines:
    """``lines`` with its riders; the named groups of its rules become fields."""
    items = cursor.items(lone=isinstance(cursor.value, str))
    if len(items) > MAX_RULES:
        cursor.fail(f"{len(items)} rules", f"at most {MAX_RULES}")
    rules = [load_rule(item) for item in items]
    groups = [g for rule in rules for g in rule.groups]
    if given.prefix is not None:
        groups += prefix_groups(given)
    for name in groups:
        scope.add(name, ex.group_kind(name))
    if any(rule.into == "detail" or rule.verb == "attach" for rule in rules):
        scope.add("detail", None)
    if not any(rule.verb == "new" for rule in rules):
        cursor.fail(f"{cursor.named()} has no `new` rule", "a plain text is one")
    for rule, item in zip(rules, items, strict=True):
        if isinstance(item.value, dict) and "where" in item.value:
            rule.where = ex.predicate(item.at("where"), scope, options)
            if rule.verb not in ("add", "attach", "end"):
                item.at("where").fail("`where` asks the open row, so it goes with add, attach or end")
        for name in rule.names:
            if name not in groups:
                item.fail(f"`unset` names `{name}`, which no rule sets", near(name, groups))
    lines = Lines(tuple(rules))
    if "between" in parts:
        between = parts["between"].mapping(("start", "stop"))
        if "start" not in between:
            parts["between"].fail("`between` needs `start`")
        lines.start = ex.regex(between["start"]) if "start" in between else ""
        lines.stop = ex.regex(between["stop"]) if "stop" in between else ""
    if "per" in parts:
        lines.per = ex.field_name(parts["per"], groups, "group")
    if "otherwise" in parts:
        lines.otherwise_end = bool(parts["otherwise"].choice(("end",)))
    return lines


def prefix_groups(given: Input) -> list[str]:
    """The named groups of an input's prefix (its regex is known to compile)."""
    import re2  # only specs with regexes

    return list(re2.compile(given.prefix.match).groupindex) if given.prefix and given.prefix.match else []


def load_rule(cursor: Cursor) -> LineRule:
    """One text rule."""
    if isinstance(cursor.value, str):
        pattern, groups = ex.regex_groups(cursor)
        return LineRule("new", pattern, groups)
    parts = cursor.mapping((*VERBS, "into", "then", "last", "join", "names", "where"))
    verbs = [v for v in VERBS if v in parts]
    if len(verbs) != 1:
        cursor.fail(f"{cursor.named()} needs exactly one verb", f"one of {', '.join(VERBS)}")
        return LineRule("skip", "")
    verb = verbs[0]
    pattern, groups = ex.regex_groups(parts[verb])
    rule = LineRule(verb, pattern, groups)
    if verb in ("set", "push", "add") and pattern and not groups:
        parts[verb].fail(f"`{verb}` without a named group changes nothing", "write (?P<name>…)")
    if "into" in parts:
        rule.into = parts["into"].choice(("detail",))
    if "then" in parts:
        rule.ends = bool(parts["then"].choice(("end",)))
    if "last" in parts:
        rule.last = parts["last"].flag()
    if "join" in parts:
        rule.join = parts["join"].flag()
    for key in ("last", "join"):
        if key in parts and verb != "add":
            parts[key].fail(f"`{key}` only goes with `add`")
    if "names" in parts:
        rule.names = parts["names"].texts(lone=True)
        if verb != "unset":
            parts["names"].fail("`names` only goes with `unset`")
    return rule


__all__ = ["INTEGER_FIELDS", "OPTION_KEYS", "ROW_KEYS", "Rows"]
