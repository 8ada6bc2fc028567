"""Stored runs: which one a reference means, its digest, its log."""

from __future__ import annotations

import errno
import os
import stat

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
SCHEMAS = {"digest.json": "ckdn.digest/2", "aggregate.json": "ckdn.aggregate/1"}
DOCUMENT_BYTES = 1 << 20
"""What ckdn writes is smaller, unless ``max_digest_bytes`` allows more."""


class Stored(Struct):
    """One stored run."""

    run_id: str
    path: str
    data: bytes
    """The digest or aggregate, to print."""
    document: dict[str, Any]
    """The same as a value."""


def find_run(project: Project, reference: str | None) -> Stored:
    """The run that a reference means: a run id, a unique prefix of one, a check's name (its newest whole run), or none
    (the latest whole run). Raises :class:`ConfigError` when there is none, or more than one."""
    most = max(DOCUMENT_BYTES, project.config.run.max_digest_bytes)
    runs = [r for r in rundir.list_runs(project.runs_dir) if r.finished]
    if reference is None:
        name = rundir.latest(project.runs_dir)
        chosen = [r for r in runs if r.name == name] or [r for r in runs if not is_partial(r)][-1:]
        if not chosen:
            raise ConfigError(Problem("no run is stored", path=project.runs_dir, mend="run a check: ckdn run NAME"))
        return stored(chosen[-1], most)
    exact = [r for r in runs if r.name == reference]
    if exact:
        return stored(exact[0], most)
    if reference in project.config.checks or reference in project.config.aliases:
        of_check = [r for r in runs if r.check == reference and not is_partial(r)]
        if not of_check:
            what = f"no whole run of `{reference}` is stored"
            raise ConfigError(Problem(what, path=project.runs_dir, mend=f"run it: ckdn run {reference}"))
        return stored(of_check[-1], most)
    matches = [r for r in runs if r.name.startswith(reference)] if reference else []
    if len(matches) == 1:
        return stored(matches[0], most)
    if matches:
        what = f"`{reference}` means {len(matches)} runs: {', '.join(r.name for r in matches[:5])}"
        raise ConfigError(Problem(what, mend="give more of the id"))
    known = [*project.config.checks, *project.config.aliases, *[r.name for r in runs]]
    raise ConfigError(Problem(f"no run and no check `{reference}`", path=project.runs_dir, mend=near(reference, known)))


def stored(run: RunEntry, most: int = DOCUMENT_BYTES) -> Stored:
    """The document of a finished run, at most ``most`` bytes. Raises :class:`ConfigError` when ckdn wrote no such."""
    from ckdn import digest, validators  # not on the path of `run`

    for name in DOCUMENTS:
        path = os.path.join(run.path, name)
        if not os.path.lexists(path):
            continue
        document = read_json(path, most)
        try:
            validators.validate(document, SCHEMAS[name])
            # What ckdn wrote is clean already, and comes out as the bytes that stand there.
            document = clean_value(document)
            data = digest.serialise(document)
        except (ValueError, RecursionError) as e:  # ValueError: a fault against the schema, or 1e999
            raise ConfigError(Problem(f"is no digest of ckdn: {e}", path=path, mend="run the check again")) from None
        return Stored(run.name, run.path, data, document)
    raise ConfigError(Problem("the run has no digest", path=run.path))


def is_partial(run: RunEntry) -> bool:
    """Whether a run does not speak for its whole check."""
    try:
        meta = read_json(os.path.join(run.path, "meta.json"))
    except ConfigError:
        return False
    return "partial" in meta


def read_json(path: str, most: int = DOCUMENT_BYTES) -> dict[str, Any]:
    """A stored JSON document: an object in a regular file of at most ``most`` bytes, reached by no link."""
    import json  # not on the path of `run`

    def constant(text: str) -> None:
        raise ValueError(f"{text} is no JSON")

    try:
        value = json.loads(read_stored(path, most), parse_constant=constant)
    except OSError as e:
        what = "is a link" if e.errno in (errno.ELOOP, errno.EMLINK) else f"cannot be read: {e.strerror}"
        raise ConfigError(Problem(what, path=path)) from None
    except NotRegular:
        raise ConfigError(Problem("is no regular file", path=path)) from None
    except (ValueError, RecursionError) as e:
        what = "nested too deep" if isinstance(e, RecursionError) else str(e)
        raise ConfigError(Problem(f"cannot be read: {what}", path=path, mend="run the check again")) from None
    if not isinstance(value, dict):
        raise ConfigError(Problem("is no JSON object", path=path))
    return value


def read_stored(path: str, most: int) -> bytes:
    """The bytes of a small file that ckdn itself wrote. Raises OSError, ValueError when it is too large, NotRegular."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    with os.fdopen(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotRegular(path)
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"larger than {most} bytes")
    return data


def clean_value(value: Any) -> Any:
    """The value with every text in it clean and masked."""
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, dict):
        return {safe(key): clean_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_value(item) for item in value]
    return value


def log_text(run: Stored, tail: int | None) -> Iterator[str]:
    """The log of a run in pieces, clean and masked: all of it, or its last lines."""
    path = os.path.join(run.path, "full.log")
    try:
        if os.path.islink(path):
            raise NotRegular(path)
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
