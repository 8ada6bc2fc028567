"""Which spec a name means: the project's folders, what ships with ckdn, the user's folder, installed packages.

A name that exists in two places with different content is refused unless the config's ``override`` names it; then the
project's is taken, and that is said.
"""

from __future__ import annotations

import os
import stat

from ckdn import cache, resources
from ckdn.errors import Problem, SpecError, near
from ckdn.hashing import sha256_hex
from ckdn.model import Struct
from ckdn.spec.types import freeze, thaw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ckdn.spec.read import Document
    from ckdn.spec.types import Spec

SUFFIXES = (".yaml", ".yml", ".toml")
BUILT_IN = "built-in"
MAX_SPEC_BYTES = 1 << 20
MAX_NAME = 100


class Found(Struct):
    """One file that defines a name."""

    origin: str
    """``built-in``, or the file as messages show it."""
    path: str
    """The file on disk; empty for what ships with ckdn."""
    file_name: str
    data: bytes


class Loaded(Struct):
    """A loaded spec with where it came from."""

    spec: Spec
    origin: str
    sha256: str
    needs: tuple[str, ...] = ()
    """The names of other specs that it was made from or chooses from."""


class Catalog:
    """The specs a project can use."""

    def __init__(
        self,
        folders: Iterable[str] = (),
        override: Iterable[str] = (),
        environ: Mapping[str, str] | None = None,
        shown_from: str = "",
    ) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self.folders = tuple(folders)
        self.override = tuple(override)
        self.shown_from = shown_from
        """Paths in messages are relative to this folder."""
        self.loaded: dict[str, Loaded] = {}
        self.loading: list[str] = []
        self.chosen: dict[str, str] = {}
        """Names that `override` decided, with what there is to say about it."""
        self.cache_folder = cache.folder(self.environ)

    # --- names ---------------------------------------------------------------------------------------------------

    def names(self) -> tuple[str, ...]:
        """Every name that can be used, sorted."""
        found = set(self.built_in_names())
        for folder in (*self.folders, *self.user_folders()):
            found.update(stem for stem in spec_files(folder) if not stem.startswith("_"))
        found.update(name for name, _ in self.package_files())
        return tuple(sorted(found))

    def built_in_names(self) -> tuple[str, ...]:
        """What ships with ckdn."""
        stems = (name.rpartition(".")[0] for name in resources.names("parsers.d") if name.endswith(SUFFIXES))
        return tuple(sorted(stem for stem in stems if not stem.startswith("_")))

    def user_folders(self) -> tuple[str, ...]:
        """The user's own folder; CI has none."""
        if self.environ.get("CI"):
            return ()
        base = self.environ.get("XDG_CONFIG_HOME") or os.path.join(self.environ.get("HOME") or "", ".config")
        return (os.path.join(base, "ckdn", "parsers.d"),) if os.path.isabs(base) else ()

    def package_files(self) -> list[tuple[str, str]]:
        """Spec files of installed packages (entry points ``ckdn.specs`` name packages): (name, path)."""
        from importlib.metadata import entry_points  # 40 ms: asked only for a name that nothing else has
        from importlib.util import find_spec

        found = []
        for point in sorted(entry_points(group="ckdn.specs"), key=lambda p: p.value):
            try:
                module = find_spec(point.module)  # a top-level package is found without running its code
            except Exception:  # a broken package is no business of whoever asks for another name
                continue
            for folder in (module.submodule_search_locations if module is not None else None) or ():
                found += [(stem, os.path.join(folder, file)) for stem, file in spec_files(folder).items()]
        return found

    # --- finding -------------------------------------------------------------------------------------------------

    def find(self, name: str) -> Found | None:
        """The file that a name means; refused when two places disagree."""
        places: list[Found] = []
        for folder in self.folders:
            for suffix in SUFFIXES:
                path = os.path.join(folder, name + suffix)
                data = read_regular(path)
                if data is not None:
                    places.append(Found(self.shown(path), path, name + suffix, data))
        project = list(places)
        for suffix in SUFFIXES:
            data = resources.read("parsers.d", name + suffix)
            if data is not None:
                places.append(Found(BUILT_IN, "", name + suffix, data))
        for folder in self.user_folders():
            for suffix in SUFFIXES:
                path = os.path.join(folder, name + suffix)
                data = read_regular(path)
                if data is not None:
                    places.append(Found(self.shown(path), path, name + suffix, data))
        if not places:
            for stem, path in self.package_files():
                data = read_regular(path) if stem == name else None
                if data is not None:
                    places.append(Found(self.shown(path), path, os.path.basename(path), data))
        if not places:
            return None
        self.check_shadowing(name, places, project)
        return places[0]

    def has(self, name: str) -> bool:
        """Whether there is a spec of that name, be it sound or not."""
        try:
            return plain_name(name) and self.find(name) is not None
        except SpecError:
            return True

    def existing(self, name: str) -> Found:
        """The file that a name means; an unknown name is refused with near ones."""
        found = self.find(name) if plain_name(name) else None
        if found is None:
            raise SpecError(Problem(f"unknown spec '{name}'", mend=near(name, self.names())))
        return found

    def check_shadowing(self, name: str, places: list[Found], project: list[Found]) -> None:
        """Two different files of one name need an override, which takes the first; never two of the project's."""
        different = [p for p in places[1:] if p.data != places[0].data]
        if not different:
            return
        two_of_project = any(p.data != project[0].data for p in project[1:])
        both = f"{places[0].origin} and {different[0].origin}"
        if name in self.override and not two_of_project:
            self.chosen[name] = f"the spec `{name}` exists twice: {both}; the first is used, by override"
            return
        mend = f'rename one, or say override = ["{name}"] in [run] to use {places[0].origin}'
        if two_of_project:
            mend = "keep one of them"
        where = project[0].origin if project else different[0].origin
        raise SpecError(Problem(f"the spec `{name}` exists twice: {both}", path=where, mend=mend))

    def overridden(self, parser: str, loaded: Loaded) -> str:
        """What to say when `override` decided about a spec or what it is made from; empty when it did not.

        ``parser`` is the name that was asked for, ``loaded`` what it means (a variant has another name).
        """
        names = (parser, loaded.spec.name, *loaded.needs, *[i.spec for i in loaded.spec.includes])
        return "; ".join([self.chosen[name] for name in dict.fromkeys(names) if name in self.chosen])

    def shown(self, path: str) -> str:
        """A path for messages and meta: relative to the project where it lies below it."""
        base = self.shown_from.rstrip("/")
        return path[len(base) + 1 :] if base and path.startswith(base + "/") else path

    # --- loading -------------------------------------------------------------------------------------------------

    def load(self, name: str) -> Loaded:
        """A loaded spec; raises :class:`SpecError` for an unknown name or with every problem of the file."""
        if name not in self.loaded:
            self.loaded[name] = self.built_in(name) or self.from_file(name)
        return self.loaded[name]

    def built_in(self, name: str) -> Loaded | None:
        """The compiled form from the wheel, if no other place has the name (or what it needs)."""
        compiled = resources.compiled(name)
        if compiled is None or name.startswith("_"):
            return None
        sha256, needs, frozen = compiled
        if any(self.elsewhere(n) for n in (name, *needs)):
            return None
        return Loaded(thaw(frozen), BUILT_IN, sha256, needs)

    def elsewhere(self, name: str) -> bool:
        """Whether a folder of the project or the user has a file of that name."""
        for folder in (*self.folders, *self.user_folders()):
            for suffix in SUFFIXES:
                if os.path.lexists(os.path.join(folder, name + suffix)):
                    return True
        return False

    def from_file(self, name: str) -> Loaded:
        """A spec from its file, or from the cache when neither it nor what it needs has changed."""
        found = self.existing(name)
        sha256 = sha256_hex(found.data)
        key = cache.key_of("spec", name, found.origin, sha256)
        kept = cache.get(self.cache_folder, key)
        if kept is not None and all(self.sha256_of(n) == sha for n, sha in kept[0]):
            return Loaded(thaw(kept[1]), found.origin, sha256, tuple(n for n, _ in kept[0]))
        spec, document = self.read(name, found)
        from ckdn.spec.compiled import all_needs  # with the loader, which this path has loaded

        depends = tuple((n, self.sha256_of(n)) for n in all_needs(document.value, self.read))
        cache.put(self.cache_folder, key, (depends, freeze(spec)))
        return Loaded(spec, found.origin, sha256, tuple(n for n, _ in depends))

    def sha256_of(self, name: str) -> str:
        """The content of the file that a name means now."""
        found = self.find(name)
        return sha256_hex(found.data) if found is not None else ""

    def read(self, name: str, found: Found | None = None) -> tuple[Spec, Document]:
        """Read and check a spec's file; the document keeps its positions."""
        from ckdn.spec.load import load  # the loader and its parsers: not needed for compiled or cached specs
        from ckdn.spec.read import read_document

        if name in self.loading:
            raise SpecError(f"`{self.loading[0]}` needs itself: {' → '.join([*self.loading, name])}")
        found = found or self.existing(name)
        self.loading.append(name)
        try:
            shown = resources.origin("parsers.d", found.file_name) if found.origin == BUILT_IN else found.origin
            document = read_document(found.data, shown, integer_keys=True)
            return load(document, name, self.read), document
        except ImportError as e:
            if e.name != "re2":
                raise
            raise no_re2(name) from None
        finally:
            self.loading.pop()

    # --- what others ask -----------------------------------------------------------------------------------------

    def options(self, name: str) -> Mapping[str, Mapping[str, Any]] | None:
        """The options of a spec; None when it does not load (that is told by whoever uses it)."""
        try:
            return self.load(name).spec.options
        except SpecError:
            return None

    def resolve(self, name: str, options: Mapping[str, Any]) -> Loaded:
        """The spec for these option values: a file with variants chooses another one."""
        loaded = self.load(name)
        option = loaded.spec.variant_option
        if not option:
            return loaded
        wanted = options.get(option, loaded.spec.options[option].get("default"))
        chosen = dict(loaded.spec.variants).get(str(wanted))
        if chosen is None:
            raise SpecError(f"the spec `{name}` has no variant `{wanted}`")
        return self.load(chosen)

    def launchers(self) -> tuple[str, ...]:
        """Patterns of lines that launchers print."""
        compiled = resources.compiled("_launchers")
        if compiled is not None:
            return compiled
        from ckdn.spec.compiled import launcher_patterns  # a checkout: the file itself
        from ckdn.spec.read import read_document

        data = resources.read("parsers.d", "_launchers.yaml")
        return launcher_patterns(read_document(data, "_launchers.yaml")) if data else ()


def require_re2(spec: Spec) -> None:
    """Refuse a spec with regular expressions where google-re2 is missing, before its tool runs for nothing."""
    if not uses_regex(spec):
        return
    try:
        __import__("re2")
    except ImportError:
        raise no_re2(spec.name) from None


def uses_regex(spec: Spec) -> bool:
    """Whether reading this spec's inputs needs RE2."""
    return (
        any(row.lines is not None or any(f.match or f.replace for f in row.fields) for row in spec.rows)
        or any(number.pattern for number in spec.declared)
        or any(line.pattern or line.kind == "exit_code" for line in spec.proof if spec.findings)
        or any(given.prefix is not None for given in spec.inputs)
    )


def no_re2(name: str) -> SpecError:
    """The refusal where the package is missing (it has no musl wheel)."""
    what = f"the spec `{name}` has regular expressions, and google-re2 is not installed"
    return SpecError(Problem(what, mend="install the package google-re2; generic needs none"))


def plain_name(name: str) -> bool:
    """A spec's name and nothing else."""
    return 0 < len(name) <= MAX_NAME and name[0] != "_" and name.isascii() and name.replace("_", "a").isalnum()


def spec_files(folder: str) -> dict[str, str]:
    """The spec files of a folder by stem."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return {}
    return {name.rpartition(".")[0]: name for name in names if name.endswith(SUFFIXES)}


def read_regular(path: str) -> bytes | None:
    """A regular file's bytes; None when it is not there. Anything else under the name is refused."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except OSError as e:
        raise SpecError(Problem(f"cannot be read: {e.strerror}", path=path)) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise SpecError(Problem("is no regular file", path=path))
    with os.fdopen(fd, "rb") as file:
        data = file.read(MAX_SPEC_BYTES + 1)
    if len(data) > MAX_SPEC_BYTES:
        raise SpecError(Problem("is larger than 1 MiB", path=path, mend="a spec is a few kilobytes"))
    return data
