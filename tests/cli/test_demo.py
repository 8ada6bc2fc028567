"""``ckdn demo``: a real red and a real green on a project that goes away again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.projects import Project, faults


def test_the_demo_is_red_then_green_and_leaves_nothing(project: Project, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = project.ckdn("demo", env={"TMPDIR": str(temporary)})
    assert (done.code, done.err) == (0, "")
    documents = [json.loads(line) for line in done.out.splitlines() if line.startswith(b"{")]
    assert [d["status"] for d in documents] == ["fail", "pass"]
    assert [faults(d) for d in documents] == [[], []]
    (finding,) = documents[0]["findings"]
    assert finding["id"] == "test_stats.MeanTest.test_none"
    assert finding["location"] == "stats.py:2"
    text = done.out.decode()
    assert "tests: fail, rc 1, 1 finding\n" in text
    assert "tests: pass\n" in text
    assert "[exit code 1]" in text
    assert "[exit code 0]" in text
    assert list(temporary.iterdir()) == []
    assert [p.name for p in project.path.iterdir()] == []


def test_the_demo_needs_no_other_tool_and_no_config(project: Project, tmp_path: Path) -> None:
    project.write("ckdn.toml", "broken = [\n")
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "python3").symlink_to(sys.executable)
    done = project.ckdn("demo", env={"PATH": str(bare), "CKDN_CONFIG": "none.toml", "CKDN_CWD": "nowhere"})
    assert done.code == 0, done


def test_the_demo_into_a_closed_pipe(project: Project) -> None:
    assert project.shell_ckdn("$CKDN demo >/dev/full").code == 0
