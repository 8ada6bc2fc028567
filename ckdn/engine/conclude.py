"""After the last pass: numbers, guards, gates and proof become facts."""

from __future__ import annotations

from ckdn.engine import guards as compare
from ckdn.engine.fields import as_text, render
from ckdn.engine.source import quoted
from ckdn.model import SEVERITIES, Facts, ProofLine
from ckdn.spec.types import LOG, NDJSON, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ckdn.engine.plan import Plan
    from ckdn.engine.reading import Reading
    from ckdn.model import Record
    from ckdn.spec.types import Comparison, Gate, Guard, Proof, SummaryItem

    Value = int | float | None


def conclude(plan: Plan, reading: Reading, includes: Mapping[str, Facts]) -> Facts:
    """The facts of one reading and of the specs it includes."""
    return Conclusion(plan, reading, includes).facts()


class Conclusion:
    """One reading's numbers, and what follows from them."""

    def __init__(self, plan: Plan, reading: Reading, includes: Mapping[str, Facts]) -> None:
        self.plan = plan
        self.spec = plan.spec
        self.settings = plan.settings
        self.reading = reading
        self.includes = includes
        self.problems = list(reading.problems)
        self.notes = list(reading.notes)
        self.numbers: dict[str, Value] = {}
        self.held = 0
        self.skipped: list[str] = []
        self.broken: list[str] = []

    def facts(self) -> Facts:
        """Everything, in the order in which it builds on what is before."""
        self.problems += [reader.problem for reader in self.plan.matched if reader.problem]
        self.count()
        summary = self.summary()
        for guard in self.spec.guards:
            self.guard(guard)
        gates = [failure for gate in self.spec.gates for failure in self.gate(gate)]
        facts = Facts(self.spec.name, False, (), self.plan.records, summary, tuple(gates))
        facts.proof = tuple(self.prove(line) for line in self.spec.proof)
        facts.guards_held, facts.guards_skipped = self.held, tuple(self.skipped)
        facts.guards_broken = tuple(self.broken)
        facts.promises_findings = bool(self.spec.findings or self.spec.includes)
        facts.zero_expected = self.zero_expected()
        facts.rc_class = next((k for k, codes in self.spec.exit_codes.items() if self.settings.rc in codes), "")
        facts.bound_passed = self.reading.bound
        facts.numbers = self.numbers
        self.include(facts)
        facts.problems = tuple(dict.fromkeys(self.problems))
        facts.notes = tuple(dict.fromkeys(self.notes))
        facts.understood = not facts.problems and not facts.bound_passed
        return facts

    def include(self, facts: Facts) -> None:
        """What included specs found belongs to this run: their records come first, their proof is asked for too."""
        records: list[Record] = []
        for include in self.spec.includes:
            other = self.includes.get(include.spec)
            if other is None:
                if include.note:
                    self.notes.append(include.note)
                if not include.optional:
                    self.problems.append(f"{include.spec}: its inputs are missing")
                continue
            records += other.records
            self.problems += [f"{include.spec}: {problem}" for problem in other.problems]
            self.notes += other.notes
            facts.gate_failures += other.gate_failures
            facts.guards_held += other.guards_held
            facts.guards_skipped += tuple(f"{include.spec}: {guard}" for guard in other.guards_skipped)
            facts.guards_broken += tuple(f"{include.spec}: {guard}" for guard in other.guards_broken)
            facts.proof += tuple(
                ProofLine(f"{include.spec}: {line.text}", line.holds, line.reason and f"{include.spec}: {line.reason}")
                for line in other.proof
            )
            facts.bound_passed = facts.bound_passed or other.bound_passed
        if records:
            facts.records = [*records, *facts.records]

    # --- numbers -------------------------------------------------------------------------------------------------

    def count(self) -> None:
        """Every number by its name, except the summary's. Those of an included spec stand under its name."""
        numbers, plan = self.numbers, self.plan
        for name, rows in plan.rows.items():
            numbers[f"rows.{name}"] = rows.count
        self.count_records("records", plan.records)
        self.count_records("failing", [r for r in plan.records if r.failing])
        for name, value in self.settings.options.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                numbers[f"options.{name}"] = value
        for reader in plan.matched:
            for name in reader.names:
                self.declare(name, reader.values.get(name))
        for number in self.spec.declared:
            if number.verb == "get":
                self.declare(number.name, plan.gotten.get(id(number)))
            elif number.verb in ("sum", "count"):
                self.declare(number.name, plan.totals[id(number)].value)
        for include, facts in self.includes.items():
            for name, value in (facts.numbers or {}).items():
                numbers[f"{include}.{name}"] = value

    def count_records(self, word: str, records: Sequence[Record]) -> None:
        """The number of records, and of those of each severity."""
        self.numbers[word] = len(records)
        for severity in SEVERITIES:
            self.numbers[f"{word}.{severity}"] = sum(1 for r in records if r.severity == severity)

    def declare(self, name: str, value: Value) -> None:
        """A declared number; several forms may give it, the first present one counts."""
        key = f"declared.{name}"
        if self.numbers.get(key) is None:
            self.numbers[key] = value

    def summary(self) -> dict[str, Any]:
        """The digest's numbers; absent ones are left out, zeros are kept."""
        result: dict[str, Any] = {name: facts.summary for name, facts in self.includes.items() if facts.summary}
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
        plan = self.plan
        if item.verb == "name":
            return self.numbers.get(item.name)
        if item.verb in ("count", "sum"):
            return plan.totals[id(item)].value
        if item.verb in ("tally", "list"):
            return plan.collectors[id(item)].result()
        parts = [self.numbers.get(p.name) if p.verb == "name" else plan.totals[id(p)].value for p in item.parts]
        numerator, denominator = parts
        if numerator is None or denominator is None:
            fallback = plan.fallbacks.get(item.key)
            value = fallback.value if fallback is not None else None
            return None if value is None else floored(value, item.digits)
        return None if denominator == 0 else floored_ratio(numerator, denominator, item.digits)

    # --- guards and gates ----------------------------------------------------------------------------------------

    def guard(self, guard: Guard) -> None:
        """Held, skipped (a number is absent) or broken: then the output is not understood."""
        if guard.comparison is None:
            value = self.numbers.get(guard.absent)
            if value is None:
                self.held += 1
                return
            self.broken.append(f"absent: {guard.absent}")
            said = render(guard.message, self.numbers) or f"{guard.absent} is {as_text(value)}"
            self.problems.append(said)
            return
        result = compare.evaluate(guard.comparison, self.numbers.get, partial_sums=True)
        if result.holds is None:
            self.skipped.append(guard.comparison.text)
        elif result.holds:
            self.held += 1
        else:
            self.broken.append(guard.comparison.text)
            self.problems.append(f"the numbers disagree: {result.shown} does not hold")

    def gate(self, gate: Gate) -> list[str]:
        """Why a gate fails, with its numbers; nothing when it holds or no limit is set. An absent number fails it."""
        limit = self.settings.options.get(gate.limit) if isinstance(gate.limit, str) else gate.limit
        if limit is None:
            if gate.unset:
                self.notes.append(gate.unset)
            return []
        value = self.numbers.get(gate.number)
        if value is None or not is_finite(value) or not is_finite(limit):
            wanted = "at least" if gate.op == "min" else "at most"
            return [f"{gate.label}: no number where {wanted} {as_text(limit)} is required"]
        if gate.op == "min" and value < limit:
            return [f"{gate.label}: {as_text(value)} < {as_text(limit)}"]
        if gate.op == "max" and value > limit:
            return [f"{gate.label}: {as_text(value)} > {as_text(limit)}"]
        return []

    # --- proof ---------------------------------------------------------------------------------------------------

    def prove(self, proof: Proof) -> ProofLine:
        """Whether one line of proof holds, and if not, why."""
        reasons = {
            "comparison": self.no_comparison, "match": self.no_match, "no_match": self.a_match, "holds": self.no_truth,
            "report": self.no_report, "exit_code": self.no_silence,
        }  # fmt: skip
        if proof.kind == "comparison" and self.settings.allow_empty:
            return ProofLine(proof.text, True, "waived by allow_empty")
        reason = reasons[proof.kind](proof)
        return ProofLine(proof.text, not reason, reason)

    def no_comparison(self, proof: Proof) -> str:
        """A comparison must hold; an absent number proves nothing."""
        comparison: Comparison | None = proof.comparison
        if comparison is None:
            return "not readable"
        result = compare.evaluate(comparison, self.numbers.get)
        if result.holds is None:
            return f"the tool declares no {' and no '.join(result.absent)}"
        return "" if result.holds else f"{result.shown} does not hold"

    def no_match(self, proof: Proof) -> str:
        """A line must be there."""
        seen = self.plan.evidence[id(proof)].seen
        return "" if seen is not None and seen.found else f"no line of {place(proof)} matches `{proof.pattern[:80]}`"

    def a_match(self, proof: Proof) -> str:
        """A line must not be there."""
        seen = self.plan.evidence[id(proof)].seen
        return f"{place(proof)} says {quoted(seen.line)}" if seen is not None and seen.found else ""

    def no_truth(self, proof: Proof) -> str:
        """An expression must hold of every document, or of one record."""
        holds = self.plan.evidence[id(proof)].holds
        return "" if holds else f"`{proof.text.removeprefix('holds: ')}` does not hold"

    def no_report(self, proof: Proof) -> str:
        """Every required file was read to its end, and something stands in it."""
        if self.problems:
            return self.problems[0]
        for given in self.spec.inputs:
            required = given.source == "file" and not given.optional and given.format in (TEXT, NDJSON)
            if required and given.name not in self.reading.filled:
                return f"{given.file} is empty"
        return ""

    def no_silence(self, proof: Proof) -> str:
        """Every line of the log is explained."""
        silence = self.plan.silence
        if silence is None or not silence.line:
            return ""
        return f"the log says {quoted(silence.line)}, which no rule explains"

    def zero_expected(self) -> bool:
        """Whether failing records with rc 0 are policy."""
        if self.settings.zero_expected or self.spec.zero_expected:
            return True
        predicate = self.spec.zero_predicate
        return predicate is not None and compare.evaluate(predicate, self.numbers.get).holds is True


def place(proof: Proof) -> str:
    """The input of a match, for messages."""
    return "the log" if proof.input == LOG else proof.input


def is_finite(number: int | float) -> bool:
    """Neither an infinity nor NaN."""
    return isinstance(number, int) or number - number == 0.0


def floored(number: int | float, digits: int) -> int | float:
    """A percentage cut at its last digit: it must not reach a gate's limit by rounding."""
    if isinstance(number, int) or not is_finite(number):
        return number
    text = f"{number:.{digits + 6}f}"  # past what binary fractions disturb: 0.29 * 100 is 28.999999999999996
    whole, _, fraction = text.partition(".")
    value = float(f"{whole}.{fraction[:digits] or '0'}")
    return int(value) if value.is_integer() else value


def floored_ratio(numerator: int | float, denominator: int | float, digits: int) -> int | float:
    """100 * n / d cut at the last digit, so that a percentage is never better than the counts."""
    if not isinstance(numerator, int) or not isinstance(denominator, int):
        return floored(numerator * 100 / denominator, digits)
    scaled = numerator * 100 * 10**digits // denominator
    value = scaled / 10**digits
    return int(value) if value.is_integer() else value
