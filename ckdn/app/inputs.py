"""Binding a spec's inputs to files: the run's own logs and reports, or what `parse` was given."""

from __future__ import annotations

import os
import stat

from ckdn import rundir
from ckdn.engine.source import Source, Unread
from ckdn.spec.types import LOG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ckdn.engine.source import Reader
    from ckdn.spec.types import Input, Spec

STREAM_FILES = {LOG: "full.log", "stdout": "stdout.log", "stderr": "stderr.log"}


class NotRegular(Exception):
    """What stands under a report's name is no regular file."""


def open_regular(path: str) -> Reader:
    """A regular file, open for reading; a FIFO or a device neither blocks nor is read."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotRegular(path)
    return os.fdopen(fd, "rb", buffering=0)


def source_of(path: str, name: str) -> Source:
    """A file as an input."""
    return Source(name, lambda: open_regular(path))


def bind_run(
    spec: Spec, run_dir: str, options: Mapping[str, Any], probe: int | None, collected: list[str] | None = None
) -> tuple[dict[str, tuple[Source, ...] | Unread], list[str]]:
    """The inputs of a run, and the report files that were found (paths relative to the run directory).

    ``probe`` is the mark before which a report is stale; None waives that. ``collected`` are copied reports, which
    are the spec's first file input whatever their names.
    """
    inputs: dict[str, tuple[Source, ...] | Unread] = {}
    reports: list[str] = []
    for given in spec.inputs:
        if given.source != "file":
            file_name = STREAM_FILES[given.source]
            inputs[given.name] = (source_of(os.path.join(run_dir, file_name), file_name),)
            continue
        if collected is not None:
            bound, found = bind_collected(collected, run_dir)
            collected = None
        else:
            bound, found = bind_report(given, run_dir, options, probe)
        inputs[given.name] = bound
        reports += found
    inputs.setdefault(LOG, (source_of(os.path.join(run_dir, STREAM_FILES[LOG]), STREAM_FILES[LOG]),))
    return inputs, reports


def bind_report(
    given: Input, run_dir: str, options: Mapping[str, Any], probe: int | None
) -> tuple[tuple[Source, ...] | Unread, list[str]]:
    """One report input: every file its name or glob means, all of them readable and fresh."""
    wanted = str(options.get(given.option) or given.file) if given.option else given.file
    wanted = wanted.replace("{run_dir}", run_dir)
    relative = os.path.relpath(wanted, run_dir) if os.path.isabs(wanted) else os.path.normpath(wanted)
    if relative == ".." or relative.startswith(".." + os.sep) or os.path.isabs(relative):
        return Unread(f"{wanted} is outside the run directory"), []
    names = matching(run_dir, relative)
    if not names:
        return Unread(f"{relative} is missing", missing=True), []
    sources = []
    for name in names:
        path = os.path.join(run_dir, name)
        problem = unreadable(path, name, run_dir, probe)
        if problem:
            return Unread(problem), names
        sources.append(source_of(path, name))
    return tuple(sources), names


def bind_collected(names: list[str], run_dir: str) -> tuple[tuple[Source, ...] | Unread, list[str]]:
    """The reports that `reports` of a check found elsewhere."""
    if not names:
        return Unread("no report that this run wrote matches `reports`", missing=True), []
    return tuple(source_of(os.path.join(run_dir, name), name) for name in names), names


def matching(run_dir: str, wanted: str) -> list[str]:
    """The files a name or a glob means, in path order."""
    if not any(c in wanted for c in "*?["):
        return [wanted] if os.path.lexists(os.path.join(run_dir, wanted)) else []
    import glob  # only inputs with a pattern

    return sorted(glob.glob(wanted, root_dir=run_dir, recursive=True))


def unreadable(path: str, name: str, run_dir: str, probe: int | None) -> str:
    """Why a report cannot be used; empty when it can."""
    try:
        if not os.path.realpath(path).startswith(os.path.realpath(run_dir) + os.sep):
            return f"{name} is a link out of the run directory"
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            return f"{name} is no regular file"
        if probe is not None and not rundir.is_fresh(path, probe):
            return f"{name} is stale: older than the start of this run"
        os.close(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)))
    except OSError as e:
        return f"{name} cannot be read: {e.strerror}"
    return ""


def collect_reports(
    patterns: tuple[str, ...], root: str, run_dir: str, probe: int | None
) -> tuple[list[str], list[str]]:
    """Copy the reports a check says are written elsewhere into the run directory.

    Regular files below ``root`` that were written since the start. Gives the names in the run directory and notes.
    """
    import glob  # only checks with `reports`
    import shutil

    names: list[str] = []
    notes: list[str] = []
    real_root = os.path.realpath(root)
    for pattern in patterns:
        stale = outside = 0
        for found in sorted(glob.glob(pattern, root_dir=root, recursive=True)):
            path = os.path.join(root, found)
            if not os.path.realpath(path).startswith(real_root + os.sep) or not os.path.isfile(path):
                outside += 1
            elif probe is not None and not rundir.is_fresh(path, probe):
                stale += 1
            else:
                name = free_name(run_dir, os.path.basename(found))
                shutil.copy2(path, os.path.join(run_dir, name))
                names.append(name)
        if stale:
            notes.append(f"{stale} reports that match {pattern} are older than this run and were not read")
        if outside:
            notes.append(f"{outside} matches of {pattern} are no regular files below the project and were not read")
    return names, notes


def free_name(folder: str, name: str) -> str:
    """A file name that is not taken."""
    stem, dot, suffix = name.partition(".")
    number, candidate = 1, name
    while os.path.lexists(os.path.join(folder, candidate)):
        number += 1
        candidate = f"{stem}-{number}{dot}{suffix}"
    return candidate


def tail_of(path: str, lines: int, window: int = 1 << 18) -> list[str]:
    """The last lines of a log, clean; only its end is read."""
    from ckdn.engine.text import read_lines  # only red runs

    def opened() -> Reader:
        reader = open_regular(path)
        size = os.fstat(reader.fileno()).st_size  # type: ignore[attr-defined]
        if size > window:
            os.lseek(reader.fileno(), size - window, os.SEEK_SET)  # type: ignore[attr-defined]
        return reader

    try:
        return read_lines(Source(os.path.basename(path), opened), lines)
    except OSError:
        return []
