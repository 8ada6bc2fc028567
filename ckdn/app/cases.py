"""The cases of specs: examples in their files and captured output in fixture folders, read strictly."""

from __future__ import annotations

import os
from functools import partial

from ckdn.app import inputs as binding
from ckdn.engine.source import Source, Unread
from ckdn.errors import SpecError
from ckdn.model import STATUSES, Record, Struct
from ckdn.spec.cursor import Cursor
from ckdn.spec.types import LOG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ckdn.engine.source import Reader
    from ckdn.spec.read import Document
    from ckdn.spec.types import Spec

    Bound = dict[str, "tuple[Source, ...] | Unread"]

# Imports inside functions: every command but `run` loads this module, and only `spec` needs what they load.
CASE_FILE = "case.yaml"
DIGEST_FILE = "digest.json"
STREAM_FILES = {LOG: "log.txt", "stdout": "stdout.txt", "stderr": "stderr.txt"}
CASE_KEYS = (
    "tool", "version", "argv", "rc", "platform", "origin", "cwd", "options", "state", "note", "env", "expect"
)  # fmt: skip
ABOUT_RECORDS = ("message_contains", "path_endswith", "test_frame")
"""What a `has` entry may say beside the fields of a record; see :func:`fits`."""


class Case(Struct):
    """One example or fixture of a spec."""

    name: str
    """``SPEC/CASE``."""
    state: str
    rc: int
    options: dict[str, Any]
    files: dict[str, bytes | str]
    """By input name for streams, by file name for reports: the bytes, or the path of a file."""
    expect: dict[str, Any]
    """Keys of the digest, and ``also_ok`` and ``has``."""
    roots: tuple[str, ...] = ()
    version: str = ""
    digest_path: str = ""
    """Where the expected digest is; empty for examples."""


def cases_of(name: str, document: Document, fixtures: tuple[str, ...]) -> Iterator[Case]:
    """The examples in a spec's file, which has been loaded, and the fixtures beside it.

    Raises :class:`CkdnError` at the first one that is wrong, with every problem of it.
    """
    return (read() for _, read in readers_of(name, document, fixtures))


def readers_of(name: str, document: Document, fixtures: tuple[str, ...]) -> Iterator[tuple[str, Callable[[], Case]]]:
    """The same one by one, with their names: a case that is wrong stops no other."""
    for position, example in enumerate(document.value.get("examples") or ()):
        yield f"{name}/{example['name']}", partial(example_case, name, document, position, example)
    for path in fixture_paths(name, fixtures):
        yield f"{name}/{os.path.basename(path)}", partial(fixture_case, name, path)


def fixture_paths(name: str, fixtures: tuple[str, ...]) -> Iterator[str]:
    """The folders of a spec's fixtures, sorted by name."""
    for folder in fixtures:
        base = os.path.join(folder, name)
        for case in sorted(os.listdir(base)) if os.path.isdir(base) else ():
            if os.path.isfile(os.path.join(base, case, CASE_FILE)):
                yield os.path.join(base, case)


def example_case(name: str, document: Document, position: int, example: dict[str, Any]) -> Case:
    """One example of a spec's file; the loader has looked at all but what it expects."""
    files: dict[str, bytes | str] = {s: example[s].encode() for s in STREAM_FILES if s in example}
    files.update({file_name: content.encode() for file_name, content in (example.get("files") or {}).items()})
    expect = Cursor(document, ("examples", position, "expect"), example.get("expect") or {}, [])
    checked(expect)
    if expect.problems:
        raise SpecError(expect.problems)
    return Case(
        f"{name}/{example['name']}", example.get("state", example["name"]), example.get("rc", 0),
        example.get("options") or {}, files, example.get("expect") or {},
    )  # fmt: skip


def fixture_case(name: str, folder: str) -> Case:
    """One fixture folder."""
    from ckdn.spec.read import read_document

    path = os.path.join(folder, CASE_FILE)
    with open(path, "rb") as file:
        document = read_document(file.read(), path)
    root = Cursor(document, (), document.value, [])
    parts = root.mapping(CASE_KEYS)
    for key in ("rc", "expect", "state"):
        if root.sound and key not in parts:
            root.fail(f"a case needs `{key}`")
    rc = parts["rc"].integer() if "rc" in parts else 0
    texts = {key: parts[key].text() for key in ("state", "origin", "version", "cwd") if key in parts}
    options = parts["options"].mapping() if "options" in parts else {}
    if "expect" in parts:
        checked(parts["expect"])
    if root.problems:
        raise SpecError(root.problems)
    version = texts.get("version", "") if texts.get("origin") == "captured" else ""
    return Case(
        f"{name}/{os.path.basename(folder)}", texts["state"], rc, {key: part.value for key, part in options.items()},
        fixture_files(folder), document.value["expect"], (texts["cwd"],) if "cwd" in texts else (), version,
        os.path.join(folder, DIGEST_FILE),
    )  # fmt: skip


def fixture_files(folder: str) -> dict[str, bytes | str]:
    """The captured files of a fixture, those in folders too."""
    files: dict[str, bytes | str] = {}
    streams = {file_name: stream for stream, file_name in STREAM_FILES.items()}
    for base, _, names in os.walk(folder):
        for file_name in sorted(names):
            path = os.path.join(base, file_name)
            relative = os.path.relpath(path, folder).replace(os.sep, "/")
            if relative not in (CASE_FILE, DIGEST_FILE):
                files[streams.get(relative, relative)] = path
    return files


def checked(expect: Cursor) -> None:
    """Refuse an expectation that could never fail, or never hold, by its form."""
    parts = expect.mapping()
    if "status" in parts:
        parts["status"].choice(STATUSES)
    for item in parts["also_ok"].items() if "also_ok" in parts else ():
        item.choice(STATUSES)
    for item in parts["has"].items() if "has" in parts else ():
        item.mapping((*Record._fields, *ABOUT_RECORDS))


def fits(wanted: dict[str, Any], record: Record) -> bool:
    """Whether a record is what a `has` entry describes.

    A field of the record is equal; ``message_contains`` stands in the message or the detail, ``path_endswith`` at the
    path's end; ``test_frame`` (``PATH:LINE``) is a frame of a Python traceback in the detail.
    """
    for key, value in wanted.items():
        if key == "message_contains":
            good = value in "\n".join([record.message, *record.detail])
        elif key == "path_endswith":
            good = record.path.endswith(value)
        elif key == "test_frame":
            path, _, line = value.rpartition(":")
            good = any(f'{path}", line {line}' in text for text in record.detail)
        else:
            good = getattr(record, key) == value
        if not good:
            return False
    return True


def bind_case(spec: Spec, case: Case) -> Bound:
    """The inputs of a case."""
    bound: Bound = {}
    for given in spec.inputs:
        if given.source == "file":
            names = [n for n in sorted(case.files) if n == given.file or matches(n, given.file)]
            bound[given.name] = (
                tuple(source_of(case, n) for n in names) if names else Unread(f"{given.file} is missing", missing=True)
            )
        else:
            bound[given.name] = (source_of(case, given.source),)
    bound.setdefault(LOG, (source_of(case, LOG),))
    return bound


def matches(name: str, pattern: str) -> bool:
    """Whether a glob means a file name."""
    import fnmatch

    return any(c in pattern for c in "*?[") and fnmatch.fnmatch(name, pattern)


def source_of(case: Case, name: str) -> Source:
    """One file of a case; a stream that is not there is empty."""
    content = case.files.get(name, b"")
    shown = {LOG: "full.log", "stdout": "stdout.log", "stderr": "stderr.log"}.get(name, name)
    if isinstance(content, str):
        return binding.source_of(content, shown)
    import io

    def opened() -> Reader:
        return io.BytesIO(content)

    return Source(shown, opened)
