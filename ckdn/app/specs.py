"""The authoring side of specs: listing, showing, linting and testing them."""

from __future__ import annotations

import os

from ckdn import digest
from ckdn.app.cases import Case, bind_case, cases_of, fits, readers_of, source_of
from ckdn.app.inputs import last_lines
from ckdn.catalog import Catalog
from ckdn.engine.interpret import Settings, interpret
from ckdn.engine.source import Unread
from ckdn.errors import CkdnError, ConfigError, Problem, SpecError
from ckdn.model import Ending, Struct
from ckdn.spec import lint
from ckdn.spec.types import LOG
from ckdn.verdict import decide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ckdn.model import Facts, Verdict
    from ckdn.spec.types import Spec

TAIL_LINES = 40
# Imports inside functions: every command but `run` loads this module, and only `spec` needs what they load.


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
    """A spec's file, whether it loads or not: where it is, and its bytes."""
    found = catalog.existing(name)
    return found.origin, found.data


def known(catalog: Catalog, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names that were asked for, all when none was; an unknown one is refused."""
    for name in names:
        if not catalog.has(name):
            catalog.existing(name)
    return names or catalog.names()


def lint_specs(catalog: Catalog, names: tuple[str, ...], fixtures: tuple[str, ...]) -> list[tuple[str, Problem]]:
    """Problems of specs with their severity: what does not load, and conventions that are not kept."""
    result: list[tuple[str, Problem]] = []
    for name in known(catalog, names):
        try:
            spec, document = catalog.read(name)
            cases = [*cases_of(name, document, fixtures), *cases_of_choosers(catalog, name, fixtures)]
        except CkdnError as e:
            result += [("error", p) for p in e.problems]
            continue
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
    for name in known(catalog, names):
        try:
            readers = list(readers_of(name, catalog.read(name)[1], fixtures))
        except SpecError as e:
            yield Outcome(name, tuple(str(p) for p in e.problems))
            continue
        shown = bool(readers) or any(True for _ in cases_of_choosers(catalog, name, fixtures))
        if not shown and not catalog.load(name).spec.variants:
            yield Outcome(name, ("no example and no fixture",))
        for case_name, read in readers:
            try:
                yield run_case(catalog, name, read(), launchers, update)
            except CkdnError as e:
                yield Outcome(case_name, tuple(str(p) for p in e.problems))


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
        except CkdnError:
            continue  # told where that spec itself is looked at


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
    with_tail = verdict.status != "pass" and not (verdict.status == "fail" and facts.failing)
    tail = last_lines(source_of(case, LOG), TAIL_LINES) if with_tail else []
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
