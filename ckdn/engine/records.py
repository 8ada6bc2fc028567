"""Records: finding rows become :class:`~ckdn.model.Record`, and numbers are counted as they pass."""

from __future__ import annotations

from ckdn.engine.fields import as_text, compiled_regex, number_from, render
from ckdn.engine.rows import predicate
from ckdn.engine.source import BoundPassed, Refused, quoted
from ckdn.model import SEVERITIES, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ckdn.engine.fields import Context, Row
    from ckdn.spec.types import Finding, Number, SummaryItem

MAX_RECORDS = 200_000
DEFAULT_ID = (("path",), ":", ("line",), ":", ("column",), " ", ("code",))
PLACES = ("line", "column", "end_line", "end_column")


class Recorder:
    """Makes the records of one finding and keeps them."""

    def __init__(
        self,
        finding: Finding,
        fail_on: tuple[str, ...],
        context: Context,
        records: list[Record],
        *,
        path_finished: bool,
    ) -> None:
        self.path_finished = path_finished
        """The rows' path is relative to the root already."""
        self.finding = finding
        self.fail_on = fail_on
        self.context = context
        self.records = records
        self.where = predicate(finding.where, context)
        self.failing = predicate(finding.failing, context)
        self.kinds = dict(finding.kind_map)
        self.detail = detail_function(finding)
        self.sinks: list[Callable[[Row], None]] = []

    def take(self, row: Row) -> None:
        """One row of the finding's row set."""
        if self.where is not None and not self.where(row):
            return
        if len(self.records) >= MAX_RECORDS:
            raise BoundPassed(f"more than {MAX_RECORDS} records")
        record = self.record(row)
        self.records.append(record)
        if self.sinks:
            full = {
                **row,
                **{f: getattr(record, f) or None for f in ("path", "code", "message", "test", "url", *PLACES)},
            }
            full.update(severity=record.severity, kind=record.kind, id=record.id, failing=record.failing)
            for sink in self.sinks:
                sink(full)

    def record(self, row: Row) -> Record:
        """The record of one row."""
        finding = self.finding
        severity = self.severity(row)
        code = text_of(row, "code")
        path = text_of(row, "path")
        message = self.message(row)
        line, column, end_line, end_column = [place(row, name) for name in PLACES]
        record = Record(
            "", self.kind(row), severity, severity in self.fail_on, message,
            path if self.path_finished else self.context.path(path), line, column, end_line, end_column,
            code, text_of(row, "test"), text_of(row, "url"), self.detail(row),
        )  # fmt: skip
        if not record.line:
            record.column = 0
        if self.failing is not None:
            record.failing = self.failing({**row, "severity": severity})
        record.id = render(finding.id, {**row, "path": record.path}) if finding.id else default_id(record)
        record.id = " ".join(record.id.split()) or record.kind
        return record

    def severity(self, row: Row) -> str:
        """The row's own severity, else the finding's, else error."""
        value = row.get("severity")
        if value is None:
            return self.finding.severity or "error"
        if value not in SEVERITIES:
            raise Refused(f"the severity {quoted(as_text(value))} is none of {', '.join(SEVERITIES)}")
        return str(value)

    def kind(self, row: Row) -> str:
        """A word, or by a field."""
        if self.finding.kind:
            return self.finding.kind
        key = as_text(row.get(self.finding.kind_of))
        found = self.kinds.get(key) or self.kinds.get("*")
        if found is None:
            raise Refused(f"the field `{self.finding.kind_of}` has the unknown value {quoted(key)}")
        return found

    def message(self, row: Row) -> str:
        """What the finding says. A row without a message is not understood; an empty one says at least its kind."""
        if self.finding.message:
            text = render(self.finding.message, row)
        else:
            value = row.get("message")
            if value is None:
                raise Refused(f"a record of `{self.finding.rows}` has no message")
            text = as_text(value)
        return text.strip() or self.kind(row).replace("_", " ")


def default_id(record: Record) -> str:
    """By convention ``path:line:column code``; without a path the test, else the code, else the message's start."""
    if record.path:
        place = ":".join([record.path, *[str(n) for n in (record.line, record.column) if n]])
        return f"{place} {record.code}" if record.code else place
    return record.test or record.code or record.message[:80]


def text_of(row: Row, name: str) -> str:
    """A text field; absent is empty."""
    value = row.get(name)
    return "" if value is None else as_text(value).strip()


def place(row: Row, name: str) -> int:
    """A 1-based place; 0 when absent or not positive."""
    value = row.get(name)
    if value is None:
        return 0
    number = number_from(name, value)
    return int(number) if number > 0 else 0


def detail_function(finding: Finding) -> Callable[[Row], tuple[str, ...]]:
    """The detail lines of a row: dropped ones out, preferred ones first choice, else as they are."""
    spec = finding.detail
    field = spec.of if spec else "detail"
    drop = compiled_regex(spec.drop) if spec and spec.drop else None
    prefer = compiled_regex(spec.prefer) if spec and spec.prefer else None

    def read(row: Row) -> tuple[str, ...]:
        value = row.get(field)
        if not value:
            return ()
        lines = [line for part in (value if isinstance(value, list) else [value]) for line in as_text(part).split("\n")]
        lines = [line.rstrip() for line in lines]
        if drop is not None:
            lines = [line for line in lines if drop.search(line) is None]
        if prefer is not None:
            lines = [line for line in lines if prefer.search(line) is not None] or lines
        while lines and not lines[-1]:
            lines.pop()
        while lines and not lines[0]:
            lines.pop(0)
        return tuple(lines)

    return read


class Total:
    """A count of rows, or a sum over one of their fields; absent while no value was present."""

    def __init__(self, number: Number | SummaryItem, context: Context) -> None:
        self.field = number.field
        self.counts = number.verb == "count"
        self.where = predicate(number.where, context)
        self.value: int | float | None = 0 if self.counts else None

    def take(self, row: Row) -> None:
        """One row."""
        if self.where is not None and not self.where(row):
            return
        if self.counts:
            self.value = (self.value or 0) + 1
            return
        found = row.get(self.field)
        if found is not None:
            self.value = (self.value or 0) + number_from(self.field, found)


class Tally:
    """How often each value of a field occurs."""

    def __init__(self, item: SummaryItem, context: Context) -> None:
        self.field = item.field
        self.top = item.top
        self.where = predicate(item.where, context)
        self.counts: dict[str, int] = {}

    def take(self, row: Row) -> None:
        """One row."""
        if self.where is None or self.where(row):
            value = row.get(self.field)
            if value is not None:
                key = as_text(value)
                if key not in self.counts and len(self.counts) >= MAX_RECORDS:
                    raise BoundPassed(f"more than {MAX_RECORDS} different values of `{self.field}`")
                self.counts[key] = self.counts.get(key, 0) + 1

    def result(self) -> dict[str, int]:
        """The most frequent values; what is left out is one number under `…`."""
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        shown = dict(ordered[: self.top])
        if len(ordered) > self.top:
            shown["…"] = sum(count for _, count in ordered[self.top :])
        return shown


class Listing:
    """Some fields of the first rows in a sort order."""

    def __init__(self, item: SummaryItem, context: Context) -> None:
        self.item = item
        self.where = predicate(item.where, context)
        self.rows: list[dict[str, Any]] = []
        limit = context.scope["options"].get(item.limit) if isinstance(item.limit, str) else item.limit
        self.limit = int(limit) if isinstance(limit, int | float) else 20

    def take(self, row: Row) -> None:
        """One row."""
        if self.where is None or self.where(row):
            if len(self.rows) >= MAX_RECORDS:
                raise BoundPassed(f"more than {MAX_RECORDS} rows to list")
            names = {*self.item.show, *[key.lstrip("-") for key in self.item.sort]}
            self.rows.append({name: row.get(name) for name in names})

    def result(self) -> list[dict[str, Any]]:
        """The rows in order; keys with ``-`` sort downwards, a list sorts by its length."""
        rows = self.rows
        for key in reversed(self.item.sort):
            name = key.lstrip("-")
            rows = sorted(rows, key=lambda row: sort_key(row[name]), reverse=key.startswith("-"))
        return [{n: r[n] for n in self.item.show if r[n] is not None} for r in rows[: self.limit]]


def sort_key(value: Any) -> tuple[int, Any]:
    """Absent first, then numbers (a list counts as its length), then text."""
    if value is None:
        return (0, 0)
    if isinstance(value, list):
        return (1, len(value))
    if isinstance(value, int | float):
        return (1, value)
    return (2, as_text(value))
