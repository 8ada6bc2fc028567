"""Where the keys of a TOML text stand. tomllib keeps no positions, so this reads the text a second time.

Used on the error path only, and never to decide what a value is: it follows keys, tables, brackets and strings, takes
everything else for a value, and gives up quietly at the first thing it cannot follow (tomllib has the word there).
"""

from __future__ import annotations

import re  # this module is loaded on the error path only, beside tomllib, which has loaded re already

TYPE_CHECKING = False
if TYPE_CHECKING:
    KeyPath = tuple[str | int, ...]

BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
SPACE = re.compile(r"[ \t]*")
OPENING = re.compile(r"\[{1,2}")
CLOSING = re.compile(r"\]{0,2}")
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
STRINGS = (
    re.compile(r'"""(?:[^\\"]|\\.|"(?!""))*"{3,5}', re.DOTALL),
    re.compile(r"'''(?:[^']|'(?!''))*'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
PLAIN_VALUE = re.compile(r"[^,\]}\n#]+")


class TomlKeys:
    """The key paths of ``text`` with their offsets.

    ``offsets``: key path → offset of the key (of the last part of a dotted key or table name), of list items too.
    ``repeated``: key path, offset and offset of the first one, for every key or table that is there twice.
    ``too_deep``: the offset where the nesting passes ``max_depth``, -1 when it does not.
    """

    def __init__(self, text: str, max_depth: int) -> None:
        self.text = text
        self.max_depth = max_depth
        self.offsets: dict[KeyPath, int] = {}
        self.repeated: list[tuple[KeyPath, int, int]] = []
        self.too_deep = -1
        self._given: dict[KeyPath, int] = {}
        """Paths that were given a value or a [table] header, so that a second one is a repetition."""
        self._tables: dict[KeyPath, int] = {}
        """How many [[tables]] each path has so far."""
        self._pos = 0
        self._scan()

    def _scan(self) -> None:
        header: KeyPath = ()
        while self.too_deep < 0:  # reading on would cost the square of the nesting
            self._take(BLANK)
            if self._pos >= len(self.text):
                return
            opening = self._take(OPENING)
            if opening:
                found = self._header(is_list=len(opening) > 1)
                if found is None:
                    return
                header = found
                self._take(CLOSING)
            elif not self._statement(header):
                return

    def _header(self, *, is_list: bool) -> KeyPath | None:
        """Reads ``a.b]`` of a table header; the path with the index of each [[table]] put in."""
        parts = self._key()
        if not parts:
            return None
        path: KeyPath = ()
        for name, offset in parts[:-1]:
            path = self._note((*path, name), offset)
            if path in self._tables:
                path = (*path, self._tables[path] - 1)
        name, offset = parts[-1]
        path = self._note((*path, name), offset)
        if is_list:
            self._tables[path] = self._tables.get(path, 0) + 1
            return self._note((*path, self._tables[path] - 1), offset)
        self._give(path, offset)
        return path

    def _statement(self, base: KeyPath) -> bool:
        """Reads ``key = value`` below ``base``; false when it is no such thing."""
        target = self._assignment(base)
        return target is not None and self._value(target)

    def _assignment(self, base: KeyPath) -> KeyPath | None:
        """Reads ``a.b =`` and notes its parts."""
        parts = self._key()
        self._take(SPACE)
        if not parts or not self._take_char("="):
            return None
        path = base
        for name, offset in parts:
            path = self._note((*path, name), offset)
        self._give(path, parts[-1][1])
        return path

    def _value(self, path: KeyPath) -> bool:
        """Passes one value; brackets are followed with a list of their own, so that no nesting is too deep for us."""
        open_: list[tuple[str, KeyPath, int]] = []
        target = path
        while True:
            self._take(BLANK)
            char = self.text[self._pos : self._pos + 1]
            if not char:
                return False
            if char in "[{":
                open_.append((char, target, 0))
                self._check_depth(len(target) + 1, self._pos)
                if self.too_deep >= 0:
                    return False
                self._pos += 1
            elif char not in ",]}" and not self._scalar():
                return False
            closed = self._between(open_)
            if closed is None:
                return False
            if not open_:
                return True
            target = closed

    def _between(self, open_: list[tuple[str, KeyPath, int]]) -> KeyPath | None:
        """From behind a value or an opening bracket to the next value: its key path; None where it cannot follow."""
        while open_:
            self._take(BLANK)
            char = self.text[self._pos : self._pos + 1]
            bracket, path, index = open_[-1]
            if char in ("]", "}"):
                self._pos += 1
                open_.pop()
            elif char == ",":
                self._pos += 1
                open_[-1] = (bracket, path, index + 1)
            elif not char:
                return None
            elif bracket == "{":
                return self._assignment(path)
            else:
                return self._note((*path, index), self._pos)
        return ()

    def _scalar(self) -> bool:
        for pattern in STRINGS:
            if self._take(pattern):
                return True
        return bool(self._take(PLAIN_VALUE))

    def _key(self) -> list[tuple[str, int]]:
        """The parts of a dotted key with their offsets; empty when there is none."""
        parts: list[tuple[str, int]] = []
        while True:
            self._take(SPACE)
            start = self._pos
            raw = self._take(BARE_KEY) or self._take(STRINGS[2]) or self._take(STRINGS[3])
            if not raw:
                return []
            parts.append((_unquoted(raw), start))
            self._check_depth(len(parts), start)
            if len(parts) > self.max_depth:
                return []
            self._take(SPACE)
            if not self._take_char("."):
                return parts

    def _note(self, path: KeyPath, offset: int) -> KeyPath:
        self.offsets.setdefault(path, offset)
        self._check_depth(len(path), offset)
        return path

    def _give(self, path: KeyPath, offset: int) -> None:
        if path in self._given:
            self.repeated.append((path, offset, self._given[path]))
        elif path in self._tables:
            self.repeated.append((path, offset, self.offsets[path]))
        else:
            self._given[path] = offset

    def _check_depth(self, depth: int, offset: int) -> None:
        if depth > self.max_depth and self.too_deep < 0:
            self.too_deep = offset

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self._pos)
        if not found:
            return ""
        self._pos = found.end()
        return found.group()

    def _take_char(self, char: str) -> bool:
        if self.text.startswith(char, self._pos):
            self._pos += 1
            return True
        return False


def _unquoted(raw: str) -> str:
    if raw[0] == "'":
        return raw[1:-1]
    if raw[0] != '"':
        return raw
    if "\\" not in raw:
        return raw[1:-1]
    import tomllib  # loaded already where a document was read; this is the error path

    try:
        value = tomllib.loads(f"k = {raw}")["k"]
    except tomllib.TOMLDecodeError:
        return raw[1:-1]
    return value if isinstance(value, str) else raw[1:-1]
