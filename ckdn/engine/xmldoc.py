"""XML inputs: streamed with lxml, so that a report of a million elements is read in flat memory.

Nothing is fetched and no DTD is loaded; entity declarations are refused, a plain DOCTYPE is fine. Names are compared
without namespaces. A *trigger* is the path of one row source: its elements are handed over when they end, with their
ancestors' attributes still there, and freed.
"""

from __future__ import annotations

from ckdn.engine.source import Refused, quoted
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


def looks_down(expression: str) -> bool:
    """Whether an expression may look below its element."""
    text = expression.strip()
    if text in ("name()", "local-name()") or (text.startswith("@") and "/" not in text):
        return False
    return not text.startswith(("not(ancestor::", "ancestor::", "boolean(@"))


def root_of(source: Source) -> Any:
    """The whole document; for specs that read single values of it."""
    from lxml import etree  # only specs with xml inputs

    reader = source.open()
    try:
        head = reader.read(PROLOG_BYTES)
        check_prolog(source.name, head)
        parser = etree.XMLPullParser(events=(), **parser_options())
        try:
            feed(parser, reader, head)
            root = parser.close()
        except etree.XMLSyntaxError as e:
            raise Refused(f"{source.name}: {explained(e)}") from None
    finally:
        reader.close()
    check_entities(source.name, root)
    strip_namespaces(root)
    return root


def feed(parser: Any, reader: Reader, head: bytes) -> None:
    """Feed a whole stream."""
    chunk = head
    while chunk:
        parser.feed(chunk)
        chunk = reader.read(CHUNK_BYTES)


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
        head = reader.read(PROLOG_BYTES)
        check_prolog(source.name, head)
        walker = Walker(source.name, given, triggers)
        parser = etree.XMLPullParser(events=("start", "end"), **parser_options())
        chunk = head
        try:
            while chunk:
                parser.feed(chunk)
                walker.take(parser.read_events())
                chunk = reader.read(CHUNK_BYTES)
            parser.close()
            walker.take(parser.read_events())
        except etree.XMLSyntaxError as e:
            raise Refused(f"{source.name}: {explained(e)}") from None
    finally:
        reader.close()
    walker.finish()


class Walker:
    """Takes parser events: checks the root, calls triggers, frees what is done."""

    def __init__(self, name: str, given: Input, triggers: Sequence[Trigger]) -> None:
        self.name = name
        self.given = given
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
        names = self.given.root_names
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
    while len(parent) > 1:
        del parent[0]


def check_prolog(name: str, head: bytes) -> None:
    """Refuse entity declarations before the parser sees them (it would expand them in attributes)."""
    if not head.strip(b" \t\r\n\xef\xbb\xbf"):
        raise Refused(f"{name}: empty, not XML")
    mark, encoding = bom_of(head[:4])
    plain_head = head[mark:].replace(b"\0", b"") if encoding.startswith(("utf-16", "utf-32")) or b"\0" in head else head
    start = plain_head.find(b"<!DOCTYPE")
    if start < 0:
        return
    subset = plain_head.find(b"[", start)
    close = plain_head.find(b">", start)
    if 0 <= subset < close or close < 0:
        end = plain_head.find(b"]", subset)
        if end < 0 or b"<!ENTITY" in plain_head[subset:end]:
            raise Refused(f"{name}: entity declarations are not read")


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


def explained(error: Any) -> str:
    """A parser's complaint as one line."""
    message = str(error.msg or "not XML").split("\n")[0]
    line = getattr(error, "lineno", None)
    if (
        "Premature end" in message
        or "Couldn't find end" in message
        or "EndTag" in message
        or "no element found" in message
    ):
        return f"the XML is cut off ({quoted(message, 120)})"
    return f"not XML: {quoted(message, 120)}" + (f" in line {line}" if line and "line" not in message else "")
