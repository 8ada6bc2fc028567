"""Who wants what of a spec's inputs: row sets and those who take their rows, declared numbers, marks of the proof."""

from __future__ import annotations

from ckdn.engine.fields import Context
from ckdn.engine.records import Listing, Recorder, Tally, Total
from ckdn.engine.rows import Index, Rows, predicate
from ckdn.model import Record, Struct
from ckdn.spec.types import LOG, Number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ckdn.engine.fields import Lookup
    from ckdn.engine.lines import Matched, Seen
    from ckdn.engine.rows import Sink
    from ckdn.spec.types import RowSet, Spec, SummaryItem


class Settings(Struct):
    """What a check says about the reading of its tool."""

    rc: int
    options: dict[str, Any]
    """Option values by name, defaults filled in."""
    fail_on: tuple[str, ...] = ("error",)
    allow_empty: bool = False
    zero_expected: bool = False
    roots: tuple[str, ...] = ()
    """The project root as the tool may spell it (as given, symlinks resolved); the first that fits is taken off."""
    base: str = ""
    """Where the command ran, relative to the root."""
    launchers: tuple[str, ...] = ()
    """Patterns of lines that launchers print, which an `exit_code` proof does not ask about."""


class Evidence(Struct):
    """What was seen of one line of proof: a pattern's reader, or whether an expression holds."""

    seen: Seen | None = None
    holds: bool = False
    asked: bool = False


class Silence:
    """Whether a log is silent but for what rules take and launchers print."""

    def __init__(self, launchers: tuple[str, ...]) -> None:
        self.launchers = launchers
        self.search: Any = None
        self.line = ""

    def feed(self, block: bytes, taken: set[int]) -> None:
        """Look for a line that nobody explains; ``taken`` are the starts of the lines that rules took."""
        if self.line or block.isspace():
            return
        start = 0
        for line in block.split(b"\n")[:-1]:
            if start not in taken:
                self.unexplained(line)
            start += len(line) + 1

    def unexplained(self, line: bytes) -> None:
        """A line that no rule took: it breaks the silence unless it is blank or a launcher's."""
        if not self.line and line.strip() and not self.launched(line):
            self.line = line.decode("utf-8", "replace")

    def launched(self, line: bytes) -> bool:
        """Whether a launcher prints such a line."""
        if not self.launchers:
            return False
        if self.search is None:
            from ckdn.engine.lines import any_of  # only where a log is not silent

            self.search = any_of(list(self.launchers)).search
        return self.search(line) is not None


class Plan:
    """A spec ready to be fed. Row sets, totals and evidence fill up while inputs are read."""

    def __init__(self, spec: Spec, settings: Settings) -> None:
        self.spec = spec
        self.settings = settings
        self.formats = {i.name: i for i in spec.inputs}
        self.context = Context(settings.options, settings.rc, settings.roots, settings.base)
        self.context.lookup = self.lookup
        self.records: list[Record] = []
        self.rows: dict[str, Rows] = {}
        self.recorders: list[Recorder] = []
        self.totals: dict[int, Total] = {}
        """Counts and sums, by the identity of the number that asks."""
        self.fallbacks: dict[tuple[str, ...], Total] = {}
        """Of the percentages, by their key."""
        self.collectors: dict[int, Tally | Listing] = {}
        self.gotten: dict[int, int | float] = {}
        """Declared values of whole documents, by the identity of the number."""
        self.evidence: dict[int, Evidence] = {}
        self.lookers: dict[str, list[Matched | Seen]] = {}
        """Who reads each text input beside the rules: declared patterns and marks of the proof."""
        self.matched: list[Matched] = []
        self.silence: Silence | None = None
        for row_set in spec.rows:
            self.add_rows(row_set)
        self.add_recorders()
        for number in spec.declared:
            if number.verb in ("sum", "count"):
                self.add_total(number)
        for item in spec.summary:
            self.add_summary(item)
        self.add_matched()
        self.add_proof()

    def add_rows(self, row_set: RowSet) -> None:
        """One row set, connected to the rows it is made from or compared with (they stand before it)."""
        given = self.formats.get(row_set.input)
        format = given.format if given is not None and row_set.steps else ""
        rows = self.rows[row_set.name] = Rows(row_set, format, self.context)
        if row_set.origin:
            self.rows[row_set.origin].sinks.append(copying(rows))
        if row_set.without is not None:
            other = self.rows[row_set.without.rows]
            other.keep()
            rows.without = (other, row_set.without.same, predicate(row_set.without.where, self.context))

    def add_recorders(self) -> None:
        """One recorder a finding."""
        paths = finished_paths(self.spec)
        for finding in self.spec.findings:
            finished = "path" in paths[finding.rows]
            recorder = Recorder(finding, self.settings.fail_on, self.context, self.records, path_finished=finished)
            self.recorders.append(recorder)
            self.rows[finding.rows].sinks.append(recorder.take)

    def add_total(self, number: Number | SummaryItem) -> None:
        """A count or sum, connected to its rows."""
        total = self.totals[id(number)] = Total(number, self.context)
        self.connect(number.rows, total.take)

    def connect(self, rows: str, sink: Sink) -> None:
        """Send rows (or records) to someone."""
        if rows in self.rows:
            self.rows[rows].sinks.append(sink)
            return
        for recorder in self.recorders:
            recorder.sinks.append(only_failing(sink) if rows == "failing" else sink)

    def add_summary(self, item: SummaryItem) -> None:
        """What a summary key needs to see."""
        if item.verb in ("count", "sum"):
            self.add_total(item)
        elif item.verb == "percent":
            for part in item.parts:
                if part.verb != "name":
                    self.add_total(part)
            if item.otherwise:
                target, _, field = item.otherwise.partition(".")
                total = self.fallbacks[item.key] = Total(Number(field, "sum", field=field), self.context)
                self.connect(target, total.take)
        elif item.verb in ("tally", "list"):
            collector = Tally(item, self.context) if item.verb == "tally" else Listing(item, self.context)
            self.collectors[id(item)] = collector
            self.connect(item.rows, collector.take)

    def lookup(self, rows: str, field: str, keys: tuple[str, ...]) -> Lookup:
        """A lookup into rows of an earlier pass."""
        self.rows[rows].keep()
        return Index(self.rows[rows], field, keys).find

    def add_matched(self) -> None:
        """The declared patterns, one reader for the numbers of one pattern."""
        by_pattern: dict[tuple[str, str, str], list[Number]] = {}
        for number in self.spec.declared:
            if number.verb == "match":
                by_pattern.setdefault((number.input, number.pattern, number.take), []).append(number)
        for (name, _, _), numbers in by_pattern.items():
            from ckdn.engine.lines import Matched  # only specs with text rules

            reader = Matched(numbers)
            self.matched.append(reader)
            self.lookers.setdefault(name, []).append(reader)

    def add_proof(self) -> None:
        """Who looks for the proof's marks."""
        for proof in self.spec.proof:
            if proof.kind in ("match", "no_match"):
                from ckdn.engine.lines import Seen  # only specs with text rules

                seen = Seen(proof.pattern)
                self.evidence[id(proof)] = Evidence(seen)
                self.lookers.setdefault(proof.input, []).append(seen)
            elif proof.kind == "holds":
                self.evidence[id(proof)] = Evidence()
            elif proof.kind == "exit_code" and self.spec.findings and self.settings.rc == 0:
                self.silence = Silence(self.settings.launchers)
                self.lookers.setdefault(LOG, [])


def finished_paths(spec: Spec) -> dict[str, set[str]]:
    """Per row set the fields that are paths relative to the root already, which must not be put under it again."""
    found: dict[str, set[str]] = {}
    for row_set in spec.rows:
        names = set(found.get(row_set.origin, ()))
        for field in row_set.fields:
            plain = not (field.match or field.replace or field.map is not None or field.under or field.args)
            copied = all(c.kind == "of" and c.expression in names for c in field.candidates)
            if field.as_ in ("path", "uri") or (plain and copied and field.candidates):
                names.add(field.name)
            else:
                names.discard(field.name)
        if row_set.group:
            folded = {f.name for f in row_set.fold if f.field in names and f.verb in ("first", "last")}
            names = {n for n in names if n in row_set.group} | folded
        found[row_set.name] = names
    return found


def copying(rows: Rows) -> Sink:
    """Rows made from other rows: a copy each, since they get fields of their own."""

    def push(row: dict[str, Any]) -> None:
        own = dict(row)
        rows.push(own, own)

    return push


def only_failing(sink: Sink) -> Sink:
    """A sink for failing records alone."""

    def take(row: dict[str, Any]) -> None:
        if row.get("failing"):
            sink(row)

    return take


def pusher(rows: Rows) -> Callable[[dict[str, Any]], None]:
    """Rows that text rules made."""
    return lambda row: rows.push(row, row)
