"""The authoring side of specs: listing, showing, linting and testing them."""

from __future__ import annotations

import os

from ckdn import digest
from ckdn.app import inputs as binding
from ckdn.catalog import Catalog
from ckdn.engine.interpret import Settings, interpret
from ckdn.engine.source import Source, Unread
from ckdn.errors import CkdnError, ConfigError, Problem, SpecError
from ckdn.model import Ending, Struct
from ckdn.spec import lint
from ckdn.spec.types import LOG
from ckdn.verdict import decide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ckdn.engine.source import Reader
    from ckdn.model import Facts, Verdict
    from ckdn.spec.read import Document
    from ckdn.spec.types import Spec

    Bound = dict[str, "tuple[Source, ...] | Unread"]

# Imports inside functions: every command but `run` loads this module, and only `spec` needs what they load.
CASE_FILE = "case.yaml"
DIGEST_FILE = "digest.json"
STREAM_FILES = {LOG: "log.txt", "stdout": "stdout.txt", "stderr": "stderr.txt"}
EXAMPLE_KEYS = ("name", "state", "rc", "options", "log", "stdout", "stderr", "files", "expect")


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
    roots: tuple[str, ...] = ()
    version: str = ""
    digest_path: str = ""
    """Where the expected digest is; empty for examples."""


class Outcome(Struct):
    """What became of one case."""

    case: str
    problems: tuple[str, ...]
    updated: bool = False


class SpecInfo(Struct):
    """One line of `spec list`."""

    name: str
    title: str
    category: str
    origin: str
    proof: str


def list_specs(catalog: Catalog) -> list[SpecInfo]:
    """Every spec of the catalog; one that does not load is listed with its first problem as the title."""
    found = []
    for name in catalog.names():
        try:
            loaded = catalog.load(name)
            found.append(SpecInfo(name, loaded.spec.title, loaded.spec.category, loaded.origin, proven_by(loaded.spec)))
        except SpecError as e:
            found.append(SpecInfo(name, f"does not load: {e.problems[0]}", "", "", ""))
    return found


def proven_by(spec: Spec) -> str:
    """How green is proven, in a few words."""
    if spec.variants:
        return f"by {spec.variant_option}: " + ", ".join(name for _, name in spec.variants)
    kinds = [p.kind for p in spec.proof]
    if kinds == ["exit_code"]:
        return "by exit code only"
    words = {"report": "report", "match": "marker", "no_match": "no counter-marker", "holds": "report content"}
    named = [words.get(kind, "counts") for kind in kinds if kind != "exit_code"]
    return ", ".join(dict.fromkeys(named))


def spec_source(catalog: Catalog, name: str) -> tuple[str, bytes]:
    """A spec's file: where it is, and its bytes."""
    catalog.load(name)
    found = catalog.find(name)
    if found is None:
        raise SpecError(f"unknown spec '{name}'")
    return found.origin, found.data


def lint_specs(catalog: Catalog, names: tuple[str, ...], fixtures: tuple[str, ...]) -> list[tuple[str, Problem]]:
    """Problems of specs with their severity: what does not load, and conventions that are not kept."""
    result: list[tuple[str, Problem]] = []
    for name in names or catalog.names():
        try:
            spec, document = catalog.read(name)
        except SpecError as e:
            result += [("error", p) for p in e.problems]
            continue
        cases = [*cases_of(name, document, fixtures), *cases_of_choosers(catalog, name, fixtures)]
        keys = tuple(document.value) if isinstance(document.value, dict) else ()
        versions = tuple(c.version for c in cases if c.version)
        subject = lint.Subject(spec, keys, tuple(dict.fromkeys(c.state for c in cases)), versions)
        for found in lint.lint(subject):
            place = document.problem((found.key,), f"{found.what} [{found.id}]", found.mend)
            result.append((found.severity, place))
    return result


def check_cases(
    catalog: Catalog, names: tuple[str, ...], fixtures: tuple[str, ...], *, update: bool = False
) -> Iterator[Outcome]:
    """Run every example and fixture of specs, twice each."""
    launchers = catalog.launchers()
    for name in names or catalog.names():
        try:
            _, document = catalog.read(name)
            cases = list(cases_of(name, document, fixtures))
        except CkdnError as e:
            yield Outcome(name, tuple(str(p) for p in e.problems))
            continue
        shown = cases or list(cases_of_choosers(catalog, name, fixtures))
        if not shown and not catalog.load(name).spec.variants:
            yield Outcome(name, ("no example and no fixture",))
        for case in cases:
            yield run_case(catalog, name, case, launchers, update)


def cases_of(name: str, document: Document, fixtures: tuple[str, ...]) -> Iterator[Case]:
    """The examples in a spec's file and the fixtures beside it."""
    value = document.value if isinstance(document.value, dict) else {}
    for position, example in enumerate(value.get("examples") or ()):
        yield example_case(name, document, position, example)
    for folder in fixtures:
        base = os.path.join(folder, name)
        for case in sorted(os.listdir(base)) if os.path.isdir(base) else ():
            if os.path.isfile(os.path.join(base, case, CASE_FILE)):
                yield fixture_case(name, os.path.join(base, case), case)


def cases_of_choosers(catalog: Catalog, name: str, fixtures: tuple[str, ...]) -> Iterator[Case]:
    """The cases of specs that choose this one as a variant, as far as their options do choose it."""
    for other in catalog.names():
        try:
            loaded = catalog.load(other)
            if name not in [chosen for _, chosen in loaded.spec.variants]:
                continue
            for case in cases_of(other, catalog.read(other)[1], fixtures):
                if catalog.resolve(other, case.options).spec.name == name:
                    yield case
        except SpecError:
            continue  # told where that spec itself is looked at


def example_case(name: str, document: Document, position: int, example: Any) -> Case:
    """One example of a spec's file."""
    if not isinstance(example, dict) or not isinstance(example.get("name"), str):
        raise SpecError(document.problem(("examples", position), "an example needs a name"))
    unknown = [key for key in example if key not in EXAMPLE_KEYS]
    if unknown:
        raise SpecError(document.problem(("examples", position, unknown[0]), f"unknown key `{unknown[0]}`"))
    files: dict[str, bytes | str] = {}
    for stream in STREAM_FILES:
        if stream in example:
            files[stream] = str(example[stream]).encode()
    for file_name, content in (example.get("files") or {}).items():
        files[file_name] = str(content).encode()
    state = str(example.get("state", example["name"]))
    return Case(
        f"{name}/{example['name']}", state, int(example.get("rc", 0)), example.get("options") or {}, files,
        example.get("expect") or {},
    )  # fmt: skip


def fixture_case(name: str, folder: str, case: str) -> Case:
    """One fixture folder."""
    from ckdn.spec.read import read_document

    path = os.path.join(folder, CASE_FILE)
    with open(path, "rb") as file:
        value = read_document(file.read(), path).value
    files: dict[str, bytes | str] = {}
    streams = {file_name: stream for stream, file_name in STREAM_FILES.items()}
    for base, _, names in os.walk(folder):
        for file_name in sorted(names):
            relative = os.path.relpath(os.path.join(base, file_name), folder)
            if relative not in (CASE_FILE, DIGEST_FILE):
                files[streams.get(relative, relative)] = os.path.join(base, file_name)
    version = str(value.get("version", "")) if value.get("origin") == "captured" else ""
    return Case(
        f"{name}/{case}", value.get("state", ""), int(value["rc"]), value.get("options") or {}, files,
        value.get("expect") or {}, (value["cwd"],) if "cwd" in value else (), version,
        os.path.join(folder, DIGEST_FILE),
    )  # fmt: skip


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


def run_case(catalog: Catalog, name: str, case: Case, launchers: tuple[str, ...], update: bool) -> Outcome:
    """Interpret a case twice and compare with what it expects."""
    try:
        first, facts, verdict = digest_of(catalog, name, case, launchers)
        second = digest_of(catalog, name, case, launchers)[0]
    except CkdnError as e:
        return Outcome(case.name, tuple(str(p) for p in e.problems))
    problems = [] if first == second else ["two readings of the same bytes differ"]
    problems += expectation_problems(case, verdict, facts, first)
    updated = False
    if case.digest_path:
        expected = read_bytes(case.digest_path)
        if update and expected != first and not problems:
            with open(case.digest_path, "wb") as file:
                file.write(first)
            updated = True
        elif expected is None and not update:
            problems.append("no digest.json: look at the digest, then `ckdn spec test --update`")
        elif expected != first and not update:
            problems += difference(expected or b"{}", first)
    return Outcome(case.name, tuple(problems), updated)


def digest_of(catalog: Catalog, name: str, case: Case, launchers: tuple[str, ...]) -> tuple[bytes, Facts, Verdict]:
    """The digest a case gives, as bytes."""
    declared = catalog.load(name).spec.options
    options = {**{n: s["default"] for n, s in declared.items() if "default" in s}, **case.options}
    unknown = [n for n in case.options if n not in declared]
    if unknown:
        raise ConfigError(f"{case.name}: unknown option `{unknown[0]}`")
    spec = catalog.resolve(name, options).spec
    settings = Settings(case.rc, options, roots=case.roots, launchers=launchers)
    included: dict[str, Facts] = {}
    for include in spec.includes:
        other = catalog.load(include.spec).spec
        bound = bind_case(other, case)
        if not (include.optional and any(isinstance(b, Unread) for b in bound.values())):
            included[include.spec] = interpret(other, bound, settings)
    facts = interpret(spec, bind_case(spec, case), settings, included)
    ending = ending_of(case.rc)
    verdict = decide(ending, facts)
    tail: list[str] = []
    if verdict.status != "pass" and not (verdict.status == "fail" and facts.failing):
        from ckdn.engine.text import read_lines

        tail = read_lines(source_of(case, LOG), 40)
    document = digest.build(
        check=name, run_dir="-", ending=ending, verdict=verdict, facts=facts, log_tail=tail
    )  # fmt: skip
    return digest.serialise(document), facts, verdict


def ending_of(rc: int) -> Ending:
    """How the command of a case ended: a negative code is death by a signal."""
    if rc >= 0:
        return Ending(rc)
    from ckdn.runner import signal_name

    return Ending(rc, f"killed by {signal_name(-rc)}")


def expectation_problems(case: Case, verdict: Verdict, facts: Facts, data: bytes) -> list[str]:
    """Where a case's own expectation is not met."""
    import json

    expect, problems = dict(case.expect), []
    has = expect.pop("has", ())
    allowed = [expect.pop("status", verdict.status), *expect.pop("also_ok", ())]
    if verdict.status not in allowed:
        problems.append(f"status {verdict.status}, expected {' or '.join(allowed)} ({verdict.reason})")
    document = json.loads(data)
    for key, wanted in expect.items():
        got = document.get(key, 0 if key == "findings_total" else None)
        if got != wanted:
            problems.append(f"{key} {got!r}, expected {wanted!r}")
    for wanted in has:
        if not any(fits(wanted, record) for record in facts.records):
            problems.append(f"no record like {json.dumps(wanted, ensure_ascii=False)}")
    return problems


def fits(wanted: dict[str, Any], record: Any) -> bool:
    """Whether a record is what a `has` entry describes."""
    for key, value in wanted.items():
        if key == "message_contains":
            if value not in "\n".join([record.message, *record.detail]):
                return False
        elif key == "path_endswith":
            if not record.path.endswith(value):
                return False
        elif hasattr(record, key) and getattr(record, key) != value:
            return False
    return True


def read_bytes(path: str) -> bytes | None:
    """A file's bytes, or None when it is not there."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def difference(expected: bytes, got: bytes) -> list[str]:
    """Which keys of the digest differ, old → new."""
    import json

    try:
        old = json.loads(expected)
    except ValueError:
        return ["digest.json is no JSON"]
    new = json.loads(got)
    lines = []
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            before, after = (json.dumps(d.get(key), ensure_ascii=False, sort_keys=True) for d in (old, new))
            lines.append(f"{key}: {before[:300]} → {after[:300]}")
    return lines or ["digest.json differs in its bytes"]


def fixture_folders(root: str) -> tuple[str, ...]:
    """Where a project keeps its fixtures."""
    folder = os.path.join(root, "fixtures")
    return (folder,) if os.path.isdir(folder) else ()
