"""XML inputs: streamed with lxml, so that a report of a million elements is read in flat memory.

Nothing is fetched and no DTD is loaded; entity declarations are refused, a plain DOCTYPE is fine. Names are compared
without namespaces. A *trigger* is the path of one row source: its elements are handed over when they end, with their
ancestors' attributes still there, and freed.
"""

from __future__ import annotations

from ckdn.engine.source import BoundPassed, Refused, quoted
from ckdn.engine.text import bom_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ckdn.engine.source import Reader, Source
    from ckdn.spec.types import Input
    from ckdn.spec.xml_path import PathStep

PROLOG_BYTES = 1 << 16
CHUNK_BYTES = 1 << 18
MAX_ELEMENT_DEPTH = 256
MAX_BYTES = 256 << 20
"""Of a document that is read as a whole."""
ENCODINGS = (
    "utf-8", "utf8", "utf-16", "utf-32", "us-ascii", "ascii", "iso-8859-", "iso8859-", "latin", "windows-125", "cp125",
    "koi8-", "shift_jis", "euc-", "gb", "big5",
)  # fmt: skip
"""Encodings whose markup is plain ASCII, by how their names start: only in those can the prolog be searched."""
CONTROLS = bytes(b for b in range(32) if b not in (9, 10, 13))


class Trigger:
    """One streamed path and what happens with its elements."""

    def __init__(self, path: str, deep: bool, handle: Callable[[Any], None]) -> None:
        from ckdn.spec import xml_path  # only specs with xml inputs

        self.paths = xml_path.parse(path)
        self.deep = deep
        """Its expressions look below the element, so what is inside must live until it ends."""
        self.handle = handle
        self.names = {steps[-1].name for steps in self.paths}

    def matches(self, element: Any) -> bool:
        """Whether the element is one of this trigger's."""
        return any(matches(element, steps) for steps in self.paths)


def local(element: Any) -> str:
    """An element's name without its namespace."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def matches(element: Any, steps: Sequence[PathStep]) -> bool:
    """Whether the path from the root leads to the element."""
    step = steps[-1]
    if step.name != "*" and local(element) != step.name:
        return False
    if any(not holds(element, predicate) for predicate in step.predicates):
        return False
    parent = element.getparent()
    rest = steps[:-1]
    if not rest:
        return step.anywhere or parent is None
    if not step.anywhere:
        return parent is not None and matches(parent, rest)
    while parent is not None:
        if matches(parent, rest):
            return True
        parent = parent.getparent()
    return False


_PREDICATES: dict[str, Callable[[Any], Any]] = {}


def holds(element: Any, predicate: str) -> bool:
    """An XPath predicate on the element itself."""
    found = _PREDICATES.get(predicate)
    if found is None:
        found = _PREDICATES[predicate] = compiled(f"boolean(self::*[{predicate}])")
    return bool(found(element))


def compiled(expression: str) -> Callable[[Any], Any]:
    """An XPath 1.0 function over an element."""
    from lxml import etree  # only specs with xml inputs

    evaluate: Callable[[Any], Any] = etree.XPath(expression, regexp=False, smart_strings=False)
    return evaluate


def value_function(expression: str) -> Callable[[Any], Any]:
    """An expression as a function from an element to a plain value: text, number, boolean, or None when absent.

    The forms that most specs use (an attribute, the name, the text, whether a child is there) do without XPath.
    """
    text = expression.strip()
    if text.startswith("@") and text[1:].replace("_", "a").replace("-", "a").replace(".", "a").isalnum():
        return attribute(text[1:])
    if text in ("name()", "local-name()"):
        return local
    if text in ("string()", "string(.)", "."):
        return whole_text
    if text.startswith("boolean(") and text.endswith(")") and text[8:-1].replace("_", "a").replace("-", "a").isalnum():
        return child_present(text[8:-1])
    evaluate = compiled(text)
    return lambda element: plain(evaluate(element))


def attribute(name: str) -> Callable[[Any], Any]:
    """An attribute's value."""

    def read(element: Any) -> Any:
        return element.get(name)

    return read


def child_present(name: str) -> Callable[[Any], bool]:
    """Whether the element has a child of that name."""

    def read(element: Any) -> bool:
        return element.find(name) is not None

    return read


def whole_text(element: Any) -> str:
    """All text below an element."""
    return "".join([part for part in element.itertext() if isinstance(part, str)])


def plain(value: Any) -> Any:
    """An XPath result as a plain value: a node set is its first node's text; NaN is absent."""
    if isinstance(value, list):
        if not value:
            return None
        value = value[0]
        return value if isinstance(value, str) else whole_text(value)
    if isinstance(value, float):
        if value != value:
            return None
        return int(value) if value.is_integer() else value
    return value


SAFE_CALLS = ("not", "boolean", "concat", "starts-with", "contains", "substring", "substring-before",
              "substring-after", "translate", "number", "string", "normalize-space", "string-length")  # fmt: skip
"""XPath functions that look no further than their arguments; without one the last four look at the element's text."""


def looks_down(expression: str) -> bool:
    """Whether an expression may look below its element; one that only asks for attributes and ancestors does not."""
    import re  # lxml costs far more than this

    name = r"[\w.-]+"
    text = re.sub(r"\'[^\']*\'|\"[^\"]*\"", "0", expression)
    text = re.sub(
        rf"(?:(?:ancestor|parent|ancestor-or-self|self)::(?:{name}|\*)(?:\[(?:\d+|last\(\))\])?|\.\.?)/@{name}",
        "0",
        text,
    )
    text = re.sub(rf"(?:@|attribute::){name}", "0", text)
    calls = "|".join(SAFE_CALLS)
    text = re.sub(rf"(?:not|boolean|count)\(\s*(?:ancestor|parent)::(?:{name}|\*)\s*\)", "0", text)
    text = re.sub(r"(?:local-)?name\(\s*\)|true\(\s*\)|false\(\s*\)", "0", text)
    text = re.sub(rf"(?<![\w.-])(?:{calls})\(\s*(?=[^\s)])", "(", text)
    text = re.sub(r"(?<![\w.-])(?:and|or|div|mod)(?![\w.-])", "+", text)
    return re.fullmatch(r"(?:[\d\s()+=!<>,|-]|(?<=\d)\.(?=\d))*", text) is None


def opened(source: Source, reader: Reader) -> tuple[bytes, bytes]:
    """The checked start of a document, and the bytes to leave out of all that follows."""
    head = reader.read(PROLOG_BYTES)
    while head and len(head) < PROLOG_BYTES and (more := reader.read(PROLOG_BYTES - len(head))):
        head += more
    check_prolog(source.name, head)
    # Raw control characters are no XML; writers that forget to escape a tool's colours should not lose the report.
    controls = b"" if b"\0" in head[:4] or bom_of(head[:4])[1].startswith("utf-16") else CONTROLS
    return head.translate(None, controls), controls


def root_of(source: Source) -> Any:
    """The whole document; for specs that read single values of it."""
    from lxml import etree  # only specs with xml inputs

    reader = source.open()
    total = 0
    try:
        chunk, controls = opened(source, reader)
        parser = etree.XMLPullParser(events=(), **parser_options())
        ended = False
        try:
            while chunk:
                total += len(chunk)
                if total > MAX_BYTES:
                    raise BoundPassed(f"{source.name} is larger than {MAX_BYTES >> 20} MiB")
                parser.feed(chunk)
                chunk = next_chunk(reader, controls)
            ended = True
            root = parser.close()
        except etree.XMLSyntaxError as e:
            raise Refused(f"{source.name}: {explained(e, ended)}") from None
    finally:
        reader.close()
    check_entities(source.name, root)
    strip_namespaces(root)
    return root


def next_chunk(reader: Reader, controls: bytes) -> bytes:
    """What follows, without control characters; empty at the end only."""
    while chunk := reader.read(CHUNK_BYTES):
        kept = chunk.translate(None, controls)
        if kept:
            return kept
    return b""


def parser_options() -> dict[str, Any]:
    """No network, no DTD, no entities; long texts are fine since entity declarations are refused."""
    return {
        "resolve_entities": False,
        "no_network": True,
        "load_dtd": False,
        "dtd_validation": False,
        "attribute_defaults": False,
        "huge_tree": True,
        "remove_comments": True,
        "remove_pis": True,
    }


def stream(source: Source, given: Input, triggers: Sequence[Trigger]) -> None:
    """Read one source and hand each trigger its elements, in the order in which they end."""
    from lxml import etree  # only specs with xml inputs

    reader = source.open()
    try:
        chunk, controls = opened(source, reader)
        walker = Walker(source.name, given, triggers)
        parser = etree.XMLPullParser(events=("start", "end"), **parser_options())
        ended = False
        try:
            while chunk:
                parser.feed(chunk)
                walker.take(parser.read_events())
                chunk = next_chunk(reader, controls)
            ended = True
            parser.close()
            walker.take(parser.read_events())
        except etree.XMLSyntaxError as e:
            walker.take(parser.read_events())  # what stands before the mistake
            raise Refused(f"{source.name}: {explained(e, ended)}") from None
    finally:
        reader.close()
    walker.finish()


def root_names(given: Input, triggers: Sequence[Trigger]) -> tuple[str, ...]:
    """The roots a document may have: those the spec names, else those its paths begin with if all begin at the root."""
    firsts = [steps[0] for trigger in triggers for steps in trigger.paths]
    if given.root_names or any(step.anywhere or step.name == "*" for step in firsts):
        return given.root_names
    return tuple(dict.fromkeys(step.name for step in firsts))


class Walker:
    """Takes parser events: checks the root, calls triggers, frees what is done."""

    def __init__(self, name: str, given: Input, triggers: Sequence[Trigger]) -> None:
        self.name = name
        self.roots = root_names(given, triggers)
        self.by_name: dict[str, list[Trigger]] = {}
        for trigger in triggers:
            for element_name in trigger.names:
                self.by_name.setdefault(element_name, []).append(trigger)
        self.anything = self.by_name.get("*", [])
        self.depth = 0
        self.open_deep: list[Any] = []
        self.seen_root = False

    def take(self, events: Any) -> None:
        """Process a batch of events."""
        by_name, anything, open_deep = self.by_name, self.anything, self.open_deep
        for event, element in events:
            tag = element.tag
            if tag[0] == "{":
                tag = element.tag = tag.rpartition("}")[2]
            if event == "start":
                if not self.seen_root:
                    self.check_root(element)
                self.depth += 1
                if self.depth > MAX_ELEMENT_DEPTH:
                    raise Refused(f"{self.name}: nested deeper than {MAX_ELEMENT_DEPTH} elements")
                for trigger in by_name.get(tag, anything) if not anything else [*by_name.get(tag, ()), *anything]:
                    if trigger.deep and trigger.matches(element):
                        open_deep.append(element)
                        break
                continue
            self.depth -= 1
            for trigger in by_name.get(tag, ()) if not anything else [*by_name.get(tag, ()), *anything]:
                if trigger.matches(element):
                    trigger.handle(element)
            if open_deep and open_deep[-1] is element:
                open_deep.pop()
            if not open_deep:
                free(element)

    def check_root(self, element: Any) -> None:
        """The root element must be one that the spec names."""
        self.seen_root = True
        check_entities(self.name, element)
        names = self.roots
        if names and local(element) not in names:
            wanted = " or ".join(f"<{n}>" for n in names)
            raise Refused(f"{self.name}: the root element is <{local(element)[:60]}>, not {wanted}")

    def finish(self) -> None:
        """After the last event."""
        if not self.seen_root:
            raise Refused(f"{self.name}: empty, not XML")


def free(element: Any) -> None:
    """Drop an element's content and what stands before it; its parent keeps its own attributes."""
    parent = element.getparent()
    if parent is None:
        return
    element.clear(keep_tail=False)
    # Only what stands before: the parser may be ahead, and what follows still needs its parent.
    while (before := element.getprevious()) is not None:
        parent.remove(before)


def check_prolog(name: str, head: bytes) -> None:
    """Refuse entity declarations before the parser sees them (it would expand them in attributes of the root)."""
    mark, encoding = bom_of(head[:4])
    if not encoding:
        encoding = "utf-16-le" if head[1:2] == b"\0" else "utf-16-be" if head[:1] == b"\0" else "latin-1"
    if encoding == "utf-8":
        encoding = "latin-1"  # every byte a character: markup is ASCII
    if encoding.startswith("utf-32"):
        raise Refused(f"{name}: XML in UTF-32 is not read")
    text = head[mark:].decode(encoding, "replace")
    position = white_end(text, 0)
    if position >= len(text):
        raise Refused(f"{name}: empty, not XML")
    while True:
        if text.startswith("<?", position):
            end = text.find("?>", position)
            if position == 0 and text.startswith("<?xml", 0):
                check_encoding(name, text[:end])
            position = end + 2 if end >= 0 else -1
        elif text.startswith("<!--", position):
            end = text.find("-->", position + 4)
            position = end + 3 if end >= 0 else -1
        elif text.startswith("<!DOCTYPE", position):
            position = doctype_end(name, text, position + 9)
        elif text.startswith("<", position):
            return
        else:
            raise Refused(f"{name}: not XML: {quoted(head.decode('utf-8', 'replace'), 40)}")
        position = white_end(text, position) if position >= 0 else len(text)
        if position >= len(text):
            short = len(head) < PROLOG_BYTES
            raise Refused(f"{name}: " + ("the XML is cut off" if short else "no root element in the first 64 KiB"))


def white_end(text: str, position: int) -> int:
    """The next position that is no white space."""
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def check_encoding(name: str, declaration: str) -> None:
    """Refuse encodings in which markup could hide from :func:`check_prolog`."""
    _, found, rest = declaration.partition("encoding")
    word = rest.strip().lstrip("=").strip()[1:].replace('"', "'").partition("'")[0].lower()
    if found and not word.startswith(ENCODINGS):
        raise Refused(f"{name}: the encoding {quoted(word, 40)} is not read")


def doctype_end(name: str, text: str, position: int) -> int:
    """The position behind a document type; -1 when it does not end here. Entities are refused."""
    depth, size = 0, len(text)
    while position < size:
        c = text[position]
        if c in "'\"":
            position = text.find(c, position + 1)
        elif text.startswith("<!--", position):
            position = text.find("-->", position + 4)
            position = position + 2 if position >= 0 else -1
        elif text.startswith("<!ENTITY", position) or c == "%":
            raise Refused(f"{name}: entity declarations are not read")
        elif c == ">" and depth == 0:
            return position + 1
        elif c in "[]":
            depth += 1 if c == "[" else -1
        if position < 0:
            return -1
        position += 1
    return -1


def check_entities(name: str, element: Any) -> None:
    """The same question asked of the parsed document type, whatever its encoding."""
    dtd = element.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise Refused(f"{name}: entity declarations are not read")


def strip_namespaces(root: Any) -> None:
    """Rename every element to its local name."""
    for element in root.iter():
        if isinstance(element.tag, str) and element.tag[0] == "{":
            element.tag = element.tag.rpartition("}")[2]


def explained(error: Any, ended: bool) -> str:
    """A parser's complaint as one line; ``ended``: it came when there was nothing more to read."""
    message = str(error.msg or "not XML").split("\n")[0]
    line = getattr(error, "lineno", 0) or 0
    if ended and not message.startswith("Extra content"):
        return f"the XML is cut off (line {line})" if line else "the XML is cut off"
    return f"not XML: {quoted(message, 120)}"
