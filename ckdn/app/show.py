"""Stored runs: which one a reference means, its digest, its log."""

from __future__ import annotations

import os

from ckdn import rundir
from ckdn.app.inputs import NotRegular, open_regular, source_of, tail_of
from ckdn.bounds import safe
from ckdn.engine.text import TextBlocks
from ckdn.errors import ConfigError, Problem, near
from ckdn.model import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ckdn.app.project import Project
    from ckdn.rundir import RunEntry

DOCUMENTS = ("digest.json", "aggregate.json")


class Stored(Struct):
    """One stored run."""

    run_id: str
    path: str
    data: bytes
    """The digest or aggregate as stored."""


def find_run(project: Project, reference: str | None) -> Stored:
    """The run that a reference means: a run id, a unique prefix of one, a check's name (its newest whole run), or none
    (the latest whole run). Raises :class:`ConfigError` when there is none, or more than one."""
    runs = [r for r in rundir.list_runs(project.runs_dir) if r.finished]
    if reference is None:
        name = rundir.latest(project.runs_dir)
        chosen = [r for r in runs if r.name == name] or [r for r in runs if not is_partial(r)][-1:]
        if not chosen:
            raise ConfigError(Problem("no run is stored", path=project.runs_dir, mend="run a check: ckdn run NAME"))
        return stored(chosen[-1])
    exact = [r for r in runs if r.name == reference]
    if exact:
        return stored(exact[0])
    if reference in project.config.checks or reference in project.config.aliases:
        of_check = [r for r in runs if r.check == reference and not is_partial(r)]
        if not of_check:
            what = f"no whole run of `{reference}` is stored"
            raise ConfigError(Problem(what, path=project.runs_dir, mend=f"run it: ckdn run {reference}"))
        return stored(of_check[-1])
    matches = [r for r in runs if r.name.startswith(reference)] if reference else []
    if len(matches) == 1:
        return stored(matches[0])
    if matches:
        what = f"`{reference}` means {len(matches)} runs: {', '.join(r.name for r in matches[:5])}"
        raise ConfigError(Problem(what, mend="give more of the id"))
    known = [*project.config.checks, *project.config.aliases, *[r.name for r in runs]]
    raise ConfigError(Problem(f"no run and no check `{reference}`", path=project.runs_dir, mend=near(reference, known)))


def stored(run: RunEntry) -> Stored:
    """The document of a finished run."""
    for name in DOCUMENTS:
        path = os.path.join(run.path, name)
        try:
            with open(path, "rb") as file:
                return Stored(run.name, run.path, file.read())
        except FileNotFoundError:
            continue
        except OSError as e:
            raise ConfigError(Problem(f"cannot be read: {e.strerror}", path=path)) from None
    raise ConfigError(Problem("the run has no digest", path=run.path))


def is_partial(run: RunEntry) -> bool:
    """Whether a run does not speak for its whole check."""
    try:
        meta = read_json(os.path.join(run.path, "meta.json"))
    except ConfigError:
        return False
    return "partial" in meta


def read_json(path: str) -> dict[str, Any]:
    """A stored JSON document."""
    import json  # not on the path of `run`

    try:
        with open(path, "rb") as file:
            value = json.load(file)
    except (OSError, ValueError) as e:
        raise ConfigError(Problem(f"cannot be read: {e}", path=path)) from None
    if not isinstance(value, dict):
        raise ConfigError(Problem("is no JSON object", path=path))
    return value


def log_text(run: Stored, tail: int | None) -> Iterator[str]:
    """The log of a run in pieces, clean and masked: all of it, or its last lines."""
    path = os.path.join(run.path, "full.log")
    try:
        open_regular(path).close()
    except FileNotFoundError:
        raise ConfigError(Problem("the run has no log", path=path)) from None
    except (OSError, NotRegular):
        raise ConfigError(Problem("the log cannot be read", path=path)) from None
    if tail is not None:
        yield from (line + "\n" for line in tail_of(path, tail))
        return
    for block in TextBlocks(source_of(path, "full.log")):
        yield safe(block.decode("utf-8", "replace"))
