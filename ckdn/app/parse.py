"""Reading output that exists already: nothing is run, nothing is written."""

from __future__ import annotations

import os

from ckdn import digest, jsonout
from ckdn.app import inputs as binding
from ckdn.engine.interpret import Settings, interpret
from ckdn.engine.source import Source, Unread
from ckdn.errors import ConfigError, Problem, near
from ckdn.model import Ending, Struct
from ckdn.spec.types import LOG
from ckdn.verdict import decide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ckdn.catalog import Catalog, Loaded
    from ckdn.engine.source import Reader
    from ckdn.model import Facts

    Bound = dict[str, "tuple[Source, ...] | Unread"]

FORMATS = ("facts", "findings", "digest")
STDIN = "-"


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
    inputs: Mapping[str, str],
    options: Mapping[str, str],
    rc: int | None,
    format: str,
    stdin: Reader,
    cwd: str,
) -> Parsed:
    """Interpret files (or stdin) with a spec.

    ``first`` is the file of the spec's first input (``-`` is stdin), ``inputs`` bind others by name, ``options`` are
    texts as on the command line. Raises :class:`ConfigError` and :class:`SpecError` for what cannot be asked.
    """
    declared = catalog.load(spec_name).spec.options
    values = {**defaults(declared), **{name: option_value(name, text, declared) for name, text in options.items()}}
    loaded = catalog.resolve(spec_name, values)
    bound = bind(loaded, first, inputs, stdin)
    settings = Settings(
        0 if rc is None else rc,
        values,
        roots=(cwd,),
        launchers=catalog.launchers() if any(p.kind == "exit_code" for p in loaded.spec.proof) else (),
    )
    included = {
        i.spec: interpret(catalog.load(i.spec).spec, {}, settings) for i in loaded.spec.includes if not i.optional
    }
    facts = interpret(loaded.spec, bound, settings, included)
    reason = "; ".join(facts.problems) or facts.bound_passed
    status = ""
    if rc is not None:
        verdict = decide(Ending(rc), facts)
        status = verdict.status
    if format == "digest":
        document = digest.build(
            check=spec_name, run_dir="-", ending=Ending(rc or 0), verdict=decide(Ending(rc or 0), facts), facts=facts,
            log_tail=log_tail(bound, facts, status),
        )  # fmt: skip
        output = digest.serialise(document)
    elif format == "findings":
        output = b"".join(digest.finding_lines(facts.records, spec_name, loaded.spec.name))
    else:
        output = (jsonout.dumps(facts_document(facts)) + "\n").encode()
    return Parsed(output, facts.understood, reason, status)


def defaults(declared: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The options that have a default."""
    return {name: schema["default"] for name, schema in declared.items() if "default" in schema}


def option_value(name: str, text: str, declared: Mapping[str, Mapping[str, Any]]) -> Any:
    """An option from the command line, by its declared type."""
    schema = declared.get(name)
    if schema is None:
        raise ConfigError(Problem(f"unknown option `{name}`", path="--option", mend=near(name, declared)))
    kind = schema.get("type", "string")
    value: Any = text
    try:
        if kind == "integer":
            value = int(text)
        elif kind == "number":
            value = float(text) if not text.lstrip("-").isdigit() else int(text)
        elif kind == "boolean":
            value = {"true": True, "false": False}[text]
        elif kind == "array":
            value = [part for part in text.strip("[]").replace('"', "").replace(" ", "").split(",") if part]
    except (ValueError, KeyError):
        raise ConfigError(Problem(f"the option `{name}` is {text!r}", path="--option", mend=f"give a {kind}")) from None
    allowed = schema.get("enum") or schema.get("items", {}).get("enum")
    for item in value if isinstance(value, list) else [value]:
        if allowed and item not in allowed:
            mend = near(str(item), map(str, allowed)) or f"one of {', '.join(map(str, allowed))}"
            raise ConfigError(Problem(f"the option `{name}` cannot be {item!r}", path="--option", mend=mend))
    return value


def bind(loaded: Loaded, first: str | None, given: Mapping[str, str], stdin: Reader) -> Bound:
    """Files for inputs. What was not bound is missing if it is the first input, and empty otherwise."""
    spec = loaded.spec
    names = [i.name for i in spec.inputs] or [LOG]
    known = list(dict.fromkeys([*names, LOG]))
    bound: Bound = {}
    for name, path in given.items():
        if name not in known:
            what = f"the spec `{spec.name}` has no input `{name}`"
            raise ConfigError(Problem(what, path="--input", mend=near(name, known)))
        bound[name] = (source(path, stdin),)
    if first is not None:
        bound[names[0]] = (source(first, stdin),)
    for position, name in enumerate(known):
        if name not in bound:
            hint = f"the input `{name}` was not given"
            bound[name] = Unread(hint, missing=True) if position == 0 else (Source(name, Empty),)
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
            while chunk := self.stdin.read(1 << 20):
                self.spool.write(chunk)
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
    if status in ("", "pass") or (status == "fail" and facts.failing) or log is None or isinstance(log, Unread):
        return []
    from ckdn.engine.text import read_lines  # only red results

    return [line for one in log for line in read_lines(one, 40)][-40:]


def facts_document(facts: Facts) -> dict[str, Any]:
    """``ckdn.facts/1``."""
    from ckdn.bounds import safe  # every text that is printed is clean and masked

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
    from ckdn.bounds import safe

    if isinstance(value, dict):
        return {safe(str(k)): tidy(v) for k, v in value.items()}
    if isinstance(value, list):
        return [tidy(v) for v in value]
    return safe(value) if isinstance(value, str) else value
