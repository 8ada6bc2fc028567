"""Reading output that exists already: nothing is run, nothing is written."""

from __future__ import annotations

import os

from ckdn import digest, jsonout
from ckdn.app import inputs as binding
from ckdn.app.options import read_options
from ckdn.bounds import safe
from ckdn.catalog import require_re2
from ckdn.engine.interpret import Settings, interpret
from ckdn.engine.source import Source, Unread
from ckdn.errors import ConfigError, Problem, near
from ckdn.model import Ending, Struct
from ckdn.spec.types import LOG
from ckdn.verdict import decide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ckdn.catalog import Catalog
    from ckdn.engine.source import Reader
    from ckdn.model import Facts
    from ckdn.spec.types import Spec

    Bound = dict[str, "tuple[Source, ...] | Unread"]

FORMATS = ("facts", "findings", "digest")
STDIN = "-"
TAIL_LINES = 40


class Parsed(Struct):
    """What `parse` prints."""

    output: bytes
    understood: bool
    reason: str
    """Why not understood; empty when it was."""
    status: str
    """The verdict's status; empty when no exit code was given."""


def parse_output(
    catalog: Catalog,
    spec_name: str,
    first: str | None,
    *,
    inputs: Sequence[tuple[str, str]] = (),
    options: Mapping[str, str],
    rc: int | None,
    format: str,
    stdin: Reader,
    roots: tuple[str, ...],
) -> Parsed:
    """Interpret files (or stdin) with a spec.

    ``first`` is the file of the spec's first input (``-`` is stdin), ``inputs`` bind others by name, ``options`` are
    texts as on the command line, ``roots`` the spellings of the folder that paths become relative to. Raises
    :class:`ConfigError` and :class:`SpecError` for what cannot be asked.
    """
    declared = catalog.load(spec_name).spec.options
    values, of_check = read_options(options, declared)
    loaded = catalog.resolve(spec_name, values)
    require_re2(loaded.spec)
    bound = bind(loaded.spec, given_inputs(loaded.spec, first, inputs), stdin)
    settings = Settings(
        0 if rc is None else rc,
        values,
        tuple(of_check.get("fail_on", ("error",))),
        of_check.get("allow_empty", False),
        "findings_on_zero" in of_check,
        roots=roots,
        launchers=catalog.launchers() if any(p.kind == "exit_code" for p in loaded.spec.proof) else (),
    )
    included = {
        i.spec: interpret(catalog.load(i.spec).spec, {}, settings) for i in loaded.spec.includes if not i.optional
    }
    facts = interpret(loaded.spec, bound, settings, included)
    reason = "; ".join(facts.problems) or facts.bound_passed
    verdict = None if rc is None else decide(Ending(rc), facts)
    if format == "findings":
        output = b"".join(digest.finding_lines(facts.records, spec_name, loaded.spec.name))
    elif format == "facts" or rc is None or verdict is None:
        output = (jsonout.dumps(facts_document(facts)) + "\n").encode("utf-8", "replace")
    else:
        tail = log_tail(bound, facts, verdict.status)
        output = digest.serialise(
            digest.build(
                check=spec_name, run_dir="-", ending=Ending(rc), verdict=verdict, facts=facts, log_tail=tail,
                notes=[note for note in [catalog.overridden(spec_name, loaded)] if note],
            )
        )  # fmt: skip
    return Parsed(output, facts.understood, reason, "" if verdict is None else verdict.status)


def given_inputs(spec: Spec, first: str | None, inputs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Input name → its files in the order given; several only for an input whose `file` is a glob."""
    names = input_names(spec)
    given: dict[str, list[str]] = {names[0]: [first]} if first is not None else {}
    for name, path in inputs:
        if name not in names:
            what = f"the spec `{spec.name}` has no input `{name}`"
            raise ConfigError(Problem(what, path="--input", mend=near(name, names)))
        given.setdefault(name, []).append(path)
    globs = {i.name for i in spec.inputs if any(c in i.file for c in "*?[")}
    for name, paths in given.items():
        if len(paths) > 1 and name not in globs:
            what = f"the input `{name}` was given {len(paths)} files: {', '.join(paths)}"
            raise ConfigError(Problem(what, path="--input", mend="it is one file"))
    if sum(paths.count(STDIN) for paths in given.values()) > 1:
        raise ConfigError(Problem("stdin was given to two inputs", path="--input", mend="give one of them a file"))
    return given


def input_names(spec: Spec) -> list[str]:
    """The names that can be bound, the first one first; the log always exists."""
    return list(dict.fromkeys([*[i.name for i in spec.inputs], LOG]))


def bind(spec: Spec, given: Mapping[str, Sequence[str]], stdin: Reader) -> Bound:
    """Files for inputs. What was not bound is missing if it is the first input, and empty otherwise."""
    bound: Bound = {name: tuple(source(path, stdin) for path in paths) for name, paths in given.items()}
    for position, name in enumerate(input_names(spec)):
        if name not in bound:
            reason = f"the input `{name}` was not given"
            bound[name] = Unread(reason, missing=True) if position == 0 else (Source(name, Empty),)
    return bound


def source(path: str, stdin: Reader) -> Source:
    """One file of the command line; it must be there and readable now."""
    if path == STDIN:
        return Source("stdin", Spooled(stdin).open)
    try:
        binding.open_regular(path).close()
    except binding.NotRegular:
        raise ConfigError(Problem("is no regular file", path=path, mend="pipe it: … | ckdn parse SPEC -")) from None
    except OSError as e:
        raise ConfigError(Problem(f"cannot be read: {e.strerror}", path=path)) from None
    except ValueError:  # a NUL character
        raise ConfigError(Problem("is no file name", path=path)) from None
    return binding.source_of(path, os.path.basename(path))


class Empty:
    """A reader of nothing."""

    def read(self, size: int = -1, /) -> bytes:
        """Nothing."""
        return b""

    def close(self) -> None:
        """Nothing to release."""


class Spooled:
    """Standard input, which may be read several times."""

    def __init__(self, stdin: Reader) -> None:
        self.stdin = stdin
        self.spool: Any = None

    def open(self) -> Reader:
        """A reader from the beginning; the first one copies stdin to an unnamed file (in memory while it is small)."""
        import io
        import tempfile  # only for output from a pipe

        if self.spool is None:
            self.spool = tempfile.SpooledTemporaryFile(max_size=64 << 20)  # noqa: SIM115 - lives as long as the process
            try:
                while chunk := self.stdin.read(1 << 20):
                    self.spool.write(chunk)
            except OSError as e:
                raise ConfigError(Problem(f"stdin cannot be read: {e.strerror}", path="ckdn parse")) from None
        self.spool.seek(0)
        spool = self.spool

        class Again(io.RawIOBase):
            """The spool without closing it."""

            def read(self, size: int = -1, /) -> bytes:
                data: bytes = spool.read(size)
                return data

        return Again()


def log_tail(bound: Bound, facts: Facts, status: str) -> list[str]:
    """The end of the log, where a run would show it."""
    log = bound.get(LOG)
    if status == "pass" or (status == "fail" and facts.failing) or log is None or isinstance(log, Unread):
        return []
    return [line for one in log for line in binding.last_lines(one, TAIL_LINES)]


def facts_document(facts: Facts) -> dict[str, Any]:
    """``ckdn.facts/1``; every text in it is clean and masked."""
    document: dict[str, Any] = {
        "schema": "ckdn.facts/1",
        "spec": facts.spec,
        "understood": facts.understood,
        "records_total": len(facts.records),
        "findings_total": facts.failing,
        "summary": tidy(facts.summary),
        "gate_failures": [safe(t) for t in facts.gate_failures],
        "guards": {
            "held": facts.guards_held,
            "skipped": len(facts.guards_skipped),
            "broken": [safe(t) for t in facts.guards_broken],
        },
        "proof": [
            {"line": safe(p.text), "holds": p.holds, **({"reason": safe(p.reason)} if p.reason else {})}
            for p in facts.proof
        ],
        "notes": [safe(t) for t in facts.notes],
    }
    problems = [*facts.problems, *([facts.bound_passed] if facts.bound_passed else [])]
    if problems:
        document["problems"] = [safe(t) for t in problems]
    return document


def tidy(value: Any) -> Any:
    """A summary with clean, masked texts."""
    if isinstance(value, dict):
        return {safe(str(k)): tidy(v) for k, v in value.items()}
    if isinstance(value, list):
        return [tidy(v) for v in value]
    return safe(value) if isinstance(value, str) else value
