"""What ckdn says when it refuses: what, where, how to mend it. And the exit codes of the commands."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ExitCode:
    """Exit codes of every command but ``run`` (whose codes are the tool's own, see docs/reference/exit-codes.md)."""

    OK = 0
    FOUND = 1
    REFUSED = 2
    BUG = 3
    TIMEOUT = 124
    NOT_EXECUTABLE = 126
    NOT_FOUND = 127


class Problem:
    """One thing that is wrong with an input of ours (config, spec, argument)."""

    __slots__ = ("column", "line", "mend", "path", "what")

    def __init__(self, what: str, *, path: str = "", line: int = 0, column: int = 0, mend: str = "") -> None:
        self.what = what
        self.path = path
        """The file as the user would name it; empty for the command line."""
        self.line = line
        """1-based; 0 when it has none."""
        self.column = column
        """1-based; 0 when it has none."""
        self.mend = mend
        """How to mend it, an imperative without a full stop; may be empty."""

    @property
    def where(self) -> str:
        place = self.path
        if place and self.line:
            place += f":{self.line}"
            if self.column:
                place += f":{self.column}"
        return place

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.path else self.what
        if self.mend:
            text += f"; {self.mend}"
        return " ".join(text.split())

    def __repr__(self) -> str:
        return f"Problem({str(self)!r})"


class CkdnError(Exception):
    """A refusal: one or more problems, each printed as one line ``ckdn: PATH:LINE: what; the mend``; exit 2."""

    exit_code = ExitCode.REFUSED

    def __init__(self, problems: Problem | str | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        self.problems: Sequence[Problem] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(p) for p in self.problems))

    def lines(self) -> list[str]:
        """What goes to stderr, a line each."""
        return [f"ckdn: {problem}" for problem in self.problems]


class ConfigError(CkdnError):
    """The configuration or the command line is wrong."""


class SpecError(CkdnError):
    """A spec does not load."""


def near(word: str, known: Iterable[str]) -> str:
    """The mend for a name that is not known: the near ones, else all of them when they are few."""
    from difflib import get_close_matches  # 14 ms, and only on the error path

    names = sorted(set(known))
    close = get_close_matches(word, names, n=3, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(close) + "?"
    if names and len(names) <= 12:
        return "known: " + ", ".join(names)
    return ""
