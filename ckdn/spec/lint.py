"""Conventions for specs: one small function each, listed in one table.

What makes a spec wrong is refused at load; what makes it weak is told here.
"""

from __future__ import annotations

from ckdn.model import Struct
from ckdn.spec.types import JSON, XML, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WANTED_STATES = ("clean", "findings", "broken")


class Convention(Struct):
    """One finding of the linter."""

    id: str
    severity: str
    """``error`` or ``warning``."""
    key: str
    """The top-level key it is about."""
    what: str
    mend: str


class Subject(Struct):
    """A spec with what stands around it."""

    spec: Spec
    keys: tuple[str, ...]
    """The top-level keys of its file."""
    states: tuple[str, ...]
    """The states its examples and fixtures show, by name or by their ``state`` key."""
    versions: tuple[str, ...]
    """The tool versions of its captured fixtures."""


def missing_states(subject: Subject) -> Iterator[Convention]:
    """A spec is proven by a clean, a red and a broken run."""
    if subject.spec.variants:
        return
    lacking = [state for state in WANTED_STATES if state not in subject.states]
    if lacking:
        yield Convention(
            "cases-missing",
            "error",
            "name",
            f"no example or fixture shows {', '.join(lacking)}",
            "add `examples` named clean, findings, broken, or fixtures with such a `state`",
        )


def tested_without_capture(subject: Subject) -> Iterator[Convention]:
    """A version counts as tested when a captured fixture is of that version."""
    for version in subject.spec.tested:
        if not any(have == version or have.startswith(version + ".") for have in subject.versions):
            yield Convention(
                "tested-unproven",
                "warning",
                "tested",
                f"no captured fixture is of version {version}",
                "capture one, or take the version out",
            )


def no_command(subject: Subject) -> Iterator[Convention]:
    """People want to know how to run the tool so that the spec reads it."""
    if not subject.spec.command and subject.spec.findings:
        yield Convention("command-missing", "warning", "name", "no `command`", "command: {run: …}")


def no_homepage(subject: Subject) -> Iterator[Convention]:
    """The tool's home helps people to find out what a code means."""
    if not subject.spec.homepage and subject.spec.findings:
        yield Convention("homepage-missing", "warning", "name", "no `homepage`", "homepage: https://…")


def unlisted_codes(subject: Subject) -> Iterator[Convention]:
    """Exit codes tell findings from crashes."""
    if subject.spec.findings and not subject.spec.exit_codes:
        mend = "exit_codes: {clean: [0], findings: [1], crash: [2]}"
        yield Convention("exit-codes-missing", "warning", "name", "no `exit_codes`", mend)


def shapeless_reports(subject: Subject) -> Iterator[Convention]:
    """`report` alone proves that a document of the declared shape was read; without a shape an error page would do."""
    spec = subject.spec
    kinds = {proof.kind for proof in spec.proof}
    if "report" not in kinds or kinds & {"comparison", "holds", "match"}:
        return
    for given in spec.inputs:
        paths = [r.steps[0].select for r in spec.rows if r.input == given.name and r.steps]
        rooted = given.format == XML and any(str(p).startswith("/") and not str(p).startswith("//") for p in paths)
        if given.format in (JSON, XML) and not given.optional and not given.root_kind and not rooted:
            what = f"the input `{given.name}` says nothing of its shape, and the proof rests on it"
            mend = "root: [element]" if given.format == XML else "shape: array, or shape: {object: [key]}"
            yield Convention("shape-missing", "error", "inputs", what, mend)


CONVENTIONS: tuple[Callable[[Subject], Iterator[Convention]], ...] = (
    missing_states,
    tested_without_capture,
    no_command,
    no_homepage,
    unlisted_codes,
    shapeless_reports,
)


def lint(subject: Subject) -> list[Convention]:
    """Everything that is weak about a spec."""
    return [found for convention in CONVENTIONS for found in convention(subject)]
