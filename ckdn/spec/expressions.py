"""Reading the expressions of a spec: regex, JMESPath, XPath, predicates and templates, each compiled once at load.

Every function takes the cursor that stands on the text, reports what is wrong there, and returns what the engine needs.
"""

from __future__ import annotations

from ckdn.errors import near
from ckdn.spec import jmes
from ckdn.spec.cursor import short
from ckdn.spec.jmes import ExpressionError
from ckdn.spec.jmes_functions import FUNCTIONS, TYPE_NAMES
from ckdn.spec.types import INTEGER_FIELDS, XML

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from ckdn.spec.cursor import Cursor

Template = tuple["str | tuple[str]", ...]
MAX_REGEX_BYTES = 8 << 20
"""RE2's memory for one program; a pattern that needs more is refused at load."""
LOOK_AROUND = ("(?=", "(?!", "(?<=", "(?<!")
UNKNOWN = "unknown"
"""In place of a format: which input is meant is not known, so that its expressions are not read."""
RESERVED_FIELDS = ("rc", "options", "true", "false", "null")
"""What these words mean in a predicate, no field can."""
PROBES = ("x", "0", "  }", "Ü: [e] (1) = 'q'", "-- a/b.c:1:2: d")
"""Lines that have nothing in common: what matches all of them matches every line."""


class AnyField(dict[str, "str | None"]):
    """The fields of rows whose source is not understood: every name may be one, so that one mistake is told once."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> None:
        return None


class Scope:
    """The fields a row has so far, with what is known of their types and values."""

    __slots__ = ("fields", "values")

    def __init__(self) -> None:
        self.fields: dict[str, str | None] = {}
        self.values: dict[str, tuple[Any, ...]] = {}

    def add(self, name: str, kind: str | None, values: tuple[Any, ...] = ()) -> None:
        """A field that rows have from here on."""
        self.fields[name] = kind
        if values:
            self.values[name] = values
        else:
            self.values.pop(name, None)

    def merge(self, other: Scope) -> None:
        """Rows of another kind come along: a field keeps the type and the values that both agree on."""
        mine = dict(self.fields)
        if isinstance(other.fields, AnyField):
            self.blur()
        for name, kind in other.fields.items():
            both = (*self.values.get(name, ()), *other.values.get(name, ()))
            known = name in other.values and (name in self.values or name not in mine)
            self.add(name, kind if name not in mine or mine[name] == kind else None, both if known else ())

    def blur(self) -> None:
        """The source is not understood: names are no longer refused."""
        self.fields = AnyField(self.fields)

    def copy(self) -> Scope:
        """An independent copy."""
        other = Scope()
        other.fields = type(self.fields)(self.fields)
        other.values.update(self.values)
        return other


class Options(dict[str, "dict[str, Any]"]):
    """The options of a spec, and which of them something uses."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[str] = set()


# --- regex


def compiled(pattern: str) -> Any:
    """A RE2 program within the loader's bound; raises ``re2.error``."""
    import re2  # lazily: no musl wheel exists, and only specs with regexes need it

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_REGEX_BYTES
    return re2.compile(pattern, options)


def regex_groups(cursor: Cursor, *, line: bool = True) -> tuple[str, tuple[str, ...]]:
    """A RE2 pattern and its named groups; with ``line`` it is matched against one line at a time."""
    pattern = cursor.text()
    if not pattern:
        return "", ()
    import re2  # lazily: see compiled

    try:
        groups = compiled(pattern).groupindex
    except re2.error as e:
        said = e.args[0].decode("utf-8", "replace") if e.args and isinstance(e.args[0], bytes) else str(e)
        what, mend, offset = explained(pattern, said)
        said = f": {what}" if what.startswith("RE2 has no ") else f" is no RE2 regex: {what}"
        cursor.fail(f"{cursor.named()}{said}", mend, offset=offset)
        return "", ()
    if not plain_pattern(cursor, pattern, line) or not named_groups(cursor, pattern, groups):
        return "", ()
    return pattern, tuple(name for name, _ in sorted(groups.items(), key=lambda item: item[1]))


def explained(pattern: str, said: str) -> tuple[str, str, int | None]:
    """RE2's complaint in our words: what, the mend, and where in the pattern if that is known."""
    what, _, part = said.partition(": ")
    offset: int | None = pattern.find(part) if part and pattern.count(part) == 1 else None
    for mark in LOOK_AROUND:
        if mark in pattern:
            mend = "match more and capture the part that is wanted, or put a `skip` rule before"
            return f"RE2 has no look-around {mark}", mend, pattern.find(mark)
    for mark in ("(?P=", *(f"\\{n}" for n in range(1, 10))):
        if mark in pattern and (mark in said or mark == "(?P="):
            return f"RE2 has no backreference {mark}", "write the text out, or match more", pattern.find(mark)
    if "(?>" in pattern:
        return "RE2 has no atomic groups (?>", "write (?:…): RE2 never goes back", pattern.find("(?>")
    if what == "bad repetition operator":
        return f"RE2 has no {part}", "repeat once: RE2 never goes back", offset
    if what.startswith("invalid escape sequence"):
        mend = "write $ at the end" if part in ("\\Z", "\\z") else "see the syntax of RE2"
        return f"{what} {part}", mend, offset
    mends = {
        "missing )": ("close the group, or write \\( for the character", None),
        "unexpected )": ("write \\) for the character", None),
        "missing ]": ("close the set, or write \\[ for the character", offset),
        "no argument for repetition operator": ("write \\ before it for the character", offset),
        "invalid repetition size": ("at most 1000", offset),
        "pattern too large - compile failed": ("use fewer or smaller repetitions", None),
    }
    mend, place = mends.get(what, ("", offset))
    joined = " in " if what.startswith("missing") else " "
    return f"{what}{joined}{short(part)}".strip(), mend, place


def plain_pattern(cursor: Cursor, pattern: str, line: bool) -> bool:
    """Refuse what compiles but can never match: control characters that YAML's double quotes made, line breaks."""
    for offset, char in enumerate(pattern):
        if char < " " and char != "\t" and (line or char != "\n"):
            name = {"\b": "a backspace", "\n": "a line break", "\f": "a form feed"}.get(char, "a control character")
            cursor.fail(
                f"{cursor.named()} holds {name}, which no line has",
                "write regexes in single quotes, where \\ stays what it is",
                offset=offset,
            )
            return False
    if line:
        at = outside_sets(pattern).find("\\n")
        if at >= 0:
            cursor.fail(f"{cursor.named()} looks for a line break, and sees one line at a time", offset=at)
            return False
    return True


def outside_sets(pattern: str) -> str:
    """The pattern with its character sets and escaped backslashes blanked out, at equal offsets."""
    out, i = "", 0
    while i < len(pattern):
        if pattern[i] == "\\":
            out += "  " if pattern[i + 1 : i + 2] in ("\\", "[", "]") else pattern[i : i + 2]
            i += 2
        elif pattern[i] == "[":
            end = set_end(pattern, i)
            out, i = out + " " * (end - i), end
        else:
            out, i = out + pattern[i], i + 1
    return out


def set_end(pattern: str, start: int) -> int:
    """The offset behind the character set that opens at ``start``."""
    i = start + 1
    if pattern[i : i + 1] == "^":
        i += 1
    if pattern[i : i + 1] == "]":
        i += 1
    while i < len(pattern) and pattern[i] != "]":
        if pattern.startswith("[:", i) and ":]" in pattern[i:]:
            i = pattern.index(":]", i) + 2
        else:
            i += 2 if pattern[i] == "\\" else 1
    return i + 1


def named_groups(cursor: Cursor, pattern: str, groups: dict[str, int]) -> bool:
    """Refuse groups whose names are no field names, stand twice or are written in the form RE2 took up late."""
    blanked = outside_sets(pattern)
    for name in groups:
        at = blanked.find(f"(?P<{name}>")
        if at < 0:
            at = blanked.find(f"(?<{name}>")
            cursor.fail(f"{cursor.named()} has the group (?<{name}>", f"write (?P<{name}>", offset=max(at, 0))
            return False
        if not check_name(cursor, name, "a group", offset=at):
            return False
        again = blanked.find(f"(?P<{name}>", at + 1)
        if again >= 0:
            cursor.fail(f"{cursor.named()} has the group `{name}` twice", "name them differently", offset=again)
            return False
    return True


def regex(cursor: Cursor, *, line: bool = True) -> str:
    """A RE2 pattern."""
    return regex_groups(cursor, line=line)[0]


def alternatives(pattern: str, group: str) -> tuple[str, ...]:
    """The only texts a named group can have, when it is written as plain words: ``(?P<severity>error|warning)``."""
    start = pattern.find(f"(?P<{group}>")
    if start < 0 or "(?i" in pattern:
        return ()
    start += len(group) + 5
    end = start
    while end < len(pattern) and (pattern[end].isalnum() or pattern[end] in " _-|"):
        end += 1
    words = tuple(pattern[start:end].split("|"))
    return words if pattern[end : end + 1] == ")" and all(words) else ()


def takes_everything(pattern: str) -> bool:
    """Whether a pattern is found in every line that is not blank."""
    search = compiled(pattern).search
    return bool(pattern) and all(search(line) is not None for line in PROBES)


def replacement(cursor: Cursor, pattern: str) -> str:
    """The text that replaces a match: ``\\1`` and ``\\g<name>`` are its groups."""
    text = cursor.text(empty=True)
    if not pattern or "\\" not in text:
        return text
    program = compiled(pattern)
    i = 0
    while (i := text.find("\\", i)) >= 0:
        mark = text[i + 1 : i + 2]
        name = text[i + 3 : text.find(">", i)] if text.startswith("\\g<", i) and ">" in text[i:] else None
        if name is not None and (name in program.groupindex or (name.isdecimal() and int(name) <= program.groups)):
            i += len(name) + 4
        elif mark in ("\\", "n", "t") or (mark.isdecimal() and int(mark) <= program.groups and name is None):
            i += 2
        else:
            said = text[i : i + 2] if name is None else f"\\g<{name}>"
            cursor.fail(f"{cursor.named()} names the group {said}, which the regex does not have", offset=i)
            return ""
    return text


# --- names

NAME_MEND = "write letters, digits and _, a letter or _ first"
RESERVED_MEND = "take another name: predicates have this one for something else"


def is_name(text: str) -> bool:
    """Whether a text can be the name of a field."""
    return bool(text) and text.isascii() and text.replace("_", "a").isalnum() and not text[0].isdigit()


def check_name(cursor: Cursor, name: str, what: str = "a field", *, offset: int | None = None) -> bool:
    """Whether a new name is one that expressions can use."""
    if is_name(name) and name not in RESERVED_FIELDS:
        return True
    mend = RESERVED_MEND if name in RESERVED_FIELDS else NAME_MEND
    cursor.fail(f"`{short(name)}` cannot be the name of {what}", mend, offset=offset)
    return False


def field_name(cursor: Cursor, fields: Collection[str], what: str = "field") -> str:
    """The name of a field that exists."""
    name = cursor.text()
    if name and name not in fields:
        what = f"{cursor.named()} names the {what} `{short(name)}`, which does not exist here"
        cursor.fail(what, near(name, fields))
    return name


# --- extraction


def extraction(cursor: Cursor, format: str) -> Any:
    """An expression in the input's own language: XPath text for xml, a JMESPath AST else."""
    if format == UNKNOWN:
        return None
    return xpath(cursor) if format == XML else jmespath(cursor)


def jmespath(cursor: Cursor) -> Any:
    """A JMESPath expression over a document or one of its nodes."""
    text = cursor.text()
    try:
        return jmes.parse(text) if text else None
    except ExpressionError as e:
        cursor.fail(f"{cursor.named()}: {e}", e.mend, offset=e.offset)
        return None


def xpath(cursor: Cursor) -> str:
    """An XPath 1.0 expression."""
    text = cursor.text()
    if not text:
        return ""
    from ckdn.spec.xml_path import StreamPathError, check_names  # only specs with xml inputs

    try:
        check_names(text)
        evaluate_probe(text)
    except StreamPathError as e:
        cursor.fail(f"{cursor.named()}: {e}", e.mend, offset=e.offset)
        return ""
    except ValueError as e:
        cursor.fail(f"{cursor.named()} is no XPath 1.0: {e} in `{short(text)}`")
        return ""
    return text


def evaluate_probe(text: str) -> Any:
    """The value of an XPath on an empty element, whose type is that of the expression. Raises ValueError."""
    from lxml import etree  # only specs with xml inputs need it

    try:
        return etree.XPath(text, regexp=False, smart_strings=False)(etree.Element("probe"))
    except etree.XPathError as e:
        raise ValueError(str(e).lower()) from None


def kind_of_value(expression: Any, format: str) -> str | None:
    """The type of what an extraction gives when it gives anything; None when that is not known."""
    if expression is None or expression == "":
        return None
    if format == XML:
        found = evaluate_probe(expression)
        return "boolean" if isinstance(found, bool) else "number" if isinstance(found, float) else "string"
    kind = expression[0]
    if kind == "not" or (kind == "cmp" and expression[1] in ("eq", "ne")):
        return "boolean"
    if kind == "literal":
        return literal_kind(expression[1])
    return TYPE_NAMES.get(FUNCTIONS[expression[1]][2]) if kind == "call" else None


def literal_kind(value: Any) -> str | None:
    """The predicate type of a constant."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else None


def root_needs(ast: Any) -> str:
    """What a JMESPath expression must be given to find anything: ``object``, ``array``, or empty for either."""
    while isinstance(ast, tuple) and ast:
        if ast[0] == "chain":
            ast = ast[1][0]
        elif ast[0] in ("flatten", "project", "filter"):
            if ast[1][0] == "current":
                return "array"
            ast = ast[1]
        else:
            return {"field": "object", "index": "array", "slice": "array"}.get(ast[0], "")
    return ""


# --- rows


def predicate(cursor: Cursor, scope: Scope, options: Options) -> Any:
    """A predicate over a flat row: its names must be fields of that row, ``options.<declared>`` or ``rc``."""
    text = cursor.text()
    if not text:
        return None
    try:
        ast = jmes.parse_predicate(text, scope.fields, values=scope.values, options=options)
    except ExpressionError as e:
        cursor.fail(f"{cursor.named()}: {e}", e.mend, offset=e.offset)
        return None
    options.used.update(options_in(ast))
    return ast


def options_in(ast: Any) -> set[str]:
    """The options that a predicate asks."""
    if not isinstance(ast, tuple) or not ast:
        return set()
    if ast[0] == "option":
        return {ast[1]}
    return {name for part in ast if ast[0] != "literal" for name in options_in(part)}


def row_expression(cursor: Cursor, scope: Scope) -> Any:
    """``get`` over a flat row (text and derived rows): JMESPath whose names are fields of the row."""
    ast = jmespath(cursor)
    if ast is not None:
        for name in sorted(jmes.names_used(ast)):
            if name not in scope.fields:
                cursor.fail(
                    f"{cursor.named()} names `{short(name)}`, which is no field so far", near(name, scope.fields)
                )
        refuse_below(cursor, ast, scope)
    return ast


def refuse_below(cursor: Cursor, ast: Any, scope: Scope) -> None:
    """A text, number or boolean has nothing below it: such a path is always null."""
    if ast[0] == "chain" and ast[1][0][0] == "field" and ast[1][1][0] in ("field", "index", "slice"):
        kind = scope.fields.get(ast[1][0][1])
        if kind in ("string", "number", "boolean"):
            said = f"{cursor.named()}: `{ast[1][0][1]}` is a {kind}, and nothing is below it"
            cursor.fail(said, "take the field itself, with `match` for a part of it")


def template(cursor: Cursor, fields: Collection[str], what: str = "field") -> Template:
    """A text with ``{field}`` placeholders as parts: literals are texts, placeholders one-tuples. ``{{`` is a brace."""
    text = cursor.text()
    parts: list[str | tuple[str]] = []
    literal, i = "", 0
    while i < len(text):
        if text[i : i + 2] in ("{{", "}}"):
            literal, i = literal + text[i], i + 2
        elif text[i] == "}":
            cursor.fail(f"{cursor.named()} has a brace that was not opened", "write }} for a brace", offset=i)
            return ()
        elif text[i] == "{":
            end = text.find("}", i)
            name = text[i + 1 : end]
            if end < 0:
                cursor.fail(f"{cursor.named()} has a brace that is not closed", "write {{ for a brace", offset=i)
                return ()
            if name not in fields:
                said = f"{cursor.named()} names the {what} `{short(name)}`, which does not exist here"
                cursor.fail(said, near(name, fields), offset=i)
            if literal:
                parts.append(literal)
            parts.append((name,))
            literal, i = "", end + 1
        else:
            literal, i = literal + text[i], i + 1
    if literal:
        parts.append(literal)
    return tuple(parts)


def group_kind(name: str) -> str:
    """The type of a named group of a text rule."""
    return "number" if name in INTEGER_FIELDS else "string"
