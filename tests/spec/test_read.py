"""Strict reading: which YAML and TOML becomes which values, where the keys stand, what is refused and in what words."""

from __future__ import annotations

import json
import math
import re

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from ckdn.errors import CkdnError
from ckdn.spec.read import MAX_BYTES, MAX_DEPTH, Document, read_document


def read(text: str | bytes, kind: str = "yaml", **options: bool) -> Document:
    data = text.encode() if isinstance(text, str) else text
    return read_document(data, f"f.{kind}", **options)


def refusal(text: str | bytes, kind: str = "yaml", **options: bool) -> list[str]:
    with pytest.raises(CkdnError) as caught:
        read(text, kind, **options)
    return [str(problem) for problem in caught.value.problems]


# ---------------------------------------------------------------- YAML values

CORE = {
    "on": "on",
    "off": "off",
    "yes": "yes",
    "No": "No",
    "y": "y",
    "08": "08",
    "007": "007",
    "08.5": "08.5",
    "1:30": "1:30",
    "2024-01-01": "2024-01-01",
    "1_000": "1_000",
    "0b11": "0b11",
    "+-1": "+-1",
    "1.2.3": "1.2.3",
    "=": "=",
    "e3": "e3",
    ".": ".",
    "tRUE": "tRUE",
    "'1'": "1",
    '"true"': "true",
    "''": "",
    "": None,
    "~": None,
    "null": None,
    "NULL": None,
    "true": True,
    "False": False,
    "0": 0,
    "-0": 0,
    "+1": 1,
    "-17": -17,
    "0o14": 12,
    "0x1F": 31,
    "9223372036854775807": 2**63 - 1,
    "-9223372036854775808": -(2**63),
    "1e3": 1000.0,
    ".5": 0.5,
    "-.5": -0.5,
    "1.": 1.0,
    "0.10": 0.1,
    "6.02E+23": 6.02e23,
}


@pytest.mark.parametrize("text", CORE)
def test_yaml_core_scalars(text: str) -> None:
    value = read(f"a: {text}\n").value["a"]
    assert value == CORE[text]
    assert type(value) is type(CORE[text])


def test_yaml_structure_and_places() -> None:
    document = read('\ufeff# note\nrun:\n  top: 3\n"é": [{a: 1}, 2]\ntext: |\n  x\ty\nlast: >-\n  a\n  b\n')
    assert document.value == {"run": {"top": 3}, "é": [{"a": 1}, 2], "text": "x\ty\n", "last": "a b"}
    assert document.where(()) == (2, 1)
    assert document.where(("run", "top")) == (3, 3)
    assert document.where(("é", 0, "a")) == (4, 8)
    assert document.where(("é", 1)) == (4, 15)
    assert document.where(("run", "absent", "deeper")) == (2, 1)


def test_a_problem_is_located() -> None:
    document = read("run:\n  top: 3\n")
    assert str(document.problem(("run", "top"), "too big", "make it small")) == "f.yaml:2:3: too big; make it small"


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_an_empty_yaml_document_is_none(text: str) -> None:
    assert read(text).value is None


def test_integer_keys_are_text_only_when_asked_for() -> None:
    assert read("{1: warning, 01: x, '2': error}", integer_keys=True).value == {"1": "warning", "01": "x", "2": "error"}
    assert refusal("{1: warning}") == ["f.yaml:1:2: the key '1' is not text; put it in quotes"]
    assert refusal("{1.5: a, -1: b, 0x1: c, true: d}", integer_keys=True)[0].startswith(
        "f.yaml:1:2: the key '1.5' is not"
    )
    assert refusal("{'1': a, 1: b}", integer_keys=True) == [
        "f.yaml:1:10: the key '1' is here twice, first on line 1; keep one of them"
    ]


# ---------------------------------------------------------------- YAML refusals

YAML_REFUSED = {
    "a: 1\nb: 2\na: 3\n": "3:1: the key 'a' is here twice, first on line 1; keep one of them",
    "a: {b: 1, 'b': 2}\n": "1:11: the key 'b' is here twice, first on line 1; keep one of them",
    "a: &x 1\n": "1:4: the anchor &x is not allowed; take it out",
    "a: *x\n": "1:4: the alias *x is not allowed; write the value out",
    "*x : 1\n": "1:1: the alias *x is not allowed; write the value out",
    "a: !!str 1\n": "1:4: the tag !!str is not allowed; take it out, and put text in quotes",
    "!!str a: 1\n": "1:1: the tag !!str is not allowed; take it out, and put text in quotes",
    "a: !env [X]\n": "1:4: the tag !env is not allowed; take it out, and put text in quotes",
    "a: ! 1\n": "1:4: the tag ! is not allowed; take it out, and put text in quotes",
    "a: !\n  b: 1\n": "1:4: the tag ! is not allowed; take it out, and put text in quotes",
    "<<: {a: 1}\n": "1:1: the merge key << is not allowed; write the keys out",
    "a: 1\ntrue: 2\n": "2:1: the key 'true' is not text; put it in quotes",
    "~: 2\n": "1:1: the key '~' is not text; put it in quotes",
    "?\n: 2\n": "1:2: an empty key is not allowed; write a name",
    "? [a]\n: 1\n": "1:3: a list or a mapping is not allowed as a key; write a name",
    "{{a: 1}: 2}\n": "1:2: a list or a mapping is not allowed as a key; write a name",
    "a: 1\n---\nb: 2\n": "2:1: a second document begins here; keep one document in a file",
    "%YAML 1.1\n---\na: 1\n": "1:1: a directive is not allowed; take the line that begins with % out",
    "%TAG ! tag:x,2000:\n---\na: 1\n": "1:1: a directive is not allowed; take the line that begins with % out",
    "a:\tb\n": "1:3: a tab is not allowed here; use blanks, or quote the text",
    "a:\n\t- b\n": "2:1: a tab is not allowed here; use blanks, or quote the text",
    "a: b\tc\n": "1:5: a tab is not allowed here; use blanks, or quote the text",
    "a: b#\tc\n": "1:6: a tab is not allowed here; use blanks, or quote the text",
    "a: b\t\n": "1:5: a tab is not allowed here; use blanks, or quote the text",
    'a: "\0"\n': "1:5: the character U+0000 is not allowed; take it out, or write it as an escape in double quotes",
    "é: \x85\n": "1:4: the character U+0085 is not allowed; take it out, or write it as an escape in double quotes",
    "a: .nan\n": "1:4: .nan is not a number JSON can hold; put it in quotes if it is text",
    "a: [-.INF]\n": "1:5: -.INF is not a number JSON can hold; put it in quotes if it is text",
    "a: 1e999\n": "1:4: the number is out of range; put it in quotes if it is text",
    "a: "
    + "1" * 5000: "1:4: the number is out of range; integers have at most 64 bits; put it in quotes if it is text",
    "0x8000000000000000: 1": "1:1: the key '0x8000000000000000' is not text; put it in quotes",
    "a: b: c\n": "1:5: a second ': ' is not allowed here; put the text in quotes",
    "a: 1\nfoo\nb: 2\n": "2:1: a key needs ': ' behind it; write KEY: VALUE, or check the indentation",
    'b: 1\na: "x\n': "2:4: the quotes that open here are never closed; close them",
    "a: @x\n": "1:4: a value cannot begin with '@'; put the text in quotes",
    "a: [1, 2\n": "1:4: the list that opens here is not closed properly; check its commas and its ]",
    "a: {b: 1\n": "1:4: the mapping that opens here is not closed properly; check its commas and its }",
    "a:\n  b: 1\n c: 2\n": "3:2: this does not fit what stands above; check the indentation and the quotes",
    "a: 'x' y\n": "1:8: this does not fit what stands above; check the indentation and the quotes",
    "  a: 1\nb: 2\n": "2:1: this does not fit what stands above; check the indentation and the quotes",
    'a: "\\d"\n': "1:5: an unknown escape in double quotes; use single quotes, or double the backslash",
}


@pytest.mark.parametrize("text", YAML_REFUSED, ids=lambda text: repr(text[:24]))
def test_yaml_refused(text: str) -> None:
    assert refusal(text) == [f"f.yaml:{YAML_REFUSED[text]}"]


def test_tabs_are_text_in_quotes_blocks_and_comments() -> None:
    assert read("a: 'x\ty' # c\td\n# e\tf\nb: |\n  p\tq\n\n# g\th\nc: 1\n").value == {
        "a": "x\ty",
        "b": "p\tq\n",
        "c": 1,
    }


def test_everything_wrong_is_told_at_once_up_to_a_syntax_error() -> None:
    found = refusal("a: 1\na: 2\nb: &x 1\nc: *x\n1: d\ne: [.inf, f: g: h]\n")
    assert [line.split(": ")[0] for line in found] == [
        "f.yaml:2:1",
        "f.yaml:3:4",
        "f.yaml:4:4",
        "f.yaml:5:1",
        "f.yaml:6:5",
        "f.yaml:6:4",
    ]


@pytest.mark.parametrize("opening", ["[", "- ", "{a: ", "? ", "[{a: "])
def test_any_yaml_nesting_is_refused_not_crashed(opening: str) -> None:
    assert refusal(opening * (200_000 // len(opening)))[-1].endswith("the nesting is deeper than 32 levels")


def test_yaml_depth_limit_is_exact() -> None:
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH).value
    assert refusal("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)) == [
        "f.yaml:1:33: the nesting is deeper than 32 levels"
    ]


# ---------------------------------------------------------------- both formats


@pytest.mark.parametrize("kind", ["yaml", "toml"])
def test_encoding_and_size(kind: str) -> None:
    assert refusal(b"a\n\xc3\xa9\xff", kind) == [f"f.{kind}:2:2: byte 0xff is not UTF-8; save the file as UTF-8"]
    assert refusal(b"\xef\xbb\xbf\xff", kind) == [f"f.{kind}:1:1: byte 0xff is not UTF-8; save the file as UTF-8"]
    assert refusal("a: 1".encode("utf-16"), kind) == [f"f.{kind}: the file is UTF-16; save it as UTF-8"]
    assert read("#" * MAX_BYTES, kind).value in (None, {})
    assert refusal("#" * (MAX_BYTES + 1), kind) == [f"f.{kind}: the file has 262145 bytes, more than 262144"]


def test_the_suffix_decides_unless_the_kind_is_given() -> None:
    assert read_document(b"a: 1", "x.YML").value == {"a": 1}
    assert read_document(b"a = 1", "x.txt", kind="toml").value == {"a": 1}
    with pytest.raises(CkdnError, match=r"^x.txt: neither YAML nor TOML; name it .yaml, .yml or .toml$"):
        read_document(b"a = 1", "x.txt")


# ---------------------------------------------------------------- TOML

PLACES = """\ufeff# top
[run]\r
top = 3
'quoted "key"'."e\\u0301".x = 1
text = '''
a = 1
[b]
'''
list = [ # c
  1, {p = 1, q.r = [2]},
]
[[check.a.b]]
c = 1
[[check.a.b]]
c = 2
[check.a.b.d]
e = \"\"\"x\"\"\"\"
"""


def test_toml_places() -> None:
    document = read(PLACES, "toml")
    assert document.value["check"]["a"]["b"][1] == {"c": 2, "d": {"e": 'x"'}}
    expected = {
        (): (1, 1),
        ("run",): (2, 2),
        ("run", "top"): (3, 1),
        ("run", 'quoted "key"', "e\u0301", "x"): (4, 26),
        ("run", "text"): (5, 1),
        ("run", "list", 0): (10, 3),
        ("run", "list", 1, "q", "r", 0): (10, 21),
        ("check", "a", "b", 0, "c"): (13, 1),
        ("check", "a", "b", 1): (14, 11),
        ("check", "a", "b", 1, "c"): (15, 1),
        ("check", "a", "b", 1, "d", "e"): (17, 1),
        ("check", "a", "absent", "x"): (12, 9),
    }
    assert {path: document.where(path) for path in expected} == expected


def paths_of(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, item in items for deeper in paths_of(item, (*path, key)))]


TOML_REFUSED = {
    "a = 1\na = 2\n[b]\nx.y = 1\nx.y = 2\n[b]\n": [
        "2:1: the key 'a' is here twice, first on line 1; keep one of them",
        "5:3: the key 'b.x.y' is here twice, first on line 4; keep one of them",
        "6:2: the key 'b' is here twice, first on line 3; keep one of them",
    ],
    "a = '''\n'''\na = '''\n'''\n": ["3:1: the key 'a' is here twice, first on line 1; keep one of them"],
    "a = {b = 1, b = 2}\n": ["1:13: the key 'a.b' is here twice, first on line 1; keep one of them"],
    "a.b = 1\na.b.c = 2\n": ["2:10: this key is here twice; keep one of them"],
    "a = {b = 1}\n[a.c]\n": ["2:5: this table is complete already, or here twice; write all of it in one place"],
    "a = b\n": ["1:5: this is no TOML value; put text in quotes"],
    'a = "x\n': ["1:7: the quotes are not closed on their line; close them"],
    "\na = [1\n": ["2:7: a list is never closed; write ] behind its last item"],
    'a = "\\d"\n': ["1:8: an unknown escape in double quotes; use single quotes, or double the backslash"],
    "a = 1 2\n": ["1:7: the line should end here; put text in quotes, a comment behind #"],
    "a\n": ["1:2: a key needs '=' behind it; write KEY = VALUE; names with other characters need quotes"],
    "[a\n": ["1:3: the table's name is not closed; write [NAME]"],
    'a = "\0"\n': ["1:6: TOML: Illegal character '\\x00'"],
    "a = 2024-01-01\nb = [1, {c = nan}, 10:00:00]\n": [
        "1:1: a date is not a value JSON can hold; put it in quotes",
        "2:10: nan is not a number JSON can hold",
        "2:20: a time is not a value JSON can hold; put it in quotes",
    ],
    "a = -1e999": ["1:1: -inf is not a number JSON can hold"],
    "a = 0xFFFFFFFFFFFFFFFF": [
        "1:1: the number is out of range; integers have at most 64 bits; put it in quotes if it is text"
    ],
    "b = 1\na = " + "1" * 5000: [
        "2:5: the number is out of range; integers have at most 64 bits; put it in quotes if it is text"
    ],
}


@pytest.mark.parametrize("text", TOML_REFUSED, ids=lambda text: repr(text[:24]))
def test_toml_refused(text: str) -> None:
    assert refusal(text, "toml") == [f"f.toml:{line}" for line in TOML_REFUSED[text]]


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 200_000,
        "a = " + "[" * 40 + "]" * 40,
        "a = " + "{b = " * 40_000,
        "a." * 100_000 + "a = 1",
        "[" + "a." * 100_000 + "a]",
        "x = {" + "a." * 100_000 + "a = 1}",
        "\n".join(f"[{'.'.join('a' * n)}]" for n in range(30, 40)),
    ],
    ids=lambda text: text[:12],
)
def test_any_toml_nesting_is_refused_not_crashed(text: str) -> None:
    (problem,) = refusal(text, "toml")
    assert problem.startswith("f.toml:")
    assert problem.endswith("the nesting is deeper than 32 levels")


def test_only_our_table_of_a_shared_file_must_be_plain() -> None:
    shared = b"[tool.other]\nday = 2024-01-01\n[tool.ckdn]\ntop = inf\n"
    assert refusal(shared, "toml")[0].startswith("f.toml:2:1: a date")
    with pytest.raises(CkdnError, match=r"^f.toml:4:1: inf is not a number JSON can hold$"):
        read_document(shared, "f.toml", table=("tool", "ckdn"))
    assert read_document(shared, "f.toml", table=("tool", "absent", "x")).value["tool"]["other"]


def test_many_dots_in_text_are_no_nesting() -> None:
    assert read(f"a = '{'x.' * 100}'\n", "toml").value == {"a": "x." * 100}


# ---------------------------------------------------------------- properties

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
    st.sampled_from([text for text in CORE if "'" not in text and '"' not in text]),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)


def as_json(value: object) -> str:
    """JSON as YAML can read it: escapes for what YAML refuses raw, none of JSON's surrogate pairs, which it lacks."""
    raw = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda found: f"\\u{ord(found.group()):04x}", raw)


def same(one: object, two: object) -> bool:
    """Equality that tells 1 from True and 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)


@given(VALUES)
@example({"08": "08", "n": "on"})
def test_json_read_as_yaml_gives_the_same_value(value: object) -> None:
    document = read(as_json(value))
    assert same(document.value, value)
    for path in paths_of(value):
        assert document.where(path)[0] > 0
        assert path in (document.places or {})


@given(VALUES)
def test_block_yaml_gives_the_same_value(value: object) -> None:
    # all text in quotes: PyYAML writes YAML 1.1, whose plain '0o7' is text
    written = yaml.dump(value, default_style='"', allow_unicode=False, Dumper=_Quoting, sort_keys=False)
    assert same(read(written).value, value)


class _Quoting(yaml.SafeDumper):
    """Writes text in double quotes and everything else plain, and never an alias."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_scalar(self, tag: str, value: str, style: str | None = None) -> yaml.ScalarNode:
        return super().represent_scalar(tag, value, style='"' if tag.endswith(":str") else "")


def as_toml(value: object) -> str:
    """A value as inline TOML (``None`` has no form there)."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_toml(str(key))} = {as_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_toml(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value) if "." in repr(value) or "e" in repr(value) else f"{value:.1f}"
    return as_json(value)


def has_none(value: object) -> bool:
    if isinstance(value, dict):
        return any(has_none(item) for item in value.values())
    return any(has_none(item) for item in value) if isinstance(value, list) else value is None


@given(st.dictionaries(TEXT, VALUES.filter(lambda value: not has_none(value)), max_size=4))
def test_toml_gives_the_same_value_and_a_place_for_every_key(value: dict[str, object]) -> None:
    document = read("".join(f"{as_toml(key)} = {as_toml(item)}\n" for key, item in value.items()) or "#", "toml")
    assert same(document.value, value)
    document.where(())
    assert set(document.places or {}) == set(paths_of(value))
    for line, key in enumerate(value, start=1):
        assert document.where((key,)) == (line, 1)


SYNTAX = st.lists(
    st.sampled_from(
        [*"abc[]{}:,-?&*!|>'\"%@`#=.~0123 \n\t\r\\", "\n  ", ": ", "- ", " = ", '"""', "'''", "<<", "\n[", "[[", "]]\n"]
    ),
    max_size=40,
).map("".join)


@pytest.mark.parametrize("kind", ["yaml", "toml"])
@given(data=st.binary(max_size=80) | SYNTAX.map(str.encode))
@example(data=b'"\\ud800"')
@example(data=b"a = 2024-13-01")
@example(data=b"\xef\xbb\xbf\xef\xbb\xbf")
def test_any_bytes_are_read_or_refused_with_the_path(kind: str, data: bytes) -> None:
    try:
        document = read(data, kind)
    except CkdnError as error:
        places = [(problem.path, problem.line) for problem in error.problems]
        lines = len(data.splitlines()) + 1
    else:
        places, lines = [(document.path, 1)], 1
        json.dumps(document.value, allow_nan=False)
        for path in paths_of(document.value):
            line, column = document.where(path)
            assert (line > 0 and column > 0) or document.value in (None, {})
    assert places
    assert all(path == f"f.{kind}" and line <= lines for path, line in places)


def test_a_float_keeps_its_kind() -> None:
    assert math.copysign(1, read("a: -0.0").value["a"]) == -1
