"""Text rules: lines in, rows out.

A block of lines is first searched with all of a row set's patterns at once, so that the many lines no rule takes cost
almost nothing; only the lines found are tried rule by rule, in order.
"""

from __future__ import annotations

from ckdn.engine.rows import predicate
from ckdn.spec.types import INTEGER_FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ckdn.engine.fields import Context
    from ckdn.spec.types import LineRule, Lines, Number, Prefix

MAX_STACK = 64
MAX_DETAIL_LINES = 2000
"""Lines kept for one row (the digest shows a dozen); further ones are dropped and counted in the row's last line."""
REGEX_MEMORY = 64 << 20


def regex(pattern: str, *, combined: bool = False) -> Any:
    """A RE2 pattern over UTF-8 lines; ``combined`` ones are only asked whether and where they match."""
    import re2  # lazily: only specs with regexes need it

    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    options.max_mem = REGEX_MEMORY
    if combined:
        options.never_capture = True
    return re2.compile(pattern.encode(), options)


def group_numbers(compiled: Any) -> tuple[tuple[str, int], ...]:
    """The named groups of a pattern over bytes, with their numbers (its own index has bytes for names)."""
    found = compiled.groupindex.items()
    return tuple((k.decode() if isinstance(k, bytes) else str(k), number) for k, number in found)


def any_of(patterns: list[str]) -> Any:
    """One pattern that finds every line that one of the patterns would match."""
    return regex("(?m)" + "|".join(f"(?:{without_names(p)})" for p in patterns), combined=True)


def without_names(pattern: str) -> str:
    """A pattern whose named groups are plain ones (RE2 refuses a name that stands twice)."""
    out, rest = "", pattern
    while (start := rest.find("(?P<")) >= 0:
        end = rest.find(">", start)
        if start and rest[start - 1] == "\\" and (len(rest[:start]) - len(rest[:start].rstrip("\\"))) % 2:
            out, rest = out + rest[:end], rest[end:]
            continue
        out, rest = out + rest[:start] + "(?:", rest[end + 1 :]
    return out + rest


def hits(finder: Any, block: bytes) -> Iterator[tuple[int, int]]:
    """The lines of a block in which a pattern is found: (start, end), the end before the newline."""
    search, position, size = finder.search, 0, len(block)
    while position < size:
        found = search(block, position)
        if found is None:
            return
        start = block.rfind(b"\n", 0, found.start()) + 1
        end = block.find(b"\n", found.start())
        if end < 0:
            end = size
        yield max(start, position), end
        position = end + 1


class Rule:
    """A rule with its compiled pattern."""

    __slots__ = ("ends", "groups", "into", "join", "last", "names", "needs_row", "search", "verb", "where")

    def __init__(self, rule: LineRule, where: Callable[[dict[str, Any]], bool] | None) -> None:
        self.verb = rule.verb
        self.needs_row = rule.verb in ("add", "attach", "end")
        compiled = regex(rule.pattern)
        self.search = compiled.search
        self.groups = group_numbers(compiled)
        self.into = rule.into
        self.ends = rule.ends
        self.last = rule.last
        self.join = rule.join
        self.where = where
        self.names = rule.names


class LineRows:
    """The state of one row set's rules over one input, block after block."""

    def __init__(self, lines: Lines, context: Context, emit: Callable[[dict[str, Any]], None]) -> None:
        self.rules = [Rule(rule, predicate(rule.where, context)) for rule in lines.rules]
        self.emit = emit
        self.per = lines.per
        self.otherwise_end = lines.otherwise_end
        self.start = regex(lines.start).search if lines.start else None
        self.stop = regex(lines.stop).search if lines.stop else None
        patterns = [rule.pattern for rule in lines.rules]
        patterns += [p for p in (lines.start, lines.stop) if p]
        self.finder = any_of(patterns)
        self.active = self.start is None
        self.context: dict[str, Any] = {}
        self.stack: list[dict[str, Any]] = []
        self.open: dict[Any, dict[str, Any]] = {}
        self.current: Any = None
        self.overflow = ""

    def feed(self, block: bytes, taken: set[int] | None) -> None:
        """Take one block; the starts of the lines that a rule takes go into ``taken``."""
        expected = 0
        for start, end in hits(self.finder, block):
            if start > expected and self.otherwise_end:
                self.close_all()
            expected = end + 1
            if self.line(block[start:end], {}):
                if taken is not None:
                    taken.add(start)
            elif self.otherwise_end:
                self.close_all()
        if expected < len(block) and self.otherwise_end:
            self.close_all()

    def line(self, line: bytes, prefix: dict[str, Any]) -> bool:
        """Take one line; whether a rule took it."""
        if not self.in_range(line):
            return False
        for rule in self.rules:
            if rule.needs_row and not self.open:
                continue
            found = rule.search(line)
            if found is not None:
                groups = {**prefix, **groups_of(found, rule.groups)} if rule.groups else dict(prefix)
                if rule.needs_row:
                    row = self.row_for(groups)
                    if row is None or (rule.where is not None and not rule.where(row)):
                        continue
                self.apply(rule, line, groups)
                return True
        return False

    def in_range(self, line: bytes) -> bool:
        """Whether the line lies between start and stop (the two lines themselves do not)."""
        if self.active:
            if self.stop is not None and self.stop(line) is not None:
                self.close_all()
                self.active = self.start is None
                if self.start is None:
                    self.stop, self.active = None, False
                return False
            return True
        if self.start is not None and self.start(line) is not None:
            self.active = True
        return False

    def apply(self, rule: Rule, line: bytes, groups: dict[str, Any]) -> None:
        """What a rule's verb does."""
        verb = rule.verb
        if verb == "new":
            self.new(groups)
        elif verb in ("add", "attach"):
            row = self.row_for(groups)
            if row is not None and verb == "attach":
                self.into_detail(row, line, groups)
            elif row is not None:
                fill(row, groups, rule)
        elif verb == "set":
            self.close_all()
            self.context = {**self.context, **groups}
        elif verb == "unset":
            self.close_all()
            self.context = {k: v for k, v in self.context.items() if rule.names and k not in rule.names}
        elif verb == "push":
            self.push(groups)
        elif verb == "pop":
            if self.stack:
                self.stack.pop()
        elif verb == "end":
            self.close(groups)
        if rule.into and verb != "attach":
            row = self.row_for(groups)
            if row is not None:
                self.into_detail(row, line, groups)
        if rule.ends and verb != "end":
            self.close(groups)

    def key_of(self, groups: dict[str, Any]) -> Any:
        """Which open row a line speaks of."""
        return groups.get(self.per) if self.per else None

    def new(self, groups: dict[str, Any]) -> None:
        """Open a row; the one that was open (for the same key) is done."""
        key = self.key_of(groups)
        self.close(groups)
        row = dict(self.context)
        for frame in self.stack:
            row.update(frame)
        row.update(groups)
        detail = row.pop("detail", None)
        if detail is not None:
            row["detail"] = [detail]
        self.open[key] = row
        self.current = key

    def row_for(self, groups: dict[str, Any]) -> dict[str, Any] | None:
        """The open row a line belongs to."""
        key = groups.get(self.per) if self.per and self.per in groups else self.current
        return self.open.get(key)

    def push(self, groups: dict[str, Any]) -> None:
        """Enter a folder."""
        if len(self.stack) >= MAX_STACK:
            self.overflow = f"a stack of more than {MAX_STACK} entries"
            return
        self.stack.append(groups)

    def into_detail(self, row: dict[str, Any], line: bytes, groups: dict[str, Any]) -> None:
        """Append the line (or the rule's own group `detail`) to the row."""
        own = groups.get("detail")
        detail = row.setdefault("detail", [])
        if len(detail) < MAX_DETAIL_LINES:
            detail.append(own if own is not None else line.decode("utf-8", "replace"))

    def close(self, groups: dict[str, Any]) -> None:
        """The open row of a line's key is done."""
        key = self.key_of(groups) if self.per else self.current
        row = self.open.pop(key, None)
        if row is not None:
            self.emit(row)

    def close_all(self) -> None:
        """Every open row is done, in the order in which they were opened."""
        while self.open:
            self.emit(self.open.pop(next(iter(self.open))))

    def finish(self) -> None:
        """The input is at its end."""
        self.close_all()


def fill(row: dict[str, Any], groups: dict[str, Any], rule: Rule) -> None:
    """Add fields to a row: the first value stays, unless the rule says that the last does, or that texts are joined."""
    for name, value in groups.items():
        held = row.get(name)
        if value is None:
            continue
        if rule.join and isinstance(held, str):
            row[name] = f"{held} {value}".strip()
        elif rule.last or held is None:
            row[name] = value


def groups_of(found: Any, groups: tuple[tuple[str, int], ...]) -> dict[str, Any]:
    """The named groups of a match as fields: text, or an integer for places; what took no part is absent."""
    fields: dict[str, Any] = {}
    for name, number in groups:
        value = found.group(number)
        if value is None:
            fields[name] = None
        elif name in INTEGER_FIELDS:
            digits = bytes(value)
            fields[name] = int(digits) if digits.isdigit() and len(digits) < 18 else None
        else:
            fields[name] = bytes(value).decode("utf-8", "replace")
    return fields


class Prefixed:
    """Takes a prefix off each line of a block before any rule sees it."""

    def __init__(self, prefix: Prefix) -> None:
        compiled = regex(f"^(?:{prefix.match})")
        self.search = compiled.search
        self.groups = group_numbers(compiled)
        self.finder = any_of([f"^(?:{prefix.match})"])
        self.only = prefix.only

    def concerns(self, block: bytes) -> bool:
        """Whether any line of a block is changed by taking prefixes off."""
        return self.only or self.finder.search(block) is not None

    def lines(self, block: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """Each line without its prefix, and the prefix's fields."""
        for line in block.split(b"\n")[:-1]:
            found = self.search(line)
            if found is not None:
                yield line[found.end() :], groups_of(found, self.groups)
            elif not self.only:
                yield line, {}


class Matched:
    """The numbers of one ``declared`` pattern."""

    def __init__(self, numbers: list[Number]) -> None:
        self.names = [n.name for n in numbers]
        self.take = numbers[0].take
        compiled = regex(numbers[0].pattern)
        self.search = compiled.search
        self.groups = group_numbers(compiled)
        self.finder = any_of([numbers[0].pattern])
        self.values: dict[str, int | float] = {}
        self.problem = ""

    def feed(self, block: bytes) -> None:
        """Look through one block."""
        for start, end in hits(self.finder, block):
            found = self.search(block[start:end])
            if found is not None:
                for name, number in self.groups:
                    value = found.group(number)
                    if value is not None:
                        self.found(name, bytes(value).decode("utf-8", "replace"))

    def found(self, name: str, text: str) -> None:
        """One value as the tool prints it."""
        if self.take == "count":
            self.values[name] = self.values.get(name, 0) + 1
            return
        number = read_number(text)
        if number is None:
            self.problem = self.problem or f"the declared number `{name}` cannot be read: `{text[:40]}`"
        elif self.take == "sum":
            self.values[name] = self.values.get(name, 0) + number
        else:
            self.values[name] = number


def read_number(text: str) -> int | float | None:
    """A plain integer or decimal; None when the text is something else."""
    text = text.strip()
    if not text.isascii() or len(text) > 40:
        return None
    if text.isdigit():
        return int(text)
    whole, dot, part = text.partition(".")
    if dot and (whole.isdigit() or not whole) and part.isdigit():
        return float(text)
    return None


class Seen:
    """Whether a pattern of the proof is found in an input."""

    def __init__(self, pattern: str) -> None:
        self.finder = any_of([pattern])
        self.search = regex(pattern).search
        self.line = ""
        self.found = False

    def feed(self, block: bytes) -> None:
        """Look through one block."""
        if self.found:
            return
        for start, end in hits(self.finder, block):
            if self.search(block[start:end]) is not None:
                self.found = True
                self.line = block[start:end].decode("utf-8", "replace")
                return
