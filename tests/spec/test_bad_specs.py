"""Every way to get a spec wrong, with the lines a person reads: ``bad_specs/NAME.yaml`` and its ``NAME.txt``.

``needed/`` has the good specs that some of them extend or include.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ckdn.catalog import Catalog
from ckdn.errors import CkdnError

TESTS = Path(__file__).resolve().parent.parent
FOLDER = TESTS / "bad_specs"
SPECS = sorted(path for path in FOLDER.iterdir() if path.suffix in (".yaml", ".toml"))
NEEDED = sorted((FOLDER / "needed").iterdir())


def catalog() -> Catalog:
    return Catalog([str(FOLDER), str(FOLDER / "needed")], environ={"CI": "1"}, shown_from=str(TESTS))


def lines(name: str) -> list[str]:
    with pytest.raises(CkdnError) as caught:
        catalog().read(name)
    return list(caught.value.lines())


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_bad_spec_is_refused_in_these_words(path: Path) -> None:
    assert lines(path.stem) == path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()


def test_every_file_has_its_words_and_the_other_way_round() -> None:
    assert len(SPECS) > 150
    assert {path.stem for path in SPECS} == {path.stem for path in FOLDER.glob("*.txt")}
    assert {path.suffix for path in FOLDER.iterdir() if path.is_file()} == {".yaml", ".toml", ".txt"}


@pytest.mark.parametrize("path", NEEDED, ids=lambda path: path.stem)
def test_the_specs_that_bad_ones_need_are_good(path: Path) -> None:
    if path.stem == "extends_base":  # good by itself, refused as a base
        assert catalog().read(path.stem)[0].findings == catalog().read("bad_base")[0].findings
    assert catalog().read(path.stem)[0].name == path.stem


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_words_say_where_in_one_line_each(path: Path) -> None:
    text = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    places = []
    for line in text:
        assert line.startswith(f"ckdn: bad_specs/{path.name}:")
        place, _, what = line.removeprefix(f"ckdn: bad_specs/{path.name}").partition(": ")
        assert what
        assert what.count("; ") <= 1, "what is wrong; the mend"
        assert len(what) < 260
        for foreign in ("None", "Traceback", "<class", "{'", "tuple", "KeyError"):
            assert foreign not in what
        places.append(tuple(map(int, place[1:].split(":"))) if place else ())
        assert len(places[-1]) in (0, 2), "a line and a column, or neither for a file that cannot be read at all"
    assert places == sorted(places)
