"""Validators compiled ahead of time from ``schemas/`` (``.ci/generate.py``): no schema is read to check a document.

Every run validates its digest, aggregate and meta; only the one module that is asked for is imported.
"""

from __future__ import annotations

from ckdn.validators.index_0 import MODULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ValidationError", "ids", "validate"]


class ValidationError(ValueError):
    """A document does not follow its schema.

    ``path`` is the place in the document, as in ``findings[0].id`` (empty: the document itself); ``message`` says what
    must be there.
    """

    def __init__(self, path: str, message: str | None = None) -> None:
        if message is None:  # the generated code says both at once: "data.findings[0].id must be string"
            path, message = _split(path)
        self.path = path
        self.message = message
        super().__init__(f"{path}: {message}" if path else message)


def ids() -> tuple[str, ...]:
    """The ids of all documents that can be validated, sorted: ``ckdn.aggregate/1``, …"""
    return tuple(MODULES)


def validate(document: Any, schema: str | None = None) -> None:
    """Check a document, as parsed from JSON, against the schema that its key ``schema`` names.

    ``schema`` names it for documents that carry no such key (``ckdn.finding/1``). Raises :class:`ValidationError` for
    the first fault, and for a schema that is not known.
    """
    if schema is None:
        if not isinstance(document, dict):
            raise ValidationError("", "must be object")
        schema = document.get("schema")
        if schema is None:
            raise ValidationError("", "must contain schema")
    module = MODULES.get(schema) if isinstance(schema, str) else None
    if module is None:
        raise ValidationError("schema", f"names no known document: {schema!r} (known: {', '.join(MODULES)})")
    # One module of several, chosen by the document: the others stay unloaded.
    __import__(f"ckdn.validators.{module}", fromlist=["validate"]).validate(document)


def _split(text: str) -> tuple[str, str]:
    """Place and message out of the generated code's one string; a key with such words in it only moves the cut."""
    cuts = [cut for cut in (text.find(" must "), text.find(" cannot ")) if cut >= 0]
    cut = min(cuts, default=0)
    return text[:cut].removeprefix("data").removeprefix("."), text[cut:].strip()
