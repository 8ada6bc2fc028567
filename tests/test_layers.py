"""Who may import whom: a module imports lower layers and its own box only, and the pure layers touch no outside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# One line a layer, lowest first; a box is one module, one package, or a few modules joined by + (box of the first).
LAYERS = [
    "model  errors  clean  masking  jsonout  hashing  validators",
    "spec",
    "engine  verdict  digest+bounds+textout  baseline  reporters",
    "resources  cache",
    "runner+guardian  rundir  config  catalog",
    "app  night",
    "cli  mcp  __main__",
]
PURE = 3  # this many layers from the bottom: values in, values out
OUTSIDE = {"os", "pathlib", "time", "subprocess", "socket", "shutil", "tempfile", "threading", "signal", "datetime"}
EXCEPT = {
    "ckdn.spec.compiled": {"os"},  # runs only while a wheel is built
}
BOXES = {
    module: (level, box.split("+")[0])
    for level, line in enumerate(LAYERS)
    for box in line.split()
    for module in box.split("+")
}
GUESTS = {"__main__": "cli"}  # the one pair on a layer that belongs together


class Import:
    """One imported name: the module it stands in, the dotted name, and how it is imported."""

    def __init__(self, module: str, target: str, line: int, typing_only: bool, function: str) -> None:
        self.module = module
        self.target = target
        self.line = line
        self.typing_only = typing_only
        self.function = function

    def __repr__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def modules(root: Path) -> dict[str, Path]:
    """Dotted name → file, for the package."""
    found = {}
    for path in sorted((root / "ckdn").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(module: str, source: str, known: frozenset[str]) -> Iterator[Import]:
    """Every import of a module, in functions and under TYPE_CHECKING too."""

    def walk(node: ast.AST, typing_only: bool, function: str) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(module, alias.name, child.lineno, typing_only, function)
            elif isinstance(child, ast.ImportFrom):
                assert not child.level, f"{module}:{child.lineno}: relative import"
                for alias in child.names:
                    name = f"{child.module}.{alias.name}"
                    yield Import(
                        module, name if name in known else str(child.module), child.lineno, typing_only, function
                    )
            elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                for part in child.body:
                    yield from walk(ast.Module([part], []), True, function)
                for part in child.orelse:
                    yield from walk(ast.Module([part], []), typing_only, function)
            else:
                inner = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
                yield from walk(child, typing_only, inner)

    yield from walk(ast.parse(source), False, "")


def layer_faults(found: list[Import]) -> list[str]:
    """The imports that go up, or sideways into another box."""
    faults = []
    for item in found:
        steps = item.target.split(".")
        if steps[0] != "ckdn" or len(steps) == 1 or item.module == "ckdn":
            continue
        source, target = item.module.split(".")[1], steps[1]
        if target not in BOXES:  # a name of the package itself: __version__
            continue
        (level, box), (target_level, target_box) = BOXES[source], BOXES[target]
        allowed = target_level < level or target_box in (box, GUESTS.get(box))
        if not allowed:
            faults.append(f"{item}: layer {level} ({box}) may not import layer {target_level} ({target_box})")
    return faults


def cycles(found: list[Import]) -> list[list[str]]:
    """Import cycles, lazy imports included; a package and its own modules count as what they import, not as parents."""
    graph: dict[str, set[str]] = {}
    for item in found:
        if not item.typing_only and item.target.startswith("ckdn."):
            graph.setdefault(item.module, set()).add(item.target)
    done: set[str] = set()
    rings = []

    def visit(module: str, trail: list[str]) -> None:
        if module in trail:
            rings.append([*trail[trail.index(module) :], module])
        elif module not in done:
            for target in sorted(graph.get(module, ())):
                visit(target, [*trail, module])
            done.add(module)

    for module in sorted(graph):
        visit(module, [])
    return rings


def uncommented(module: str, source: str, found: list[Import]) -> list[str]:
    """Imports inside functions without a comment in or above their block of imports."""
    lines = source.splitlines()
    faults: list[str] = []
    # One sentence may serve a whole module: "# Imports inside functions: each command pays for its own."
    if any(line.startswith("# Imports inside functions: ") for line in lines):
        return faults
    for item in found:
        if not item.function or item.typing_only:
            continue
        first, last = item.line - 1, item.line - 1
        while _import_or_blank(lines, first - 1):
            first -= 1
        while _import_or_blank(lines, last + 1):
            last += 1
        # One comment serves a block of imports: on the line above it or on any of its own.
        if not any("#" in line for line in lines[max(first - 1, 0) : last + 1]):
            faults.append(f"{module}:{item.line}: {item.function}() imports {item.target} and no comment says why")
    return faults


def _import_or_blank(lines: list[str], index: int) -> bool:
    return 0 <= index < len(lines) and (not lines[index].strip() or lines[index].split()[0] in ("import", "from"))


MODULES = modules(ROOT)
IMPORTS = {
    module: list(imports(module, path.read_text(encoding="utf-8"), frozenset(MODULES)))
    for module, path in MODULES.items()
}


def test_every_module_has_a_place_in_the_table() -> None:
    top = {module.split(".")[1] for module in MODULES if "." in module}
    assert sorted(top - set(BOXES)) == []


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module: str) -> None:
    assert layer_faults(IMPORTS[module]) == []


def test_no_cycles() -> None:
    assert cycles([item for found in IMPORTS.values() for item in found]) == []


@pytest.mark.parametrize("module", [m for m in MODULES if "." in m and BOXES.get(m.split(".")[1], (9,))[0] < PURE])
def test_pure_layers_touch_no_outside(module: str) -> None:
    reached = {item.target.split(".")[0] for item in IMPORTS[module] if not item.typing_only}
    assert sorted((reached & OUTSIDE) - EXCEPT.get(module, set())) == []


@pytest.mark.parametrize("module", MODULES)
def test_an_import_inside_a_function_says_why(module: str) -> None:
    assert uncommented(module, MODULES[module].read_text(encoding="utf-8"), IMPORTS[module]) == []


def test_the_checks_see_faults() -> None:
    """Each check above finds what it is there for, in modules that break the rule."""
    known = frozenset(MODULES) | {"ckdn.app.one", "ckdn.app.two"}
    up = list(imports("ckdn.model", "if TYPE_CHECKING:\n    from ckdn.spec.types import Spec", known))
    sideways = list(imports("ckdn.verdict", "def f():\n    import ckdn.digest", known))
    down = list(imports("ckdn.digest", "from ckdn.model import PASS\nimport ckdn.bounds", known))
    assert len(layer_faults(up)) == len(layer_faults(sideways)) == 1
    assert layer_faults(down) == []
    assert uncommented("ckdn.verdict", "def f():\n    import ckdn.digest", sideways)
    assert not uncommented("ckdn.verdict", "def f():\n    import ckdn.digest  # rare", sideways)
    ring = [
        *imports("ckdn.app.one", "from ckdn.app import two", known),
        *imports("ckdn.app.two", "def f():\n    from ckdn.app.one import x", known),
    ]
    assert cycles(ring) == [["ckdn.app.one", "ckdn.app.two", "ckdn.app.one"]]
