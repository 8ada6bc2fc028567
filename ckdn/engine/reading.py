"""Feeding: every pass reads each input once and hands it to all who want it.

Row sets that look into others are made in a later pass. What an input says stays said: records extracted before a
refusal are kept and listed.
"""

from __future__ import annotations

from ckdn.engine import jmes
from ckdn.engine.fields import node_function, number_from
from ckdn.engine.jmes_functions import EvaluationError
from ckdn.engine.plan import pusher
from ckdn.engine.rows import Walk, XmlWalk
from ckdn.engine.source import BoundPassed, Refused, Unread, quoted
from ckdn.spec.types import JSON, LOG, NDJSON, TEXT, XML

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ckdn.engine.plan import Evidence, Plan
    from ckdn.engine.source import Source
    from ckdn.spec.types import Input, Number, RowSet

    Want = Callable[[Any], None]


class Reading:
    """One reading of a plan's inputs, and what went wrong."""

    def __init__(self, plan: Plan, inputs: Mapping[str, tuple[Source, ...] | Unread]) -> None:
        self.plan = plan
        self.inputs = inputs
        self.problems: dict[str, None] = {}
        """In the order found, each once: a later pass meets the same ones again."""
        self.notes: list[str] = []
        self.bound = ""
        self.filled: set[str] = set()
        """Text and ndjson inputs in which something stands."""

    def run(self) -> None:
        """Read everything, pass by pass."""
        plan = self.plan
        rows_read = [r.input for r in plan.spec.rows if r.input]  # the log need not be listed
        names = list(dict.fromkeys([*plan.formats, *plan.lookers, *rows_read]))
        for stage in range(max((r.stage for r in plan.spec.rows), default=0) + 1):
            for name in names:
                if not self.bound:
                    self.read(name, stage)
            for row_set in plan.spec.rows:
                if row_set.stage == stage:
                    self.guarded(row_set.name, plan.rows[row_set.name].finish)

    def guarded(self, name: str, work: Callable[[], None]) -> None:
        """Do something that may find that the input is not understood."""
        try:
            work()
        except Refused as e:
            self.problems[str(e)] = None
        except EvaluationError as e:
            self.problems[f"{name}: {e}"] = None
        except RecursionError:
            self.problems[f"{name}: nested too deep"] = None
        except OSError as e:
            self.problems[f"{name}: cannot be read: {e.strerror or e}"] = None
        except BoundPassed as e:
            self.bound = self.bound or str(e)

    def read(self, name: str, stage: int) -> None:
        """Read one input in one pass, if anyone wants it in that pass."""
        given = self.plan.formats.get(name)
        sets = [r for r in self.plan.spec.rows if r.input == name and r.stage == stage]
        sources = self.inputs.get(name)
        if sources is None or isinstance(sources, Unread):
            if stage == 0:
                self.unread(given, sources)
            return
        if given is None or given.format == TEXT:
            wanted = name in self.plan.lookers or (given is not None and given.source == "file")
            if sets or (stage == 0 and wanted):
                self.guarded(name, lambda: self.read_text(given, name, sets, sources, stage))
            return
        if stage == 0 and self.plan.lookers.get(name):
            self.guarded(name, lambda: self.read_text(None, name, [], sources, stage))
        if sets or stage == 0:
            read = {JSON: self.read_json, NDJSON: self.read_ndjson, XML: self.read_xml}[given.format]
            self.guarded(name, lambda: read(given, sets, sources, stage))

    def unread(self, given: Input | None, sources: Unread | None) -> None:
        """An input that cannot be read: forgiven only when it is optional and simply not there."""
        if given is None:  # the log of a spec that does not list it
            if sources is not None and not sources.missing:
                self.problems[sources.reason] = None
            return
        if given.optional and (sources is None or sources.missing):
            return
        reason = sources.reason if sources is not None else f"the input `{given.name}` was not given"
        self.problems[f"{reason}; {given.hint}" if given.hint else reason] = None

    # --- text ----------------------------------------------------------------------------------------------------

    def read_text(
        self, given: Input | None, name: str, sets: list[RowSet], sources: tuple[Source, ...], stage: int
    ) -> None:
        """Feed lines to text rules, declared patterns and proof."""
        from ckdn.engine.lines import LineRows, Prefixed  # only specs with text rules
        from ckdn.engine.text import TextBlocks

        readers = [LineRows(s.lines, self.plan.context, pusher(self.plan.rows[s.name])) for s in sets if s.lines]
        lookers = self.plan.lookers.get(name, []) if stage == 0 else []
        silence = self.plan.silence if name == LOG and stage == 0 and not self.is_document(name) else None
        if silence is not None:
            for reader in readers:
                reader.unexplained = silence.unexplained
        prefix = Prefixed(given.prefix) if given is not None and given.prefix is not None else None
        for source in sources:
            blocks = TextBlocks(source)
            for block in blocks:
                if name not in self.filled and not block.isspace():
                    self.filled.add(name)
                taken: set[int] | None = set() if silence is not None else None
                if prefix is None or not prefix.concerns(block):
                    for reader in readers:
                        reader.feed(block, taken)
                else:
                    block = prefix.feed(block, readers, taken, silence.unexplained if silence else ignored)
                for looker in lookers:
                    looker.feed(block)
                if silence is not None:
                    silence.feed(block, taken or set())
            if silence is not None and blocks.nul_bytes:
                silence.unexplained(b"(NUL bytes)")
            if blocks.lines_cut:
                self.notes.append(f"{source.name}: {blocks.lines_cut} lines longer than 8 KiB were cut")
        for reader in readers:
            reader.finish()
            if reader.overflow:
                raise BoundPassed(reader.overflow)
            if reader.details_dropped:
                self.notes.append(f"{name}: {reader.details_dropped} lines of detail were dropped")

    def is_document(self, name: str) -> bool:
        """Whether an input is no text: its lines are then explained by whoever reads the document."""
        given = self.plan.formats.get(name)
        return given is not None and given.format != TEXT

    # --- documents -----------------------------------------------------------------------------------------------

    def read_json(self, given: Input, sets: list[RowSet], sources: tuple[Source, ...], stage: int) -> None:
        """Walk documents; an array whose items are the rows is streamed."""
        from ckdn.engine import jsondoc  # only specs with json inputs

        walks = [Walk(self.plan.rows[s.name], self.plan.context) for s in sets]
        wanted = self.wanted(given.name) if stage == 0 else []
        streams = (
            given.root_kind == "array" and not given.slice and not wanted and walks and all(map(takes_items, sets))
        )
        for source in sources:
            if streams:
                for position, item in enumerate(jsondoc.array_items(source), 1):
                    for walk in walks:
                        with_place(f"{source.name}: item {position}", walk.item, item)
                continue
            document = jsondoc.load_document(source, given)
            for want in wanted:
                with_place(source.name, want, document)
            for walk in walks:
                with_place(source.name, walk.root, document)

    def read_ndjson(self, given: Input, sets: list[RowSet], sources: tuple[Source, ...], stage: int) -> None:
        """Walk records one at a time."""
        from ckdn.engine import jsondoc  # only specs with ndjson inputs

        walks = [Walk(self.plan.rows[s.name], self.plan.context) for s in sets]
        wanted = self.wanted(given.name) if stage == 0 else []
        takers = [*wanted, *[walk.root for walk in walks]]
        for source in sources:
            silence = self.plan.silence if given.name == LOG and stage == 0 else None
            records = jsondoc.Records(source, given, silence.unexplained if silence is not None else None)
            for position, record in enumerate(records, 1):
                self.filled.add(given.name)
                for take in takers:
                    try:
                        take(record)
                    except (Refused, EvaluationError) as e:
                        raise Refused(f"{source.name}: record {position}: {e}") from None
            if records.strays and stage == 0:
                count = "1 line is" if records.strays == 1 else f"{records.strays} lines are"
                self.notes.append(f"{source.name}: {count} no JSON object, such as {quoted(records.first_stray)}")

    def read_xml(self, given: Input, sets: list[RowSet], sources: tuple[Source, ...], stage: int) -> None:
        """Stream elements to their row sets; single values need the whole document."""
        from lxml.etree import XPathError  # only specs with xml inputs

        from ckdn.engine import xmldoc

        wanted = self.wanted(given.name) if stage == 0 else []
        triggers = []
        for row_set in sets:
            walk = XmlWalk(self.plan.rows[row_set.name], self.plan.context)
            triggers.append(xmldoc.Trigger(row_set.steps[0].select, looks_below(row_set), walk.element))
        for source in sources:
            try:
                xmldoc.stream(source, given, triggers)
                if wanted:
                    root = xmldoc.root_of(source)
                    for want in wanted:
                        with_place(source.name, want, root)
            except (EvaluationError, XPathError) as e:
                raise Refused(f"{source.name}: {e}") from None

    # --- single values -------------------------------------------------------------------------------------------

    def wanted(self, name: str) -> list[Want]:
        """Who reads a whole document (or record) of an input: declared values and proof."""
        found: list[Want] = []
        for number in self.plan.spec.declared:
            if number.verb == "get" and number.input == name:
                found.append(self.getter(number))
        for proof in self.plan.spec.proof:
            if proof.kind == "holds" and proof.input == name:
                format = self.plan.formats[name].format
                asked = f"boolean({proof.expression})" if format == XML else proof.expression
                read, evidence = node_function(asked, format), self.plan.evidence[id(proof)]
                found.append(evidence_of(read, evidence, every=format != NDJSON))
        return found

    def getter(self, number: Number) -> Want:
        """A declared value of a whole document; those of several files are added."""
        read = node_function(number.expression, self.plan.formats[number.input].format)
        gotten = self.plan.gotten

        def take(document: Any) -> None:
            value = read(document)
            if value is not None:
                gotten[id(number)] = gotten.get(id(number), 0) + number_from(number.name, value)

        return take


def evidence_of(read: Callable[[Any], Any], evidence: Evidence, *, every: bool) -> Want:
    """``holds``: of every document, or of at least one record."""

    def take(document: Any) -> None:
        holds = jmes.truthy(read(document))
        if every:
            evidence.holds = holds and (evidence.holds or not evidence.asked)
        else:
            evidence.holds = evidence.holds or holds
        evidence.asked = True

    return take


def with_place(place: str, take: Want, value: Any) -> None:
    """Hand a value on; what it is refused for is said with its place."""
    try:
        take(value)
    except (Refused, EvaluationError) as e:
        raise Refused(f"{place}: {e}") from None


def ignored(line: bytes) -> None:
    """A line that the prefix leaves out, where nobody asks for silence."""


def takes_items(row_set: RowSet) -> bool:
    """Whether a row set takes the items of the root array, whatever stands beside them."""
    step = row_set.steps[0]
    whole = isinstance(step.select, tuple) and bool(step.select) and step.select[0] == "current"
    return whole and not step.entries and not step.descend


def looks_below(row_set: RowSet) -> bool:
    """Whether the expressions of an xml row set look below its element."""
    from ckdn.engine.xmldoc import looks_down  # only specs with xml inputs

    if len(row_set.steps) > 1:
        return True
    expressions = [e for _, e in row_set.steps[0].keep]
    expressions += [c.expression for f in row_set.fields for c in f.candidates if c.kind == "get"]
    return any(looks_down(e) for e in expressions)
