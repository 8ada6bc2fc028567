"""README and docs say what is true: every command in them runs, and every output shown is what it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\S*)([^\n]*)\n(.*?)^```$", re.M | re.S)
STAMP = re.compile(r"\d{8}T\d{6}Z(-[a-z]+)(-\d+)?")


def blocks(document: Path) -> list[tuple[str, str, str]]:
    """The fenced blocks of a document: (language, the rest of the info string, content)."""
    return [(m[1], m[2].strip(), m[3]) for m in FENCE.finditer(document.read_text("utf-8"))]


def steps(console: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown."""
    found: list[tuple[str, str]] = []
    for line in console.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        else:
            command, shown = found[-1]
            found[-1] = (command, shown + line)
    return found


def neutral(text: str) -> str:
    """Output without what differs from run to run: the stamp of a run directory."""
    return STAMP.sub(r"STAMP\1", text)


def same(shown: str, got: str) -> bool:
    """Whether output is what the document shows; a line ``…`` stands for any lines."""
    parts = [re.escape(part) for part in re.split(r"^…\n", neutral(shown), flags=re.M)]
    return re.fullmatch("(?:.*\n)*".join(parts), neutral(got)) is not None


def with_consoles() -> list[Path]:
    return [d for d in DOCUMENTS if any(language == "console" for language, _, _ in blocks(d))]


@pytest.mark.parametrize("document", with_consoles(), ids=lambda d: str(d.relative_to(ROOT)))
def test_commands_print_what_is_shown(document: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CKDN", "XDG"))}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    env["HOME"] = str(tmp_path)
    for language, info, content in blocks(document):
        if file := re.search(r"file=(\S+)", info):
            path = project / file[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            before = path.read_text("utf-8") + "\n" if "append" in info else ""
            path.write_text(before + content, "utf-8")
        elif language == "console":
            for command, shown in steps(content):
                ran = subprocess.run(
                    ["bash", "-c", command], cwd=project, env=env, capture_output=True, text=True, check=False
                )
                assert same(shown, ran.stdout + ran.stderr), f"$ {command}\n{ran.stdout}{ran.stderr}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    text = FENCE.sub("", document.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (document.parent / target).exists(), target
    assert "TODO:" not in text


@pytest.mark.full
def test_the_install_lines_of_the_readme(tmp_path: Path) -> None:
    """What a stranger types, in a fresh clone with a fresh venv: the demo is red, then green; then the suite passes."""
    clone = tmp_path / "a clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    install, develop = [content.strip() for language, _, content in blocks(ROOT / "README.md") if language == "sh"]
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    demo = subprocess.run(["bash", "-ec", install], cwd=clone, env=env, capture_output=True, text=True, check=True)
    assert "tests: fail" in demo.stdout
    assert "tests: pass" in demo.stdout
    suite = develop.replace("-m pytest", "-m pytest -q tests/test_layers.py tests/test_verdict.py")
    subprocess.run(["bash", "-ec", suite], cwd=clone, env=env, check=True, capture_output=True)
