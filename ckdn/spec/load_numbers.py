"""Loading what a spec says in numbers: ``declared``, ``summary``, comparisons, guards and gates."""

from __future__ import annotations

from ckdn.errors import near
from ckdn.model import SEVERITIES, Struct
from ckdn.spec import compare
from ckdn.spec import expressions as ex
from ckdn.spec.cursor import short
from ckdn.spec.types import JSON, LOG, XML, Gate, Guard, Number, SummaryItem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ckdn.spec.cursor import Cursor
    from ckdn.spec.load_rows import Rows
    from ckdn.spec.types import Comparison, Spec

MATCH_KEYS = ("match", "take", "in")
NAMED_VERBS = {"get": ("in",), "sum": ("where",), "count": ("where",)}
"""The verbs of a named declared number, each with what may stand beside it."""
DECLARED_KEYS = (*MATCH_KEYS, "name", *NAMED_VERBS, "where")
TAKES = ("last", "sum", "count")
SUMMARY_VERBS = {
    "count": ("where",),
    "sum": ("where",),
    "tally": ("where", "top"),
    "percent": ("else", "digits"),
    "list": ("where", "sort", "show", "limit"),
}
"""The verbs of a summary key, each with what may stand beside it."""
SUMMARY_KEYS = (*SUMMARY_VERBS, "where", "top", "else", "digits", "sort", "show", "limit")
PART_KEYS = ("sum", "count", "where")
GUARD_KEYS = ("absent", "message")
GATE_KEYS = ("number", "min", "max", "label", "unset")
RECORD_WORDS = ("records", "failing")
MAX_DIGITS = 10


class Known(Struct):
    """What is known of a number by its name."""

    can_be_absent: bool = True
    can_be_negative: bool = False
    is_option: bool = False


class AnyNumber(dict[str, Known]):
    """The numbers of a spec where one source of numbers is not understood: every name may be one."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Known:
        return Known()


class Numbers:
    """The numbers of one spec while it is read."""

    def __init__(self, rows: Rows, records: ex.Scope) -> None:
        self.rows = rows
        self.records = records
        self.options = rows.options
        self.known: dict[str, Known] = {}
        self.later: tuple[str, ...] = ()
        """Keys of the summary that are not read yet."""
        self.add_rows()

    def add_rows(self) -> None:
        """The names that rows, records and options give."""
        for name in self.rows.declared:
            self.known[f"rows.{name}"] = Known(False)
        for word in RECORD_WORDS:
            for name in (word, *(f"{word}.{severity}" for severity in SEVERITIES)):
                self.known[name] = Known(False)
        for name, schema in self.options.items():
            if schema.get("type") in ("integer", "number"):
                least = schema.get("minimum")
                negative = not isinstance(least, int | float) or least < 0
                self.known[f"options.{name}"] = Known("default" not in schema, negative, True)

    def add_included(self, name: str, spec: Spec) -> None:
        """The numbers that an included spec gives under its own name."""
        names = [word for base in RECORD_WORDS for word in (base, *(f"{base}.{severity}" for severity in SEVERITIES))]
        names += [f"rows.{row.name}" for row in spec.rows if "[" not in row.name]
        names += [f"declared.{number.name}" for number in spec.declared]
        names += [f"summary.{'.'.join(item.key)}" for item in spec.summary if item.verb not in ("tally", "list")]
        for word in names:  # absent where an optional include has no file
            self.known[f"{name}.{word}"] = Known(can_be_negative=True)

    def blur(self) -> None:
        """A source of numbers is not understood: names are no longer refused."""
        self.known = AnyNumber(self.known)

    # --- names ---------------------------------------------------------------------------------------------------

    def use(self, name: str) -> None:
        """Something looks at a number: its rows or its option are of use."""
        if name.startswith("rows."):
            self.rows.used.add(name.removeprefix("rows."))
        elif name.startswith("options."):
            self.options.used.add(name.removeprefix("options."))

    def name(self, cursor: Cursor) -> str:
        """A number's name that exists."""
        name = cursor.text()
        if name and name not in self.known:
            cursor.fail(f"{cursor.named()} names the number `{short(name)}`, which does not exist", self.mend(name))
        self.use(name)
        return name

    def mend(self, name: str) -> str:
        """What somebody may have meant who names a number that is not there."""
        if name.startswith("summary.") and name.removeprefix("summary.") in self.later:
            return f"`{name}` is defined further down: move it up"
        option = self.options.get(name.removeprefix("options.")) if name.startswith("options.") else None
        if option is not None:
            return f"the option is of type {option.get('type')}, and only integer and number are numbers"
        if name in self.rows.scopes:
            return f"write rows.{name} for how many there are"
        return near(name, self.known)

    def option(self, cursor: Cursor) -> str:
        """``options.x`` of a number option; gives ``x``."""
        name = cursor.text()
        if name and not (name in self.known and self.known[name].is_option):
            known = [n for n, k in self.known.items() if k.is_option]
            mend = near(name, known) or "declare it in `options`, of type integer or number"
            if name in self.options:
                mend = f"write options.{name}"
            elif name.startswith("options.") and name.removeprefix("options.") in self.options:
                mend = self.mend(name)
            cursor.fail(f"{cursor.named()} names `{short(name)}`, which is no option with a number", mend)
            return ""
        self.use(name)
        return name.removeprefix("options.")

    def scope_of(self, cursor: Cursor, target: str) -> ex.Scope:
        """The fields of named rows or of ``records``."""
        if target in RECORD_WORDS:
            return self.records
        self.rows.used.add(target)
        if target and target not in self.rows.scopes:
            known = (*self.rows.declared, *RECORD_WORDS)
            cursor.fail(f"{cursor.named()} names unknown rows `{short(target)}`", near(target, known))
        return self.rows.scope_of(target)

    # --- declared ------------------------------------------------------------------------------------------------

    def load_declared(self, items: list[Cursor], log: str) -> tuple[Number, ...]:
        """``declared``: what the tool says about itself. ``log`` is the input that a match reads by default."""
        numbers: list[Number] = []
        for cursor in items:
            parts = cursor.mapping(DECLARED_KEYS)
            if "match" in parts:
                numbers += self.matched(parts, log)
            elif "name" in parts:
                numbers.append(self.named(cursor, parts))
            else:
                if cursor.sound:
                    cursor.fail(f"{cursor.named()} needs `match` or `name`")
                self.blur()
        for number in numbers:
            found = Known(number.verb != "count", number.verb in ("get", "sum"))
            self.known[f"declared.{number.name}"] = found
        return tuple(numbers)

    def matched(self, parts: dict[str, Cursor], log: str) -> list[Number]:
        """Numbers that stand in a text line; the named groups are their names."""
        for key in parts:
            if key not in MATCH_KEYS:
                parts[key].fail(f"`{key}` beside `match`", "the named groups are the names")
        pattern, groups = ex.regex_groups(parts["match"])
        take = parts["take"].choice(TAKES) if "take" in parts else "last"
        if not pattern:
            self.blur()
        elif not groups:
            parts["match"].fail(f"{parts['match'].named()} has no named group", "write (?P<errors>\\d+)")
            self.blur()
        given = self.match_input(parts.get("in"), log)
        return [Number(name, "match", pattern, take, given) for name in groups]

    def match_input(self, cursor: Cursor | None, log: str) -> str:
        """The input whose lines a match reads, whatever its format: the one named, else ``log``."""
        name = cursor.text() if cursor is not None else log
        self.rows.read.add(name)
        if name not in self.rows.inputs:
            if cursor is not None and name:
                cursor.fail(f"{cursor.named()} names unknown input `{short(name)}`", near(name, self.rows.inputs))
            return LOG
        return name

    def named(self, cursor: Cursor, parts: dict[str, Cursor]) -> Number:
        """``{name, get}``, ``{name, sum: rows.field}`` or ``{name, count: rows}``, the last two with ``where``."""
        name = parts["name"].text()
        if name and not ex.is_name(name):
            parts["name"].fail(f"`{short(name)}` cannot be the name of a number", ex.NAME_MEND)
        verbs = [v for v in NAMED_VERBS if v in parts]
        if len(verbs) != 1:
            if cursor.sound:
                cursor.fail(f"{cursor.named()} needs exactly one of match, {', '.join(NAMED_VERBS)}")
            return Number(name, "get")
        verb = verbs[0]
        only_beside(parts, verb, ("name", *NAMED_VERBS[verb]))
        if verb != "get":
            return self.of_rows(cursor, parts, verb, name)
        given = self.rows.input_for(parts.get("in"), cursor, "`get`", "")
        if given.name and given.format not in (JSON, XML):
            said = f"{parts['get'].named()} reads a whole document, and the input `{given.name}` is {given.format}"
            parts["get"].fail(said, "make rows of its records and `sum` or `count` them")
        return Number(name, "get", input=given.name, expression=ex.extraction(parts["get"], given.format))

    def of_rows(self, cursor: Cursor, parts: dict[str, Cursor], verb: str, name: str) -> Number:
        """A sum over a field of rows, or a count of rows."""
        target, _, field = parts[verb].text().partition(".")
        scope = self.scope_of(parts[verb], target)
        number = Number(name, verb, rows=target, field=field)
        if verb == "sum":
            self.check_field(parts[verb], target, field, scope, numeric=True)
        elif field:
            parts[verb].fail(f"{parts[verb].named()} counts rows, not a field", f"write {target}, and `where`")
        if "where" in parts:
            number.where = ex.predicate(parts["where"], scope, self.options)
        return number

    def check_field(self, cursor: Cursor, target: str, field: str, scope: ex.Scope, *, numeric: bool) -> None:
        """A field of rows as ``rows.field``; a sum wants a number."""
        if not field:
            cursor.fail(f"{cursor.named()} names no field of `{short(target)}`", f"write {short(target)}.FIELD")
        elif field not in scope.fields:
            said = f"{cursor.named()}: `{target}` have no field `{short(field)}`"
            cursor.fail(said, near(field, scope.fields))
        elif numeric and scope.fields.get(field) in ("string", "boolean"):
            said = f"{cursor.named()}: `{target}.{field}` is a {scope.fields[field]}, not a number"
            cursor.fail(said, "give the field `as: int` or `as: number`")

    # --- summary -------------------------------------------------------------------------------------------------

    def load_summary(self, children: dict[str, Cursor], included: tuple[str, ...]) -> tuple[SummaryItem, ...]:
        """``summary``: the numbers of the digest; dotted keys nest."""
        items: list[SummaryItem] = []
        keys = list(children)
        for position, (key, cursor) in enumerate(children.items()):
            self.later = tuple(keys[position:])
            path = tuple(key.split("."))
            if not all(part and ex.is_name(part.replace("-", "_")) for part in path):
                cursor.fail(
                    f"`{short(key)}` cannot be a key of the summary",
                    "write letters, digits, _ and -, with dots between",
                )
            if path[0] in included:
                cursor.fail(f"summary.{short(key)} stands where the included spec `{path[0]}` has its numbers")
            for other in items:
                shorter, longer = sorted((other.key, path), key=len)
                if longer[: len(shorter)] == shorter:
                    cursor.fail(f"summary.{'.'.join(shorter)} is a value and has keys below it", "rename one")
            items.append(self.summary_item(path, cursor))
        self.later = ()
        return tuple(items)

    def summary_item(self, key: tuple[str, ...], cursor: Cursor) -> SummaryItem:
        """One summary form, and the number it gives."""
        item = self.read_summary_item(key, cursor)
        name = f"summary.{'.'.join(key)}"
        if item.verb == "name":
            self.known[name] = self.known.get(item.name, Known())
        elif item.verb in ("count", "sum", "percent"):
            self.known[name] = Known(item.verb != "count", item.verb == "sum")
        return item

    def read_summary_item(self, key: tuple[str, ...], cursor: Cursor) -> SummaryItem:
        """One summary form."""
        if isinstance(cursor.value, str):
            return SummaryItem(key, "name", name=self.name(cursor))
        parts = cursor.mapping(SUMMARY_KEYS)
        given = [v for v in SUMMARY_VERBS if v in parts]
        if len(given) != 1:
            if cursor.sound:
                cursor.fail(f"{cursor.named()} needs exactly one of {', '.join(SUMMARY_VERBS)}, or a number's name")
            return SummaryItem(key, "name")
        verb = given[0]
        only_beside(parts, verb, SUMMARY_VERBS[verb])
        if verb in ("count", "sum"):
            number = self.of_rows(cursor, parts, verb, ".".join(key))
            return SummaryItem(key, verb, number.rows, number.field, number.where)
        item = SummaryItem(key, verb)
        if verb == "percent":
            self.load_percent(item, parts)
            return item
        item.rows, _, item.field = parts[verb].text().partition(".")
        scope = self.scope_of(parts[verb], item.rows)
        if "where" in parts:
            item.where = ex.predicate(parts["where"], scope, self.options)
        if verb == "tally":
            self.check_field(parts[verb], item.rows, item.field, scope, numeric=False)
            item.top = parts["top"].integer(minimum=1) if "top" in parts else 20
            return item
        if item.field:
            parts["list"].fail(f"{parts['list'].named()} lists rows, not a field", f"write {item.rows}, and `show`")
        self.load_list(item, cursor, parts, scope)
        return item

    def load_percent(self, item: SummaryItem, parts: dict[str, Cursor]) -> None:
        """``{percent: [numerator, denominator], else: rows.field, digits}``."""
        pair = parts["percent"].items()
        if isinstance(parts["percent"].value, list) and len(pair) != 2:
            parts["percent"].fail(f"{parts['percent'].named()} takes two numbers", "write [NUMERATOR, DENOMINATOR]")
        item.parts = tuple(self.percent_part(cursor) for cursor in pair)
        if "else" in parts:
            item.otherwise = parts["else"].text()
            target, _, field = item.otherwise.partition(".")
            self.check_field(parts["else"], target, field, self.scope_of(parts["else"], target), numeric=True)
        item.digits = parts["digits"].integer(minimum=0) if "digits" in parts else 2
        if item.digits > MAX_DIGITS:
            parts["digits"].fail(f"{parts['digits'].named()} is {item.digits}", f"it must be at most {MAX_DIGITS}")

    def percent_part(self, cursor: Cursor) -> Number:
        """A number's name, a sum or a count."""
        if isinstance(cursor.value, str):
            return Number(self.name(cursor), "name")
        parts = cursor.mapping(PART_KEYS)
        verbs = [v for v in ("sum", "count") if v in parts]
        if len(verbs) == 1:
            return self.of_rows(cursor, parts, verbs[0], "")
        if cursor.sound:
            cursor.fail(f"{cursor.named()} needs exactly one of sum and count, or is a number's name")
        return Number("", "name")

    def load_list(self, item: SummaryItem, cursor: Cursor, parts: dict[str, Cursor], scope: ex.Scope) -> None:
        """``{list: rows, sort, show, limit}``."""
        if "show" not in parts:
            if cursor.sound:
                cursor.fail(f"{cursor.named()} has no `show`", "name the fields to show")
        else:
            item.show = self.rows.names(parts["show"], scope)
        if "sort" in parts:
            keys = []
            for child in parts["sort"].items(lone=True):
                text = child.text()
                if text and text.removeprefix("-") not in scope.fields:
                    mend = near(text.removeprefix("-"), scope.fields)
                    child.fail(f"{child.named()}: `{short(text)}` is no field of these rows", mend)
                keys.append(text)
            item.sort = tuple(keys)
        if "limit" in parts:
            limit = parts["limit"]
            item.limit = self.option(limit) if isinstance(limit.value, str) else limit.integer(minimum=1)

    # --- comparisons, guards, gates ------------------------------------------------------------------------------

    def comparison(self, cursor: Cursor) -> Comparison | None:
        """A comparison over numbers that exist, and that can be true or false."""
        text = cursor.text()
        if not text:
            return None
        try:
            comparison = compare.parse(text)
        except compare.ComparisonError as e:
            cursor.fail(f"{cursor.named()}: {e}", e.mend, offset=e.offset)
            return None
        names = compare.names(comparison)
        for name in names:
            if name not in self.known:
                said = f"{cursor.named()} names the number `{short(name)}`, which does not exist"
                cursor.fail(said, self.mend(name), offset=word_offset(text, name))
            self.use(name)
        if all(name in self.known for name in names):
            self.check_comparison(cursor, comparison, names)
        return comparison

    def check_comparison(self, cursor: Cursor, comparison: Comparison, names: tuple[str, ...]) -> None:
        """Refuse what is the same for every output."""
        left, right, op = comparison.left, comparison.right, comparison.op
        always, mend = "", ""
        if sorted(map(str, left)) == sorted(map(str, right)):
            always = "true" if op in ("==", "<=", ">=") else "false"
        elif not any(self.known[name].can_be_negative for name in names):
            mend = "none of these numbers is ever negative: compare with 1, or with another number"
            if (right == (0,) and op == ">=") or (left == (0,) and op == "<="):
                always = "true"
            elif (right == (0,) and op == "<") or (left == (0,) and op == ">"):
                always = "false"
        if always:
            cursor.fail(f"{cursor.named()}: `{short(comparison.text)}` is always {always}", mend)
        elif all(self.known[name].is_option for name in names):
            cursor.fail(f"{cursor.named()} compares only options", "compare a number of the tool's output")

    def holds_of_nothing(self, comparison: Comparison) -> bool:
        """Whether a comparison holds where there is no output at all: every count is 0, everything else absent."""
        found: dict[str, int] = {}
        for name in compare.names(comparison):
            known = self.known[name]
            if known.is_option or known.can_be_absent:
                return False
            found[name] = 0
        left, right = (sum(found.get(t, 0) if isinstance(t, str) else t for t in side) for side in sides(comparison))
        return {
            "==": left == right, "!=": left != right, "<": left < right,
            "<=": left <= right, ">": left > right, ">=": left >= right,
        }[comparison.op]  # fmt: skip

    def load_guard(self, cursor: Cursor) -> Guard:
        """A comparison, or ``{absent: number, message}``."""
        if isinstance(cursor.value, str):
            return Guard(self.comparison(cursor))
        parts = cursor.mapping(GUARD_KEYS)
        if "absent" not in parts:
            if cursor.sound:
                cursor.fail(f"{cursor.named()} is neither a comparison nor has `absent`")
            return Guard()
        name = self.name(parts["absent"])
        if name in self.known and not self.known[name].can_be_absent:
            said = f"{parts['absent'].named()}: `{name}` is never absent, so the guard never holds"
            parts["absent"].fail(said, f'write "{name} == 0"')
        message = ex.template(parts["message"], self.known, "number") if "message" in parts else ()
        return Guard(None, name, message)

    def load_gate(self, cursor: Cursor) -> Gate:
        """``{number, min | max: options.x or a constant, label, unset?}``."""
        parts = cursor.mapping(GATE_KEYS)
        ops = [k for k in ("min", "max") if k in parts]
        if len(ops) != 1 or "number" not in parts or "label" not in parts:
            if cursor.sound:
                cursor.fail(f"{cursor.named()} needs `number`, `label` and exactly one of min, max")
            return Gate("", "max", 0, "")
        gate = Gate(self.name(parts["number"]), ops[0], self.limit(parts[ops[0]]), parts["label"].text())
        if gate.number.startswith("options."):
            parts["number"].fail(f"{parts['number'].named()} is an option", "a gate looks at the tool's output")
        if "unset" in parts:
            gate.unset = parts["unset"].text()
            if not isinstance(gate.limit, str) or "default" in self.options.get(gate.limit, {}):
                said = f"{parts['unset'].named()} is never said, for {parts[ops[0]].named()} is always set"
                parts["unset"].fail(said, "take it out")
        return gate

    def limit(self, cursor: Cursor) -> int | float | str:
        """A constant, or the name of an option."""
        if isinstance(cursor.value, str):
            return self.option(cursor)
        if isinstance(cursor.value, int | float) and not isinstance(cursor.value, bool):
            return cursor.value
        cursor.wrong("a number or options.NAME")
        return 0


def sides(comparison: Comparison) -> tuple[tuple[str | int, ...], tuple[str | int, ...]]:
    """Both sides of a comparison."""
    return comparison.left, comparison.right


def only_beside(parts: dict[str, Cursor], verb: str, allowed: tuple[str, ...]) -> None:
    """Refuse keys that mean nothing beside a verb."""
    for key in parts:
        if key != verb and key not in allowed:
            mend = f"beside it go {', '.join(allowed)}" if allowed else "nothing goes beside it"
            parts[key].fail(f"`{key}` does not go with `{verb}`", mend)


def word_offset(text: str, word: str) -> int:
    """Where a whole word of a comparison stands."""
    at = text.find(word)
    while at >= 0:
        after = text[at + len(word) : at + len(word) + 1]
        before = text[at - 1 : at] if at else ""
        if not (after.isalnum() or after in ("_", ".", "-")) and not (before.isalnum() or before in ("_", ".", "-")):
            return at
        at = text.find(word, at + 1)
    return 0
