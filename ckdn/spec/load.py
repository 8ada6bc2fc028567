"""Loading a spec: a read document in, a checked :class:`~ckdn.spec.types.Spec` out, or every problem at once.

Nothing is left for the run to find out: every expression is compiled here, every name resolved, every type compared.
"""

from __future__ import annotations

from ckdn.errors import CkdnError, Problem, SpecError, near
from ckdn.model import SEVERITIES, STATUSES
from ckdn.spec import expressions as ex
from ckdn.spec import load_rows
from ckdn.spec.cursor import Cursor, short
from ckdn.spec.load_numbers import RECORD_WORDS, Numbers
from ckdn.spec.load_rows import ROW_KEYS, Rows
from ckdn.spec.types import (
    CATEGORIES,
    FORMATS,
    JSON,
    LOG,
    NDJSON,
    STREAMS,
    TEXT,
    XML,
    Detail,
    Finding,
    Include,
    Input,
    Prefix,
    Proof,
    Spec,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ckdn.spec.read import Document

SCHEMA = "ckdn.spec/1"
META_KEYS = ("schema", "name", "title", "category", "homepage", "languages", "detect", "tested", "command")
BLOCKS = (
    "options", "inputs", "include", "rows", "findings", "declared", "summary", "guards", "proof", "findings_on_zero",
    "gates", "exit_codes", "env_narrows",
)  # fmt: skip
TOP_KEYS = (*META_KEYS, *BLOCKS, "extends", "variants", "examples")
NOT_INHERITED = ("examples", "tested", "title", "command", "name", "schema", "category", "extends", "detect")
COMMAND_KEYS = ("run", "exe", "needs")
VARIANT_KEYS = ("option", "choose", "default")
OPTION_KEYS = ("type", "enum", "minimum", "maximum", "items", "default", "description")
ITEM_KEYS = ("type", "enum")
OPTION_TYPES = ("string", "integer", "number", "boolean", "array")
INPUT_KEYS = ("file", "format", "shape", "root", "slice", "stray", "prefix", "option", "optional", "hint")
PREFIX_KEYS = ("match", "only")
SHAPE_KEYS = ("object",)
INCLUDE_KEYS = ("spec", "optional", "note")
FINDING_KEYS = ("kind", "failing", "id", "message", "severity", "detail", "rows")
KIND_KEYS = ("of", "map")
DETAIL_KEYS = ("of", "prefer", "drop", "else")
PROOF_WORDS = ("report", "exit_code")
PROOF_KINDS = ("match", "no_match", "holds")
PROOF_KEYS = (*PROOF_KINDS, "in")
EXIT_KEYS = ("clean", "findings", "crash")
ZERO_KEYS = ("expected",)
EXAMPLE_KEYS = ("name", "state", "rc", "options", "log", "stdout", "stderr", "files", "expect")
RESERVED_OPTIONS = (
    "allow_empty", "allow_stale", "command", "cwd", "env", "fail_on", "findings_on_zero", "parser", "reports",
    "timeout", "top",
)  # fmt: skip
"""What a check says of itself: an option of that name could never be set."""
PLACEHOLDERS = ("run_dir", "cwd", "python", "files")
"""What a command may leave to ckdn, as in the configuration."""
NUMBER_NAMESPACES = ("declared", "summary", "options", "rows", *RECORD_WORDS)
MISSING_MENDS = {
    "schema": f"add `schema: {SCHEMA}`",
    "name": "add the file's stem",
    "title": "add the tool's name as people write it",
    "category": f"add one of {', '.join(CATEGORIES)}",
    "findings": "say what is a record, or `findings: []` if the spec promises none",
    "proof": "say what shows that the tool did its work: report, a match, a comparison, or exit_code",
}
MESSAGE_MEND = "add a group or a field `message`, or `message: TEXT`"


def load(document: Document, stem: str, other: Callable[[str], tuple[Spec, Document]]) -> Spec:
    """The spec in ``document``, whose file is ``stem``; ``other`` gives specs it extends, includes or chooses from.

    Raises :class:`SpecError` with every problem, in the order of the file.
    """
    problems: list[Problem] = []
    root = Cursor(document, (), document.value, problems)
    spec = Loader(root, stem, other).load()
    if problems:
        raise SpecError(sorted(problems, key=lambda p: (p.path, p.line, p.column)))
    return spec


class Loader:
    """One spec on its way: the parts that later blocks need to resolve their names."""

    def __init__(self, root: Cursor, stem: str, other: Callable[[str], tuple[Spec, Document]]) -> None:
        self.root = root
        self.stem = stem
        self.other = other
        self.blocks = root.mapping(TOP_KEYS)
        self.inputs: dict[str, Input] = {}
        self.options = ex.Options()
        self.included: dict[str, Spec] = {}
        self.broken_include = False
        self.orphaned = False
        """The spec it extends does not load, so that half of it is missing."""
        self.rows = Rows(self.inputs, self.options)

    def load(self) -> Spec:
        """Every block, in the order in which they build on each other."""
        if not isinstance(self.root.value, dict):
            return Spec("", "", "", {}, {})
        self.inherit()
        spec = self.metadata()
        if self.orphaned:
            return spec
        if "variants" in self.blocks:
            self.variants(spec)
        else:
            self.load_blocks(spec)
        self.load_examples(spec)
        return spec

    def load_blocks(self, spec: Spec) -> None:
        """What a spec without variants holds."""
        if "options" in self.blocks:
            self.options.update(self.read_options(self.blocks["options"]))
        spec.options = dict(self.options)
        self.load_inputs(spec)
        self.load_includes(spec)
        spec.options = dict(self.options)
        self.load_rows()
        spec.findings = self.load_findings()
        numbers = self.numbers(spec)
        spec.declared = numbers.load_declared(self.list_of("declared"), self.text_by_default())
        spec.rows = load_rows.staged(self.rows)
        children = self.blocks["summary"].mapping() if "summary" in self.blocks else {}
        spec.summary = numbers.load_summary(children, tuple(self.included))
        spec.guards = tuple(numbers.load_guard(c) for c in self.list_of("guards"))
        spec.proof = self.load_proof(spec, numbers)
        spec.gates = tuple(numbers.load_gate(c) for c in self.list_of("gates"))
        spec.exit_codes = self.load_exit_codes()
        spec.env_narrows = self.load_env()
        self.load_zero(spec, numbers)
        if not self.root.problems:
            self.refuse_unused(spec)

    def list_of(self, block: str) -> list[Cursor]:
        """The items of an optional list block."""
        return self.blocks[block].items() if block in self.blocks else []

    # --- metadata, inheritance, variants -------------------------------------------------------------------------

    def inherit(self) -> None:
        """``extends``: one level; a block given replaces the parent's whole, options merge."""
        if "extends" not in self.blocks:
            return
        cursor = self.blocks["extends"]
        found = self.find(cursor, cursor.text())
        if found is None:
            self.blocks = {
                **dict.fromkeys(("findings", "proof"), Cursor(self.root.document, (), [], [])),
                **self.blocks,
            }
            return
        _, document = found
        parent = Cursor(document, (), document.value, self.root.problems)
        theirs = parent.mapping(TOP_KEYS)
        if "extends" in theirs:
            cursor.fail(f"`{cursor.value}` itself extends another spec, and one level is the most", "extend that one")
            self.orphaned = True
        if "variants" in theirs:
            cursor.fail(f"`{cursor.value}` has variants", "extend one of them")
            self.orphaned = True
        for key, child in theirs.items():
            if key not in self.blocks and key not in NOT_INHERITED:
                self.blocks[key] = child
        if "options" in theirs and self.blocks["options"] is not theirs["options"]:
            self.options.update(self.read_options(theirs["options"]))

    def find(self, cursor: Cursor, name: str) -> tuple[Spec, Document] | None:
        """Another spec by name, or a problem here."""
        if not name:
            return None
        if name == self.stem:
            cursor.fail(f"{cursor.named()} names the spec itself")
            return None
        try:
            return self.other(name)
        except CkdnError as e:
            problem = e.problems[0]
            said = f"the spec `{short(name)}` does not load: {problem}" if problem.path else str(problem)
            cursor.fail(f"{cursor.named()}: {said}")
            return None

    def metadata(self) -> Spec:
        """schema, name, title, category, and the optional describing keys."""
        b = self.blocks
        required = ["schema", "name", "title", "category"]
        if "variants" not in b and not self.orphaned:
            required += ["findings", "proof"]
        for key in required:
            if key not in b:
                self.root.fail(f"`{key}` is missing", MISSING_MENDS[key])
        if "schema" in b and b["schema"].value != SCHEMA:
            b["schema"].fail(f"schema is {short(str(b['schema'].value))}", f"this ckdn reads {SCHEMA}")
        spec = Spec(self.load_name(), b["title"].text() if "title" in b else "", "", {}, {})
        spec.category = b["category"].choice(CATEGORIES) if "category" in b else ""
        if "homepage" in b:
            spec.homepage = b["homepage"].text()
            if spec.homepage and not spec.homepage.startswith(("https://", "http://")):
                b["homepage"].fail(f"homepage is `{short(spec.homepage)}`", "it starts with https://")
        for key in ("languages", "detect", "tested"):
            if key in b:
                setattr(spec, key, b[key].texts())
        if "command" in b:
            self.load_command(spec, b["command"])
        return spec

    def load_name(self) -> str:
        """The spec's name, which is that of its file."""
        if "name" not in self.blocks:
            return self.stem
        cursor = self.blocks["name"]
        name = cursor.text()
        if name and name != self.stem:
            cursor.fail(f"name is `{short(name)}` and the file is `{self.stem}`", "they must be equal")
        elif name and not (ex.is_name(name) and name == name.lower() and name[0] != "_"):
            cursor.fail(f"`{short(name)}` is no spec name", "write lower-case letters, digits and _, a letter first")
        elif name in NUMBER_NAMESPACES:
            cursor.fail(f"a spec cannot be called `{name}`", "numbers have that name")
        return name

    def load_command(self, spec: Spec, cursor: Cursor) -> None:
        """``command``: what `init` proposes, and what any command line must have for the spec to read it."""
        parts = cursor.mapping(COMMAND_KEYS)
        if "run" in parts:
            spec.command = parts["run"].text()
            check_placeholders(parts["run"], spec.command)
        elif cursor.sound:
            cursor.fail("`command` needs `run`", "give the command line that `init` proposes")
        if "needs" in parts:
            spec.needs = parts["needs"].texts()
            for need, child in zip(spec.needs, parts["needs"].items(), strict=True):
                if spec.command and need not in spec.command:
                    child.fail(f"{child.named()}: `{short(need)}` is not in `run`", "put it there too")
        if "exe" in parts:
            parts["exe"].text()

    def variants(self, spec: Spec) -> None:
        """A file that only chooses between specs by an option."""
        for key in self.blocks:
            if key in BLOCKS or key == "extends":
                self.blocks[key].fail(f"`{key}` beside `variants`", "a file with variants holds nothing else")
        cursor = self.blocks["variants"]
        parts = cursor.mapping(VARIANT_KEYS)
        if "option" not in parts or "choose" not in parts:
            if cursor.sound:
                cursor.fail("`variants` needs `option` and `choose`")
            return
        spec.variant_option = parts["option"].text()
        self.check_option_name(parts["option"], spec.variant_option)
        choices: list[tuple[str, str]] = []
        merged: dict[str, dict[str, Any]] = {}
        for value, child in parts["choose"].mapping().items():
            found = self.find(child, child.text())
            if found is None:
                continue
            if found[0].variants:
                child.fail(f"{child.named()}: `{child.value}` has variants itself", "name a spec without")
            choices.append((value, found[0].name))
            merged.update(found[0].options)
        if parts["choose"].value == {}:
            parts["choose"].fail(f"{parts['choose'].named()} is empty", "write VALUE: SPEC for each")
        if spec.variant_option in merged:
            parts["option"].fail(f"`{spec.variant_option}` is also an option of a chosen spec", "take another name")
        spec.variants = tuple(choices)
        names = list(parts["choose"].value) if isinstance(parts["choose"].value, dict) else []
        default = parts["default"].choice(names) if "default" in parts and names else names[0] if names else ""
        merged[spec.variant_option] = {"type": "string", "enum": names, "default": default}
        spec.options = merged

    # --- options and inputs --------------------------------------------------------------------------------------

    def read_options(self, block: Cursor) -> dict[str, dict[str, Any]]:
        """The option schemas of one block: a small JSON Schema each; ``fail_on`` exists everywhere."""
        options = {}
        for name, cursor in block.mapping().items():
            self.check_option_name(cursor, name)
            parts = cursor.mapping(OPTION_KEYS)
            options[name] = dict(cursor.value) if isinstance(cursor.value, dict) else {}
            kind = parts["type"].choice(OPTION_TYPES) if "type" in parts else ""
            if "type" not in parts and cursor.sound:
                cursor.fail(f"{cursor.named()} has no `type`", f"one of {', '.join(OPTION_TYPES)}")
            if kind and options[name].get("type") == kind:
                check_option(parts, kind, options[name])
        return options

    def check_option_name(self, cursor: Cursor, name: str) -> None:
        """Options stand among a check's own keys."""
        if name in RESERVED_OPTIONS:
            every = "`fail_on` exists for every spec" if name == "fail_on" else f"`{name}` is a key of every check"
            cursor.fail(every, "leave it out" if name == "fail_on" else "give the option another name")
        elif name:
            ex.check_name(cursor, name, "an option")

    def load_inputs(self, spec: Spec) -> None:
        """``inputs``; the log is always there for text rules, ``match`` and ``no_match``."""
        if "inputs" not in self.blocks:
            self.inputs[LOG] = Input(LOG, LOG)
            spec.inputs = (self.inputs[LOG],)
            return
        children = self.blocks["inputs"].mapping()
        if self.blocks["inputs"].value == {}:
            self.blocks["inputs"].fail("`inputs` is empty", "leave it out to read the log")
        spec.inputs = tuple(self.load_input(name, cursor) for name, cursor in children.items())
        self.inputs.setdefault(LOG, Input(LOG, LOG))

    def load_input(self, name: str, cursor: Cursor) -> Input:
        """One input."""
        if not ex.is_name(name):
            cursor.fail(f"`{short(name)}` cannot be the name of an input", ex.NAME_MEND)
        parts = cursor.mapping(INPUT_KEYS)
        given = Input(name, name if name in STREAMS else "file")
        self.inputs[name] = given
        if name in STREAMS:
            for key in ("file", "option", "optional"):
                if key in parts:
                    said = f"`{key}` is for files, and `{name}` is a stream of the command"
                    parts[key].fail(said, "give the input another name" if key == "file" else "take it out")
        elif "file" in parts:
            given.file = parts["file"].text()
            check_file(parts["file"], given.file)
        elif cursor.sound:
            cursor.fail(f"the input `{name}` has no `file`", "add one, or call the input log, stdout or stderr")
        given.format = parts["format"].choice(FORMATS) if "format" in parts else TEXT
        self.load_form(given, parts)
        if "option" in parts and name not in STREAMS:
            self.load_file_option(given, parts["option"])
        given.optional = "optional" in parts and parts["optional"].flag()
        if "hint" in parts:
            given.hint = parts["hint"].text()
            check_placeholders(parts["hint"], given.hint)
        return given

    def load_file_option(self, given: Input, cursor: Cursor) -> None:
        """``option``: the check's key that names another file."""
        given.option = cursor.text()
        if any(i.option == given.option for i in self.inputs.values() if i is not given and i.option):
            cursor.fail(f"{cursor.named()}: `{given.option}` renames another input too", "take another name")
        if given.option in self.options:
            if self.options[given.option].get("type") != "string":
                cursor.fail(f"{cursor.named()}: the option `{given.option}` names a file", "declare it `type: string`")
        elif given.option:
            self.check_option_name(cursor, given.option)
            self.options[given.option] = {"type": "string", "description": f"the file of input `{given.name}`"}
        self.options.used.add(given.option)

    def load_form(self, given: Input, parts: dict[str, Cursor]) -> None:
        """What an input's content must look like: shape, root, slice, stray, prefix."""
        for key, format in (("shape", JSON), ("root", XML), ("slice", JSON), ("stray", NDJSON), ("prefix", TEXT)):
            if key in parts and given.format != format:
                mend = {"shape": "for xml use `root`", "root": "for json use `shape`"}.get(key, "")
                parts[key].fail(f"`{key}` goes with format {format}, and this input is {given.format}", mend)
        if "shape" in parts:
            self.load_shape(given, parts["shape"])
        if "root" in parts:
            given.root_kind, given.root_names = "element", parts["root"].texts(lone=True)
            for name in given.root_names:
                if any(mark in name for mark in ":/<> "):
                    said = f"{parts['root'].named()}: `{short(name)}` is no element's name"
                    parts["root"].fail(said, "write the name alone, without a namespace prefix")
            if parts["root"].value == []:
                parts["root"].fail(f"{parts['root'].named()} is empty", "name the root elements")
        if "slice" in parts:
            given.slice = parts["slice"].choice(("object", "array"))
            if given.root_kind and given.slice != given.root_kind:
                parts["slice"].fail(f"`slice: {given.slice}` and a `shape` of {given.root_kind}", "make them equal")
        if "stray" in parts:
            given.stray = parts["stray"].choice(("refuse", "ignore"))
        if "prefix" in parts:
            inner = parts["prefix"].mapping(PREFIX_KEYS)
            if "match" in inner:
                given.prefix = Prefix(ex.regex(inner["match"]), "only" in inner and inner["only"].flag())
            elif parts["prefix"].sound:
                parts["prefix"].fail("`prefix` needs `match`")

    def load_shape(self, given: Input, cursor: Cursor) -> None:
        """``shape: array`` or ``shape: {object: [keys]}``."""
        if isinstance(cursor.value, str):
            given.root_kind = cursor.choice(("array", "object"))
            return
        parts = cursor.mapping(SHAPE_KEYS)
        if "object" in parts:
            given.root_kind, given.root_names = "object", parts["object"].texts()
        elif cursor.sound:
            cursor.fail(f"{cursor.named()} has no `object`", "write array, object, or {object: [KEYS]}")

    def load_includes(self, spec: Spec) -> None:
        """``include``: other specs over their own inputs; their names live under their own name."""
        includes = []
        for cursor in self.list_of("include"):
            parts = {"spec": cursor} if isinstance(cursor.value, str) else cursor.mapping(INCLUDE_KEYS)
            found = self.find(parts["spec"], parts["spec"].text()) if "spec" in parts else None
            if found is None:
                self.broken_include = True
                if "spec" not in parts and cursor.sound:
                    cursor.fail(f"{cursor.named()} has no `spec`", "name the spec to include")
                continue
            other = found[0]
            self.check_included(parts["spec"], other)
            self.included[other.name] = other
            for name, schema in other.options.items():
                self.options.setdefault(name, schema)
                self.options.used.add(name)
            optional = "optional" in parts and parts["optional"].flag()
            includes.append(Include(other.name, optional, parts["note"].text() if "note" in parts else ""))
            if "note" in parts and not optional:
                parts["note"].fail(
                    "`note` is only said where an `optional` include has no file", "add `optional: true`"
                )
        spec.includes = tuple(includes)

    def check_included(self, cursor: Cursor, other: Spec) -> None:
        """What cannot be included."""
        if other.variants:
            names = ", ".join(name for _, name in other.variants)
            cursor.fail(f"{cursor.named()}: `{other.name}` has variants", f"include one of {names}")
        if other.name in self.included:
            cursor.fail(f"{cursor.named()}: `{other.name}` is included twice")
        if other.includes:
            cursor.fail(f"{cursor.named()}: `{other.name}` includes another spec", "one level only: include both")
        for name in other.options:
            if name in self.options and other.name not in self.included:
                said = f"{cursor.named()}: the option `{name}` would be this spec's and that of `{other.name}`"
                cursor.fail(said, "rename the one of this spec")

    # --- rows and findings ---------------------------------------------------------------------------------------

    def load_rows(self) -> None:
        """``rows``: the named row sets."""
        children = self.blocks["rows"].mapping() if "rows" in self.blocks else {}
        self.rows.declared = tuple(children)
        for name, cursor in children.items():
            if name in RECORD_WORDS:
                cursor.fail(f"rows cannot be called `{name}`", "that word names the records")
            elif not ex.is_name(name):
                cursor.fail(f"`{short(name)}` cannot be the name of rows", ex.NAME_MEND)
            self.rows.load(name, cursor, cursor.mapping(ROW_KEYS))

    def load_findings(self) -> tuple[Finding, ...]:
        """``findings``: which rows are records."""
        findings = []
        for position, cursor in enumerate(self.list_of("findings")):
            parts = cursor.mapping((*FINDING_KEYS, *ROW_KEYS))
            if "rows" in parts:
                name = self.rows.other(parts["rows"])
                for key in parts:
                    if key in ROW_KEYS and key != "where":
                        instead = f"write `from: {name or '…'}` instead"
                        mend = "keep one of them" if key in load_rows.SOURCES else instead
                        parts[key].fail(f"`{key}` beside `rows`", mend)
            elif any(key in parts for key in load_rows.SOURCES):
                name = f"findings[{position}]"
                self.rows.load(name, cursor, {k: v for k, v in parts.items() if k in ROW_KEYS})
            else:
                name = ""
                if cursor.sound:
                    cursor.fail(f"{cursor.named()} has no rows", "give one of rows, each, lines, from")
            finding = Finding(name)
            if isinstance(cursor.value, dict):
                self.load_finding(cursor, parts, finding)
            findings.append(finding)
        return tuple(findings)

    def load_finding(self, cursor: Cursor, parts: dict[str, Cursor], finding: Finding) -> None:
        """What one finding says of its rows."""
        scope = self.rows.scope_of(finding.rows)
        self.load_kind(cursor, parts, finding, scope)
        if "rows" in parts and "where" in parts:
            finding.where = ex.predicate(parts["where"], scope, self.options)
        for key in ("id", "message"):
            if key in parts:
                setattr(finding, key, ex.template(parts[key], scope.fields))
        if "severity" in parts:
            finding.severity = parts["severity"].choice(SEVERITIES)
        if "severity" in scope.fields:
            self.check_severity(cursor, parts, scope)
        self.check_message(cursor, parts, finding, scope)
        if "failing" in parts:
            within = scope.copy()
            within.add("severity", "string", SEVERITIES)
            finding.failing = ex.predicate(parts["failing"], within, self.options)
        if "detail" in parts:
            finding.detail = self.load_detail(parts["detail"], scope)

    def load_detail(self, cursor: Cursor, scope: ex.Scope) -> Detail:
        """``detail``: which lines of a text go with a finding."""
        parts = cursor.mapping(DETAIL_KEYS)
        detail = Detail("")
        if "of" in parts:
            detail.of = ex.field_name(parts["of"], scope.fields)
            kind = scope.fields.get(detail.of)
            if kind in ("number", "boolean"):
                parts["of"].fail(f"{parts['of'].named()}: `{detail.of}` is a {kind}", "name a field with text")
        elif cursor.sound:
            cursor.fail(f"{cursor.named()} needs `of`", "name the field that holds the text")
        detail.prefer = ex.regex(parts["prefer"]) if "prefer" in parts else ""
        detail.drop = ex.regex(parts["drop"]) if "drop" in parts else ""
        if detail.drop and ex.takes_everything(detail.drop):
            parts["drop"].fail(f"{parts['drop'].named()} matches every line", "name the lines that tell nothing")
        if "else" in parts:
            parts["else"].choice(("tail",))
        return detail

    def load_kind(self, cursor: Cursor, parts: dict[str, Cursor], finding: Finding, scope: ex.Scope) -> None:
        """``kind``: a word, or ``{of: field, map}``."""
        if "kind" not in parts:
            if cursor.sound:
                mend = "give a word such as lint_violation, type_error, test_failure"
                cursor.fail(f"{cursor.named()} has no `kind`", mend)
            return
        kind = parts["kind"]
        if isinstance(kind.value, str):
            finding.kind = self.kind_word(kind)
            return
        inner = kind.mapping(KIND_KEYS)
        if "of" not in inner or "map" not in inner:
            if kind.sound:
                kind.fail(f"{kind.named()} needs `of` and `map`")
            return
        finding.kind_of = ex.field_name(inner["of"], scope.fields)
        finding.kind_map = tuple((key, self.kind_word(c)) for key, c in inner["map"].mapping().items())
        if inner["map"].value == {}:
            inner["map"].fail(f"{inner['map'].named()} is empty", "write VALUE: KIND for each")
        keys = [key for key, _ in finding.kind_map]
        load_rows.check_map(inner["map"], keys, scope.values.get(finding.kind_of, ()), f"`{finding.kind_of}`")

    def kind_word(self, cursor: Cursor) -> str:
        """One kind."""
        word = cursor.text()
        if word and not (ex.is_name(word) and word == word.lower()):
            cursor.fail(f"{cursor.named()}: `{short(word)}` is no kind", "write lower-case letters, digits and _")
        return word

    def check_severity(self, cursor: Cursor, parts: dict[str, Cursor], scope: ex.Scope) -> None:
        """A field severity must come out as error, warning or info."""
        at = self.field_cursor(cursor, parts, "severity")
        kind, values = scope.fields.get("severity"), scope.values.get("severity", ())
        wrong = [v for v in values if v not in SEVERITIES]
        mend = f"map it to {', '.join(SEVERITIES)}"
        if wrong:
            at.fail(f"{at.named()}: severity can be {load_rows.shown(wrong[0])}", mend)
        elif kind in ("number", "boolean"):
            at.fail(f"{at.named()}: severity is a {kind}", mend)

    def field_cursor(self, cursor: Cursor, parts: dict[str, Cursor], name: str) -> Cursor:
        """Where a field of a finding is defined, the finding itself when that is somewhere else."""
        fields = parts.get("fields")
        if fields is not None and isinstance(fields.value, dict) and name in fields.value:
            return fields.at(name)
        return cursor

    def check_message(self, cursor: Cursor, parts: dict[str, Cursor], finding: Finding, scope: ex.Scope) -> None:
        """Every record says something; of text rules, each `new` one must bring it along."""
        if "message" in parts:
            return
        if "message" not in scope.fields:
            if cursor.sound:
                cursor.fail(f"{cursor.named()} has no message", MESSAGE_MEND)
            return
        row = self.rows.sets.get(finding.rows)
        if row is None or row.lines is None or any(f.name == "message" for f in row.fields):
            return
        given = self.inputs.get(row.input)
        rules = row.lines.rules
        late = any("message" in r.groups for r in rules if r.verb in ("add", "set", "push"))
        prefixed = (
            given is not None
            and given.prefix is not None
            and "message" in scope.fields
            and not any("message" in r.groups for r in rules)
        )
        if late or prefixed:
            return
        for number, rule in enumerate(rules):
            if rule.verb == "new" and rule.pattern and "message" not in rule.groups:
                said = f"{cursor.named()}: the rows of rule {number + 1} have no message"
                cursor.fail(said, MESSAGE_MEND)

    def numbers(self, spec: Spec) -> Numbers:
        """The names of numbers that rows, records, options and includes give."""
        names = tuple(dict.fromkeys(f.rows for f in spec.findings))
        scope = load_rows.record_scope({n: self.rows.scope_of(n) for n in names}, names)
        kinds = {k for f in spec.findings for k in (f.kind, *[word for _, word in f.kind_map]) if k}
        scope.add("severity", "string", SEVERITIES)
        scope.add("kind", "string", tuple(sorted(kinds)))
        scope.add("id", "string")
        scope.add("message", "string")
        scope.add("failing", "boolean")
        numbers = Numbers(self.rows, scope)
        for name, other in self.included.items():
            numbers.add_included(name, other)
        if self.broken_include:
            numbers.blur()
        return numbers

    def text_by_default(self) -> str:
        """The text that a `declared` match reads: the spec's only text input where it does not list the log."""
        block = self.blocks["inputs"].value if "inputs" in self.blocks else {}
        listed = [i.name for i in self.inputs.values() if i.format == TEXT and i.name != LOG]
        return listed[0] if len(listed) == 1 and LOG not in block else LOG

    # --- proof, exit codes and the rest --------------------------------------------------------------------------

    def load_proof(self, spec: Spec, numbers: Numbers) -> tuple[Proof, ...]:
        """``proof``: at least one line, and one that an empty output does not satisfy."""
        if "proof" not in self.blocks:
            return ()
        cursor = self.blocks["proof"]
        before = len(cursor.problems)
        lines = tuple(self.load_proof_line(item, spec, numbers) for item in cursor.items())
        if cursor.value == [] and cursor.problems is self.root.problems:
            cursor.fail("`proof` is empty", "say what shows that the tool did its work, or `exit_code`")
        elif lines and len(cursor.problems) == before and all(proves_nothing(line, numbers) for line in lines):
            said = "every line of `proof` holds where the tool printed nothing at all"
            cursor.fail(said, "add report, a match, `rows.x > 0`, or exit_code, which says what green rests on")
        return lines

    def load_proof_line(self, cursor: Cursor, spec: Spec, numbers: Numbers) -> Proof:
        """report, exit_code, a comparison, or {match | no_match | holds, in}."""
        if isinstance(cursor.value, str):
            return self.load_proof_text(cursor, spec, numbers)
        parts = cursor.mapping(PROOF_KEYS)
        kinds = [k for k in PROOF_KINDS if k in parts]
        if len(kinds) != 1:
            if cursor.sound:
                cursor.fail(f"{cursor.named()} needs exactly one of match, no_match, holds")
            return Proof("exit_code", "")
        kind, child = kinds[0], parts[kinds[0]]
        text = f"{kind}: {child.value}"
        if kind == "holds":
            given = self.rows.input_for(parts.get("in"), cursor, "`holds`", "")
            expression = ex.extraction(child, given.format) if given.name else None
            if given.format == JSON:
                load_rows.check_root(child, expression, given)
            if isinstance(expression, tuple) and expression[0] == "literal":
                child.fail(f"{child.named()} is the same for every output", "ask something of the document")
            return Proof(kind, text, input=given.name, expression=expression)
        pattern = ex.regex(child)
        if pattern and ex.takes_everything(pattern):
            child.fail(f"{child.named()} matches every line", "name what the tool prints when it has done its work")
        return Proof(kind, text, pattern=pattern, input=numbers.match_input(parts.get("in"), LOG))

    def load_proof_text(self, cursor: Cursor, spec: Spec, numbers: Numbers) -> Proof:
        """report, exit_code or a comparison."""
        text = cursor.text()
        if text == "report":
            if not any(i.source == "file" and not i.optional for i in spec.inputs):
                cursor.fail("`report` without a required file input", "declare the report in `inputs`")
            return Proof("report", text)
        if text == "exit_code":
            self.rows.read.add(LOG)
            return Proof("exit_code", text)
        if text and ex.is_name(text):
            cursor.fail(f"{cursor.named()}: `{short(text)}` is no proof", near(text, PROOF_WORDS))
            return Proof("exit_code", text)
        return Proof("comparison", text, numbers.comparison(cursor))

    def load_exit_codes(self) -> dict[str, tuple[int, ...]]:
        """``exit_codes``: which codes mean clean, findings, crash."""
        codes: dict[str, tuple[int, ...]] = {}
        if "exit_codes" not in self.blocks:
            return codes
        seen: dict[int, str] = {}
        for key, cursor in self.blocks["exit_codes"].mapping(EXIT_KEYS).items():
            items = cursor.items(lone=True)
            if not items:
                cursor.fail(f"{cursor.named()} is empty", "leave it out")
            found = []
            for item in items:
                before = len(item.problems)
                code = item.integer(minimum=0)
                if len(item.problems) > before:
                    continue
                if code in seen:
                    again = f"both {seen[code]} and {key}" if seen[code] != key else "here twice"
                    item.fail(f"exit code {code} is {again}", "keep one of them")
                elif (code == 0) != (key == "clean") and key != "findings":
                    item.fail(f"exit code {code} cannot mean {key}", "0 is clean, everything else is not")
                seen[code] = key
                found.append(code)
            codes[key] = tuple(found)
        return codes

    def load_env(self) -> tuple[str, ...]:
        """``env_narrows``: variables that make a run partial."""
        names = []
        for cursor in self.list_of("env_narrows"):
            name = cursor.text()
            if name and not ex.is_name(name):
                cursor.fail(f"{cursor.named()}: `{short(name)}` is no name of a variable", "such as PYTEST_ADDOPTS")
            names.append(name)
        return tuple(names)

    def load_zero(self, spec: Spec, numbers: Numbers) -> None:
        """``findings_on_zero``: expected, or under a predicate over numbers."""
        if "findings_on_zero" not in self.blocks:
            return
        cursor = self.blocks["findings_on_zero"]
        if isinstance(cursor.value, str):
            cursor.choice(("expected",))
            spec.zero_expected = True
            return
        parts = cursor.mapping(ZERO_KEYS)
        if "expected" in parts:
            spec.zero_predicate = numbers.comparison(parts["expected"])
        elif cursor.sound:
            cursor.fail("`findings_on_zero` has no `expected`", "write expected, or {expected: COMPARISON}")

    def load_examples(self, spec: Spec) -> None:
        """``examples``: only their form is checked here; `spec test` runs them."""
        names: set[str] = set()
        for cursor in self.list_of("examples"):
            parts = cursor.mapping(EXAMPLE_KEYS)
            if cursor.sound and "name" not in parts:
                cursor.fail(f"{cursor.named()} has no `name`", "call it clean, findings or broken, or by your own word")
            for key in ("name", "state"):
                if key in parts:
                    parts[key].text()
            name = parts["name"].value if "name" in parts else None
            if isinstance(name, str) and name in names:
                parts["name"].fail(f"there are two examples `{short(name)}`")
            names.add(str(name))
            if "rc" in parts:
                parts["rc"].integer()
            for key in STREAMS:
                if key in parts:
                    parts[key].text(empty=True)
            self.check_example_maps(spec, parts)

    def check_example_maps(self, spec: Spec, parts: dict[str, Cursor]) -> None:
        """The options, files and expectations of an example."""
        for name, child in parts["options"].mapping().items() if "options" in parts else ():
            if name == "fail_on":
                continue
            if name not in spec.options:
                child.fail(f"{child.named()}: no option `{short(name)}`", near(name, spec.options))
            else:
                check_value(child, spec.options[name])
        for name, child in parts["files"].mapping().items() if "files" in parts else ():
            check_file(child, name)
            child.text(empty=True)
        expect = parts["expect"].mapping() if "expect" in parts else {}
        if "status" in expect:
            expect["status"].choice(STATUSES)

    # --- what is of no use ---------------------------------------------------------------------------------------

    def refuse_unused(self, spec: Spec) -> None:
        """Rows, inputs and options of this file (not of a spec it extends) that nothing looks at."""
        proof = {line.kind for line in spec.proof}
        for finding in spec.findings:
            self.rows.used.add(finding.rows)
        for row in spec.rows:
            explains = "exit_code" in proof and row.lines is not None and row.input == LOG
            if row.name in self.rows.declared and row.name not in self.rows.used and not explains:
                self.unused("rows", row.name, "take it out, or name it in findings, summary or guards")
        for given in spec.inputs:
            reported = "report" in proof and given.source == "file" and not given.optional
            if given.name not in self.rows.read and not reported:
                self.unused("inputs", given.name, "take it out, or read it in rows, declared or proof")
        for name in self.options:
            if name not in self.options.used:
                self.unused("options", name, "name it in a predicate, a gate or a limit, or take it out")

    def unused(self, block: str, name: str, mend: str) -> None:
        """Something that stands in this file's block and is of no use."""
        cursor = self.blocks.get(block)
        if cursor is not None and cursor.document is self.root.document and name in cursor.value:
            cursor.at(name).fail(f"nothing uses {block}.{name}", mend)


def proves_nothing(line: Proof, numbers: Numbers) -> bool:
    """Whether a line of proof holds where there is no output."""
    if line.kind == "comparison":
        return line.comparison is not None and numbers.holds_of_nothing(line.comparison)
    return line.kind == "no_match"


def check_placeholders(cursor: Cursor, text: str) -> None:
    """A misspelt placeholder would stand in the command as it is."""
    at = text.find("{")
    while at >= 0:
        name = text[at + 1 : max(text.find("}", at), at + 1)]
        if ex.is_name(name) and name not in PLACEHOLDERS:
            said = f"{cursor.named()} has the placeholder {{{short(name)}}}, which ckdn does not fill"
            cursor.fail(said, near(name, PLACEHOLDERS), offset=at)
        at = text.find("{", at + 1)


def check_file(cursor: Cursor, name: str) -> None:
    """A file below the run directory."""
    if name.startswith(("/", "~")) or ".." in name.split("/") or "\\" in name or name[1:2] == ":":
        cursor.fail(f"`{short(name)}` is no path below the run directory", "name it from there, with /")
    elif not name.isprintable():
        cursor.fail(f"{cursor.named()} has a control character", "take it out")


def check_option(parts: dict[str, Cursor], kind: str, schema: dict[str, Any]) -> None:
    """The keys of one option against its type."""
    for key in ("minimum", "maximum"):
        if key in parts:
            if kind not in ("integer", "number"):
                parts[key].fail(f"{parts[key].named()} beside type {kind}", "it goes with integer and number")
            elif not isinstance(parts[key].value, int | float) or isinstance(parts[key].value, bool):
                parts[key].wrong("a number")
                schema.pop(key)
    bounded = kind in ("integer", "number") and "minimum" in schema and "maximum" in schema
    if bounded and schema["minimum"] > schema["maximum"]:
        parts["minimum"].fail(f"{parts['minimum'].named()} is above `maximum`", "exchange them")
    if "description" in parts:
        parts["description"].text()
    if "enum" in parts:
        check_enum(parts["enum"], schema)
    if "items" in parts:
        if kind != "array":
            parts["items"].fail(f"{parts['items'].named()} beside type {kind}", "it goes with array")
        inner = parts["items"].mapping(ITEM_KEYS)
        schema["items"] = {key: child.value for key, child in inner.items()}
        if "type" in inner:
            inner["type"].choice(OPTION_TYPES[:-1])
        if "enum" in inner:
            check_enum(inner["enum"], schema["items"])
    if "default" in parts:
        check_value(parts["default"], schema)


def check_enum(cursor: Cursor, schema: dict[str, Any]) -> None:
    """The values of an option: some, and each of its type."""
    if cursor.value == []:
        cursor.fail(f"{cursor.named()} is empty", "list the values")
    for item in cursor.items():
        check_value(item, {"type": schema.get("type")})
    if not isinstance(cursor.value, list):
        schema.pop("enum")


def check_value(cursor: Cursor, schema: dict[str, Any]) -> None:
    """A value must be one that its option can have."""
    value, kind = cursor.value, schema.get("type")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        "string": isinstance(value, str),
        "integer": number and isinstance(value, int),
        "number": number,
        "boolean": isinstance(value, bool),
        "array": isinstance(value, list),
    }
    if not fits.get(str(kind), True):
        cursor.wrong({"integer": "an integer", "array": "a list"}.get(str(kind), f"a {kind}"))
    elif "enum" in schema and value not in schema["enum"]:
        known = ", ".join(load_rows.shown(v) for v in schema["enum"])
        cursor.fail(f"{cursor.named()} is {load_rows.shown(value)}", f"one of {known}")
    elif number and "minimum" in schema and value < schema["minimum"]:
        cursor.fail(f"{cursor.named()} is {value}", f"it must be at least {schema['minimum']}")
    elif number and "maximum" in schema and value > schema["maximum"]:
        cursor.fail(f"{cursor.named()} is {value}", f"it must be at most {schema['maximum']}")
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in cursor.items():
            check_value(item, schema["items"])
