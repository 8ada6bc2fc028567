"""JSON inputs: a document, the one document inside noise, the items of an array one by one, or a record a line.

Refused, never crashed on: text that is no JSON, text after the document, NaN and infinities, nesting the parser cannot
follow, integers of thousands of digits, a key that stands twice in an object, more than 256 MiB in one document.
"""

from __future__ import annotations

from ckdn.engine.source import BoundPassed, Refused, quoted
from ckdn.engine.text import bom_of, utf8_chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ckdn.engine.source import Source
    from ckdn.spec.types import Input

MAX_BYTES = 256 << 20
WHITE = " \t\n\r"
MAX_RECORD = 16 << 20


def no_constant(word: str) -> Any:
    """NaN and infinities are no JSON."""
    raise ValueError(f"{word} is no JSON")


def finite(text: str) -> float:
    """A number with a fraction or an exponent; 1e999 is none."""
    number = float(text)
    if number - number != 0.0:
        raise ValueError(f"{text[:20]} is out of range")
    return number


class RepeatedKey(ValueError):
    """A key stands twice in one object: which of the two the tool means cannot be known."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise RepeatedKey(f"the key {quoted(twice)} stands twice in one object")
    return found


def decoder() -> Any:
    """The standard library's decoder, strict about numbers and keys, lenient about control characters in strings."""
    import json  # only specs with json inputs

    return json.JSONDecoder(object_pairs_hook=unique, parse_constant=no_constant, parse_float=finite, strict=False)


class JsonText:
    """The text of one JSON source, with the standard library's scanner over it."""

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self.text = decoded(source)
        self.decode = decoder().raw_decode

    def value(self, start: int) -> tuple[Any, int]:
        """The value that starts at ``start``, and where it ends."""
        try:
            value, end = self.decode(self.text, start)
            return value, end
        except RecursionError:
            raise Refused(f"{self.name}: nested too deep") from None
        except RepeatedKey as e:
            raise Refused(f"{self.name}: {e}") from None
        except ValueError as e:
            raise Refused(f"{self.name}: {self.explained(e)}") from None

    def explained(self, error: ValueError) -> str:
        """A parser's complaint as one line with a position."""
        position = getattr(error, "pos", None)
        if position is None:
            return f"a value cannot be read: {str(error).split(';')[0]}"
        line = self.text.count("\n", 0, position) + 1
        column = position - self.text.rfind("\n", 0, position)
        if self.runs_out(error):
            return f"the JSON is cut off (line {line})" if self.text.strip() else "empty, not JSON"
        return f"not JSON at line {line} column {column}: {quoted(self.text[position : position + 80], 40)}"

    def runs_out(self, error: ValueError) -> bool:
        """Whether a value is not there to its end."""
        position = getattr(error, "pos", None)
        if position is None:
            return False
        return str(error).startswith("Unterminated string") or position >= len(self.text.rstrip())

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
        value, end = self.value(start)
        self.only_white_after(end)
        return value

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
        """The one document of the wanted kind inside noise.

        Brackets that cannot begin a document are noise; a document that begins and is broken or cut off is refused, so
        that nothing inside it is taken for the whole.
        """
        opening = "{" if given.slice == "object" else "["
        found: list[Any] = []
        position = self.text.find(opening)
        while position >= 0:
            try:
                value, end = self.decode(self.text, position)
            except RecursionError:
                raise Refused(f"{self.name}: nested too deep") from None
            except RepeatedKey as e:
                raise Refused(f"{self.name}: {e}") from None
            except ValueError as e:
                if self.begins_document(position) or self.runs_out(e):
                    raise Refused(f"{self.name}: {self.explained(e)}") from None
                end = max(position + 1, getattr(e, "pos", 0))
            else:
                if shape_problem(given, value) is None and (value or self.stands_alone(position, end)):
                    found.append(value)
            position = self.text.find(opening, end)
        if not found:
            wanted = f"no JSON {given.slice} with {', '.join(given.root_names)}" if given.root_names else "no JSON"
            raise Refused(f"{self.name}: {wanted} in the output")
        if len(found) > 1:
            raise Refused(f"{self.name}: {len(found)} JSON documents where one was expected")
        return found[0]

    def begins_document(self, position: int) -> bool:
        """Whether what stands here is meant as JSON: an object with a key, or an array of objects."""
        if self.text[position] == "[":
            position = self.skip(position + 1)
            if self.text[position : position + 1] != "{":
                return False
        position = self.skip(position + 1)
        return self.text[position : position + 1] == '"'

    def stands_alone(self, start: int, end: int) -> bool:
        """Whether a value has its lines for itself: an empty one within a line of noise is no report."""
        before = max(self.text.rfind("\n", 0, start), self.text.rfind("\r", 0, start)) + 1
        after = self.text.find("\n", end)
        return not self.text[before:start].strip() and not self.text[end : after if after >= 0 else None].strip()


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
    text = (data[mark:] if mark else data).decode(encoding or encoding_of(data[:4]), "replace")
    return without_colour(text) if "\x1b" in text else text


def without_colour(text: str) -> str:
    """JSON without terminal sequences of the form ``ESC [ 1;31 m``, and nothing else taken away.

    Carriage returns and longer sequences may hold what a tool said; they stay, and make the text no JSON.
    """
    pieces = text.split("\x1b[")
    kept = [pieces[0]]
    for piece in pieces[1:]:
        rest = piece.lstrip("0123456789;:")
        kept.append(rest[1:] if rest[:1].isalpha() else "\x1b[" + piece)
    return "".join(kept)


def encoding_of(head: bytes) -> str:
    """The encoding of JSON without a byte order mark, by where its first bytes are zero (it begins in ASCII)."""
    zeros = "".join("0" if byte == 0 else "x" for byte in head)
    return {"x000": "utf-32-le", "000x": "utf-32-be", "x0x0": "utf-16-le", "0x0x": "utf-16-be"}.get(zeros, "utf-8")


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

    def __init__(self, source: Source, given: Input, on_stray: Callable[[bytes], None] | None = None) -> None:
        self.source = source
        self.given = given
        self.on_stray = on_stray
        self.strays = 0
        self.first_stray = ""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        decode = decoder().decode
        number = 0
        for raw, ended in self.parts():
            number += 1
            line = raw.decode("utf-8", "replace")
            if "\x1b" in line:
                line = without_colour(line)
            line = line.replace("\0", "").strip()
            if not line:
                continue
            value: Any = None
            if line[0] == "{":
                try:
                    value = decode(line)
                except RecursionError:
                    raise Refused(f"{self.source.name}: line {number} is nested too deep") from None
                except RepeatedKey as e:
                    raise Refused(f"{self.source.name}: line {number}: {e}") from None
                except ValueError:
                    if not ended:
                        raise Refused(f"{self.source.name}: the last record is cut off (line {number})") from None
                    if line[1:].lstrip()[:1] in ('"', ""):
                        raise Refused(f"{self.source.name}: line {number} is a broken record: {quoted(line)}") from None
            if value is None:
                self.stray(line, number)
                continue
            yield value

    def parts(self) -> Iterator[tuple[bytes, bool]]:
        """The lines; what carriage returns part is looked at part by part, since each may be a record."""
        for raw, ended in raw_lines(self.source):
            if b"\r" not in raw:
                yield raw, ended
                continue
            pieces = raw.split(b"\r")
            for piece in pieces[:-1]:
                yield piece, True
            yield pieces[-1], ended

    def stray(self, line: str, number: int) -> None:
        """A line that is no record: refused, or counted."""
        if self.given.stray == "refuse":
            raise Refused(f"{self.source.name}: line {number} is no JSON object: {quoted(line)}")
        self.strays += 1
        if self.on_stray is not None:
            self.on_stray(line.encode("utf-8", "replace"))
        self.first_stray = self.first_stray or line


def raw_lines(source: Source) -> Iterator[tuple[bytes, bool]]:
    """The lines of a source in UTF-8, uncut (a record may be long), each with whether it ends in a newline."""
    reader = source.open()
    try:
        carry: list[bytes] = []
        size = 0
        for chunk in utf8_chunks(reader):
            first, *rest = chunk.split(b"\n")
            carry.append(first)
            size += len(first)
            if size > MAX_RECORD:
                raise BoundPassed(f"a record of {source.name} is larger than {MAX_RECORD >> 20} MiB")
            if rest:
                yield b"".join(carry), True
                for line in rest[:-1]:
                    yield line, True
                carry, size = [rest[-1]], len(rest[-1])
        if any(carry):
            yield b"".join(carry), False
    finally:
        reader.close()
