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
"""Lines kept for one row (the digest shows a dozen); further ones are dropped and counted in a note."""
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
    """One pattern that finds every line that one of the patterns would match; it may find more."""
    import re2  # lazily: only specs with regexes need it

    every_line = regex("(?m)^", combined=True)
    parts = [searchable(p) for p in patterns]
    if None in parts:
        return every_line
    try:
        return regex("(?m)" + "|".join(f"(?:{part})" for part in parts), combined=True)
    except re2.error:  # together they are more than RE2's memory: line by line, then
        return every_line


def searchable(pattern: str) -> str | None:
    """A pattern as it can be searched for in many lines at once: its groups without names (older RE2 refuses a name
    that stands twice). None when it asks where the text, not the line, begins or ends."""
    out, i, size = [], 0, len(pattern)
    while i < size:
        end = i + 1
        if pattern.startswith("\\Q", i):
            close = pattern.find("\\E", i)
            end = close + 2 if close >= 0 else size
        elif pattern[i] == "\\":
            end = i + 2
            if pattern[i + 1 : end] in ("A", "z", "C"):
                return None
        elif pattern[i] == "[":
            end = class_end(pattern, i)
        elif pattern.startswith(("(?P<", "(?<"), i):
            out.append("(?:")
            i = pattern.find(">", i) + 1
            continue
        elif pattern.startswith("(?", i):
            flags = pattern[i + 2 : i + 10].partition(":")[0].partition(")")[0]
            if "-" in flags or "m" in flags:
                return None
        out.append(pattern[i:end])
        i = end
    return "".join(out)


def class_end(pattern: str, start: int) -> int:
    """The position behind the character class that begins at ``start``."""
    i = start + 1
    if pattern.startswith("^", i):
        i += 1
    if pattern.startswith("]", i):
        i += 1
    while i < len(pattern) and pattern[i] != "]":
        close = pattern.find(":]", i) if pattern.startswith("[:", i) else -1
        i = close + 2 if close >= 0 else i + 2 if pattern[i] == "\\" else i + 1
    return i + 1


def hits(finder: Any, block: bytes) -> Iterator[tuple[int, int]]:
    """The lines of a block in which a pattern is found: (start, end), the end before the newline."""
    search, position, size = finder.search, 0, len(block)
    while position < size:
        found = search(block, position)
        if found is None:
            return
        if found.start() >= size:  # an empty match behind the last newline
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
        self.context: dict[Any, dict[str, Any]] = {}
        """What `set` said, by the value of `per`; under None what was said without one, which holds for all."""
        self.stacks: dict[Any, list[dict[str, Any]]] = {}
        self.open: dict[Any, dict[str, Any]] = {}
        self.current: Any = None
        self.overflow = ""
        self.details_dropped = 0
        self.headers: dict[tuple[Any, int], bytes] = {}
        """Lines that `set` took and under which no row was opened so far, by the value of `per` and the rule."""
        self.unexplained: Callable[[bytes], None] | None = None
        """Who wants to know of a header without a row: such a line says nothing, and may be anything."""

    def feed(self, block: bytes, taken: set[int] | None) -> None:
        """Take one block; the starts of the lines that a rule takes go into ``taken``."""
        expected = 0
        for start, end in hits(self.finder, block):
            if start > expected:
                self.untaken({})
            expected = end + 1
            if self.line(block[start:end], {}):
                if taken is not None:
                    taken.add(start)
            else:
                self.untaken({})
        if expected < len(block):
            self.untaken({})

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

    def untaken(self, prefix: dict[str, Any]) -> None:
        """A line that no rule took: with `otherwise: end` it closes the row it speaks of, all if it names none."""
        if self.otherwise_end:
            key = self.key_of(prefix)
            if key is None:
                self.close_all()
            else:
                self.close(key)

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
        elif verb in ("set", "unset"):
            self.set(rule, line, groups)
        elif verb == "push":
            self.push(groups)
        elif verb == "pop":
            stack = self.stacks.get(self.key_of(groups))
            if stack:
                stack.pop()
        elif verb == "end":
            self.close(self.key_of_open(groups))
        if rule.into and verb != "attach":
            row = self.row_for(groups)
            if row is not None:
                self.into_detail(row, line, groups)
        if rule.ends and verb != "end":
            self.close(self.key_of_open(groups))

    def key_of(self, groups: dict[str, Any]) -> Any:
        """The value of `per` on a line; None without one."""
        return groups.get(self.per) if self.per else None

    def key_of_open(self, groups: dict[str, Any]) -> Any:
        """Which open row a line speaks of: that of its own `per`, else the newest."""
        return groups[self.per] if self.per and self.per in groups else self.current

    def set(self, rule: Rule, line: bytes, groups: dict[str, Any]) -> None:
        """Sticky fields change: rows that are open do not get them."""
        key = self.key_of(groups)
        if rule.verb == "set" and self.unexplained is not None:
            before = self.headers.get((key, id(rule)))
            if before is not None:
                self.unexplained(before)
            self.headers[key, id(rule)] = line
        if key is None:
            self.close_all()
        else:
            self.close(key)
        held = self.context.get(key, {})
        if rule.verb == "set":
            self.context[key] = {**held, **groups}
        else:
            self.context[key] = {k: v for k, v in held.items() if rule.names and k not in rule.names}

    def new(self, groups: dict[str, Any]) -> None:
        """Open a row; the one that was open (for the same key) is done."""
        key = self.key_of(groups)
        if self.headers:
            self.headers = {of: line for of, line in self.headers.items() if of[0] not in (None, key)}
        self.close(key if self.per else self.current)
        row: dict[str, Any] = {}
        for of in (None, key) if key is not None else (None,):
            row.update(self.context.get(of, ()))
            for frame in self.stacks.get(of, ()):
                row.update(frame)
        for name, value in groups.items():
            if value is not None or name not in row:  # a group that took no part hides no header
                row[name] = value
        detail = row.pop("detail", None)
        if detail is not None:
            row["detail"] = [detail]
        self.open[key] = row
        self.current = key

    def row_for(self, groups: dict[str, Any]) -> dict[str, Any] | None:
        """The open row a line belongs to."""
        return self.open.get(self.key_of_open(groups))

    def push(self, groups: dict[str, Any]) -> None:
        """Enter a folder."""
        stack = self.stacks.setdefault(self.key_of(groups), [])
        if len(stack) >= MAX_STACK:
            self.overflow = f"a stack of more than {MAX_STACK} entries"
            return
        stack.append(groups)

    def into_detail(self, row: dict[str, Any], line: bytes, groups: dict[str, Any]) -> None:
        """Append the line (or the rule's own group `detail`) to the row."""
        own = groups.get("detail")
        detail = row.setdefault("detail", [])
        if len(detail) < MAX_DETAIL_LINES:
            detail.append(own if own is not None else line.decode("utf-8", "replace"))
        else:
            self.details_dropped += 1

    def close(self, key: Any) -> None:
        """The open row of a key is done."""
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
        if self.unexplained is not None:
            for line in self.headers.values():
                self.unexplained(line)


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

    def feed(
        self, block: bytes, readers: list[LineRows], taken: set[int] | None, left_out: Callable[[bytes], None]
    ) -> bytes:
        """Feed a block line by line without its prefixes; gives the block as the rules saw it."""
        kept = []
        start = 0
        for raw in block.split(b"\n")[:-1]:
            parts = self.split(raw)
            if parts is None:
                left_out(raw)
                continue
            line, fields = parts
            kept.append(line)
            for reader in readers:
                if reader.line(line, fields):
                    if taken is not None:
                        taken.add(start)
                else:
                    reader.untaken(fields)
            start += len(line) + 1
        return b"\n".join([*kept, b""])

    def concerns(self, block: bytes) -> bool:
        """Whether any line of a block is changed by taking prefixes off."""
        return self.only or self.finder.search(block) is not None

    def split(self, line: bytes) -> tuple[bytes, dict[str, Any]] | None:
        """A line without its prefix, and the prefix's fields; None for a line that is left out."""
        found = self.search(line)
        if found is not None:
            return line[found.end() :], groups_of(found, self.groups)
        return None if self.only else (line, {})


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
