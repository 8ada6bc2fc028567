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

    def __iter__(self) -> Iterator[bytes]:
        reader = self.source.open()
        try:
            for raw in whole_lines(utf8_chunks(reader)):
                block = raw if is_plain(raw) else cleaned(raw)
                if block:
                    yield self.bounded(block)
        finally:
            reader.close()

    def bounded(self, block: bytes) -> bytes:
        """The block with lines over 8 KiB cut; nothing is copied when there are none."""
        start, end = 0, len(block)
        while end - start > LINE_BYTES:
            newline = block.rfind(b"\n", start, start + LINE_BYTES + 1)
            if newline < 0:
                return b"".join([self.cut(line) for line in block.splitlines(keepends=True)])
            start = newline + 1
        return block

    def cut(self, line: bytes) -> bytes:
        """One line of at most 8 KiB (and its newline), cut between characters."""
        if len(line) <= LINE_BYTES + 1:
            return line
        self.lines_cut += 1
        return line[:LINE_BYTES].decode("utf-8", "ignore").encode() + b"\n"


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
    """Blocks that end in a newline. A line that never ends is kept only as far as it can matter."""
    carry = b""
    for chunk in chunks:
        data = carry + chunk if carry else chunk
        end = data.rfind(b"\n") + 1
        if end:
            yield data[:end]
        carry = shortened(data[end:])
    if carry:
        yield carry + b"\n"


def shortened(line: bytes) -> bytes:
    """The start of a line that is still open: what a terminal would show, twice the bound at most.

    Bytes beyond are dropped as they come; one byte more than the bound is kept, so that the cut is counted.
    """
    if len(line) <= 4 * LINE_BYTES:
        return line
    turn = line.rfind(b"\r", 0, len(line) - 1)
    if turn >= 0:
        line = line[turn + 1 :]
    return line if len(line) <= 4 * LINE_BYTES else line[: 4 * LINE_BYTES]


def is_plain(block: bytes) -> bool:
    """Whether a block needs no cleaning: ASCII without control characters."""
    return block.isascii() and len(block.translate(None, _CONTROLS)) == len(block)


def cleaned(block: bytes) -> bytes:
    """A block with carriage returns folded and everything that is not text removed."""
    text = block.decode("utf-8", "replace")
    if "\r" in text:
        text = "\n".join([folded(line) for line in text.split("\n")])
    return clean(text).encode("utf-8", "replace")


def folded(line: str) -> str:
    """What a terminal still shows of a line with carriage returns: the last text that was written over the others."""
    if "\r" not in line:
        return line
    parts = [p for p in line.split("\r") if p]
    return parts[-1] if parts else ""


def read_lines(source: Source, last: int) -> list[str]:
    """The last lines of a text source, clean; for log tails."""
    tail: list[bytes] = []
    for block in TextBlocks(source):
        lines = block.split(b"\n")[:-1]
        tail = (tail + lines)[-last:] if last else []
    return [line.decode("utf-8", "replace") for line in tail]
