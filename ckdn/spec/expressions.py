"""Reading the expressions of a spec: regex, JMESPath, XPath, predicates and templates, each compiled once at load.

Every function takes the cursor that stands on the text, reports what is wrong there, and returns what the engine needs.
"""

from __future__ import annotations

from ckdn.errors import near
from ckdn.spec import jmes
from ckdn.spec.jmes import ExpressionError
from ckdn.spec.types import INTEGER_FIELDS, XML

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ckdn.spec.cursor import Cursor

Template = tuple["str | tuple[str]", ...]
MAX_REGEX_BYTES = 1 << 20
"""RE2's memory for one program; a pattern that needs more is refused at load."""


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

    def copy(self) -> Scope:
        """An independent copy."""
        other = Scope()
        other.fields.update(self.fields)
        other.values.update(self.values)
        return other


def regex_groups(cursor: Cursor) -> tuple[str, tuple[str, ...]]:
    """A RE2 pattern and its named groups."""
    pattern = cursor.text()
    if not pattern:
        return "", ()
    import re2  # lazily: no musl wheel exists, and only specs with regexes need it

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_REGEX_BYTES * 8
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as e:
        said = e.args[0].decode("utf-8", "replace") if e.args and isinstance(e.args[0], bytes) else str(e)
        hint = ""
        if "(?=" in pattern or "(?!" in pattern or "(?<=" in pattern or "(?<!" in pattern:
            hint = "RE2 has no look-around: match more and capture the part that is wanted, or put a `skip` rule before"
        elif "\\1" in pattern or "(?P=" in pattern:
            hint = "RE2 has no backreferences"
        cursor.fail(f"{cursor.named()} is no RE2 regex: {said}", hint)
        return "", ()
    groups = sorted(compiled.groupindex.items(), key=lambda item: item[1])
    return pattern, tuple(name for name, _ in groups)


def regex(cursor: Cursor, *, groups: bool = False) -> str:
    """A RE2 pattern; with ``groups`` it must have a named group."""
    pattern, names = regex_groups(cursor)
    if groups and pattern and not names:
        cursor.fail(f"{cursor.named()} has no named group", "write (?P<name>…)")
    return pattern


def extraction(cursor: Cursor, format: str) -> Any:
    """An expression in the input's own language: XPath text for xml, a JMESPath AST else."""
    return xpath(cursor) if format == XML else jmespath(cursor)


def jmespath(cursor: Cursor) -> Any:
    """A JMESPath expression over a document or one of its nodes."""
    text = cursor.text()
    try:
        return jmes.parse(text) if text else None
    except ExpressionError as e:
        cursor.fail(f"{cursor.named()} is no JMESPath: {e}")
        return None


def xpath(cursor: Cursor) -> str:
    """An XPath 1.0 expression."""
    text = cursor.text()
    if not text:
        return ""
    from lxml import etree  # only specs with xml inputs need it

    try:
        compiled = etree.XPath(text, regexp=False, smart_strings=False)
        compiled(etree.Element("probe"))
    except (etree.XPathError, ValueError) as e:
        cursor.fail(f"{cursor.named()} is no XPath 1.0: {e} in `{text}`")
        return ""
    return text


def predicate(cursor: Cursor, scope: Scope, options: dict[str, dict[str, Any]]) -> Any:
    """A predicate over a flat row: its names must be fields of that row, ``options.<declared>`` or ``rc``."""
    text = cursor.text()
    if not text:
        return None
    try:
        return jmes.parse_predicate(text, scope.fields, values=scope.values, options=options)
    except ExpressionError as e:
        cursor.fail(f"{cursor.named()}: {e}")
        return None


def row_expression(cursor: Cursor, scope: Scope) -> Any:
    """``get`` over a flat row (text and derived rows): JMESPath whose names are fields of the row."""
    ast = jmespath(cursor)
    if ast is not None:
        for name in jmes.names_used(ast):
            if name not in scope.fields:
                cursor.fail(f"{cursor.named()} names `{name}`, which no earlier field has", near(name, scope.fields))
    return ast


def field_name(cursor: Cursor, fields: Iterable[str], what: str = "field") -> str:
    """The name of a field that exists."""
    name = cursor.text()
    names = list(fields)
    if name and name not in names:
        cursor.fail(f"{cursor.named()} names the {what} `{name}`, which does not exist here", near(name, names))
    return name


def template(cursor: Cursor, fields: Iterable[str]) -> Template:
    """A text with ``{field}`` placeholders as parts: literals are texts, placeholders one-tuples. ``{{`` is a brace."""
    text = cursor.text()
    parts: list[str | tuple[str]] = []
    known = list(fields)
    literal, i = "", 0
    while i < len(text):
        if text[i : i + 2] in ("{{", "}}"):
            literal, i = literal + text[i], i + 2
        elif text[i] == "{":
            end = text.find("}", i)
            name = text[i + 1 : end] if end > 0 else text[i + 1 :]
            if end < 0:
                cursor.fail(f"{cursor.named()} has a brace that is not closed", "write {{ for a brace")
            elif name not in known:
                cursor.fail(f"{cursor.named()} names the field `{name}`, which does not exist here", near(name, known))
            if literal:
                parts.append(literal)
            parts.append((name,))
            literal, i = "", (end + 1 if end > 0 else len(text))
        else:
            literal, i = literal + text[i], i + 1
    if literal:
        parts.append(literal)
    return tuple(parts)


def group_kind(name: str) -> str:
    """The type of a named group of a text rule."""
    return "number" if name in INTEGER_FIELDS else "string"
