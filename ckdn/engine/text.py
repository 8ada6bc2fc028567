"""Text inputs: bytes of any encoding in, blocks of clean UTF-8 lines out.

A BOM is honoured, everything else is UTF-8 with replacement. Control sequences go, ``\\r`` progress is folded (what a
terminal would still show), and a line is cut at 8 KiB. Blocks are large, so that patterns can be tried on thousands of
lines in one call.
"""

from __future__ import annotations

from ckdn.clean import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ckdn.engine.source import Reader, Source

BLOCK_BYTES = 1 << 20
LINE_BYTES = 8192
"""What is kept of a line, in UTF-8 and without control sequences."""
RAW_BYTES = 8 * LINE_BYTES
"""What is looked at of a line before its control sequences are gone."""
BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_CONTROLS = bytes(b for b in [*range(32), 127] if b not in (9, 10))


def bom_of(head: bytes) -> tuple[int, str]:
    """The length of a byte order mark and the encoding it names; (0, "") without one."""
    for mark, encoding in BOMS:
        if head.startswith(mark):
            return len(mark), encoding
    return 0, ""


class TextBlocks:
    """Iterates over one source in blocks of whole lines; each line ends in a newline."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.lines_cut = 0
        self.nul_bytes = False
        """Whether a NUL stood in it: such a log is not silent, though nothing of it can be shown."""

    def __iter__(self) -> Iterator[bytes]:
        reader = self.source.open()
        try:
            for raw in whole_lines(self.watched(utf8_chunks(reader))):
                block = raw if is_plain(raw) else self.cleaned(raw)
                if block:
                    yield self.bounded(block)
        finally:
            reader.close()

    def watched(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks, and whether a NUL is among them."""
        for chunk in chunks:
            self.nul_bytes = self.nul_bytes or b"\0" in chunk
            yield chunk

    def cleaned(self, block: bytes) -> bytes:
        """A block with carriage returns folded and everything that is not text removed."""
        if b"\r" in block or longest_exceeds(block, RAW_BYTES):
            block = b"\n".join([self.shortened(folded(line)) for line in block.replace(b"\r\n", b"\n").split(b"\n")])
        return clean(block.decode("utf-8", "replace")).encode("utf-8", "replace")

    def shortened(self, line: bytes) -> bytes:
        """A raw line of at most 64 KiB. What :meth:`cut` will not see to be cut is counted here."""
        if len(line) <= RAW_BYTES:
            return line
        line = line[:RAW_BYTES]
        if len(clean(line.decode("utf-8", "replace")).encode("utf-8", "replace")) <= LINE_BYTES:
            self.lines_cut += 1
        return line

    def bounded(self, block: bytes) -> bytes:
        """The block with lines over 8 KiB cut; nothing is copied when there are none."""
        if not longest_exceeds(block, LINE_BYTES):
            return block
        return b"".join([self.cut(line) for line in block.splitlines(keepends=True)])

    def cut(self, line: bytes) -> bytes:
        """One line of at most 8 KiB (and its newline), cut between characters."""
        if len(line) <= LINE_BYTES + 1:
            return line
        self.lines_cut += 1
        return line[:LINE_BYTES].decode("utf-8", "ignore").encode() + b"\n"


def longest_exceeds(block: bytes, limit: int) -> bool:
    """Whether a line of a block is longer than ``limit``; looks at few bytes when lines are short."""
    start, end = 0, len(block)
    while end - start > limit:
        newline = block.rfind(b"\n", start, start + limit + 1)
        if newline < 0:
            return True
        start = newline + 1
    return False


def utf8_chunks(reader: Reader) -> Iterator[bytes]:
    """The bytes as they come, without BOM, in UTF-8 if a BOM says that they are not."""
    chunk = reader.read(BLOCK_BYTES)
    while 0 < len(chunk) < 4 and (more := reader.read(BLOCK_BYTES)):
        chunk += more
    mark, encoding = bom_of(chunk[:4])
    if encoding in ("", "utf-8"):
        chunk = chunk[mark:]
        while chunk:
            yield chunk
            chunk = reader.read(BLOCK_BYTES)
        return
    import codecs  # only for UTF-16 and UTF-32

    decoder = codecs.getincrementaldecoder(encoding)("replace")
    chunk = chunk[mark:]
    while chunk:
        yield decoder.decode(chunk).encode("utf-8", "replace")
        chunk = reader.read(BLOCK_BYTES)
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def whole_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks that end in a newline. A line that never ends is kept only as far as it can matter.

    Zero bytes go first: what is left of UTF-16 without a byte order mark is ASCII that can be read.
    """
    carry = b""
    for chunk in chunks:
        chunk = chunk.replace(b"\0", b"")
        data = carry + chunk if carry else chunk
        end = data.rfind(b"\n") + 1
        if end:
            yield data[:end]
        carry = still_open(data[end:])
    if carry:
        yield carry + b"\n"


def still_open(line: bytes) -> bytes:
    """What can still matter of a line that has not ended: the text a terminal shows now, and what may replace it.

    One byte more than the bound stays of each, so that the line comes out as if it had been read in one piece.
    """
    if len(line) <= 4 * RAW_BYTES:
        return line
    *before, last = line.split(b"\r")
    shown = next((part for part in reversed(before) if shows(part)), b"")
    return (shown[: RAW_BYTES + 1] + b"\r" if shown else b"") + last[: RAW_BYTES + 1]


def is_plain(block: bytes) -> bool:
    """Whether a block needs no cleaning: ASCII without control characters."""
    return block.isascii() and len(block.translate(None, _CONTROLS)) == len(block)


def folded(line: bytes) -> bytes:
    """What a terminal still shows of a line with carriage returns: the last part that was written over the others."""
    if b"\r" not in line:
        return line
    return next((part for part in reversed(line.split(b"\r")) if shows(part)), b"")


def shows(part: bytes) -> bool:
    """Whether a part of a line replaces what stood there: anything does but nothing and colours alone."""
    at = 0
    part = part[:RAW_BYTES]
    while part.startswith(b"\x1b[", at):
        end = part.find(b"m", at)
        if end < 0 or part[at + 2 : end].translate(None, b"0123456789;:"):
            return True
        at = end + 1
    return at < len(part)


def read_lines(source: Source, last: int) -> list[str]:
    """The last lines of a text source, clean; for log tails."""
    tail: list[bytes] = []
    for block in TextBlocks(source):
        lines = block.split(b"\n")[:-1]
        tail = (tail + lines)[-last:] if last else []
    return [line.decode("utf-8", "replace") for line in tail]
