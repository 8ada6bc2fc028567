"""The data that ckdn ships: schemas, built-in specs, providers, and the specs compiled into the wheel.

Found alike from a checkout, an editable install, an installed wheel and a wheel on ``sys.path`` (zip). The package's
own loader reads the bytes: :mod:`importlib.resources` would load pathlib, typing and tempfile on every run.
"""

from __future__ import annotations

import errno
import os

import ckdn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KINDS = ("parsers.d", "providers.d", "schemas")
"""The folders of data, as they are called in the repository."""

_ABSENT = (None, 0, errno.ENOENT, errno.ENOTDIR, errno.EISDIR)  # zipimport raises OSError with errno 0

_LOADER: Any = ckdn.__spec__.loader if ckdn.__spec__ else None


def read(kind: str, name: str) -> bytes | None:
    """The content of one shipped file; None when there is no such file. ``name`` is a plain file name."""
    folder = _folder(kind)
    if not _plain(name):
        return None
    try:
        data: bytes = _LOADER.get_data(folder + os.sep + name)
    except OSError as problem:
        if problem.errno in _ABSENT:
            return None
        raise
    return data


def names(kind: str) -> tuple[str, ...]:
    """The file names of a kind, sorted; empty when the folder is not shipped. Hidden files do not count."""
    folder = _folder(kind)
    if _zipped():
        # Cold path: only a wheel that is imported unextracted pays for this import.
        from importlib.resources import files

        place = files("ckdn").joinpath("_data", kind)
        found = [entry.name for entry in place.iterdir() if entry.is_file()] if place.is_dir() else []
    else:
        try:
            with os.scandir(folder) as entries:
                found = [entry.name for entry in entries if entry.is_file()]
        except FileNotFoundError:
            found = []
    return tuple(sorted(name for name in found if not name.startswith(".")))


def origin(kind: str, name: str) -> str:
    """What to show as the file's path, the same in every form of installation: ``<ckdn>/parsers.d/ruff.yaml``."""
    _folder(kind)
    return f"<ckdn>/{kind}/{name}"


def folder(kind: str) -> str:
    """Where a kind's files lie on disk (inside an archive when ckdn is imported from one)."""
    return _folder(kind)


def compiled(name: str) -> tuple[Any, ...] | None:
    """The compiled form of a built-in spec; None outside a wheel and for names that were not compiled."""
    if not name.isidentifier() or name.startswith("__"):
        return None
    try:
        module = __import__(f"ckdn._data.compiled.{name}", fromlist=["SPEC"])
    except ModuleNotFoundError as problem:
        if problem.name and f"ckdn._data.compiled.{name}".startswith(problem.name):
            return None
        raise
    spec: tuple[Any, ...] = module.SPEC
    return spec


def _zipped() -> bool:
    return hasattr(_LOADER, "archive")


def _plain(name: str) -> bool:
    """A file name and nothing else: names come from users (``ckdn schema NAME``)."""
    return bool(name) and not name.startswith(".") and not any(mark in name for mark in "/\\:\0")


def _folder(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"no such kind of data: {kind!r}")
    return _BASE + os.sep + kind


def _base() -> str:
    """The folder that holds the folders of data."""
    package = ckdn.__path__[0]
    packaged = package + os.sep + "_data"
    if _zipped() or os.path.isdir(packaged):
        return packaged
    checkout = os.path.dirname(package)
    # pyproject.toml tells a checkout from site-packages, where a "schemas" beside the package is somebody else's.
    return checkout if os.path.isfile(checkout + os.sep + "pyproject.toml") else packaged


_BASE = _base()
