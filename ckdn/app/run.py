"""Running one check: lock, directory, process, facts, verdict, digest; everything stored before it is told."""

from __future__ import annotations

import os
import sys
import time

from ckdn import __version__, config, digest, rundir, runner, validators
from ckdn.app import inputs as binding
from ckdn.app.watch import Cut, Watch
from ckdn.catalog import require_re2
from ckdn.engine.interpret import Settings, interpret
from ckdn.errors import ConfigError, ExitCode, Problem
from ckdn.hashing import small_sha256
from ckdn.masking import mask
from ckdn.model import PASS, Ending, Facts, Struct
from ckdn.verdict import decide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ckdn.app.project import Project
    from ckdn.catalog import Loaded
    from ckdn.config import Check
    from ckdn.hashing import Hash
    from ckdn.model import Verdict
    from ckdn.runner import Interrupts, Outcome

COPY_BYTES = 1 << 20
HASH_SMALL_BYTES = 1 << 18
"""A report up to this size is hashed by the interpreter's own sha256; OpenSSL's is 5 times faster and 2 ms to load."""
TRACEBACK = "traceback.txt"
PARSE_SECONDS = 30.0
"""How long the reading of the output may take at least; what is left of the timeout, when that is more."""


class RunResult(Struct):
    """One finished run."""

    document: dict[str, Any]
    """The digest, as stored."""
    data: bytes
    """The same, serialised: one line."""
    exit_code: int
    run_id: str


def run_check(
    project: Project,
    name: str,
    *,
    extra: Sequence[str] = (),
    timeout: float | None = None,
    environ: Mapping[str, str],
    stop: Interrupts | None = None,
) -> RunResult:
    """Run a check and store the evidence.

    ``timeout`` (seconds) is used instead of the check's and the config's. Raises :class:`ConfigError` or
    :class:`SpecError` before anything is written when the check cannot run at all.
    """
    check = project.check(name)
    loaded = project.catalog.resolve(check.parser, check.options)
    preload(project, loaded)
    with rundir.lock(project.runs_dir, name), rundir.create(project.runs_dir, name) as run_dir:
        return Run(project, check, loaded, run_dir, tuple(extra), environ).result(timeout, stop)


def preload(project: Project, loaded: Loaded) -> None:
    """Load what the spec needs: what cannot be loaded is refused before the command runs."""
    require_re2(loaded.spec)
    for include in loaded.spec.includes:
        require_re2(project.catalog.load(include.spec).spec)


class Run:
    """One run of one check, from its directory on."""

    def __init__(
        self,
        project: Project,
        check: Check,
        loaded: Loaded,
        run_dir: rundir.RunDir,
        extra: tuple[str, ...],
        environ: Mapping[str, str],
    ) -> None:
        self.project = project
        self.settings = project.config.run
        self.check = check
        self.loaded = loaded
        self.run_dir = run_dir
        self.extra = extra
        self.environ = environ
        self.options = filled(loaded, check)
        self.notes: list[str] = []
        self.partial = self.why_partial()
        self.cwd = os.path.join(project.config.cwd, check.cwd) if check.cwd else project.config.cwd
        self.argv = self.command_line()
        self.reports: list[str] = []

    def why_partial(self) -> str:
        """Why this run does not speak for the whole check; empty when it does."""
        if self.extra:
            return "extra arguments: " + " ".join(shown(self.extra))
        for variable in self.loaded.spec.env_narrows:
            if self.check.env.get(variable, self.environ.get(variable)):
                return f"{variable} is set"
        return ""

    def command_line(self) -> tuple[str, ...]:
        """The command with its placeholders filled and the extra arguments after it."""
        filled_argv = config.substitute(
            self.check.argv, run_dir=self.run_dir.path, cwd=self.cwd, python=sys.executable, files=()
        )
        return (*filled_argv, *self.extra)

    def result(self, timeout: float | None, stop: Interrupts | None) -> RunResult:
        """Run, read, decide, store."""
        limit = timeout or self.check.timeout or self.settings.timeout
        outcome = self.execute(limit, stop)
        ending = outcome.ending
        facts, cut = self.facts(ending, max(PARSE_SECONDS, (limit or 0) - outcome.duration_s))
        if stop is not None and stop.signum and not ending.interrupted:
            reason = f"interrupted by {runner.signal_name(stop.signum)} while the output was read"
            ending = Ending(128 + stop.signum, reason, interrupted=True)
        elif cut and not ending.failure:
            ending = Ending(ending.rc, f"{cut}; set a longer timeout, or make the output smaller")
        verdict = decide(ending, facts)
        document = self.document(outcome, ending, facts, verdict)
        return self.store(document, outcome, ending, facts)

    def execute(self, limit: float | None, stop: Interrupts | None) -> Outcome:
        """The command itself; a command that policy refuses is never started."""
        refusal = self.refused_by_policy()
        if refusal:
            open(os.path.join(self.run_dir.path, "full.log"), "wb").close()
            started = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".000Z"
            empty = small_sha256().hexdigest()
            return runner.Outcome(Ending(ExitCode.NOT_EXECUTABLE, refusal), started, 0.0, 0, empty, (), ())
        command = runner.Command(
            self.argv,
            self.cwd,
            runner.child_environment(self.environ, self.check.env, self.run_dir.path),
            self.run_dir.path,
            limit,
            self.settings.grace,
            self.settings.max_log_bytes,
            any(i.source in ("stdout", "stderr") for i in self.loaded.spec.inputs),
        )
        return runner.run(command, stop)

    def refused_by_policy(self) -> str:
        """Why the command policy refuses the command; empty when it does not."""
        if self.settings.command_policy != "allowlist":
            return ""
        line = " ".join(self.argv)
        if any(line.startswith(prefix) for prefix in self.settings.command_prefixes):
            return ""
        return f"refused by the command policy: `{self.argv[0]}` starts with none of the allowed prefixes"

    def facts(self, ending: Ending, seconds: float) -> tuple[Facts, str]:
        """What the output says, and why its reading was cut short (empty when it was not).

        A defect of the engine is a result that is not understood, with the traceback kept.
        """
        try:
            with Watch(seconds):
                return self.read_output(ending), ""
        except Cut as cut:
            return self.unread("the reading was cut short"), cut.reason
        except Exception as e:  # whatever a tool's output does to us, its run ends with a digest
            return self.crashed(e), ""

    def unread(self, problem: str) -> Facts:
        """The facts of output that could not be read."""
        spec = self.loaded.spec
        facts = Facts(spec.name, False, (problem,), [], {})
        facts.promises_findings = bool(spec.findings or spec.includes)
        return facts

    def crashed(self, error: Exception) -> Facts:
        """The facts of output that the parser could not survive."""
        import traceback  # a defect of ckdn

        with open(self.path_of(TRACEBACK), "w", encoding="utf-8", errors="replace") as file:
            file.write("".join(traceback.format_exception(error)))
        return self.unread(f"the parser crashed ({type(error).__name__}: {error})")

    def read_output(self, ending: Ending) -> Facts:
        """Bind the inputs and interpret them."""
        probe = None if self.check.allow_stale else self.run_dir.probe
        if self.check.reports:
            self.reports, notes = binding.collect_reports(
                self.check.reports, self.project.config.root, self.run_dir.path, probe
            )
            self.notes += notes
        spec = self.loaded.spec
        settings = Settings(
            ending.rc,
            self.options,
            self.check.fail_on or ("error",),
            self.check.allow_empty,
            self.check.findings_on_zero == "expected",
            roots=roots_of(self.project.config.root),
            base=os.path.relpath(self.cwd, self.project.config.root) if self.cwd != self.project.config.root else "",
            launchers=self.project.catalog.launchers() if ending.rc == 0 and needs_launchers(self.loaded) else (),
        )
        collected = self.reports if self.check.reports else None
        inputs, found = binding.bind_run(spec, self.run_dir.path, self.options, probe, collected)
        self.reports = list(dict.fromkeys([*self.reports, *found]))
        return interpret(spec, inputs, settings, self.included(settings, probe))

    def included(self, settings: Settings, probe: int | None) -> dict[str, Facts]:
        """The facts of included specs, each over its own inputs."""
        found: dict[str, Facts] = {}
        for include in self.loaded.spec.includes:
            other = self.project.catalog.load(include.spec).spec
            inputs, reports = binding.bind_run(other, self.run_dir.path, self.options, probe)
            missing = any(getattr(bound, "missing", False) for bound in inputs.values())
            self.reports = list(dict.fromkeys([*self.reports, *reports]))
            if not (include.optional and missing):
                found[include.spec] = interpret(other, inputs, settings)
        return found

    def document(self, outcome: Outcome, ending: Ending, facts: Facts, verdict: Verdict) -> dict[str, Any]:
        """The digest."""
        notes = [f"partial: {self.partial}"] if self.partial else []
        notes += self.notes
        notes += self.project.config.notes
        overridden = self.project.catalog.overridden(self.check.parser, self.loaded)
        if overridden:
            notes.append(overridden)
        notes += self.unused_keys()
        notes += [without_pids(note) for note in outcome.notes]
        if outcome.survivors:
            names = [without_pids(name) for name in outcome.survivors]
            counted = [n if names.count(n) == 1 else f"{names.count(n)} {n}" for n in sorted(set(names))]
            notes.append("still running after the command had ended, stopped: " + ", ".join(counted))
        with_tail = verdict.status != PASS and (verdict.status != "fail" or not facts.failing)
        tail = (
            binding.tail_of(os.path.join(self.run_dir.path, "full.log"), self.settings.log_tail_lines)
            if with_tail and self.settings.log_tail_lines
            else []
        )
        return digest.build(
            check=self.check.name,
            run_dir=self.shown_run_dir(),
            ending=ending,
            verdict=verdict,
            facts=facts,
            top=self.check.top or self.settings.top,
            max_snippet_lines=self.settings.max_snippet_lines,
            max_digest_bytes=self.settings.max_digest_bytes,
            log_tail=tail,
            artifacts=self.artifacts(facts),
            notes=notes,
        )

    def unused_keys(self) -> list[str]:
        """Keys of the check that its spec gives nothing to do."""
        spec = self.loaded.spec
        notes = []
        if self.check.fail_on and spec.findings and all(f.failing is not None for f in spec.findings):
            notes.append(f"`fail_on` changes nothing: the spec {spec.name} has a rule of its own for what fails")
        if self.check.reports and not any(i.source == "file" for i in spec.inputs):
            notes.append(f"`reports` changes nothing: the spec {spec.name} reads no report")
        return notes

    def shown_run_dir(self) -> str:
        """The run directory relative to the project where it lies below it, with forward slashes."""
        path = os.path.relpath(self.run_dir.path, self.project.config.root)
        return (self.run_dir.path if path.startswith("..") else path).replace(os.sep, "/")

    def artifacts(self, facts: Facts) -> list[str]:
        """The files of the run directory that hold evidence."""
        names = ["full.log"]
        names += [n for n in ("stdout.log", "stderr.log", TRACEBACK) if os.path.exists(self.path_of(n))]
        if facts.promises_findings:
            names.append("findings.jsonl")
        return names + self.reports

    def store(self, document: dict[str, Any], outcome: Outcome, ending: Ending, facts: Facts) -> RunResult:
        """findings.jsonl, meta.json, and last digest.json: with that the run is finished."""
        path = self.run_dir.path
        try:
            if facts.promises_findings:
                with open(os.path.join(path, "findings.jsonl"), "wb", buffering=COPY_BYTES) as file:
                    file.writelines(digest.finding_lines(facts.records, self.check.name, self.loaded.spec.name))
            data = digest.serialise(document)
            validators.validate(document)
            meta = self.meta(outcome, ending, len(data))
            validators.validate(meta)
            rundir.write_atomic(os.path.join(path, "meta.json"), digest.serialise(meta))
            rundir.write_atomic(os.path.join(path, "digest.json"), data)
            if not self.partial:
                rundir.set_latest(self.project.runs_dir, self.run_dir.name)
            rundir.prune(self.project.runs_dir, self.settings.keep, self.check.name, (self.run_dir.name,))
        except OSError as e:
            shown = self.shown_run_dir()
            raise ConfigError(Problem(f"cannot write the run directory: {e.strerror}", path=shown)) from None
        return RunResult(document, data, exit_code_of(ending.rc, document["status"]), self.run_dir.name)

    def meta(self, outcome: Outcome, ending: Ending, digest_bytes: int) -> dict[str, Any]:
        """``ckdn.meta/1``: everything about the run that is not a fact of its output."""
        reports = [self.report_entry(name) for name in self.reports if self.is_own_file(name)]
        meta: dict[str, Any] = {
            "schema": "ckdn.meta/1",
            "ckdn_version": __version__,
            "check": self.check.name,
            "parser": self.check.parser,
            "command": shown(self.argv),
            "rc": ending.rc,
            "timed_out": ending.timed_out,
            "interrupted": ending.interrupted,
            "started_at": outcome.started_at,
            "duration_s": outcome.duration_s,
            "log_sha256": outcome.log_sha256,
            "log_bytes": outcome.log_bytes,
            "spec": {"sha256": self.loaded.sha256, "origin": self.loaded.origin},
            "config_sha256": self.project.config.sha256,
            "options": self.options,
            "reports": reports,
            "platform": f"{sys.platform} python-{sys.version_info[0]}.{sys.version_info[1]}",
            "raw_bytes": outcome.log_bytes + sum(r["bytes"] for r in reports),
            "digest_bytes": digest_bytes,
        }
        if self.check.env:
            meta["env_keys"] = sorted(self.check.env)
        if self.extra:
            meta["extra_args"] = shown(self.extra)
        if self.partial:
            meta["partial"] = self.partial
        return meta

    def path_of(self, name: str) -> str:
        """A file of the run directory."""
        return os.path.join(self.run_dir.path, name)

    def is_own_file(self, name: str) -> bool:
        """Whether a name is a regular file of the run directory, not a link out of it."""
        path = self.path_of(name)
        inside = os.path.realpath(path).startswith(os.path.realpath(self.run_dir.path) + os.sep)
        return inside and os.path.isfile(path)

    def report_entry(self, name: str) -> dict[str, Any]:
        """Size and hash of one report."""
        path = self.path_of(name)
        running, size = sha256_for(os.path.getsize(path)), 0
        with open(path, "rb") as file:
            while chunk := file.read(COPY_BYTES):
                running.update(chunk)
                size += len(chunk)
        spec = self.loaded.spec
        owner = next((i.name for i in spec.inputs if i.source == "file"), spec.name)
        return {"name": owner, "path": name.replace(os.sep, "/"), "bytes": size, "sha256": running.hexdigest()}


def filled(loaded: Loaded, check: Check) -> dict[str, Any]:
    """The values of every option that has one: the check's, else the default."""
    defaults = {n: s["default"] for n, s in loaded.spec.options.items() if "default" in s}
    return {**defaults, **check.options}


def roots_of(root: str) -> tuple[str, ...]:
    """How a tool may spell the project root."""
    real = os.path.realpath(root)
    return (root,) if real == root else (root, real)


def needs_launchers(loaded: Loaded) -> bool:
    """Whether the proof asks what the log says."""
    return bool(loaded.spec.findings) and any(p.kind == "exit_code" for p in loaded.spec.proof)


def shown(arguments: Sequence[str]) -> list[str]:
    """Arguments as text: whatever bytes they are, without control characters and secrets."""
    return [mask(runner.printable(a.encode("utf-8", "surrogateescape"))) for a in arguments]


def sha256_for(size: int) -> Hash:
    """A running SHA-256 for so many bytes."""
    if size <= HASH_SMALL_BYTES:
        return small_sha256()
    import hashlib  # a large report earns its loading back

    return hashlib.sha256()


def without_pids(text: str) -> str:
    """``sleep[4711]`` as ``sleep``: equal output gives equal bytes, whatever numbers the system gave."""
    pieces = text.split("[")
    kept = [pieces[0]]
    for piece in pieces[1:]:
        digits, closed, rest = piece.partition("]")
        kept.append(rest if closed and digits.isdigit() else "[" + piece)
    return "".join(kept)


def exit_code_of(rc: int, status: str) -> int:
    """The process's exit code: the command's own when 1..255, 1 for anything else that is not green."""
    if status == PASS:
        return 0
    return rc if 1 <= rc <= 255 else 1
