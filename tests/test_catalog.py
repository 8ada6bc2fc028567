"""Which spec a name means: the project's, the built-in one, the user's, an installed package's; and who is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ckdn.catalog import Catalog
from ckdn.errors import SpecError
from tests.projects import ROOT, Project, linter

RUFF = (ROOT / "parsers.d" / "ruff.yaml").read_text("utf-8")


def catalog(project: Project, *folders: str, override: tuple[str, ...] = (), **environ: str) -> Catalog:
    """The catalog of a project, without a cache."""
    paths = [str(project.path / folder) for folder in folders or ("parsers.d",)]
    environ = {"HOME": str(project.home), "CKDN_CACHE": "off", **environ}
    return Catalog(paths, override, environ, str(project.path))


def user_spec(project: Project, name: str, text: str) -> Path:
    """A spec in the user's own folder."""
    path = project.home / ".config" / "ckdn" / "parsers.d" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def refused(catalog: Catalog, name: str) -> str:
    with pytest.raises(SpecError) as caught:
        catalog.load(name)
    return str(caught.value)


# --- where specs come from


def test_project_built_in_and_user(project: Project) -> None:
    project.write("parsers.d/mylint.yaml", linter())
    own = user_spec(project, "hers.yaml", linter("hers"))
    known = catalog(project)
    assert {"mylint", "hers", "ruff", "generic"} <= set(known.names())
    origins = {name: known.load(name).origin for name in ("mylint", "hers", "ruff")}
    assert origins == {"mylint": "parsers.d/mylint.yaml", "hers": str(own), "ruff": "built-in"}


@pytest.mark.parametrize("suffix", ["yaml", "yml", "toml"])
def test_suffixes(project: Project, suffix: str) -> None:
    toml = 'schema = "ckdn.spec/1"\nname = "mylint"\ntitle = "m"\ncategory = "other"\nfindings = []\n'
    toml += 'proof = ["exit_code"]\n'
    project.write(f"parsers.d/mylint.{suffix}", toml if suffix == "toml" else linter())
    assert catalog(project).load("mylint").origin == f"parsers.d/mylint.{suffix}"


def test_underscored_and_other_files_are_no_specs(project: Project) -> None:
    project.write("parsers.d/_common.yaml", "x")
    project.write("parsers.d/README.md", "x")
    project.write("parsers.d/sub/deep.yaml", linter("deep"))
    names = catalog(project).names()
    assert not {"_common", "README", "deep", "_launchers"} & set(names)
    assert "unknown spec" in refused(catalog(project), "_launchers")


def test_the_users_folder_is_not_read_under_ci_and_follows_xdg(project: Project, tmp_path: Path) -> None:
    user_spec(project, "hers.yaml", linter("hers"))
    assert "hers" not in catalog(project, CI="true").names()
    assert "unknown spec 'hers'" in refused(catalog(project, CI="1"), "hers")
    assert "hers" not in catalog(project, XDG_CONFIG_HOME=str(tmp_path)).names()
    assert "hers" in catalog(project, XDG_CONFIG_HOME=str(project.home / ".config")).names()
    assert "hers" not in catalog(project, XDG_CONFIG_HOME="relative").names()


def test_more_folders_of_the_config(project: Project) -> None:
    project.config('[run]\nspecs = ["tools/specs"]\n')
    project.write("tools/specs/mylint.yaml", linter())
    project.shell("a", "echo all fine", parser="mylint")
    done = project.run("a")
    assert done.status == "pass"
    assert project.meta(done.digest)["spec"]["origin"] == "tools/specs/mylint.yaml"


def test_near_names(project: Project) -> None:
    project.write("parsers.d/house_style.yaml", linter("house_style"))
    assert refused(catalog(project), "house_stile") == "unknown spec 'house_stile'; did you mean house_style?"


# --- two of one name


def test_equal_content_in_two_places_is_one_spec(project: Project) -> None:
    project.write("parsers.d/ruff.yaml", RUFF)
    user_spec(project, "ruff.yaml", RUFF)
    known = catalog(project)
    loaded = known.load("ruff")
    assert loaded.origin == "parsers.d/ruff.yaml"
    assert known.overridden("ruff", loaded) == ""


def test_a_project_spec_that_shadows_a_built_in_is_refused(project: Project) -> None:
    project.write("parsers.d/ruff.yaml", RUFF + "\n")
    message = refused(catalog(project), "ruff")
    assert message == (
        "parsers.d/ruff.yaml: the spec `ruff` exists twice: parsers.d/ruff.yaml and built-in; "
        'rename one, or say override = ["ruff"] in [run] to use parsers.d/ruff.yaml'
    )


def test_a_user_spec_shadows_nobody(project: Project) -> None:
    own = user_spec(project, "ruff.yaml", RUFF + "\n")
    assert refused(catalog(project), "ruff").startswith(f"{own}: the spec `ruff` exists twice: built-in and {own}")
    known = catalog(project, override=("ruff",))
    assert known.load("ruff").origin == "built-in"
    assert f"built-in and {own}" in known.overridden("ruff", known.load("ruff"))
    assert catalog(project, CI="true").load("ruff").origin == "built-in"


def test_override_takes_the_projects_and_says_so(project: Project) -> None:
    project.write("parsers.d/ruff.yaml", RUFF + "\n")
    project.config('[run]\noverride = ["ruff"]\n')
    project.shell("a", "echo '[]' > $1/ruff.json", parser="ruff")
    project.shell("b", "true")
    for _ in range(2):  # the second one has its config and spec from the cache
        done = project.run("a")
        assert done.status == "pass"
        assert done.digest["notes"] == [
            "the spec `ruff` exists twice: parsers.d/ruff.yaml and built-in; the first is used, by override"
        ]
        assert project.meta(done.digest)["spec"]["origin"] == "parsers.d/ruff.yaml"
        assert "notes" not in project.run("b").digest


def test_override_without_a_second_spec_says_nothing(project: Project) -> None:
    project.config('[run]\noverride = ["ruff"]\n')
    project.shell("a", "echo '[]' > $1/ruff.json", parser="ruff")
    assert "notes" not in project.run("a").digest


def test_override_of_a_variant_is_said_where_it_is_chosen(project: Project) -> None:
    text = (ROOT / "parsers.d" / "mypy_text.yaml").read_text("utf-8")
    project.write("parsers.d/mypy_text.yaml", text + "\n")
    project.config('[run]\noverride = ["mypy_text"]\n')
    project.shell("a", "echo 'Success: no issues found in 2 source files'", parser="mypy")
    assert "mypy_text" in project.run("a").digest["notes"][0]
    project.config("")
    project.shell("a", "echo 'Success: no issues found in 2 source files'", parser="mypy")
    assert "exists twice" in project.refused("run", "a")[0]


def test_two_of_the_project_are_never_chosen_between(project: Project) -> None:
    project.write("parsers.d/mylint.yaml", linter())
    project.write("more/mylint.yaml", linter(more="\n"))
    known = catalog(project, "parsers.d", "more", override=("mylint",))
    assert refused(known, "mylint").endswith("keep one of them")
    project.write("more/mylint.yaml", linter())
    assert catalog(project, "parsers.d", "more").load("mylint").origin == "parsers.d/mylint.yaml"
    project.write("parsers.d/mylint.toml", "")
    assert "exists twice" in refused(catalog(project), "mylint")


# --- specs that are broken


def test_a_broken_spec_breaks_no_check_that_does_not_use_it(project: Project) -> None:
    project.write("parsers.d/mylint.yaml", linter().replace("proof", "prof"))
    project.write("parsers.d/torn.yaml", "schema: [")
    project.write("parsers.d/binary.yaml", b"\xff\xfe\x00\x01")
    project.shell("good", "true")
    project.shell("bad", "touch touched", parser="mylint")
    for _ in range(2):
        assert project.run("good").status == "pass"
        lines = project.refused("run", "bad")
        assert lines
        assert all(line.startswith("ckdn: parsers.d/mylint.yaml:") for line in lines)
    assert not (project.path / "touched").exists()


@pytest.mark.parametrize("kind", ["folder", "fifo", "link to nothing", "too large", "unreadable text"])
def test_what_is_no_spec_file_is_refused_where_it_is_used(project: Project, kind: str) -> None:
    path = project.write("parsers.d/mylint.yaml", "x")
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "link to nothing":
        path.symlink_to("nothing")
    elif kind == "too large":
        path.write_bytes(b"#" * (1 << 21))
    else:
        path.write_bytes(b"schema: \x00")
    project.shell("good", "true")
    assert project.run("good").status == "pass"
    assert project.ckdn("parse", "mylint", "-", stdin=b"").code == 2


def test_specs_that_need_each_other_are_refused(project: Project) -> None:
    head = "schema: ckdn.spec/1\ntitle: x\ncategory: linter\n"
    project.write("parsers.d/a.yaml", head + "name: a\nextends: b\n")
    project.write("parsers.d/b.yaml", head + "name: b\nextends: a\n")
    project.write("parsers.d/c.yaml", head + "name: c\nextends: c\n")
    for name in ("a", "b", "c"):
        assert refused(catalog(project), name)


def test_a_project_spec_that_extends_a_built_in(project: Project) -> None:
    project.write("parsers.d/mine.yaml", "schema: ckdn.spec/1\nname: mine\ntitle: m\ncategory: linter\nextends: ruff\n")
    project.shell("a", "echo '[]' > $1/ruff.json", parser="mine")
    assert project.run("a").status == "pass"


# --- installed packages


def installed(folder: Path, module: str, spec: str, code: str = "raise SystemExit('this must not run')\n") -> None:
    """A distribution with one entry point and one spec, as an installer leaves it."""
    package = folder / module.replace(".", "/")
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(code)
    (package / f"{spec}.yaml").write_text(linter(spec))
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ckdn.specs]\n{module} = {module}\n")


def test_specs_of_installed_packages_are_found_without_running_their_code(project: Project, tmp_path: Path) -> None:
    installed(tmp_path / "site", "acme_specs", "acme")
    env = {"PYTHONPATH": f"{ROOT}:{tmp_path / 'site'}"}
    project.shell("a", "echo all fine", parser="acme")
    project.shell("b", "echo all fine", parser="acmee")
    assert "did you mean acme?" in project.refused("run", "a", env=env)[0]
    project.config("")
    project.shell("a", "echo all fine", parser="acme")
    for _ in range(2):
        done = project.run("a", env=env)
        assert done.status == "pass"
        assert project.meta(done.digest)["spec"]["origin"].endswith("acme_specs/acme.yaml")
    assert "acme" in project.ckdn("spec", "list", env=env).out.decode()
    assert "unknown spec" in project.refused("run", "a")[0]


def test_a_package_that_is_broken_hides_no_other(project: Project, tmp_path: Path) -> None:
    installed(tmp_path / "site", "acme_specs", "acme")
    info = tmp_path / "site" / "bad-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ckdn.specs]\ngone = no_such_module\ndeep = no_such.deep.module\n")
    env = {"PYTHONPATH": f"{ROOT}:{tmp_path / 'site'}"}
    assert project.ckdn("parse", "acme", "-", stdin=b"", env=env).code == 0
    assert "unknown spec" in project.refused("parse", "no_such", "-", env=env)[0]


# --- google-re2 is missing


@pytest.fixture
def without_re2(project: Project, tmp_path: Path) -> Project:
    """A project whose Python has no re2 (there is no wheel for musl)."""
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "re2.py").write_text("raise ModuleNotFoundError(\"No module named 're2'\", name='re2')\n")
    project.env["PYTHONPATH"] = f"{tmp_path / 'shadow'}:{ROOT}"
    project.env["XDG_CACHE_HOME"] = str(tmp_path / "xdg")
    return project


def test_without_re2_only_specs_with_regexes_are_refused(without_re2: Project) -> None:
    without_re2.shell("plain", "exit 3")
    without_re2.shell("text", "touch touched", parser="mypy")
    assert without_re2.run("plain").code == 3
    for arguments in (["run", "text"], ["parse", "mypy", "-"]):
        lines = without_re2.refused(*arguments)
        wanted = "the spec `mypy_text` has regular expressions, and google-re2 is not installed; install"
        assert any(wanted in line for line in lines)
        assert all("google-re2 is not installed" in line for line in lines)
    assert not (without_re2.path / "touched").exists()


def test_without_re2_a_spec_that_was_loaded_before_is_refused_too(without_re2: Project) -> None:
    """From the cache (or compiled into a wheel) it needs no re2 to be loaded, but does to read anything."""
    without_re2.shell("text", "touch touched", parser="mypy_text")
    path = without_re2.env["PYTHONPATH"]
    without_re2.env["PYTHONPATH"] = str(ROOT)
    without_re2.run("text")
    (without_re2.path / "touched").unlink()
    without_re2.env["PYTHONPATH"] = path
    assert "google-re2 is not installed" in without_re2.refused("run", "text")[0]
    assert not (without_re2.path / "touched").exists()
