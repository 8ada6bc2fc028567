"""``ckdn schema`` and ``ckdn validate``."""

from __future__ import annotations

import argparse
import os

from ckdn.app import documents
from ckdn.bounds import safe
from ckdn.cli import output
from ckdn.cli.arguments import add
from ckdn.errors import ExitCode

SCHEMA_DESCRIPTION = """\
Print a JSON Schema by its id, or list the ids.

example:
  ckdn schema ckdn.digest/2"""

VALIDATE_DESCRIPTION = """\
Check documents against the schema that their key `schema` names: digests, facts, meta, specs, configs (JSON, YAML,
TOML). A findings.jsonl is checked line by line.

example:
  ckdn validate .agent-runs/latest/digest.json parsers.d/*.yaml"""


def add_arguments(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command lines of `schema` and `validate`."""
    schema = add(commands, "schema", "print or export the JSON Schemas", SCHEMA_DESCRIPTION)
    schema.add_argument("id", metavar="ID", nargs="?", help="such as ckdn.digest/2; default: list the ids")
    schema.add_argument("--export", metavar="DIR", help="write every schema into a folder")
    schema.set_defaults(act=run_schema)
    validate = add(commands, "validate", "check documents against their schema", VALIDATE_DESCRIPTION)
    validate.add_argument("files", metavar="FILE", nargs="+")
    validate.set_defaults(act=run_validate)


def run_schema(asked: argparse.Namespace) -> int:
    """Print, list or export."""
    if asked.export:
        for path in documents.export_schemas(asked.export):
            output.say(path)
    elif asked.id:
        output.emit(documents.schema_text(asked.id))
    else:
        for name in documents.schema_ids():
            output.say(name)
    return ExitCode.OK


def run_validate(asked: argparse.Namespace) -> int:
    """A line per problem."""
    problems = [p for file in asked.files for p in documents.validate_file(file, os.getcwd())]
    for problem in problems:
        output.say(safe(str(problem)))
    return ExitCode.FOUND if problems else ExitCode.OK
