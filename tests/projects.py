"""Throw-away projects in which tests run real ckdn processes; the fixture ``project`` gives one."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 120
"""Only so that a hang fails instead of lasting for ever; nothing depends on how long a thing takes."""
NOTHING: Mapping[str, str | None] = {}
SCHEMAS = {
    schema["$id"]: jsonschema.Draft7Validator(schema)
    for schema in (json.loads(path.read_text("utf-8")) for path in (ROOT / "schemas").glob("*.schema.json"))
}
SPEC = """\
schema: ckdn.spec/1
name: {name}
title: {name}
category: linter
"""
LINTER = (
    SPEC
    + """\
findings:
  - kind: lint_violation
    lines: ['^(?P<path>[^:]+):(?P<line>\\d+): (?P<message>.+)$']
proof: [{{match: '^all fine$'}}]
exit_codes: {{clean: [0], findings: [1]}}
"""
)
"""A small spec that reads ``path:line: message`` and is green when the tool says ``all fine``; see :func:`linter`."""


def linter(name: str = "mylint", more: str = "") -> str:
    """The text of a small project spec."""
    return LINTER.format(name=name) + more


def faults(document: Mapping[str, Any]) -> list[str]:
    """What jsonschema says against a document of ours."""
    return [error.message for error in SCHEMAS[document["schema"]].iter_errors(document)]


class Done:
    """One finished ckdn process."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out
        self.err = err.decode()

    @property
    def digest(self) -> dict[str, Any]:
        """The document on stdout, which is exactly one line."""
        assert self.out.endswith(b"\n"), (self.code, self.out[:2000], self.err)
        assert self.out.count(b"\n") == 1, self.out[:2000]
        document: dict[str, Any] = json.loads(self.out)
        return document

    @property
    def status(self) -> str:
        return str(self.digest["status"])

    def __repr__(self) -> str:
        return f"<exit {self.code}; stdout {self.out[:2000]!r}; stderr {self.err!r}>"


class Project:
    """A folder with a ckdn.toml, and a home of its own for its user.

    The cache is shared by all projects of the session: then only the first one pays for the built-in specs.
    """

    def __init__(self, path: Path, home: Path, cache: Path) -> None:
        self.path = path
        self.home = home
        path.mkdir(parents=True, exist_ok=True)
        ours = ("CKDN", "XDG", "PYTHON", "CI", "LC_", "LANG")
        plain = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        self.env: dict[str, str] = {
            **plain,
            "HOME": str(home),
            "XDG_CACHE_HOME": str(cache),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{plain.get('PATH', '')}",
            "PYTHONPATH": str(ROOT),
            "LC_ALL": "C.UTF-8",
        }

    # --- what is in it

    def write(self, name: str, content: str | bytes) -> Path:
        """A file; its folder is made."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def config(self, text: str) -> None:
        """The whole ckdn.toml."""
        self.write("ckdn.toml", text)

    def check(self, name: str, *argv: str, parser: str = "generic", **keys: Any) -> None:
        """Append a check. JSON's texts, numbers, booleans and lists are TOML's too."""
        lines = [f"[check.{name}]", f"command = {json.dumps(list(argv))}", f"parser = {json.dumps(parser)}"]
        for key, value in keys.items():
            if isinstance(value, dict):
                inner = ", ".join(f"{k} = {json.dumps(v)}" for k, v in value.items())
                lines.append(f"{key} = {{ {inner} }}")
            else:
                lines.append(f"{key} = {json.dumps(value)}")
        with (self.path / "ckdn.toml").open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def shell(self, name: str, script: str, **keys: Any) -> None:
        """Append a check that is a shell script; ``$1`` is the run directory."""
        self.check(name, "sh", "-c", script, "sh", "{run_dir}", **keys)

    # --- running ckdn in it

    def command(self, *arguments: str | bytes) -> list[str | bytes]:
        return [sys.executable, "-m", "ckdn", *arguments]

    def environment(self, changes: Mapping[str, str | None]) -> dict[str, str]:
        """The process's environment; None takes a variable out."""
        merged: dict[str, str | None] = {**self.env, **changes}
        return {key: value for key, value in merged.items() if value is not None}

    def start(
        self, *arguments: str | bytes, env: Mapping[str, str | None] = NOTHING, **popen: Any
    ) -> subprocess.Popen[bytes]:
        """A ckdn process on its way."""
        popen = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "cwd": self.path,
            **popen,
        }
        return subprocess.Popen(self.command(*arguments), env=self.environment(env), **popen)

    def ckdn(
        self, *arguments: str | bytes, stdin: bytes | None = None, env: Mapping[str, str | None] = NOTHING, **popen: Any
    ) -> Done:
        """A ckdn process, to its end."""
        if stdin is not None:
            popen["stdin"] = subprocess.PIPE
        process = self.start(*arguments, env=env, **popen)
        return finished(process, stdin)

    def shell_ckdn(self, line: str, env: Mapping[str, str | None] = NOTHING, **popen: Any) -> Done:
        """A line of bash in which ``$CKDN`` is the command."""
        merged = self.environment({**env, "CKDN": shlex.join(map(str, self.command()))})
        process = subprocess.Popen(
            ["bash", "-c", line], cwd=self.path, env=merged, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen,
        )  # fmt: skip
        return finished(process)

    def run(self, name: str, *arguments: str | bytes, **how: Any) -> Done:
        """``ckdn run NAME …`` that gave a result; everything it left is valid and agrees with what it said."""
        done = self.ckdn("run", name, *arguments, **how)
        self.verify(done)
        return done

    def verify(self, done: Done) -> None:
        """What holds for every result: the digest is stored as printed, and every document follows its schema."""
        digest = done.digest
        assert faults(digest) == []
        folder = self.run_dir(digest)
        assert (folder / "digest.json").read_bytes() == done.out
        meta = self.meta(digest)
        assert faults(meta) == []
        assert (meta["check"], meta["rc"]) == (digest["check"], digest["rc"])
        assert meta["log_bytes"] == (folder / "full.log").stat().st_size
        records = self.records(digest)
        finding = SCHEMAS["ckdn.finding/1"]
        assert [error.message for record in records for error in finding.iter_errors(record)] == []
        assert sum(record["failing"] for record in records) == digest.get("findings_total", 0)
        rc = digest["rc"]
        expected = 0 if digest["status"] == "pass" else rc if 1 <= rc <= 255 else 1
        assert done.code == expected, done
        assert (digest["status"] == "pass") == ("status_reason" not in digest)

    def refused(self, *arguments: str | bytes, **how: Any) -> list[str]:
        """A command that is refused: exit 2, nothing on stdout, no run directory; the lines on stderr."""
        before = self.run_names()
        done = self.ckdn(*arguments, **how)
        assert (done.code, done.out) == (2, b""), done
        assert self.run_names() == before
        lines = done.err.splitlines()
        assert lines
        assert all(line.startswith("ckdn: ") for line in lines), done.err
        return lines

    # --- what is stored

    @property
    def runs_dir(self) -> Path:
        return self.path / ".agent-runs"

    def run_names(self) -> list[str]:
        """The run directories, oldest first within one second's precision."""
        if not self.runs_dir.is_dir():
            return []
        return sorted(p.name for p in self.runs_dir.iterdir() if p.name[0] != "." and not p.is_symlink())

    def run_dir(self, digest: Mapping[str, Any]) -> Path:
        return self.path / digest["run_dir"]

    def meta(self, digest: Mapping[str, Any]) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.run_dir(digest) / "meta.json").read_bytes())
        return document

    def log(self, digest: Mapping[str, Any], name: str = "full.log") -> bytes:
        return (self.run_dir(digest) / name).read_bytes()

    def records(self, digest: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The lines of findings.jsonl."""
        path = self.run_dir(digest) / "findings.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def finished(process: subprocess.Popen[bytes], stdin: bytes | None = None) -> Done:
    """Wait for a ckdn process; its whole session dies if it hangs."""
    try:
        out, err = process.communicate(stdin, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        raise
    return Done(process.returncode, out or b"", err or b"")
