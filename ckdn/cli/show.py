"""``ckdn show``: a stored digest, or a run's log."""

from __future__ import annotations

import argparse
import os

from ckdn.app.project import open_project
from ckdn.app.show import find_run, log_text
from ckdn.cli import output
from ckdn.cli.arguments import add, add_project
from ckdn.errors import ConfigError, ExitCode, Problem
from ckdn.textout import render_text

DESCRIPTION = """\
Print a stored digest. REF is a run id, a unique prefix of one, or a check's name (its newest whole run).

example:
  ckdn show lint --format text
  ckdn show lint --log --tail 20"""


def add_arguments(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command line of `show`."""
    parser = add(commands, "show", "print a stored digest or log", DESCRIPTION)
    parser.add_argument("ref", metavar="REF", nargs="?", help="default: the latest run")
    parser.add_argument("--format", choices=("json", "text"), default="json", help="how to print the digest")
    parser.add_argument("--log", action="store_true", help="print the log instead, clean and masked")
    parser.add_argument("--tail", type=int, metavar="N", help="only the last N lines of the log")
    add_project(parser)
    parser.set_defaults(act=run)


def run(asked: argparse.Namespace) -> int:
    """Find the run and print it."""
    if asked.tail is not None and (asked.tail < 0 or not asked.log):
        what = "--tail is negative" if asked.tail < 0 else "--tail goes with --log"
        raise ConfigError(Problem(what, path="ckdn show"))
    project = open_project(asked.cwd or os.getcwd(), asked.config, os.environ)
    found = find_run(project, asked.ref)
    if asked.log:
        for text in log_text(found, asked.tail):
            output.emit(text.encode())
        return ExitCode.OK
    output.emit(found.data if asked.format == "json" else render_text(found.document).encode("utf-8", "replace"))
    return ExitCode.OK
