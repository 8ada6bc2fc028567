"""``ckdn demo``: a real red and a real green run on a throw-away project."""

from __future__ import annotations

import argparse
import os

from ckdn.app import demo
from ckdn.cli import output
from ckdn.cli.arguments import add
from ckdn.errors import ExitCode
from ckdn.runner import Interrupts

DESCRIPTION = """\
Write a small project into a temporary folder, run its check red, mend the code, run it green, remove the folder.
Nothing but Python is needed.

example:
  ckdn demo"""


def add_arguments(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command line of `demo`."""
    parser = add(commands, "demo", "see a real red and a real green run", DESCRIPTION)
    parser.set_defaults(act=run)


def run(asked: argparse.Namespace) -> int:
    """Show both runs; the demonstration itself fails when they are not red and green."""
    statuses = []
    for name, text in demo.files().items():
        output.say(f"# {name}\n{text}")
    with Interrupts() as stop:
        for shown in demo.demonstrate(os.environ, stop):
            if shown.title == "green":
                output.say("# stats.py is mended")
            output.say(f"$ {shown.command} --format text\n{shown.text}")
            output.say(f"$ {shown.command}\n{shown.json}\n[exit code {shown.exit_code}]\n")
            statuses.append(shown.exit_code == 0)
    output.say("Write a ckdn.toml like the one above beside your code, and run `ckdn run NAME`.")
    return ExitCode.OK if statuses == [False, True] else ExitCode.FOUND
