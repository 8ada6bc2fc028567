"""Run directories: making, locking, finding, writing into and pruning them.

``runs_dir`` holds one directory ``<UTC stamp>-<check>[-N]`` for each run, the symlink ``latest`` (a file ``LATEST``
where there are no symlinks) and ``.locks/``. A run directory is finished once it has ``digest.json`` or, for an
alias, ``aggregate.json``. Its file ``.start`` is written first: it says which check this is and when it was started,
its modification time tells fresh reports from stale ones, and the kernel's lock on it tells a live run from a dead one.

All locks are ``flock``: the kernel drops them when their holder dies, so no file here can be stale.
"""

# pathlib, contextlib and shutil cost more to import than all of this module:
# ruff: noqa: SIM105
from __future__ import annotations

import errno
import os
import stat
import sys
import time
from _thread import get_ident

from ckdn.errors import CkdnError, Problem
from ckdn.model import Struct

if sys.platform != "win32":
    import fcntl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from types import TracebackType

START = ".start"
LOCKS = ".locks"
LATEST = "latest"
LATEST_FILE = "LATEST"
TEMP = ".ckdn-tmp-"
"""How the name of a file begins that :func:`write_atomic` has not finished."""
GONE = ".ckdn-gone-"
"""How the name of a run directory begins that is being removed."""
FINISHED_BY = ("digest.json", "aggregate.json")

_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
_CREATE: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | _NOFOLLOW

YOUNG_NS = 3600 * 1_000_000_000
"""What is younger and tells nothing of its owner (a temporary file, an empty run directory) may be in use."""


class RunDir:
    """A run directory of this process: alive until :meth:`close`, then finished or dead. A context object."""

    __slots__ = ("_fd", "check", "name", "path", "probe", "started_ns")

    def __init__(self, path: str, name: str, check: str, started_ns: int, fd: int) -> None:
        self.path = path
        self.name = name
        """The run id."""
        self.check = check
        self.started_ns = started_ns
        """Nanoseconds since the epoch."""
        self.probe = os.fstat(fd).st_mtime_ns
        """For :func:`is_fresh`, on the clock of this folder's file system."""
        self._fd = fd

    def close(self) -> None:
        """The run is over: its directory may be pruned from now on."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> RunDir:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RunEntry(Struct):
    """A run directory as found on disk."""

    name: str
    """The run id."""
    path: str
    check: str
    """The check or the alias."""
    started_ns: int
    """Nanoseconds since the epoch."""
    finished: bool


class Lock:
    """A held lock; a context object."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def create(runs_dir: str, check: str, now_ns: int | None = None) -> RunDir:
    """A new run directory, never one that is there already, even with two processes at the same instant.

    ``now_ns`` is the start in nanoseconds since the epoch, by default now. Raises CkdnError when ``runs_dir`` cannot be
    written or the check's name cannot be a file's.
    """
    _refuse_as_file_name(check)
    started_ns = time.time_ns() if now_ns is None else now_ns
    stem = f"{stamp(started_ns)}-{check}"
    try:
        os.makedirs(runs_dir, exist_ok=True)
        name, number = stem, 1
        while True:
            try:
                os.mkdir(os.path.join(runs_dir, name))
                break
            except FileExistsError:
                number += 1
                name = f"{stem}-{number}"
        path = os.path.join(runs_dir, name)
        return RunDir(path, name, check, started_ns, _mark_start(path, check, started_ns))
    except OSError as error:
        raise _cannot_write(runs_dir, error) from error


def stamp(at_ns: int) -> str:
    """``20261201T020150Z``."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at_ns // 1_000_000_000))


def _mark_start(path: str, check: str, started_ns: int) -> int:
    fd = os.open(os.path.join(path, START), _CREATE, 0o666)
    try:
        _flock(fd)
    except OSError:  # no locks on this file system: YOUNG_NS has to do
        pass
    os.write(fd, f"{started_ns} {check}\n".encode("utf-8", "surrogateescape"))
    return fd


def _refuse_as_file_name(name: str) -> None:
    if not name or "/" in name or "\0" in name or "\n" in name or name.startswith("."):
        raise CkdnError(Problem(f"{name!r} cannot be part of a file name"))


def _cannot_write(runs_dir: str, error: OSError) -> CkdnError:
    return CkdnError(Problem(f"cannot write runs_dir {runs_dir}: {error.strerror}"))


def _flock(fd: int) -> None:
    if sys.platform == "win32":
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock(runs_dir: str, name: str) -> Lock:
    """Hold the lock of a check, or refuse at once with the pid of the holder.

    The lock ends with :meth:`Lock.close` or with this process, whatever kills it. Raises CkdnError when it is held,
    when ``runs_dir`` cannot be written, and when its file system has no locks.
    """
    _refuse_as_file_name(name)
    folder = os.path.join(runs_dir, LOCKS)
    try:
        os.makedirs(folder, exist_ok=True)
        fd = _open_lock(folder, f"{name}.lock")
    except OSError as error:
        raise _cannot_write(runs_dir, error) from error
    try:
        _flock(fd)
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    except BlockingIOError:
        holder = _holder(fd)
        os.close(fd)
        raise CkdnError(Problem(f"check `{name}` is already running{holder}")) from None
    except OSError as error:
        os.close(fd)
        raise CkdnError(Problem(f"cannot lock in runs_dir {runs_dir}: {error.strerror}")) from error
    return Lock(fd)


def _open_lock(folder: str, name: str) -> int:
    """The lock's file: one of ours, never what a link leads to, since taking the lock overwrites its content."""
    if sys.platform == "win32":  # it has no locks here
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    if stat.S_ISLNK(os.lstat(folder).st_mode):
        raise CkdnError(Problem("is a link, and ckdn writes locks through none", path=folder, mend="remove it"))
    path = os.path.join(folder, name)
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(name, flags, 0o666, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR):
            raise
        raise CkdnError(Problem("is no plain file, so it cannot be locked", path=path, mend="remove it")) from None
    finally:
        os.close(parent)
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:  # another name for the file may be somebody's
        os.close(fd)
        raise CkdnError(Problem("is no plain file, so it cannot be locked", path=path, mend="remove it"))
    return fd


def _holder(fd: int) -> str:
    """`` (pid 123)``; empty in the instant before the holder has said so."""
    try:
        pid = int(os.pread(fd, 32, 0))
        os.kill(pid, 0)
    except PermissionError:  # it is another user's
        pass
    except (ValueError, OSError, OverflowError):
        return ""
    return f" (pid {pid})"


def write_atomic(path: str, data: bytes) -> None:
    """Replace the file: whatever happens, it has its old content or all of ``data``, also after a power cut.

    Raises CkdnError when it cannot be written; the old content is still there then.
    """
    folder = os.path.dirname(path) or "."
    temp = ""
    try:
        temp, fd = _temp_file(folder)
        with os.fdopen(fd, "wb", buffering=0) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            os.fsync(fd)
        os.replace(temp, path)
        temp = ""
        _sync_folder(folder)
    except OSError as error:
        raise CkdnError(Problem(f"cannot write {path}: {error.strerror}")) from error
    finally:
        if temp:
            _unlink(temp)


def _temp_file(folder: str) -> tuple[str, int]:
    """A new file beside the one it will replace."""
    temp = _temp_path(folder)
    return temp, os.open(temp, _CREATE, 0o666)


def _temp_path(folder: str) -> str:
    """A name that nobody else has at this time."""
    return os.path.join(folder, f"{TEMP}{os.getpid()}-{get_ident():x}-{time.monotonic_ns()}")


def _sync_folder(folder: str) -> None:
    if sys.platform == "win32":  # a folder cannot be opened there
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that syncs no folders
            raise
    finally:
        os.close(fd)


def _unlink(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def probe(folder: str) -> int:
    """A mark of this instant, by the clock of that folder's file system, for :func:`is_fresh`.

    For a report outside the run directory; inside it :attr:`RunDir.probe` is the mark. Raises CkdnError.
    """
    try:
        temp, fd = _temp_file(folder)
        try:
            return os.fstat(fd).st_mtime_ns
        finally:
            os.close(fd)
            _unlink(temp)
    except OSError as error:
        raise CkdnError(Problem(f"cannot write {folder}: {error.strerror}")) from error


def is_fresh(path: str, mark: int) -> bool:
    """Was the file written after the probe gave ``mark``? False when it does not exist.

    The same time counts as fresh: on a coarse clock (FAT: 2 s) a report written at once has the probe's own time.
    The time of the last change of the inode counts beside that of the content: no ``touch`` can set it, so a file
    that was given a time in the future before the run is not fresh.
    """
    try:
        found = os.stat(path)
    except OSError:
        return False
    # On Windows st_ctime is the file's birth.
    return found.st_mtime_ns >= mark and (sys.platform == "win32" or found.st_ctime_ns >= mark)


def set_latest(runs_dir: str, run_name: str) -> None:
    """Point ``latest`` at the run; readers see the old one or the new one. Raises CkdnError."""
    link = os.path.join(runs_dir, LATEST)
    temp = _temp_path(runs_dir)
    try:
        os.symlink(run_name, temp)
        os.replace(temp, link)
    except OSError:  # no symlinks here, or somebody's folder has that name
        _unlink(temp)
        write_atomic(os.path.join(runs_dir, LATEST_FILE), os.fsencode(run_name) + b"\n")


def latest(runs_dir: str) -> str:
    """The run that :func:`set_latest` was last given; empty when there is none or it is gone."""
    name = ""
    try:
        name = os.readlink(os.path.join(runs_dir, LATEST))
    except OSError:
        data = _read(os.path.join(runs_dir, LATEST_FILE))
        name = os.fsdecode(data.strip())
    return name if _is_run_name(name) and os.path.isdir(os.path.join(runs_dir, name)) else ""


def list_runs(runs_dir: str, check: str | None = None) -> list[RunEntry]:
    """The run directories, all or those of a check, oldest first; within a second too. Empty without ``runs_dir``."""
    found = []
    for name in _run_names(runs_dir):
        # The name rules most out without reading anything; it cannot rule in: `a-2` may be the second run of `a`.
        if check is None or _may_be_of(name, check):
            entry = _entry(runs_dir, name)
            if check is None or entry.check == check:
                found.append(entry)
    found.sort(key=_by_start)
    return found


def _by_start(entry: RunEntry) -> tuple[int, int, str]:
    # The names decide only where .start was lost and the stamp is all there is; `-10` comes after `-9`.
    return entry.started_ns, len(entry.name), entry.name


def _run_names(runs_dir: str) -> list[str]:
    try:
        with os.scandir(runs_dir) as entries:
            return [e.name for e in entries if _is_run_name(e.name) and e.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CkdnError(Problem(f"cannot read runs_dir {runs_dir}: {error.strerror}")) from error


def _is_run_name(name: str) -> bool:
    date, hour, rest = name[:8], name[9:15], name[17:]
    return bool(rest) and name[8] == "T" and name[15:17] == "Z-" and _digits(date) and _digits(hour)


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _may_be_of(name: str, check: str) -> bool:
    rest = name[17:]
    return rest == check or (rest.startswith(f"{check}-") and _digits(rest[len(check) + 1 :]))


def _entry(runs_dir: str, name: str) -> RunEntry:
    path = os.path.join(runs_dir, name)
    number, _, check = _read(os.path.join(path, START)).decode("utf-8", "surrogateescape").partition(" ")
    if _digits(number) and check.endswith("\n"):
        started_ns, check = int(number), check[:-1]
    else:  # .start is torn or not there: the name is all there is
        started_ns, check = _seconds(name) * 1_000_000_000, name[17:]
    finished = any(os.path.exists(os.path.join(path, file)) for file in FINISHED_BY)
    return RunEntry(name=name, path=path, check=check, started_ns=started_ns, finished=finished)


def _seconds(name: str) -> int:
    """The stamp of a run's name in seconds since the epoch; 0 when it is no time."""
    import calendar  # only for a directory whose .start was lost

    parts = name[:4], name[4:6], name[6:8], name[9:11], name[11:13], name[13:15]
    try:
        return max(0, calendar.timegm(tuple(int(part) for part in parts)))
    except (ValueError, OverflowError):
        return 0


def _read(path: str) -> bytes:
    """A small file's content; empty when there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | _NOFOLLOW | _NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(fd, 4096)
    except OSError:
        return b""
    finally:
        os.close(fd)


def prune(runs_dir: str, keep: int, check: str | None = None, protect: Collection[str] = ()) -> list[str]:
    """Remove the runs that are too many, and what dead ones left; returns the names of the removed runs.

    ``keep`` counts the finished runs of each check (at least 1: the newest stays). Never removed: the run names in
    ``protect``; the members of an aggregate that stays; a live run, and any that started after the oldest live one (it
    may be an alias that will list them). A dead unfinished run goes once a newer one of its check has finished. Only
    plain directories with the name of a run are touched, and no symlink is followed.

    With ``check`` only that check's runs are removed: the cheap form, for the end of a run. Without it those of every
    check, aliases first, so that the members they free go at once, and old temporary files in finished runs as well.
    What cannot be removed stays, without an error; another process may prune at the same time.
    """
    _clean_leftovers(runs_dir)
    keep = max(keep, 1)
    names = _run_names(runs_dir)
    if check is not None:
        own = [name for name in names if _may_be_of(name, check)]
        if len(own) <= keep and all(_is_finished(runs_dir, name) for name in own):
            return []
    runs = list_runs(runs_dir, check)
    guard = _Guard(runs_dir, names, protect)
    aliases = {run.check for run in runs if run.name in guard.aggregates}
    removed: list[str] = []
    for of in sorted({run.check for run in runs}, key=lambda name: (name not in aliases, name)):
        for run in _excess([run for run in runs if run.check == of], keep):
            if not guard.protects(run) and _remove_run(runs_dir, run.name):
                removed.append(run.name)
                guard.aggregates.pop(run.name, None)
    if check is None:
        for run in runs:
            if run.finished and run.name not in removed:
                _unlink_old_temps(run.path)
    return removed


def _is_finished(runs_dir: str, name: str) -> bool:
    return any(os.path.exists(os.path.join(runs_dir, name, file)) for file in FINISHED_BY)


def _excess(runs: list[RunEntry], keep: int) -> list[RunEntry]:
    """Of one check's runs, oldest first: the finished ones over ``keep``, and the dead before the newest finished."""
    finished = [run for run in runs if run.finished]
    too_many = {run.name for run in finished[:-keep]}
    newest = finished[-1].started_ns if finished else 0
    return [run for run in runs if run.name in too_many or (not run.finished and run.started_ns < newest)]


class _Guard:
    """What no pruning may touch."""

    def __init__(self, runs_dir: str, names: Iterable[str], protect: Collection[str]) -> None:
        self._named = protect
        self.aggregates: dict[str, bytes] = {}
        """The content of each stored aggregate, by the name of its run."""
        live = []
        for name in names:
            if content := _read_whole(os.path.join(runs_dir, name, "aggregate.json")):
                self.aggregates[name] = content
            elif not _is_finished(runs_dir, name) and _is_live(os.path.join(runs_dir, name)):
                live.append(_entry(runs_dir, name).started_ns)
        self._live_since = min(live, default=None)

    def protects(self, run: RunEntry) -> bool:
        if run.name in self._named or _is_live(run.path):
            return True
        if self._live_since is not None and run.started_ns >= self._live_since:
            return True
        # Looking for the name as text needs no json (14 ms), and at worst protects too much.
        # A name that is not ASCII may stand there escaped.
        wanted = (f'{run.name}"'.encode(), f"{run.name}/".encode()) if run.name.isascii() else (run.name[:17].encode(),)
        return any(text in content for content in self.aggregates.values() for text in wanted)


def _read_whole(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | _NOFOLLOW | _NONBLOCK)
    except OSError:
        return b""
    try:
        with os.fdopen(fd, "rb") as file:
            return file.read() if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""


def _is_live(path: str) -> bool:
    """Is the process that made this run directory still at it?"""
    try:
        fd = os.open(os.path.join(path, START), os.O_RDONLY | os.O_CLOEXEC | _NOFOLLOW | _NONBLOCK)
    except OSError:  # the instant between mkdir and .start, or a crash in it
        try:
            return time.time_ns() - os.stat(path).st_mtime_ns < YOUNG_NS and not os.listdir(path)
        except OSError:
            return False
    try:
        if sys.platform != "win32":
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:  # no locks on this file system
        return time.time_ns() - os.fstat(fd).st_mtime_ns < YOUNG_NS
    finally:
        os.close(fd)


def _clean_leftovers(runs_dir: str) -> None:
    """Temporary files in ``runs_dir`` itself, and directories whose removal was cut short."""
    try:
        names = os.listdir(runs_dir)
    except OSError:
        return
    for name in names:
        if name.startswith(GONE) and _is_run_name(name[len(GONE) :]):
            _remove_tree(runs_dir, name)
    if any(name.startswith(TEMP) for name in names):
        _unlink_old_temps(runs_dir)


def _unlink_old_temps(folder: str) -> None:
    before_ns = time.time_ns() - YOUNG_NS
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(TEMP) and entry.stat(follow_symlinks=False).st_mtime_ns < before_ns:
                    _unlink(entry.path)  # never a folder: unlink refuses those
    except OSError:
        return


def _remove_run(runs_dir: str, name: str) -> bool:
    """Take the directory out of sight in one step, then remove it: nobody sees half a run."""
    gone = f"{GONE}{name}"
    try:
        os.rename(os.path.join(runs_dir, name), os.path.join(runs_dir, gone))
    except OSError:  # another process was faster, or the leftover of an earlier try cannot be removed
        return False
    _remove_tree(runs_dir, gone)
    return True


def _remove_tree(folder: str, name: str) -> None:
    """Remove a directory and all below it without following a symlink; what cannot be removed stays."""
    try:
        parent = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _remove_at(parent, name)
    except (OSError, RecursionError):
        pass
    finally:
        os.close(parent)


def _remove_at(parent: int, name: str) -> None:
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if not stat.S_IMODE(os.fstat(fd).st_mode) & stat.S_IWUSR:
            os.fchmod(fd, stat.S_IRWXU)  # tools leave read-only folders behind
        with os.scandir(fd) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for entry, is_folder in found:
            if is_folder:
                _remove_at(fd, entry)
            else:
                os.unlink(entry, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)
