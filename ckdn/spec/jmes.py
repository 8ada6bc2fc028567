"""JMESPath at load: text → checked syntax tree.

:func:`parse` is for extraction, :func:`parse_predicate` for conditions over a flat row. Whatever can be known to be
wrong without data is refused here with its offset: syntax, unknown functions, wrong arity, arguments of a type the
function never takes, slices with step 0 and, in predicates, every unknown name and every comparison that can never
hold. The `jmespath` library parses; :mod:`ckdn.engine.jmes` evaluates.

The tree is nested tuples of plain values (:mod:`marshal` takes it), the first item the kind::

    ("field", name, offset)      ("index", n)                ("slice", start, stop, step)     ("current", offset)
    ("literal", value, offset)   ("chain", (node, …))        ("and", (node, …))               ("or", (node, …))
    ("not", node)                ("cmp", op, left, right, offset)       op: eq ne lt lte gt gte
    ("flatten", base)            ("project", base, rhs)      ("values", base, rhs)       ("filter", base, rhs, test)
    ("list", (node, …))          ("dict", ((key, node), …))  ("call", name, (node, …), offset)
    ("expref", node, offset)     only as an argument
    ("option", name, offset)     ("rc", offset)              only in predicates

``offset`` is the 0-based place in the text as written. A chain hands each part's value to the next one.
"""

from __future__ import annotations

from ckdn.spec.jmes_check import OPERATORS, ROW, Checker, ExpressionError, PredicateChecker, bound_growth, shown
from ckdn.spec.jmes_functions import ANY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from ckdn.spec.jmes_check import Ast

__all__ = ["Ast", "ExpressionError", "names_used", "parse", "parse_predicate"]

MAX_LENGTH = 4096
"""Characters of one expression."""
MAX_DEPTH = 128
"""Levels of nesting (the official suite has 105)."""


def parse(text: str) -> Ast:
    """The tree of an extraction expression.

    Raises :class:`ExpressionError`.
    """
    _check_length(text)
    ast = _converted(text, lambda offset: offset)
    ast, _ = Checker().check(ast, ANY)
    bound_growth(ast)
    return ast


def parse_predicate(
    text: str,
    fields: Mapping[str, str | None],
    *,
    values: Mapping[str, tuple[Any, ...]] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Ast:
    """The tree of a predicate over a row.

    ``fields`` are the row's, with their types: ``string number boolean array object``, or None when not known (any may
    be absent, that is null); ``values`` gives the only values a field can have, where that is known; ``options`` are
    the declared ones with their JSON Schemas (``type`` and ``enum`` are heeded).

    The language is JMESPath in which a bare number and the words ``true false null`` are literals. Names are fields,
    ``options.<declared>`` and ``rc`` (which no field can shadow). A predicate that is the same for every row is
    refused, unless it is just ``true`` or ``false``. Raises :class:`ExpressionError`.
    """
    _check_length(text)
    source, where = _bare_literals(text)
    checker = PredicateChecker(fields, values or {}, options or {})
    ast, _ = checker.check(_converted(source, where), ROW)
    if not checker.touched and not (ast[0] == "literal" and isinstance(ast[1], bool)):
        raise ExpressionError("this predicate names no field, so it is the same for every row", 0)
    bound_growth(ast)
    return ast


def names_used(ast: Ast) -> frozenset[str]:
    """The names an expression reads from the value it is given: the root fields, not those further down."""
    return frozenset(_roots(ast))


def _roots(node: Ast) -> Iterator[str]:
    kind = node[0]
    if kind == "field":
        yield node[1]
    elif kind == "chain":
        yield from _roots(node[1][0])
    elif kind == "filter" or kind == "project" or kind == "values" or kind == "flatten" or kind == "not":
        yield from _roots(node[1])
    elif kind == "cmp":
        yield from _roots(node[2])
        yield from _roots(node[3])
    elif kind in ("and", "or", "list"):
        for part in node[1]:
            yield from _roots(part)
    elif kind == "dict":
        for _, part in node[1]:
            yield from _roots(part)
    elif kind == "call":
        for part in node[2]:
            yield from _roots(part)


# Text → tree, by the library


def _check_length(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression is longer than {MAX_LENGTH} characters", MAX_LENGTH)
    if not text.strip():
        raise ExpressionError("the expression is empty", 0)


def _converted(source: str, where: Callable[[int], int]) -> Ast:
    """``source`` parsed and converted; ``where`` maps its offsets to those of the text as written."""
    try:
        tree, tokens = _library_parse(source, where)
        return _Converter(tokens, where).convert(tree, 0)
    except RecursionError:
        raise ExpressionError(f"nested more than {MAX_DEPTH} deep") from None


def _library_parse(source: str, where: Callable[[int], int]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    # 38 ms, and only where an expression is not compiled ahead of time.
    import warnings

    from jmespath import exceptions, lexer, parser  # type: ignore[import-untyped, unused-ignore]

    tokens: list[dict[str, Any]] = []
    with warnings.catch_warnings():
        # `abc` in backticks is an old form of 'abc': the library warns, the official suite has it.
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        try:
            tokens += lexer.Lexer().tokenize(source)
            _bound_nesting(tokens, where)
            return parser.Parser().parse(source).parsed, tokens
        except exceptions.ParseError as error:
            raise _refusal(error, tokens, where, len(source)) from None


def _bound_nesting(tokens: list[dict[str, Any]], where: Callable[[int], int]) -> None:
    depth = prefixes = 0
    for token in tokens:
        kind = token["type"]
        prefixes = prefixes + 1 if kind in ("not", "expref") else 0
        if kind in ("lparen", "lbracket", "lbrace", "filter"):
            depth += 1
        elif kind in ("rparen", "rbracket", "rbrace"):
            depth -= 1
        if depth > MAX_DEPTH or prefixes > MAX_DEPTH:
            raise ExpressionError(f"nested more than {MAX_DEPTH} deep", where(token["start"]))


_WORD_MENDS = {"and": "write &&", "or": "write ||", "not": "write !", "in": "write contains(LIST, VALUE)"}


def _refusal(error: Any, tokens: list[dict[str, Any]], where: Callable[[int], int], end: int) -> ExpressionError:
    """The library's ParseError (any of them) as ours."""
    offset = error.lex_position
    if hasattr(error, "lexer_position"):
        what, mend = _lexer_refusal(error)
        return ExpressionError(what, where(offset), mend)
    if error.token_type is None or error.token_type == "EOF":
        return ExpressionError("the expression ends too early", where(end))
    if error.msg.startswith("Quoted identifier"):  # the library gives no place for this one
        at = next(i for i, t in enumerate(tokens) if t["type"] == "lparen" and tokens[i - 1]["type"][0] == "q")
        offset = tokens[at - 1]["start"]
        return ExpressionError("a function's name stands without quotes", where(offset))
    mend = ""
    if error.token_type == "NUMBER":
        after_dot = any(t["type"] == "dot" and t["end"] == offset for t in tokens)
        form = 'a name like this in double quotes: "{}"' if after_dot else "the number in backticks: `{}`"
        mend = f"write {form.format(error.token_value)}"
    elif error.token_type == "UNQUOTED_IDENTIFIER":
        previous = [t["value"] for t in tokens if t["end"] <= offset and t["type"] == "unquoted_identifier"][-1:]
        mend = next((_WORD_MENDS[w] for w in (error.token_value, *previous) if w in _WORD_MENDS), "")
    return ExpressionError(f"unexpected {shown(error.token_value)}", where(offset), mend)


def _lexer_refusal(error: Any) -> tuple[str, str]:
    message = error.message
    if message.startswith("Unclosed"):
        return f"the {error.token_value[:1]} is never closed", ""
    if message.startswith("Bad token"):
        return "what stands between backticks is no JSON", "write text in single quotes: 'text'"
    if message.startswith("Unknown token"):
        return f"unexpected {shown(error.token_value)}", "compare with ==" if error.token_value == "=" else ""
    return f"the quoted name is no JSON string ({message})", ""


class _Converter:
    """The library's tree as ours. Nodes are visited in the order of the text, so that each meets its token."""

    def __init__(self, tokens: list[dict[str, Any]], where: Callable[[int], int]) -> None:
        self._where = where
        self._fields: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []
        self._others: dict[str, list[dict[str, Any]]] = {"literal": [], "current": [], "expref": [], "cmp": []}
        following = [*tokens[1:], {"type": "eof"}]
        for token, after in zip(tokens, following, strict=True):
            kind = token["type"]
            if kind == "unquoted_identifier" and after["type"] == "lparen":
                self._calls.append(token)
            elif kind in ("unquoted_identifier", "quoted_identifier"):
                if after["type"] != "colon":  # else the key of a multi-select hash
                    self._fields.append(token)
            elif kind in OPERATORS:
                self._others["cmp"].append(token)
            elif kind in self._others:
                self._others[kind].append(token)
        for queue in (self._fields, self._calls, *self._others.values()):
            queue.reverse()

    def _offset(self, kind: str) -> int:
        return self._where(self._others[kind].pop()["start"])

    def convert(self, tree: dict[str, Any], depth: int) -> Ast:
        if depth > MAX_DEPTH:
            raise ExpressionError(f"nested more than {MAX_DEPTH} deep")
        method: Callable[[dict[str, Any], int], Ast] = getattr(self, "_" + tree["type"])
        return method(tree, depth + 1)

    def _field(self, tree: dict[str, Any], _depth: int) -> Ast:
        offset = self._where(self._fields.pop()["start"])
        return ("field", _clean(tree["value"], offset), offset)

    def _literal(self, tree: dict[str, Any], _depth: int) -> Ast:
        offset = self._offset("literal")
        return ("literal", _checked_literal(tree["value"], offset), offset)

    def _identity(self, _tree: dict[str, Any], _depth: int) -> Ast:
        return ("current", None)

    def _current(self, _tree: dict[str, Any], _depth: int) -> Ast:
        return ("current", self._offset("current"))

    def _index(self, tree: dict[str, Any], _depth: int) -> Ast:
        return ("index", tree["value"])

    def _slice(self, tree: dict[str, Any], _depth: int) -> Ast:
        start, stop, step = tree["children"]
        if step == 0:
            raise ExpressionError("a slice's step cannot be 0")
        return ("slice", start, stop, step)

    def _subexpression(self, tree: dict[str, Any], depth: int) -> Ast:
        parts: list[Ast] = []
        for child in _spine(tree, ("subexpression", "index_expression", "pipe")):
            part = self.convert(child, depth)
            parts += part[1] if part[0] == "chain" else (part,)
        # A part that hands on what it gets says nothing, save as the only one.
        parts = [part for part in parts if part[0] != "current"] or parts[:1]
        return parts[0] if len(parts) == 1 else ("chain", tuple(parts))

    _index_expression = _pipe = _subexpression

    def _or_expression(self, tree: dict[str, Any], depth: int) -> Ast:
        return ("or", tuple(self.convert(child, depth) for child in _spine(tree, ("or_expression",))))

    def _and_expression(self, tree: dict[str, Any], depth: int) -> Ast:
        return ("and", tuple(self.convert(child, depth) for child in _spine(tree, ("and_expression",))))

    def _not_expression(self, tree: dict[str, Any], depth: int) -> Ast:
        return ("not", self.convert(tree["children"][0], depth))

    def _comparator(self, tree: dict[str, Any], depth: int) -> Ast:
        left = self._operand(tree["children"][0], depth, last=False)
        offset = self._offset("cmp")
        return ("cmp", tree["value"], left, self._operand(tree["children"][1], depth, last=True), offset)

    def _operand(self, tree: dict[str, Any], depth: int, *, last: bool) -> Ast:
        """A side of a comparison; two ways to write a field where a literal is meant are refused, for the field is
        null and the comparison silently never holds."""
        if tree["type"] == "field":
            token, name = self._fields[-1], tree["value"]
            quoted, offset = token["type"] == "quoted_identifier", self._where(token["start"])
            if quoted and last:
                mend = f"write text in single quotes: '{name}' (or, if the field is meant, @.\"{name}\")"
                raise ExpressionError(f'"{name}" is the name of a field', offset, mend)
            if not quoted and name in ("true", "false"):
                mend = f"write `{name}` in backticks"
                raise ExpressionError(f"{name} is here the name of a field", offset, mend)
        return self.convert(tree, depth)

    def _flatten(self, tree: dict[str, Any], depth: int) -> Ast:
        return ("flatten", self.convert(tree["children"][0], depth))

    def _projection(self, tree: dict[str, Any], depth: int) -> Ast:
        base, rhs = (self.convert(child, depth) for child in tree["children"])
        return ("project", base, rhs)

    def _value_projection(self, tree: dict[str, Any], depth: int) -> Ast:
        base, rhs = (self.convert(child, depth) for child in tree["children"])
        return ("values", base, rhs)

    def _filter_projection(self, tree: dict[str, Any], depth: int) -> Ast:
        base, rhs, test = tree["children"]
        base, test, rhs = (self.convert(child, depth) for child in (base, test, rhs))  # the order of the text
        return ("filter", base, rhs, test)

    def _multi_select_list(self, tree: dict[str, Any], depth: int) -> Ast:
        return ("list", tuple(self.convert(child, depth) for child in tree["children"]))

    def _multi_select_dict(self, tree: dict[str, Any], depth: int) -> Ast:
        pairs = tree["children"]
        return ("dict", tuple((_clean(p["value"], None), self.convert(p["children"][0], depth)) for p in pairs))

    def _function_expression(self, tree: dict[str, Any], depth: int) -> Ast:
        offset = self._where(self._calls.pop()["start"])
        return ("call", tree["value"], tuple(self.convert(child, depth) for child in tree["children"]), offset)

    def _expref(self, tree: dict[str, Any], depth: int) -> Ast:
        offset = self._offset("expref")
        return ("expref", self.convert(tree["children"][0], depth), offset)


def _spine(tree: dict[str, Any], kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    """``a | b | c`` comes as (a | b) | c, as deep as it is long: its parts from left to right."""
    parts: list[dict[str, Any]] = []
    while tree["type"] in kinds:
        tree, *rest = tree["children"]
        parts += reversed(rest)
    return [tree, *reversed(parts)]


def _checked_literal(value: Any, offset: int) -> Any:
    pending = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise ExpressionError(f"nested more than {MAX_DEPTH} deep", offset)
        if isinstance(item, float) and not abs(item) < float("inf"):
            raise ExpressionError(f"{item} is no JSON number", offset)
        if isinstance(item, str):
            _clean(item, offset)
        elif isinstance(item, list):
            pending += [(part, depth + 1) for part in item]
        elif isinstance(item, dict):
            pending += [(part, depth + 1) for pair in item.items() for part in pair]
    return value


def _clean(text: str, offset: int | None) -> str:
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise ExpressionError("half of a surrogate pair is no character", offset)
    if "\0" in text:
        raise ExpressionError("no text that ckdn reads has a NUL character", offset)
    return text


# Bare literals in predicates


def _bare_literals(text: str) -> tuple[str, Callable[[int], int]]:
    """``text`` with backticks around each bare number and ``true false null``, and the way back for offsets."""
    out: list[str] = []
    inserted: list[int] = []  # offsets of our backticks in the new text
    i = length = 0
    while i < len(text):
        end, literal = _lexeme(text, i)
        piece = text[i:end]
        if literal:
            inserted += (length, length + len(piece) + 1)
            piece = f"`{piece}`"
        out.append(piece)
        length += len(piece)
        i = end
    return "".join(out), lambda offset: offset - sum(1 for at in inserted if at < offset)


def _lexeme(text: str, start: int) -> tuple[int, bool]:
    """Where the lexeme that begins at ``start`` ends, and whether it is a bare literal."""
    char, end = text[start], start + 1
    if char in "'\"`":
        while end < len(text) and text[end] != char:
            end += 2 if text[end] == "\\" else 1
        return min(end + 1, len(text)), False
    before = text[:start].rstrip()[-1:]
    if _is_word(char) and not char.isdigit():
        while end < len(text) and _is_word(text[end]):
            end += 1
        after = text[end:].lstrip()[:1]
        return end, text[start:end] in ("true", "false", "null") and before != "." and after != "("
    if _is_digit(char) or (char == "-" and _is_digit(text[end : end + 1])):
        end = _number_end(text, start)
        digits = text[start:end].lstrip("-")
        if len(digits) > 1 and digits[0] == "0" and _is_digit(digits[1]):
            raise ExpressionError(f"{text[start:end]} has a leading zero", start, "write the number as JSON has it")
        if not abs(float(text[start:end])) < float("inf"):
            raise ExpressionError("this number is too large", start)
        # [0], [1:2], [:3] keep their meaning; [1, 2] is a list of literals.
        return end, not (before in ("[", ":") and text[end:].lstrip()[:1] in ("]", ":"))
    return end, False


def _number_end(text: str, start: int) -> int:
    def digits(at: int) -> int:
        while _is_digit(text[at : at + 1]):
            at += 1
        return at

    end = digits(start + 1)
    if text[end : end + 1] == "." and _is_digit(text[end + 1 : end + 2]):
        end = digits(end + 1)
    if text[end : end + 1] in ("e", "E"):
        power = end + 2 if text[end + 1 : end + 2] in ("+", "-") else end + 1
        if _is_digit(text[power : power + 1]):
            end = digits(power)
    return end


def _is_digit(char: str) -> bool:
    return char.isascii() and char.isdigit()


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")
