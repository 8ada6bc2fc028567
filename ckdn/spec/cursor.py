"""Checked access to a read document: every mistake becomes a located problem, and reading goes on.

A :class:`Cursor` stands on one node. Its readers return a harmless value after a mistake, so that one pass over a spec
reports everything that is wrong with it.
"""

from __future__ import annotations

from ckdn.errors import Problem, near

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ckdn.spec.read import Document

KINDS = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "an integer", float: "a number"}


MAX_SHOWN = 60


def short(text: str) -> str:
    """Somebody's text as a part of a message."""
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def kind_of(value: Any) -> str:
    """The word for a value's type in messages."""
    return "nothing" if value is None else KINDS.get(type(value), type(value).__name__)


class Cursor:
    """One node of a document, with the list that collects the problems."""

    __slots__ = ("document", "path", "problems", "sound", "value")

    def __init__(self, document: Document, path: tuple[str | int, ...], value: Any, problems: list[Problem]) -> None:
        self.document = document
        self.path = path
        self.value = value
        self.problems = problems
        self.sound = True
        """False for what :meth:`mapping` found to be no mapping, or to have a key that is not known: then a key that is
        missing is most likely the one that was misspelt, and need not be told."""

    def fail(self, what: str, mend: str = "", *, below: tuple[str | int, ...] = (), offset: int | None = None) -> None:
        """Report a problem at this node, at a key below it, or at a character (0-based) of this node's text."""
        problem = self.document.problem(self.path + below, what, mend)
        if offset is not None and isinstance(self.value, str):
            from ckdn.spec.places import in_text  # on the error path

            place = in_text(self.document, self.path, self.value, offset)
            if place is not None:
                problem.line, problem.column = place
            else:
                problem.what += f" (character {offset + 1})"
        self.problems.append(problem)

    def named(self) -> str:
        """This node's key path for messages, ``findings[0].fields.path``."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{short(part)}" if text else short(part)
        return text or "the document"

    def at(self, key: str | int) -> Cursor:
        """The child at a key that exists."""
        return Cursor(self.document, (*self.path, key), self.value[key], self.problems)

    def wrong(self, wanted: str) -> None:
        """Report a value of the wrong type."""
        self.fail(f"{self.named()} must be {wanted}, not {kind_of(self.value)}")

    def mapping(self, allowed: Iterable[str] | None = None) -> dict[str, Cursor]:
        """The children of a mapping by key; keys outside ``allowed`` are reported and left out."""
        if not isinstance(self.value, dict):
            self.wrong("a mapping")
            self.sound = False
            return {}
        children = {}
        known = None if allowed is None else set(allowed)
        for key in self.value:
            if known is not None and key not in known:
                self.fail(f"unknown key `{short(key)}` in {self.named()}", near(key, known), below=(key,))
                self.sound = False
            else:
                children[key] = self.at(key)
        return children

    def items(self, *, lone: bool = False) -> list[Cursor]:
        """The items of a list; with ``lone`` a single value that is no list counts as one item."""
        if isinstance(self.value, list):
            return [self.at(i) for i in range(len(self.value))]
        if lone:
            return [self]
        self.wrong("a list")
        return []

    def text(self, *, empty: bool = False) -> str:
        """A text; an empty one only where it means something."""
        if not isinstance(self.value, str):
            self.wrong("text")
            return ""
        if not self.value and not empty:
            self.fail(f"{self.named()} is empty")
        if not self.value.isprintable() and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in self.value):
            what = "a NUL character" if "\0" in self.value else "half of a surrogate pair"
            self.fail(f"{self.named()} has {what}", "take it out")
            return ""
        return self.value

    def texts(self, *, lone: bool = False) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(item.text() for item in self.items(lone=lone))

    def flag(self) -> bool:
        """true or false."""
        if not isinstance(self.value, bool):
            self.wrong("true or false")
            return False
        return self.value

    def integer(self, *, minimum: int | None = None) -> int:
        """An integer (never a boolean)."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self.wrong("an integer")
            return 0
        if minimum is not None and self.value < minimum:
            self.fail(f"{self.named()} is {self.value}", f"it must be at least {minimum}")
        return self.value

    def choice(self, allowed: Iterable[str]) -> str:
        """One word out of a few."""
        words = list(allowed)
        text = self.text()
        if text and text not in words:
            mend = f"one of {', '.join(words)}" if len(words) > 1 else f"it can only be {words[0]}"
            self.fail(f"{self.named()} is `{short(text)}`", mend)
            return words[0]
        return text

    def scalar(self) -> str | int | float | bool | None:
        """Text, number, boolean or null."""
        if isinstance(self.value, dict | list):
            self.wrong("a plain value")
            return None
        value: str | int | float | bool | None = self.value
        return value

    def walk(self) -> Iterator[Cursor]:
        """This node and every node below it."""
        yield self
        if isinstance(self.value, dict | list):
            for key in self.value if isinstance(self.value, dict) else range(len(self.value)):
                yield from self.at(key).walk()
