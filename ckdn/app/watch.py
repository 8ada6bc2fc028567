"""An end to the reading of a tool's output: a deadline, and INT, TERM and HUP.

The runner waits for signals beside the command; while the output is read nobody waits, so here a signal raises.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from types import FrameType, TracebackType
    from typing import Any
else:
    try:
        import _signal as signal  # signal itself adds enum: 4 ms
    except ImportError:  # an interpreter that builds it otherwise
        import signal

STOPPERS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Cut(BaseException):
    """The reading was cut short; no :class:`Exception`, so that nothing on the way takes it for one of its own."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        """Empty for a signal: its handler has noted which."""


class Watch:
    """A context in which the deadline, or a signal that somebody handles, raises :class:`Cut`.

    Python takes signals in the main thread only: in another thread this does nothing. Handlers that were installed
    before are called first, and stand again afterwards.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.over = False
        self.before: dict[int, Any] = {}

    def __enter__(self) -> Watch:
        if not hasattr(signal, "setitimer"):
            return self
        try:
            self.before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self.expired)
        except ValueError:  # not the main thread
            return self
        for signum in STOPPERS:
            before = signal.getsignal(signum)
            if callable(before):
                self.before[signum] = before
                signal.signal(signum, self.interrupted)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over = True
        if self.before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for signum, before in self.before.items():
            signal.signal(signum, before)

    def expired(self, signum: int, frame: FrameType | None) -> None:
        """The deadline."""
        if not self.over:
            raise Cut(f"reading the output took longer than {self.seconds:g} s")

    def interrupted(self, signum: int, frame: FrameType | None) -> None:
        """A signal: whoever handled it before still does."""
        self.before[signum](signum, frame)
        if not self.over:
            raise Cut("")
