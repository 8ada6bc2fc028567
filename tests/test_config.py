"""The configuration: which file holds, what it may say, and the words it is refused with."""

from __future__ import annotations

import json
import marshal
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckdn import config as module
from ckdn.config import (
    ALIAS_KEYS,
    ALLOWLIST_KEYS,
    CHECK_KEYS,
    RUN_KEYS,
    TOP_KEYS,
    Alias,
    Check,
    Config,
    ConfigFile,
    RunSettings,
    config_from_plain,
    find_config,
    load_config,
    substitute,
)
from ckdn.errors import CkdnError, ConfigError
from ckdn.spec.read import read_document

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE.parent / "schemas" / "ckdn.config.v1.schema.json").read_text("utf-8"))
BAD = sorted(path for path in (HERE / "bad_config").iterdir() if path.suffix != ".txt")
GOOD = sorted((HERE / "good_config").iterdir())


class Specs:
    """A small catalog. ``broken`` exists but does not load."""

    known: Mapping[str, Mapping[str, Mapping[str, Any]] | None] = {
        "generic": {},
        "ruff": {"report": {"type": "string"}, "format": {"type": "string", "enum": ["json", "text"]}},
        "sarif": {"fail_levels": {"type": "array", "items": {"type": "string", "enum": ["error", "warning", "note"]}}},
        "coverage": {
            "fail_under": {"type": "number", "minimum": 0, "maximum": 100},
            "allow_skipped": {"type": "array", "items": {"type": "string"}},
            "preview": {"type": "integer", "minimum": 0},
            "verbose": {"type": "boolean"},
        },
        "broken": None,
    }

    def names(self) -> Iterable[str]:
        return self.known

    def options(self, name: str) -> Mapping[str, Mapping[str, Any]] | None:
        return self.known.get(name)


def given_file(data: str | bytes, name: str = "ckdn.toml") -> ConfigFile:
    kind = "pyproject" if name == "pyproject.toml" else "yaml" if name.endswith(".yaml") else "toml"
    return ConfigFile(f"/p/{name}", kind, "/p", "/p", name, data if isinstance(data, bytes) else data.encode())


def load(data: str | bytes, name: str = "ckdn.toml") -> Config:
    return load_config(given_file(data, name), Specs())


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.name)
def test_bad_config_is_refused_in_these_words(path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(path.read_bytes(), path.name)
    # the words for a suffix have a file of their own where both formats have the defect
    own = path.with_name(path.name + ".txt")
    expected = (own if own.exists() else path.with_suffix(".txt")).read_text("utf-8").splitlines()
    assert [str(problem) for problem in caught.value.problems] == expected


def test_every_recorded_text_has_its_config() -> None:
    texts = {path.name.removesuffix(".txt") for path in (HERE / "bad_config").glob("*.txt")}
    assert all(any(text in (path.stem, path.name) for path in BAD) for text in texts)
    assert len(BAD) > 15


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 70_000) | st.sampled_from([0.5, -1.0, 1e300]) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def table_of(keys: Iterable[str], **likely: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({}, optional={key: likely.get(key, JSON) for key in keys})


WORDS = st.sampled_from(["a", "b", "c", "true", "'", "{files}", "x {files}", "generic", "ruff", "broken", "error", ""])
ENTRY = JSON | table_of(
    (*CHECK_KEYS, *ALIAS_KEYS, "report", "wrong"),
    command=WORDS | st.lists(WORDS, max_size=2),
    parser=WORDS,
    members=st.lists(WORDS, max_size=2),
    fail_on=st.lists(WORDS, max_size=2),
)


@given(
    JSON
    | st.fixed_dictionaries(
        {"check": JSON | st.dictionaries(st.sampled_from("abc"), ENTRY, max_size=3)},
        optional={"run": JSON | table_of(RUN_KEYS, default=st.lists(WORDS, max_size=2)), "schema": JSON},
    )
)
def test_any_value_loads_or_is_refused_with_a_place_and_the_schema_agrees_with_what_loads(value: object) -> None:
    text = json.dumps(value)
    try:
        config = load(text, "f.yaml")
    except CkdnError as error:
        assert all(str(problem).startswith("f.yaml") for problem in error.problems)  # noqa: PT017 - either way is right
        return
    jsonschema.validate({} if value is None else value, SCHEMA)
    assert set(config.checks) | set(config.aliases) == set((value or {}).get("check") or {})  # type: ignore[attr-defined]


# ---------------------------------------------------------------- what is accepted


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name)
def test_good_config_loads_is_valid_under_the_schema_and_survives_marshal(path: Path) -> None:
    config = load(path.read_bytes(), path.name)
    value = read_document(path.read_bytes(), path.name).value
    jsonschema.validate(value, SCHEMA)
    assert config_from_plain(marshal.loads(marshal.dumps(config.to_plain()))) == config


def test_every_key_of_a_config_arrives() -> None:
    config = load((HERE / "good_config" / "everything.toml").read_bytes())
    assert config.run == RunSettings(
        runs_dir=".runs",
        keep=5,
        top=7,
        max_snippet_lines=0,
        log_tail_lines=0,
        max_digest_bytes=1024,
        max_log_bytes=1_000_000,
        jobs=2,
        timeout=600,
        grace=0.5,
        baseline="accepted.json",
        default=("all", "lint"),
        specs=("tools/specs",),
        override=("ruff",),
        command_policy="allowlist",
        command_prefixes=("ruff ", "{python} -m pytest"),
    )
    assert config.checks["lint"] == Check(
        name="lint",
        argv=("ruff", "check", "--output-file", "{run_dir}/ruff.json", "{files}"),
        parser="ruff",
        env={"RUFF_CACHE_DIR": "/tmp/cache", "EMPTY": ""},
        options={"report": "ruff.json", "format": "json"},
        timeout=30,
        cwd="src",
        top=3,
        reports=("out/*.json",),
        allow_empty=True,
        allow_stale=True,
        findings_on_zero="expected",
        fail_on=("error", "warning"),
    )
    assert config.checks["unit.1"].argv == ("{python}", "-m", "pytest", "", "a b", "{print}")
    assert config.checks["cov"].argv == ("sh", "-c", "echo $0", "{run_dir}")
    assert config.checks["cov"].options == {"fail_under": 96.5, "allow_skipped": ["a", "b"], "verbose": False}
    assert list(config.checks) == ["lint", "unit.1", "cov"]
    assert config.aliases == {"all": Alias("all", ("unit.1", "lint"), fail_fast=False, jobs=2)}
    assert (config.path, config.root, config.cwd, config.notes) == ("/p/ckdn.toml", "/p", "/p", ())


def test_what_is_not_said_has_the_defaults_of_the_contract() -> None:
    config = load("[check.a]\ncommand = 'true'\nparser = 'generic'\n[check.b]\nmembers = ['a']\n")
    assert config.run == RunSettings(
        ".agent-runs", 20, 20, 12, 40, 16384, 1024**3, 1, None, 2, "ckdn.baseline.json", (), (), (), "off", ()
    )
    assert config.checks["a"] == Check("a", ("true",), "generic", {}, {}, None, "", None, (), False, False, "", None)
    assert config.aliases["b"] == Alias("b", ("a",), True, None)


def test_the_hash_is_of_the_file() -> None:
    assert load(b"").sha256 == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_workspace_policy_is_accepted_with_a_note() -> None:
    config = load((HERE / "good_config" / "workspace.toml").read_bytes())
    assert config.run.command_policy == "off"
    assert config.notes == ('run.command_policy "workspace" means "off": it confined nothing',)


def test_options_of_a_spec_that_does_not_load_are_not_judged() -> None:
    config = load((HERE / "good_config" / "plain.yaml").read_bytes(), "plain.yaml")
    assert config.checks["b"].options == {"anything": {"goes": [1]}}
    assert config.checks["b"].argv == ("echo", "08")


def test_specs_may_depend_on_the_run_settings() -> None:
    seen: list[tuple[str, ...]] = []

    def specs(run: RunSettings) -> Specs:
        seen.append((*run.specs, *run.override))
        return Specs()

    load_config(given_file("run.specs = ['s']\nrun.override = ['ruff']\n"), specs)
    assert seen == [("s", "ruff")]


def test_problems_of_the_specs_come_with_those_of_the_run_settings() -> None:
    def specs(run: RunSettings) -> Specs:
        raise ConfigError("no folder s")

    with pytest.raises(ConfigError) as caught:
        load_config(given_file("run.specs = ['s']\nrun.top = 0\n"), specs)
    assert [str(p) for p in caught.value.problems] == [
        "ckdn.toml:2:5: run.top is 0; it must be at least 1",
        "no folder s",
    ]


def test_the_schema_and_the_loader_know_the_same_keys() -> None:
    top = SCHEMA["properties"]
    entry = top["check"]["additionalProperties"]
    assert set(top) == set(TOP_KEYS)
    assert set(top["run"]["properties"]) == set(RUN_KEYS)
    assert set(top["run"]["properties"]["command_allowlist"]["properties"]) == set(ALLOWLIST_KEYS)
    assert set(entry["else"]["properties"]) == set(CHECK_KEYS)
    assert set(entry["then"]["properties"]) == set(ALIAS_KEYS)


def test_the_schema_describes_every_key_with_a_valid_example() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == module.SCHEMA
    entry = SCHEMA["properties"]["check"]["additionalProperties"]
    tables = [SCHEMA, SCHEMA["properties"]["run"], entry["then"], entry["else"]]
    for schema in [*tables, *(part for table in tables for part in table["properties"].values())]:
        assert schema["description"].endswith(".")
        for example in schema["examples"]:
            jsonschema.validate(example, schema)


def test_the_schema_states_the_defaults_of_the_loader() -> None:
    stated = {k: v["default"] for k, v in SCHEMA["properties"]["run"]["properties"].items() if "default" in v}
    assert stated == {key: getattr(RunSettings(), key) for key in stated}
    assert len(stated) > 9


# ---------------------------------------------------------------- substitution


def test_placeholders_are_filled_in_argument_by_argument() -> None:
    argv = ("{python}", "-o", "{run_dir}/x {cwd}", "{print}", "{}", "{{cwd}}", "{files}", "{", "{cwd")
    filled = substitute(argv, run_dir="r {cwd}", cwd="/c d", python="py", files=["a b", "{run_dir}"])
    assert filled == ("py", "-o", "r {cwd}/x /c d", "{print}", "{}", "{/c d}", "a b", "{run_dir}", "{", "{cwd")


@pytest.mark.parametrize("files", [None, ()])
def test_no_files_are_no_argument(files: tuple[str, ...] | None) -> None:
    assert substitute(("a", "{files}"), run_dir="r", cwd="c", python="p", files=files) == ("a",)


@given(st.lists(st.text("{}abcd_nru", max_size=12)), st.text("{}cwd", max_size=6))
def test_substitution_never_changes_the_number_of_arguments_without_files(argv: list[str], value: str) -> None:
    filled = substitute(argv, run_dir=value, cwd=value, python=value, files=["x"])
    assert len(filled) == len(argv)
    for before, after in zip(argv, filled, strict=True):
        if not any(f"{{{name}}}" in before for name in module.PLACEHOLDERS):
            assert before == after


# ---------------------------------------------------------------- search

MINIMAL = "[check.a]\ncommand = 'true'\nparser = 'generic'\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a folder ``a/b``; the process stands outside."""
    root = tmp_path.resolve() / "project"
    (root / ".git").mkdir(parents=True)
    (root / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir("/")
    return root


def not_found(cwd: Path, explicit: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        find_config(str(cwd), explicit)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("ckdn.toml", "toml"), ("ckdn.yaml", "yaml"), ("ckdn.yml", "yaml"), ("pyproject.toml", "pyproject")],
)
def test_a_config_is_found_above_and_its_folder_is_root_and_cwd(project: Path, name: str, kind: str) -> None:
    text = (
        "run: {top: 3}\n"
        if kind == "yaml"
        else "[tool.ckdn.run]\ntop = 3\n"
        if kind == "pyproject"
        else "[run]\ntop = 3\n"
    )
    (project / name).write_text(text)
    file = find_config(str(project / "a" / "b"))
    assert (file.path, file.kind, file.root, file.cwd) == (str(project / name), kind, str(project), str(project))
    assert load_config(file, Specs()).run.top == 3


def test_the_nearest_config_wins(project: Path) -> None:
    (project / "ckdn.toml").write_text(MINIMAL)
    (project / "a" / "pyproject.toml").write_text(MINIMAL.replace("check", "tool.ckdn.check"))
    assert find_config(str(project / "a" / "b")).path == str(project / "a" / "pyproject.toml")


@pytest.mark.parametrize("marker", [".hg", ".jj", ".git"])
def test_the_search_ends_at_the_repository(project: Path, marker: str) -> None:
    (project / "ckdn.toml").write_text(MINIMAL)
    (project / "a" / marker).write_text("gitdir: elsewhere\n")  # a worktree's .git is a file
    assert not_found(project / "a" / "b") == (
        f"no ckdn.toml, ckdn.yaml or [tool.ckdn] in pyproject.toml in {project}/a/b and above it up to {project}/a; "
        "write one: `ckdn demo` shows how"
    )
    assert find_config(str(project)).root == str(project)


def test_outside_a_repository_only_the_folder_itself_counts(project: Path) -> None:
    (project / ".git").rmdir()
    (project / "ckdn.toml").write_text(MINIMAL)
    assert find_config(str(project)).root == str(project)
    assert f"in {project}/a (which is in no repository); write one: `ckdn demo`" in not_found(project / "a")


def test_messages_show_the_path_from_where_the_process_stands(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "ckdn.toml").write_text("top = 3\n")
    monkeypatch.chdir(project / "a")
    with pytest.raises(ConfigError, match=r"^\.\./ckdn\.toml:1:1: unknown key `top`"):
        load_config(find_config("."), Specs())


def test_two_configs_in_one_folder_are_refused(project: Path) -> None:
    (project / "ckdn.toml").write_text(MINIMAL)
    (project / "ckdn.yml").write_text("")
    assert "two configs in one folder: ckdn.toml and ckdn.yml; keep one of them" in not_found(project)
    (project / "ckdn.yml").unlink()
    (project / "pyproject.toml").write_text("[tool.ckdn]\n")
    assert "ckdn.toml and pyproject.toml has [tool.ckdn]; keep one" in not_found(project)


@pytest.mark.parametrize(
    "text",
    [
        "[project]\nname = 'ckdn'\ndependencies = ['ckdn>=2']\n[tool.other]\nx = 'tool.ckdn'\n",
        "[tool.ckdnx]\n",
        "[other.ckdn]\n",
        "[tool]\nckdn-other = 1\n",
        "broken = = 'ckdn'\n",
        "tool = 3 # ckdn\n",
    ],
)
def test_a_pyproject_without_our_table_is_no_config(project: Path, text: str) -> None:
    (project / "a" / "pyproject.toml").write_text(text)
    (project / "ckdn.toml").write_text(MINIMAL)
    assert find_config(str(project / "a")).path == str(project / "ckdn.toml")


@pytest.mark.parametrize(
    "text",
    ["[tool.ckdn]\n", "[ tool . 'ckdn' ]\n", "[tool]\nckdn.run.top = 3\n", "tool.ckdn = {}\n", "tool = {ckdn = {}}\n"],
)
def test_every_way_to_write_our_table_counts(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(text)
    assert find_config(str(project)).kind == "pyproject"


def test_a_broken_pyproject_that_may_be_the_config_is_refused_unless_another_is_there(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.ckdn]\ntop = = 3\n")
    assert "pyproject.toml:2:7: this is no TOML value" in not_found(project)
    (project / "ckdn.toml").write_text(MINIMAL)
    assert find_config(str(project)).kind == "toml"


def test_a_config_named_explicitly_runs_in_cwd(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "ckdn.toml").write_text("not read")
    (project / "a" / "other.YAML").write_text("run: {top: 4}\n")
    monkeypatch.chdir(project / "a")
    file = find_config(str(project / "a" / "b"), "other.YAML")
    assert (file.path, file.shown) == (str(project / "a" / "other.YAML"), "other.YAML")
    assert (file.root, file.cwd) == (str(project / "a" / "b"), str(project / "a" / "b"))
    assert load_config(file, Specs()).run.top == 4


def test_an_explicit_config_that_cannot_be_one_is_refused(project: Path) -> None:
    path = project / "conf.ini"
    path.write_text("")
    assert not_found(project, str(path)) == f"{path}: neither TOML nor YAML by its name; name it .toml or .yaml"
    assert not_found(project, "nowhere.toml") == "nowhere.toml: no such file; name an existing file"
    pyproject = project / "pyproject.toml"
    pyproject.write_text("[tool.other]\n")
    with pytest.raises(ConfigError, match=r"no \[tool.ckdn\] in it; write one"):
        load_config(find_config(str(project), str(pyproject)), Specs())


def test_a_working_directory_that_is_not_there_is_refused(project: Path) -> None:
    assert not_found(project / "nowhere") == f"{project}/nowhere: no such directory"
    assert not (project / "nowhere").exists()


def test_only_regular_files_are_read(project: Path) -> None:
    config = project / "ckdn.toml"
    config.mkdir()
    assert not_found(project).endswith("ckdn.toml: not a regular file")
    config.rmdir()
    config.symlink_to("nowhere")
    assert not_found(project).endswith("ckdn.toml: a link to nothing; mend the link or remove it")
    config.unlink()
    if hasattr(os, "mkfifo"):
        os.mkfifo(config)
        assert not_found(project).endswith("ckdn.toml: not a regular file")
        config.unlink()
    (project / "a" / "real.toml").write_text(MINIMAL)
    config.symlink_to("a/real.toml")
    assert find_config(str(project)).data.decode() == MINIMAL


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="giving a file away needs root")
@pytest.mark.parametrize("name", ["ckdn.toml", "pyproject.toml"])
def test_a_config_of_another_user_is_refused_unless_named(project: Path, name: str) -> None:
    path = project / name
    path.write_text("[tool.ckdn]\n")
    os.chown(path, 12345, -1)
    shown = os.path.relpath(path)
    assert not_found(project) == f"{shown}: the file belongs to another user; own it, or trust it with --config {shown}"
    assert find_config(str(project), str(path)).path == str(path)


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() == 0, reason="root may read everything")
def test_an_unreadable_config_is_refused(project: Path) -> None:
    (project / "ckdn.toml").write_text(MINIMAL)
    (project / "ckdn.toml").chmod(0)
    assert "cannot be read: Permission denied" in not_found(project)
