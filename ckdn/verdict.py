"""The status of a run: a pure function of how the process ended and what the output says.

The first rule that matches decides:

==== ============================================================== ================================================
rule when                                                           status
==== ============================================================== ================================================
1    timed out, interrupted, killed by a signal, could not start,   ``error``
     or an engine bound was passed
2    not understood: no facts, a problem, a broken guard            rc 0 ``parse_mismatch``, else ``error``
3    failing records                                                rc ≠ 0 ``fail`` (a crash code adds a note);
                                                                    rc 0 ``parse_mismatch``, unless findings on zero
                                                                    are expected: then the next rules, with a note
4    a gate failed                                                  ``fail``, whatever rc
5    rc ≠ 0                                                         ``fail`` if the spec promises no findings and rc
                                                                    is no crash code, else ``error``
6    rc 0                                                           ``pass`` if every line of proof holds (and there
                                                                    is one), else ``parse_mismatch``
==== ============================================================== ================================================

``pass`` is the only green. The text of the output can take green away, never give it: rc ≠ 0 is never ``pass``.
"""

from __future__ import annotations

from ckdn.model import ERROR, FAIL, PARSE_MISMATCH, PASS, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ckdn.model import Ending, Facts

STOPPED_EARLY = "stopped early, more may be wrong"

# Without the signal module (it loads enum): the numbers that are the same on Linux, macOS and the BSDs.
_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
}


def decide(ending: Ending, facts: Facts | None) -> Verdict:
    """The verdict by the table above. ``facts`` is None when the parser crashed or never ran."""
    rc = ending.rc
    cut_short = _cut_short(ending, facts)
    if cut_short:
        return Verdict(ERROR, cut_short, 1)

    confused = _confused(facts)
    if facts is None or confused:
        if rc == 0:
            return Verdict(PARSE_MISMATCH, f"exit code 0 but the output was not understood: {confused}", 2)
        return Verdict(ERROR, f"exit code {rc} and the output was not understood: {confused}", 2)

    notes: tuple[str, ...] = ()
    failing = facts.failing
    if failing:
        if rc != 0:
            early = (STOPPED_EARLY,) if facts.rc_class == "crash" else ()
            return Verdict(FAIL, count(failing, "failing finding"), 3, early)
        if not facts.zero_expected:
            return Verdict(PARSE_MISMATCH, f"{count(failing, 'failing finding')} with exit code 0", 3)
        notes = (f"{count(failing, 'failing finding')} with exit code 0, expected by findings_on_zero",)

    if facts.gate_failures:
        return Verdict(FAIL, f"{count(len(facts.gate_failures), 'gate')} failed", 4, notes)

    if rc != 0:
        if facts.rc_class == "crash":
            return Verdict(ERROR, f"exit code {rc} is a crash of the tool", 5)
        if not facts.promises_findings:
            return Verdict(FAIL, f"exit code {rc}", 5)
        return Verdict(ERROR, f"exit code {rc} but no finding was extracted", 5)

    unproven = _unproven(facts)
    if unproven:
        return Verdict(PARSE_MISMATCH, f"exit code 0 without proof: {unproven}", 6, notes)
    return Verdict(PASS, "", 6, notes)


def count(number: int, noun: str) -> str:
    """``1 gate``, ``3 gates``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _cut_short(ending: Ending, facts: Facts | None) -> str:
    """Why this run is no result at all; empty when it ended by itself within the bounds."""
    if ending.failure:
        return ending.failure
    if ending.timed_out:
        return "timed out"
    if ending.interrupted:
        return "interrupted"
    if ending.rc < 0:
        return f"killed by {_SIGNALS.get(-ending.rc, f'signal {-ending.rc}')}"
    if facts is not None and facts.bound_passed:
        return f"a bound was passed: {facts.bound_passed}"
    return ""


def _confused(facts: Facts | None) -> str:
    """Why the output is not understood. A contradiction inside the facts counts: it must never read as clean."""
    if facts is None:
        return "the parser gave no facts"
    if facts.problems:
        return facts.problems[0] or "no reason was given"
    if facts.guards_broken:
        return f"{facts.guards_broken[0]} does not hold"
    if not facts.understood:
        return "no reason was given"
    return ""


def _unproven(facts: Facts) -> str:
    """The first line of proof that does not hold, with its numbers."""
    if not facts.proof:
        return "the spec names none"
    for line in facts.proof:
        if not line.holds:
            return line.reason or f"{line.text} does not hold"
    return ""
