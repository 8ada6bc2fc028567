"""Reads a report that is made while it is read, and prints this process's peak memory in KiB (test_streaming.py)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ckdn.engine.interpret import Settings, interpret
from ckdn.engine.source import Source
from ckdn.spec.load import load
from ckdn.spec.read import Document

XML: dict[str, Any] = {
    "inputs": {"r": {"file": "r", "format": "xml", "root": ["testsuites"]}},
    "rows": {
        "suite": {
            "each": "//testsuite",
            "fields": {"tests": {"get": "@tests", "as": "int"}, "top": "not(ancestor::testsuite)"},
        },
        "case": {"each": "//testcase", "fields": {"name": "@name", "skipped": "boolean(skipped)"}},
        "problem": {
            "each": [{"select": "//testcase", "keep": {"test": "@name"}}, {"select": "failure | error"}],
            "fields": {"message": "@message", "detail": "string()"},
        },
    },
    "findings": [{"kind": "test_failure", "rows": "problem"}],
    "declared": [{"name": "tests", "sum": "suite.tests", "where": "top"}],
    "summary": {"n": {"count": "case", "where": "!skipped"}},
    "guards": ["declared.tests == rows.case"],
    "proof": ["report", "rows.case > 0"],
}
NDJSON: dict[str, Any] = {
    "inputs": {"r": {"file": "r", "format": "ndjson"}},
    "rows": {
        "event": {"each": "@", "fields": {"action": "Action", "test": "Test"}},
        "passed": {"from": "event", "where": "action == 'pass'"},
    },
    "findings": [{"kind": "test_failure", "rows": "event", "where": "action == 'fail'", "message": "{test}"}],
    "summary": {"n": {"count": "passed"}},
    "proof": ["report", "rows.passed > 0"],
}
TEXT: dict[str, Any] = {
    "findings": [{"kind": "lint", "lines": "^(?P<path>[^:]+):(?P<line>[0-9]+): (?P<message>.*)$"}],
    "declared": [{"match": "^(?P<n>[0-9]+) lines"}],
    "summary": {"n": "declared.n"},
    "proof": [{"match": "lines$"}],
}
CASE = b"""<testcase classname='pkg.module.Class' name='test_number_%d' time='0.01'>
<properties><property name='a' value='b'/></properties>
<system-out>some output of the test, a line or two</system-out></testcase>
"""
EVENT = b"""{"Time":"2026-01-01T00:00:00Z","Action":"pass","Package":"example.com/m","Test":"TestNumber%d"}
"""
LINE = b"[12:00:00] compiling module number %d of the program, which takes a while\n"
FORMS = {
    "xml": (XML, b"<testsuites><testsuite tests='%d'>", CASE, b"</testsuite></testsuites>"),
    "ndjson": (NDJSON, b"", EVENT, b""),
    "text": (TEXT, b"", LINE, b"%d lines\n"),
}


class Made:
    """A reader that makes its bytes when they are asked for."""

    def __init__(self, form: str, count: int) -> None:
        self.parts = generated(form, count)
        self.rest = b""

    def read(self, size: int = -1, /) -> bytes:
        while len(self.rest) < size:
            part = next(self.parts, b"")
            if not part:
                break
            self.rest += part
        piece, self.rest = self.rest[:size], self.rest[size:]
        return piece

    def close(self) -> None:
        self.parts = iter(())


def generated(form: str, count: int) -> Iterator[bytes]:
    _, head, item, tail = FORMS[form]
    if head:
        yield head % count
    for start in range(0, count, 1000):
        yield b"".join([item % n for n in range(start, start + 1000)])
    if tail:
        yield tail % count if b"%d" in tail else tail


def none(name: str) -> Any:
    raise LookupError(name)


def main(form: str, count: int) -> None:
    value = {"schema": "ckdn.spec/1", "name": "x", "title": "x", "category": "other", **FORMS[form][0]}
    spec = load(Document(value, "x.yaml", "yaml", places={}), "x", none)
    source = (Source("r", lambda: Made(form, count)),)
    facts = interpret(spec, {"r": source, "log": source}, Settings(0, {}))
    assert facts.understood, facts.problems
    assert all(line.holds for line in facts.proof), facts.proof
    assert facts.summary == {"n": count}, facts.summary
    status = Path("/proc/self/status").read_text(encoding="ascii")
    sys.stdout.write(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
