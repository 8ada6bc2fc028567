"""The user cache: loaded project specs and configs, keyed by content and version.

Never trusted more than its owner: a folder that is a link, somebody else's or open to others is not used, and an entry
that is torn or of another Python is a miss. ``CKDN_CACHE=off`` and ``CI`` turn it off.
"""

from __future__ import annotations

import binascii
import marshal
import os
import stat
import sys

from ckdn import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1
MAX_ENTRIES = 512


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
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return path if private else None


def key_of(kind: str, *parts: str) -> str:
    """The file name of an entry; every part that decides what the value is belongs into it."""
    from ckdn.hashing import sha256_hex

    return (
        kind
        + "-"
        + sha256_hex("\0".join([str(FORMAT), __version__, sys.implementation.cache_tag or "", *parts]).encode())
    )


def get(path: str | None, key: str) -> Any:
    """The value of an entry, or None."""
    if path is None:
        return None
    try:
        with open(os.path.join(path, key), "rb") as file:
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
    data = marshal.dumps(value)
    temp = os.path.join(path, f".{key}.{os.getpid()}")
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(fd, binascii.crc32(data).to_bytes(4, "big") + data)
        finally:
            os.close(fd)
        os.replace(temp, os.path.join(path, key))
        trim(path)
    except OSError:
        return


def trim(path: str) -> None:
    """Keep the newest entries."""
    names = os.listdir(path)
    if len(names) <= MAX_ENTRIES:
        return
    by_age = sorted(names, key=lambda name: os.lstat(os.path.join(path, name)).st_mtime_ns)
    for name in by_age[: len(names) - MAX_ENTRIES]:
        os.unlink(os.path.join(path, name))
