"""Writing to stdout and stderr: bytes as they are, and a closed pipe never changes an exit code."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ckdn.errors import CkdnError

STDOUT, STDERR = 1, 2


def write(fd: int, data: bytes) -> None:
    """All of it, or as much as anyone reads."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            import select  # a caller's non-blocking pipe

            select.select([], [fd], [])
        except OSError:
            return


def emit(data: bytes) -> None:
    """To stdout."""
    write(STDOUT, data)


def say(text: str) -> None:
    """A line to stdout."""
    write(STDOUT, (text + "\n").encode("utf-8", "replace"))


def tell(text: str) -> None:
    """A line to stderr."""
    write(STDERR, (text + "\n").encode("utf-8", "replace"))


def complain(error: CkdnError) -> None:
    """A refusal: a line per problem, free of control characters and secrets."""
    from ckdn.bounds import safe  # the error path

    for line in error.lines():
        tell(safe(line))


def is_terminal(fd: int) -> bool:
    """Whether someone is looking."""
    try:
        return os.isatty(fd)
    except OSError:
        return False
