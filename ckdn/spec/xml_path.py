"""The XPath subset by which xml rows are streamed: ``/a/b`` or ``//name``, predicates on attributes."""

from __future__ import annotations

from ckdn.model import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FUNCTIONS = (
    "last", "position", "count", "id", "local-name", "namespace-uri", "name", "string", "concat", "starts-with",
    "contains", "substring-before", "substring-after", "substring", "string-length", "normalize-space", "translate",
    "boolean", "not", "true", "false", "lang", "number", "sum", "floor", "ceiling", "round",
)  # fmt: skip
"""XPath 1.0's own functions."""
NODE_TESTS = ("node", "text", "comment", "processing-instruction")
OUTWARD_AXES = ("ancestor", "ancestor-or-self", "attribute", "parent", "self")
INWARD_FUNCTIONS = ("last", "position", "id", "lang")
"""Functions that ask for more than the element's own attributes."""
OWN_TEXT = ("string", "string-length", "normalize-space", "number")
"""Functions that without an argument take the element's text."""


ATTRIBUTES = "only attributes are known when an element opens: make the rest a field and ask it in `where`"


class StreamPathError(ValueError):
    """The path is no path of ours."""

    def __init__(self, what: str, offset: int | None = None, mend: str = "") -> None:
        super().__init__(what)
        self.offset = offset
        """0-based place in the text; None when not known."""
        self.mend = mend


class PathStep(Struct):
    """``name`` (or ``*``) with its predicates, as written between the brackets; ``anywhere`` after ``//``."""

    name: str
    anywhere: bool
    predicates: tuple[str, ...] = ()


def parse(text: str) -> tuple[tuple[PathStep, ...], ...]:
    """A union (``|``) of paths, each a tuple of steps from the root to the element."""
    return tuple(parse_one(part.strip()) for part in split_outside_brackets(text, "|"))


def parse_one(text: str) -> tuple[PathStep, ...]:
    """One path."""
    if not text.startswith("/"):
        raise StreamPathError(f"`{text}` does not start at the root", 0, "write /a/b or //name")
    steps, i = [], 0
    while i < len(text):
        anywhere = text.startswith("//", i)
        i += 2 if anywhere else 1
        end = i
        while end < len(text) and (text[end].isalnum() or text[end] in "_-.*"):
            end += 1
        name, i = text[i:end], end
        if not name or (name != "*" and not (name[0].isalpha() or name[0] == "_")):
            raise StreamPathError(
                f"`{text}` has no element name at character {end - len(name) + 1}",
                end - len(name),
                "write /a/b or //name",
            )
        predicates = []
        while i < len(text) and text[i] == "[":
            close = closing(text, i)
            predicates.append(checked(text[i + 1 : close]))
            i = close + 1
        if i < len(text) and text[i] != "/":
            raise StreamPathError(
                f"`{text}` has `{text[i]}` where / or [ could stand", i, "rows start with /a/b or //name"
            )
        steps.append(PathStep(name, anywhere, tuple(predicates)))
    return tuple(steps)


def checked(predicate: str) -> str:
    """A predicate that only looks at attributes, which are known when the element opens."""
    words = list(tokens(predicate))
    looks = False
    for i, (_, word) in enumerate(words):
        before = words[i - 1][1] if i else ""
        after = words[i + 1][1] if i + 1 < len(words) else ""
        if word[0].isalpha() or word[0] == "_" or word == "*":
            looks = looks or before in ("@", "::") or after == "("
            if not attribute_word(word, before, after, words[i + 2][1] if i + 2 < len(words) else ""):
                raise StreamPathError(
                    f"the predicate [{predicate}] looks at more than attributes, at `{word}`", mend=ATTRIBUTES
                )
        elif word == ".":
            raise StreamPathError(f"the predicate [{predicate}] looks at the element's text", mend=ATTRIBUTES)
    if not looks:
        raise StreamPathError(f"the predicate [{predicate}] looks at no attribute", mend=ATTRIBUTES)
    return predicate


def attribute_word(word: str, before: str, after: str, then: str) -> bool:
    """Whether a word of a predicate is known when the element opens."""
    if before in ("@", "::"):
        return True
    if after == "::":
        return word in OUTWARD_AXES
    if after == "(":
        return word not in INWARD_FUNCTIONS and word not in NODE_TESTS and not (word in OWN_TEXT and then == ")")
    return word in ("and", "or", "div", "mod", "*") and before not in ("", "(", "[", ",", "/")


def tokens(text: str) -> Iterator[tuple[int, str]]:
    """The words and marks of an XPath with their offsets; quoted texts as ``''``."""
    i = 0
    while i < len(text):
        c = text[i]
        end = i + 1
        if c in "'\"":
            close = text.find(c, end)
            end = len(text) if close < 0 else close + 1
            yield i, "''"
        elif c.isalnum() or c == "_":
            while end < len(text) and (text[end].isalnum() or text[end] in "_-."):
                end += 1
            yield i, text[i:end]
        elif not c.isspace():
            if text[i : i + 2] in ("::", "//", "..", "!=", "<=", ">="):
                end += 1
            yield i, text[i:end]
        i = end


def check_names(text: str) -> None:
    """Refuse what XPath would only notice when it gets there: unknown functions, prefixes, variables."""
    words = list(tokens(text))
    for i, (offset, word) in enumerate(words):
        after = words[i + 1][1] if i + 1 < len(words) else ""
        if word == "$":
            raise StreamPathError("there are no variables", offset, "write the text in quotes")
        if word == ":":
            mend = "names are compared without namespaces: leave the prefix out"
            raise StreamPathError("a namespace prefix is not known", offset, mend)
        named = word[0].isalpha() or word[0] == "_"
        if named and after == "(" and word not in FUNCTIONS and word not in NODE_TESTS:
            operator = word in ("and", "or", "div", "mod") and i > 0
            if not operator:
                from ckdn.errors import near  # on the error path

                raise StreamPathError(f"unknown function {word}()", offset, near(word, FUNCTIONS))


def last_step(text: str) -> str:
    """The last step of a path, without its predicates."""
    part = split_outside_brackets(text, "|")[-1]
    return split_outside_brackets(part, "/")[-1].partition("[")[0].strip()


def closing(text: str, start: int) -> int:
    """The index of the bracket that closes the one at ``start``."""
    depth, quote = 0, ""
    for i in range(start, len(text)):
        c = text[i]
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c == "[":
            depth += 1
        elif c == "]":
            depth -= 1
            if depth == 0:
                return i
    raise StreamPathError(f"`{text}` has a bracket that is not closed", start)


def split_outside_brackets(text: str, separator: str) -> list[str]:
    """``text`` split at a character that is neither in brackets nor quoted."""
    parts, current, depth, quote = [], "", 0, ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "[]":
            depth += 1 if c == "[" else -1
        elif c == separator and depth == 0:
            parts.append(current)
            current = ""
            continue
        current += c
    return [*parts, current]
