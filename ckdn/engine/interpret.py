"""The driver: a loaded spec and its inputs in, facts out.

Every pass reads each input once and feeds all who want it; row sets that look into others are made in a later pass.
What an input says stays said: records extracted before a refusal are kept and listed.
"""

from __future__ import annotations

from ckdn.engine import guards as compare
from ckdn.engine import jmes
from ckdn.engine.fields import Context, as_text, node_function, number_from, render
from ckdn.engine.jmes_functions import EvaluationError
from ckdn.engine.records import Listing, Recorder, Tally, Total
from ckdn.engine.rows import Index, Rows, Walk, XmlWalk, predicate
from ckdn.engine.source import BoundPassed, Refused, Unread, quoted
from ckdn.model import Facts, ProofLine, Record, Struct
from ckdn.spec.types import JSON, LOG, NDJSON, TEXT, XML, Number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ckdn.engine.source import Source
    from ckdn.spec.types import Comparison, Gate, Input, Proof, Spec, SummaryItem

    Inputs = Mapping[str, "tuple[Source, ...] | Unread"]


class Settings(Struct):
    """What a check says about the reading of its tool."""

    rc: int
    options: dict[str, Any]
    """Option values by name, defaults filled in."""
    fail_on: tuple[str, ...] = ("error",)
    allow_empty: bool = False
    zero_expected: bool = False
    roots: tuple[str, ...] = ()
    base: str = ""
    launchers: tuple[str, ...] = ()
    """Patterns of lines that launchers print, which an `exit_code` proof does not ask about."""


def interpret(spec: Spec, inputs: Inputs, settings: Settings, includes: Mapping[str, Facts] | None = None) -> Facts:
    """The facts of one run. ``inputs`` has a value for every input of the spec and for ``log``."""
    return Interpreter(spec, inputs, settings, includes or {}).facts()


class Interpreter:
    """One interpretation: who reads what, and what came of it."""

    def __init__(self, spec: Spec, inputs: Inputs, settings: Settings, includes: Mapping[str, Facts]) -> None:
        self.spec = spec
        self.inputs = inputs
        self.settings = settings
        self.includes = includes
        self.formats = {i.name: i for i in spec.inputs}
        self.context = Context(settings.options, settings.rc, settings.roots, settings.base)
        self.context.lookup = self.lookup
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.bound = ""
        self.records: list[Record] = []
        self.rows: dict[str, Rows] = {}
        self.totals: dict[int, Total] = {}
        self.fallbacks: dict[tuple[str, ...], Total] = {}
        self.tallies: dict[int, Tally | Listing] = {}
        self.gotten: dict[str, Any] = {}
        self.evidence: dict[int, Evidence] = {}
        self.texts: dict[str, list[Any]] = {}
        """Who reads each text input in the first pass: declared patterns and proof."""
        self.matched: list[Any] = []
        self.silence: Silence | None = None
        self.numbers: dict[str, int | float | None] = {}
        self.prepare()

    # --- preparation ---------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the row sets and connect everybody who wants their rows."""
        for row_set in self.spec.rows:
            given = self.formats.get(row_set.input)
            format = given.format if given is not None and row_set.steps else ""
            rows = self.rows[row_set.name] = Rows(row_set, format, self.context)
            if row_set.origin:
                source = self.rows[row_set.origin]
                source.sinks.append(copying(rows))
            if row_set.without is not None:
                other = self.rows[row_set.without.rows]
                other.keep()
                rows.without = (other, row_set.without.same, predicate(row_set.without.where, self.context))
        recorders = [Recorder(f, self.settings.fail_on, self.context, self.records) for f in self.spec.findings]
        for recorder in recorders:
            self.rows[recorder.finding.rows].sinks.append(recorder.take)
        for number in self.spec.declared:
            if number.verb in ("sum", "count"):
                self.totals[id(number)] = self.total(number, recorders)
        for item in self.spec.summary:
            self.prepare_summary(item, recorders)
        self.prepare_texts()
        self.prepare_proof()

    def total(self, number: Number | SummaryItem, recorders: list[Recorder]) -> Total:
        """A count or sum, connected to its rows."""
        total = Total(number, self.context)
        self.connect(number.rows, total.take, recorders)
        return total

    def connect(self, rows: str, sink: Callable[[dict[str, Any]], None], recorders: list[Recorder]) -> None:
        """Send rows (or records) to someone."""
        if rows in self.rows:
            self.rows[rows].sinks.append(sink)
            return
        for recorder in recorders:
            recorder.sinks.append(only_failing(sink) if rows == "failing" else sink)

    def prepare_summary(self, item: SummaryItem, recorders: list[Recorder]) -> None:
        """What a summary key needs to see."""
        if item.verb in ("count", "sum"):
            self.totals[id(item)] = self.total(item, recorders)
        elif item.verb == "percent":
            for part in item.parts:
                if part.verb != "name":
                    self.totals[id(part)] = self.total(part, recorders)
            if item.otherwise:
                target, _, field = item.otherwise.partition(".")
                last = self.fallbacks[item.key] = Total(Number(field, "sum", field=field), self.context)
                self.connect(target, last.take, recorders)
        elif item.verb in ("tally", "list"):
            collector = Tally(item, self.context) if item.verb == "tally" else Listing(item, self.context)
            self.tallies[id(item)] = collector
            self.connect(item.rows, collector.take, recorders)

    def lookup(self, rows: str, field: str, keys: tuple[str, ...]) -> Callable[[tuple[Any, ...]], Any]:
        """A lookup into rows of an earlier pass."""
        self.rows[rows].keep()
        return Index(self.rows[rows], field, keys).find

    def prepare_texts(self) -> None:
        """The declared patterns, one reader for the numbers of one pattern."""
        seen: dict[tuple[str, str, str], list[Number]] = {}
        for number in self.spec.declared:
            if number.verb == "match":
                seen.setdefault((number.input, number.pattern, number.take), []).append(number)
        for (name, _, _), numbers in seen.items():
            from ckdn.engine.lines import Matched  # only specs with text rules

            reader = Matched(numbers)
            self.matched.append(reader)
            self.texts.setdefault(name, []).append(reader)

    def prepare_proof(self) -> None:
        """Who looks for the proof's marks."""
        for proof in self.spec.proof:
            if proof.kind in ("match", "no_match"):
                from ckdn.engine.lines import Seen  # only specs with text rules

                seen = Seen(proof.pattern)
                self.evidence[id(proof)] = Evidence(seen)
                self.texts.setdefault(proof.input, []).append(seen)
            elif proof.kind == "holds":
                self.evidence[id(proof)] = Evidence(None)
            elif proof.kind == "exit_code" and self.spec.findings and self.settings.rc == 0:
                self.silence = Silence(self.settings.launchers)
                self.texts.setdefault(LOG, [])

    # --- reading -------------------------------------------------------------------------------------------------

    def facts(self) -> Facts:
        """Read everything and say what came of it."""
        last = max((r.stage for r in self.spec.rows), default=0)
        for stage in range(last + 1):
            for name in dict.fromkeys([*self.formats, *self.texts]):
                if not self.bound:
                    self.read(name, stage)
            for row_set in self.spec.rows:
                if row_set.stage == stage:
                    self.guarded(row_set.name, self.rows[row_set.name].finish)
        return self.conclude()

    def guarded(self, name: str, work: Callable[[], None]) -> None:
        """Do something that may find that the input is not understood."""
        try:
            work()
        except Refused as e:
            self.problems.append(str(e))
        except EvaluationError as e:
            self.problems.append(f"{name}: {e}")
        except BoundPassed as e:
            self.bound = self.bound or str(e)

    def read(self, name: str, stage: int) -> None:
        """Read one input in one pass, if anyone wants it in that pass."""
        given = self.formats.get(name)
        sets = [r for r in self.spec.rows if r.input == name and r.stage == stage]
        sources = self.inputs.get(name)
        if sources is None or isinstance(sources, Unread):
            if stage == 0 and given is not None:
                self.unread(given, sources)
            return
        if given is None or given.format == TEXT:
            if sets or (stage == 0 and (self.texts.get(name) or (name == LOG and self.silence))):
                self.guarded(name, lambda: self.read_text(given, name, sets, sources, stage))
            return
        if not sets and stage > 0:
            return
        reader = {JSON: self.read_json, NDJSON: self.read_ndjson, XML: self.read_xml}[given.format]
        self.guarded(name, lambda: reader(given, sets, sources, stage))

    def unread(self, given: Input, sources: Unread | None) -> None:
        """An input that cannot be read: forgiven only when it is optional and simply not there."""
        reason = sources.reason if sources is not None else f"the input `{given.name}` was not given"
        if given.optional and (sources is None or sources.missing):
            return
        self.problems.append(f"{reason}; {given.hint}" if given.hint else reason)

    def read_text(
        self, given: Input | None, name: str, sets: list[Any], sources: tuple[Source, ...], stage: int
    ) -> None:
        """Feed lines to text rules, declared patterns and proof."""
        from ckdn.engine.lines import LineRows, Prefixed  # only specs with text rules
        from ckdn.engine.text import TextBlocks

        readers = [LineRows(s.lines, self.context, pusher(self.rows[s.name])) for s in sets]
        lookers = self.texts.get(name, []) if stage == 0 else []
        silence = self.silence if name == LOG and stage == 0 else None
        prefix = Prefixed(given.prefix) if given is not None and given.prefix is not None else None
        for source in sources:
            blocks = TextBlocks(source)
            for block in blocks:
                taken: set[int] | None = set() if silence is not None else None
                if prefix is None or not prefix.concerns(block):
                    for reader in readers:
                        reader.feed(block, taken)
                else:
                    block = feed_prefixed(prefix, block, readers, taken)
                for looker in lookers:
                    looker.feed(block)
                if silence is not None:
                    silence.feed(block, taken or set())
            if blocks.lines_cut:
                self.notes.append(f"{source.name}: {blocks.lines_cut} lines longer than 8 KiB were cut")
        for reader in readers:
            reader.finish()
            if reader.overflow:
                raise BoundPassed(reader.overflow)

    def read_json(self, given: Input, sets: list[Any], sources: tuple[Source, ...], stage: int) -> None:
        """Walk documents; an array whose items are the rows is streamed."""
        from ckdn.engine import jsondoc  # only specs with json inputs

        walks = [Walk(self.rows[s.name], self.context) for s in sets]
        wanted = self.wanted(given.name) if stage == 0 else []
        streams = (
            given.root_kind == "array"
            and not given.slice
            and not wanted
            and walks
            and all(whole(s.steps[0].select) and not s.steps[0].entries and not s.steps[0].descend for s in sets)
        )
        for source in sources:
            if streams:
                for position, item in enumerate(jsondoc.array_items(source)):
                    for walk in walks:
                        try:
                            walk.item(item, position)
                        except Refused as e:
                            raise Refused(f"{source.name}: item {position + 1}: {e}") from None
                continue
            document = jsondoc.load_document(source, given)
            for want in wanted:
                want(document)
            for walk in walks:
                try:
                    walk.root(document)
                except Refused as e:
                    raise Refused(f"{source.name}: {e}") from None

    def wanted(self, name: str) -> list[Callable[[Any], None]]:
        """Who reads a whole document of an input: declared values and proof."""
        found: list[Callable[[Any], None]] = []
        for number in self.spec.declared:
            if number.verb == "get" and number.input == name:
                found.append(self.getter(number))
        for proof in self.spec.proof:
            if proof.kind == "holds" and proof.input == name:
                read, evidence = self.function(proof.expression, name), self.evidence[id(proof)]
                found.append(evidence_of(read, evidence, every=self.formats[name].format != NDJSON))
        return found

    def function(self, expression: Any, name: str) -> Callable[[Any], Any]:
        """An extraction expression of an input as a function."""
        return node_function(expression, self.formats[name].format)

    def getter(self, number: Number) -> Callable[[Any], None]:
        """A declared value of a whole document."""
        read = self.function(number.expression, number.input)

        def take(document: Any) -> None:
            value = read(document)
            if value is None:
                return
            self.gotten[number.name] = self.gotten.get(number.name, 0) + number_from(number.name, value)

        return take

    def read_ndjson(self, given: Input, sets: list[Any], sources: tuple[Source, ...], stage: int) -> None:
        """Walk records one at a time."""
        from ckdn.engine import jsondoc  # only specs with ndjson inputs

        walks = [Walk(self.rows[s.name], self.context) for s in sets]
        wanted = self.wanted(given.name) if stage == 0 else []
        for source in sources:
            records = jsondoc.Records(source, given)
            for position, record in enumerate(records):
                for want in wanted:
                    want(record)
                for walk in walks:
                    try:
                        walk.root(record)
                    except Refused as e:
                        raise Refused(f"{source.name}: record {position + 1}: {e}") from None
            if records.strays and stage == 0:
                self.notes.append(
                    f"{source.name}: {records.strays} lines are no JSON, such as {quoted(records.first_stray)}"
                )

    def read_xml(self, given: Input, sets: list[Any], sources: tuple[Source, ...], stage: int) -> None:
        """Stream elements to their row sets; single values need the whole document."""
        from ckdn.engine import xmldoc  # only specs with xml inputs

        wanted = self.wanted(given.name) if stage == 0 else []
        for source in sources:
            triggers = []
            for row_set in sets:
                walk = XmlWalk(self.rows[row_set.name], self.context)
                triggers.append(xmldoc.Trigger(row_set.steps[0].select, deep(row_set), walk.element))
            try:
                xmldoc.stream(source, given, triggers)
            except EvaluationError as e:
                raise Refused(f"{source.name}: {e}") from None
            if wanted:
                root = xmldoc.root_of(source)
                for want in wanted:
                    want(root)

    # --- conclusions ---------------------------------------------------------------------------------------------

    def conclude(self) -> Facts:
        """Numbers, guards, gates and proof, after the last pass."""
        self.include_records()
        for reader in self.matched:
            if reader.problem:
                self.problems.append(reader.problem)
        self.count_numbers()
        summary = self.summary()
        held, skipped, broken = self.guards()
        gates = self.gates()
        proof = tuple(self.prove(line) for line in self.spec.proof)
        facts = Facts(self.spec.name, not self.problems and not self.bound, tuple(self.problems), self.records, summary)
        facts.gate_failures = tuple(gates)
        facts.guards_held, facts.guards_skipped, facts.guards_broken = held, tuple(skipped), tuple(broken)
        facts.proof = proof
        if self.spec.guards and not held and not broken:
            self.notes.append("no guard could be checked: the tool declares no numbers here")
        facts.notes = tuple(dict.fromkeys(self.notes))
        facts.promises_findings = bool(self.spec.findings or self.spec.includes)
        facts.zero_expected = self.zero_expected()
        facts.rc_class = next((k for k, codes in self.spec.exit_codes.items() if self.settings.rc in codes), "")
        facts.bound_passed = self.bound
        return facts

    def include_records(self) -> None:
        """What included specs found belongs to this run."""
        for include in self.spec.includes:
            facts = self.includes.get(include.spec)
            if facts is None:
                if include.note:
                    self.notes.append(include.note)
                continue
            self.records[:0] = facts.records
            self.problems += [f"{include.spec}: {p}" for p in facts.problems]
            self.notes += facts.notes
            self.bound = self.bound or facts.bound_passed

    def count_numbers(self) -> None:
        """Every number by its name, except the summary's."""
        numbers = self.numbers
        for name, rows in self.rows.items():
            numbers[f"rows.{name}"] = rows.count
        for word, records in (("records", self.records), ("failing", [r for r in self.records if r.failing])):
            numbers[word] = len(records)
            for severity in ("error", "warning", "info"):
                numbers[f"{word}.{severity}"] = sum(1 for r in records if r.severity == severity)
        for name, value in self.settings.options.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                numbers[f"options.{name}"] = value
        for reader in self.matched:
            for name in reader.names:
                self.declare(name, reader.values.get(name))
        for number in self.spec.declared:
            if number.verb == "get":
                self.declare(number.name, self.gotten.get(number.name))
            elif number.verb in ("sum", "count"):
                self.declare(number.name, self.totals[id(number)].value)
        for include, facts in self.includes.items():
            self.include_numbers(include, facts)

    def declare(self, name: str, value: int | float | None) -> None:
        """A declared number; several forms may give it, the first present one counts."""
        key = f"declared.{name}"
        if self.numbers.get(key) is None:
            self.numbers[key] = value

    def include_numbers(self, name: str, facts: Facts) -> None:
        """The numbers of an included spec under its name."""
        for word, records in (("records", facts.records), ("failing", [r for r in facts.records if r.failing])):
            self.numbers[f"{name}.{word}"] = len(records)
        for key, value in flattened(facts.summary):
            self.numbers[f"{name}.summary.{key}"] = value

    def summary(self) -> dict[str, Any]:
        """The digest's numbers; absent ones are left out, zeros are kept."""
        result: dict[str, Any] = {}
        for include, facts in self.includes.items():
            if facts.summary:
                result[include] = facts.summary
        for item in self.spec.summary:
            value = self.summary_value(item)
            if item.verb not in ("tally", "list"):
                self.numbers[f"summary.{'.'.join(item.key)}"] = value
            if value is None or value == {} or value == []:
                continue
            target = result
            for key in item.key[:-1]:
                target = target.setdefault(key, {})
            target[item.key[-1]] = value
        return result

    def summary_value(self, item: SummaryItem) -> Any:
        """One value of the summary."""
        if item.verb == "name":
            return self.numbers.get(item.name)
        if item.verb in ("count", "sum"):
            return self.totals[id(item)].value
        if item.verb in ("tally", "list"):
            return self.tallies[id(item)].result()
        parts = [self.numbers.get(p.name) if p.verb == "name" else self.totals[id(p)].value for p in item.parts]
        numerator, denominator = parts
        if numerator is None or denominator is None:
            fallback = self.fallbacks.get(item.key)
            value = fallback.value if fallback is not None else None
            return None if value is None else round(value, item.digits)
        if denominator == 0:
            return None
        return percent(numerator, denominator, item.digits)

    def guards(self) -> tuple[int, list[str], list[str]]:
        """Held, skipped and broken guards; a broken one makes the output not understood."""
        held, skipped, broken = 0, [], []
        for guard in self.spec.guards:
            if guard.comparison is None:
                value = self.numbers.get(guard.absent)
                if value is None:
                    held += 1
                else:
                    broken.append(f"absent: {guard.absent}")
                    said = self.message(guard.message) or f"{guard.absent} is {as_text(value)}"
                    self.problems.append(said)
                continue
            result = compare.evaluate(guard.comparison, self.numbers.get)
            if result.holds is None:
                skipped.append(guard.comparison.text)
            elif result.holds:
                held += 1
            else:
                broken.append(guard.comparison.text)
                self.problems.append(f"the numbers disagree: {result.shown} does not hold")
        return held, skipped, broken

    def message(self, parts: tuple[Any, ...]) -> str:
        """A guard's own message over numbers."""
        return render(parts, dict(self.numbers))

    def gates(self) -> list[str]:
        """The gates that failed, each with its numbers."""
        failures = []
        for gate in self.spec.gates:
            limit = self.settings.options.get(gate.limit) if isinstance(gate.limit, str) else gate.limit
            if limit is None:
                if gate.unset:
                    self.notes.append(gate.unset)
                continue
            failures += self.gate_failure(gate, limit)
        return failures

    def gate_failure(self, gate: Gate, limit: int | float) -> list[str]:
        """One gate with a limit; an absent number fails it."""
        value = self.numbers.get(gate.number)
        if value is None or value != value:
            wanted = "at least" if gate.op == "min" else "at most"
            return [f"{gate.label}: no number where {wanted} {as_text(limit)} is required"]
        if gate.op == "min" and value < limit:
            return [f"{gate.label}: {as_text(value)} < {as_text(limit)}"]
        if gate.op == "max" and value > limit:
            return [f"{gate.label}: {as_text(value)} > {as_text(limit)}"]
        return []

    def prove(self, proof: Proof) -> ProofLine:
        """Whether one line of proof holds, and if not, why."""
        kind = proof.kind
        if kind == "comparison":
            return self.prove_comparison(proof)
        if kind in ("match", "no_match"):
            seen = self.evidence[id(proof)].seen
            if kind == "match":
                reason = "" if seen.found else f"no line of {where(proof)} matches `{proof.pattern[:80]}`"
            else:
                reason = f"{where(proof)} says {quoted(seen.line)}" if seen.found else ""
            return ProofLine(proof.text, not reason, reason)
        if kind == "holds":
            holds = self.evidence[id(proof)].holds
            return ProofLine(
                proof.text, holds, "" if holds else f"`{proof.text.removeprefix('holds: ')}` does not hold"
            )
        if kind == "report":
            return ProofLine(proof.text, not self.problems, "" if not self.problems else self.problems[0])
        if self.silence is not None and self.silence.line:
            return ProofLine(proof.text, False, f"the log says {quoted(self.silence.line)}, which no rule explains")
        return ProofLine(proof.text, True)

    def prove_comparison(self, proof: Proof) -> ProofLine:
        """A comparison that must hold; an absent number proves nothing."""
        comparison: Comparison | None = proof.comparison
        if comparison is None:
            return ProofLine(proof.text, False, "not readable")
        if self.settings.allow_empty:
            return ProofLine(proof.text, True, "waived by allow_empty")
        result = compare.evaluate(comparison, self.numbers.get)
        if result.holds is None:
            return ProofLine(proof.text, False, f"the tool declares no {' and no '.join(result.absent)}")
        return ProofLine(proof.text, result.holds, "" if result.holds else f"{result.shown} does not hold")

    def zero_expected(self) -> bool:
        """Whether failing records with rc 0 are policy."""
        if self.settings.zero_expected or self.spec.zero_expected:
            return True
        if self.spec.zero_predicate is None:
            return False
        return compare.evaluate(self.spec.zero_predicate, self.numbers.get).holds is True


class Evidence(Struct):
    """What was seen of one line of proof."""

    seen: Any
    holds: bool = False
    asked: bool = False


class Silence:
    """Whether a log is silent but for what rules take and launchers print."""

    def __init__(self, launchers: tuple[str, ...]) -> None:
        self.launchers = launchers
        self.search: Any = None
        self.line = ""

    def feed(self, block: bytes, taken: set[int]) -> None:
        """Look for a line that nobody explains."""
        if self.line or block.isspace():
            return
        start = 0
        for line in block.split(b"\n")[:-1]:
            if start not in taken and line.strip() and not self.launched(line):
                self.line = line.decode("utf-8", "replace")
                return
            start += len(line) + 1

    def launched(self, line: bytes) -> bool:
        """Whether a launcher prints such a line."""
        if not self.launchers:
            return False
        if self.search is None:
            from ckdn.engine.lines import any_of  # only where a log is not silent

            self.search = any_of(list(self.launchers)).search
        return self.search(line) is not None


def copying(rows: Rows) -> Callable[[dict[str, Any]], None]:
    """Rows made from other rows: a copy each, since they get fields of their own."""
    return lambda row: rows.push(row, dict(row))


def pusher(rows: Rows) -> Callable[[dict[str, Any]], None]:
    """Rows that text rules made."""
    return lambda row: rows.push(row, row)


def only_failing(sink: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """A sink for failing records alone."""

    def take(row: dict[str, Any]) -> None:
        if row.get("failing"):
            sink(row)

    return take


def evidence_of(read: Callable[[Any], Any], evidence: Evidence, *, every: bool) -> Callable[[Any], None]:
    """``holds``: of every document, or of at least one record."""

    def take(document: Any) -> None:
        holds = jmes.truthy(read(document))
        if every:
            evidence.holds = holds and (evidence.holds or not evidence.asked)
        else:
            evidence.holds = evidence.holds or holds
        evidence.asked = True

    return take


def feed_prefixed(prefix: Any, block: bytes, readers: list[Any], taken: set[int] | None) -> bytes:
    """Feed a block line by line without its prefixes; gives the block as the rules saw it."""
    lines = []
    start = 0
    for line, fields in prefix.lines(block):
        lines.append(line)
        for reader in readers:
            if reader.line(line, fields):
                if taken is not None:
                    taken.add(start)
            elif reader.otherwise_end:
                reader.close_all()
        start += len(line) + 1
    return b"\n".join([*lines, b""])


def whole(select: Any) -> bool:
    """Whether a JMESPath select is `@`."""
    return isinstance(select, tuple) and bool(select) and select[0] == "current"


def deep(row_set: Any) -> bool:
    """Whether the expressions of an xml row set look below its element."""
    from ckdn.engine.xmldoc import looks_down  # only specs with xml inputs

    if len(row_set.steps) > 1:
        return True
    expressions = [e for _, e in row_set.steps[0].keep]
    expressions += [c.expression for f in row_set.fields for c in f.candidates if c.kind == "get"]
    return any(looks_down(e) for e in expressions)


def where(proof: Proof) -> str:
    """The input of a match, for messages."""
    return "the log" if proof.input == LOG else proof.input


def flattened(summary: Mapping[str, Any], prefix: str = "") -> list[tuple[str, int | float]]:
    """The numbers of a summary by dotted name."""
    found: list[tuple[str, int | float]] = []
    for key, value in summary.items():
        if isinstance(value, dict):
            found += flattened(value, f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((prefix + key, value))
    return found


def percent(numerator: int | float, denominator: int | float, digits: int) -> int | float:
    """100 * n / d rounded down at the last digit, so that a percentage is never better than the counts."""
    if isinstance(numerator, int) and isinstance(denominator, int):
        scaled = numerator * 100 * 10**digits // denominator
        value = scaled / 10**digits
    else:
        value = int(numerator * 100 * 10**digits / denominator) / 10**digits
    return int(value) if value.is_integer() else value
