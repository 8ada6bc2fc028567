"""A digest for people: the tersest text form, and one line for a terminal."""

from __future__ import annotations

from ckdn.bounds import is_number
from ckdn.model import FAIL, PASS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def render_text(document: dict[str, Any]) -> str:
    """The tersest form of a digest: a line for the verdict, one per finding with its detail below; ends in a newline.

    A pass is one line. Numbers of the summary, the kind of findings and artifacts are left to the JSON form. An
    aggregate is a line for its verdict and one per member that is not green.
    """
    if "members" in document:
        return _aggregate_text(document)
    lines = [_headline(document)]
    for finding in document.get("findings", ()):
        lines.append(_finding_text(finding))
        lines += [f" {line}" for line in finding.get("detail", ())]
    if "findings_truncated" in document:
        where = "" if document["run_dir"] == "-" else f": {document['run_dir']}/findings.jsonl"
        lines.append(f"… {document['findings_truncated']} more{where}")
    lines += [f"gate: {text}" for text in document.get("gate_failures", ())]
    lines += [f"note: {text}" for text in document.get("notes", ())]
    lines += document.get("log_tail", ())
    return "\n".join(lines) + "\n"


def _aggregate_text(document: dict[str, Any]) -> str:
    members = document["members"]
    green = sum(1 for member in members if member["status"] == PASS)
    line = f"{document['alias']}: {document['status']}, {green} of {len(members)} checks pass"
    if document["status"] != PASS:
        line += f", rc {document['rc']}"
    red = [m for m in members if m["status"] != PASS]
    return "\n".join([line, *[f" {m['check']}: {m['status']}" for m in red]]) + "\n"


def verdict_line(document: dict[str, Any], color: bool = False) -> str:
    """One line for a terminal, without a newline: the verdict, what proves it, and where the evidence is."""
    status = document["status"]
    line = _headline(document)
    if status == PASS:
        numbers = [f"{name} {value}" for name, value in _numbers(document.get("summary", {}))]
        if numbers:
            line += f" ({', '.join(numbers[:4])})"
    elif document["run_dir"] != "-":
        line += f" ({document['run_dir']})"
    if not color:
        return line
    head = f"{document['check']}: "
    paint = {PASS: "32", FAIL: "31"}.get(status, "33")
    return f"{head}\x1b[1;{paint}m{status}\x1b[0m{line[len(head) + len(status) :]}"


def _headline(document: dict[str, Any]) -> str:
    """``mypy: fail, rc 1, 2 findings``; the reason where the list below does not give it."""
    line = f"{document['check']}: {document['status']}"
    reason = document.get("status_reason", "")
    total = document.get("findings_total", 0)
    explained = document["status"] == FAIL and (total or "gate_failures" in document)
    if document["status"] != PASS and (explained or f"exit code {document['rc']}" not in reason):
        line += f", rc {document['rc']}"
    if reason and not explained:
        line += f": {reason}"
    elif total:
        line += f", {total} finding" + ("s" if total != 1 else "")
    return line


def _finding_text(finding: dict[str, Any]) -> str:
    """``path:line:column code message``: id, place and message, none of them twice."""
    name: str = finding["id"]
    message: str = finding["message"]
    location: str = finding.get("location", "")
    text = message if message.startswith(name) else f"{name} {message}"
    if location and not text.startswith(location):
        text = f"{location} {text}"
    return text + " (baselined)" if "baselined" in finding else text


def _numbers(summary: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in summary.items():
        if isinstance(value, dict):
            yield from _numbers(value)
        elif is_number(value):
            yield name, value
