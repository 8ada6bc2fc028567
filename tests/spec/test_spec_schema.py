"""The schema that editors complete from knows exactly the keys that the loader knows, and never refuses what loads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ckdn import config
from ckdn.catalog import Catalog
from ckdn.spec import compiled, load, load_lines, load_numbers, load_rows
from ckdn.spec.read import read_document

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMA = json.loads((ROOT / "schemas" / "ckdn.spec.v1.schema.json").read_text(encoding="utf-8"))
LAUNCHERS = json.loads((ROOT / "schemas" / "ckdn.launchers.v1.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
SKETCHES = sorted((ROOT / "tests" / "data" / "sketches").iterdir())
BUILT_IN = sorted(p for p in (ROOT / "parsers.d").iterdir() if p.suffix in (".yaml", ".toml") and p.stem[0] != "_")
NEEDED = sorted((ROOT / "tests" / "bad_specs" / "needed").iterdir())

BLOCKS: dict[str, tuple[str, ...]] = {
    "": load.TOP_KEYS,
    "command": load.COMMAND_KEYS,
    "variants": load.VARIANT_KEYS,
    "#option": load.OPTION_KEYS,
    "#option/items": load.ITEM_KEYS,
    "#input": load.INPUT_KEYS,
    "#input/shape": load.SHAPE_KEYS,
    "#input/prefix": load.PREFIX_KEYS,
    "#include": load.INCLUDE_KEYS,
    "#rowset": load_rows.ROW_KEYS,
    "#rowset/between": load_lines.BETWEEN_KEYS,
    "#step": load_rows.STEP_KEYS,
    "#rule": load_lines.RULE_KEYS,
    "#field": load_rows.FIELD_KEYS,
    "#candidate": load_rows.LISTED_KEYS,
    "#fold": load_rows.FOLD_KEYS,
    "#leaf": load_rows.LEAF_KEYS,
    "#without": load_rows.WITHOUT_KEYS,
    "#finding": (*load.FINDING_KEYS, *load_rows.ROW_KEYS),
    "#finding/between": load_lines.BETWEEN_KEYS,
    "#finding/kind": load.KIND_KEYS,
    "#finding/detail": load.DETAIL_KEYS,
    "#declared": load_numbers.DECLARED_KEYS,
    "#summary_item": load_numbers.SUMMARY_KEYS,
    "#part": load_numbers.PART_KEYS,
    "#guard": load_numbers.GUARD_KEYS,
    "#proof": load.PROOF_KEYS,
    "#gate": load_numbers.GATE_KEYS,
    "exit_codes": load.EXIT_KEYS,
    "findings_on_zero": load.ZERO_KEYS,
    "#example": load.EXAMPLE_KEYS,
    "#example/expect": ("status",),
}
"""Place in the schema (# begins a definition) → the loader's keys there."""


def closed(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema with named keys, below its place in BLOCKS."""
    if not isinstance(node, dict):
        return
    if "properties" in node:
        yield place, node
    for name, inner in node.get("properties", {}).items():
        yield from closed(inner, f"{place}/{name}".lstrip("/"))
    for key in ("items", "additionalProperties"):
        yield from closed(node.get(key), place)
    for inner in node.get("anyOf", []):
        yield from closed(inner, place)


def every_block() -> dict[str, dict[str, Any]]:
    found = dict(closed({**SCHEMA, "definitions": {}}))
    for name, node in SCHEMA["definitions"].items():
        found.update(closed(node, f"#{name}"))
    return found


def test_the_schema_has_the_loaders_keys_at_every_block() -> None:
    found = every_block()
    assert set(found) == set(BLOCKS)
    for place, keys in BLOCKS.items():
        assert len(set(keys)) == len(keys), place
        assert set(found[place]["properties"]) == set(keys), place
        assert found[place]["additionalProperties"] is (place == "#example/expect"), place


def test_words_are_the_loaders() -> None:
    definitions = SCHEMA["definitions"]
    option = definitions["option"]["properties"]["type"]["enum"]
    assert definitions["field"]["properties"]["as"]["enum"] == list(load_rows.AS_KINDS)
    assert option == list(load.OPTION_TYPES)
    assert definitions["declared"]["properties"]["take"]["enum"] == list(load_numbers.TAKES)
    assert definitions["leaf"]["properties"]["parent"]["enum"] == list(load_rows.PARENTS)
    assert definitions["input"]["properties"]["format"]["enum"] == list(load.FORMATS)
    assert SCHEMA["properties"]["category"]["enum"] == list(load.CATEGORIES)
    assert {b["required"][0] for b in SCHEMA["then"]["not"]["anyOf"]} == {*load.BLOCKS, "extends"}
    assert SCHEMA["properties"]["schema"]["const"] == load.SCHEMA
    assert LAUNCHERS["properties"]["schema"]["const"] == compiled.LAUNCHERS_SCHEMA
    assert set(LAUNCHERS["properties"]) == set(compiled.LAUNCHER_KEYS)


def test_words_that_are_written_down_twice_agree() -> None:
    # The loader is a lower layer and cannot ask the configuration.
    assert set(load.RESERVED_OPTIONS) == set(config.CHECK_KEYS)
    assert set(load.PLACEHOLDERS) == set(config.PLACEHOLDERS)


@pytest.mark.parametrize("path", [*BUILT_IN, *SKETCHES, *NEEDED], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_loads_is_valid(path: Path) -> None:
    names = tuple(p.stem for p in path.parent.iterdir())
    folder = [] if path in BUILT_IN else [str(path.parent)]
    spec, document = Catalog(folder, override=names, environ={"CI": "1"}).read(path.stem)
    assert spec.name == path.stem
    assert [error.message for error in VALIDATOR.iter_errors(document.value)] == []
    assert spec.proof or spec.variants


def test_the_sketches_are_ten_tools_and_one() -> None:
    names = "cargo coverage eslint gcc go_test junit mypy ruff sarif tap yamllint"
    assert [path.stem for path in SKETCHES] == names.split()


def test_launcher_lines_are_valid() -> None:
    path = ROOT / "parsers.d" / "_launchers.yaml"
    document = read_document(path.read_bytes(), path.name)
    jsonschema.Draft7Validator(LAUNCHERS).validate(document.value)
    assert compiled.launcher_patterns(document)


@pytest.mark.parametrize("path", BUILT_IN, ids=lambda path: path.stem)
def test_built_in_specs_name_their_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=../schemas/ckdn.spec.v1.schema.json"


PLAIN = {"schema": "ckdn.spec/1", "name": "x", "title": "x", "category": "linter"}
REFUSED: list[dict[str, Any]] = [
    {**PLAIN},
    {**PLAIN, "findings": []},
    {**PLAIN, "findings": [], "proof": []},
    {**PLAIN, "findings": [], "proof": ["exitcode"]},
    {**PLAIN, "variants": {"option": "a", "choose": {"b": "c"}}, "proof": ["exit_code"]},
    {**PLAIN, "variants": {"option": "a", "choose": {"b": "c"}}, "extends": "b"},
    {**PLAIN, "findings": [{"kind": "a", "lines": "a", "each": "a"}], "proof": ["exit_code"]},
    {**PLAIN, "findings": [{"kind": "a", "rows": "a", "dedup": "a"}], "proof": ["exit_code"]},
    {**PLAIN, "findings": [{"kind": {"of": "a"}, "rows": "a"}], "proof": ["exit_code"]},
    {**PLAIN, "findings": [{"rows": "a"}], "proof": ["exit_code"]},
    {**PLAIN, "findings": [{"kind": "a", "lines": [{"new": "a", "add": "b"}]}], "proof": ["exit_code"]},
    {**PLAIN, "findings": [{"kind": "a", "lines": [{"new": "a", "join": True}]}], "proof": ["exit_code"]},
    {**PLAIN, "findings": [{"kind": "a", "each": "a", "per": "a"}], "proof": ["exit_code"]},
    {**PLAIN, "findings": [{"kind": "a", "each": "a", "fields": {"a": {"get": "a", "of": "b"}}}], "proof": ["report"]},
    {**PLAIN, "findings": [{"kind": "a", "each": "a", "fields": {"a": {"lookup": "a.b"}}}], "proof": ["report"]},
    {
        **PLAIN,
        "findings": [{"kind": "a", "each": "a", "fields": {"a": {"get": "a", "ass": "int"}}}],
        "proof": ["report"],
    },
    {**PLAIN, "findings": [], "proof": ["report"], "declared": [{"name": "a", "sum": "b"}]},
    {**PLAIN, "findings": [], "proof": ["report"], "declared": [{"sum": "a.b"}]},
    {**PLAIN, "findings": [], "proof": ["report"], "summary": {"a": {"list": "b"}}},
    {**PLAIN, "findings": [], "proof": ["report"], "summary": {"a": {"count": "b", "top": 3}}},
    {**PLAIN, "findings": [], "proof": ["report"], "guards": ["records"]},
    {**PLAIN, "findings": [], "proof": ["report"], "gates": [{"number": "records", "label": "a"}]},
    {**PLAIN, "findings": [], "proof": ["report"], "inputs": {}},
]


@pytest.mark.parametrize("document", REFUSED)
def test_an_editor_marks_what_is_wrong_in_form(document: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    "document",
    [
        {**PLAIN, "findings": [], "proof": ["exit_code"]},
        {**PLAIN, "extends": "b"},
        {**PLAIN, "variants": {"option": "a", "choose": {"b": "c"}}, "examples": []},
    ],
)
def test_the_three_kinds_of_file_are_valid(document: dict[str, Any]) -> None:
    assert VALIDATOR.is_valid(document)
