"""What a string may hold before anybody is shown it: no control, ANSI, bidi or invisible characters.

Tool output is untrusted. Escape sequences move cursors and retitle windows, bidi controls make text read as something
else, tag characters and variation selectors carry text that only a model sees, lone surrogates cannot be written at
all. Joiners (U+200C, U+200D) and the emoji selectors stay: scripts and emoji need them.
"""

from __future__ import annotations

REPLACEMENT = "\ufffd"

# The C1 twins of the two-character introducers, and what they are spelled as before the scan.
_C1 = {
    "\x90": "\x1bP",
    "\x98": "\x1bX",
    "\x9b": "\x1b[",
    "\x9c": "\x1b\\",
    "\x9d": "\x1b]",
    "\x9e": "\x1b^",
    "\x9f": "\x1b_",
}

_table: dict[int, str | None] = {}


def clean(text: str) -> str:
    """``text`` with only printable characters, newlines and tabs; idempotent, linear, never longer.

    Carriage returns are folded as a terminal shows them (:func:`fold_carriage_returns`); form feeds and vertical tabs
    become spaces; the Unicode line separators become newlines (a reader that splits on them would tear a JSON line);
    lone surrogates become U+FFFD.
    """
    if text.isprintable() and (text.isascii() or _is_plain(text)):
        return text
    return _clean(text)


def fold_carriage_returns(text: str) -> str:
    """Progress as it looks in the end: of every line only what follows its last CR; CR LF is a newline.

    A CR at the end of a line erases nothing.
    """
    if "\r" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join([line.rstrip("\r").rpartition("\r")[2] if "\r" in line else line for line in lines])


def strip_sequences(text: str) -> str:
    """``text`` without terminal escape sequences (CSI, OSC, DCS, charsets …), in the 7-bit and the C1 spelling.

    A string sequence (OSC, DCS …) that is not ended within its line loses its introducer only: what follows would
    otherwise be hidden.
    """
    if not text.isascii():
        for single, pair in _C1.items():
            if single in text:
                text = text.replace(single, pair)
    at = text.find("\x1b")
    if at < 0:
        return text
    parts = []
    start = 0
    while at >= 0:
        parts.append(text[start:at])
        start = _sequence_end(text, at)
        at = text.find("\x1b", start)
    parts.append(text[start:])
    return "".join(parts)


def _is_plain(text: str) -> bool:
    # Of the characters removed below only the variation selectors of plane 14 are "printable". UTF-16 needs four
    # bytes for those: a quick test, where looking at each character in Python would cost more than the cleaning.
    return len(text.encode("utf-16-le")) == 2 * len(text)


def _clean(text: str) -> str:
    text = fold_carriage_returns(strip_sequences(text))
    bare = text.replace("\n", "").replace("\t", "")
    if bare.isascii() and bare.isprintable():
        return text
    if not _table:
        _fill_table()
    return text.translate(_table)


def _sequence_end(text: str, at: int) -> int:
    """The index behind the sequence whose ESC stands at ``at``."""
    end = len(text)
    here = at + 1
    if here >= end:
        return end
    kind = text[here]
    if kind == "[":
        here += 1
        while here < end and "0" <= text[here] <= "?":
            here += 1
        return _final(text, here, "@")
    if kind in "]PX^_":
        # Never look beyond the next ESC: it ends or aborts this one, and the scan stays linear.
        escape = text.find("\x1b", here)
        limit = end if escape < 0 else escape
        newline = text.find("\n", here, limit)
        if newline >= 0:
            limit = newline
        bell = text.find("\x07", here, limit)
        if bell >= 0:
            return bell + 1
        if limit == escape and text.startswith("\\", escape + 1):
            return escape + 2
        return here + 1
    if " " <= kind <= "/":
        return _final(text, here, "0")
    return here + 1 if "0" <= kind <= "~" else here


def _final(text: str, here: int, lowest: str) -> int:
    """Skip intermediate characters and one final character, if it is one."""
    end = len(text)
    while here < end and " " <= text[here] <= "/":
        here += 1
    return here + 1 if here < end and lowest <= text[here] <= "~" else here


def _fill_table() -> None:
    """Built when first needed: most runs never meet such a character."""
    removed = [
        *range(0x09),
        *range(0x0D, 0x20),
        *range(0x7F, 0xA0),
        0x00AD,  # soft hyphen
        0x061C,  # Arabic letter mark
        0x180E,
        0x200B,  # zero-width space
        *range(0x200E, 0x2010),  # left-to-right and right-to-left marks
        *range(0x202A, 0x202F),  # bidi embeddings and overrides
        *range(0x2060, 0x2070),  # word joiner, invisible operators, bidi isolates, deprecated format characters
        0xFEFF,  # byte order mark
        *range(0xFFF9, 0xFFFC),  # interlinear annotation
        *range(0x1BCA0, 0x1BCA4),
        *range(0x1D173, 0x1D17B),
        *range(0xE0000, 0xE0080),  # tags: invisible ASCII
        *range(0xE0100, 0xE01F0),  # variation selectors 17 to 256
    ]
    _table.update(dict.fromkeys(removed))
    _table.update(dict.fromkeys((0x0B, 0x0C), " "))
    _table.update(dict.fromkeys((0x85, 0x2028, 0x2029), "\n"))
    _table.update(dict.fromkeys((*range(0xD800, 0xE000), 0xFFFE, 0xFFFF), REPLACEMENT))
