"""Every command but `run` through argparse: one table of commands."""

from __future__ import annotations

import argparse

from ckdn import __version__
from ckdn.cli import demo, documents, output, parse, show, spec
from ckdn.cli.arguments import add, add_project
from ckdn.errors import ConfigError, ExitCode, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

RUN_HELP = """\
Run checks of ckdn.toml. One check: its digest goes to stdout as one line of JSON, the evidence into the run directory.
Several, an alias or --all: one after the other, and one aggregate.

The exit code is the command's own when it is 1..255, and 1 when a command that ended with 0 is not green.
A refusal (an unknown check, a wrong config) is exit 2 with nothing on stdout and one line on stderr.

example:
  ckdn run lint
  ckdn run tests --timeout 60 -- -k test_parser"""


class Parser(argparse.ArgumentParser):
    """argparse, but it refuses like everything else here, and a closed stdout does not change its exit code."""

    def error(self, message: str) -> NoReturn:
        """One line instead of the usage and a line."""
        raise ConfigError(Problem(message, path=self.prog, mend=f"see `{self.prog} --help`"))

    def _print_message(self, message: str, file: Any = None) -> None:
        output.emit(message.encode())


def build() -> argparse.ArgumentParser:
    """The whole command line."""
    parser: argparse.ArgumentParser = Parser(
        prog="ckdn",
        description="Run a project's checks; emit one bounded, deterministic digest for each.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  ckdn run lint   run the check `lint`\n  ckdn demo       see a red and a green run",
    )
    parser.add_argument("--version", action="version", version=f"ckdn {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    run = add(commands, "run", "run a check and print its digest", RUN_HELP)
    add_project(run)
    run.add_argument("name", nargs="*", metavar="CHECK", help="checks or aliases; default: [run].default")
    run.add_argument("--all", action="store_true", help="every check of the config")
    run.add_argument("--fail-fast", action="store_true", help="stop after the first check that is not green")
    run.add_argument("--quiet", action="store_true", help="do not print the digest")
    run.add_argument("--timeout", metavar="S", help="seconds, instead of the check's own timeout")
    run.add_argument("--format", choices=("json", "text"), default="json", help="how to print the digest")
    run.add_argument("extra", nargs="*", metavar="-- EXTRA", help="arguments for the command (a partial run)")
    for module in (parse, show, spec, documents, demo):
        module.add_arguments(commands)
    return parser


def main(arguments: Sequence[str]) -> int:
    """One command; argparse's own exits become exit codes."""
    parser = build()
    try:
        asked = parser.parse_args(arguments)
    except SystemExit as e:
        return int(e.code or 0)
    if asked.command is None:
        parser.print_help()
        return ExitCode.REFUSED
    code: int = asked.act(asked)
    return code
