"""SHA-256 without loading OpenSSL: CPython's own implementation, a few milliseconds cheaper to import."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Hash(Protocol):
        """A running hash."""

        def update(self, data: bytes, /) -> None:
            """Take more bytes."""

        def hexdigest(self) -> str:
            """The hash so far."""


def small_sha256() -> Hash:
    """A running SHA-256 for small data; :mod:`hashlib` is faster on large ones and slower to import."""
    for name in ("_sha2", "_sha256"):  # 3.12 renamed it
        try:
            made: Hash = __import__(name).sha256()
            return made
        except ImportError:
            pass
    import hashlib  # an interpreter without its own

    return hashlib.sha256()


def sha256_hex(data: bytes) -> str:
    """The SHA-256 of some bytes."""
    running = small_sha256()
    running.update(data)
    return running.hexdigest()
