"""The user cache: loaded project specs and configs, keyed by content, by ckdn's own code and by Python's version.

Never trusted more than its owner: a folder or an entry that is a link, somebody else's or open to others is not used,
and an entry that is torn or of another Python is a miss. ``CKDN_CACHE=off`` and ``CI`` turn it off.
"""

from __future__ import annotations

import binascii
import marshal
import os
import stat
import sys

import ckdn
from ckdn.hashing import sha256_hex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FORMAT = 1
MAX_ENTRIES = 512
STATE: list[str] = []
"""What :func:`code_state` said, once."""


def usable(environ: dict[str, str] | os._Environ[str]) -> bool:
    """Whether a cache may be read at all."""
    return environ.get("CKDN_CACHE", "") != "off" and not environ.get("CI") and hasattr(os, "getuid")


def folder(environ: dict[str, str] | os._Environ[str]) -> str | None:
    """The cache folder, made private if it is not there; None when it cannot be trusted."""
    if not usable(environ):
        return None
    base = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or "", ".cache")
    if not os.path.isabs(base):
        return None
    path = os.path.join(base, "ckdn")
    try:
        found = os.lstat(path)
    except OSError:
        try:
            os.makedirs(base, exist_ok=True)
            os.mkdir(path, 0o700)
            found = os.lstat(path)
        except OSError:
            return None
    return path if is_private(found, stat.S_ISDIR) else None


def is_private(found: os.stat_result, kind: Callable[[int], bool]) -> bool:
    """Whether something is of that kind, ours, and nobody else's to read or write."""
    return kind(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def key_of(kind: str, *parts: str) -> str:
    """The file name of an entry; every part that decides what the value is belongs into it."""
    if not STATE:
        STATE.append(code_state())
    own = [str(FORMAT), ckdn.__version__, sys.implementation.cache_tag or "", *STATE]
    return f"{kind}-{sha256_hex(chr(0).join([*own, *parts]).encode('utf-8', 'surrogateescape'))}"


def code_state() -> str:
    """What tells this code from other code of the same version: a clone changes without a new number.

    Size and modification time of the modules that make what is kept; any way of installing changes them too.
    """
    package = ckdn.__path__[0]
    files = [os.path.join(package, name) for name in ("config.py", "catalog.py")]
    folder = os.path.join(package, "spec")
    try:
        files += sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".py"))
    except OSError:  # a wheel that is imported unextracted: the archive stands for all of them
        files = [os.path.dirname(package)]
    state = []
    for path in files:
        found = os.stat(path)
        state.append(f"{found.st_size} {found.st_mtime_ns}")
    return " ".join(state)


def get(path: str | None, key: str) -> Any:
    """The value of an entry, or None."""
    if path is None:
        return None
    try:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        with open(os.open(os.path.join(path, key), flags), "rb") as file:
            if not is_private(os.fstat(file.fileno()), stat.S_ISREG):
                return None
            data = file.read()
    except OSError:
        return None
    if len(data) < 4 or binascii.crc32(data[4:]) != int.from_bytes(data[:4], "big"):
        return None
    try:
        return marshal.loads(data[4:])
    except (ValueError, EOFError, TypeError):
        return None


def put(path: str | None, key: str, value: Any) -> None:
    """Keep a value; a cache that cannot be written is no problem of a run."""
    if path is None:
        return
    temp = os.path.join(path, f".{key}.{os.getpid()}")
    try:
        data = marshal.dumps(value)
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(fd, binascii.crc32(data).to_bytes(4, "big") + data)
        finally:
            os.close(fd)
        os.replace(temp, os.path.join(path, key))
        trim(path)
    except (OSError, ValueError):  # ValueError: a value that marshal does not hold
        return


def trim(path: str) -> None:
    """Keep the newest entries."""
    names = os.listdir(path)
    if len(names) <= MAX_ENTRIES:
        return
    by_age = sorted(names, key=lambda name: os.lstat(os.path.join(path, name)).st_mtime_ns)
    for name in by_age[: len(names) - MAX_ENTRIES]:
        os.unlink(os.path.join(path, name))
