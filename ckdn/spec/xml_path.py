"""The XPath subset by which xml rows are streamed: ``/a/b`` or ``//name``, predicates on attributes."""

from __future__ import annotations

from ckdn.model import Struct


class StreamPathError(ValueError):
    """The path is no streaming path."""


class PathStep(Struct):
    """``name`` (or ``*``) with its predicates, as written between the brackets; ``anywhere`` after ``//``."""

    name: str
    anywhere: bool
    predicates: tuple[str, ...] = ()


def parse(text: str) -> tuple[tuple[PathStep, ...], ...]:
    """A union (``|``) of paths, each a tuple of steps from the root to the element."""
    return tuple(parse_one(part.strip()) for part in split_outside_brackets(text, "|"))


def parse_one(text: str) -> tuple[PathStep, ...]:
    """One path."""
    if not text.startswith("/"):
        raise StreamPathError(f"`{text}` does not start at the root")
    steps, i = [], 0
    while i < len(text):
        anywhere = text.startswith("//", i)
        i += 2 if anywhere else 1
        end = i
        while end < len(text) and (text[end].isalnum() or text[end] in "_-.*"):
            end += 1
        name, i = text[i:end], end
        if not name:
            raise StreamPathError(f"`{text}` has no element name at position {end + 1}")
        predicates = []
        while i < len(text) and text[i] == "[":
            close = closing(text, i)
            predicates.append(checked(text[i + 1 : close]))
            i = close + 1
        if i < len(text) and text[i] != "/":
            raise StreamPathError(f"`{text}` has `{text[i]}` where / or [ could stand")
        steps.append(PathStep(name, anywhere, tuple(predicates)))
    return tuple(steps)


def checked(predicate: str) -> str:
    """A predicate that only looks at attributes, which are known when the element opens."""
    plain, quote = "", ""
    for c in predicate:
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        else:
            plain += c
    words = plain.replace("@", " @").split()
    if not any("@" in w for w in words) and "ancestor::" not in plain and "self::" not in plain:
        raise StreamPathError(f"the predicate [{predicate}] looks at more than attributes")
    return predicate


def closing(text: str, start: int) -> int:
    """The index of the bracket that closes the one at ``start``."""
    depth, quote = 0, ""
    for i in range(start, len(text)):
        c = text[i]
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c == "[":
            depth += 1
        elif c == "]":
            depth -= 1
            if depth == 0:
                return i
    raise StreamPathError(f"`{text}` has a bracket that is not closed")


def split_outside_brackets(text: str, separator: str) -> list[str]:
    """``text`` split at a character that is neither in brackets nor quoted."""
    parts, current, depth, quote = [], "", 0, ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "[]":
            depth += 1 if c == "[" else -1
        elif c == separator and depth == 0:
            parts.append(current)
            current = ""
            continue
        current += c
    return [*parts, current]
