"""The reference of the language says what loads: every block of YAML in it does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ckdn.catalog import Catalog
from ckdn.spec.load import load
from ckdn.spec.read import read_document

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "spec-language.md"
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", REFERENCE.read_text("utf-8"), re.M | re.S)
REQUIRED = {"schema": "ckdn.spec/1", "name": "example", "title": "example", "category": "other"}


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_loads(number: int) -> None:
    text = BLOCKS[number]
    given = re.findall(r"^([a-z_]+):", text, re.M)
    text = "".join(f"{key}: {value}\n" for key, value in REQUIRED.items() if key not in given) + text
    document = read_document(text.encode(), "spec-language.md", kind="yaml", integer_keys=True)
    load(document, document.value["name"], Catalog(environ={}).read)


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 8
