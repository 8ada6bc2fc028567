"""``ckdn schema`` and ``ckdn validate``."""

from __future__ import annotations

import json
import os

import jsonschema
import pytest

from tests.projects import ROOT, Project, linter

IDS = sorted(json.loads(path.read_text("utf-8"))["$id"] for path in (ROOT / "schemas").glob("*.schema.json"))


def test_schemas_are_listed_and_printed_as_shipped(project: Project) -> None:
    assert project.ckdn("schema").out.decode().split() == IDS
    for name in IDS:
        file = ROOT / "schemas" / f"{name.replace('/', '.v')}.schema.json"
        assert project.ckdn("schema", name).out == file.read_bytes()


def test_an_unknown_schema_is_refused_with_near_names(project: Project) -> None:
    assert "did you mean ckdn.digest/2" in project.refused("schema", "ckdn.digest/1")[0]
    project.refused("schema", "../pyproject")


def test_export_writes_every_schema(project: Project) -> None:
    done = project.ckdn("schema", "--export", "out/deep")
    assert done.code == 0
    assert done.out.decode().split() == [f"out/deep/{name.replace('/', '.v')}.schema.json" for name in IDS]
    for path in (project.path / "out" / "deep").iterdir():
        assert path.read_bytes() == (ROOT / "schemas" / path.name).read_bytes()
        jsonschema.Draft7Validator.check_schema(json.loads(path.read_bytes()))
    project.write("file", "")
    assert "cannot be written" in project.refused("schema", "--export", "file")[0]


def test_every_document_that_a_run_writes_is_valid(project: Project) -> None:
    project.write("parsers.d/mylint.yaml", linter())
    project.shell("a", "echo a.py:1: bad; exit 1", parser="mylint")
    project.shell("b", "exit 1")
    project.check("c", "no-such-command")
    project.shell("d", "echo all fine", parser="mylint", timeout=30)
    for name in ("a", "b", "c", "d"):
        project.run(name)
    project.run("d", "--", "x")
    project.write("facts.json", project.ckdn("parse", "mylint", "-", stdin=b"a.py:1: bad\n").out)
    written = [str(p.relative_to(project.path)) for p in project.runs_dir.glob("2*/*.json*")]
    assert len(written) == 5 * 3 - 2  # two runs of generic have no findings.jsonl
    done = project.ckdn("validate", *written, "facts.json", "ckdn.toml", "parsers.d/mylint.yaml")
    assert (done.code, done.out, done.err) == (0, b"", "")


@pytest.mark.parametrize("spec", sorted(p.name for p in (ROOT / "parsers.d").glob("[a-z]*.yaml")))
def test_every_shipped_spec_is_valid(project: Project, spec: str) -> None:
    done = project.ckdn("validate", str(ROOT / "parsers.d" / spec))
    assert (done.code, done.out) == (0, b"")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("d.json", '{"schema": "ckdn.digest/2"}', "'check' is a required property"),
        ("d.json", '{"schema": "ckdn.digest/2", "check": 1, "status": "pass", "rc": 0, "run_dir": "-"}', "check: 1 is"),
        ("d.json", '{"schema": "ckdn.digest/9"}', "unknown schema 'ckdn.digest/9'"),
        ("d.json", '{"schema": 2}', "unknown schema 2"),
        ("d.json", '{"schema": null}', "no key `schema`"),
        ("d.json", "{}", "no key `schema`"),
        ("d.json", "[]", "no key `schema`"),
        ("d.json", "[" * 100_000, "is no JSON"),
        ("d.json", "{", "is no JSON"),
        ("d.json", b"\xff\xfe\x00", "is no JSON"),
        ("d.json", "", "is no JSON"),
        ("f.jsonl", '{"a": 1}\n', "f.jsonl:1: the document:"),
        ("f.jsonl", "\n\nnope\n", "f.jsonl:3: is no JSON"),
        ("ckdn.toml", "[run]\nkep = 1\n", "ckdn.toml:2:1: unknown key `kep`"),
        ("ckdn.yaml", "run: {keep: -1}\n", "ckdn.yaml:1:"),
        ("other.yaml", "a: 1\n", "no key `schema`"),
        ("other.toml", "a = \n", "other.toml:1:"),
        ("s.yaml", "schema: ckdn.spec/1\nname: s\ntitle: s\ncategory: linter\nfindngs: []\n", "did you mean findings"),
    ],
)
def test_documents_that_are_wrong(project: Project, name: str, content: str | bytes, said: str) -> None:
    project.write(name, content)
    done = project.ckdn("validate", name)
    assert (done.code, done.err) == (1, "")
    assert done.out.decode().startswith(name)
    assert said in done.out.decode()


def test_every_problem_of_every_file_is_told(project: Project) -> None:
    project.write("1.json", '{"schema": "ckdn.digest/2"}')
    project.write("2.json", "{")
    lines = project.ckdn("validate", "1.json", "2.json").out.decode().splitlines()
    assert [line.split(":")[0] for line in lines] == ["1.json"] * 4 + ["2.json"]


def test_what_cannot_be_read_is_refused(project: Project) -> None:
    os.mkfifo(project.path / "fifo.json")
    assert "cannot be read" in project.refused("validate", "none.json")[0]
    assert "no regular file" in project.refused("validate", "fifo.json")[0]
    assert "no regular file" in project.refused("validate", ".")[0]
    project.refused("validate")


def test_a_spec_that_extends_another_one_is_checked_with_it(project: Project) -> None:
    project.write("parsers.d/base.yaml", linter("base"))
    project.write(
        "parsers.d/child.yaml", "schema: ckdn.spec/1\nname: child\ntitle: c\ncategory: linter\nextends: base\n"
    )
    assert project.ckdn("validate", "parsers.d/child.yaml").code == 0
    project.write("parsers.d/base.yaml", linter("base").replace("proof", "prof"))
    assert project.ckdn("validate", "parsers.d/child.yaml").code == 1


def test_problems_are_free_of_control_characters(project: Project) -> None:
    project.write("d.json", '{"schema": "ckdn.digest/2", "\\u001b[31mred\\u202e": 1}')
    out = project.ckdn("validate", "d.json").out.decode()
    assert "\x1b" not in out
    assert "\u202e" not in out
