"""Compiling specs into Python modules for the wheel: one constant each, which needs no parser when it is imported."""

from __future__ import annotations

import hashlib
import os

from ckdn.errors import CkdnError, Problem, SpecError
from ckdn.spec import expressions as ex
from ckdn.spec.cursor import Cursor
from ckdn.spec.load import load
from ckdn.spec.read import read_document
from ckdn.spec.types import Spec, freeze

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ckdn.spec.read import Document

SUFFIXES = (".yaml", ".yml", ".toml")
LAUNCHERS = "_launchers"
LAUNCHERS_SCHEMA = "ckdn.launchers/1"
LAUNCHER_KEYS = ("schema", "lines")


def write(parsers: str, out: str) -> list[str]:
    """Compile every spec of the folder ``parsers`` into modules below ``out``; the names written.

    A module holds ``SPEC = (sha256 of the file, the names of the specs it needs, the frozen spec)``; the launchers'
    module holds their patterns. Raises :class:`CkdnError` with every problem of every spec.
    """
    files = {name.rpartition(".")[0]: name for name in sorted(os.listdir(parsers)) if name.endswith(SUFFIXES)}
    problems: list[Any] = []
    written = []
    loaded: dict[str, tuple[Spec, Document]] = {}
    loading: list[str] = []

    def get(name: str) -> tuple[Spec, Document]:
        if name not in loaded:
            if name not in files:
                raise SpecError(f"unknown spec `{name}`")
            if name in loading:
                raise SpecError(f"`{loading[0]}` needs itself: {' → '.join([*loading, name])}")
            loading.append(name)
            try:
                with open(os.path.join(parsers, files[name]), "rb") as file:
                    document = read_document(file.read(), files[name], integer_keys=True)
                loaded[name] = load(document, name, get), document
            finally:
                loading.pop()
        return loaded[name]

    os.makedirs(out, exist_ok=True)
    for name, file_name in files.items():
        try:
            with open(os.path.join(parsers, file_name), "rb") as file:
                data = file.read()
            content: Any
            if name == LAUNCHERS:
                content = launcher_patterns(read_document(data, file_name, integer_keys=True))
            else:
                content = (hashlib.sha256(data).hexdigest(), all_needs(get(name)[1].value, get), freeze(get(name)[0]))
                written.append(name)
        except CkdnError as e:
            problems += e.problems
            continue
        write_module(os.path.join(out, f"{name}.py"), "SPEC", content)
    if problems:
        raise SpecError(problems)
    write_module(os.path.join(out, "__init__.py"), "NAMES", tuple(written))
    return written


def write_module(path: str, constant: str, value: Any) -> None:
    """One generated module."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'"""Generated when the wheel is built; see ckdn/spec/compiled.py."""\n\n{constant} = {value!r}\n')


def needs(value: Any) -> tuple[str, ...]:
    """The specs that a spec's document names: extended, included, chosen from."""
    names: list[str] = []
    if isinstance(value, dict):
        if isinstance(value.get("extends"), str):
            names.append(value["extends"])
        for include in value.get("include") or ():
            names.append(include if isinstance(include, str) else include.get("spec", ""))
        variants = value.get("variants")
        if isinstance(variants, dict) and isinstance(variants.get("choose"), dict):
            names += variants["choose"].values()
    return tuple(dict.fromkeys(n for n in names if isinstance(n, str) and n))


def all_needs(value: Any, other: Callable[[str], tuple[Spec, Document]]) -> tuple[str, ...]:
    """Every spec on which a spec's document rests, also through others."""
    found: dict[str, None] = {}
    queue = list(needs(value))
    while queue:
        name = queue.pop(0)
        if name not in found:
            found[name] = None
            queue += needs(other(name)[1].value)
    return tuple(found)


def launcher_patterns(document: Document) -> tuple[str, ...]:
    """The patterns of ``_launchers.yaml``, each checked."""
    problems: list[Problem] = []
    root = Cursor(document, (), document.value, problems)
    parts = root.mapping(LAUNCHER_KEYS)
    for key in LAUNCHER_KEYS:
        if key not in parts and root.sound:
            root.fail(f"`{key}` is missing")
    if "schema" in parts and parts["schema"].value != LAUNCHERS_SCHEMA:
        parts["schema"].fail(f"schema is {parts['schema'].value}", f"this ckdn reads {LAUNCHERS_SCHEMA}")
    patterns = []
    for item in parts["lines"].items() if "lines" in parts else ():
        patterns.append(ex.regex(item))
        if ex.takes_everything(patterns[-1]):
            item.fail(f"{item.named()} matches every line", "name what a launcher prints")
    if problems:
        raise SpecError(problems)
    return tuple(patterns)
