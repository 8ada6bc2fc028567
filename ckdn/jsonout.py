"""Canonical JSON: compact, keys sorted, text as itself (no ``\\uXXXX`` for what UTF-8 can hold).

Importing :mod:`json` costs a third of a bare interpreter's start, for a decoder and a scanner that most runs never
use. Quoting a string is the only part that has to be fast, and CPython's accelerator for it stands alone.
"""

from __future__ import annotations

try:
    from _json import encode_basestring as quote
except ImportError:  # an interpreter without the accelerator
    from json.encoder import encode_basestring as quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["dumps", "quote"]


def dumps(value: Any, sort_keys: bool = True) -> str:
    """``value`` as one line of JSON, equal to ``json.dumps(value, ensure_ascii=False, separators=(",", ":"))``.

    Mappings need string keys (TypeError). NaN and the infinities are not JSON and are refused (ValueError), as is a
    value of any other type than dict, list, tuple, str, int, float, bool and None (TypeError).
    """
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        if value - value != 0.0:  # true of NaN and the infinities only
            raise ValueError(f"not a JSON number: {value!r}")
        return float.__repr__(value)
    if isinstance(value, dict):
        keys = sorted(value) if sort_keys else list(value)
        for key in keys:
            if not isinstance(key, str):
                raise TypeError(f"a JSON object has string keys, not {key!r}")
        return "{" + ",".join([f"{quote(key)}:{dumps(value[key], sort_keys)}" for key in keys]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([dumps(item, sort_keys) for item in value]) + "]"
    raise TypeError(f"no JSON for {type(value).__name__}")
