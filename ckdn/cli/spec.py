"""``ckdn spec``: list, show, lint and test specs."""

from __future__ import annotations

import argparse
import os

from ckdn.app import specs
from ckdn.app.project import checked_folder
from ckdn.bounds import safe
from ckdn.catalog import Catalog
from ckdn.cli import output
from ckdn.cli.arguments import add, add_project
from ckdn.cli.parse import catalog_of
from ckdn.errors import ConfigError, ExitCode, Problem
from ckdn.verdict import count

DESCRIPTION = """\
The parsers of tools are specs: YAML or TOML files in parsers.d/ beside ckdn.toml, or built in.

example:
  ckdn spec show ruff > parsers.d/mylint.yaml
  ckdn spec lint mylint && ckdn spec test mylint"""


def add_arguments(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command line of `spec`."""
    parser = add(commands, "spec", "list, show, lint and test specs", DESCRIPTION)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = add(actions, "list", "every spec, its origin, and how green is proven", "List specs.")
    show = add(actions, "show", "print a spec's file", "Print a spec's file.")
    show.add_argument("name", metavar="SPEC")
    lint = add(actions, "lint", "check that specs load and keep the conventions", "Check specs.")
    lint.add_argument("--strict", action="store_true", help="a warning counts as a problem")
    test = add(actions, "test", "run the examples and fixtures of specs", "Run examples and fixtures.")
    test.add_argument("--update", action="store_true", help="write the digests of fixtures that meet their expectation")
    for one, act in ((listing, run_list), (show, run_show), (lint, run_lint), (test, run_test)):
        if one in (lint, test):
            one.add_argument("names", metavar="SPEC|FILE", nargs="*", help="default: every spec")
            one.add_argument("--fixtures", metavar="DIR", help="default: fixtures/ in the project")
        add_project(one)
        one.set_defaults(act=act)


def opened(asked: argparse.Namespace) -> tuple[Catalog, str]:
    """The catalog and the project's folder."""
    cwd = checked_folder(asked.cwd or os.getcwd())
    return catalog_of(cwd, asked.config)


def run_list(asked: argparse.Namespace) -> int:
    """A line per spec."""
    catalog, _ = opened(asked)
    for info in specs.list_specs(catalog):
        output.say(f"{info.name:<16} {info.category:<9} {info.origin:<24} {info.title}; green {info.proof}")
    return ExitCode.OK


def run_show(asked: argparse.Namespace) -> int:
    """The file as it is."""
    catalog, _ = opened(asked)
    _, data = specs.spec_source(catalog, asked.name)
    output.emit(data)
    return ExitCode.OK


def chosen(asked: argparse.Namespace, catalog: Catalog) -> tuple[Catalog, tuple[str, ...]]:
    """Spec names; a file stands for its stem, looked up in its own folder first."""
    names = []
    folders = list(catalog.folders)
    for name in asked.names:
        if os.sep in name or name.endswith((".yaml", ".yml", ".toml")):
            if not os.path.isfile(name):
                raise ConfigError(Problem("no such file", path=name))
            folder = os.path.dirname(os.path.abspath(name))
            if folder not in folders:
                folders.insert(0, folder)
            names.append(os.path.basename(name).rpartition(".")[0])
        else:
            names.append(name)
    if folders != list(catalog.folders):
        catalog = Catalog(folders, catalog.override, catalog.environ, catalog.shown_from)
    return catalog, tuple(names)


def fixtures_of(asked: argparse.Namespace, cwd: str) -> tuple[str, ...]:
    """The folders of fixtures."""
    if asked.fixtures is None:
        return specs.fixture_folders(cwd)
    if not os.path.isdir(asked.fixtures):
        raise ConfigError(Problem("no such folder", path=asked.fixtures))
    return (asked.fixtures,)


def run_lint(asked: argparse.Namespace) -> int:
    """A line per problem."""
    catalog, cwd = opened(asked)
    catalog, names = chosen(asked, catalog)
    found = specs.lint_specs(catalog, names, fixtures_of(asked, cwd))
    for severity, problem in found:
        output.say(safe(f"{severity}: {problem}"))
    errors = sum(1 for severity, _ in found if severity == "error" or asked.strict)
    checked = count(len(names or catalog.names()), "spec")
    output.tell(f"{checked}, {count(len(found), 'problem')}, {count(errors, 'error')}")
    return ExitCode.FOUND if errors else ExitCode.OK


def run_test(asked: argparse.Namespace) -> int:
    """A line per failing case, and the count."""
    if asked.update and os.environ.get("CI"):
        raise ConfigError(
            Problem("--update under CI", path="ckdn spec test", mend="update where you can look at the change")
        )
    catalog, cwd = opened(asked)
    catalog, names = chosen(asked, catalog)
    total = failed = updated = 0
    for outcome in specs.check_cases(catalog, names, fixtures_of(asked, cwd), update=asked.update):
        total += 1
        failed += bool(outcome.problems)
        updated += outcome.updated
        for problem in outcome.problems:
            output.say(safe(f"{outcome.case}: {problem}"))
    output.tell(f"{count(total, 'case')}, {failed} failed" + (f", {updated} updated" if updated else ""))
    return ExitCode.FOUND if failed else ExitCode.OK
