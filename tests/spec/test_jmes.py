"""JMESPath at load: what is refused, where, and what the message says."""

from __future__ import annotations

import marshal
import warnings
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckdn.spec.jmes import MAX_LENGTH, ExpressionError, names_used, parse, parse_predicate

FIELDS = {
    "line": "number",
    "column": "number",
    "path": "string",
    "severity": "string",
    "ok": "boolean",
    "tags": "array",
    "extra": None,
}
VALUES = {"severity": ("error", "warning", "info"), "column": (1, 2)}
OPTIONS = {
    "limit": {"type": "integer"},
    "mode": {"type": "string", "enum": ["strict", "lax"]},
    "either": {"type": ["string", "number"]},
    "free": {},
}


def predicate(text: str) -> object:
    return parse_predicate(text, FIELDS, values=VALUES, options=OPTIONS)


def test_the_tree_is_plain_and_carries_offsets() -> None:
    tree = parse("rows[?kind == 'x'].{n: length(name)}")
    assert tree == (
        "filter",
        ("field", "rows", 0),
        ("dict", (("n", ("call", "length", (("field", "name", 30),), 23)),)),
        ("cmp", "eq", ("field", "kind", 6), ("literal", "x", 14), 11),
    )
    assert marshal.loads(marshal.dumps(tree)) == tree


def test_paths_are_flat() -> None:
    assert parse("a.b[0] | c") == ("chain", (("field", "a", 0), ("field", "b", 2), ("index", 0), ("field", "c", 9)))
    assert parse("@") == ("current", 0)
    assert parse("@ | a") == ("field", "a", 4)
    assert parse("a || b || c")[0] == "or"
    assert len(parse("a || b || c")[1]) == 3


def test_json_literals_survive_marshal() -> None:
    tree = parse('`{"a": [1, 2.5, true, null, "é"]}`')
    assert marshal.loads(marshal.dumps(tree)) == ("literal", {"a": [1, 2.5, True, None, "é"]}, 0)


def test_the_librarys_old_literals_are_read_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse("`error`") == ("literal", "error", 0)


@pytest.mark.parametrize(
    ("text", "message", "offset", "mend"),
    [
        ("", "the expression is empty", 0, ""),
        ("  ", "the expression is empty", 0, ""),
        ("a.", "the expression ends too early", 2, ""),
        ("a[?b", "the expression ends too early", 4, ""),
        ("a b", "unexpected 'b'", 2, ""),
        ("a and b", "unexpected 'and'", 2, "write &&"),
        ("a or b", "unexpected 'or'", 2, "write ||"),
        ("not a", "unexpected 'a'", 4, "write !"),
        ("a = 'b'", "unexpected '='", 2, "compare with =="),
        ("a[?b > 0]", "unexpected 0", 7, "write the number in backticks: `0`"),
        ("a.0", "unexpected 0", 2, 'write a name like this in double quotes: "0"'),
        ("a == 'b", "the ' is never closed", 5, ""),
        ('a == `{"b`', "what stands between backticks is no JSON", 5, "write text in single quotes: 'text'"),
        ('"\\x"', "the quoted name is no JSON string (Invalid \\escape)", 0, ""),
        ('a."length"(b)', "a function's name stands without quotes", 2, ""),
        ("a[::0]", "a slice's step cannot be 0", None, ""),
        ("x || lenght(y)", "unknown function lenght()", 5, "did you mean length?"),
        ("length()", "length() takes 1 argument, not 0", 0, ""),
        ("join(a)", "join() takes 2 arguments, not 1", 0, ""),
        ("not_null()", "not_null() takes at least 1 argument, not 0", 0, ""),
        ("a && abs('x')", "abs() takes a number, not a string", 5, ""),
        ("sum(length(a))", "sum() takes an array of numbers, not a number", 0, ""),
        ('sum(`[1, "a"]`)', "sum() takes an array of numbers, not one that holds number and string", 0, ""),
        ("max(`[true]`)", "max() takes an array of numbers or of strings, not one that holds boolean", 0, ""),
        ("sort_by(a, b)", "sort_by() takes an expression here", 0, "write & before it"),
        ("sort_by(&b, a)", "& stands only where a function takes an expression: sort_by(list, &field)", 8, ""),
        ("&a", "& stands only where a function takes an expression: sort_by(list, &field)", 0, ""),
        ("map(&&a, b)", "unexpected '&&'", 4, ""),
        ("map(& &a, b)", "& stands only where a function takes an expression: sort_by(list, &field)", 6, ""),
        (
            'a[?b == "error"]',
            '"error" is the name of a field',
            8,
            "write text in single quotes: 'error' (or, if the field is meant, @.\"error\")",
        ),
        ("a[?b == false]", "false is here the name of a field", 8, "write `false` in backticks"),
        ("a[?true != b]", "true is here the name of a field", 3, "write `true` in backticks"),
        ("length(a).b", ".b of a number is always null", 10, ""),
        ("a[*].{x: y}.x", ".x of an array or null is always null", 12, "say which items: [0] for one, [*] for all"),
        ("keys(a).b", ".b of an array is always null", 8, "say which items: [0] for one, [*] for all"),
        ("'text'[0]", "[0] of a string is always null", None, ""),
        ("to_string(a)[]", "[] of a string is always null", None, ""),
        ("`NaN`", "nan is no JSON number", 0, ""),
        ("`[1e999]`", "inf is no JSON number", 0, ""),
        ('`"\\ud800"`', "half of a surrogate pair is no character", 0, ""),
        ('{"\\u0000x": a}', "no text that ckdn reads has a NUL character", None, ""),
        (" | ".join(["[@, @]"] * 13), "the result can repeat its input more than 4096 times", None, "build less of it"),
        ("[*]" + ".[@, @, @][]" * 8, "the result can repeat its input more than 4096 times", None, "build less of it"),
    ],
)
def test_refusals(text: str, message: str, offset: int | None, mend: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert (str(caught.value), caught.value.offset, caught.value.mend) == (message, offset, mend)


def test_length_is_bounded() -> None:
    assert parse("a" * MAX_LENGTH)
    with pytest.raises(ExpressionError, match="longer than 4096 characters"):
        parse("a" * (MAX_LENGTH + 1))
    with pytest.raises(ExpressionError, match="longer than 4096 characters"):
        predicate("1" * 10_000_000)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 4000,
        "[" * 4000,
        "{a:" * 1300,
        "!" * 4000 + "a",
        "map(&" * 800,
        "a" + "[*]" * 1300,
        "a" + "[]" * 2000,
        "*" + ".*" * 2000,
        "a" + "[?a" * 1000 + "]" * 1000,
        "a" + "==a" * 1300,
        "`" + "[" * 2000 + "]" * 2000 + "`",
        "`" + "[" * 500 + "]" * 500 + "`",
        "a[?" + "a && (" * 500 + "a" + ")" * 500 + "]",
    ],
)
def test_nesting_is_bounded(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"^nested more than 128 deep$"):
        parse(text)
    with pytest.raises(ExpressionError):
        predicate(text)


def test_long_chains_are_not_deep() -> None:
    for joint in ("|", "||", "&&", "."):
        assert len(parse(joint.join(["a"] * 1000))[1]) == 1000
    assert len(parse("a" + "[0]" * 1000)[1]) == 1001


@settings(max_examples=1000, deadline=None)
@given(st.lists(st.sampled_from([*"ab.*[]{}()|&!<>=@,:'\"`?0-1 \\", "true", "length(", "[?", "==", "options.", "rc"])))
def test_any_text_is_a_tree_or_a_located_refusal(pieces: list[str]) -> None:
    text = "".join(pieces)
    for read in (parse, predicate):
        tree, refusal = attempt(read, text)
        if refusal:
            assert "\n" not in str(refusal)
            assert refusal.offset is None or 0 <= refusal.offset <= len(text)
        else:
            assert marshal.loads(marshal.dumps(tree)) == tree


def attempt(read: Callable[[str], object], text: str) -> tuple[object, ExpressionError | None]:
    try:
        return read(text), None
    except ExpressionError as refusal:
        return None, refusal


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", {"a"}),
        ("a.b[0].c", {"a"}),
        ("a[?b == c].d", {"a"}),
        ("a[*].b || c.*.d", {"a", "c"}),
        ("{x: a, y: [b, c]}", {"a", "b", "c"}),
        ("sort_by(a, &b)[0].c", {"a"}),
        ("!a && length(b) > `1`", {"a", "b"}),
        ("a[].b | [0]", {"a"}),
        ("@.a", {"a"}),
        ("'a'", set()),
        ("@", set()),
    ],
)
def test_names_used(text: str, names: set[str]) -> None:
    assert names_used(parse(text)) == names


def test_names_used_by_a_predicate_are_the_rows() -> None:
    assert names_used(predicate("line > options.limit && tags[?x > 0] || rc == 1")) == {"line", "tags"}


# Predicates


def test_bare_literals() -> None:
    assert predicate("line > 0") == ("cmp", "gt", ("field", "line", 0), ("literal", 0, 7), 5)
    assert predicate("-1<line")[2:4] == (("literal", -1, 0), ("field", "line", 3))
    assert predicate("extra == -1.5e2")[3] == ("literal", -150.0, 9)
    assert predicate("extra == null || extra == true")[1][1][3] == ("literal", True, 26)
    assert predicate("contains([1, 2], column)")[2][0] == ("list", (("literal", 1, 10), ("literal", 2, 13)))
    assert predicate("contains(`[1]`, column)")[2][0] == ("literal", [1], 9)
    assert predicate("tags[0] == 'x1'")[2] == ("chain", (("field", "tags", 0), ("index", 0)))
    assert predicate("tags[1:2]")[1][1][1] == ("slice", 1, 2, None)
    assert predicate("tags[?x > 0]")[3][3] == ("literal", 0, 10)
    assert predicate("extra.null")[1][1] == ("field", "null", 6)
    assert predicate("true") == ("literal", True, 0)


def test_the_scope() -> None:
    assert predicate("rc != 0")[2] == ("rc", 0)
    assert predicate("line > options.limit")[3] == ("option", "limit", 7)
    assert predicate("options.free.deep == 1")[2] == ("chain", (("option", "free", 0), ("field", "deep", 13)))
    # Inside a filter, names are the element's.
    assert predicate("tags[?rc == 1]")[3][2] == ("field", "rc", 6)


def test_a_quoted_name_is_a_field() -> None:
    tree = parse_predicate('"null" == 1 && "odd name"', {"null": "number", "odd name": "string"})
    assert tree[1][0][2] == ("field", "null", 0)


@pytest.mark.parametrize(
    ("text", "message", "offset", "mend"),
    [
        ("", "the expression is empty", 0, ""),
        ("ok && sevrity == 'error'", "the row has no field 'sevrity'", 6, "did you mean severity?"),
        (
            "nothing",
            "the row has no field 'nothing'",
            0,
            "known: column, extra, line, ok, options, path, rc, severity, tags",
        ),
        ("line > option.limit", "the row has no field 'option'", 7, "did you mean options?"),
        ("line > options.limt", "the spec declares no option 'limt'", 7, "did you mean limit?"),
        ("options", "options is no value: name one of them", 0, "known: either, free, limit, mode"),
        ("options[0]", "options is no value: name one of them", 0, "known: either, free, limit, mode"),
        ("options.*", "options is no value: name one of them", 0, "known: either, free, limit, mode"),
        ('severity == "error"', '"error" is the name of a field', 12, "write text in single quotes: 'error'"),
        ("severity == error", "the row has no field 'error'", 12, "write text in single quotes: 'error'"),
        ("severity == 'eror'", "severity is never 'eror'", 12, "did you mean error?"),
        ("'fatal' != severity", "severity is never 'fatal'", 0, "known: error, info, warning"),
        ("contains(['error', 'fatal'], severity)", "severity is never 'fatal'", 19, "known: error, info, warning"),
        ('contains(`["fatal"]`, severity)', "severity is never 'fatal'", 9, "known: error, info, warning"),
        ("column == 3", "column is never 3", 10, "known: 1, 2"),
        ("options.mode == 'stric'", "options.mode is never 'stric'", 16, "did you mean strict?"),
        (
            "ok && line == '5'",
            "line is a number and '5' is a string: == between them is always false",
            11,
            "",
        ),
        ("path != 5", "path is a string and 5 is a number: != between them is always true", 5, ""),
        ("ok == 'true'", "ok is a boolean and 'true' is a string: == between them is always false", 3, ""),
        ("path == line", "path is a string and line is a number: == between them is always false", 5, ""),
        ("rc == '0'", "rc is a number and '0' is a string: == between them is always false", 3, ""),
        (
            "length(path) == 'a'",
            "length() is a number and 'a' is a string: == between them is always false",
            13,
            "",
        ),
        ("path > 'a'", "> orders numbers; path is a string", 5, ""),
        ("line < '5'", "< orders numbers; '5' is a string", 5, ""),
        ("ok >= 1", ">= orders numbers; ok is a boolean", 3, ""),
        ("line < null", "< orders numbers; null is null", 5, ""),
        ("options.mode < 1", "< orders numbers; options.mode is a string", 13, ""),
        ("path.x", ".x of a string or null is always null", 5, ""),
        ("path[0]", "[0] of a string or null is always null", None, ""),
        ("tags.*", "* of an array or null is always null", None, "say which items: [0] for one, [*] for all"),
        ("path[?x]", "[?…] of a string or null is always null", None, ""),
        ("@", "a predicate names fields of the row, not the row as a whole", 0, ""),
        ("length(@) > 0", "a predicate names fields of the row, not the row as a whole", 7, ""),
        ("*", "a predicate names fields of the row, not the row as a whole", None, ""),
        ("[*]", "a predicate names fields of the row, not the row as a whole", None, ""),
        (
            "contains([5], line)",
            "[5] takes an item of a list, and a row is none",
            None,
            "write a list of one number as `[5]` in backticks",
        ),
        ("[1:]", "a slice is taken of a list, and a row is none", None, ""),
        ("{a: line}", "{…} builds an object; a predicate is true or false", None, ""),
        ("starts_with(line, 'x')", "starts_with() takes a string, not a number or null", 0, ""),
        ("'skipped'", "this predicate names no field, so it is the same for every row", 0, ""),
        ("1 == 1", "this predicate names no field, so it is the same for every row", 0, ""),
        ("line == 007", "007 has a leading zero", 8, "write the number as JSON has it"),
        ("line == 1e999", "this number is too large", 8, ""),
        ("line = 1", "unexpected '='", 5, "compare with =="),
        ("line == 1 and ok", "unexpected 'and'", 10, "write &&"),
        ("line - 1", "unexpected '-'", 5, ""),
        ("line -1", "unexpected -1", 5, ""),
        ("line > 1 > 'x'", "> orders numbers; the other side is a boolean", 9, ""),
    ],
)
def test_predicate_refusals(text: str, message: str, offset: int | None, mend: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        predicate(text)
    assert (str(caught.value), caught.value.offset) == (message, offset)
    assert caught.value.mend.startswith(mend)
    assert bool(caught.value.mend) == bool(mend)


def test_what_may_hold_is_let_through() -> None:
    for text in (
        "path == null",
        "extra == 'x' && extra == 5",
        "extra > 1",
        "severity == 'error' && severity != null",
        "contains(['error', 'info'], severity)",
        "column == 1",
        "options.either == 'x' || options.either == 1",
        "options.free > 1",
        "tags[?name == 'x' && n > 0]",
        "contains(path, severity)",
        "tags == `[]`",
        "false",
    ):
        assert predicate(text), text
