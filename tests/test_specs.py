"""The shipped specs: each loads, keeps the conventions, and reads its captured output as a person read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckdn.app import specs
from ckdn.catalog import Catalog

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = (str(ROOT / "fixtures"),)
NAMES = Catalog(environ={}).names()
CHOSEN = {name for parent in NAMES for _, name in Catalog(environ={}).load(parent).spec.variants}
"""Specs that another one chooses by an option; their cases stand with that one."""


def catalog() -> Catalog:
    return Catalog(environ={"CKDN_CACHE": "off"})


@pytest.mark.parametrize("name", NAMES)
def test_its_cases(name: str) -> None:
    outcomes = list(specs.check_cases(catalog(), (name,), FIXTURES, update=False))
    assert [(o.case, o.problems) for o in outcomes if o.problems] == []
    assert outcomes or name in CHOSEN


@pytest.mark.parametrize("name", NAMES)
def test_its_conventions(name: str) -> None:
    assert [f"{severity}: {problem}" for severity, problem in specs.lint_specs(catalog(), (name,), FIXTURES)] == []


def test_every_fixture_belongs_to_a_spec() -> None:
    assert sorted(p.name for p in Path(FIXTURES[0]).iterdir()) == sorted(set(NAMES) - CHOSEN)


def test_a_red_case_is_never_pass_when_only_its_exit_code_turns_to_zero() -> None:
    """Single mutation: the evidence of failing findings stays, the exit code lies.

    Where a spec's own `failing` asks the exit code (a tool that has warnings only), green is what the spec says.
    """
    green = []
    for name in NAMES:
        _, document = catalog().read(name)
        for case in specs.cases_of(name, document, FIXTURES):
            _, facts, verdict = specs.digest_of(catalog(), name, case, ())
            if verdict.status == "fail" and facts.failing:
                case.rc = 0
                _, lied, verdict = specs.digest_of(catalog(), name, case, ())
                asks = any(f.failing is not None for f in catalog().load(name).spec.findings)
                if verdict.status == "pass" and (lied.failing or not asks):
                    green.append(case.name)
    assert green == []
