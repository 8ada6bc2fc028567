"""Text and values as a digest may hold them: clean, masked, bounded, every cut marked and counted."""

from __future__ import annotations

from ckdn.clean import clean
from ckdn.masking import mask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

MESSAGE_CHARACTERS = 400
ID_CHARACTERS = 200
LINE_CHARACTERS = 240
NOTES = 20
"""At most so many notes, gate failures and artifacts each."""
SUMMARY_ENTRIES = 40
"""At most so many entries in one list or mapping of the summary."""
SUMMARY_DEPTH = 6
LARGEST = 2**53 - 1
"""Larger integers do not survive a JSON reader; as lines and columns they are nonsense."""


def safe(text: str) -> str:
    """``text`` cleaned and masked."""
    return mask(clean(text))


def one_line(text: str) -> str:
    """``text`` cleaned, masked and on one line, without blanks at its ends."""
    text = safe(text)
    if "\n" in text or "\t" in text:
        text = text.replace("\n", " ").replace("\t", " ")
    return text.strip()


def clean_lines(texts: Sequence[str]) -> list[str]:
    """The lines of ``texts`` cleaned and masked as one text (a private key spans lines), without blank ones."""
    joined = safe("\n".join(texts))
    return [line.expandtabs(4).rstrip() for line in joined.split("\n") if line and not line.isspace()]


def cut(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters; a cut ends in ``[+N]…``."""
    over = len(text) - limit
    if over <= 0:
        return text
    mark = f"[+{over}]…"
    for _ in range(2):  # the mark takes room too, and its number may grow by a digit for it
        mark = f"[+{over + len(mark)}]…"
    return text[: max(limit - len(mark), 0)] + mark


def cut_middle(text: str, limit: int) -> str:
    """As :func:`cut`, but keeping the end: the parameters that tell one test from the next stand there."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return cut(text[:-tail], limit - tail) + text[-tail:]


def few(texts: Iterable[str]) -> list[str]:
    """Bounded lines without repeats and blanks, at most :data:`NOTES` of them; the last one counts what is cut."""
    kept = list(dict.fromkeys([cut(text, LINE_CHARACTERS) for text in texts if text]))
    if len(kept) > NOTES:
        kept[NOTES - 1 :] = [f"… {len(kept) - NOTES + 1} more"]
    return kept


def _bounded(value: Any, entries: int, depth: int) -> Any:
    """A summary value with every text cleaned, every list and mapping bounded, and only what JSON can hold."""
    if isinstance(value, str):
        return cut(one_line(value), LINE_CHARACTERS)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -LARGEST <= value <= LARGEST else f"{'-' if value < 0 else ''}2^{value.bit_length() - 1}…"
    if isinstance(value, float):
        return value if _is_finite(value) else None
    if not isinstance(value, (dict, list, tuple)):
        return cut(one_line(str(value)), LINE_CHARACTERS)
    if depth == 0:
        return "…"
    if isinstance(value, dict):
        return bounded_mapping(value, entries, entries, depth)
    kept = [_bounded(item, entries, depth - 1) for item in value[:entries]]
    if len(value) > entries:
        kept.append(f"… {len(value) - entries} more")
    return kept


def bounded_mapping(value: dict[str, Any], most: int, entries: int, depth: int) -> dict[str, Any]:
    """At most ``most`` entries (and at most ``entries`` in what is inside them), the rest counted under ``…``.

    A tally keeps its largest numbers; any other mapping its first keys.
    """
    names = sorted(value, key=str)
    gone = max(len(names) - most, 0)
    if gone:
        if all(is_number(item) for item in value.values()):
            names.sort(key=lambda name: -value[name])
        names = names[:most]
    kept: dict[str, Any] = {}
    for name in names:
        text = cut_middle(one_line(str(name)), ID_CHARACTERS)
        if text in kept:  # two names that differ only in what was cleaned away
            gone += 1
        else:
            kept[text] = _bounded(value[name], entries, depth - 1)
    if gone:
        kept["…"] = f"{gone} more"
    return kept


def _is_finite(value: float) -> bool:
    return value - value == 0.0


def is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and _is_finite(value))
