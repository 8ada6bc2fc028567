"""JSON inputs: a document, the one document inside noise, the items of an array one by one, or a record a line.

Refused, never crashed on: text that is no JSON, text after the document, NaN and infinities, nesting the parser cannot
follow, integers of thousands of digits, a key that stands twice in the root object, more than 256 MiB in one document.
"""

from __future__ import annotations

from ckdn.engine.source import BoundPassed, Refused, quoted
from ckdn.engine.text import TextBlocks, bom_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ckdn.engine.source import Source
    from ckdn.spec.types import Input

MAX_BYTES = 256 << 20
WHITE = " \t\n\r"
NOTHING = object()


def no_constant(word: str) -> Any:
    """NaN and infinities are no JSON."""
    raise ValueError(f"{word} is no JSON")


class JsonText:
    """The text of one JSON source, with the standard library's scanner over it."""

    def __init__(self, source: Source) -> None:
        import json  # only specs with json inputs

        self.name = source.name
        self.text = decoded(source)
        self.decode = json.JSONDecoder(parse_constant=no_constant, strict=False).raw_decode

    def value(self, start: int) -> tuple[Any, int]:
        """The value that starts at ``start``, and where it ends."""
        try:
            return self.decode(self.text, start)
        except RecursionError:
            raise Refused(f"{self.name}: nested too deep") from None
        except ValueError as e:
            raise Refused(f"{self.name}: {self.explained(e)}") from None

    def explained(self, error: ValueError) -> str:
        """A parser's complaint as one line with a position."""
        position = getattr(error, "pos", None)
        if position is None:
            return f"a value cannot be read: {str(error).split(';')[0]}"
        line = self.text.count("\n", 0, position) + 1
        column = position - self.text.rfind("\n", 0, position)
        if position >= len(self.text.rstrip()):
            return f"the JSON is cut off (line {line})" if self.text.strip() else "empty, not JSON"
        return f"not JSON at line {line} column {column}: {quoted(self.text[position : position + 80], 40)}"

    def skip(self, position: int) -> int:
        """The next position that is no white space."""
        text, end = self.text, len(self.text)
        while position < end and text[position] in WHITE:
            position += 1
        return position

    def only_white_after(self, position: int) -> None:
        """Refuse text after the document."""
        position = self.skip(position)
        if position < len(self.text):
            raise Refused(f"{self.name}: text after the JSON document: {quoted(self.text[position:])}")

    def root(self) -> Any:
        """The whole document."""
        start = self.skip(0)
        if self.text[start : start + 1] == "{":
            value, end = self.root_object(start)
        else:
            value, end = self.value(start)
        self.only_white_after(end)
        return value

    def root_object(self, start: int) -> tuple[dict[str, Any], int]:
        """The object at ``start`` key by key, so that a key that stands twice is seen."""
        found: dict[str, Any] = {}
        position = self.skip(start + 1)
        if self.text[position : position + 1] == "}":
            return found, position + 1
        while True:
            if self.text[position : position + 1] != '"':
                self.value(start)  # says what is wrong, in the parser's words
                raise Refused(f"{self.name}: not JSON")
            key, position = self.value(position)
            position = self.skip(position)
            if self.text[position : position + 1] != ":":
                self.value(start)
                raise Refused(f"{self.name}: not JSON")
            value, position = self.value(self.skip(position + 1))
            if key in found:
                raise Refused(f"{self.name}: the key {quoted(key)} stands twice in the root object")
            found[key] = value
            position = self.skip(position)
            mark = self.text[position : position + 1]
            if mark == "}":
                return found, position + 1
            if mark != ",":
                self.value(start)
                raise Refused(f"{self.name}: not JSON")
            position = self.skip(position + 1)

    def items(self) -> Iterator[Any]:
        """The items of a root array, one by one: a large report is never held as a whole."""
        position = self.skip(0)
        if self.text[position : position + 1] != "[":
            raise Refused(f"{self.name}: {self.described(position)}, not an array")
        position = self.skip(position + 1)
        if self.text[position : position + 1] == "]":
            self.only_white_after(position + 1)
            return
        while True:
            value, position = self.value(position)
            yield value
            position = self.skip(position)
            mark = self.text[position : position + 1]
            if mark == "]":
                break
            if mark != ",":
                cut = position >= len(self.text)
                raise Refused(f"{self.name}: " + ("the JSON is cut off" if cut else "not JSON between two items"))
            position = self.skip(position + 1)
        self.only_white_after(position + 1)

    def described(self, position: int) -> str:
        """What stands at a position, for messages."""
        rest = self.text[position : position + 80]
        if not rest:
            return "empty"
        return {"{": "an object", "[": "an array", '"': "a text"}.get(rest[0], f"no JSON: {quoted(rest, 40)}")

    def sliced(self, given: Input) -> Any:
        """The one document of the wanted kind inside noise."""
        opening = "{" if given.slice == "object" else "["
        found: list[Any] = []
        position, work, budget = self.text.find(opening), 0, 4 * len(self.text) + (1 << 20)
        while position >= 0:
            try:
                value, end = self.decode(self.text, position)
            except (ValueError, RecursionError) as e:
                work += max(1, getattr(e, "pos", len(self.text)) - position)
                if work > budget:
                    raise Refused(f"{self.name}: too many unfinished documents in the noise") from None
                position = self.text.find(opening, position + 1)
                continue
            if shape_problem(given, value) is None and (value or not given.root_names):
                found.append(value)
            position = self.text.find(opening, end)
        if not found:
            wanted = f"no JSON {given.slice} with {', '.join(given.root_names)}" if given.root_names else "no JSON"
            raise Refused(f"{self.name}: {wanted} in the output")
        if len(found) > 1:
            raise Refused(f"{self.name}: {len(found)} JSON documents where one was expected")
        return found[0]


def decoded(source: Source) -> str:
    """The text of a JSON source: BOM and the zero bytes of UTF-16 tell the encoding, else UTF-8 with replacement."""
    reader = source.open()
    try:
        chunks, total = [], 0
        while chunk := reader.read(1 << 22):
            total += len(chunk)
            if total > MAX_BYTES:
                raise BoundPassed(f"{source.name} is larger than {MAX_BYTES >> 20} MiB")
            chunks.append(chunk)
    finally:
        reader.close()
    data = b"".join(chunks)
    del chunks
    mark, encoding = bom_of(data[:4])
    if not encoding:
        encoding = "utf-8"
        if data[:1] in (b"{", b"[") and data[1:2] == b"\0":
            encoding = "utf-16-le"
        elif data[:1] == b"\0" and data[1:2] in (b"{", b"["):
            encoding = "utf-16-be"
    text = (data[mark:] if mark else data).decode(encoding, "replace")
    if "\x1b" in text:
        from ckdn.clean import clean  # colour around JSON: rare

        text = clean(text)
    return text


def shape_problem(given: Input, value: Any) -> str | None:
    """Why a root value has not the declared shape; None when it has."""
    wanted = given.root_kind
    if wanted == "array" and not isinstance(value, list):
        return f"{kind_word(value)}, not an array"
    if wanted == "object":
        if not isinstance(value, dict):
            return f"{kind_word(value)}, not an object"
        lacking = [name for name in given.root_names if name not in value]
        if lacking:
            return f"the root object has no {', '.join(f'`{name}`' for name in lacking)}"
    return None


def kind_word(value: Any) -> str:
    """What a JSON value is, with an article."""
    if value is None:
        return "null"
    words = {dict: "an object", list: "an array", str: "a text", bool: "a boolean"}
    return words.get(type(value), "a number")


def load_document(source: Source, given: Input) -> Any:
    """The checked root of one json source."""
    text = JsonText(source)
    value = text.sliced(given) if given.slice else text.root()
    problem = shape_problem(given, value)
    if problem is not None:
        raise Refused(f"{source.name}: {problem}")
    return value


def array_items(source: Source) -> Iterator[Any]:
    """The items of a source whose root must be an array."""
    return JsonText(source).items()


class Records:
    """Iterates over the records of an ndjson source: one JSON object a line."""

    def __init__(self, source: Source, given: Input) -> None:
        self.source = source
        self.given = given
        self.strays = 0
        self.first_stray = ""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        import json  # only specs with ndjson inputs

        decode = json.JSONDecoder(parse_constant=no_constant, strict=False).decode
        number = 0
        for line in raw_lines(self.source):
            number += 1
            stripped = line.strip()
            if not stripped:
                continue
            value: Any = NOTHING
            if stripped[0] == "{":
                try:
                    value = decode(stripped)
                except RecursionError:
                    raise Refused(f"{self.source.name}: line {number} is nested too deep") from None
                except ValueError:
                    if not line.endswith("\n"):
                        raise Refused(f"{self.source.name}: the last record is cut off (line {number})") from None
            if isinstance(value, dict):
                yield value
            else:
                self.stray(stripped, number)

    def stray(self, line: str, number: int) -> None:
        """A line that is no record: refused, or counted."""
        if self.given.stray == "refuse":
            raise Refused(f"{self.source.name}: line {number} is no JSON object: {quoted(line)}")
        self.strays += 1
        self.first_stray = self.first_stray or line


MAX_RECORD = 16 << 20


def raw_lines(source: Source) -> Iterator[str]:
    """The lines of a source, uncut (a record may be long), the last one without newline when the file has none."""
    reader = source.open()
    try:
        carry: list[bytes] = []
        size = 0
        head = True
        encoding = "utf-8"
        while chunk := reader.read(1 << 20):
            if head:
                mark, found = bom_of(chunk[:4])
                if found not in ("", "utf-8"):
                    encoding = found
                    break
                chunk, head = chunk[mark:], False
            lines = chunk.split(b"\n")
            if len(lines) == 1:
                carry.append(chunk)
                size += len(chunk)
                if size > MAX_RECORD:
                    raise BoundPassed(f"a record of {source.name} is larger than {MAX_RECORD >> 20} MiB")
                continue
            yield (b"".join(carry) + lines[0]).decode("utf-8", "replace") + "\n"
            for line in lines[1:-1]:
                yield line.decode("utf-8", "replace") + "\n"
            carry, size = [lines[-1]], len(lines[-1])
        if encoding == "utf-8" and any(carry):
            yield b"".join(carry).decode("utf-8", "replace")
    finally:
        reader.close()
    if encoding != "utf-8":
        for block in TextBlocks(source):
            yield from block.decode("utf-8", "replace").splitlines(keepends=True)
