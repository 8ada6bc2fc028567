"""What the engine reads from, and how it refuses. The caller opens files; nothing here touches them."""

from __future__ import annotations

from ckdn.model import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Reader(Protocol):
        """An open stream of bytes."""

        def read(self, size: int = -1, /) -> bytes:
            """At most ``size`` bytes; empty at the end."""

        def close(self) -> None:
            """Release it."""


class Source(Struct):
    """One file or stream of an input; it may be opened several times."""

    name: str
    """As messages name it (``ruff.json``)."""
    open: Callable[[], Reader]


class Unread(Struct):
    """An input that cannot be read, and why (``ruff.json is missing``)."""

    reason: str
    missing: bool = False
    """The file is not there (an optional input forgives that, and nothing else)."""


class Refused(Exception):
    """This input is not understood: one line that says why."""


class BoundPassed(Exception):
    """A bound of the engine was passed: one line that says which."""


def quoted(text: str, limit: int = 60) -> str:
    """A piece of untrusted text for a message: one line, bounded."""
    line = " ".join(text.split())
    return f"`{line[:limit]}…`" if len(line) > limit else f"`{line}`"
