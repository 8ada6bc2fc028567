"""The command line: parse arguments, call one use case, print, give an exit code."""

from __future__ import annotations

import os
import sys

from ckdn.cli.output import complain, tell
from ckdn.errors import CkdnError, ExitCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """The console script ``ckdn``: the exit code of one command."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    open_standard_streams()
    try:
        if arguments[:1] == ["run"]:
            from ckdn.cli import run  # the one command that is paid for on every save: no argparse

            return run.main(arguments[1:])
        from ckdn.cli import parser  # every other command

        return parser.main(arguments)
    except CkdnError as e:
        complain(e)
        return e.exit_code
    except KeyboardInterrupt:
        return 130
    except Exception:
        return report_bug()


def open_standard_streams() -> None:
    """Give 0, 1 and 2 something harmless where the caller closed them, so that no file of ours gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def report_bug() -> int:
    """A defect of ckdn: the traceback goes to a file, one line says where."""
    import tempfile  # a defect of ckdn
    import traceback

    from ckdn.bounds import safe

    text = traceback.format_exc()
    try:
        with tempfile.NamedTemporaryFile("w", prefix="ckdn-traceback-", suffix=".txt", delete=False) as file:
            file.write(text)
        place = file.name
    except OSError:
        place = "(no file could be written)"
    last = text.strip().rsplit("\n", 1)[-1]
    tell(safe(f"ckdn: this is a bug in ckdn ({last[:200]}); please report it with the traceback in {place}"))
    return ExitCode.BUG
