"""The schemas document every key, and the compiled validators are current and agree with jsonschema."""

from __future__ import annotations

import copy
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckdn.validators import ValidationError, ids, validate

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = {
    document["$id"]: document
    for document in (
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "schemas").glob("*.schema.json"))
    )
}
CONDITIONAL = {"if", "then", "else", "not"}
EXAMPLES = [(name, example) for name, schema in SCHEMAS.items() for example in schema["examples"]]


def test_files_are_named_after_their_documents() -> None:
    for path in (ROOT / "schemas").iterdir():
        word, version = json.loads(path.read_text(encoding="utf-8"))["$id"].split("/")
        assert path.name == f"{word}.v{version}.schema.json"


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_valid_draft_07(name: str) -> None:
    schema = SCHEMAS[name]
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    jsonschema.Draft7Validator.check_schema(schema)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_key_has_a_description_and_an_example(name: str) -> None:
    schema = SCHEMAS[name]
    assert schema["title"] == name
    bare = [place for place, node in properties(schema) if not node.get("description") or not node.get("examples")]
    assert not bare


@pytest.mark.parametrize("name", SCHEMAS)
def test_objects_with_named_keys_say_whether_they_are_closed(name: str) -> None:
    silent = [
        place
        for place, node in subschemas(SCHEMAS[name])
        if "properties" in node and "additionalProperties" not in node and not CONDITIONAL & set(place.split("/"))
    ]
    assert not silent


@pytest.mark.parametrize("name", SCHEMAS)
def test_examples_of_keys_are_valid(name: str) -> None:
    root = SCHEMAS[name]
    for place, node in subschemas(root):
        # A reference is resolved from the root, so the root's definitions go along.
        alone = {**node, "definitions": root.get("definitions", {})}
        for example in node.get("examples", []):
            faults = [error.message for error in jsonschema.Draft7Validator(alone).iter_errors(example)]
            assert not faults, f"{name} {place}: {example!r}"


def test_validators_are_current() -> None:
    generate = _generator()
    assert not generate.stale(ROOT / "ckdn" / "validators", generate.generate(ROOT / "schemas")), (
        "run: python .ci/generate.py"
    )
    assert list(ids()) == sorted(SCHEMAS)


def test_a_stale_validator_is_noticed(tmp_path: Path) -> None:
    generate = _generator()
    wanted = generate.generate(ROOT / "schemas")
    for file_name, text in wanted.items():
        (tmp_path / file_name).write_text(text, encoding="utf-8")
    (tmp_path / "gone_1.py").write_text("", encoding="utf-8")
    (tmp_path / "facts_1.py").write_text("# edited by hand\n", encoding="utf-8")
    (tmp_path / "finding_1.py").unlink()
    assert generate.stale(tmp_path, wanted) == ["facts_1.py", "finding_1.py", "gone_1.py"]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_examples_are_accepted(name: str, example: Any) -> None:
    validate(example, name)
    if isinstance(example.get("schema"), str):
        validate(example)


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_both_validators_agree_on_single_mutations(name: str, example: Any) -> None:
    refused = 0
    for mutant in mutants(example):
        refused += not agree(name, mutant)
    assert refused


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-3, max_value=3)
    | st.sampled_from([0.5, 1.0, -1.5])
    | st.sampled_from(["", "a", "pass", "error", "ruff", "ckdn.facts/1", "0" * 64, "^a$"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "rc", "schema"]), inner),
    max_leaves=6,
)


@given(st.data())
def test_both_validators_agree_on_mutated_documents(data: st.DataObject) -> None:
    name, example = data.draw(st.sampled_from(EXAMPLES))
    mutant = copy.deepcopy(example)
    for _ in range(data.draw(st.integers(1, 3))):
        holder = data.draw(st.sampled_from(list(holders(mutant)) or [None]))
        if holder is None:
            break
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        verb = data.draw(st.sampled_from(["replace", "remove", "add"]))
        if verb == "add" and isinstance(holder, dict):
            holder[data.draw(st.sampled_from(key_names(name)))] = data.draw(values(name))
        elif verb == "add":
            holder.append(data.draw(values(name)))
        elif keys and verb == "replace":
            holder[data.draw(st.sampled_from(keys))] = data.draw(values(name))
        elif keys:
            del holder[data.draw(st.sampled_from(keys))]
    agree(name, mutant)


@given(st.data())
def test_both_validators_agree_on_made_up_documents(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SCHEMAS)))
    agree(name, data.draw(st.dictionaries(st.sampled_from(key_names(name)), values(name), max_size=6) | JSON))


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        ({}, "", "must contain schema"),
        ([], "", "must be object"),
        ({"schema": "ckdn.fact/1"}, "schema", "names no known document: 'ckdn.fact/1'"),
        ({"schema": ["ckdn.facts/1"]}, "schema", "names no known document: ['ckdn.facts/1']"),
        (
            {"schema": "ckdn.aggregate/1", "alias": "a", "status": "pass", "rc": 0, "members": [{"check": "a"}]},
            "members[0]",
            "must contain status",
        ),
        (
            {"schema": "ckdn.aggregate/1", "alias": "a", "status": "pass", "rc": 0, "members": [], "y": 1, "x": 1},
            "",
            "must not contain x, y properties",
        ),
        ({"schema": "ckdn.aggregate/1", "alias": 1, "status": "pass", "rc": 0, "members": []}, "alias", "must be str"),
    ],
)
def test_a_fault_is_named_with_its_place(document: Any, path: str, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        validate(document)
    assert caught.value.path == path
    assert caught.value.message.startswith(message)
    assert str(caught.value).startswith(f"{path}: {message}" if path else message)


def agree(name: str, document: Any) -> bool:
    """Whether the document is valid, asserting that both validators say the same."""
    fault = next(jsonschema.Draft7Validator(SCHEMAS[name]).iter_errors(document), None)
    refusal = None
    try:
        validate(document, name)
    except ValidationError as caught:
        refusal = caught
    assert (refusal is None) == (fault is None), f"compiled: {refusal}; jsonschema: {fault}"
    assert refusal is None or refusal.message
    return refusal is None


def subschemas(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with its place."""
    if not isinstance(node, dict):
        return
    yield place, node
    for key in ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
        yield from subschemas(node.get(key), f"{place}/{key}")
    for key in ("properties", "patternProperties", "definitions", "dependencies"):
        for name, inner in node.get(key, {}).items():
            yield from subschemas(inner, f"{place}/{key}/{name}")
    for key in ("allOf", "anyOf", "oneOf", "items"):
        for index, inner in enumerate(node[key] if isinstance(node.get(key), list) else []):
            yield from subschemas(inner, f"{place}/{key}/{index}")


def properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schemas of keys: those that a reader meets. Conditions repeat keys that are described elsewhere."""
    for place, node in subschemas(schema):
        steps = place.split("/")
        if not CONDITIONAL & set(steps) and len(steps) > 1 and steps[-2] in ("properties", "patternProperties"):
            yield place, node
    yield "", schema


def holders(node: Any) -> Iterator[Any]:
    """Every object and list inside a document, the document first."""
    if isinstance(node, (dict, list)):
        yield node
        for inner in node.values() if isinstance(node, dict) else node:
            yield from holders(inner)


def mutants(document: Any) -> Iterator[Any]:
    """The document with one key or item removed, replaced by each of a few values, or added."""
    for index, holder in enumerate(holders(document)):
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        for key in keys:
            mutant, place = _copy_at(document, index)
            del place[key]
            yield mutant
            for value in (None, True, 0, -1, 1.0, 0.5, "", "x", "skipped", "F" * 64, [], [""], {}, {"x": 1}):
                mutant, place = _copy_at(document, index)
                place[key] = value
                yield mutant
        mutant, place = _copy_at(document, index)
        if isinstance(place, dict):
            place["another"] = 1
        else:
            place.append(1)
        yield mutant


def _copy_at(document: Any, index: int) -> tuple[Any, Any]:
    mutant = copy.deepcopy(document)
    return mutant, list(holders(mutant))[index]


def key_names(name: str) -> list[str]:
    """The keys that the schema knows anywhere, and one that it does not."""
    found = {key for _, node in subschemas(SCHEMAS[name]) for key in node.get("properties", {})}
    return [*sorted(found), "another"]


def values(name: str) -> st.SearchStrategy[Any]:
    """Values that are likely right somewhere in such a document, or anything."""
    likely = [example for _, node in subschemas(SCHEMAS[name]) for example in node.get("examples", [])]
    return st.sampled_from(likely).map(copy.deepcopy) | JSON


def _generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate", ROOT / ".ci" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
