"""The engine's semantics as data: every case of the YAML files beside this one, read whole and in random pieces.

A case: `name`, `spec` (the parts that matter; what every spec needs is added here), `specs` (others it names), `given`
(log, stdout, stderr, files; content is text, `{base64: …}`, or a list of those and of `{text, times}`; `unread` gives
reasons), `rc`, `options`, `check` (further settings), and `expect` (a part of the facts) or `refusal` (what the loader
says).
"""

from __future__ import annotations

import base64
import fnmatch
import io
import random
from pathlib import Path
from typing import Any

import pytest

from ckdn.engine import text, xmldoc
from ckdn.engine.interpret import Settings, interpret
from ckdn.engine.source import Source, Unread
from ckdn.errors import SpecError
from ckdn.model import Ending, Facts
from ckdn.spec.load import load
from ckdn.spec.read import Document, read_document
from ckdn.spec.types import Spec, freeze, thaw
from ckdn.verdict import decide

HERE = Path(__file__).resolve().parent
STREAMS = ("log", "stdout", "stderr")
CASE_KEYS = {"name", "spec", "specs", "given", "rc", "options", "check", "expect", "refusal"}
EXPECT_KEYS = {
    "records", "summary", "understood", "problems", "guards", "proof", "gates", "notes", "status", "rc_class",
    "zero_expected", "bound", "reason", "numbers",
}  # fmt: skip


def cases() -> list[Any]:
    found = []
    for path in sorted(HERE.glob("*.yaml")):
        for case in read_document(path.read_bytes(), path.name, integer_keys=True).value:
            unknown = set(case) - CASE_KEYS | set(case.get("expect", ())) - EXPECT_KEYS
            assert not unknown, f"{path.name}: {case['name']}: {unknown}"
            assert ("expect" in case) != ("refusal" in case), f"{path.name}: {case['name']}"
            found.append(pytest.param(case, id=f"{path.stem}: {case['name']}"))
    return found


CASES = cases()


def spec_of(name: str, case: dict[str, Any]) -> tuple[Spec, Document]:
    fragment = case["spec"] if name == "case" else case["specs"][name]
    value = {"schema": "ckdn.spec/1", "name": name, "title": name, "category": "other", **fragment}
    if "variants" not in value and "extends" not in value:
        value.setdefault("findings", [])
        value.setdefault("proof", ["exit_code"])
    document = Document(value, f"{name}.yaml", "yaml", places={})
    return load(document, name, lambda other: spec_of(other, case)), document


def content_of(given: Any) -> bytes:
    if isinstance(given, list):
        return b"".join(content_of(part) for part in given)
    if isinstance(given, dict):
        return base64.b64decode(given["base64"]) if "base64" in given else content_of(given["text"]) * given["times"]
    return str(given).encode()


class Pieces(io.RawIOBase):
    """A reader that gives what it is asked for in pieces of random sizes."""

    def __init__(self, data: bytes, seed: int, largest: int) -> None:
        self.data = data
        self.at = 0
        self.random = random.Random(seed)
        self.largest = largest

    def read(self, size: int = -1, /) -> bytes:
        size = min(self.random.randint(1, self.largest), size if size >= 0 else len(self.data))
        piece = self.data[self.at : self.at + size]
        self.at += len(piece)
        return piece


def source(name: str, data: bytes, seed: int) -> Source:
    if not seed:
        return Source(name, lambda: io.BytesIO(data))
    return Source(name, lambda: Pieces(data, seed, 7 if len(data) < 20_000 else 3000))


def inputs_of(spec: Spec, case: dict[str, Any], seed: int) -> dict[str, Any]:
    given = case.get("given", {})
    assert not set(given) - {*STREAMS, "files", "unread"}, case["name"]
    files = given.get("files", {})
    bound: dict[str, Any] = {}
    for i in spec.inputs:
        if i.name in given.get("unread", {}):
            bound[i.name] = Unread(given["unread"][i.name])
        elif i.source == "file":
            names = sorted(fnmatch.filter(files, i.file))
            bound[i.name] = tuple(source(n, content_of(files[n]), seed) for n in names) or Unread(
                f"{i.file} is missing", missing=True
            )
        else:
            bound[i.name] = (source(i.name, content_of(given.get(i.name, "")), seed),)
    bound.setdefault("log", (source("log", content_of(given.get("log", "")), seed),))
    return bound


def facts_of(spec: Spec, case: dict[str, Any], seed: int = 0) -> Facts:
    check = dict(case.get("check", {}))
    for key in ("roots", "launchers", "fail_on"):
        if key in check:
            check[key] = tuple(check[key])
    options = {n: s["default"] for n, s in spec.options.items() if "default" in s} | case.get("options", {})
    settings = Settings(case.get("rc", 0), options, **check)
    if spec.variants:
        return facts_of(spec_of(dict(spec.variants)[options[spec.variant_option]], case)[0], case, seed)
    includes = {}
    for include in spec.includes:
        other = spec_of(include.spec, case)[0]
        bound = inputs_of(other, case, seed)
        if not (include.optional and any(getattr(b, "missing", False) for b in bound.values())):
            includes[include.spec] = interpret(other, bound, settings)
    return interpret(spec, inputs_of(spec, case, seed), settings, includes)


def shown(facts: Facts) -> dict[str, Any]:
    """All facts in the form of `expect`."""
    verdict = decide(Ending(0), facts)
    records = [{name: getattr(r, name) for name in r._fields} | {"detail": list(r.detail)} for r in facts.records]
    return {
        "records": records,
        "summary": facts.summary,
        "understood": facts.understood,
        "problems": list(facts.problems),
        "guards": {
            "held": facts.guards_held,
            "skipped": list(facts.guards_skipped),
            "broken": list(facts.guards_broken),
        },
        "proof": [line.holds or line.reason for line in facts.proof],
        "gates": list(facts.gate_failures),
        "notes": list(facts.notes),
        "status": verdict.status,
        "reason": verdict.reason,
        "rc_class": facts.rc_class,
        "zero_expected": facts.zero_expected,
        "bound": facts.bound_passed,
        "numbers": dict(facts.numbers or {}),
    }


@pytest.mark.parametrize("case", CASES)
def test_case(case: dict[str, Any]) -> None:
    if "refusal" in case:
        with pytest.raises(SpecError) as caught:
            spec_of("case", case)
        assert case["refusal"] in str(caught.value)
        return
    facts = facts_of(spec_of("case", case)[0], case)
    got = shown(facts)
    verdict = decide(Ending(case.get("rc", 0)), facts)
    got["status"], got["reason"] = verdict.status, verdict.reason
    expected = dict(case["expect"])
    expected.setdefault("problems", [])
    expected.setdefault("understood", not expected["problems"] and "bound" not in expected)
    for key in expected.keys() - {"records", "numbers", "guards"}:
        assert got[key] == expected[key], key
    if "records" in expected:
        wanted = expected["records"]
        assert [{k: g[k] for k in w} for g, w in zip(got["records"], wanted, strict=False)] == wanted
        assert len(got["records"]) == len(wanted), got["records"][len(wanted) :]
    for key in ("numbers", "guards"):
        assert {k: got[key][k] for k in expected.get(key, ())} == expected.get(key, {})


@pytest.mark.parametrize("case", [c for c in CASES if "expect" in c.values[0]])
def test_the_same_in_pieces(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing depends on how the bytes come, nor on where blocks end, nor on whether the spec was compiled before."""
    spec = spec_of("case", case)[0]
    whole = shown(facts_of(spec, case))
    for seed in (1, 2, 3) if sum(map(len, map(str, whole["records"]))) < 1_000_000 else (1,):
        monkeypatch.setattr(text, "BLOCK_BYTES", 1 << (4 * seed))
        monkeypatch.setattr(xmldoc, "CHUNK_BYTES", 1 << (2 * seed))
        assert shown(facts_of(thaw(freeze(spec)), case, seed)) == whole
