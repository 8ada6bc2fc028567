"""JSON Schemas and the documents that follow them."""

from __future__ import annotations

import json
import os

from ckdn import resources
from ckdn.app.inputs import NotRegular, open_regular
from ckdn.errors import CkdnError, ConfigError, Problem, near

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Imports inside functions: every command but `run` loads this module, and few documents need the loaders.
SUFFIX = ".schema.json"
READ_BYTES = 1 << 26


def schema_files() -> dict[str, str]:
    """The packaged schemas: id → file name."""
    found = {}
    for name in resources.names("schemas"):
        if name.endswith(SUFFIX):
            kind, _, version = name.removesuffix(SUFFIX).rpartition(".v")
            found[f"{kind}/{version}"] = name
    return found


def schema_ids() -> list[str]:
    """Their ids, sorted."""
    return sorted(schema_files())


def schema_text(schema_id: str) -> bytes:
    """One schema as shipped."""
    files = schema_files()
    data = resources.read("schemas", files[schema_id]) if schema_id in files else None
    if data is None:
        raise ConfigError(Problem(f"unknown schema `{schema_id}`", path="ckdn schema", mend=near(schema_id, files)))
    return data


def export_schemas(folder: str) -> list[str]:
    """Write every schema into a folder; the paths written."""
    paths = []
    try:
        os.makedirs(folder, exist_ok=True)
        for schema_id, name in sorted(schema_files().items()):
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(schema_text(schema_id))
            paths.append(path)
    except OSError as e:
        raise ConfigError(Problem(f"cannot be written: {e.strerror}", path=folder)) from None
    return paths


def validate_file(path: str, cwd: str) -> list[Problem]:
    """What is wrong with one document; empty when nothing is."""
    data = b""
    try:
        reader = open_regular(path)
        while chunk := reader.read(READ_BYTES):
            data += chunk
        reader.close()
    except NotRegular:
        raise ConfigError(Problem("is no regular file", path=path)) from None
    except OSError as e:
        raise ConfigError(Problem(f"cannot be read: {e.strerror}", path=path)) from None
    if path.endswith((".yaml", ".yml", ".toml")):
        return validate_source(path, data)
    if path.endswith(".jsonl"):
        return validate_lines(path, data)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as e:
        return [Problem(f"is no JSON: {e}", path=path)]
    return schema_problems(path, value, value.get("schema") if isinstance(value, dict) else None)


def validate_lines(path: str, data: bytes) -> list[Problem]:
    """A file of ``ckdn.finding/1`` lines."""
    problems = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line:
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as e:
            problems.append(Problem(f"is no JSON: {e}", path=path, line=number))
            continue
        for problem in schema_problems(path, value, "ckdn.finding/1"):
            problem.line = number
            problems.append(problem)
    return problems


def validate_source(path: str, data: bytes) -> list[Problem]:
    """A spec or a config: the loaders say more than the schema, and where."""
    from ckdn.catalog import Catalog
    from ckdn.spec.read import read_document

    try:
        document = read_document(data, path, integer_keys=True)
        schema_id = document.value.get("schema") if isinstance(document.value, dict) else None
        if schema_id == "ckdn.spec/1":
            from ckdn.spec.load import load

            folder = os.path.dirname(os.path.abspath(path))
            load(document, os.path.basename(path).rpartition(".")[0], Catalog([folder]).read)
            return []
        name = os.path.basename(path)
        if schema_id == "ckdn.config/1" or (schema_id is None and name.rpartition(".")[0] in ("ckdn", "pyproject")):
            from ckdn.app.project import open_project

            folder = os.path.dirname(os.path.abspath(path))
            open_project(folder, path, {**os.environ, "CKDN_CACHE": "off"})
            return []
    except CkdnError as e:
        return list(e.problems)
    return schema_problems(path, document.value, schema_id)


def schema_problems(path: str, value: Any, schema_id: Any) -> list[Problem]:
    """Every violation of the schema, by jsonschema."""
    if not isinstance(schema_id, str) or schema_id not in schema_files():
        known = ", ".join(schema_ids())
        what = "has no key `schema`" if schema_id is None else f"has the unknown schema {schema_id!r}"
        return [Problem(what, path=path, mend=f"known: {known}")]
    import jsonschema  # 167 ms: for this command alone

    validator = jsonschema.Draft7Validator(json.loads(schema_text(schema_id)))
    problems = []
    for error in sorted(validator.iter_errors(value), key=lambda e: list(map(str, e.absolute_path))):
        place = ".".join(str(part) for part in error.absolute_path) or "the document"
        problems.append(Problem(f"{place}: {error.message[:300]}", path=path))
    return problems
