"""JMESPath evaluation: the official suite, the library as the oracle, the bounds, and predicates."""

from __future__ import annotations

import json
import marshal
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jmespath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckdn.engine.jmes import compile, compile_predicate, truthy
from ckdn.engine.jmes_functions import Budget, EvaluationError
from ckdn.spec.jmes import ExpressionError, parse, parse_predicate
from ckdn.spec.jmes_functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

SUITE = Path(
    os.environ.get("CKDN_JMESPATH_SUITE") or Path(__file__).parents[2].parent / "shared" / "corpus" / "jmespath"
)
"""A checkout's ``tests`` folder of jmespath/jmespath.test. It states no licence, so it is not copied here."""


def search(expression: str, value: Any) -> Any:
    return compile(marshal.loads(marshal.dumps(parse(expression))))(value)


def same(left: Any, right: Any) -> bool:
    """Equal, with types: 1, 1.0 and true are three values."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


# The official suite


def suite_cases() -> list[Any]:
    cases = []
    for path in sorted(SUITE.glob("*.json")):
        number = 0
        for group in json.loads(path.read_text(encoding="utf-8")):
            for case in group["cases"]:
                number += 1
                cases.append(pytest.param(group["given"], case, id=f"{path.stem}-{number}"))
    return cases


@pytest.mark.skipif(not SUITE.is_dir(), reason="needs the official suite: set CKDN_JMESPATH_SUITE")
def test_the_suite_is_whole() -> None:
    assert len(suite_cases()) > 850


@pytest.mark.parametrize(("document", "case"), suite_cases())
def test_official_suite(document: Any, case: dict[str, Any]) -> None:
    expression = case["expression"]
    if "result" in case:
        assert search(expression, document) == case["result"]
    elif case.get("error") in ("syntax", "invalid-arity", "unknown-function", "invalid-value"):
        with pytest.raises(ExpressionError):  # all of these at load
            parse(expression)
    elif "error" in case:
        with pytest.raises((ExpressionError, EvaluationError)):
            search(expression, document)
    else:  # a benchmark without a stated result
        assert same(search(expression, document), jmespath.search(expression, document))


# The library as the oracle

DOCUMENT = {
    "a": {"b": {"c": [1, 2, 3]}, "d": None, "e": {"x": {"n": 1}, "y": {"n": 2}, "z": None}},
    "list": [3, 1, 2.5, -4],
    "texts": ["b", "a", "", "é"],
    "mixed": [0, False, "", None, [], {}, "0", 0.0, True, 1],
    "rows": [
        {"name": "one", "n": 3, "ok": True, "tags": ["x", "y"]},
        {"name": "two", "n": 1, "ok": False, "tags": []},
        {"name": "three", "n": 3, "ok": None, "tags": ["y", ["z"]]},
        "not a row",
    ],
    "nested": [[1, [2]], [], [[3]], 4, None],
    "zero": 0,
    "empty": "",
}
AGREED = """
a
a.b.c[0]
a.b.c[-1]
a.b.c[9]
a.b.c[-9]
a.b[0]
a[0].b
a.d.x
list.x
*
*.*
a.e.*.n
a.*.c[]
rows[*].name
rows[*].tags[]
rows[].tags[].missing
rows[*].tags[0]
rows[0:2].name
rows[::-1].name
rows[5:]
list[1:-1]
texts[::2]
empty[0:1]
nested[]
nested[][]
nested[*][0]
nested[*][]
rows[?ok].name
rows[?!ok].name
rows[?n == `3`].name
rows[?n == `3` && ok].name | [0]
rows[?n > `2` || name == 'two'].name
rows[?contains(tags || `[]`, 'y')].n
rows[?tags].tags[]
rows[? n >= `1`] | [?n <= `1`].name
mixed[?@]
mixed[?!@]
mixed[?@ == `0`]
mixed[?@ == `false`]
mixed[?@ == `1`]
mixed[?@ == `true`]
mixed[?@ == null_field]
mixed[:2] | [?@ < `1`]
mixed[3:6] | [?@ < `1`]
list[?@ < `3`]
mixed[?@ != `""`]
[a.d, zero, missing]
a.d.[x]
{k: zero, l: a.b.c[0]}
a.d.{x: y}
rows[*].{n: n, first: tags[0]}
rows[*].[n, ok]
zero || empty
empty || zero
empty && zero
zero && empty
missing && missing.x
!zero
!empty
!missing
!list
'text'
`{"a": [1, true, null]}`
`"é"`
`abc`
'it\\'s'
@.zero
@
(a | b).c
(a || list).b
rows[*].name | length(@)
abs(list[3])
avg(list)
avg(`[]`)
ceil(list[2])
floor(list[2])
contains('abc', 'b')
contains(list, `1`)
contains(mixed, `true`)
ends_with('abc', 'bc')
starts_with('abc', 'ab')
join('-', texts)
join('-', `[]`)
keys(a)
values(a)
length(a)
length('é')
length(list)
map(&n, rows)
map(&[@, @], list)
map(&@, nested)
max(list)
max(texts)
max(`[]`)
min(list)
min(texts)
min(`[]`)
max_by(rows[?n], &n).name
min_by(rows[?n], &n).name
max_by(`[]`, &n)
min_by(rows[:2], &name).name
sort(list)
sort(texts)
sort_by(rows[?n], &n)[*].name
sort_by(rows[?n], &name)[*].name
sort_by(`[]`, &n)
merge(a.e, {x: zero}, `{}`)
not_null(missing, a.d, zero, list)
not_null(missing)
reverse(list)
reverse('abc')
sum(list)
sum(`[]`)
to_array(list)
to_array(zero)
to_array(missing)
to_number('12')
to_number('1e3')
to_number(' -7 ')
to_number('x')
to_number(`true`)
to_number(list)
to_string('x')
to_string(mixed)
to_string(a.e)
to_string(`1.50`)
type(mixed)
mixed[*].type(@)
map(&type(@), mixed)
rows[*].not_null(ok, n)
`1` == `1.0`
`[1]` == `[1.0]`
`{"a": 1, "b": 2}` == `{"b": 2, "a": 1}`
`1` < `2` == `true`
'a' < 'b'
list < list
"a"."b"
rows[*].{"odd key": n}
length(to_string(rows)) > `10` && 'long' || 'short'
sum(rows[?n].n) == `7`
a.b.c[] | [0]
a.b.c | [1:] | [0]
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # the library's, for `abc`
@pytest.mark.parametrize("expression", AGREED)
def test_agrees_with_the_library(expression: str) -> None:
    expected = jmespath.search(expression, DOCUMENT)
    got = search(expression, DOCUMENT)
    assert same(got, expected), (got, expected)


NAMES = ("a", "b", "c", '"d e"')
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.0, 1.0, 1.5, -2.5, "", "a", "b", "1", "2.5", "é"])
)
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(("a", "b", "c", "d e")), inner, max_size=4)
    ),
    max_leaves=20,
)
numbers = st.integers(-3, 3).map(str)


def calls(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two_or_by = {"contains", "ends_with", "join", "map", "max_by", "min_by", "sort_by", "starts_with"}
    one = st.sampled_from(sorted(set(FUNCTIONS) - two_or_by))
    two = st.sampled_from(("contains", "ends_with", "join", "starts_with", "not_null", "merge"))
    by = st.sampled_from(("max_by", "min_by", "sort_by"))
    return st.one_of(
        st.tuples(one, inner).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(two, inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        st.tuples(by, inner, inner).map(lambda t: f"{t[0]}({t[1]}, &{t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"map(&{t[0]}, {t[1]})"),
    )


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = st.sampled_from(NAMES)
    operators = st.sampled_from(("==", "!=", "<", "<=", ">", ">="))
    brackets = st.one_of(
        numbers.map(lambda n: f"[{n}]"),
        st.tuples(numbers, numbers).map(lambda t: f"[{t[0]}:{t[1]}]"),
        st.sampled_from(("[]", "[*]", ".*", "[::2]", "[::-1]")),
    )
    return st.one_of(
        st.tuples(inner, names).map(".".join),
        st.tuples(inner, brackets).map("".join),
        st.tuples(inner, brackets, names).map(lambda t: f"{t[0]}{t[1]}.{t[2]}"),
        st.tuples(inner, inner, inner).map(lambda t: f"{t[0]}[?{t[1]}].{{k: {t[2]}}}"),
        st.tuples(inner, inner).map(lambda t: f"{t[0]}[?{t[1]}]"),
        st.tuples(inner, st.sampled_from(("||", "&&", "|")), inner).map(" ".join),
        st.tuples(inner, operators, inner).map(lambda t: f"{t[0]} {t[1]} @.{t[2]}" if t[2][0] == '"' else " ".join(t)),
        inner.map(lambda e: f"!{e}"),
        inner.map(lambda e: f"({e})"),
        st.tuples(inner, inner).map(lambda t: f"[{t[0]}, {t[1]}]"),
        st.tuples(inner, inner).map(lambda t: f"{{a: {t[0]}, b: {t[1]}}}"),
        calls(inner),
    )


literals = documents.map(lambda value: "`" + json.dumps(value).replace("`", "\\`") + "`")
expressions = st.recursive(
    st.one_of(st.sampled_from((*NAMES, "@", "*", "'a'")), literals),
    larger,
    max_leaves=8,
)


@settings(max_examples=1500, deadline=None)
@given(expressions, documents)
def test_agrees_with_the_library_on_anything(expression: str, document: Any) -> None:
    try:
        library = jmespath.compile(expression)
    except jmespath.exceptions.JMESPathError:
        with pytest.raises(ExpressionError):
            parse(expression)
        return
    compiled, refusal = attempt(lambda: compile(parse(expression)), ExpressionError)
    if refusal:
        # Known at load to be wrong or a trap; the library may never come to evaluate that part.
        assert any(part in refusal for part in ("()", "name of a field", "is always null")), refusal
        return
    got, refusal = attempt(lambda: compiled(document), EvaluationError)
    try:
        expected = library.search(document)
    except Exception:  # the library lets TypeError and others out
        assert refusal
        return
    # merge() of pairs: dict.update() takes them, JMESPath does not.
    assert refusal.startswith("merge()") or (not refusal and same(got, expected)), (got, expected)


def attempt(call: Callable[[], Any], error: type[ValueError]) -> tuple[Any, str]:
    try:
        return call(), ""
    except error as caught:
        return None, str(caught)


# Where ckdn differs from the library


def test_what_the_library_crashes_on_is_an_error_in_one_line() -> None:
    for expression, message in {
        "merge(@, list)": "merge() takes an object, not an array",
        "contains(word, list)": "contains() looks in a string for a string, not an array",
        "word < n": "a number and a string have no order: 'word' and '1'",
        "sum([big, big])": "sum(): the result is too large for a number",
        "avg([big, big])": "sum(): the result is too large for a number",
        "avg([huge])": "avg(): the result is too large for a number",
        "min_by([@, {n: word}], &n)": "min_by() orders by numbers or by strings; found both",
    }.items():
        with pytest.raises(EvaluationError) as caught:
            search(expression, {"list": [1], "word": "word", "n": 1, "big": 1e308, "huge": 10**400})
        assert str(caught.value) == message


def test_text_that_spells_no_finite_number_is_null() -> None:
    assert [search("to_number(@)", text) for text in ("nan", "inf", "-Infinity", "1e999", "9" * 5000)] == [None] * 5


def test_errors_name_the_function_and_the_types() -> None:
    for expression, message in {
        "length(n)": "length() takes a string, an array or an object, not a number",
        "join(',', list)": "join() takes an array of strings; found number",
        "sort(mixed)": "sort() takes an array of numbers or of strings; found number among strings",
        "sort(holes)": "sort() takes an array of numbers or of strings; found null",
        "sort_by(list, &x)": "sort_by() orders by numbers or by strings; found null",
        "starts_with(missing, 'x')": "starts_with() takes a string, not null",
    }.items():
        with pytest.raises(EvaluationError) as caught:
            search(expression, {"n": 1, "list": [1], "mixed": ["a", 1], "holes": [None]})
        assert str(caught.value) == message


def test_values_that_are_no_json_are_refused_not_crashed_on() -> None:
    with pytest.raises(EvaluationError, match="not no JSON value"):
        search("length(@)", (1, 2))


def test_values_nested_deeper_than_python_can_follow_are_an_error() -> None:
    def deep() -> Any:
        value: Any = []
        for _ in range(100_000):
            value = [value]
        return value

    document = {"a": deep(), "b": deep()}
    for expression in ("a == b", "contains([a], b)", "to_string(a)"):
        with pytest.raises(EvaluationError, match="nested too deep"):
            search(expression, document)


# Bounds


def test_a_hostile_expression_stops_at_the_step_bound() -> None:
    ten = "`[" + ",".join("1" * 10) + "]`"
    for expression in (
        "[*]" + f".[{ten}][][]" * 3,
        " | ".join([f"[].{{a: {ten}}} | [].a[]"] * 3),
        " | ".join([f"map(&{ten}, @)[]"] * 3),
    ):
        with pytest.raises(EvaluationError, match=r"^the expression takes more than 100000 steps$"):
            compile(parse(expression), Budget(max_steps=100_000))([1] * 1000)


def test_what_load_lets_through_still_stops() -> None:
    expression = "@" + "[].[`1`,`2`,`3`][]" * 7
    with pytest.raises(EvaluationError, match="4000000 steps"):
        search(expression, list(range(1000)))


def test_text_that_grows_stops_at_the_text_bound() -> None:
    quoting = " | ".join(["to_string([@])"] * 40)
    with pytest.raises(EvaluationError, match="builds more than 8388608 characters of text"):
        search(quoting, '"')
    joining = " | ".join(["join(@, ['x', @, @])"] * 7)
    with pytest.raises(EvaluationError, match="characters of text"):
        search(joining, "y" * 10_000)


def test_the_budget_is_fresh_for_each_evaluation_unless_it_is_shared() -> None:
    own = compile(parse("[*].x"))
    for _ in range(50):
        assert own([{"x": 1}] * 100_000)[0] == 1
    shared = compile(parse("[*].x"), Budget(max_steps=1000))
    shared([1] * 600)
    with pytest.raises(EvaluationError):
        shared([1] * 600)


def test_a_large_honest_report_is_far_from_the_bound() -> None:
    report = {"runs": [{"results": [{"level": "error", "where": [{"line": n}]} for n in range(200_000)]}]}
    lines = search("runs[].results[?level == 'error'][].where[].line", report)
    assert lines == list(range(200_000))


def test_results_are_the_same_when_evaluated_again() -> None:
    function = compile(parse("rows[*].{n: n, t: tags[]}"))
    assert function(DOCUMENT) == function(DOCUMENT)


# Predicates

FIELDS = {
    "line": "number", "path": "string", "severity": "string", "ok": "boolean", "tags": "array", "extra": None,
}  # fmt: skip
OPTIONS = {"limit": {"type": "integer"}, "mode": {"enum": ["strict", "lax"]}}
SCOPE = {"options": {"limit": 10, "mode": "lax"}, "rc": 1}
ROW = {"line": 10, "path": "src/a.py", "severity": "error", "ok": True, "tags": ["x", {"n": 2}], "extra": 0}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("line > 0", True),
        ("line > 10", False),
        ("line >= 10.0", True),
        ("line == 1e1", True),
        ("line > -1 && -1 < line", True),
        ("line == options.limit", True),
        ("severity == 'error' || rc != 0", True),
        ("severity == 'error' && rc == 0", False),
        ("severity != 'error'", False),
        ("!path", False),
        ("path", True),
        ("ok", True),
        ("ok == true", True),
        ("ok == false", False),
        ("path == null", False),
        ("path != null", True),
        ("extra", True),
        ("extra == 0", True),
        ("extra == false", False),
        ("contains([10, 11], line)", True),
        ("contains(['warning', 'info'], severity)", False),
        ("contains(path, '.py') && ends_with(path, '.py')", True),
        ("length(path) > 3", True),
        ("options.mode == 'lax'", True),
        ("tags[?n > 1]", True),
        ("tags[?n > 2]", False),
        ("tags[0] == 'x'", True),
        ("tags[1].n == 2", True),
        ("tags[0:1]", True),
        ("type(extra) == 'number'", True),
        ("not_null(extra, line) == 0", True),
        ("(line > 0 || ok) && !(rc == 0)", True),
        ("line > 0 && line < 11 && rc", True),
        ("rc == 5 || line == 5 || ok", True),
        ("true", True),
        ("false", False),
    ],
)
def test_predicates(text: str, holds: bool) -> None:
    predicate = compile_predicate(marshal.loads(marshal.dumps(parse_predicate(text, FIELDS, options=OPTIONS))))
    assert predicate(ROW, SCOPE) is holds


def test_absent_fields_are_null_and_null_is_false() -> None:
    for text in ("line > 0", "path", "severity == 'error'", "line == options.limit", "tags[?n > 1]", "line < rc"):
        predicate = compile_predicate(parse_predicate(text, FIELDS, options=OPTIONS))
        assert predicate({}, {"options": {}, "rc": None}) is (text == "line == options.limit")


def test_the_scope_is_that_of_the_call() -> None:
    predicate = compile_predicate(parse_predicate("rc == options.limit", {}, options=OPTIONS))
    assert predicate({}, {"options": {"limit": 3}, "rc": 3}) is True
    assert predicate({}, {"options": {"limit": 3}, "rc": 4}) is False


def test_text_is_not_ordered_in_predicates() -> None:
    predicate = compile_predicate(parse_predicate("extra < 10", FIELDS))
    assert predicate({"extra": 9}, SCOPE) is True
    with pytest.raises(EvaluationError, match=r"^'9' is text and cannot be ordered as a number$"):
        predicate({"extra": "9"}, SCOPE)
    both = compile_predicate(parse_predicate("extra < other", {"extra": None, "other": None}))
    with pytest.raises(EvaluationError):
        both({"extra": "9", "other": "10"}, SCOPE)


@given(documents)
def test_truth_is_the_librarys(value: Any) -> None:
    assert truthy(value) is (jmespath.search("x && `true`", {"x": value}) is True)


# Start-up


def test_the_engine_loads_nothing_heavy() -> None:
    code = (
        "import sys, ckdn.engine.jmes, ckdn.engine.guards; "
        "print(sorted({'jmespath','typing','json','re','ckdn.spec.jmes','ckdn.spec.jmes_check'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert shown.stdout.strip() == "[]"


ROOT = Path(__file__).parents[2]
