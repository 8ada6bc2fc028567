"""The digest: the only place that orders, merges, bounds and serialises findings.

:func:`build` makes the ``ckdn.digest/2`` document of one run, :func:`serialise` its bytes, :func:`render_text` and
:func:`verdict_line` what a person reads. :func:`finding_line` and :func:`finding_lines` give ``ckdn.finding/1``.

Everything is deterministic: equal facts, in whatever order the records came, give equal bytes. Every string is cleaned
(:mod:`ckdn.clean`) and masked (:mod:`ckdn.masking`) before it is cut, so a cut never hides half a secret from the mask.

Bounds, in characters: message 400, id 200, detail and log lines 240, notes and the like 240. A cut string ends in
``[+N]…``, N characters being gone (an id keeps its end too: ``head[+N]…tail``); cut lines leave ``… N lines cut`` in
their place. The whole digest is bounded in bytes; what does not fit goes in this order, each step as far as needed:

1. the oldest lines of the log tail,
2. the detail of findings, from the last finding on (a note counts the lines),
3. the longer lists and tallies of the summary,
4. findings, from the last on (``findings_truncated`` counts them),
5. notes and gate failures from the last on, artifacts, the whole summary.

The least that is left has ``schema check status rc run_dir status_reason``, ``timed_out``, ``interrupted`` and the two
counts of findings; its texts are halved until it fits. Below some 250 bytes that document stands as it is.
"""

from __future__ import annotations

from ckdn.bounds import (
    ID_CHARACTERS,
    LARGEST,
    LINE_CHARACTERS,
    MESSAGE_CHARACTERS,
    SUMMARY_DEPTH,
    SUMMARY_ENTRIES,
    bounded_mapping,
    clean_lines,
    cut,
    cut_middle,
    few,
    one_line,
    safe,
)
from ckdn.clean import clean
from ckdn.jsonout import dumps, quote
from ckdn.masking import suspicious
from ckdn.model import PASS
from ckdn.textout import render_text, verdict_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ckdn.model import Ending, Facts, Record, Verdict

__all__ = ["build", "finding_line", "finding_lines", "render_text", "serialise", "verdict_line"]

SCHEMA = "ckdn.digest/2"

_RANK = {"error": 0, "warning": 1, "info": 2}
_CHUNK = 256
_KNOWN = 8192
_BACKSLASH = "\\"


def build(
    *,
    check: str,
    run_dir: str,
    ending: Ending,
    verdict: Verdict,
    facts: Facts | None,
    top: int = 20,
    max_snippet_lines: int = 12,
    max_digest_bytes: int = 16384,
    log_tail: Sequence[str] = (),
    artifacts: Sequence[str] = (),
    notes: Sequence[str] = (),
    baseline: dict[str, Any] | None = None,
    gate: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One ``ckdn.digest/2`` document, never larger than ``max_digest_bytes`` once serialised (newline included).

    ``log_tail``: the last lines of the log as read, attached whenever it is given; ``artifacts``: file names in the
    run directory, left out of a pass; ``notes``: the caller's own, put first (``partial: …``); ``baseline`` and
    ``gate`` are passed through. ``facts`` is None when there are none.
    """
    draft = _Draft()
    draft.fixed = {
        "schema": SCHEMA,
        "check": cut(one_line(check), ID_CHARACTERS) or "-",
        "status": verdict.status,
        "rc": ending.rc,
        "run_dir": one_line(run_dir).replace("\\", "/") or "-",
    }
    if verdict.status != PASS:
        draft.fixed["status_reason"] = cut(one_line(verdict.reason), MESSAGE_CHARACTERS) or verdict.status
        draft.artifacts = few([one_line(name).replace("\\", "/") for name in artifacts])
    if ending.timed_out:
        draft.fixed["timed_out"] = True
    if ending.interrupted:
        draft.fixed["interrupted"] = True
    if baseline is not None:
        draft.fixed["baseline"] = dict(baseline)
    if gate is not None:
        draft.fixed["gate"] = {key: cut(one_line(text), LINE_CHARACTERS) for key, text in gate.items()}
    draft.log_tail = _log_lines(log_tail)
    if facts is None:
        draft.notes = few([one_line(note) for note in (*notes, *verdict.notes)])
    else:
        draft.notes = few([one_line(note) for note in (*notes, *verdict.notes, *_fact_notes(facts, verdict))])
        draft.gate_failures = few([one_line(text) for text in facts.gate_failures])
        draft.whole_summary = facts.summary
        draft.summary = bounded_mapping(facts.summary, SUMMARY_ENTRIES, SUMMARY_ENTRIES, SUMMARY_DEPTH)
        failing = [record for record in facts.records if record.failing]
        draft.total = len(failing)
        groups = _groups(failing, top)
        draft.findings = [_finding(group, max_snippet_lines, len(groups), draft) for group in groups]
    return _fit(draft, max_digest_bytes)


def serialise(document: dict[str, Any]) -> bytes:
    """The document's bytes: compact JSON with sorted keys, UTF-8, one newline at the end."""
    return (dumps(document) + "\n").encode("utf-8", "replace")


def _log_lines(lines: Sequence[str]) -> list[str]:
    return [cut(line, LINE_CHARACTERS) for line in clean_lines([line.rstrip("\r\n") for line in lines])]


def _fact_notes(facts: Facts, verdict: Verdict) -> Iterator[str]:
    yield from facts.notes
    if verdict.rule == 2:  # the first problem is the reason already
        yield from facts.problems[1:]
    if facts.guards_skipped and not facts.guards_held and not facts.guards_broken:
        number = len(facts.guards_skipped)
        yield f"no guard was held: {number} skipped for numbers the tool does not give"


# -- findings --------------------------------------------------------------------------------------------------------


class _Group:
    """Failing records that are shown as one finding: the first in order, and where the others are."""

    __slots__ = ("count", "detail_cut", "first", "places")

    def __init__(self, records: list[Record]) -> None:
        records = sorted(records, key=_order)
        self.first = first = records[0]
        self.count = len(records)
        self.places = {(r.path, r.line): None for r in records if r.path != first.path or r.line != first.line}
        """Path and line of the others, each once, in order."""
        self.detail_cut = sum([len(r.detail) for r in records if r.detail != first.detail])
        """Detail lines of the others that are not the first's: only those are shown."""


def _order(record: Record) -> tuple[Any, ...]:
    """Severity, path, line, column; then all the rest, so that no order of the input shows."""
    return (
        _RANK.get(record.severity, 3),
        record.path.replace(_BACKSLASH, "/"),
        record.line,
        record.column,
        record.code,
        record.message,
        record.kind,
        record.id,
        record.test,
        record.end_line,
        record.end_column,
        record.url,
        record.detail,
        record.path,
    )


def _groups(failing: list[Record], top: int) -> list[_Group]:
    """The first ``top`` groups in order: merged within a file, and across files only when more than ``top`` remain."""
    if top < 1:
        return []
    groups = _merged(failing, across=False, most=top)
    if groups is None:
        groups = _merged(failing, across=True)
    return [_Group(records) for records in _first(groups or [], top)]


def _merged(failing: list[Record], across: bool, most: int = 0) -> list[list[Record]] | None:
    """The records by what makes them equal; None as soon as there are more than ``most`` groups."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in failing:
        path = record.path
        rest = record.id
        if path and rest.startswith(path):
            # What an id says beyond the place must be equal too: it is the handle that runs a test again.
            behind = len(path)
            if record.line and rest[behind : behind + 1] == ":" and rest[behind + 1 : behind + 2].isdigit():
                rest = rest[behind:].lstrip(":0123456789")
            elif across:
                rest = rest[behind:]
        key = (record.message, record.kind, record.code, record.test, rest, "" if across else path)
        group = groups.get(key)
        if group is not None:
            group.append(record)
        elif most and len(groups) == most:
            return None
        else:
            groups[key] = [record]
    return list(groups.values())


def _first(groups: list[list[Record]], top: int) -> list[list[Record]]:
    """The ``top`` groups whose first records come first; of many only those in the first files are sorted fully."""
    if len(groups) > top:
        coarse = [
            min([(_RANK.get(r.severity, 3), r.path.replace(_BACKSLASH, "/")) for r in records]) for records in groups
        ]
        last = sorted(coarse)[top - 1]
        groups = [records for records, key in zip(groups, coarse, strict=True) if key <= last]
    return sorted(groups, key=lambda records: min([_order(r) for r in records]))[:top]


def _finding(group: _Group, max_lines: int, shown: int, draft: _Draft) -> _Shown:
    """One entry of ``findings``; no fact stands in it twice."""
    record = group.first
    location = one_line(_location(record))
    message, more = _message(record, location)
    suffix = f" \u00d7{group.count}" if group.count > 1 else ""
    entry: dict[str, Any] = {
        "id": cut_middle(one_line(_id(record)) or location or message or "-", ID_CHARACTERS),
        "kind": cut(one_line(record.kind), ID_CHARACTERS) or "finding",
        "message": cut(message, MESSAGE_CHARACTERS - len(suffix)) + suffix,
    }
    if location and not _begins_with(entry["id"], location):
        entry["location"] = cut_middle(location, LINE_CHARACTERS)
    also = _also(group, min(max_lines, max(2, 8 // shown)))
    own = clean_lines(record.detail)
    bare = {line.strip() for line in own}
    own = [line for line in more if line.strip() not in bare] + own
    detail, lost = _tail([line for line in own if line.strip() != message], max_lines - len(also))
    draft.detail_cut += group.detail_cut + lost
    if detail or also:
        entry["detail"] = [cut(line, LINE_CHARACTERS) for line in detail] + also
    return _Shown(entry, group.count)


def _begins_with(name: str, location: str) -> bool:
    """Whether an id gives the place already: ``a.py:3:1 F401`` does for ``a.py:3:1``, not for ``a.py:3``."""
    return name == location or name.startswith(location + " ")


def _message(record: Record, location: str) -> tuple[str, list[str]]:
    """The message's first line without the place, and the lines that follow it."""
    lines = clean_lines([record.message])
    if not lines:
        return one_line(record.id), []
    message = lines[0].strip()
    if location and message.startswith(location):
        rest = message[len(location) :].lstrip(": ")
        if rest and rest[0] not in "0123456789.,-" and message[len(location)] in ": ":
            message = rest
    return message, lines[1:]


def _tail(lines: list[str], room: int) -> tuple[list[str], int]:
    """The last ``room`` lines, the first of them saying how many are gone; and how many went without such a mark."""
    over = len(lines) - room
    if over <= 0:
        return lines, 0
    if room < 2:
        return lines[len(lines) - max(room, 0) :], len(lines) - max(room, 0)
    return [f"… {over + 1} lines cut", *lines[over + 1 :]], 0


def _also(group: _Group, most: int) -> list[str]:
    """Where the merged others are, in at most ``most`` lines: ``also at lines 4, 9``, ``also in b.py:3, c.py:1``."""
    if most < 1 or not group.places:
        return []
    own_path = group.first.path
    here: list[int] = []
    files: dict[str, int] = {}
    for path, line in group.places:
        if path != own_path:
            files.setdefault(path, line)
        elif 0 < line <= LARGEST:
            here.append(line)
    enough = most * LINE_CHARACTERS // 3  # no more can fit
    places = [one_line(_place(path, line, 0)) for path, line in list(files.items())[:enough]]
    if most == 1 and here and files:
        places = [one_line(_place(own_path, line, 0)) for line in here[:enough]] + places
        return _packed("also in ", places, len(here) + len(files), 1)
    head = "also at line " if len(here) == 1 else "also at lines "
    lines = _packed(head, [str(line) for line in here[:enough]], len(here), most - 1 if files else most)
    return lines + _packed("also in ", places, len(files), most - len(lines))


def _packed(head: str, items: list[str], total: int, most: int) -> list[str]:
    """``items`` joined by commas in at most ``most`` bounded lines; what of ``total`` does not fit is counted."""
    lines: list[str] = []
    at = 0
    while at < len(items) and len(lines) < most:
        line = head + cut_middle(items[at], LINE_CHARACTERS - 40)
        at += 1
        # room for the count of what is left, should this be the last line
        while at < len(items) and len(line) + len(items[at]) + 2 <= LINE_CHARACTERS - 20:
            line += ", " + items[at]
            at += 1
        lines.append(line)
        head = " "
    if lines and at < total:
        lines[-1] += f", … {total - at} more"
    return lines


def _location(record: Record) -> str:
    return _place(record.path, record.line, record.column) if record.path else ""


def _place(path: str, line: int, column: int) -> str:
    """``path[:line[:column]]`` with forward slashes."""
    place = path.replace("\\", "/")
    if 0 < line <= LARGEST:
        place += f":{line}"
        if 0 < column <= LARGEST:
            place += f":{column}"
    return place


def _id(record: Record) -> str:
    """The id, its path with forward slashes as everywhere."""
    path = record.path
    if "\\" in path and record.id.startswith(path):
        return path.replace("\\", "/") + record.id[len(path) :]
    return record.id


# -- bounds ----------------------------------------------------------------------------------------------------------


class _Shown:
    """A finding as listed, and how many failing records it stands for."""

    __slots__ = ("count", "entry")

    def __init__(self, entry: dict[str, Any], count: int) -> None:
        self.entry = entry
        self.count = count


class _Draft:
    """A digest that can still lose parts; :meth:`document` puts it together with the counts of what was lost."""

    def __init__(self) -> None:
        self.fixed: dict[str, Any] = {}
        self.findings: list[_Shown] = []
        self.total = 0
        self.detail_cut = 0
        self.log_tail: list[str] = []
        self.log_cut = 0
        self.whole_summary: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.summary_entries = SUMMARY_ENTRIES
        self.summary_cut = False
        self.notes: list[str] = []
        self.notes_cut = 0
        self.gate_failures: list[str] = []
        self.gate_failures_cut = 0
        self.artifacts: list[str] = []
        self.bare = False

    def document(self) -> dict[str, Any]:
        document = dict(self.fixed)
        truncated = self.total - sum([shown.count for shown in self.findings])
        if truncated:
            document["findings_truncated"] = truncated
        if self.total:
            document["findings_total"] = self.total
        if self.bare:
            return document
        notes = list(self.notes)
        if self.notes_cut:
            notes.append(f"… {self.notes_cut} more")
        if self.detail_cut:
            notes.append(f"… {self.detail_cut} detail lines cut")
        if self.summary_cut:
            notes.append("… summary cut")
        failures = list(self.gate_failures)
        if self.gate_failures_cut:
            failures.append(f"… {self.gate_failures_cut} more")
        log = [f"… {self.log_cut} lines cut", *self.log_tail] if self.log_cut else self.log_tail
        sparse = {
            "summary": self.summary,
            "findings": [shown.entry for shown in self.findings],
            "gate_failures": failures,
            "notes": notes,
            "artifacts": self.artifacts,
            "log_tail": log,
        }
        document.update({key: value for key, value in sparse.items() if value})
        return document


def _fit(draft: _Draft, limit: int) -> dict[str, Any]:
    """Shrink until the document fits; each step frees what is too much, or all it has."""
    document = draft.document()
    for shrink in (_shrink_log, _shrink_detail, _shrink_summary, _shrink_findings, _shrink_rest, _shrink_texts):
        while (excess := len(serialise(document)) - limit) > 0:
            if not shrink(draft, excess):
                break
            document = draft.document()
    return document


def _bytes(value: Any) -> int:
    return len(dumps(value).encode("utf-8", "replace")) + 1


def _shrink_log(draft: _Draft, excess: int) -> bool:
    gone = 0
    for line in draft.log_tail:
        if excess <= 0:
            break
        excess -= _bytes(line)
        gone += 1
    del draft.log_tail[:gone]
    draft.log_cut += gone
    return gone > 0


def _shrink_detail(draft: _Draft, excess: int) -> bool:
    shrunk = False
    for shown in reversed(draft.findings):
        if excess <= 0:
            break
        detail = shown.entry.pop("detail", None)
        if detail:
            excess -= _bytes(detail)
            draft.detail_cut += len(detail)
            shrunk = True
    return shrunk


def _shrink_summary(draft: _Draft, excess: int) -> bool:
    """Fewer entries in the lists and tallies inside the summary; its own numbers stay."""
    for entries in (10, 3):
        if entries < draft.summary_entries and draft.summary:
            draft.summary_entries = entries
            draft.summary = bounded_mapping(draft.whole_summary, SUMMARY_ENTRIES, entries, SUMMARY_DEPTH)
            return True
    return False


def _shrink_findings(draft: _Draft, excess: int) -> bool:
    shrunk = False
    while draft.findings and excess > 0:
        excess -= _bytes(draft.findings.pop().entry)
        shrunk = True
    return shrunk


def _shrink_rest(draft: _Draft, excess: int) -> bool:
    if len(draft.notes) > 1:
        draft.notes.pop()
        draft.notes_cut += 1
    elif len(draft.gate_failures) > 1:
        draft.gate_failures.pop()
        draft.gate_failures_cut += 1
    elif draft.artifacts:
        draft.artifacts = []
    elif draft.summary:
        draft.summary = {}
        draft.summary_cut = True
    elif not draft.bare:
        draft.bare = True
    else:
        return False
    return True


def _shrink_texts(draft: _Draft, excess: int) -> bool:
    for key in ("gate", "baseline"):
        if draft.fixed.pop(key, None) is not None:
            return True
    for key in ("status_reason", "run_dir", "check"):
        text = draft.fixed.get(key, "")
        if len(text) > 1:
            draft.fixed[key] = text.rstrip("…")[: len(text) // 2 - 1] + "…"
            return True
    return False


# -- findings.jsonl --------------------------------------------------------------------------------------------------


def finding_line(record: Record, check: str, spec: str) -> dict[str, Any]:
    """One ``ckdn.finding/1``: every text cleaned and masked, none cut; absent fields left out."""
    fields: dict[str, Any] = {
        "check": safe(check),
        "spec": safe(spec),
        "id": safe(_id(record)) or "-",
        "kind": safe(record.kind) or "-",
        "severity": record.severity,
        "failing": record.failing,
        "message": safe(record.message) or "-",
    }
    for name in ("line", "column", "end_line", "end_column"):
        if 0 < getattr(record, name) <= LARGEST:
            fields[name] = getattr(record, name)
    path = record.path.replace(_BACKSLASH, "/")
    for name, text in (("path", path), ("code", record.code), ("test", record.test), ("url", record.url)):
        if text := safe(text):
            fields[name] = text
    if record.detail:
        fields["detail"] = [safe(line) for line in record.detail]
    return fields


def finding_lines(records: Iterable[Record], check: str, spec: str) -> Iterator[bytes]:
    """The lines of ``findings.jsonl`` in blocks of whole lines, equal to serialising each :func:`finding_line`.

    A block is searched for secrets as a whole; only where one may be, its records are masked string by string.
    """
    check, spec = safe(check), safe(spec)
    plain: set[str] = set()
    block: list[Record] = []
    for record in records:
        block.append(record)
        if len(block) == _CHUNK:
            yield _block(block, check, spec, plain)
            block = []
    if block:
        yield _block(block, check, spec, plain)


class _Masked(dict[str, str]):
    """Texts to what they are when safe: paths and codes repeat."""

    def __missing__(self, text: str) -> str:
        self[text] = masked = safe(text)
        return masked


def _block(records: list[Record], check: str, spec: str, plain: set[str]) -> bytes:
    text = _Masked().__getitem__ if _suspicious(records, plain) else clean
    return "".join([_encoded(record, check, spec, text) for record in records]).encode("utf-8", "replace")


def _suspicious(records: list[Record], plain: set[str]) -> bool:
    """Whether any text of these records may hold a secret. ``plain``: texts known to hold none; it grows."""
    if len(plain) > _KNOWN:
        plain.clear()
    fresh: list[str] = []
    seen: list[str] = []
    for record in records:
        path = record.path
        fresh.append(record.message)
        fresh.extend(record.detail)
        if record.test:
            fresh.append(record.test)
        rest = record.id
        if path and rest.startswith(path) and "@" not in rest:
            # No shape has digits and colons in its middle and a letter only before them: the parts are enough.
            rest = rest[len(path) :].lstrip(":0123456789")
        for text in (path, rest, record.code, record.kind, record.url):
            if text not in plain:
                plain.add(text)
                seen.append(text)
    if not suspicious(clean("\n".join(fresh + seen))):
        return False
    plain.difference_update(seen)
    return True


def _encoded(record: Record, check: str, spec: str, text: Callable[[str], str]) -> str:
    """The record's line, put together by hand in the order of its keys: a third of the time of a mapping's."""
    parts = [f'{{"check":{quote(check)}']
    if code := text(record.code):
        parts.append(f'"code":{quote(code)}')
    if 0 < record.column <= LARGEST:
        parts.append(f'"column":{record.column}')
    if record.detail:
        parts.append(f'"detail":[{",".join([quote(text(line)) for line in record.detail])}]')
    if 0 < record.end_column <= LARGEST:
        parts.append(f'"end_column":{record.end_column}')
    if 0 < record.end_line <= LARGEST:
        parts.append(f'"end_line":{record.end_line}')
    failing = "true" if record.failing else "false"
    kind, name = quote(text(record.kind) or "-"), quote(text(_id(record)) or "-")
    parts.append(f'"failing":{failing},"id":{name},"kind":{kind}')
    if 0 < record.line <= LARGEST:
        parts.append(f'"line":{record.line}')
    parts.append(f'"message":{quote(text(record.message) or "-")}')
    if path := text(record.path.replace(_BACKSLASH, "/")):
        parts.append(f'"path":{quote(path)}')
    parts.append(f'"severity":"{record.severity}","spec":{quote(spec)}')
    if test := text(record.test):
        parts.append(f'"test":{quote(test)}')
    if url := text(record.url):
        parts.append(f'"url":{quote(url)}')
    return ",".join(parts) + "}\n"
