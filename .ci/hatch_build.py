"""The build hook of the wheel: compiles the built-in specs into ``ckdn/_data/compiled/``.

A spec that does not load fails the build with its located problems. Nothing is written into the source tree: the
compiled modules live in a temporary folder until the wheel has them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledSpecs(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the compiled specs to a standard wheel; an editable install reads the YAML files themselves."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory(prefix="ckdn-compiled-")
        package = Path(self._folder.name) / "package"
        compiled = Path(self._folder.name) / "compiled"
        # A package of its own, not a namespace: zipimport finds no namespace in a wheel, which lists no folders.
        for folder in (package, compiled):
            folder.mkdir()
            (folder / "__init__.py").touch()
        compile_specs(Path(self.root), compiled)
        build_data["force_include"][str(package / "__init__.py")] = "ckdn/_data/__init__.py"
        build_data["force_include"][str(compiled)] = "ckdn/_data/compiled"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()


def compile_specs(root: Path, out: Path) -> list[str]:
    """Write the compiled form of every spec in ``root/parsers.d`` to ``out``; the names that were written.

    Raises :class:`ckdn.errors.CkdnError` when a spec does not load and RuntimeError when there is none at all.
    """
    keep_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.path.insert(0, str(root))  # the checkout's own package, whatever else is installed
    try:
        from ckdn.spec import compiled

        names = compiled.write(str(root / "parsers.d"), str(out))
    finally:
        sys.path.remove(str(root))
        sys.dont_write_bytecode = keep_bytecode
    if not names:
        raise RuntimeError(f"no spec found in {root / 'parsers.d'}")
    return names
