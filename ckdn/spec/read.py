"""YAML and TOML as we accept them: plain JSON values with the line and column of every key.

YAML is read by the 1.2 core schema (``on``, ``no`` and dates are text) with one stricter rule: a number with a leading
zero (``08``) is text. Refused in both formats: what JSON cannot hold, more than 256 KiB, nesting deeper than 32,
integers beyond 64 bits. Refused in YAML: duplicate keys, anchors, aliases, tags, merge keys, keys that are not text,
several documents, tabs outside quoted and block text. All that is wrong is reported at once, as far as reading goes on.

Pure: bytes in, values out. yaml and tomllib are imported where they are used: a warm ``run`` needs neither.
"""

from __future__ import annotations

from ckdn.errors import CkdnError, Problem
from ckdn.model import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any

    KeyPath = tuple[str | int, ...]
    Place = tuple[int, int]

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
INT_BITS = 63

TOO_DEEP = f"the nesting is deeper than {MAX_DEPTH} levels"
TOO_LARGE = "the number is out of range"
TOO_LARGE_MEND = "integers have at most 64 bits; put it in quotes if it is text"


class Document(Struct):
    """One document as plain ``dict list str int float bool None`` values, and where each key stands."""

    value: Any
    """``None`` for an empty YAML document, ``{}`` for an empty TOML one."""
    path: str
    """As shown to the user."""
    kind: str
    """``yaml`` or ``toml``."""
    text: str = ""
    places: dict[KeyPath, Place] | None = None
    """Line and column by key path; found when first asked for in TOML."""

    def where(self, key_path: KeyPath) -> Place:
        """The line and column (1-based) of a key or list item, of its nearest ancestor when it is absent, else 0, 0."""
        if self.places is None:
            self.places = _toml_places(self.text)
        while key_path and key_path not in self.places:
            key_path = key_path[:-1]
        return self.places.get(key_path, (0, 0))

    def problem(self, key_path: KeyPath, what: str, mend: str = "") -> Problem:
        """A problem with the value at ``key_path``, located."""
        line, column = self.where(key_path)
        return Problem(what, path=self.path, line=line, column=column, mend=mend)


def kind_of(path: str) -> str | None:
    """``yaml`` or ``toml`` by the suffix of a file name; ``None`` for any other."""
    lower = path.lower()
    if lower.endswith((".yaml", ".yml")):
        return "yaml"
    return "toml" if lower.endswith(".toml") else None


def read_document(
    data: bytes, path: str, *, kind: str | None = None, integer_keys: bool = False, table: KeyPath = ()
) -> Document:
    """Reads one document; ``kind`` is ``yaml`` or ``toml``, by the suffix of ``path`` when it is not given.

    ``integer_keys`` takes a plain decimal YAML key (``{1: warning}``) as its text, as TOML does; else it is refused.
    ``table`` is the part of a TOML file that is ours: elsewhere in a pyproject.toml dates and the like are no mistakes.
    Raises :class:`CkdnError` with every problem found, each with ``path`` and where possible line and column.
    """
    kind = kind or kind_of(path)
    if kind is None:
        raise CkdnError(Problem("neither YAML nor TOML", path=path, mend="name it .yaml, .yml or .toml"))
    text = _decoded(data, path)
    return _read_toml(text, path, table) if kind == "toml" else _read_yaml(text, path, integer_keys)


def _decoded(data: bytes, path: str) -> str:
    if len(data) > MAX_BYTES:
        raise CkdnError(Problem(f"the file has {len(data)} bytes, more than {MAX_BYTES}", path=path))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CkdnError(Problem("the file is UTF-16", path=path, mend="save it as UTF-8"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # error.object lacks the BOM that the codec took off
        before = error.object[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        bad = error.object[error.start]
        raise CkdnError(
            Problem(
                f"byte 0x{bad:02x} is not UTF-8", path=path, line=line, column=column, mend="save the file as UTF-8"
            )
        ) from None


def _place(text: str, offset: int) -> Place:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


# ---------------------------------------------------------------- YAML


def _read_yaml(text: str, path: str, integer_keys: bool) -> Document:
    import yaml  # 40 ms; a warm run reads no YAML

    reading = _YamlReading(text, path, integer_keys)
    reading.refuse_characters()
    if not reading.problems:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)  # the C parser is ten times as fast, where built
        try:
            while reading.take(loader.get_event()):
                pass
        except yaml.YAMLError as error:
            reading.problems.append(_syntax_problem(error, text, path))
        finally:
            loader.dispose()
    if reading.problems:
        raise CkdnError(reading.problems)
    return Document(reading.value, path, "yaml", text, reading.places)


class _Frame:
    """An open list or mapping. ``key`` is the mapping's key whose value comes next, ``NO_KEY`` before a key."""

    __slots__ = ("key", "node", "path")

    def __init__(self, node: Any, path: KeyPath) -> None:
        self.node = node
        self.path = path
        self.key: Any = NO_KEY


NO_KEY = object()
BAD_KEY: Any = object()
"""Stands for a refused key: its value is read for further problems, the document is refused anyway."""


class _YamlReading:
    """Builds the value from the parser's events, with a stack of its own: no nesting can exhaust Python's."""

    def __init__(self, text: str, path: str, integer_keys: bool) -> None:
        self.text = text
        self.path = path
        self.integer_keys = integer_keys
        self.value: Any = None
        self.places: dict[KeyPath, Place] = {}
        self.problems: list[Problem] = []
        self._stack: list[_Frame] = []
        self._documents = 0
        self._tag_offset = -1
        self._gap = 0 if "\t" in text else -1
        """Where the text since the last scalar begins; -1 when there is no tab to look for."""

    def refuse_characters(self) -> None:
        import re  # yaml has loaded it

        allowed = r"[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
        for found in re.finditer(allowed, self.text):
            line, column = _place(self.text, found.start())
            what = f"the character U+{ord(found.group()):04X} is not allowed"
            mend = "take it out, or write it as an escape in double quotes"
            self.problems.append(Problem(what, path=self.path, line=line, column=column, mend=mend))

    def take(self, event: Any) -> bool:
        """Takes the next event; false when reading ends here."""
        kind = type(event).__name__
        if kind == "ScalarEvent":
            self._refuse_tabs(event)
            self._refuse_marks(event)
            self._scalar(event)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._refuse_marks(event)
            return self._open({} if kind == "MappingStartEvent" else [], event)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._stack.pop()
        elif kind == "AliasEvent":
            self._fault(event, f"the alias *{event.anchor} is not allowed", "write the value out")
            self._put(None, event)
        elif kind == "DocumentStartEvent":
            return self._document(event)
        elif kind == "StreamEndEvent":
            self._refuse_tabs(event)
            return False
        return True

    def _document(self, event: Any) -> bool:
        self._documents += 1
        if self._documents > 1:
            self._fault(event, "a second document begins here", "keep one document in a file")
            return False
        if event.tags or event.version not in (None, (1, 2)):
            self._fault(event, "a directive is not allowed", "take the line that begins with % out")
        return True

    def _open(self, node: Any, event: Any) -> bool:
        if len(self._stack) >= MAX_DEPTH:
            self._fault(event, TOO_DEEP)
            return False
        self._stack.append(_Frame(node, self._put(node, event)))
        return True

    def _scalar(self, event: Any) -> None:
        plain = not event.style and event.tag is None
        if self._stack and isinstance(self._stack[-1].node, dict) and self._stack[-1].key is NO_KEY:
            self._key(event, plain)
            return
        value: Any = event.value
        if plain:
            try:
                value = _core_value(event.value)
            except ValueError as error:
                self._fault(event, *error.args)
        self._put(value, event)

    def _key(self, event: Any, plain: bool) -> None:
        """Takes a scalar as the open mapping's next key."""
        frame = self._stack[-1]
        key = event.value
        if plain and not self._is_text(key):
            what = "an empty key is not allowed" if not key else f"the key {_shown(key)} is not text"
            self._fault(event, what, "write a name" if not key else "put it in quotes")
            key = BAD_KEY
        elif plain and key == "<<":
            self._fault(event, "the merge key << is not allowed", "write the keys out")
            key = BAD_KEY
        elif key in frame.node:
            first = self.places[(*frame.path, key)][0]
            self._fault(event, f"the key {_shown(key)} is here twice, first on line {first}", "keep one of them")
            key = BAD_KEY
        else:
            self.places[(*frame.path, key)] = _mark(event)
        frame.key = key

    def _is_text(self, key: str) -> bool:
        try:
            value = _core_value(key)
        except ValueError:
            return False
        if isinstance(value, int) and not isinstance(value, bool):
            return self.integer_keys and key.isdecimal()
        return isinstance(value, str)

    def _put(self, value: Any, event: Any) -> KeyPath:
        """Puts a value where it belongs; its key path."""
        if not self._stack:
            self.value = value
            self.places[()] = _mark(event)
            return ()
        frame = self._stack[-1]
        if isinstance(frame.node, list):
            path = (*frame.path, len(frame.node))
            frame.node.append(value)
            self.places[path] = _mark(event)
            return path
        if frame.key is NO_KEY:  # a list, a mapping or an alias in the place of a key
            if type(event).__name__ != "AliasEvent":
                self._fault(event, "a list or a mapping is not allowed as a key", "write a name")
            frame.key = BAD_KEY
            return (*frame.path, BAD_KEY)
        path = (*frame.path, frame.key)
        frame.node[frame.key] = value
        frame.key = NO_KEY
        return path

    def _refuse_marks(self, event: Any) -> None:
        """Refuses an anchor or a tag. The parser does not tell of the lone tag ``!``: hence the look at the text."""
        if event.anchor is not None:
            self._fault(event, f"the anchor &{event.anchor} is not allowed", "take it out")
        elif event.tag is not None or self.text.startswith("!", event.start_mark.index):
            offset = event.start_mark.index
            if offset != self._tag_offset:  # a block mapping begins where its first key does
                tag = self.text[offset : offset + 80].split(None, 1)[0]
                self._fault(event, f"the tag {tag} is not allowed", "take it out, and put text in quotes")
            self._tag_offset = offset

    def _refuse_tabs(self, event: Any) -> None:
        """Refuses tabs between scalars and in plain ones; in quotes, blocks and comments they are text."""
        if self._gap < 0:
            return
        start, end = event.start_mark.index, event.end_mark.index
        at = self.text.find("\t", self._gap, start)
        while at >= 0 and "#" in self.text[max(self._gap, self.text.rfind("\n", 0, at) + 1) : at]:
            at = self.text.find("\t", at + 1, start)
        if at < 0 and type(event).__name__ == "ScalarEvent" and not event.style:
            at = self.text.find("\t", start, end)
        if at >= 0:  # the first one since the last scalar tells enough
            self.problems.append(_tab_problem(self.path, *_place(self.text, at)))
        self._gap = max(self._gap, end)

    def _fault(self, event: Any, what: str, mend: str = "") -> None:
        line, column = _mark(event)
        self.problems.append(Problem(what, path=self.path, line=line, column=column, mend=mend))


def _mark(event: Any) -> Place:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")


def _tab_problem(path: str, line: int, column: int) -> Problem:
    return Problem(
        "a tab is not allowed here", path=path, line=line, column=column, mend="use blanks, or quote the text"
    )


_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NOT_FINITE = frozenset(
    (
        *(s + w for s in ("", "+", "-") for w in (".inf", ".Inf", ".INF")),
        ".nan",
        ".NaN",
        ".NAN",
    )  # as the core schema has it
)
_number: re.Pattern[str] | None = None


def _core_value(text: str) -> Any:
    """The value of a plain scalar by the core schema; ``ValueError(what, mend)`` for a number we do not hold."""
    global _number
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if text in _NOT_FINITE:
        raise ValueError(f"{text} is not a number JSON can hold", "put it in quotes if it is text")
    if _number is None:
        import re  # yaml has loaded it

        digits = r"(?:0|[1-9][0-9]*)"
        _number = re.compile(
            rf"(?P<int>[-+]?{digits})|0o(?P<oct>[0-7]+)|0x(?P<hex>[0-9a-fA-F]+)"
            rf"|(?P<float>[-+]?(?:\.[0-9]+|{digits}(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
        )
    found = _number.fullmatch(text)
    if not found or not found.lastgroup:
        return text
    body = found[found.lastgroup]
    if found.lastgroup == "float":
        number = float(body)
        if number - number != 0:
            raise ValueError(TOO_LARGE, "put it in quotes if it is text")
        return number
    base = {"int": 10, "oct": 8, "hex": 16}[found.lastgroup]
    # the length first: int() itself refuses more than 4300 digits, and its time grows with their square
    if len(body) > 100 or not _fits(integer := int(body, base)):
        raise ValueError(TOO_LARGE, TOO_LARGE_MEND)
    return integer


def _fits(integer: int) -> bool:
    return -(1 << INT_BITS) <= integer < 1 << INT_BITS


_SYNTAX = (
    # what PyYAML's two parsers both say, the problem in our words, the mend, whether the context's place says more
    ("maximum nesting", TOO_DEEP, "", False),
    ("mapping values are not allowed", "a second ': ' is not allowed here", "put the text in quotes", False),
    ("expected ':'", "a key needs ': ' behind it", "write KEY: VALUE, or check the indentation", True),
    ("unexpected end of stream", "the quotes that open here are never closed", "close them", True),
    ("unexpected document indicator", "the quotes that open here are never closed", "close them", True),
    ("Unicode character escape", "the escape is no character", "write the character itself", False),
    ("unknown escape", "an unknown escape in double quotes", "use single quotes, or double the backslash", False),
    ("',' or ']'", "the list that opens here is not closed properly", "check its commas and its ]", True),
    ("',' or '}'", "the mapping that opens here is not closed properly", "check its commas and its }", True),
    (
        "expected '-' indicator",
        "this is no item of the list above",
        "begin it with '- ', or check the indentation",
        False,
    ),
    ("expected key", "this does not fit what stands above", "check the indentation and the quotes", False),
    ("expected <block end>", "this does not fit what stands above", "check the indentation and the quotes", False),
    ("<document start>", "this does not fit what stands above", "check the indentation and the quotes", False),
    ("node content", "a value is expected here", "", False),
    (
        "block sequence entries are not allowed",
        "a list item is not allowed here",
        "begin the list on its own line",
        False,
    ),
    ("incompatible YAML document", "a directive is not allowed", "take the line that begins with % out", False),
)


def _syntax_problem(error: Any, text: str, path: str) -> Problem:
    """One line for what PyYAML says in several."""
    said = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "the YAML cannot be read")
    mark: Any = getattr(error, "problem_mark", None)
    context: Any = getattr(error, "context_mark", None)
    what, mend = f"YAML: {said}", ""
    char = text[mark.index : mark.index + 1] if mark is not None else ""
    if mark is not None and char == "\t":
        return _tab_problem(path, mark.line + 1, mark.column + 1)
    if char and "cannot start any token" in said:
        what, mend = f"a value cannot begin with {char!r}", "put the text in quotes"
    else:
        for part, ours, our_mend, at_context in _SYNTAX:
            if part in said:
                what, mend = ours, our_mend
                mark = context if at_context and context is not None else mark
                break
    if mark is None:
        return Problem(what, path=path, mend=mend)
    if mark.index >= len(text):  # the parser's end of text may be a line behind the last one
        line, column = _place(text, len(text.rstrip()))
        return Problem(what, path=path, line=line, column=column, mend=mend)
    return Problem(what, path=path, line=mark.line + 1, column=mark.column + 1, mend=mend)


# ---------------------------------------------------------------- TOML


def _read_toml(text: str, path: str, table: KeyPath) -> Document:
    import tomllib  # 32 ms; a warm run reads no TOML

    text = text.replace("\r\n", "\n")
    if any(line.count(".") >= MAX_DEPTH for line in text.split("\n")):
        # tomllib's time grows with the square of the parts of a dotted key; a look at the keys first keeps it short
        _refuse_depth(text, path)
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CkdnError(_toml_problems(str(error), text, path)) from None
    except RecursionError:
        _refuse_depth(text, path)
        raise CkdnError(Problem(TOO_DEEP, path=path)) from None
    except ValueError:  # only int() raises one: more than 4300 digits
        raise CkdnError(_long_integer(text, path)) from None
    document = Document(value, path, "toml", text)
    problems = _not_json(document, table)
    if problems:
        raise CkdnError(problems)
    return document


def _toml_places(text: str) -> dict[KeyPath, Place]:
    from ckdn.spec.toml_keys import TomlKeys  # reads the text a second time; needed for a message only

    keys = TomlKeys(text, MAX_DEPTH)
    places: dict[KeyPath, Place] = {path: _place(text, offset) for path, offset in keys.offsets.items()}
    return {(): (1, 1), **places} if text else {}


def _refuse_depth(text: str, path: str) -> None:
    from ckdn.spec.toml_keys import TomlKeys  # on the error path

    offset = TomlKeys(text, MAX_DEPTH).too_deep
    if offset >= 0:
        line, column = _place(text, offset)
        raise CkdnError(Problem(TOO_DEEP, path=path, line=line, column=column))


def _not_json(document: Document, table: KeyPath) -> list[Problem]:
    """Dates, infinities, long integers and too deep nesting; with a stack of its own, as the nesting may be any."""
    problems: list[Problem] = []
    value: Any = document.value
    for key in table:
        value = value.get(key) if isinstance(value, dict) else None
    todo: list[tuple[KeyPath, Any]] = [] if value is None else [(table, value)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, dict | list):
            if len(path) >= MAX_DEPTH:
                return [document.problem(path, TOO_DEEP)]
            items = value.items() if isinstance(value, dict) else enumerate(value)
            todo.extend(((*path, key), item) for key, item in items)
        elif isinstance(value, float):
            if value - value != 0:
                problems.append(document.problem(path, f"{value} is not a number JSON can hold"))
        elif isinstance(value, int):
            if not _fits(value):
                problems.append(document.problem(path, TOO_LARGE, TOO_LARGE_MEND))
        elif not isinstance(value, str):
            problems.append(
                document.problem(path, f"a {type(value).__name__} is not a value JSON can hold", "put it in quotes")
            )
    return sorted(problems, key=lambda p: (p.line, p.column))


_TOML_MENDS = (
    # the beginning of tomllib's message, the problem in our words (its own when empty), the mend
    ("Invalid value", "this is no TOML value", "put text in quotes"),
    ("Invalid statement", "this is neither KEY = VALUE nor [TABLE]", ""),
    (
        "Expected '=' after a key",
        "a key needs '=' behind it",
        "write KEY = VALUE; names with other characters need quotes",
    ),
    ("Expected newline or end of document", "the line should end here", "put text in quotes, a comment behind #"),
    ("Expected ']' at the end of a table", "the table's name is not closed", "write [NAME]"),
    ("Unclosed array", "a list is never closed", "write ] behind its last item"),
    ("Unclosed inline table", "an inline table is not closed on its line", "write } behind its last key"),
    ("Unescaped '\\' in a string", "an unknown escape in double quotes", "use single quotes, or double the backslash"),
    ("Illegal character '\\n'", "the quotes are not closed on their line", "close them"),
    ("Unterminated string", "a string is never closed", "close its quotes"),
    ("Invalid initial character for a key part", "a key is expected here", "quote it if it has other characters"),
    ("Cannot overwrite a value", "this key is here twice", "keep one of them"),
    ("Duplicate inline table key", "this key is here twice", "keep one of them"),
    ("Cannot declare", "this table is complete already, or here twice", "write all of it in one place"),
    (
        "Cannot mutate immutable",
        "this adds to a table or list that is complete already",
        "write all of it in one place",
    ),
    ("Cannot redefine namespace", "this table is here twice", "keep one of them"),
)


def _toml_problems(said: str, text: str, path: str) -> list[Problem]:
    """tomllib's one message, located; for a repeated key every repetition, each where the key stands."""
    import re  # tomllib has loaded it

    found = re.fullmatch(r"(?s)(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", said)
    message = found[1] if found else said
    if message.startswith(("Cannot", "Duplicate")):
        repeated = _repeated_keys(text, path)
        if repeated:
            return repeated
    line, column = (
        _place(text, len(text.rstrip())) if found is None or found[2] is None else (int(found[2]), int(found[3]))
    )
    what, mend = f"TOML: {message}", ""
    for start, ours, our_mend in _TOML_MENDS:
        if message.startswith(start):
            what, mend = ours, our_mend
            break
    return [Problem(what, path=path, line=line, column=column, mend=mend)]


def _repeated_keys(text: str, path: str) -> list[Problem]:
    from ckdn.spec.toml_keys import TomlKeys  # on the error path

    problems = []
    repeated = TomlKeys(text, MAX_DEPTH).repeated
    again = {key_path: offset for key_path, offset, _ in reversed(repeated)}
    for key_path, offset, first in repeated:
        if any(again.get(key_path[:length], offset) < offset for length in range(1, len(key_path))):
            continue  # its table is here twice, which is said already
        line, column = _place(text, offset)
        name = _shown(".".join(str(part) for part in key_path))
        what = f"the key {name} is here twice, first on line {_place(text, first)[0]}"
        problems.append(Problem(what, path=path, line=line, column=column, mend="keep one of them"))
    return problems


def _long_integer(text: str, path: str) -> Problem:
    import re  # tomllib has loaded it

    found = re.search(r"(?<!\w)[0-9][0-9_]{4300,}", text)
    line, column = _place(text, found.start()) if found else (0, 0)
    return Problem(TOO_LARGE, path=path, line=line, column=column, mend=TOO_LARGE_MEND)
