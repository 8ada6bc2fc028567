"""The configuration: finding ``ckdn.toml``, reading it strictly, and what it says as plain values.

Search (:func:`find_config`): from the working directory upward to the first folder with ``.git``, ``.hg`` or ``.jj``,
that one included; outside a repository only the working directory. The nearest folder that has a config wins. A config
is ``ckdn.toml``, ``ckdn.yaml``, ``ckdn.yml``, or ``pyproject.toml`` with a ``[tool.ckdn]`` table; two in one folder are
refused, and a file that belongs neither to the user nor to root. A ``pyproject.toml`` that is broken TOML counts only
when it has ``ckdn`` in a table's name or a key: then it is refused, unless the folder has another config.

Reading (:func:`load_config`): unknown keys, options, specs, wrong types and bounds are refused, all at once in the
order of the file, each as ``PATH:LINE:COLUMN: what; the mend``.

The name of a check or alias is at most 64 ASCII letters, digits and ``_ - .``, its first a letter, digit or ``_``, its
last no ``.``: it becomes part of a directory's name, on any system.

In a command only ``{run_dir} {cwd} {python} {files}`` are placeholders. Any other brace is left alone, as in
``awk '{print}'`` and ``find . -exec wc {} +``. ``{files}`` must be an argument of its own.
"""

from __future__ import annotations

import os
import stat

from ckdn.errors import CkdnError, ConfigError, Problem, near
from ckdn.model import SEVERITIES, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Protocol

    from ckdn.spec.cursor import Cursor
    from ckdn.spec.read import Document

    class SpecLookup(Protocol):
        """What the loader must know of the specs."""

        def names(self) -> Iterable[str]:
            """Every spec's name; asked for only to explain an unknown one."""

        def options(self, name: str) -> Mapping[str, Mapping[str, Any]] | None:
            """A spec's options, a small JSON Schema each; ``None`` when it is unknown or does not load."""


SCHEMA = "ckdn.config/1"
NAMES = ("ckdn.toml", "ckdn.yaml", "ckdn.yml")
PYPROJECT = "pyproject.toml"
TABLE = ("tool", "ckdn")
REPOSITORY = (".git", ".hg", ".jj")
PLACEHOLDERS = ("run_dir", "cwd", "python", "files")
NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
MAX_NAME = 64
MAX_SECONDS = 2_000_000
"""23 days: what a poll in milliseconds can wait."""
MAX_FILE = 16 << 20
"""Bytes that are read at most to find a config; what a config may have is :data:`ckdn.spec.read.MAX_BYTES`."""


# ---------------------------------------------------------------- values


class ConfigNotFound(ConfigError):
    """There is no config where one was looked for."""


class ConfigFile(Struct):
    """A config that was found, with its bytes, not yet understood."""

    path: str
    """Absolute."""
    kind: str
    """``toml``, ``yaml`` or ``pyproject``."""
    root: str
    """The project root, absolute: the file's folder; the working directory when the file was named explicitly."""
    cwd: str
    """Where the commands run, absolute. The same as ``root``."""
    shown: str
    """The path for messages: as the user gave it, or relative to the process's working directory."""
    data: bytes


class RunSettings(Struct):
    """``[run]``. Paths are as written: relative to ``Config.root``, those of ``specs`` to the config's folder."""

    runs_dir: str = ".agent-runs"
    keep: int = 20
    """Runs kept per check."""
    top: int = 20
    """Findings in a digest at most."""
    max_snippet_lines: int = 12
    log_tail_lines: int = 40
    max_digest_bytes: int = 16384
    max_log_bytes: int = 1 << 30
    jobs: int = 1
    timeout: float | None = None
    """Seconds, for every check without its own."""
    grace: float = 2
    """Seconds between TERM and KILL."""
    baseline: str = "ckdn.baseline.json"
    default: tuple[str, ...] = ()
    """What ``run`` without a name runs."""
    specs: tuple[str, ...] = ()
    """Folders with more specs."""
    override: tuple[str, ...] = ()
    """Specs that may exist twice with different content; the project's is taken."""
    command_policy: str = "off"
    """``off`` or ``allowlist``."""
    command_prefixes: tuple[str, ...] = ()
    """``[run.command_allowlist] prefixes``, as written."""


class Check(Struct):
    """One ``[check.NAME]`` with a command."""

    name: str
    argv: tuple[str, ...]
    """At least the program; placeholders still in it, see :func:`substitute`."""
    parser: str
    """A spec's name."""
    env: dict[str, str]
    options: dict[str, Any]
    """The spec's options as given: declared and valid (unchecked only when the spec does not load); no defaults."""
    timeout: float | None = None
    """Seconds; ``None`` for ``RunSettings.timeout``."""
    cwd: str = ""
    """Below ``Config.cwd``; empty for that itself."""
    top: int | None = None
    reports: tuple[str, ...] = ()
    """Globs below the project root."""
    allow_empty: bool = False
    allow_stale: bool = False
    findings_on_zero: str = ""
    """``expected`` or empty."""
    fail_on: tuple[str, ...] | None = None
    """Severities that fail; ``None`` for the spec's own."""


class Alias(Struct):
    """One ``[check.NAME]`` with members, all of them checks."""

    name: str
    members: tuple[str, ...]
    fail_fast: bool = True
    jobs: int | None = None
    """``None`` for ``RunSettings.jobs``."""


class Config(Struct):
    """Everything a config says, valid. ``checks`` and ``aliases`` are in the order of the file."""

    run: RunSettings
    checks: dict[str, Check]
    aliases: dict[str, Alias]
    path: str
    """The config file, absolute."""
    root: str
    cwd: str
    sha256: str
    """Of the file's bytes."""
    notes: tuple[str, ...] = ()
    """What was accepted but should be changed, one sentence each."""

    def to_plain(self) -> tuple[Any, ...]:
        """Only tuples, dicts, lists and scalars, as :mod:`marshal` can hold; :func:`config_from_plain` reads it."""
        return (
            tuple(self.run.values()),
            tuple(tuple(check.values()) for check in self.checks.values()),
            tuple(tuple(alias.values()) for alias in self.aliases.values()),
            *(self.path, self.root, self.cwd, self.sha256, self.notes),
        )


def config_from_plain(plain: tuple[Any, ...]) -> Config:
    """The config whose :meth:`Config.to_plain` this is."""
    run, checks, aliases, *rest = plain
    return Config(
        RunSettings(*run),
        {values[0]: Check(*values) for values in checks},
        {values[0]: Alias(*values) for values in aliases},
        *rest,
    )


def substitute(
    argv: Sequence[str], *, run_dir: str, cwd: str, python: str, files: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The command with its placeholders filled in, argument by argument: no value is ever split or read again.

    ``{files}`` becomes one argument per file, none when ``files`` is empty or ``None`` (a run of the whole).
    """
    values = {"{run_dir}": run_dir, "{cwd}": cwd, "{python}": python}
    filled: list[str] = []
    for argument in argv:
        if argument == "{files}":
            filled += files or ()
        elif "{" in argument:
            filled.append(_filled(argument, values))
        else:
            filled.append(argument)
    return tuple(filled)


def _filled(text: str, values: dict[str, str]) -> str:
    """One pass from left to right, so that a placeholder inside a value stays what it is."""
    result = ""
    at = text.find("{")
    while at >= 0:
        end = text.find("}", at) + 1
        value = values.get(text[at:end])
        if value is None:
            result, text = result + text[: at + 1], text[at + 1 :]
        else:
            result, text = result + text[:at] + value, text[end:]
        at = text.find("{")
    return result + text


# ---------------------------------------------------------------- search


def find_config(cwd: str, explicit: str | None = None) -> ConfigFile:
    """The config that holds in ``cwd``, or the file ``explicit`` (its suffix decides how it is read).

    A relative ``explicit`` is relative to the process's own working directory. It may belong to anybody: the user named
    it. Raises :class:`ConfigError` when there is no config, and says where it looked.
    """
    cwd = os.path.abspath(cwd)
    if not os.path.isdir(cwd):
        raise ConfigError(Problem("no such directory", path=cwd))
    if explicit is not None:
        return _explicit(explicit, cwd)
    folders, in_repository = _search_path(cwd)
    for folder in folders:
        found = _in_folder(folder)
        if found is not None:
            return found
    where = f"{cwd} (which is in no repository)" if not in_repository else cwd
    if len(folders) > 1:
        where += f" and above it up to {folders[-1]}"
    what = f"no ckdn.toml, ckdn.yaml or [tool.ckdn] in pyproject.toml in {where}"
    raise ConfigNotFound(Problem(what, mend="write one: `ckdn demo` shows how"))


def _search_path(cwd: str) -> tuple[list[str], bool]:
    """The folders to look into, the nearest first, and whether they end at a repository's root."""
    folders = [cwd]
    while not any(os.path.exists(os.path.join(folders[-1], marker)) for marker in REPOSITORY):
        parent = os.path.dirname(folders[-1])
        if parent == folders[-1]:
            return [cwd], False
        folders.append(parent)
    return folders, True


def _explicit(explicit: str, cwd: str) -> ConfigFile:
    path = os.path.abspath(explicit)
    data = _bytes_of(path, explicit, any_owner=True)
    if data is None:
        raise ConfigError(Problem("no such file", path=explicit, mend="name an existing file"))
    lower = path.lower()
    if os.path.basename(path) == PYPROJECT:
        kind = "pyproject"
    elif lower.endswith((".toml", ".yaml", ".yml")):
        kind = "toml" if lower.endswith(".toml") else "yaml"
    else:
        raise ConfigError(Problem("neither TOML nor YAML by its name", path=explicit, mend="name it .toml or .yaml"))
    return ConfigFile(path, kind, cwd, cwd, explicit, data)


def _in_folder(folder: str) -> ConfigFile | None:
    found: list[ConfigFile] = []
    for name in NAMES:
        path = os.path.join(folder, name)
        data = _bytes_of(path, _shown(path))
        if data is not None:
            found.append(
                ConfigFile(path, "toml" if name.endswith(".toml") else "yaml", folder, folder, _shown(path), data)
            )
    pyproject = _pyproject(folder, alone=not found)
    if pyproject is not None:
        found.append(pyproject)
    if len(found) > 1:
        names = " and ".join(os.path.basename(file.path) for file in found)
        where = " has [tool.ckdn]" if pyproject is not None else ""
        raise ConfigError(
            Problem(f"two configs in one folder: {names}{where}", path=_shown(folder), mend="keep one of them")
        )
    return found[0] if found else None


def _pyproject(folder: str, *, alone: bool) -> ConfigFile | None:
    """The folder's pyproject.toml if it has ``[tool.ckdn]``; a broken one is refused when it is ``alone``."""
    path = os.path.join(folder, PYPROJECT)
    shown = _shown(path)
    data = _bytes_of(path, shown, any_owner=True)
    if data is None or not _may_configure(data):
        return None
    file = ConfigFile(path, "pyproject", folder, folder, shown, data)
    try:
        document = _document(file)
    except ConfigError:
        if alone:
            raise
        return None
    tool = document.value.get("tool")
    if not isinstance(tool, dict) or "ckdn" not in tool:
        return None
    _bytes_of(path, shown)  # now that it is a config, whose it is matters
    return file


def _may_configure(data: bytes) -> bool:
    """Whether some line has ``ckdn`` in a table's name or in a key: parsing every pyproject.toml would cost 32 ms.

    Too many lines may say yes (the parser has the word); a mere dependency on ckdn does not.
    """
    for line in data.splitlines() if b"ckdn" in data else ():
        line = line.strip()
        head, equals, rest = line.partition(b"=")
        if b"ckdn" in line and (
            line.startswith(b"[")
            or (equals and any(part.strip(b" \t\"'") == b"ckdn" for part in head.split(b".")))
            or (head.strip() == b"tool" and b"ckdn" in rest)
        ):
            return True
    return False


def _bytes_of(path: str, shown: str, *, any_owner: bool = False) -> bytes | None:
    """A regular file's bytes, ``None`` when there is no such file; anything else there is refused."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise ConfigError(Problem("a link to nothing", path=shown, mend="mend the link or remove it")) from None
        return None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", path=shown)) from None
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise ConfigError(Problem("not a regular file", path=shown))
    with open(fd, "rb") as stream:
        if not any_owner and hasattr(os, "getuid"):
            owners = {status.st_uid, os.lstat(path).st_uid}
            if not owners <= {os.getuid(), 0}:
                mend = f"own it, or trust it with --config {shown}"
                raise ConfigError(Problem("the file belongs to another user", path=shown, mend=mend))
        if status.st_size > MAX_FILE:
            raise ConfigError(Problem(f"the file has {status.st_size} bytes", path=shown))
        return stream.read(MAX_FILE)


def _shown(path: str) -> str:
    """Relative to the process's working directory where that is shorter."""
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):  # the working directory is gone; another drive
        return path
    return relative if len(relative) < len(path) else path


def _document(file: ConfigFile) -> Document:
    from ckdn.spec.read import read_document  # a warm run has its config from the cache

    kind = "yaml" if file.kind == "yaml" else "toml"
    try:
        return read_document(file.data, file.shown, kind=kind, table=TABLE if file.kind == "pyproject" else ())
    except CkdnError as error:
        raise ConfigError(error.problems) from None


# ---------------------------------------------------------------- loading


def load_config(file: ConfigFile, specs: SpecLookup | Callable[[RunSettings], SpecLookup]) -> Config:
    """What the file says. ``specs`` may be a function of the run settings, as these say where specs are.

    Raises :class:`ConfigError` with every problem, in the order of the file.
    """
    import hashlib  # a warm run has its config from the cache

    from ckdn.spec.cursor import Cursor  # likewise

    document = _document(file)
    problems: list[Problem] = []
    prefix = TABLE if file.kind == "pyproject" else ()
    value = document.value
    for key in prefix:
        value = value.get(key) if isinstance(value, dict) else None
    if prefix and value is None:
        raise ConfigError(Problem("no [tool.ckdn] in it", path=file.shown, mend="write one, or name another file"))
    parts = Cursor(document, prefix, {} if value is None else value, problems).mapping(TOP_KEYS)
    if "schema" in parts:
        parts["schema"].choice((SCHEMA,))
    run, notes = _run_settings(parts.get("run"))
    try:
        lookup = specs(run) if callable(specs) else specs
    except CkdnError as error:
        raise ConfigError((*problems, *error.problems)) from None
    checks: dict[str, Check] = {}
    aliases: dict[str, Alias] = {}
    entries = parts["check"].mapping() if "check" in parts and parts["check"].value is not None else {}
    for name, entry in entries.items():
        _check_name(entry, name)
        _entry(entry, name, lookup, checks, aliases)
    _resolve(parts.get("run"), entries, run, checks, aliases, lookup)
    if problems:
        raise ConfigError(sorted(problems, key=lambda problem: (problem.line, problem.column)))
    sha256 = hashlib.sha256(file.data).hexdigest()
    return Config(run, checks, aliases, file.path, file.root, file.cwd, sha256, notes)


def _check_name(entry: Cursor, name: str) -> None:
    if len(name) > MAX_NAME:
        entry.fail(f"the name of a check has {len(name)} characters", f"use at most {MAX_NAME}")
    elif not name or not set(name) <= NAME_CHARACTERS or name[0] in "-." or name[-1] == ".":
        entry.fail(f"{name!r} is no name for a check", "use letters, digits, _ - and . (first a letter, digit or _)")


def _run_settings(cursor: Cursor | None) -> tuple[RunSettings, tuple[str, ...]]:
    run = RunSettings()
    if cursor is None or cursor.value is None:
        return run, ()
    parts = cursor.mapping(RUN_KEYS)
    for key, part in parts.items():
        setattr(run, RUN_FIELDS.get(key, key), RUN_KEYS[key](part))
    notes: tuple[str, ...] = ()
    if run.command_policy == "workspace":
        run.command_policy = "off"
        notes = (f'{cursor.named()}.command_policy "workspace" means "off": it confined nothing',)
    if run.command_policy == "allowlist" and not run.command_prefixes:
        mend = "write [run.command_allowlist] prefixes = [...]"
        parts["command_policy"].fail("the policy allowlist allows no command at all", mend)
    return run, notes


def _entry(entry: Cursor, name: str, specs: SpecLookup, checks: dict[str, Check], aliases: dict[str, Alias]) -> None:
    """Reads one ``[check.NAME]`` into ``checks`` or ``aliases``."""
    keys = entry.value if isinstance(entry.value, dict) else {}
    if "command" in keys and "members" in keys:
        entry.fail(f"{entry.named()} has both command and members", "a check has a command, an alias has members")
    elif "members" in keys:
        parts = entry.mapping(ALIAS_KEYS)
        aliases[name] = Alias(name=name, **{key: ALIAS_KEYS[key](part) for key, part in parts.items()})
    elif isinstance(entry.value, dict):
        check = _check(entry, name, specs)
        if check is not None:
            checks[name] = check
    else:
        entry.wrong("a table with command and parser, or with members")


def _check(entry: Cursor, name: str, specs: SpecLookup) -> Check | None:
    parts = entry.mapping()
    known = {key: read(parts[key]) for key, read in CHECK_KEYS.items() if key in parts}
    options = _options(entry, {key: part for key, part in parts.items() if key not in CHECK_KEYS}, specs)
    for key, mend in _NEEDED.items():
        if key not in parts:
            entry.fail(f"{entry.named()} has no {key}", mend)
    if not _NEEDED.keys() <= parts.keys():
        return None
    return Check(name=name, argv=known.pop("command"), **{"env": {}, "options": options, **known})


_NEEDED = {
    "command": 'write command = "...", or members = [...] for an alias',
    "parser": 'write parser = "NAME" of a spec, "generic" if only the exit code counts',
}


def _options(entry: Cursor, given: dict[str, Cursor], specs: SpecLookup) -> dict[str, Any]:
    """The options of a check: the keys that are no check's own, each as the spec declares it."""
    parser = entry.value.get("parser")
    declared = specs.options(parser) if isinstance(parser, str) and parser else None
    if declared is None:
        loads = _known_spec(entry, parser, specs)
        for key, part in given.items():  # what a spec we cannot ask may declare, unless it looks like a slip
            mend = near(key, CHECK_KEYS)
            if not loads and mend.startswith("did you mean"):
                entry.fail(f"unknown key `{key}` in {entry.named()}", mend, below=part.path[-1:])
        return {key: part.value for key, part in given.items()}
    for key, part in given.items():
        if key in declared:
            _check_option(part, declared[key])
        else:
            what = f"unknown key `{key}` in {entry.named()}: the spec {parser} has no such option"
            entry.fail(what, near(key, (*CHECK_KEYS, *declared)), below=part.path[-1:])
    return {key: part.value for key, part in given.items()}


def _known_spec(entry: Cursor, parser: object, specs: SpecLookup) -> bool:
    """Whether there is a spec of this name, though it does not load; reports a name that is not known."""
    if not isinstance(parser, str) or not parser:
        return False
    names = set(specs.names())
    if parser not in names:
        entry.fail(f"unknown spec `{parser}` in {entry.named()}", near(parser, names), below=("parser",))
    return parser in names


def _resolve(
    run: Cursor | None,
    entries: dict[str, Cursor],
    settings: RunSettings,
    checks: dict[str, Check],
    aliases: dict[str, Alias],
    specs: SpecLookup,
) -> None:
    """Refuses names that are not there: members, default, override. Names with problems of their own count as there."""
    for name, alias in aliases.items():
        for index, member in enumerate(alias.members):
            what = ""
            if member in aliases:
                what, mend = f"the member {member} of {name} is an alias itself", "name checks only"
            elif member and member not in entries:
                what, mend = f"unknown check `{member}` in {entries[name].named()}", near(member, checks)
            elif member in alias.members[:index]:
                what, mend = f"the member {member} of {name} is here twice", "keep one of them"
            if what:
                _fail_at(entries[name], "members", index, what, mend)
    for index, name in enumerate(settings.default):
        if run is not None and name and name not in entries:
            _fail_at(run, "default", index, f"unknown check `{name}` in {run.named()}.default", near(name, entries))
    names = set(specs.names()) if settings.override else set()
    for index, name in enumerate(settings.override):
        if run is not None and name and name not in names:
            _fail_at(run, "override", index, f"unknown spec `{name}` in {run.named()}.override", near(name, names))


def _fail_at(table: Cursor, key: str, index: int, what: str, mend: str) -> None:
    table.fail(what, mend, below=(key, index))


# ---------------------------------------------------------------- one value each


def _text(cursor: Cursor) -> str:
    """Text for a path, a name or an argument: not empty, no NUL."""
    text = cursor.text()
    if "\0" in text:
        cursor.fail(f"{cursor.named()} has a NUL character", "take it out")
    return text


def _runs_dir(cursor: Cursor) -> str:
    """A folder of its own: never the project itself, nor a folder around it."""
    text = _text(cursor)
    normal = os.path.normpath(text) if text else text
    if normal in (".", "..", "/") or (normal.startswith("../") and set(normal.split("/")) == {".."}):
        cursor.fail(f"{cursor.named()} is `{text}`, which holds more than runs", "name a folder for the runs alone")
    return text


def _texts(cursor: Cursor) -> tuple[str, ...]:
    return tuple(_text(item) for item in cursor.items())


def _at_least(minimum: int) -> Callable[[Cursor], int]:
    return lambda cursor: cursor.integer(minimum=minimum)


def _flag(cursor: Cursor) -> bool:
    return cursor.flag()


def _seconds(cursor: Cursor, *, zero: bool = False) -> float:
    value = cursor.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        cursor.wrong("a number of seconds")
        return 1
    if value < 0 or (value == 0 and not zero) or value > MAX_SECONDS:
        low = "0 or more" if zero else "more than 0"
        cursor.fail(f"{cursor.named()} is {value}", f"seconds must be {low} and at most {MAX_SECONDS}")
    return value


def _grace(cursor: Cursor) -> float:
    return _seconds(cursor, zero=True)


def _default(cursor: Cursor) -> tuple[str, ...]:
    """A list of names; one name may stand alone."""
    return cursor.texts(lone=True)


def _policy(cursor: Cursor) -> str:
    return cursor.choice(("off", "allowlist")) if cursor.value != "workspace" else "workspace"


def _allowlist(cursor: Cursor) -> tuple[str, ...]:
    parts = cursor.mapping(ALLOWLIST_KEYS)
    return _texts(parts["prefixes"]) if "prefixes" in parts else ()


def _command(cursor: Cursor) -> tuple[str, ...]:
    """Text is split as a POSIX shell would, without running one; a list is taken as it is."""
    if isinstance(cursor.value, list):
        arguments = [
            item.text(empty=True) if isinstance(item.value, str) else _no_argument(item) for item in cursor.items()
        ]
    elif isinstance(cursor.value, str):
        arguments = _split(cursor)
    else:
        cursor.wrong("text or a list of texts")
        return ()
    if not arguments or not arguments[0].strip():
        cursor.fail(f"{cursor.named()} is empty" if not any(arguments) else f"{cursor.named()} names no program")
    if any("\0" in argument for argument in arguments):
        cursor.fail(f"{cursor.named()} has a NUL character", "take it out")
    if any("{files}" in argument for argument in arguments if argument != "{files}"):
        cursor.fail(f"{cursor.named()} has {{files}} inside an argument", "make it an argument of its own")
    return tuple(arguments)


def _no_argument(item: Cursor) -> str:
    item.wrong("text")
    return "?"


SHELL_OPERATORS = ("&&", "||", "|", ";", ">", ">>", "<", "2>&1", "2>", "&>", "&")
"""Words that would silently become arguments of the command."""
SHELL_MEND = 'write ["sh", "-c", "…"], or run one command'


def _split(cursor: Cursor) -> list[str]:
    import shlex  # loads re; a warm run has its config from the cache

    try:
        words = shlex.split(cursor.value)
        if "\n" in cursor.value.strip() and any(line.strip() for line in cursor.value.strip().split("\n")[1:]):
            cursor.fail(f"{cursor.named()} has several lines, and there is no shell", SHELL_MEND)
        quoted = shlex.shlex(cursor.value, posix=False, punctuation_chars="")
        quoted.whitespace_split = True
        operator = next((word for word in quoted if word in SHELL_OPERATORS), "")
        if operator:
            cursor.fail(f"{cursor.named()} has `{operator}`, and there is no shell", SHELL_MEND)
        return words
    except ValueError as error:
        if "escaped" in str(error):
            cursor.fail(f"{cursor.named()} ends in a backslash", "take it out, or double it")
        else:
            cursor.fail(f"{cursor.named()} has an unbalanced quote", "close it, or write the command as a list")
        return ["?"]


def _env(cursor: Cursor) -> dict[str, str]:
    env: dict[str, str] = {}
    for name, part in cursor.mapping().items():
        if not name or "=" in name or "\0" in name:
            part.fail(f"{name!r} is no name for a variable")
        env[name] = part.text(empty=True)
        if "\0" in env[name]:
            part.fail(f"{part.named()} has a NUL character", "take it out")
    return env


def _reports(cursor: Cursor) -> tuple[str, ...]:
    globs = _texts(cursor)
    for item, glob in zip(cursor.items() if globs else (), globs, strict=False):
        if glob.startswith(("/", "\\", "~")) or glob[1:2] == ":" or ".." in glob.replace("\\", "/").split("/"):
            item.fail(f"{item.named()} leaves the project", "write a path below the project root, without ..")
    return globs


def _severities(cursor: Cursor) -> tuple[str, ...]:
    found: list[str] = []
    for item in cursor.items():
        text = item.text()
        if text and text not in SEVERITIES:
            item.fail(f"unknown severity `{text}` in {cursor.named()}", near(text, SEVERITIES))
        found.append(text)
    if cursor.value == []:
        cursor.fail(f"{cursor.named()} is empty: nothing could fail", "name at least error")
    return tuple(dict.fromkeys(found))


def _on_zero(cursor: Cursor) -> str:
    return cursor.choice(("expected",))


def _members(cursor: Cursor) -> tuple[str, ...]:
    members = cursor.texts()
    if cursor.value == []:
        cursor.fail(f"{cursor.named()} is empty", "name at least one check")
    return members


TOP_KEYS = ("schema", "run", "check")
ALLOWLIST_KEYS = ("prefixes",)
RUN_KEYS: dict[str, Callable[[Cursor], Any]] = {
    "runs_dir": _runs_dir,
    "keep": _at_least(1),
    "top": _at_least(1),
    "max_snippet_lines": _at_least(0),
    "log_tail_lines": _at_least(0),
    "max_digest_bytes": _at_least(512),  # less holds no finding
    "max_log_bytes": _at_least(1),
    "jobs": _at_least(1),
    "timeout": _seconds,
    "grace": _grace,
    "baseline": _text,
    "default": _default,
    "specs": _texts,
    "override": _texts,
    "command_policy": _policy,
    "command_allowlist": _allowlist,
}
RUN_FIELDS = {"command_allowlist": "command_prefixes"}
"""Where the field of :class:`RunSettings` has another name than the key."""
CHECK_KEYS: dict[str, Callable[[Cursor], Any]] = {
    "command": _command,
    "parser": _text,
    "timeout": _seconds,
    "env": _env,
    "cwd": _text,
    "top": _at_least(1),
    "reports": _reports,
    "allow_empty": _flag,
    "allow_stale": _flag,
    "findings_on_zero": _on_zero,
    "fail_on": _severities,
}
ALIAS_KEYS: dict[str, Callable[[Cursor], Any]] = {"members": _members, "fail_fast": _flag, "jobs": _at_least(1)}


# ---------------------------------------------------------------- options


def _check_option(cursor: Cursor, schema: Mapping[str, Any]) -> None:
    """Refuses a value that the option's JSON Schema does: type, enum, minimum, maximum, and these for ``items``."""
    wanted = schema.get("type")
    if wanted in _TYPES and not _TYPES[wanted][1](cursor.value):
        cursor.wrong(_TYPES[wanted][0])
        return
    if "enum" in schema and not any(_same(cursor.value, allowed) for allowed in schema["enum"]):
        allowed = [str(item) for item in schema["enum"]]
        value = cursor.value if isinstance(cursor.value, str) else repr(cursor.value)
        cursor.fail(f"{cursor.named()} is `{value}`", near(str(value), allowed) or f"one of {', '.join(allowed)}")
    if _is_number(cursor.value):
        if "minimum" in schema and cursor.value < schema["minimum"]:
            cursor.fail(f"{cursor.named()} is {cursor.value}", f"it must be at least {schema['minimum']}")
        if "maximum" in schema and cursor.value > schema["maximum"]:
            cursor.fail(f"{cursor.named()} is {cursor.value}", f"it must be at most {schema['maximum']}")
    if isinstance(cursor.value, str) and "\0" in cursor.value:
        cursor.fail(f"{cursor.named()} has a NUL character", "take it out")
    if isinstance(cursor.value, list) and isinstance(schema.get("items"), dict):
        for item in cursor.items():
            _check_option(item, schema["items"])


def _same(one: object, two: object) -> bool:
    """Equality that tells 1 from true."""
    return one == two and isinstance(one, bool) == isinstance(two, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("text", lambda value: isinstance(value, str)),
    "integer": ("an integer", _is_integer),
    "number": ("a number", _is_number),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "array": ("a list", lambda value: isinstance(value, list)),
}
