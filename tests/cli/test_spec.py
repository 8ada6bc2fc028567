"""``ckdn spec list|show|lint|test`` as an author of a project spec uses them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.projects import ROOT, Project, linter

META = "homepage: https://example.org/\ncommand: {run: mylint .}\n"
EXAMPLES = """\
examples:
  - {name: clean, rc: 0, log: "all fine\\n", expect: {status: pass}}
  - {name: findings, rc: 1, log: "a.py:3: bad\\n", expect: {findings_total: 1, has: [{path: a.py, line: 3}]}}
  - {name: broken, rc: 2, log: "cannot open x\\n", expect: {status: error}}
"""


@pytest.fixture
def mine(project: Project) -> Project:
    """A project with one spec that keeps every convention."""
    project.config("")
    project.write("parsers.d/mylint.yaml", linter(more=META + EXAMPLES))
    return project


def change(project: Project, old: str, new: str) -> None:
    path = project.path / "parsers.d/mylint.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


# --- list and show


def test_list_says_origin_and_how_green_is_proven(mine: Project) -> None:
    done = mine.ckdn("spec", "list")
    assert (done.code, done.err) == (0, "")
    lines = {line.split()[0]: line for line in done.out.decode().splitlines()}
    assert "parsers.d/mylint.yaml" in lines["mylint"]
    assert "marker" in lines["mylint"]
    assert "built-in" in lines["ruff"]
    assert "by exit code only" in lines["generic"]
    assert set(lines) >= {"generic", "mylint", "mypy", "mypy_json", "mypy_text", "ruff", "unittest"}
    assert not any(name.startswith("_") for name in lines)


def test_a_spec_that_does_not_load_is_listed_with_its_problem(mine: Project) -> None:
    change(mine, "proof", "prof")
    done = mine.ckdn("spec", "list")
    assert done.code == 0
    assert "mylint" in done.out.decode()
    assert "does not load: parsers.d/mylint.yaml:" in done.out.decode()


def test_show_prints_the_file(mine: Project) -> None:
    assert mine.ckdn("spec", "show", "mylint").out == (mine.path / "parsers.d/mylint.yaml").read_bytes()
    assert mine.ckdn("spec", "show", "ruff").out == (ROOT / "parsers.d" / "ruff.yaml").read_bytes()
    assert mine.refused("spec", "show", "rufff") == ["ckdn: unknown spec 'rufff'; did you mean ruff?"]


def test_show_prints_a_spec_that_does_not_load(mine: Project) -> None:
    """Looking at it is how it is mended."""
    change(mine, "proof", "prof")
    assert mine.ckdn("spec", "show", "mylint").out == (mine.path / "parsers.d/mylint.yaml").read_bytes()


# --- lint


def test_lint_is_content_with_a_spec_that_keeps_the_conventions(mine: Project) -> None:
    done = mine.ckdn("spec", "lint", "mylint")
    assert (done.code, done.out, done.err) == (0, b"", "1 spec, 0 problems, 0 errors\n")


def test_lint_tells_every_problem_with_its_place(mine: Project) -> None:
    change(mine, "proof", "prof")
    change(mine, "(?P<line>", "(?P<lin>")
    done = mine.ckdn("spec", "lint", "mylint")
    assert done.code == 1
    lines = done.out.decode().splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("error: parsers.d/mylint.yaml:") for line in lines)


def test_a_missing_example_is_a_problem(mine: Project) -> None:
    change(mine, '  - {name: broken, rc: 2, log: "cannot open x\\n", expect: {status: error}}\n', "")
    done = mine.ckdn("spec", "lint", "mylint")
    assert "broken" in done.out.decode()
    assert done.code == (1 if b"error: " in done.out else 0)
    assert mine.ckdn("spec", "lint", "mylint", "--strict").code == 1


def test_lint_of_a_file_outside_parsers_d(mine: Project, tmp_path: Path) -> None:
    draft = tmp_path / "draft.yaml"
    draft.write_text(linter("draft", META + EXAMPLES))
    assert mine.ckdn("spec", "lint", str(draft)).code == 0
    assert mine.ckdn("spec", "test", str(draft)).code == 0
    assert "no such file" in mine.refused("spec", "lint", "parsers.d/none.yaml")[0]


def test_lint_of_an_unknown_name_is_refused(mine: Project) -> None:
    for action in ("lint", "test", "show"):
        (line,) = mine.refused("spec", action, "mylnt")
        assert line.startswith("ckdn: unknown spec 'mylnt'; did you mean mylint")


def test_the_built_in_specs_keep_the_conventions(project: Project) -> None:
    fixtures = ["--fixtures", str(ROOT / "fixtures")]
    done = project.ckdn("spec", "lint", "generic", "mypy", "mypy_text", "mypy_json", "ruff", "unittest", *fixtures)
    assert (done.code, done.out) == (0, b""), done


# --- test


def test_examples_are_run(mine: Project) -> None:
    done = mine.ckdn("spec", "test", "mylint")
    assert (done.code, done.out, done.err) == (0, b"", "3 cases, 0 failed\n")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("expect: {status: pass}", "expect: {status: fail}", "mylint/clean: status pass, expected fail"),
        ("findings_total: 1", "findings_total: 2", "mylint/findings: findings_total 1, expected 2"),
        ("line: 3}", "line: 4}", "mylint/findings: no record like"),
        ("'^all fine$'", "'^all good$'", "mylint/clean: status parse_mismatch, expected pass"),
        ("rc: 2, log", "rc: 0, log", "mylint/broken: status parse_mismatch, expected error"),
        ("{name: clean,", "{nmae: clean,", "unknown key `nmae` in examples[0]; did you mean name?"),
        ("rc: 0, log", "rcc: 0, log", "unknown key `rcc`"),
        ("path: a.py", "pth: a.py", "unknown key `pth`"),
        ("{status: pass}", "{status: pass, findigns_total: 0}", "findigns_total"),
    ],
)
def test_an_example_that_does_not_hold_is_red(mine: Project, old: str, new: str, said: str) -> None:
    change(mine, old, new)
    done = mine.ckdn("spec", "test", "mylint")
    assert done.code == 1
    assert said in done.out.decode()


def test_a_spec_without_cases_is_red(mine: Project) -> None:
    change(mine, EXAMPLES, "")
    done = mine.ckdn("spec", "test", "mylint")
    assert (done.code, done.out) == (1, b"mylint: no example and no fixture\n")


def fixture(project: Project, name: str = "findings", log: str = "a.py:3: bad\n", rc: int = 1) -> Path:
    """A fixture of mylint, without its digest."""
    case = f"state: {name}\nrc: {rc}\norigin: written\nexpect: {{status: fail}}\n"
    project.write(f"fixtures/mylint/{name}/case.yaml", case)
    return project.write(f"fixtures/mylint/{name}/log.txt", log).parent


def test_a_fixture_needs_its_digest_and_update_writes_it(mine: Project) -> None:
    folder = fixture(mine)
    done = mine.ckdn("spec", "test", "mylint")
    assert done.code == 1
    assert "mylint/findings: no digest.json" in done.out.decode()
    done = mine.ckdn("spec", "test", "mylint", "--update")
    assert (done.code, done.err) == (0, "4 cases, 0 failed, 1 updated\n")
    digest = json.loads((folder / "digest.json").read_bytes())
    assert (digest["status"], digest["findings"][0]["id"]) == ("fail", "a.py:3")
    assert mine.ckdn("spec", "test", "mylint").code == 0
    assert mine.ckdn("spec", "test", "mylint", "--update").err == "4 cases, 0 failed\n"


def test_a_fixture_whose_digest_differs_is_red_with_what_differs(mine: Project) -> None:
    folder = fixture(mine)
    mine.ckdn("spec", "test", "mylint", "--update")
    digest = (folder / "digest.json").read_bytes()
    (folder / "log.txt").write_text("a.py:4: worse\n")
    done = mine.ckdn("spec", "test", "mylint")
    assert done.code == 1
    assert "mylint/findings: findings:" in done.out.decode()
    assert "bad" in done.out.decode()
    assert "worse" in done.out.decode()
    (folder / "log.txt").write_text("a.py:3: bad\n")
    (folder / "digest.json").write_bytes(digest.rstrip(b"\n") + b" \n")
    assert "differs in its bytes" in mine.ckdn("spec", "test", "mylint").out.decode()
    (folder / "digest.json").write_bytes(b"{")
    assert "is no JSON" in mine.ckdn("spec", "test", "mylint").out.decode()


def test_update_never_writes_what_misses_its_expectation(mine: Project) -> None:
    folder = fixture(mine, log="all fine\n", rc=0)
    done = mine.ckdn("spec", "test", "mylint", "--update")
    assert done.code == 1
    assert not (folder / "digest.json").exists()


def test_update_is_refused_under_ci(mine: Project) -> None:
    folder = fixture(mine)
    assert "under CI" in mine.refused("spec", "test", "mylint", "--update", env={"CI": "true"})[0]
    assert not (folder / "digest.json").exists()


def test_fixtures_elsewhere(mine: Project, tmp_path: Path) -> None:
    fixture(mine)
    (mine.path / "fixtures").rename(tmp_path / "kept")
    assert mine.ckdn("spec", "test", "mylint").err == "3 cases, 0 failed\n"
    done = mine.ckdn("spec", "test", "mylint", "--fixtures", str(tmp_path / "kept"))
    assert done.err == "4 cases, 1 failed\n"
    assert "no such folder" in mine.refused("spec", "test", "--fixtures", "nowhere")[0]


@pytest.mark.parametrize("broken", ["rc: x\n", "- a\n", "state: findings\n", "rc: 1\nrc: 2\n", "\tx"])
def test_a_case_file_that_is_wrong_is_red_and_stops_no_other(mine: Project, broken: str) -> None:
    fixture(mine)
    mine.write("fixtures/mylint/bad/case.yaml", broken)
    done = mine.ckdn("spec", "test", "mylint")
    assert done.code == 1, done
    assert "mylint/bad: " in done.out.decode()
    assert "mylint/findings: no digest.json" in done.out.decode()


def test_from_a_subfolder_the_projects_fixtures_are_found(mine: Project) -> None:
    (mine.path / ".git").mkdir()
    (mine.path / "sub").mkdir()
    fixture(mine)
    assert mine.ckdn("spec", "test", "mylint", cwd=mine.path / "sub").err == "4 cases, 1 failed\n"


def test_usage(mine: Project) -> None:
    assert len(mine.refused("spec")) == 1
    assert len(mine.refused("spec", "lst")) == 1
    assert mine.ckdn("spec", "--help").out.startswith(b"usage: ckdn spec")


def test_a_fifo_among_the_specs_does_not_block(mine: Project) -> None:
    os.mkfifo(mine.path / "parsers.d" / "pipe.yaml")
    done = mine.ckdn("spec", "list")
    assert done.code == 0
    assert "no regular file" in done.out.decode()
    assert mine.ckdn("spec", "lint", "pipe").code == 1
