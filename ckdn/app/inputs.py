"""Binding a spec's inputs to files: the run's own logs and reports, or what `parse` was given."""

from __future__ import annotations

import os
import stat

from ckdn import rundir
from ckdn.bounds import safe
from ckdn.engine.source import Source, Unread
from ckdn.spec.types import LOG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ckdn.engine.source import Reader
    from ckdn.spec.types import Input, Spec

TAIL_BYTES = 1 << 16
CONTEXT_LINES = 200
"""So many lines before a tail are masked with it; the private keys in use are shorter."""
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

    Regular files below ``root`` that were written since the start, never those of stored runs. Gives the names in the
    run directory and notes.
    """
    import glob  # only checks with `reports`
    import shutil

    names: list[str] = []
    notes: list[str] = []
    seen: set[str] = set()
    real_root, runs_dir = os.path.realpath(root), os.path.realpath(os.path.dirname(run_dir))
    for pattern in patterns:
        stale = outside = 0
        for found in sorted(glob.glob(pattern, root_dir=root, recursive=True)):
            path = os.path.normpath(os.path.join(root, found))
            if path in seen or os.path.realpath(path).startswith(runs_dir + os.sep):
                continue
            seen.add(path)
            if not os.path.realpath(path).startswith(real_root + os.sep) or not os.path.isfile(path):
                outside += 1
            elif probe is not None and not rundir.is_fresh(path, probe):
                stale += 1
            else:
                name = free_name(run_dir, os.path.basename(found))
                shutil.copy2(path, os.path.join(run_dir, name))
                names.append(name)
        if stale:
            what = f"1 report that matches {pattern} is" if stale == 1 else f"{stale} reports that match {pattern} are"
            notes.append(f"not read: {what} older than this run")
        if outside:
            what = f"1 match of {pattern} is" if outside == 1 else f"{outside} matches of {pattern} are"
            notes.append(f"not read: {what} no regular file below the project")
    return names, notes


def free_name(folder: str, name: str) -> str:
    """A file name that is not taken."""
    stem, dot, suffix = name.partition(".")
    number, candidate = 1, name
    while os.path.lexists(os.path.join(folder, candidate)):
        number += 1
        candidate = f"{stem}-{number}{dot}{suffix}"
    return candidate


def tail_of(path: str, lines: int) -> list[str]:
    """The last lines of a log, clean and masked; only its end is read. Empty when it cannot be read."""

    def opened() -> Reader:
        reader = open_regular(path)
        fd: int = reader.fileno()  # type: ignore[attr-defined]
        os.lseek(fd, tail_start(fd, lines + CONTEXT_LINES), os.SEEK_SET)
        return reader

    try:
        return last_lines(Source(os.path.basename(path), opened), lines)
    except (OSError, NotRegular):
        return []


def last_lines(source: Source, lines: int) -> list[str]:
    """The last lines of a text, masked together with those before: a private key may begin there."""
    from ckdn.engine.text import read_lines  # only red runs

    found = read_lines(source, lines + CONTEXT_LINES) if lines else []
    return safe("\n".join(found)).split("\n")[-lines:] if found else []


def tail_start(fd: int, lines: int) -> int:
    """Where to start reading so that the file's last lines come, whole; the start of a file with another encoding."""
    from ckdn.engine.text import LINE_BYTES, bom_of  # only red runs

    if bom_of(os.pread(fd, 4, 0))[1] not in ("", "utf-8"):
        return 0
    size = os.fstat(fd).st_size
    at, found = size, 0
    while at > 0 and found <= lines and size - at < lines * LINE_BYTES:
        step = min(at, TAIL_BYTES)
        at -= step
        found += os.pread(fd, step, at).count(b"\n")
    return at
