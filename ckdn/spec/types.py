"""A loaded spec as plain slotted values: checked, every expression parsed, every name resolved.

The loader (:mod:`ckdn.spec.load`) makes these from YAML or TOML; the engine interprets them. They hold only values that
:mod:`marshal` knows, so a loaded spec can be compiled into the wheel or kept in the user cache (:func:`freeze`,
:func:`thaw`) and used without any parser library.
"""

from __future__ import annotations

from ckdn.model import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOG = "log"
TEXT, JSON, NDJSON, XML = "text", "json", "ndjson", "xml"
FORMATS = (JSON, NDJSON, XML, TEXT)
STREAMS = (LOG, "stdout", "stderr")
CATEGORIES = ("linter", "formatter", "types", "test", "coverage", "security", "build", "other")
INTEGER_FIELDS = ("line", "column", "end_line", "end_column")
RECORD_FIELDS = ("path", *INTEGER_FIELDS, "severity", "code", "message", "url", "test", "detail")


class Prefix(Struct):
    """What each text line may start with before its own content (a timestamp, ``[module]``); groups become fields."""

    match: str
    only: bool = False
    """Lines without the prefix are left out."""


class Input(Struct):
    """One named input of a spec."""

    name: str
    source: str
    """``log``, ``stdout``, ``stderr`` or ``file``."""
    format: str = TEXT
    file: str = ""
    """For ``file``: a path or glob below the run directory."""
    root_kind: str = ""
    """``array``, ``object`` or ``element``: the shape the root must have; empty for any."""
    root_names: tuple[str, ...] = ()
    """Keys the root object must have, or the root elements that are allowed."""
    slice: str = ""
    stray: str = "refuse"
    prefix: Prefix | None = None
    option: str = ""
    optional: bool = False
    hint: str = ""


class Candidate(Struct):
    """One way to get a value: ``kind`` is get, of_row, of, lookup, value or template."""

    kind: str
    expression: Any = None
    """get: JMESPath AST or XPath text on the node; of_row: JMESPath AST on the row; of: a field; value: the constant;
    template: its parts."""
    rows: str = ""
    field: str = ""
    on: tuple[tuple[str, str], ...] = ()
    """lookup: pairs (field of the other rows, field of this row) that must be equal."""


class Field(Struct):
    """How one field of a row is made: the first candidate that is present, then the refinements in this order."""

    name: str
    candidates: tuple[Candidate, ...]
    match: str = ""
    replace: tuple[tuple[str, str], ...] = ()
    map: tuple[tuple[str, Any], ...] | None = None
    as_: str = ""
    absent: tuple[Any, ...] = ()
    default: Any = None
    has_default: bool = False
    offset: int = 0
    under: str = ""
    args: str = ""
    template_of: str = ""


class Step(Struct):
    """One step of a walk through a document."""

    select: Any
    """JMESPath AST, or XPath text."""
    keep: tuple[tuple[str, Any], ...] = ()
    index: str = ""
    entries: bool = False
    descend: str = ""
    optional: bool = False


class LineRule(Struct):
    """One text rule: a verb and its pattern, tried in the order written; the first match takes the line."""

    verb: str
    """new, add, attach, set, unset, push, pop, end or skip."""
    pattern: str
    groups: tuple[str, ...] = ()
    into: str = ""
    ends: bool = False
    last: bool = False
    join: bool = False
    """add: a field that is there grows by a space and the new text (terminal-wrapped lines)."""
    names: tuple[str, ...] = ()
    """unset: the context fields to forget."""
    where: Any = None
    """add, attach, end: a predicate over the open row; the rule does not match while it is false."""


class Lines(Struct):
    """Text rules and their riders."""

    rules: tuple[LineRule, ...]
    start: str = ""
    stop: str = ""
    per: str = ""
    otherwise_end: bool = False


class Fold(Struct):
    """One folded field of a group: first, last, sum, max, count, concat or any over the rows that fit."""

    name: str
    verb: str
    field: str
    where: Any = None
    only: tuple[Any, ...] = ()


class Leaf(Struct):
    """Hides a row whose child is there: by a name's separator, or by depth with the parent before or after."""

    name: str
    separator: str = ""
    depth: str = ""
    parent: str = "before"
    where: Any = None


class Without(Struct):
    """Drops rows for which other rows have the same values."""

    rows: str
    same: tuple[str, ...]
    where: Any = None


class RowSet(Struct):
    """Flat rows from one source (``steps``, ``lines`` or ``origin``), refined in the order of the fields below."""

    name: str
    input: str = ""
    steps: tuple[Step, ...] = ()
    lines: Lines | None = None
    origin: str = ""
    fields: tuple[Field, ...] = ()
    where: Any = None
    dedup: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    fold: tuple[Fold, ...] = ()
    leaf: Leaf | None = None
    without: Without | None = None
    stage: int = 0
    """The pass over the inputs in which these rows are made: after every row set it looks into."""


class Detail(Struct):
    """Which lines of a text go with a finding."""

    of: str
    prefer: str = ""
    drop: str = ""


class Finding(Struct):
    """Which rows are records, and how a record reads."""

    rows: str
    kind: str = ""
    kind_of: str = ""
    kind_map: tuple[tuple[str, str], ...] = ()
    where: Any = None
    failing: Any = None
    id: tuple[Any, ...] = ()
    message: tuple[Any, ...] = ()
    severity: str = ""
    detail: Detail | None = None


class Number(Struct):
    """A number a tool declares, or one that is summed or counted: ``verb`` is match, get, sum, count or name."""

    name: str
    verb: str
    pattern: str = ""
    take: str = "last"
    input: str = ""
    expression: Any = None
    rows: str = ""
    field: str = ""
    where: Any = None


class SummaryItem(Struct):
    """One key of the digest's ``summary``: ``verb`` is count, sum, tally, percent, list or name."""

    key: tuple[str, ...]
    verb: str
    rows: str = ""
    field: str = ""
    where: Any = None
    name: str = ""
    top: int = 20
    parts: tuple[Number, ...] = ()
    otherwise: str = ""
    """percent: ``rows.field`` of one row, used when the parts are absent."""
    digits: int = 2
    sort: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    limit: int | str = 20
    """list: how many rows; a text is the name of an option."""


class Comparison(Struct):
    """``left OP right`` over sums of names and integers."""

    text: str
    op: str
    left: tuple[str | int, ...]
    right: tuple[str | int, ...]


class Guard(Struct):
    """What must hold for the output to count as understood: a comparison, or a number that must be absent."""

    comparison: Comparison | None = None
    absent: str = ""
    message: tuple[Any, ...] = ()


class Proof(Struct):
    """One line of proof: ``kind`` is comparison, match, no_match, holds, report or exit_code."""

    kind: str
    text: str
    comparison: Comparison | None = None
    pattern: str = ""
    input: str = ""
    expression: Any = None


class Gate(Struct):
    """A limit on a number; ``limit`` is a number or the name of an option."""

    number: str
    op: str
    limit: int | float | str
    label: str
    unset: str = ""


class Include(Struct):
    """Another spec over its own inputs."""

    spec: str
    optional: bool = False
    note: str = ""


class Spec(Struct):
    """One tool's output, as a value."""

    name: str
    title: str
    category: str
    options: dict[str, dict[str, Any]]
    """Per option its JSON Schema (type, enum, minimum, maximum, items, default, description)."""
    exit_codes: dict[str, tuple[int, ...]]
    homepage: str = ""
    languages: tuple[str, ...] = ()
    detect: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    command: str = ""
    needs: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()
    rows: tuple[RowSet, ...] = ()
    findings: tuple[Finding, ...] = ()
    declared: tuple[Number, ...] = ()
    summary: tuple[SummaryItem, ...] = ()
    guards: tuple[Guard, ...] = ()
    proof: tuple[Proof, ...] = ()
    gates: tuple[Gate, ...] = ()
    env_narrows: tuple[str, ...] = ()
    zero_expected: bool = False
    zero_predicate: Any = None
    includes: tuple[Include, ...] = ()
    variant_option: str = ""
    variants: tuple[tuple[str, str], ...] = ()


_CLASSES = {
    cls.__name__: cls
    for cls in (
        Prefix, Input, Candidate, Field, Step, LineRule, Lines, Fold, Leaf, Without, RowSet, Detail, Finding, Number,
        SummaryItem, Comparison, Guard, Proof, Gate, Include, Spec,
    )
}  # fmt: skip
_TAG = "\x00"


def freeze(value: Any) -> Any:
    """A spec (or any part) as nested tuples, dicts and plain values: what :mod:`marshal` and ``repr`` can carry."""
    if isinstance(value, Struct):
        return (_TAG + type(value).__name__, *[freeze(v) for v in value.values()])
    if isinstance(value, tuple):
        return tuple([freeze(v) for v in value])
    if isinstance(value, dict):
        return {k: freeze(v) for k, v in value.items()}
    return value


def thaw(value: Any) -> Any:
    """The inverse of :func:`freeze`."""
    if isinstance(value, tuple):
        if value and isinstance(value[0], str) and value[0].startswith(_TAG):
            return _CLASSES[value[0][1:]](*[thaw(v) for v in value[1:]])
        return tuple([thaw(v) for v in value])
    if isinstance(value, dict):
        return {k: thaw(v) for k, v in value.items()}
    return value
