"""The loader under fire: any document is loaded or refused with problems, and what is loaded can be kept and run."""

from __future__ import annotations

import ast
import copy
import io
import json
import marshal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckdn.catalog import Catalog
from ckdn.engine.interpret import Settings, interpret
from ckdn.engine.source import Source
from ckdn.errors import SpecError
from ckdn.model import Facts
from ckdn.spec import compiled, load_lines, load_numbers, load_rows
from ckdn.spec import load as loading
from ckdn.spec.expressions import alternatives, takes_everything
from ckdn.spec.load import load
from ckdn.spec.places import in_text
from ckdn.spec.read import Document, read_document
from ckdn.spec.types import LOG, Spec, freeze, thaw

ROOT = Path(__file__).resolve().parent.parent.parent
PARSERS = ROOT / "parsers.d"
FOLDERS = (ROOT / "tests" / "data" / "sketches", PARSERS)
GOOD = {
    f"{folder.name}/{path.stem}": read_document(path.read_bytes(), path.name, integer_keys=True)
    for folder in FOLDERS
    for path in sorted(folder.iterdir())
    if not path.stem.startswith("_")
}
VALIDATOR = jsonschema.Draft7Validator(
    json.loads((ROOT / "schemas" / "ckdn.spec.v1.schema.json").read_text(encoding="utf-8"))
)
KEYS = sorted(
    {
        key
        for module in (loading, load_rows, load_lines, load_numbers)
        for name, keys in vars(module).items()
        if name.endswith("_KEYS") or name in ("BLOCKS", "VERBS")
        for key in keys
    }
)
WORDS = [
    "a", "path", "line", "message", "severity", "error", "records", "records.error == 0", "rows.a > 0", "report", "log",
    "exit_code", "json", "ndjson", "xml", "text", "//a", "@", "@a", "a.b", "{path}", "^(?P<message>.*)$", "(", "",
    "a-b", "line > 0", "[0]", "`1`", "\\d", "a\0b", "ckdn.spec/1", "linter", "expected", "end", "detail", "*",
    "first", "ruff",
]  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-2, 70) | st.floats(-2, 2) | st.sampled_from(WORDS) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, *WORDS]) | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


def load_good(place: str) -> tuple[Spec, Document]:
    """One good spec, as FOLDER/NAME; what it names is in the same folder."""
    folder, _, name = place.partition("/")
    return load(GOOD[place], name, finder(folder)), GOOD[place]


def finder(folder: str) -> Callable[[str], tuple[Spec, Document]]:
    """The specs of a folder by name."""

    def find(name: str) -> tuple[Spec, Document]:
        if f"{folder}/{name}" not in GOOD:
            raise SpecError(f"unknown spec `{name}`")
        return load_good(f"{folder}/{name}")

    return find


def attempt(value: Any, place: str = "parsers.d/x") -> Spec | None:
    """A document loaded, or None when it is refused with problems; nothing else may come of it."""
    folder, _, name = place.partition("/")
    document = Document(copy.deepcopy(value), f"{name}.yaml", "yaml", "", {})
    problems: list[str] = []
    spec = None
    try:
        spec = load(document, name, finder(folder))
    except SpecError as e:
        problems = [str(problem) for problem in e.problems]
    assert (spec is None) == bool(problems)
    assert all(text and "\n" not in text for text in problems)
    assert document.value == value, "loading changes nothing"
    return spec


# --- any document


@given(VALUES)
def test_any_document_is_refused_with_problems(value: Any) -> None:
    attempt(value)


@given(st.dictionaries(st.sampled_from(loading.TOP_KEYS), VALUES, max_size=8))
def test_any_blocks_are_refused_with_problems(blocks: dict[str, Any]) -> None:
    attempt(
        {"schema": "ckdn.spec/1", "name": "x", "title": "x", "category": "linter", "proof": ["exit_code"], **blocks}
    )


# --- good documents, changed


def holders(node: Any) -> Iterator[Any]:
    """Every mapping and list of a document."""
    if isinstance(node, dict | list) and node:
        yield node
        for inner in node.values() if isinstance(node, dict) else node:
            yield from holders(inner)


def mutate(data: st.DataObject, value: Any) -> Any:
    """A document with one node deleted, renamed, edited, exchanged for another one of it, or given a new value."""
    value = copy.deepcopy(value)
    every = list(holders(value))
    holder = data.draw(st.sampled_from(every), "where")
    key = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))), "key")
    verb = data.draw(st.sampled_from(["delete", "rename", "retype", "exchange", "edit", "add"]), "verb")
    if verb == "delete":
        del holder[key]
    elif verb == "retype":
        holder[key] = data.draw(VALUES, "value")
    elif verb == "edit" and isinstance(holder[key], str):
        at = data.draw(st.integers(0, len(holder[key])), "at")
        new = data.draw(
            st.sampled_from(["", "a", ".", "(", ")", "|", "1", " ", "@", "[0]", "{", "}", "'", "\\", "*"]), "new"
        )
        holder[key] = holder[key][:at] + new + holder[key][at + data.draw(st.integers(0, 2), "gone") :]
    elif verb == "exchange":
        holder[key] = copy.deepcopy(data.draw(st.sampled_from(every), "other"))
    elif isinstance(holder, dict):
        new = data.draw(st.sampled_from(KEYS), "name")
        holder[new] = holder.pop(key) if verb == "rename" else data.draw(VALUES, "value")
    return value


def run(spec: Spec, text: bytes) -> Facts:
    """The facts that a spec finds in inputs that all hold the same text."""
    sources = {i.name: (Source(i.file or i.name, lambda: io.BytesIO(text)),) for i in spec.inputs}
    sources.setdefault(LOG, (Source(LOG, lambda: io.BytesIO(text)),))
    defaults = {name: schema["default"] for name, schema in spec.options.items() if "default" in schema}
    return interpret(spec, sources, Settings(0, defaults))


TEXTS = [
    b"",
    b"a.c:1:2: error: wrong [x]\nnot ok 1 - a\n1..1\nFound 1 error in 1 file\n",
    b'[{"a": 1, "filename": "a.py", "messages": [{"line": 1}]}]\n',
    b'{"runs": [{"results": [{"message": {"text": "a"}}]}], "message": "a", "line": 1}\n',
    b'<testsuite tests="1"><testcase name="a" classname="b"><failure message="c">d</failure></testcase></testsuite>',
]


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_changed_spec_is_refused_or_as_good_as_any(data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(sorted(GOOD)), "spec")
    value = GOOD[place].value
    for _ in range(data.draw(st.integers(1, 2), "mutations")):
        if value:
            value = mutate(data, value)
    spec = attempt(value, place)
    if spec is None:
        return
    assert [e.message for e in VALIDATOR.iter_errors(value)] == [], "the schema refuses what loads"
    kept = thaw(marshal.loads(marshal.dumps(freeze(spec))))
    assert kept == spec
    for text in TEXTS:  # nothing is left for the run to find out
        assert run(kept, text).spec == spec.name


# --- good documents


@pytest.mark.parametrize("place", sorted(GOOD))
def test_loading_is_deterministic_and_keeping_loses_nothing(place: str) -> None:
    (first, _), (second, _) = load_good(place), load_good(place)
    assert first == second
    frozen = freeze(first)
    assert frozen == freeze(second)
    assert marshal.dumps(frozen) == marshal.dumps(freeze(second))
    assert thaw(frozen) == first
    assert freeze(thaw(frozen)) == frozen
    assert ast.literal_eval(repr(frozen)) == frozen, "what a compiled module holds"


def test_problems_come_in_the_same_order_every_time() -> None:
    path = ROOT / "tests" / "bad_specs" / "many_problems.yaml"
    said = set()
    for _ in range(3):
        with pytest.raises(SpecError) as caught:
            load(read_document(path.read_bytes(), path.name), path.stem, finder("parsers.d"))
        said.add(str(caught.value))
    assert len(said) == 1


def test_compiled_modules_hold_equal_specs(tmp_path: Path) -> None:
    written = compiled.write(str(PARSERS), str(tmp_path))
    assert written == sorted(p.stem for p in PARSERS.iterdir() if p.suffix == ".yaml" and p.stem[0] != "_")
    catalog = Catalog(environ={"CI": "1"})
    for name in written:
        sha256, needs, frozen = constant(tmp_path / f"{name}.py")
        assert thaw(frozen) == catalog.read(name)[0]
        assert len(sha256) == 64
        assert set(needs) <= set(written)
    assert constant(tmp_path / "_launchers.py") == catalog.launchers()
    assert constant(tmp_path / "__init__.py") == tuple(written)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert compiled.write(str(PARSERS), str(tmp_path)) == written
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def constant(path: Path) -> Any:
    """The one constant of a generated module."""
    (statement,) = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign)]
    return ast.literal_eval(statement.value)


def test_compiling_tells_every_problem_of_every_file(tmp_path: Path) -> None:
    parsers = tmp_path / "parsers.d"
    parsers.mkdir()
    head = "schema: ckdn.spec/1\ntitle: a\ncategory: linter\nfindings: []\nproof: [exit_code]\n"
    (parsers / "a.yaml").write_text(f"{head}name: a\ninclude: [b]\n")
    (parsers / "b.yaml").write_text(f"{head}name: b\ninclude: [a]\n")
    (parsers / "c.yaml").write_text(f"{head}name: c\nhomepage: x\nlanguages: x\n")
    (parsers / "_launchers.yaml").write_text("lines: ['[', '.*']\n")
    with pytest.raises(SpecError) as caught:
        compiled.write(str(parsers), str(tmp_path / "out"))
    assert [str(problem) for problem in caught.value.problems] == [
        "_launchers.yaml:1:1: `schema` is missing",
        "_launchers.yaml:1:10: lines[0] is no RE2 regex: missing ] in [; close the set, or write \\[ for the character",
        "_launchers.yaml:1:14: lines[1] matches every line; name what a launcher prints",
        "a.yaml:7:11: include[0]: the spec `b` does not load: b.yaml:7:11: include[0]: `a` needs itself: a → b → a",
        "b.yaml:7:11: include[0]: the spec `a` does not load: a.yaml:7:11: include[0]: `b` needs itself: b → a → b",
        "c.yaml:7:1: homepage is `x`; it starts with https://",
        "c.yaml:8:1: languages must be a list, not text",
    ]


# --- the passes in which rows are made


def staged(rows: str, findings: str = "[]") -> dict[str, int]:
    text = f"""
schema: ckdn.spec/1
name: x
title: x
category: linter
inputs: {{report: {{file: a.json, format: json}}}}
rows:
{rows}
findings: {findings}
summary: {{a: rows.a, b: rows.b, c: rows.c}}
proof: [report]
"""
    return {row.name: row.stage for row in load(read_document(text.encode(), "x.yaml"), "x", finder("parsers.d")).rows}


def test_rows_are_made_after_those_they_look_into() -> None:
    rows = """
  a: {each: a, fields: {id: id}}
  b: {each: b, fields: {id: id, n: {lookup: a.id, on: {id: id}}}}
  c: {each: c, fields: {id: id, n: {lookup: b.id, on: {id: id}}}}"""
    assert staged(rows) == {"a": 0, "b": 1, "c": 2}


def test_rows_of_one_source_are_made_in_one_pass() -> None:
    rows = """
  a: {each: a, fields: {id: id}}
  b: {each: b, fields: {id: id}}
  c: {from: a, fields: {n: {lookup: b.id, on: {id: id}}}}"""
    assert staged(rows) == {"a": 1, "b": 0, "c": 1}


def test_rows_without_others_are_made_no_earlier_than_they() -> None:
    rows = """
  a: {each: a, fields: {id: id}}
  b: {each: b, fields: {id: id, n: {lookup: a.id, on: {id: id}}}}
  c: {each: c, fields: {id: id}, without: {rows: b, same: id}}"""
    assert staged(rows) == {"a": 0, "b": 1, "c": 1}


def test_rows_that_look_into_each_other_are_refused() -> None:
    rows = """
  a: {each: a, fields: {id: id}}
  b: {each: b, fields: {id: id, n: {lookup: a.id, on: {id: id}}}}
  c: {from: a, fields: {m: {lookup: b.n, on: {id: id}}}}"""
    with pytest.raises(SpecError, match="made in the same pass"):
        staged(rows)


# --- what is known of patterns


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("^(?P<x>error|warning): ", ("error", "warning")),
        ("(?P<x>fatal error|note)?", ("fatal error", "note")),
        ("(?i)(?P<x>error|warning)", ()),
        ("(?P<x>err(or)?)", ()),
        (r"(?P<x>\w+)", ()),
        ("(?P<x>a|)", ()),
        ("(?P<y>a|b)", ()),
    ],
)
def test_words_of_a_group(pattern: str, expected: tuple[str, ...]) -> None:
    assert alternatives(pattern, "x") == expected


@pytest.mark.parametrize("pattern", ["^", ".*", "$", ".", r"^\s*", "(?P<a>.+)", "x|", r"\b|\B"])
def test_patterns_of_every_line(pattern: str) -> None:
    assert takes_everything(pattern)


@pytest.mark.parametrize("pattern", ["", "a", "^$", r"\d", r"^\S", r"^\w", "^.{2}", r"[^\w]"])
def test_patterns_of_some_lines(pattern: str) -> None:
    assert not takes_everything(pattern)


# --- where a character stands

QUOTED = st.text(st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("äß→\t\\'\""), min_size=1)


def written(kind: str, form: str, text: str) -> tuple[bytes, tuple[str | int, ...]]:
    """A document with one text, in some form, and its key path."""
    scalar = {"plain": text, "single": "'" + text.replace("'", "''") + "'", "double": json.dumps(text)}[form]
    if kind == "yaml":
        return f"# a\nkey: {{other: 1,   name: {scalar} , list: [a, {scalar}]}}\n".encode(), ("key", "name")
    return f"# a\n[key]\nother = 1\n'name'  =   {scalar}\nlist = ['a', {scalar}]\n".encode(), ("key", "name")


@given(QUOTED, st.data())
def test_a_character_is_found_in_its_file(text: str, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["yaml", "toml"]))
    form = data.draw(st.sampled_from(["single", "double"] if "'" not in text or kind == "yaml" else ["double"]))
    raw, path = written(kind, form, text)
    document = read_document(raw, f"a.{kind}")
    if data.draw(st.booleans()):
        path = ("key", "list", 1)
    offset = data.draw(st.integers(0, len(text) - 1))
    found = in_text(document, path, text, offset)
    assert found is not None
    line, column = found
    at = raw.decode().splitlines()[line - 1][column - 1 :]
    assert at.startswith((text[offset], json.dumps(text[offset])[1:-1]))
    assert in_text(document, path, text, len(text)) is not None


def test_a_character_of_a_plain_text_and_of_a_key() -> None:
    document = read_document(b"a: one two\nb: {'x.y': 1}\nc: |\n  three\nd: >-\n  four\n  five\n", "a.yaml")
    assert in_text(document, ("a",), "one two", 4) == (1, 8)
    assert in_text(document, ("b", "x.y"), "x.y", 1) == (2, 7)
    assert in_text(document, ("c",), "three\n", 1) is None
    assert in_text(document, ("d",), "four five", 1) is None
    assert in_text(document, ("nothing",), "x", 0) is None


def test_a_character_of_a_long_toml_text_is_not_searched() -> None:
    document = read_document(b"a = '''x'''\nb = \"\"\"\ny\"\"\"\n", "a.toml")
    assert in_text(document, ("a",), "x", 0) is None
    assert in_text(document, ("b",), "y", 0) is None
