"""The command line: parse arguments, call one use case, print, give an exit code."""

from __future__ import annotations

import errno
import os
import sys

from ckdn.cli.output import complain, tell
from ckdn.errors import CkdnError, ExitCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


FILES_FOR_IMPORTS = 4
"""Free descriptors with which an import can fail for no want of them."""


def main(argv: Sequence[str] | None = None) -> int:
    """The console script ``ckdn``: the exit code of one command."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        open_standard_streams()
        if arguments[:1] == ["run"]:
            from ckdn.cli import run  # the one command that is paid for on every save: no argparse

            return run.main(arguments[1:])
        from ckdn.cli import parser  # every other command

        return parser.main(arguments)
    except CkdnError as e:
        if out_of_files(e):
            return refuse_without_files()
        complain(e)
        return e.exit_code
    except KeyboardInterrupt:
        return 130
    except Exception as e:
        if out_of_files(e):
            return refuse_without_files()
        return report_bug()


def out_of_files(error: BaseException | None) -> bool:
    """Whether it comes from a limit on open files. An import says only that it found nothing: so try it."""
    found_nothing = False
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return True
        found_nothing = found_nothing or isinstance(error, ImportError)
        error = error.__cause__ or error.__context__
    if not found_nothing:
        return False
    opened: list[int] = []
    try:
        for _ in range(FILES_FOR_IMPORTS):
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return True
    finally:
        for fd in opened:
            os.close(fd)
    return False


def refuse_without_files() -> int:
    """One line, written with what is loaded already."""
    tell("ckdn: too many files are open for ckdn to work; raise the limit (`ulimit -n 256`)")
    return ExitCode.REFUSED


def open_standard_streams() -> None:
    """Give 0, 1 and 2 something harmless where the caller closed them, so that no file of ours gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def report_bug() -> int:
    """A defect of ckdn: the traceback goes to a file, one line says where."""
    try:
        import tempfile  # a defect of ckdn
        import traceback

        from ckdn.bounds import safe

        text = traceback.format_exc()
        last = text.strip().rsplit("\n", 1)[-1][:200]
        try:
            with tempfile.NamedTemporaryFile("w", prefix="ckdn-traceback-", suffix=".txt", delete=False) as file:
                file.write(text)
            place = file.name
        except OSError:
            place = "(no file could be written)"
        tell(safe(f"ckdn: this is a bug in ckdn ({last}); please report it with the traceback in {place}"))
    except (ImportError, OSError) as e:  # not even these can be loaded
        if out_of_files(e):
            return refuse_without_files()
        tell("ckdn: this is a bug in ckdn, and the traceback could not be written")
    return ExitCode.BUG
