"""The words every layer shares: severities, statuses, records, facts, verdicts.

Values only; nothing here touches files, processes or the environment. These classes are loaded by every run, so they
are built by a small metaclass instead of :mod:`dataclasses` or :mod:`typing` (35 ms and 17 ms of start-up).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, dataclass_transform
else:

    def dataclass_transform():
        return lambda cls: cls


@dataclass_transform()
class StructMeta(type):
    """Turns a class body's annotations into ``__slots__``, its assignments into defaults."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> StructMeta:
        inherited: tuple[str, ...] = ()
        defaults: dict[str, Any] = {}
        for base in bases:
            inherited += getattr(base, "_fields", ())
            defaults.update(getattr(base, "_defaults", {}))
        own = tuple(namespace.get("__annotations__", ()))
        for field in own:
            if field in namespace:
                defaults[field] = namespace.pop(field)
        namespace["__slots__"] = own
        cls = super().__new__(mcls, name, bases, namespace)
        cls._fields = inherited + own  # type: ignore[attr-defined]
        cls._defaults = defaults  # type: ignore[attr-defined]
        return cls


class Struct(metaclass=StructMeta):
    """A plain value with named, slotted fields: positional or keyword construction, equality, a readable repr.

    Defaults must be immutable (they are shared between instances).
    """

    if TYPE_CHECKING:
        _fields: ClassVar[tuple[str, ...]]
        _defaults: ClassVar[dict[str, Any]]
    else:

        def __init__(self, *args, **kwargs):
            fields = self._fields
            if len(args) > len(fields):
                raise TypeError(f"{type(self).__name__} takes {len(fields)} values, not {len(args)}")
            for field, value in zip(fields, args, strict=False):
                setattr(self, field, value)
            for field in fields[len(args) :]:
                if field in kwargs:
                    setattr(self, field, kwargs.pop(field))
                elif field in self._defaults:
                    setattr(self, field, self._defaults[field])
                else:
                    raise TypeError(f"{type(self).__name__} needs {field!r}")
            if kwargs:
                raise TypeError(f"{type(self).__name__} has no field {sorted(kwargs)}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, f) == getattr(other, f) for f in self._fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{f}={getattr(self, f)!r}" for f in self._fields)
        return f"{type(self).__name__}({shown})"

    def values(self) -> Iterator[Any]:
        """The field values in the order of declaration."""
        return (getattr(self, f) for f in self._fields)


SEVERITIES = ("error", "warning", "info")

PASS = "pass"
FAIL = "fail"
ERROR = "error"
PARSE_MISMATCH = "parse_mismatch"
STATUSES = (PASS, FAIL, ERROR, PARSE_MISMATCH)


class Record(Struct):
    """One finding as extracted, failing or not (``ckdn.finding/1`` without ``check`` and ``spec``).

    ``line`` and its kin are 1-based; 0 means absent. Text fields are clean of control characters and may be empty when
    absent (``message`` and ``id`` never are). ``detail`` is the lines that go with the finding, unbounded.
    """

    id: str
    kind: str
    severity: str
    failing: bool
    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    code: str = ""
    test: str = ""
    url: str = ""
    detail: tuple[str, ...] = ()


class ProofLine(Struct):
    """One line of a spec's ``proof``: its text as written, whether it held, and if not a sentence that says why."""

    text: str
    holds: bool
    reason: str = ""


class Facts(Struct):
    """Everything the engine learned from one tool's output. No status: that is :mod:`ckdn.verdict`'s."""

    spec: str
    understood: bool
    problems: tuple[str, ...]
    """Why the output is not understood, the most telling first; empty exactly when ``understood``."""
    records: list[Record]
    """Every record in input order, failing or not."""
    summary: dict[str, Any]
    gate_failures: tuple[str, ...] = ()
    guards_held: int = 0
    guards_skipped: tuple[str, ...] = ()
    guards_broken: tuple[str, ...] = ()
    """Guards as written in the spec; each broken one also stands in ``problems`` with its numbers."""
    proof: tuple[ProofLine, ...] = ()
    notes: tuple[str, ...] = ()
    promises_findings: bool = True
    """False for a spec with ``findings: []``: the exit code is the evidence."""
    zero_expected: bool = False
    """``findings_on_zero: expected`` holds (by the check's key or the spec's predicate)."""
    rc_class: str = ""
    """What the spec's ``exit_codes`` says of this rc: ``clean``, ``findings``, ``crash`` or empty when unlisted."""
    bound_passed: str = ""
    """Which engine bound was passed (``more than 200000 records``); never green then."""
    numbers: dict[str, int | float | None] | None = None
    """Every number by its name (``declared.errors``, ``rows.case``), None where absent; for those who include this."""

    @property
    def failing(self) -> int:
        """The number of failing records, before any merging."""
        return sum(1 for r in self.records if r.failing)


class Ending(Struct):
    """How the command's process ended, as the runner saw it."""

    rc: int
    """The tool's exit code; ``-N`` for death by signal N; 124, 126, 127, 130, 143, 129 where contract 2 says so."""
    failure: str = ""
    """Why this is no result (``timed out after 5 s``, ``killed by SIGSEGV``); empty when the tool ended by itself."""
    timed_out: bool = False
    interrupted: bool = False


class Verdict(Struct):
    """The status of one run and what decided it."""

    status: str
    reason: str
    """Empty exactly when ``status`` is ``pass``."""
    rule: int
    """Which line of the truth table decided (1 to 6)."""
    notes: tuple[str, ...] = ()
