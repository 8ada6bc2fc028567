"""Conventions for specs: each has a spec that breaks it and one that does not."""

from __future__ import annotations

import pytest

from ckdn.spec import lint
from ckdn.spec.load import load
from ckdn.spec.read import read_document

HEAD = "schema: ckdn.spec/1\nname: x\ntitle: x\ncategory: linter\n"
FULL = HEAD + "homepage: https://example.org\ncommand: {run: x}\nexit_codes: {clean: [0], findings: [1]}\n"
JSON = "findings: [{kind: a, each: '@', fields: {message: m}}]\nproof: [report]\n"
XML = "findings: [{kind: a, each: //a, fields: {message: '@m'}}]\nproof: [report]\n"
STATES = ("clean", "findings", "broken")


def ids(text: str, states: tuple[str, ...] = STATES, versions: tuple[str, ...] = ()) -> list[str]:
    document = read_document(text.encode(), "x.yaml")
    spec = load(document, "x", lambda name: pytest.fail(name))
    return [found.id for found in lint.lint(lint.Subject(spec, tuple(document.value), states, versions))]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (FULL + "inputs: {r: {file: r.json, format: json}}\n" + JSON, ["shape-missing"]),
        (FULL + "inputs: {r: {file: r.json, format: json, shape: array}}\n" + JSON, []),
        (FULL + "inputs: {r: {file: r.xml, format: xml}}\n" + XML, ["shape-missing"]),
        (FULL + "inputs: {r: {file: r.xml, format: xml, root: [b]}}\n" + XML, []),
        (FULL + "inputs: {r: {file: r.xml, format: xml}}\n" + XML.replace("//a", "/b/a"), []),
        (HEAD + "findings: []\nproof: [exit_code]\n", []),
        (
            HEAD + "inputs: {r: {file: r.json, format: json, shape: array}}\n" + JSON,
            ["command-missing", "homepage-missing", "exit-codes-missing"],
        ),
    ],
)
def test_conventions(text: str, wanted: list[str]) -> None:
    assert ids(text) == wanted


def test_states_and_versions() -> None:
    text = FULL + "tested: ['1.2']\ninputs: {r: {file: r.json, format: json, shape: array}}\n" + JSON
    assert ids(text, ("clean",)) == ["cases-missing", "tested-unproven"]
    assert ids(text, STATES, ("1.2.3",)) == []
    assert ids(text, STATES, ("1.20",)) == ["tested-unproven"]
