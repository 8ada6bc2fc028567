"""``ckdn parse``: interpret output that exists already."""

from __future__ import annotations

import argparse
import os

from ckdn.app.parse import FORMATS, parse_output
from ckdn.app.project import checked_folder, open_project
from ckdn.app.run import exit_code_of, roots_of
from ckdn.bounds import safe
from ckdn.catalog import Catalog
from ckdn.cli import output
from ckdn.cli.arguments import add, add_project
from ckdn.config import ConfigNotFound
from ckdn.errors import ConfigError, ExitCode, Problem

DESCRIPTION = """\
Read output that exists already with a spec. Nothing is run, nothing is written.

FILE (or - for stdin) is the spec's first input; --input binds others by name.
Exit: 0 understood, 1 not (the reason is on stderr), 2 refused; with --rc the exit code a run would give.

example:
  ruff check --output-format json . | ckdn parse ruff - --rc 1 --format digest"""


def add_arguments(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command line of `parse`."""
    parser = add(commands, "parse", "read output that exists already with a spec", DESCRIPTION)
    parser.add_argument("spec", metavar="SPEC")
    parser.add_argument("file", metavar="FILE|-", nargs="?")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE", help="bind an input by its name")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="K=V",
        help="an option of the spec, or the check's fail_on, allow_empty, findings_on_zero",
    )
    parser.add_argument("--rc", type=int, metavar="N", help="the exit code the tool gave")
    parser.add_argument("--format", choices=FORMATS, default="facts", help="what to print (default: facts)")
    add_project(parser)
    parser.set_defaults(act=run)


def run(asked: argparse.Namespace) -> int:
    """Interpret and print."""
    if asked.format == "digest" and asked.rc is None:
        raise ConfigError(Problem("a digest needs the exit code", path="ckdn parse", mend="add --rc N"))
    cwd = checked_folder(asked.cwd or os.getcwd())
    catalog, root = catalog_of(cwd, asked.config)
    parsed = parse_output(
        catalog,
        asked.spec,
        asked.file,
        inputs=pairs(asked.input, "--input"),
        options=dict(pairs(asked.option, "--option")),
        rc=asked.rc,
        format=asked.format,
        stdin=os.fdopen(os.dup(0), "rb", buffering=0),  # sys.stdin is None when the caller closed it
        roots=roots_of(root),
    )
    output.emit(parsed.output)
    if not parsed.understood:
        output.tell(safe(f"ckdn: not understood: {parsed.reason}"))
    if asked.rc is not None:
        return exit_code_of(asked.rc, parsed.status)
    return ExitCode.OK if parsed.understood else ExitCode.FOUND


def catalog_of(cwd: str, explicit: str | None) -> tuple[Catalog, str]:
    """The specs and the root of the project where there is one; else what ships with ckdn and the user's own."""
    try:
        project = open_project(cwd, explicit, os.environ)
    except ConfigNotFound:
        return Catalog([os.path.join(cwd, "parsers.d")], shown_from=cwd), cwd
    return project.catalog, project.config.root


def pairs(given: list[str], what: str) -> list[tuple[str, str]]:
    """``NAME=VALUE`` arguments."""
    found = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigError(Problem(f"{what} {text!r} is not NAME=VALUE", path="ckdn parse"))
        found.append((name, value))
    return found
