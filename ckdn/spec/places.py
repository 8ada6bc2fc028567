"""Where a character inside a text of a spec stands in its file.

Used on the error path only: the file is read a second time, for the marks of its values (the reader keeps those of the
keys).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ckdn.spec.read import Document

    KeyPath = tuple[str | int, ...]

ESCAPE_DIGITS = {"x": 2, "u": 4, "U": 8}


def in_text(document: Document, path: KeyPath, text: str, offset: int) -> tuple[int, int] | None:
    """Line and column (1-based) of ``text[offset]``, where ``text`` is the value (or the key) at ``path``.

    None when it is not written on one line, so that its characters and the file's are hard to match by eye too.
    """
    if not document.text:
        return None
    span = yaml_span(document.text, path, text) if document.kind == "yaml" else toml_span(document, path)
    if span is None:
        return None
    raw = document.text[span[0] : span[1]]
    at = raw_offset(raw, text, offset)
    if at is None:
        return None
    start = span[0] + at
    return document.text.count("\n", 0, start) + 1, start - document.text.rfind("\n", 0, start)


def raw_offset(raw: str, text: str, offset: int) -> int | None:
    """The place in ``raw`` (a scalar as written, with its quotes) of ``text[offset]``."""
    if "\n" in raw:
        return None
    if raw == text:
        return offset
    quote = raw[:1]
    if quote not in ("'", '"') or not raw.endswith(quote):
        return None
    at = 1
    for _ in range(offset):
        if quote == '"' and raw[at : at + 1] == "\\":
            at += 2 + ESCAPE_DIGITS.get(raw[at + 1 : at + 2], 0)
        else:
            at += 2 if quote == "'" and raw[at : at + 2] == "''" else 1
    return min(at, len(raw) - 1)


def yaml_span(text: str, path: KeyPath, wanted: str) -> tuple[int, int] | None:
    """Where the scalar at ``path`` begins and ends; the key itself when it is the key that reads ``wanted``."""
    import yaml  # the document was read with it

    node: Any = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    key: Any = None
    for part in path:
        if isinstance(node, yaml.MappingNode):
            key, node = next(((k, v) for k, v in node.value if k.value == part), (None, None))
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            key, node = None, node.value[part]
        else:
            return None
    for found in (node, key):
        if isinstance(found, yaml.ScalarNode) and found.value == wanted:
            return found.start_mark.index, found.end_mark.index
    return None


def toml_span(document: Document, path: KeyPath) -> tuple[int, int] | None:
    """Where the string at ``path`` begins and ends."""
    from ckdn.spec.read import MAX_DEPTH
    from ckdn.spec.toml_keys import BARE_KEY, STRINGS, TomlKeys  # on the error path

    text = document.text.replace("\r\n", "\n")
    start = TomlKeys(text, MAX_DEPTH).offsets.get(path)
    if start is None or text != document.text:
        return None
    if isinstance(path[-1], str):  # a key: its value stands behind the =
        for pattern in (*STRINGS[2:], BARE_KEY):
            found = pattern.match(text, start)
            if found:
                start = found.end()
                break
        while text[start : start + 1] in (" ", "\t", "="):
            start += 1
    for pattern in STRINGS:
        found = pattern.match(text, start)
        if found:
            return None if pattern in STRINGS[:2] else found.span()  # the first two may go over lines
    return None
