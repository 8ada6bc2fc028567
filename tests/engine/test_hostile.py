"""Output that means harm, or nothing: no exception of Python's, no hang, and never a false green."""

from __future__ import annotations

import io
import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckdn.engine import text, xmldoc
from ckdn.engine.fields import Context
from ckdn.engine.interpret import Settings, interpret
from ckdn.engine.lines import LineRows
from ckdn.engine.source import Source
from ckdn.model import Ending, Facts
from ckdn.spec.load import load
from ckdn.spec.read import Document, read_document
from ckdn.spec.types import LOG, LineRule, Lines, Spec
from ckdn.verdict import decide

PARSERS = Path(__file__).resolve().parent.parent.parent / "parsers.d"
BUILT_IN = sorted(p.stem for p in PARSERS.glob("[a-z]*.yaml"))


def spec(**blocks: Any) -> Spec:
    value = {"schema": "ckdn.spec/1", "name": "x", "title": "x", "category": "other", "findings": [], **blocks}

    def none(name: str) -> tuple[Spec, Document]:
        raise AssertionError(name)

    return load(Document(value, "x.yaml", "yaml", places={}), "x", none)


def built_in(name: str) -> tuple[Spec, Document]:
    document = read_document((PARSERS / f"{name}.yaml").read_bytes(), f"{name}.yaml", integer_keys=True)
    return load(document, name, built_in), document


class Pieces(io.RawIOBase):
    """A reader that gives its bytes in pieces of random sizes."""

    def __init__(self, data: bytes, seed: int, largest: int = 5) -> None:
        self.data = memoryview(data)
        self.at = 0
        self.random = random.Random(seed)
        self.largest = largest

    def read(self, size: int = -1, /) -> bytes:
        size = min(self.random.randint(1, self.largest), size if size >= 0 else len(self.data))
        piece = bytes(self.data[self.at : self.at + size])
        self.at += len(piece)
        return piece


def facts_of(given_spec: Spec, data: bytes, rc: int = 0, seed: int = 0) -> Facts:
    """The facts when every input holds the same bytes."""

    def opened() -> Any:
        return Pieces(data, seed) if seed else io.BytesIO(data)

    names = {i.name for i in given_spec.inputs} | {LOG}
    return interpret(given_spec, {name: (Source(name, opened),) for name in names}, Settings(rc, {}))


def status(facts: Facts, rc: int = 0) -> str:
    return decide(Ending(rc), facts).status


def seen(facts: Facts) -> Any:
    return [facts.records, facts.problems, facts.notes, facts.summary, facts.proof, facts.bound_passed, facts.numbers]


XML = spec(
    inputs={"r": {"file": "r.xml", "format": "xml", "root": ["r"]}},
    rows={"e": {"each": "//e", "fields": {"m": "@m", "t": "string()"}}},
    findings=[{"kind": "k", "rows": "e", "where": "m == 'bad'", "message": "{m} {t}"}],
    summary={"e": {"list": "e", "show": ["m", "t"]}},
    declared=[{"name": "n", "get": "count(//e)"}],
    guards=["declared.n == rows.e"],
    proof=["report", "rows.e > 0"],
)
JSON = spec(
    inputs={"r": {"file": "r.json", "format": "json", "shape": {"object": ["a"]}}},
    findings=[{"kind": "k", "each": "a", "fields": {"message": "m", "line": "l", "code": "c", "detail": "d"}}],
    summary={"by": {"tally": "records.code"}, "list": {"list": "records", "show": ["line", "detail"]}},
    proof=["report"],
)
ARRAY = spec(
    inputs={"r": {"file": "r.json", "format": "json", "shape": "array"}},
    findings=[{"kind": "k", "each": "@", "fields": {"message": "m", "line": "l"}}],
    proof=["report"],
)
SLICE = spec(
    inputs={"log": {"format": "json", "slice": "object", "shape": {"object": ["a"]}}},
    findings=[{"kind": "k", "each": "a", "fields": {"message": "m"}}],
    proof=[{"holds": "type(a) == 'array'"}],
)
STREAM = spec(
    inputs={"r": {"file": "r.ndjson", "format": "ndjson", "stray": "ignore"}},
    rows={"end": {"each": "@", "fields": {"e": "e"}, "where": "e == 'end'"}},
    findings=[{"kind": "k", "each": "@", "fields": {"e": "e", "message": "m"}, "where": "e == 'bad'"}],
    guards=["rows.end == 1"],
    proof=["report", {"holds": "e == 'end' && ok"}],
)
TEXT = spec(
    findings=[
        {
            "kind": "k",
            "lines": [r"^(?P<path>[^:]+):(?P<line>\d+): (?P<message>.*)$", {"attach": r"^\s"}, {"skip": r"^ok"}],
        }
    ],
    declared=[{"match": r"^(?P<n>\d+) problems"}],
    guards=["declared.n == records"],
    proof=[{"match": r"^0 problems\.$"}],
)

LAUGHS = b"".join(b'<!ENTITY a%d "%s">' % (i, b"&a%d;" % (i - 1) * 10) for i in range(1, 12))
BOMB = b'<!DOCTYPE r [<!ENTITY a0 "ha">' + LAUGHS + b"]>"
QUADRATIC = b'<!DOCTYPE r [<!ENTITY q "' + b"q" * 50_000 + b'">]><r><e m="' + b"&q;" * 50_000 + b'"/></r>'
PADDING = b"<!-- " + b"x" * 70_000 + b" -->"


def utf16(data: bytes) -> bytes:
    return data.decode().encode("utf-16")


@pytest.mark.parametrize(
    "data",
    [
        BOMB + b'<r m="&a11;"><e m="&a11;">&a11;</e></r>',
        PADDING + BOMB + b'<r m="&a11;"><e m="&a11;">&a11;</e></r>',
        b"<!-- ] --><!DOCTYPE r [<!-- ] --><!ENTITY x 'y'>]><r><e m='&x;'/></r>",
        b"<!DOCTYPE r [<!ELEMENT r ANY><!ATTLIST r a CDATA ']'> <!ENTITY x 'y'>]><r><e m='&x;'/></r>",
        b"<!DOCTYPE r [<!ENTITY % p SYSTEM 'file:///etc/hostname'> %p;]><r><e m='x'/></r>",
        b"<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/hostname'>]><r><e m='x'>&x;</e></r>",
        QUADRATIC,
        utf16(QUADRATIC),
        utf16(BOMB.decode().encode() + b'<r m="&a11;"/>'),
        (BOMB + b'<r m="&a11;"/>').decode().encode("utf-16-le"),
        (BOMB + b'<r m="&a11;"/>').decode().encode("utf-16-be"),
        (BOMB + b'<r m="&a11;"/>').decode().encode("utf-32"),
        ("<?xml version='1.0' encoding='cp037'?>" + BOMB.decode() + "<r m='&a11;'/>").encode("cp037"),
        b"<?xml version='1.0' encoding='UTF-7'?>+ADw-!DOCTYPE r [+ADw-!ENTITY x 'y'+AD4-]+AD4-<r><e m='x'/></r>",
        b"<r>" + b"<e>" * 200_000,
        b"<r>" + b"<e>" * 200_000 + b"</e>" * 200_000 + b"</r>",
        b"<" * 200_000,
        b"<r " + b"a" * 300_000,
        b"<!DOCTYPE r [" + b"[" * 100_000,
        b"<!DOCTYPE r " + b"'" * 100_001,
        b"<?xml?" * 30_000,
        b"<r><e m='x'/></r>\0\0\0<e/>",
        b"<r><e m='x' m='y'/></r>",
        b"<r><e m='&#0;'/></r>",
        b"<r><e m='&nope;'/></r>",
        b"<r><e m='x'/></r><!DOCTYPE r [<!ENTITY x 'y'>]>",
        b"\xff\xfe<\x00",
        b"",
        b"\0" * 100_000,
    ],
)
def test_hostile_xml_is_refused(data: bytes) -> None:
    facts = facts_of(XML, data)
    assert facts.problems
    assert status(facts) == "parse_mismatch"


def test_no_file_is_ever_read_for_an_entity(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2", encoding="utf-8")
    for document in (
        f"<!DOCTYPE r SYSTEM '{secret.as_uri()}'><r><e m='x'>&s;</e></r>",
        f"<!DOCTYPE r [<!ENTITY s SYSTEM '{secret.as_uri()}'>]><r><e m='x'>&s;</e></r>",
        f"<r xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include href='{secret.as_uri()}' parse='text'/></r>",
    ):
        assert "hunter2" not in repr(seen(facts_of(XML, document.encode())))


def test_deep_text_and_many_attributes_are_fine() -> None:
    attributes = b" ".join(b"a%d='x'" % i for i in range(20_000))
    facts = facts_of(XML, b"<r><e m='x' " + attributes + b">" + b"<b>" * 200 + b"t" + b"</b>" * 200 + b"</e></r>")
    assert facts.problems == ()
    assert facts.summary == {"e": [{"m": "x", "t": "t"}]}


@pytest.mark.parametrize("opener", ["[", '{"a":', '[{"a":', '{"a":[', " [", '"'])
@pytest.mark.parametrize("given_spec", [JSON, ARRAY, SLICE, STREAM], ids=["object", "array", "slice", "ndjson"])
def test_200_000_brackets(given_spec: Spec, opener: str) -> None:
    for data in (opener * 200_000, '{"a":[' + opener * 200_000, '{"a":' + "[" * 200_000 + "]" * 200_000 + "}"):
        facts = facts_of(given_spec, data.encode())
        assert facts.problems
        assert status(facts) == "parse_mismatch"


@pytest.mark.parametrize("depth", [50, 300, 480, 700, 900, 990])
def test_nesting_that_the_parser_can_follow_does_not_crash_what_comes_after(depth: int) -> None:
    value = "[" * depth + "]" * depth
    item = f'{{"m":{value},"c":{value},"d":{value},"l":1}}'
    facts = facts_of(JSON, f'{{"a":[{item},{item}]}}'.encode())
    assert facts.problems or len(facts.records) == 2


@pytest.mark.parametrize(
    "value",
    [
        "NaN", "Infinity", "-Infinity", "1e999", "-1e400", "9" * 5000, "1" + "0" * 4000, "1e18000", "0x10", "01", "+1",
        ".5", "1.", "-",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["l", "m", "c", "d", "unused"])
def test_numbers_that_are_none(name: str, value: str) -> None:
    """Refused where JSON does not have them, or where they are used as a number; else only text."""
    text = f'{{"a":[{{"m":{value}}}]}}' if name == "m" else f'{{"a":[{{"m":"x","{name}":{value}}}]}}'
    facts = facts_of(JSON, text.encode())
    if value.startswith("10") and name != "l":
        assert facts.problems == ()
    else:
        assert facts.problems
        assert status(facts) == "parse_mismatch"


def test_sums_of_huge_numbers_stay_small() -> None:
    given_spec = spec(
        inputs={"r": {"file": "r.json", "format": "json", "shape": "array"}},
        rows={"n": {"each": "@", "fields": {"v": "v", "k": "k", "s": "to_string(sum([v, v]))"}, "group": ["k"],
                    "fold": {"v": "sum"}}},
        summary={"v": {"sum": "n.v"}, "p": {"percent": [{"sum": "n.v"}, {"count": "n"}]}},
        proof=["report"],
    )  # fmt: skip
    huge = "9" * 4299
    for value in (huge, "1e308", "999999999999999999"):
        facts = facts_of(given_spec, f'[{{"v":{value},"k":1}},{{"v":{value},"k":1}}]'.encode())
        assert facts.problems or len(str(facts.summary)) < 400


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":[],"a":[{"m":"x"}]}',
        b'{"a":[{"m":"x"}],"b":1,"a":[]}',
        b'{"\\u0061":[{"m":"x"}],"a":[]}',
        b'{"a":[]}{"a":[]}',
        b'{"a":[]}\n{"a":[{"m":"x"}]}\n',
        b'[]{"a":[]}',
        b'{"a":[]}x',
        b'{"a":[]},',
        b'{"a":[],}',
        b'{"a":[1,]}',
        b"{'a':[]}",
        b"{a:[]}",
        b'{"a":[]',
        b'{"a"',
        b'{"a":[]\x00',
        b'// comment\n{"a":[]}',
        b"null",
        b"true",
        b'"a"',
        b"",
        b" \n",
        b"\0",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xff\xfe\x00\x00",
        b'\xff{"a":[]}',
        b'{"a":[]}\xff',
        b'{"a":null}',
        b'{"a":"' + b"x" * 1000,
        b'{"a":[{"m":"\\ud8',
    ],
)
@pytest.mark.parametrize("given_spec", [JSON, SLICE], ids=["whole", "slice"])
def test_json_that_is_no_clean_report(given_spec: Spec, data: bytes) -> None:
    facts = facts_of(given_spec, data)
    # A slice may stand in noise, and several lines may hold it; it must still be whole and single.
    if given_spec is SLICE and data in (
        b'[]{"a":[]}', b'{"a":[]}x', b'{"a":[]},', b'// comment\n{"a":[]}', b'\xff{"a":[]}', b'{"a":[]}\xff',
    ):  # fmt: skip
        assert facts.problems == ()
        return
    assert facts.problems
    assert status(facts) == "parse_mismatch"


def test_lone_surrogates_are_replaced_everywhere() -> None:
    facts = facts_of(JSON, b'{"a":[{"m":"\\ud800x","c":"\\udfff","d":["\\ud800",{"\\ud801":"\\udc01"}]}]}')
    repr(seen(facts)).encode("utf-8")
    assert facts.records[0].message == "\ufffdx"
    json.dumps(facts.summary, ensure_ascii=False).encode("utf-8")


TRUNCATED = {
    "json": (JSON, b'{"v": 1, "a": [], "end": {"x": [1.5, "\xc3\xa9", null]}}'),
    "array": (ARRAY, b"[ ]"),
    "ndjson": (STREAM, b'{"e":"start","x":[1]}\nstray\n{"e":"end","ok":true}\n'),
    "xml": (XML, b"<?xml version='1.0'?>\n<!DOCTYPE r>\n<r a='1'><e m='x'>t &amp; <![CDATA[u]]></e><!-- c --></r>\n"),
    "text": (TEXT, b"ok 1\nok 2\n0 problems.\n"),
    "slice": (SLICE, b'noise\n{"a": [], "b": {"a": []}}\n'),
    "utf16": (JSON, '{"a": []}'.encode("utf-16")),
}


@pytest.mark.parametrize("name", TRUNCATED)
def test_cut_at_every_byte(name: str) -> None:
    """Clean is only what is there to its last sign (white space behind it may be missing)."""
    given_spec, data = TRUNCATED[name]
    assert status(facts_of(given_spec, data)) == "pass", facts_of(given_spec, data).problems
    for end in range(len(data)):
        facts = facts_of(given_spec, data[:end])
        whole = data[end:].strip() == b"" and name != "utf16"
        assert (status(facts) == "pass") is whole, data[:end]


@pytest.mark.parametrize("name", TRUNCATED)
def test_a_failing_document_cut_or_changed_at_any_byte_is_never_green(name: str) -> None:
    failing = {
        "json": b'{"a": [{"m":"x"}], "b": 1}',
        "array": b'[{"m":"x"}]',
        "ndjson": b'{"e":"bad","m":"x"}\n{"e":"end","ok":true}\n',
        "xml": b"<r><e m='bad'>x</e></r>",
        "text": b"a.c:1: x\n1 problems\n",
        "slice": b'n\n{"a": [{"m":"x"}]}\n',
        "utf16": '{"a": [{"m":"x"}]}'.encode("utf-16"),
    }[name]
    given_spec = TRUNCATED[name][0]
    assert facts_of(given_spec, failing, 1).failing == 1
    for end in range(len(failing)):
        assert status(facts_of(given_spec, failing[:end])) != "pass", failing[:end]


GARBAGE = st.one_of(
    st.binary(max_size=200),
    st.lists(
        st.sampled_from(
            [
                b"\x1b[31m", b"\x1b]0;t", b"\x07", b"\x1b\\", b"\x9b1m", b"\r", b"\n", b"\r\n", b"\0", b"\xff\xfe",
                b"\xef\xbb\xbf", b"\xc3", b"\xa9", b"\xf0\x9f", b"{", b"}", b'{"a":', b"[", b"]", b'"', b"<r>", b"<",
                b"<!DOCTYPE r [", b"]>", b"&x;", b"a.py:1: error: x  [y]", b"Found 1 error in 1 file", b"Success",
                b" ", b"  ", b"OK", b"Ran 3 tests in 0.1s",
                b"=" * 70, b"-" * 70, b"FAIL: t (m.T)", b"not ok 1 - a", b"1..2", b"\xe2\x80\xa8", b"\xed\xa0\x80",
            ]
        ),
        max_size=40,
    ).map(b"".join),
)  # fmt: skip


def is_blank(data: bytes) -> bool:
    """Whether a text input shows nothing."""
    return all(block.isspace() for block in text.TextBlocks(Source("x", lambda: io.BytesIO(data))))


@pytest.mark.parametrize("name", BUILT_IN)
@given(data=GARBAGE, rc=st.sampled_from([0, 1, 2]))
def test_garbage_to_every_built_in_spec(name: str, data: bytes, rc: int) -> None:
    loaded = built_in(name)[0]
    for one in [built_in(chosen)[0] for _, chosen in loaded.variants] or [loaded]:
        facts = facts_of(one, data, rc)
        silent = {p.kind for p in one.proof} - {"no_match"} == {"exit_code"} and (not one.findings or is_blank(data))
        if status(facts, rc) == "pass":
            assert rc == 0
            assert silent or any(line.kind not in ("no_match", "exit_code") for line in one.proof)
            assert silent or data.strip(), "nothing at all proves nothing"


@pytest.mark.parametrize(
    "given_spec", [JSON, ARRAY, SLICE, STREAM, XML, TEXT], ids=["json", "array", "slice", "ndjson", "xml", "text"]
)
@given(data=GARBAGE, seed=st.integers(1, 1000))
def test_garbage_in_pieces_is_the_same_garbage(given_spec: Spec, data: bytes, seed: int) -> None:
    facts = facts_of(given_spec, data)
    assert seen(facts_of(given_spec, data, seed=seed)) == seen(facts)
    if given_spec is not TEXT and not facts.problems:
        assert status(facts) != "pass" or data.strip(b"\0 \n")


@given(data=GARBAGE, cut=st.integers(0, 10_000), seed=st.integers(1, 1000))
@pytest.mark.parametrize("name", TRUNCATED)
def test_documents_with_garbage_inside_are_the_same_in_pieces(name: str, data: bytes, cut: int, seed: int) -> None:
    given_spec, whole = TRUNCATED[name]
    at = cut % (len(whole) + 1)
    mixed = whole[:at] + data + whole[at:]
    assert seen(facts_of(given_spec, mixed, seed=seed)) == seen(facts_of(given_spec, mixed))


LINE_PIECES = st.lists(
    st.sampled_from(
        [
            b"a", b"bcd" * 5, b"\r", b"\n", b"\r\n", b"\0", b"\x1b[0m", b"\x1b[K", b"\x1b[1;3", b"\x1b]0;x", b"\x07",
            " é😀".encode(), b"\xff", b" " * 9, b"\xe2\x80\xa8", b"z" * 40, b"\xf0\x9f", b"\x98\x80",
        ]
    ),
    max_size=30,
).map(b"".join)  # fmt: skip


@given(data=LINE_PIECES, seed=st.integers(1, 1000), size=st.sampled_from([1, 2, 7, 64]))
def test_text_blocks_do_not_depend_on_the_reader(data: bytes, seed: int, size: int) -> None:
    """With small bounds, so that cuts and folds happen on every boundary."""
    kept = text.BLOCK_BYTES, text.LINE_BYTES, text.RAW_BYTES
    text.LINE_BYTES, text.RAW_BYTES = 12, 24
    try:
        whole = text.TextBlocks(Source("x", lambda: io.BytesIO(data)))
        expected = b"".join(whole)
        text.BLOCK_BYTES = size
        pieces = text.TextBlocks(Source("x", lambda: Pieces(data, seed, size)))
        blocks = list(pieces)
        assert all(block.endswith(b"\n") for block in blocks)
        assert b"".join(blocks) == expected
        assert pieces.lines_cut == whole.lines_cut
        assert all(len(line) <= 12 for line in expected.split(b"\n"))
    finally:
        text.BLOCK_BYTES, text.LINE_BYTES, text.RAW_BYTES = kept


PATTERNS = [
    "^a", "a$", "^$", "^", "b+", r"\bc", r"\B.", r"\Aa", r"a\z", "(?i)A", "(?s).b", "(?-m:^a)", "[^a]b", r"\s",
    r"\Qa$\E", "[(?P<]", "(?P<message>a|b)", "(?:a|(?P<message>c))b?", "é", r"\x{e9}", "a{2}",
    "^[]a]", r"[[:alpha:]]\]", "(?m)^b$", "(?U)a*",
]  # fmt: skip


@given(
    rules=st.lists(
        st.tuples(st.sampled_from(["new", "attach", "skip", "end", "set", "add"]), st.sampled_from(PATTERNS)),
        min_size=1,
        max_size=4,
    ),
    data=st.text(alphabet="ab c$\n]é", max_size=60),
    otherwise=st.booleans(),
)
def test_searching_a_block_finds_what_trying_every_line_finds(
    rules: list[tuple[str, str]], data: str, otherwise: bool
) -> None:
    lines = Lines(tuple(LineRule(verb, pattern) for verb, pattern in rules), otherwise_end=otherwise)
    block = (data + "\n").encode()

    def rows_of(feed: Callable[[LineRows], None]) -> list[Any]:
        found: list[Any] = []
        rows = LineRows(lines, Context({}, 0, (), ""), found.append)
        feed(rows)
        rows.finish()
        return found

    def line_by_line(rows: LineRows) -> None:
        for line in block.split(b"\n")[:-1]:
            if not rows.line(line, {}):
                rows.untaken({})

    taken: set[int] = set()
    assert rows_of(lambda rows: rows.feed(block, taken)) == rows_of(line_by_line)


@pytest.mark.parametrize(
    "data",
    [
        b"x" * (40 << 20),
        b"\r".join([b"%d%% of the download" % (i % 100) for i in range(2 << 20)]),
        b"\x1b[31m" * (8 << 20),
        b"\x1b]0;" * (8 << 20),
        b"\0" * (40 << 20),
        b"\xff" * (40 << 20),
        b"\n" * (20 << 20),
        "é".encode() * (20 << 20),
    ],
    ids=["line", "progress", "colours", "titles", "zeros", "no-utf8", "newlines", "wide"],
)
def test_40_megabytes_of_one_thing_stay_within_a_few(data: bytes) -> None:
    tracemalloc.start()
    try:
        facts = facts_of(TEXT, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert facts.records == []
    assert status(facts) == "parse_mismatch"
    assert peak < 24 << 20


def test_a_reader_that_fails_is_a_problem() -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    for given_spec in (JSON, ARRAY, STREAM, XML, TEXT):
        names = {i.name for i in given_spec.inputs} | {LOG}
        facts = interpret(given_spec, {n: (Source(n, Broken),) for n in names}, Settings(0, {}))
        assert any("cannot be read: Input/output error" in problem for problem in facts.problems)
        assert status(facts) == "parse_mismatch"


def test_patterns_that_are_too_much_together_still_work() -> None:
    patterns = [rf"^{chr(97 + i % 26)}(?:\pL|\pN){{120}}(?P<message>{i})$" for i in range(40)]
    given_spec = spec(findings=[{"kind": "k", "lines": patterns}], proof=["exit_code"])
    data = b"b" + b"x" * 120 + b"1\nnothing\n"
    assert [r.message for r in facts_of(given_spec, data, 1).records] == ["1"]


def test_no_mark_of_a_bomb_is_left_to_lxml() -> None:
    """The prolog is searched before the parser sees it; this is the parser's own view of the same rule."""
    with pytest.raises(xmldoc.Refused):
        xmldoc.check_prolog("x", b"<!DOCTYPE r [<!ENTITY x 'y'>]><r/>")
    xmldoc.check_prolog("x", b"<!DOCTYPE r PUBLIC '-//x' \"y>[\"><!-- <!ENTITY --><?p <!ENTITY ?><r/>")
