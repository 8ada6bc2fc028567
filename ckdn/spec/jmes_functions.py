"""JMESPath's value types and the signatures of its functions: one table for the loader and for the engine.

A type is a bit, a set of possible types a mask. ``ANY`` is every JSON type; ``EXPREF`` (``&name``) is none of them.
"""

from __future__ import annotations

NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT, EXPREF = 1, 2, 4, 8, 16, 32, 64
ANY = NULL | BOOLEAN | NUMBER | STRING | ARRAY | OBJECT

TYPE_NAMES = {
    STRING: "string",
    NUMBER: "number",
    BOOLEAN: "boolean",
    ARRAY: "array",
    OBJECT: "object",
    NULL: "null",
    EXPREF: "expression",
}
MASKS = {name: mask for mask, name in TYPE_NAMES.items()}
TYPE_OF = {
    type(None): NULL,
    bool: BOOLEAN,
    int: NUMBER,
    float: NUMBER,
    str: STRING,
    list: ARRAY,
    dict: OBJECT,
}
"""Python type → mask. Exact types: what :func:`json.loads` builds, no subclasses."""

_NUMBERS = (ARRAY, (NUMBER,))
_STRINGS = (ARRAY, (STRING,))
_ORDERED = (ARRAY, (NUMBER, STRING))
_ARRAY, _EXPREF, _OBJECT, _STRING, _NUMBER, _ANY = ((mask, ()) for mask in (ARRAY, EXPREF, OBJECT, STRING, NUMBER, ANY))
_SEQUENCE = (ARRAY | STRING, ())

FUNCTIONS: dict[str, tuple[tuple[tuple[int, tuple[int, ...]], ...], bool, int]] = {
    "abs": ((_NUMBER,), False, NUMBER),
    "avg": ((_NUMBERS,), False, NUMBER | NULL),
    "ceil": ((_NUMBER,), False, NUMBER),
    "contains": ((_SEQUENCE, _ANY), False, BOOLEAN),
    "ends_with": ((_STRING, _STRING), False, BOOLEAN),
    "floor": ((_NUMBER,), False, NUMBER),
    "join": ((_STRING, _STRINGS), False, STRING),
    "keys": ((_OBJECT,), False, ARRAY),
    "length": (((STRING | ARRAY | OBJECT, ()),), False, NUMBER),
    "map": ((_EXPREF, _ARRAY), False, ARRAY),
    "max": ((_ORDERED,), False, NUMBER | STRING | NULL),
    "max_by": ((_ARRAY, _EXPREF), False, ANY),
    "merge": ((_OBJECT,), True, OBJECT),
    "min": ((_ORDERED,), False, NUMBER | STRING | NULL),
    "min_by": ((_ARRAY, _EXPREF), False, ANY),
    "not_null": ((_ANY,), True, ANY),
    "reverse": ((_SEQUENCE,), False, ARRAY | STRING),
    "sort": ((_ORDERED,), False, ARRAY),
    "sort_by": ((_ARRAY, _EXPREF), False, ARRAY),
    "starts_with": ((_STRING, _STRING), False, BOOLEAN),
    "sum": ((_NUMBERS,), False, NUMBER),
    "to_array": ((_ANY,), False, ARRAY),
    "to_number": ((_ANY,), False, NUMBER | NULL),
    "to_string": ((_ANY,), False, STRING),
    "type": ((_ANY,), False, STRING),
    "values": ((_OBJECT,), False, ARRAY),
}
"""Name → (one (mask, element masks) an argument, whether the last one repeats, mask of the result).

Element masks restrict what an array may hold; with several, all elements must be of the first one's type."""


def names(mask: int) -> str:
    """``a string, an array or null`` for a mask."""
    words = [_article(name) for bit, name in TYPE_NAMES.items() if mask & bit] or ["no JSON value"]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def wanted(argument: tuple[int, tuple[int, ...]]) -> str:
    """What an argument takes, in words: ``an array of numbers or of strings``."""
    mask, elements = argument
    if not elements:
        return names(mask)
    return "an array " + " or ".join(f"of {TYPE_NAMES[bit]}s" for bit in elements)


def _article(name: str) -> str:
    if name == "null":
        return name
    return f"{'an' if name[0] in 'aeo' else 'a'} {name}"
