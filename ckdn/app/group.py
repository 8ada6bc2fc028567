"""Running several checks: an alias, several names, or all of them; one aggregate, stored like a run."""

from __future__ import annotations

import os

from ckdn import digest, rundir, validators
from ckdn.app.run import run_check
from ckdn.errors import CkdnError, ConfigError, ExitCode, Problem
from ckdn.model import ERROR, PASS, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ckdn.app.project import Project
    from ckdn.runner import Interrupts

ALL = "*"
"""The aggregate's name for ``--all``."""
SKIPPED = "skipped"
FILE_NAMES = {ALL: "+all"}
"""Run directories of aggregates that no alias names; a check's name has no ``+``."""


class Group(Struct):
    """What is run together."""

    name: str
    """The alias, ``*`` for all checks, or the names joined by commas."""
    members: tuple[str, ...]
    """Checks, each once, in the order of the config (of the alias; of the command line)."""
    fail_fast: bool


class GroupResult(Struct):
    """One finished aggregate."""

    document: dict[str, Any]
    data: bytes
    exit_code: int
    run_id: str


def group_of(project: Project, names: Sequence[str], *, every: bool, fail_fast: bool) -> Group:
    """The group that names mean; aliases among several names stand for their members.

    An alias alone keeps its own `fail_fast`. Raises :class:`ConfigError` for unknown names.
    """
    config = project.config
    if every:
        if names:
            raise ConfigError(Problem("--all beside names", path="ckdn run", mend="give one of them"))
        return Group(ALL, tuple(config.checks), fail_fast)
    if len(names) == 1 and names[0] in config.aliases:
        alias = config.aliases[names[0]]
        return Group(alias.name, alias.members, alias.fail_fast or fail_fast)
    members: list[str] = []
    for name in names:
        found = config.aliases.get(name)
        members += [project.check(name).name] if found is None else found.members
    return Group(",".join(names), tuple(dict.fromkeys(members)), fail_fast)


def run_group(
    project: Project,
    group: Group,
    *,
    timeout: float | None = None,
    environ: Mapping[str, str],
    stop: Interrupts | None = None,
    finished: Callable[[dict[str, Any]], None] | None = None,
) -> GroupResult:
    """Run the members one after the other and store the aggregate.

    ``finished`` gets each member's digest as it is done. One member's refusal costs only itself: it is that member's
    ``error``. After a member that is not green, fail-fast lists the others as skipped.
    """
    if not group.members:
        raise ConfigError(Problem("no check to run", path=project.config_path, mend="configure one"))
    name = FILE_NAMES.get(group.name, group.name if group.name in project.config.aliases else "+several")
    with rundir.create(project.runs_dir, name) as run_dir:
        members: list[dict[str, Any]] = []
        red = False
        for check in group.members:
            if (stop is not None and stop.signum) or (red and group.fail_fast):
                members.append({"check": check, "status": SKIPPED})
                continue
            member, document = run_member(project, check, timeout, environ, stop)
            members.append(member)
            red = red or member["status"] != PASS
            if finished is not None:
                finished(document)
        document = aggregate(group.name, members, stop.signum if stop is not None else 0)
        data = store(project, run_dir, document)
    return GroupResult(document, data, document["rc"], run_dir.name)


def run_member(
    project: Project, check: str, timeout: float | None, environ: Mapping[str, str], stop: Interrupts | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One member: its line of the aggregate, and its digest (a refusal has a line that says why instead)."""
    try:
        result = run_check(project, check, timeout=timeout, environ=environ, stop=stop)
    except CkdnError as e:
        refused = {"check": check, "status": ERROR, "rc": ExitCode.REFUSED}
        return refused, {**refused, "status_reason": str(e.problems[0]), "refused": [str(p) for p in e.problems]}
    member = {"check": check, "status": result.document["status"], "rc": result.exit_code}
    if member["status"] != PASS:
        member["run_dir"] = result.document["run_dir"]
    return member, result.document


def aggregate(name: str, members: list[dict[str, Any]], signum: int) -> dict[str, Any]:
    """``ckdn.aggregate/1``: green only when every member is."""
    red = next((m for m in members if m["status"] not in (PASS, SKIPPED)), None)
    document: dict[str, Any] = {
        "schema": "ckdn.aggregate/1",
        "alias": name,
        "status": PASS if all(m["status"] == PASS for m in members) else red["status"] if red else ERROR,
        "rc": 0,
        "members": members,
    }
    if document["status"] != PASS:
        document["rc"] = (red.get("rc") if red else 0) or ExitCode.FOUND
    if signum:
        document.update(interrupted=True, rc=128 + signum)
        if document["status"] == PASS:
            document["status"] = ERROR
    return document


def store(project: Project, run_dir: rundir.RunDir, document: dict[str, Any]) -> bytes:
    """Write aggregate.json, move `latest`, prune."""
    data = digest.serialise(document)
    validators.validate(document)
    try:
        rundir.write_atomic(os.path.join(run_dir.path, "aggregate.json"), data)
        rundir.set_latest(project.runs_dir, run_dir.name)
        rundir.prune(project.runs_dir, project.config.run.keep, run_dir.check, (run_dir.name,))
    except OSError as e:
        raise ConfigError(Problem(f"cannot write the run directory: {e.strerror}", path=run_dir.path)) from None
    return data
