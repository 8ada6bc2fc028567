"""Fields of a row: each field form of a spec becomes one closure ``(node, row) -> value``.

A value is text, a number, a boolean, a list or object (only for further ``get``), or None when absent.
"""

from __future__ import annotations

from ckdn import jsonout
from ckdn.clean import clean
from ckdn.engine import jmes
from ckdn.engine.jmes_functions import EvaluationError
from ckdn.engine.source import Refused, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ckdn.spec.types import Candidate, Field

    Row = dict[str, Any]
    Getter = Callable[[Any, Row], Any]
    Lookup = Callable[[tuple[Any, ...]], Any]
    RefineStep = Callable[[Any, Row], Any]


MAX_INTEGER = 10**18


class Context:
    """What expressions of one interpretation share."""

    def __init__(self, options: Mapping[str, Any], rc: int, roots: tuple[str, ...], base: str) -> None:
        self.scope: dict[str, Any] = {"options": dict(options), "rc": rc}
        self.roots = tuple(r for r in (root.replace("\\", "/").rstrip("/") for root in roots) if r)
        """How tools may spell the project root; absolute paths below the first that fits become relative."""
        self.base = base.strip("/")
        """Where the command ran, relative to the root; relative paths are put under it."""
        self.lookup: Callable[[str, str, tuple[str, ...]], Callable[[tuple[Any, ...]], Any]] = self.no_lookup

    def no_lookup(self, rows: str, field: str, keys: tuple[str, ...]) -> Lookup:
        """Rows announce themselves before fields are compiled (see rows.RowSets)."""
        raise LookupError(rows)

    def path(self, text: str) -> str:
        """A path relative to the project root, with forward slashes."""
        path = text.strip().replace("\\", "/")
        if not path:
            return ""
        if path.startswith("file:/"):
            path = from_uri(path)
        elif path[0] == "/" and path[2:4] == ":/":
            path = path[1:]  # /C:/src/a.c
        for root in self.roots:
            if path.startswith(root) and path[len(root) : len(root) + 1] in ("/", ""):
                return normal(path[len(root) + 1 :]) or "."
        if path.startswith("/") or path[1:3] == ":/":
            return path
        return normal(f"{self.base}/{path}" if self.base else path)


def normal(path: str) -> str:
    """A relative path without ``.`` and resolvable ``..`` parts."""
    if "./" not in path and "//" not in path and not path.endswith(("/.", "/..")):
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts) or "."


def from_uri(text: str) -> str:
    """A file URI or a percent-encoded relative one as a path."""
    if text.startswith("file:/"):
        text = text[7:] if text.startswith("file://") else text[5:]  # file:/x is what Java writes
        if not text.startswith("/"):
            text = "/" + text.partition("/")[2]
        if text[2:4] in (":/", ":") and text.startswith("/"):
            text = text[1:]
    if "%" not in text:
        return text
    out, i, data = bytearray(), 0, text.encode("utf-8", "replace")
    while i < len(data):
        digits = data[i + 1 : i + 3]
        if data[i] == 0x25 and len(digits) == 2 and all(c in b"0123456789abcdefABCDEF" for c in digits):
            out.append(int(digits, 16))
            i += 3
        else:
            out.append(data[i])
            i += 1
    return clean(out.decode("utf-8", "replace"))


def compile_field(field: Field, format: str, context: Context) -> Callable[[Any, Row], Any]:
    """The closure of one field; raises :class:`Refused` on a present value that cannot be read."""
    getters = [compile_candidate(c, format, context) for c in field.candidates]
    take = first_present(getters, field.absent)
    before, after = refinements(field, context)
    if not before and not after and not field.has_default:
        return take
    name, default, has_default, absent = field.name, field.default, field.has_default, field.absent

    def refined(node: Any, row: Row) -> Any:
        value = take(node, row)
        for step in before:
            if value is None:
                return None
            value = step(value, row)
        if value is None or (absent and is_absent(value, absent)):
            return None
        for step in after:
            value = step(value, row)
        return value

    def read(node: Any, row: Row) -> Any:
        try:
            value = refined(node, row)
        except (Refused, EvaluationError) as e:
            if not has_default:
                raise Refused(str(e) if isinstance(e, Refused) else f"the field `{name}`: {e}") from None
            value = None
        return default if value is None else value

    return read


def is_absent(value: Any, absent: tuple[Any, ...]) -> bool:
    """Whether a value is one of those that mean absent; 0 and false differ."""
    return any(value == a and isinstance(value, bool) == isinstance(a, bool) for a in absent)


def first_present(getters: list[Getter], absent: tuple[Any, ...]) -> Getter:
    """The first candidate that is present."""
    if len(getters) == 1 and not absent:
        return getters[0]

    def take(node: Any, row: Row) -> Any:
        for get in getters:
            value = get(node, row)
            if value is not None and not (absent and is_absent(value, absent)):
                return value
        return None

    return take


def compile_candidate(candidate: Candidate, format: str, context: Context) -> Getter:
    """One way to get a value."""
    kind, expression = candidate.kind, candidate.expression
    if kind == "get":
        read = node_function(expression, format)
        if format == "xml" and is_boolean(expression):
            return lambda node, row: read(node)
        return lambda node, row: tidy(read(node))
    if kind == "of_row":
        read = jmes.compile(expression)
        return lambda node, row: read(row)
    if kind == "of":
        return lambda node, row: row.get(expression)
    if kind == "value":
        return lambda node, row: expression
    if kind == "template":
        return lambda node, row: render(expression, row) or None
    find = context.lookup(candidate.rows, candidate.field, tuple(theirs for theirs, _ in candidate.on))
    mine = tuple(m for _, m in candidate.on)

    def look(node: Any, row: Row) -> Any:
        key = tuple([row.get(m) for m in mine])
        return None if None in key else find(key)

    return look


def node_function(expression: Any, format: str) -> Callable[[Any], Any]:
    """An extraction expression as a function of a node."""
    if format == "xml":
        from ckdn.engine.xmldoc import value_function  # only specs with xml inputs

        return value_function(expression)
    return jmes.compile(expression)


def is_boolean(expression: str) -> bool:
    """Whether an XPath gives true or false and nothing else, so that there is no text to clean."""
    text = expression.strip()
    return text.startswith(("boolean(", "not(")) and text.find(")") == len(text) - 1


def tidy(value: Any) -> Any:
    """Text without control sequences, also inside lists and objects; everything else as it is."""
    if value is None:
        return None
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else clean(value)
    if isinstance(value, list):
        return [tidy(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): tidy(item) for key, item in value.items()}
    return value


def kept_function(expression: Any, format: str) -> Callable[[Any], Any]:
    """What a step keeps, as a function of its node."""
    read = node_function(expression, format)
    return lambda node: tidy(read(node))


def refinements(field: Field, context: Context) -> tuple[list[RefineStep], list[RefineStep]]:
    """What is done to a present value: match, replace, map, as; and, unless that made it absent, offset and so on."""
    before: list[RefineStep] = []
    if field.match:
        before.append(match_step(field.match))
    for pattern, replacement in field.replace:
        before.append(replace_step(pattern, replacement))
    if field.map is not None:
        before.append(map_step(field.name, field.map))
    path = field.as_ in PATH_KINDS and bool(field.under)
    if field.as_ and not path:
        before.append(AS_STEPS[field.as_](field.name, context))
    after: list[RefineStep] = []
    if field.offset:
        after.append(offset_step(field.name, field.offset))
    if field.under:
        after.append(under_step(field.under))
    if path:  # only the whole path can be told from the root's
        after.append(AS_STEPS[field.as_](field.name, context))
    if field.args:
        after.append(arguments_step(field.args))
    return before, after


def compiled_regex(pattern: str) -> Any:
    """A RE2 pattern over text."""
    import re2  # lazily: only specs with regexes need it

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def match_step(pattern: str) -> Callable[[Any, Row], Any]:
    """Keep what the first group (else the whole match) takes; no match is absent."""
    regex = compiled_regex(pattern)
    group = 1 if regex.groups else 0

    def step(value: Any, row: Row) -> Any:
        found = regex.search(as_text(value))
        return found.group(group) if found else None

    return step


def replace_step(pattern: str, replacement: str) -> Callable[[Any, Row], Any]:
    """Replace every match."""
    regex = compiled_regex(pattern)
    return lambda value, row: regex.sub(replacement, as_text(value))


def map_step(name: str, pairs: tuple[tuple[str, Any], ...]) -> Callable[[Any, Row], Any]:
    """Values by their text; an unmapped one refuses the input unless ``*`` is there."""
    mapping = dict(pairs)
    rest = "*" in mapping
    other = mapping.get("*")

    def step(value: Any, row: Row) -> Any:
        key = as_text(value)
        if key in mapping:
            return mapping[key]
        if rest:
            return other
        raise Refused(f"the field `{name}` has the unknown value {quoted(key)}")

    return step


def bounded(name: str, number: int | float) -> int | float:
    """A number that arithmetic and JSON can carry: finite, an integer of at most 18 digits."""
    if isinstance(number, int):
        if -MAX_INTEGER <= number <= MAX_INTEGER:
            return number
        raise Refused(f"the field `{name}` is out of range")
    if number - number != 0.0:
        raise Refused(f"the field `{name}` is no finite number")
    return number


def as_int(name: str, context: Context) -> Callable[[Any, Row], Any]:
    """An integer, or text that is one."""

    def step(value: Any, row: Row) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return bounded(name, value)
        if isinstance(value, float) and value.is_integer():
            return bounded(name, int(value))
        if isinstance(value, str):
            digits = value.strip()
            if len(digits) <= 40 and digits.isascii() and digits.removeprefix("-").removeprefix("+").isdigit():
                return bounded(name, int(digits))
        raise Refused(f"the field `{name}` is no integer: {quoted(as_text(value))}")

    return step


def number_from(name: str, value: Any) -> int | float:
    """A finite number, or text that is one."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        number: int | float = value
    else:
        text = as_text(value).strip()
        try:
            if len(text) > 40 or not text.isascii() or "_" in text or isinstance(value, bool):
                raise ValueError(text)
            number = int(text) if text.lstrip("+-").isdigit() else float(text)
        except ValueError:
            raise Refused(f"the field `{name}` is no number: {quoted(text)}") from None
    return bounded(name, number)


def as_number(name: str, context: Context) -> Callable[[Any, Row], Any]:
    """A number."""
    return lambda value, row: number_from(name, value)


def as_percent(name: str, context: Context) -> Callable[[Any, Row], Any]:
    """A percentage from ``95%`` or from a rate such as ``0.95``."""

    def step(value: Any, row: Row) -> Any:
        if isinstance(value, str) and value.rstrip().endswith("%"):
            return number_from(name, value.rstrip()[:-1])
        return round(number_from(name, value) * 100, 10)

    return step


def as_path(name: str, context: Context) -> Callable[[Any, Row], Any]:
    """A path relative to the project root."""
    return lambda value, row: context.path(as_text(value))


def as_uri(name: str, context: Context) -> Callable[[Any, Row], Any]:
    """A URI reference as a path."""
    return lambda value, row: context.path(from_uri(as_text(value)))


PATH_KINDS = ("path", "uri")
AS_STEPS: dict[str, Callable[[str, Context], Callable[[Any, Row], Any]]] = {
    "int": as_int,
    "number": as_number,
    "percent": as_percent,
    "path": as_path,
    "uri": as_uri,
}


def offset_step(name: str, offset: int) -> Callable[[Any, Row], Any]:
    """Add a constant (0-based columns)."""

    def step(value: Any, row: Row) -> Any:
        number = number_from(name, value)
        return number + offset

    return step


def under_step(field: str) -> Callable[[Any, Row], Any]:
    """Put a relative path under the folder that another field names."""

    def step(value: Any, row: Row) -> Any:
        folder, text = row.get(field), as_text(value)
        if not folder or text.startswith(("/", "\\")) or text[1:2] == ":" or "://" in text:
            return text
        return f"{str(folder).rstrip('/')}/{text}"

    return step


def arguments_step(field: str) -> Callable[[Any, Row], Any]:
    """Fill ``{0}`` placeholders from a list (SARIF message arguments)."""

    def step(value: Any, row: Row) -> Any:
        given = row.get(field)
        text = as_text(value)
        if isinstance(given, list):
            for i, argument in enumerate(given):
                text = text.replace("{" + str(i) + "}", as_text(argument))
        return text

    return step


def as_text(value: Any) -> str:
    """A value as text: JSON's words for booleans, no decimals on whole numbers."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if value is None:
        return ""
    try:
        return clean(jsonout.dumps(value)) if isinstance(value, list | dict) else str(value)
    except ValueError:
        raise Refused("a number of thousands of digits cannot be written") from None


CLOSERS = {"(": ")", "[": "]", "{": "}", "<": ">", "'": "'", '"': '"', "`": "`"}


def render(parts: tuple[Any, ...], row: Mapping[str, Any]) -> str:
    """A template over a row.

    An absent placeholder vanishes with the text before it, and with the bracket or quote that this text opens; the
    first one with the text after it.
    """
    out = pending = closer = ""
    skip = False
    for part in parts:
        if isinstance(part, str):
            pending = "" if skip else part.removeprefix(closer)
            skip, closer = False, ""
            continue
        value = row.get(part[0])
        if value is None or value == "":
            pending, skip, closer = "", not out, CLOSERS.get(pending[-1:], "")
        else:
            out += pending + as_text(value)
            pending, skip, closer = "", False, ""
    return out + pending
