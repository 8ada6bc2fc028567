"""``ckdn run``: its own small argument reader, since this command is paid for on every save."""

from __future__ import annotations

import os

from ckdn.app.project import open_project
from ckdn.app.run import run_check
from ckdn.cli import output
from ckdn.errors import ConfigError, Problem, near
from ckdn.model import Struct
from ckdn.runner import Interrupts
from ckdn.textout import render_text, verdict_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ckdn.app.project import Project

VALUES = ("--config", "--cwd", "--timeout", "--format")
FLAGS = ("--quiet", "--all", "--fail-fast")


class Arguments(Struct):
    """What `run` was asked."""

    names: tuple[str, ...]
    extra: tuple[str, ...]
    config: str | None
    cwd: str
    quiet: bool
    every: bool
    fail_fast: bool
    timeout: float | None
    format: str


def main(arguments: Sequence[str]) -> int:
    """Run checks and print one digest, or the aggregate of several."""
    if any(a in ("-h", "--help") for a in before_separator(arguments)):
        from ckdn.cli import parser  # help is argparse's

        return parser.main(["run", "--help"])
    asked = read(arguments)
    with Interrupts() as stop:
        project = open_project(asked.cwd, asked.config, os.environ)
        names = asked.names or (() if asked.every else project.config.run.default)
        if not names and not asked.every:
            listed = ", ".join((*project.config.checks, *project.config.aliases)) or "none is configured"
            raise usage("which check?", f"one of: {listed}; or --all; or set `default` in [run]")
        if len(names) == 1 and not asked.every and names[0] not in project.config.aliases and not asked.fail_fast:
            return run_one(project, names[0], asked, stop)
        return run_several(project, names, asked, stop)


def run_one(project: Project, name: str, asked: Arguments, stop: Interrupts) -> int:
    """One check: its digest."""
    result = run_check(project, name, extra=asked.extra, timeout=asked.timeout, environ=os.environ, stop=stop)
    if not asked.quiet:
        text = asked.format == "text"
        output.emit(render_text(result.document).encode() if text else result.data)
        if not text:
            tell_verdict(result.document)
    return result.exit_code


def run_several(project: Project, names: Sequence[str], asked: Arguments, stop: Interrupts) -> int:
    """A group: its aggregate; with ``--format text`` the text of each member as it is done, and a last line."""
    from ckdn.app import group  # only runs of several checks
    from ckdn.bounds import safe

    chosen = group.group_of(project, names, every=asked.every, fail_fast=asked.fail_fast)
    if asked.extra:
        raise usage("extra arguments for several checks", "name one check")
    text = asked.format == "text" and not asked.quiet

    def finished(document: dict[str, Any]) -> None:
        for problem in document.get("refused", ()):  # the aggregate has no room for the reason
            output.tell(safe(f"ckdn: {document['check']}: {problem}"))
        if text:
            output.emit(render_text(document).encode())
        elif not asked.quiet and "refused" not in document:
            tell_verdict(document)

    result = group.run_group(project, chosen, timeout=asked.timeout, environ=os.environ, stop=stop, finished=finished)
    if text:
        output.emit(render_text(result.document).encode())
    elif not asked.quiet:
        output.emit(result.data)
    return result.exit_code


def tell_verdict(document: dict[str, Any]) -> None:
    """The verdict on stderr, where someone is looking."""
    if output.is_terminal(output.STDERR):
        output.tell(verdict_line(document, color=not os.environ.get("NO_COLOR")))


def before_separator(arguments: Sequence[str]) -> Sequence[str]:
    """ckdn's own arguments: those before ``--``."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def read(arguments: Sequence[str]) -> Arguments:
    """The arguments of `run`; raises :class:`ConfigError` for what it does not know."""
    own = before_separator(arguments)
    extra = tuple(arguments[len(own) + 1 :])
    names: list[str] = []
    flags: set[str] = set()
    values: dict[str, str] = {}
    position = 0
    while position < len(own):
        word = own[position]
        name, equals, value = word.partition("=")
        position += 1
        if name in VALUES:
            if not equals:
                if position == len(own):
                    raise usage(f"{name} needs a value")
                value = own[position]
                position += 1
            values[name] = value
        elif word in FLAGS:
            flags.add(word)
        elif word.startswith("-") and word != "-":
            raise usage(f"unknown option {word}", near(name, (*VALUES, *FLAGS, "--help")))
        else:
            names.append(word)
    return Arguments(
        tuple(names),
        extra,
        values.get("--config") or os.environ.get("CKDN_CONFIG") or None,
        values.get("--cwd") or os.environ.get("CKDN_CWD") or os.getcwd(),
        "--quiet" in flags,
        "--all" in flags,
        "--fail-fast" in flags,
        seconds(values.get("--timeout")),
        one_of("--format", values.get("--format", "json"), ("json", "text")),
    )


def seconds(text: str | None) -> float | None:
    """A positive number of seconds."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 2e6:
        raise usage(f"--timeout is {text!r}", "give a positive number of seconds")
    return value


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in allowed:
        raise usage(f"{name} is {value!r}", f"one of {', '.join(allowed)}")
    return value


def usage(what: str, mend: str = "see `ckdn run --help`") -> ConfigError:
    """A refusal of the command line."""
    return ConfigError(Problem(what, path="ckdn run", mend=mend or "see `ckdn run --help`"))
