"""Option values from a command line: texts, read by what the spec declares."""

from __future__ import annotations

from ckdn.errors import ConfigError, Problem, near
from ckdn.model import SEVERITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Schema = Mapping[str, Any]

OF_CHECKS: Mapping[str, Schema] = {
    "fail_on": {"type": "array", "items": {"enum": list(SEVERITIES)}, "minItems": 1},
    "allow_empty": {"type": "boolean"},
    "findings_on_zero": {"enum": ["expected"]},
}
"""Keys of a check that decide how its output is read; they are options of every spec."""


def defaults(declared: Mapping[str, Schema]) -> dict[str, Any]:
    """The options that have a default."""
    return {name: schema["default"] for name, schema in declared.items() if "default" in schema}


def read_options(given: Mapping[str, str], declared: Mapping[str, Schema]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of a spec's options, defaults filled in, and those of :data:`OF_CHECKS` that were given.

    Raises :class:`ConfigError` with every option that is unknown or not of its type.
    """
    values = defaults(declared)
    of_checks: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, text in given.items():
        try:
            if name in declared:
                values[name] = option_value(name, text, declared[name])
            elif name in OF_CHECKS:
                of_checks[name] = option_value(name, text, OF_CHECKS[name])
            else:
                problems.append(wrong(f"unknown option `{name}`", near(name, (*declared, *OF_CHECKS))))
        except ConfigError as e:
            problems += e.problems
    if problems:
        raise ConfigError(problems)
    return values, of_checks


def option_value(name: str, text: str, schema: Schema) -> Any:
    """One option by its declared type."""
    kind = schema.get("type", "string")
    if kind != "array":
        return scalar(name, text, kind, schema)
    inner = schema.get("items", {})
    value = [scalar(name, item, inner.get("type", "string"), inner) for item in items(name, text)]
    if len(value) < schema.get("minItems", 0):
        raise ConfigError(wrong(f"the option `{name}` is empty", f"give at least {schema['minItems']}"))
    return value


def items(name: str, text: str) -> list[str]:
    """The items of a list: JSON, or separated by commas."""
    if not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    import json  # only lists as JSON

    try:
        return [item if isinstance(item, str) else json.dumps(item) for item in json.loads(text)]
    except (ValueError, RecursionError):
        mend = "give a JSON list, or items separated by commas"
        raise ConfigError(wrong(f"the option `{name}` is {text!r}", mend)) from None


def scalar(name: str, text: str, kind: str, schema: Schema) -> Any:
    """One value of a simple type within its bounds."""
    value: Any = text
    try:
        if kind == "boolean":
            value = {"true": True, "false": False}[text]
        elif kind == "integer":
            value = int(text)
        elif kind == "number":
            value = int(text) if text.lstrip("+-").isdigit() else float(text)
            if value - value != 0:  # NaN and the infinities
                raise ValueError(text)
    except (ValueError, KeyError):
        article = "an" if kind == "integer" else "a"
        mend = "give true or false" if kind == "boolean" else f"give {article} {kind}"
        raise ConfigError(wrong(f"the option `{name}` is {text!r}", mend)) from None
    allowed = schema.get("enum")
    if allowed and value not in allowed:
        mend = near(text, map(str, allowed)) or f"one of {', '.join(map(str, allowed))}"
        raise ConfigError(wrong(f"the option `{name}` cannot be {text!r}", mend))
    if "minimum" in schema and value < schema["minimum"]:
        raise ConfigError(wrong(f"the option `{name}` is {text}", f"it must be at least {schema['minimum']}"))
    if "maximum" in schema and value > schema["maximum"]:
        raise ConfigError(wrong(f"the option `{name}` is {text}", f"it must be at most {schema['maximum']}"))
    return value


def wrong(what: str, mend: str) -> Problem:
    """A problem of one option."""
    return Problem(what, path="--option", mend=mend)
