"""A project as the commands see it: its config, its specs, its run directories."""

from __future__ import annotations

import os

from ckdn import cache, config, resources
from ckdn.catalog import Catalog, spec_files
from ckdn.errors import ConfigError, Problem
from ckdn.hashing import sha256_hex
from ckdn.model import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ckdn.config import Check, Config, RunSettings


class Project(Struct):
    """A loaded config with the specs it may use."""

    config: Config
    catalog: Catalog
    config_path: str
    """The config file as messages show it."""

    @property
    def runs_dir(self) -> str:
        """Where runs are stored, absolute."""
        return os.path.join(self.config.root, self.config.run.runs_dir)

    def check(self, name: str) -> Check:
        """A check by name; refused with near names."""
        found = self.config.checks.get(name)
        if found is None:
            raise unknown_check(self, name)
        return found


def unknown_check(project: Project, name: str) -> ConfigError:
    """The refusal of a name that the config does not have."""
    from ckdn.errors import near  # the error path

    names = [*project.config.checks, *project.config.aliases]
    what = f"no check `{name}`" if names else f"no check `{name}`: the config has none"
    return ConfigError(Problem(what, path=project.config_path, mend=near(name, names)))


def open_project(cwd: str, explicit: str | None, environ: Mapping[str, str]) -> Project:
    """The project of a folder; raises :class:`ConfigError` with every problem of its config."""
    cwd = checked_folder(cwd)
    file = config.find_config(cwd, explicit)

    def catalog_for(run: RunSettings) -> Catalog:
        base = os.path.dirname(file.path)
        for folder in run.specs:
            if not os.path.isdir(os.path.join(base, folder)):
                what = f"[run].specs names the folder {folder}, which does not exist"
                raise ConfigError(Problem(what, path=file.shown, mend="make it, or take it out"))
        folders = [os.path.join(base, "parsers.d"), *[os.path.join(base, folder) for folder in run.specs]]
        return Catalog(folders, run.override, environ, shown_from=base)

    store = cache.folder(dict(environ))
    sha256 = sha256_hex(file.data)
    key = cache.key_of("config", file.path, file.root, file.cwd, file.kind, sha256)
    kept = cache.get(store, key)
    if kept is not None:
        loaded = config.config_from_plain(kept[0])
        catalog = catalog_for(loaded.run)
        if state_of(catalog) == kept[1]:
            return Project(loaded, catalog, file.shown)
    catalogs: list[Catalog] = []

    def lookup(run: RunSettings) -> Catalog:
        catalogs.append(catalog_for(run))
        return catalogs[0]

    loaded = config.load_config(file, lookup)
    cache.put(store, key, (loaded.to_plain(), state_of(catalogs[0])))
    return Project(loaded, catalogs[0], file.shown)


def state_of(catalog: Catalog) -> tuple[tuple[str, int, int], ...]:
    """What the validity of a config depends on besides its text: the spec files it may name (path, size, mtime)."""
    state = []
    for folder in (*catalog.folders, *catalog.user_folders(), *checkout_folder()):
        for file_name in spec_files(folder).values():
            path = os.path.join(folder, file_name)
            try:
                found = os.stat(path)
            except OSError:
                continue
            state.append((path, found.st_size, found.st_mtime_ns))
    return tuple(state)


def checkout_folder() -> tuple[str, ...]:
    """The built-in specs' folder where they are not compiled into a wheel and may change under the same version."""
    return () if resources.compiled("generic") is not None else (resources.folder("parsers.d"),)


def checked_folder(cwd: str) -> str:
    """An absolute working directory that exists."""
    path = os.path.abspath(cwd)
    if not os.path.isdir(path):
        raise ConfigError(Problem(f"the folder {cwd} does not exist", mend="give --cwd an existing folder"))
    return path
