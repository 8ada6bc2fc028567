"""Loading a spec: a read document in, a checked :class:`~ckdn.spec.types.Spec` out, or every problem at once.

Nothing is left for the run to find out: every expression is compiled here, every name resolved, every type compared.
"""

from __future__ import annotations

from ckdn.errors import Problem, SpecError, near
from ckdn.spec import compare, load_rows
from ckdn.spec import expressions as ex
from ckdn.spec.cursor import Cursor
from ckdn.spec.load_rows import OPTION_KEYS, ROW_KEYS, Rows
from ckdn.spec.types import (
    CATEGORIES,
    FORMATS,
    INTEGER_FIELDS,
    JSON,
    LOG,
    NDJSON,
    RECORD_FIELDS,
    STREAMS,
    TEXT,
    XML,
    Candidate,
    Detail,
    Field,
    Finding,
    Gate,
    Guard,
    Include,
    Input,
    Number,
    Prefix,
    Proof,
    Spec,
    SummaryItem,
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
FINDING_KEYS = ("kind", "failing", "id", "message", "severity", "detail", "rows")
SEVERITY_WORDS = ("error", "warning", "info")
FORBIDDEN_NAMES = ("log", "stdout", "stderr")
DEFAULT_ID = (("path",), ":", ("line",), ":", ("column",), " ", ("code",))
NUMBER_WORDS = ("records", "failing")


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
        self.options: dict[str, dict[str, Any]] = {}
        self.numbers: dict[str, str] = {}
        """Known number names with what they are, for messages."""
        self.included: dict[str, Spec] = {}
        self.record_scope = ex.Scope()

    def load(self) -> Spec:
        """Every block, in the order in which they build on each other."""
        if not self.blocks:
            return Spec("", "", "", {}, {})
        self.inherit()
        spec = self.metadata()
        if "variants" in self.blocks:
            return self.variants(spec)
        self.load_options(spec)
        self.load_inputs(spec)
        self.load_includes(spec)
        rows = self.load_rows()
        spec.findings = self.load_findings(rows)
        self.name_records(rows, spec)
        spec.declared = self.load_declared(rows)
        spec.rows = staged(rows, self.root)
        spec.summary = self.load_summary(rows)
        spec.guards = tuple(self.load_guard(c) for c in self.list_of("guards"))
        spec.proof = self.load_proof(spec)
        spec.gates = tuple(self.load_gate(c) for c in self.list_of("gates"))
        spec.exit_codes = self.load_exit_codes()
        spec.env_narrows = self.blocks["env_narrows"].texts() if "env_narrows" in self.blocks else ()
        self.load_zero(spec)
        return spec

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
            return
        _, document = found
        parent = Cursor(document, (), document.value, self.root.problems)
        theirs = parent.mapping(TOP_KEYS)
        if "extends" in theirs:
            cursor.fail(f"`{cursor.value}` itself extends another spec", "extend that one; one level only")
        if "variants" in theirs:
            cursor.fail(f"`{cursor.value}` has variants", "extend one of them")
        for key, child in theirs.items():
            if key not in self.blocks and key not in NOT_INHERITED:
                self.blocks[key] = child
        if "options" in theirs and "options" in self.blocks and self.blocks["options"] is not theirs["options"]:
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
        except SpecError as e:
            cursor.fail(f"{cursor.named()} names the spec `{name}`: {e.problems[0]}")
            return None

    def metadata(self) -> Spec:
        """schema, name, title, category, and the optional describing keys."""
        b = self.blocks
        required = ["schema", "name", "title", "category"]
        if "variants" not in b:
            required += ["findings", "proof"]
        for key in required:
            if key not in b:
                self.root.fail(f"`{key}` is missing", MISSING_MENDS[key])
        if "schema" in b and b["schema"].value != SCHEMA:
            b["schema"].fail(f"schema is {b['schema'].value!r}", f"this ckdn reads `{SCHEMA}`")
        name = b["name"].text() if "name" in b else self.stem
        if "name" in b and name != self.stem:
            b["name"].fail(f"name is `{name}` and the file is `{self.stem}`", "they must be equal")
        if name and not (
            name.isascii() and name.replace("_", "a").isalnum() and name == name.lower() and name[0].isalpha()
        ):
            b["name"].fail(f"`{name}` is no spec name", "lower-case letters, digits and _, a letter first")
        spec = Spec(name, b["title"].text() if "title" in b else "", "", {}, {})
        spec.category = b["category"].choice(CATEGORIES) if "category" in b else ""
        spec.homepage = b["homepage"].text() if "homepage" in b else ""
        for key in ("languages", "detect", "tested"):
            if key in b:
                setattr(spec, key, b[key].texts())
        if "command" in b:
            parts = b["command"].mapping(("run", "exe", "needs"))
            if "run" in parts:
                spec.command = parts["run"].text()
            else:
                b["command"].fail("`command` needs `run`", "the command line that `init` proposes")
            spec.needs = parts["needs"].texts() if "needs" in parts else ()
            if "exe" in parts:
                parts["exe"].text()
        return spec

    def variants(self, spec: Spec) -> Spec:
        """A file that only chooses between specs by an option."""
        for key in self.blocks:
            if key in BLOCKS or key == "extends":
                self.blocks[key].fail(f"`{key}` beside `variants`", "a file with variants holds nothing else")
        cursor = self.blocks["variants"]
        parts = cursor.mapping(("option", "choose", "default"))
        if "option" not in parts or "choose" not in parts:
            cursor.fail("`variants` needs `option` and `choose`")
            return spec
        spec.variant_option = parts["option"].text()
        choices, merged = [], {}
        for value, child in parts["choose"].mapping().items():
            found = self.find(child, child.text())
            if found is not None:
                if found[0].variants:
                    child.fail(f"`{child.value}` has variants itself", "name a spec without")
                choices.append((value, found[0].name))
                merged.update(found[0].options)
        spec.variants = tuple(choices)
        names = [value for value, _ in choices]
        default = parts["default"].choice(names) if "default" in parts and names else names[0] if names else ""
        merged[spec.variant_option] = {"type": "string", "enum": names, "default": default}
        spec.options = merged
        return spec

    # --- options and inputs --------------------------------------------------------------------------------------

    def load_options(self, spec: Spec) -> None:
        """``options``: a small JSON Schema each; ``fail_on`` exists everywhere."""
        if "options" in self.blocks:
            self.options.update(self.read_options(self.blocks["options"]))
        spec.options = self.options

    def read_options(self, block: Cursor) -> dict[str, dict[str, Any]]:
        """The option schemas of one block."""
        options = {}
        for name, cursor in block.mapping().items():
            parts = cursor.mapping(OPTION_KEYS)
            if name == "fail_on":
                cursor.fail("`fail_on` exists for every spec", "leave it out")
            if "type" in parts:
                parts["type"].choice(("string", "integer", "number", "boolean", "array"))
            elif "enum" not in parts:
                cursor.fail(f"the option `{name}` has no `type`")
            for key in ("minimum", "maximum"):
                if key in parts and not isinstance(parts[key].value, int | float):
                    parts[key].wrong("a number")
            options[name] = dict(cursor.value) if isinstance(cursor.value, dict) else {}
            if "default" in parts and "type" in parts:
                check_default(parts["default"], options[name])
        return options

    def load_inputs(self, spec: Spec) -> None:
        """``inputs``; the log is always there for text rules, ``match`` and ``no_match``."""
        if "inputs" not in self.blocks:
            self.inputs[LOG] = Input(LOG, LOG)
            spec.inputs = (self.inputs[LOG],)
            return
        children = self.blocks["inputs"].mapping()
        if not children:
            self.blocks["inputs"].fail("`inputs` is empty", "leave it out to read the log")
        spec.inputs = tuple(self.load_input(name, cursor) for name, cursor in children.items())
        self.inputs.setdefault(LOG, Input(LOG, LOG))

    def load_input(self, name: str, cursor: Cursor) -> Input:
        """One input."""
        parts = cursor.mapping(
            ("file", "format", "shape", "root", "slice", "stray", "prefix", "option", "optional", "hint")
        )
        given = Input(name, name if name in STREAMS else "file")
        self.inputs[name] = given
        if "file" in parts:
            given.file = parts["file"].text()
            if name in STREAMS:
                parts["file"].fail(f"`{name}` is a stream of the command", "give the input another name")
            elif given.file.startswith("/") or ".." in given.file.split("/"):
                parts["file"].fail(f"`{given.file}` is outside the run directory", "name a path below it")
        elif name not in STREAMS:
            cursor.fail(f"the input `{name}` has no `file`", "or call it log, stdout or stderr")
        given.format = parts["format"].choice(FORMATS) if "format" in parts else TEXT
        if "shape" in parts:
            self.load_shape(given, parts["shape"])
        if "root" in parts:
            given.root_kind, given.root_names = "element", parts["root"].texts(lone=True)
            if given.format != XML:
                parts["root"].fail("`root` names elements of xml", "for json use `shape`")
        for key, formats in (("slice", (JSON,)), ("stray", (NDJSON,)), ("prefix", (TEXT,))):
            if key in parts and given.format not in formats:
                parts[key].fail(f"`{key}` goes with format {' or '.join(formats)}, not {given.format}")
        if "slice" in parts:
            given.slice = parts["slice"].choice(("object", "array"))
        if "stray" in parts:
            given.stray = parts["stray"].choice(("refuse", "ignore"))
        if "prefix" in parts:
            inner = parts["prefix"].mapping(("match", "only"))
            if "match" in inner:
                given.prefix = Prefix(ex.regex(inner["match"]), "only" in inner and inner["only"].flag())
            else:
                parts["prefix"].fail("`prefix` needs `match`")
        if "option" in parts:
            given.option = parts["option"].text()
            self.options.setdefault(given.option, {"type": "string", "description": f"the file of input `{name}`"})
        given.optional = "optional" in parts and parts["optional"].flag()
        given.hint = parts["hint"].text() if "hint" in parts else ""
        return given

    def load_shape(self, given: Input, cursor: Cursor) -> None:
        """``shape: array`` or ``shape: {object: [keys]}``."""
        if given.format not in (JSON, NDJSON):
            cursor.fail("`shape` describes json", "for xml use `root`")
        if isinstance(cursor.value, str):
            given.root_kind = cursor.choice(("array", "object"))
            return
        parts = cursor.mapping(("object",))
        if "object" in parts:
            given.root_kind, given.root_names = "object", parts["object"].texts()

    def load_includes(self, spec: Spec) -> None:
        """``include``: other specs over their own inputs; their names live under their own name."""
        includes = []
        for cursor in self.list_of("include"):
            parts = {"spec": cursor} if isinstance(cursor.value, str) else cursor.mapping(("spec", "optional", "note"))
            if "spec" not in parts:
                cursor.fail("an include needs `spec`")
                continue
            found = self.find(parts["spec"], parts["spec"].text())
            if found is None:
                continue
            self.included[found[0].name] = found[0]
            for name, schema in found[0].options.items():
                self.options.setdefault(name, schema)
            optional = "optional" in parts and parts["optional"].flag()
            includes.append(Include(found[0].name, optional, parts["note"].text() if "note" in parts else ""))
        spec.includes = tuple(includes)

    # --- rows and findings ---------------------------------------------------------------------------------------

    def load_rows(self) -> Rows:
        """``rows``: the named row sets."""
        rows = Rows(self.inputs, self.options)
        children = self.blocks["rows"].mapping() if "rows" in self.blocks else {}
        rows.declared = tuple(children)
        for name, cursor in children.items():
            if name in NUMBER_WORDS:
                cursor.fail(f"rows cannot be called `{name}`", "that word names the records")
            rows.load(name, cursor, cursor.mapping(ROW_KEYS))
        return rows

    def load_findings(self, rows: Rows) -> tuple[Finding, ...]:
        """``findings``: which rows are records."""
        findings = []
        for position, cursor in enumerate(self.list_of("findings")):
            parts = cursor.mapping((*FINDING_KEYS, *ROW_KEYS))
            sources = [k for k in ("rows", *load_rows.SOURCES) if k in parts]
            if "rows" in parts:
                name = rows.other(parts["rows"])
                scope = rows.scopes[name] if name else ex.Scope()
                for key in parts:
                    if key in ROW_KEYS and key != "where":
                        parts[key].fail(f"`{key}` beside `rows`", f"put it into rows.{name or '…'}")
            elif sources:
                name = f"findings[{position}]"
                own = {k: v for k, v in parts.items() if k in ROW_KEYS}
                rows.load(name, cursor, own)
                scope = rows.scopes[name]
            else:
                cursor.fail(f"{cursor.named()} has no rows", "give one of rows, each, lines")
                continue
            findings.append(self.load_finding(cursor, parts, Finding(name), scope))
        return tuple(findings)

    def load_finding(self, cursor: Cursor, parts: dict[str, Cursor], finding: Finding, scope: ex.Scope) -> Finding:
        """What one finding says of its rows."""
        self.load_kind(cursor, parts, finding, scope)
        if "rows" in parts and "where" in parts:
            finding.where = ex.predicate(parts["where"], scope, self.options)
        for key in ("id", "message"):
            if key in parts:
                setattr(finding, key, ex.template(parts[key], scope.fields))
        if "severity" in parts:
            finding.severity = parts["severity"].choice(SEVERITY_WORDS)
        elif "severity" in scope.fields:
            self.check_severity(cursor, scope)
        if "message" not in parts and "message" not in scope.fields:
            cursor.fail(f"{cursor.named()} has no message", "a field `message`, a group `message`, or `message:`")
        if "failing" in parts:
            within = scope.copy()
            within.add("severity", "string", SEVERITY_WORDS)
            finding.failing = ex.predicate(parts["failing"], within, self.options)
        if "detail" in parts:
            inner = parts["detail"].mapping(("of", "prefer", "drop", "else"))
            finding.detail = Detail("")
            if "of" in inner:
                finding.detail.of = ex.field_name(inner["of"], scope.fields)
            else:
                parts["detail"].fail("`detail` needs `of`", "the field that holds the text")
            finding.detail.prefer = ex.regex(inner["prefer"]) if "prefer" in inner else ""
            finding.detail.drop = ex.regex(inner["drop"]) if "drop" in inner else ""
            if "else" in inner:
                inner["else"].choice(("tail",))
        return finding

    def load_kind(self, cursor: Cursor, parts: dict[str, Cursor], finding: Finding, scope: ex.Scope) -> None:
        """``kind``: a word, or ``{of: field, map}``."""
        if "kind" not in parts:
            cursor.fail(f"{cursor.named()} has no `kind`", "a word such as lint_violation, type_error, test_failure")
        elif isinstance(parts["kind"].value, str):
            finding.kind = parts["kind"].text()
            if finding.kind and not finding.kind.replace("_", "a").isalnum():
                parts["kind"].fail(f"`{finding.kind}` is no kind", "letters, digits and _")
        else:
            inner = parts["kind"].mapping(("of", "map"))
            if "of" not in inner or "map" not in inner:
                parts["kind"].fail("`kind` needs `of` and `map`")
                return
            finding.kind_of = ex.field_name(inner["of"], scope.fields)
            finding.kind_map = tuple((key, c.text()) for key, c in inner["map"].mapping().items())

    def check_severity(self, cursor: Cursor, scope: ex.Scope) -> None:
        """A severity that is mapped must come out as error, warning or info."""
        for value in scope.values.get("severity", ()):
            if value not in SEVERITY_WORDS:
                cursor.fail(f"{cursor.named()} maps severity to `{value}`", f"one of {', '.join(SEVERITY_WORDS)}")

    def name_records(self, rows: Rows, spec: Spec) -> None:
        """The fields of ``records``, and the number names that rows and records give."""
        scope = self.record_scope
        for finding in spec.findings:
            for name, kind in rows.scopes[finding.rows].fields.items():
                scope.add(name, kind, rows.scopes[finding.rows].values.get(name, ()))
        for name in RECORD_FIELDS:
            scope.add(name, "number" if name in INTEGER_FIELDS else None if name == "detail" else "string")
        scope.add("severity", "string", SEVERITY_WORDS)
        scope.add("kind", "string")
        scope.add("id", "string")
        scope.add("failing", "boolean")
        for name in rows.declared:
            self.numbers[f"rows.{name}"] = "the number of rows"
        for word in NUMBER_WORDS:
            self.numbers[word] = "the number of records"
            for severity in SEVERITY_WORDS:
                self.numbers[f"{word}.{severity}"] = "the number of records"
        for name, schema in self.options.items():
            if schema.get("type") in ("integer", "number"):
                self.numbers[f"options.{name}"] = "an option"
        for name, other in self.included.items():
            self.numbers.update({f"{name}.{n}": "a number of an included spec" for n in numbers_of(other)})

    # --- numbers -------------------------------------------------------------------------------------------------

    def load_declared(self, rows: Rows) -> tuple[Number, ...]:
        """``declared``: what the tool says about itself."""
        numbers: list[Number] = []
        for cursor in self.list_of("declared"):
            parts = cursor.mapping(("match", "take", "name", "get", "sum", "count", "where", "in"))
            if "match" in parts:
                numbers += self.matched_numbers(cursor, parts)
            elif "name" not in parts:
                cursor.fail(f"{cursor.named()} needs `match` or `name`")
            else:
                name = parts["name"].text()
                numbers.append(self.named_number(cursor, parts, name, rows))
        for number in numbers:
            self.numbers[f"declared.{number.name}"] = "declared by the tool"
        return tuple(numbers)

    def matched_numbers(self, cursor: Cursor, parts: dict[str, Cursor]) -> list[Number]:
        """Numbers that stand in a text line; the named groups are their names."""
        for key in ("name", "get", "sum", "count", "where"):
            if key in parts:
                parts[key].fail(f"`{key}` beside `match`")
        pattern, groups = ex.regex_groups(parts["match"])
        take = parts["take"].choice(("last", "sum", "count")) if "take" in parts else "last"
        if pattern and not groups:
            parts["match"].fail("`match` has no named group", "write (?P<errors>\\d+)")
        given = self.text_input(parts.get("in"))
        return [Number(name, "match", pattern, take, given) for name in groups]

    def text_input(self, cursor: Cursor | None) -> str:
        """The text that a match reads: the one named, else the spec's only text input, else the log."""
        if cursor is None:
            listed = [i.name for i in self.inputs.values() if i.format == TEXT and i.name != LOG]
            return listed[0] if len(listed) == 1 and "inputs" in self.blocks and LOG not in self.listed() else LOG
        name = cursor.text()
        if name not in self.inputs:
            cursor.fail(f"{cursor.named()} names unknown input `{name}`", near(name, self.inputs))
            return LOG
        if self.inputs[name].format != TEXT:
            cursor.fail(f"a match reads text, and the input `{name}` is {self.inputs[name].format}")
        return name

    def listed(self) -> tuple[str, ...]:
        """The inputs that the file itself lists."""
        block = self.blocks["inputs"].value if "inputs" in self.blocks else {}
        return tuple(block) if isinstance(block, dict) else ()

    def named_number(self, cursor: Cursor, parts: dict[str, Cursor], name: str, rows: Rows) -> Number:
        """``{name, get}``, ``{name, sum: rows.field}`` or ``{name, count: rows}``, the last two with ``where``."""
        verbs = [v for v in ("get", "sum", "count") if v in parts]
        if len(verbs) != 1:
            cursor.fail(f"{cursor.named()} needs exactly one of match, get, sum, count")
            return Number(name, "count")
        if verbs[0] == "get":
            given = rows.input_for(parts.get("in"), cursor, "")
            if given.format not in (JSON, XML):
                cursor.fail(f"`get` reads a whole json or xml document, and the input is {given.format}")
            return Number(name, "get", input=given.name, expression=ex.extraction(parts["get"], given.format))
        return self.rows_number(cursor, parts, verbs[0], name, rows)

    def rows_number(self, cursor: Cursor, parts: dict[str, Cursor], verb: str, name: str, rows: Rows) -> Number:
        """A sum over a field of rows, or a count of rows."""
        target, _, field = parts[verb].text().partition(".")
        scope = self.scope_of(parts[verb], target, rows)
        number = Number(name, verb, rows=target, field=field)
        if verb == "sum":
            if not field:
                parts[verb].fail(f"{parts[verb].named()} names no field", "write rows.field")
            elif scope.fields and field not in scope.fields:
                parts[verb].fail(f"`{target}` has no field `{field}`", near(field, scope.fields))
            elif scope.fields.get(field) in ("string", "boolean"):
                parts[verb].fail(f"`{target}.{field}` is no number", "give the field `as: int` or `as: number`")
        elif field:
            parts[verb].fail(f"{parts[verb].named()} counts rows, not a field", f"write {target}")
        if "where" in parts:
            number.where = ex.predicate(parts["where"], scope, self.options)
        return number

    def scope_of(self, cursor: Cursor, target: str, rows: Rows) -> ex.Scope:
        """The fields of named rows or of ``records``."""
        if target in NUMBER_WORDS:
            return self.record_scope
        if target not in rows.scopes:
            cursor.fail(
                f"{cursor.named()} names unknown rows `{target}`", near(target, (*rows.declared, *NUMBER_WORDS))
            )
            return ex.Scope()
        return rows.scopes[target]

    def load_summary(self, rows: Rows) -> tuple[SummaryItem, ...]:
        """``summary``: the numbers of the digest; dotted keys nest."""
        items = []
        for key, cursor in (self.blocks["summary"].mapping() if "summary" in self.blocks else {}).items():
            item = self.load_summary_item(tuple(key.split(".")), cursor, rows)
            items.append(item)
            if item.verb not in ("tally", "list"):
                self.numbers[f"summary.{key}"] = "a number of the summary"
        taken = [i.key for i in items]
        for path in taken:
            if any(other != path and other[: len(path)] == path for other in taken):
                self.blocks["summary"].fail(f"summary.{'.'.join(path)} is a number and has keys below it")
        return tuple(items)

    def load_summary_item(self, key: tuple[str, ...], cursor: Cursor, rows: Rows) -> SummaryItem:
        """One summary form."""
        if isinstance(cursor.value, str):
            return SummaryItem(key, "name", name=self.number_name(cursor))
        verbs = ("count", "sum", "tally", "percent", "list")
        parts = cursor.mapping((*verbs, "where", "top", "else", "digits", "sort", "show", "limit"))
        given = [v for v in verbs if v in parts]
        if len(given) != 1:
            cursor.fail(f"{cursor.named()} needs exactly one of {', '.join(verbs)}, or a number's name")
            return SummaryItem(key, "count")
        verb = given[0]
        if verb in ("count", "sum"):
            number = self.rows_number(cursor, parts, verb, ".".join(key), rows)
            return SummaryItem(key, verb, number.rows, number.field, number.where)
        item = SummaryItem(key, verb)
        if verb == "percent":
            self.load_percent(item, parts, rows)
            return item
        item.rows, _, item.field = parts[verb].text().partition(".")
        scope = self.scope_of(parts[verb], item.rows, rows)
        if "where" in parts:
            item.where = ex.predicate(parts["where"], scope, self.options)
        if verb == "tally":
            if item.field not in scope.fields and scope.fields:
                parts[verb].fail(f"`{item.rows}` has no field `{item.field}`", near(item.field, scope.fields))
            item.top = parts["top"].integer(minimum=1) if "top" in parts else 20
            return item
        self.load_list(item, parts, scope)
        return item

    def load_percent(self, item: SummaryItem, parts: dict[str, Cursor], rows: Rows) -> None:
        """``{percent: [numerator, denominator], else: rows.field, digits}``."""
        pair = parts["percent"].items()
        if len(pair) != 2:
            parts["percent"].fail("`percent` takes two numbers", "[numerator, denominator]")
        numbers = []
        for cursor in pair:
            if isinstance(cursor.value, str):
                numbers.append(Number(self.number_name(cursor), "name"))
            else:
                inner = cursor.mapping(("sum", "count", "where"))
                verbs = [v for v in ("sum", "count") if v in inner]
                if len(verbs) == 1:
                    numbers.append(self.rows_number(cursor, inner, verbs[0], "", rows))
                else:
                    cursor.fail(f"{cursor.named()} needs sum or count")
        item.parts = tuple(numbers)
        if "else" in parts:
            item.otherwise = parts["else"].text()
            target, _, field = item.otherwise.partition(".")
            scope = self.scope_of(parts["else"], target, rows)
            if scope.fields and field not in scope.fields:
                parts["else"].fail(f"`{target}` has no field `{field}`", near(field, scope.fields))
        item.digits = parts["digits"].integer(minimum=0) if "digits" in parts else 2

    def load_list(self, item: SummaryItem, parts: dict[str, Cursor], scope: ex.Scope) -> None:
        """``{list: rows, sort, show, limit}``."""
        if "show" not in parts:
            parts["list"].fail("`list` needs `show`", "the fields to show")
        else:
            item.show = tuple(ex.field_name(c, scope.fields) for c in parts["show"].items(lone=True))
        if "sort" in parts:
            keys = []
            for cursor in parts["sort"].items(lone=True):
                text = cursor.text()
                if text.lstrip("-") not in scope.fields:
                    cursor.fail(f"`{text}` is no field of these rows", near(text.lstrip("-"), scope.fields))
                keys.append(text)
            item.sort = tuple(keys)
        if "limit" in parts:
            limit = parts["limit"]
            if isinstance(limit.value, str):
                item.limit = self.option_name(limit)
            else:
                item.limit = limit.integer(minimum=1)

    def number_name(self, cursor: Cursor) -> str:
        """A number's name that exists."""
        name = cursor.text()
        if name and name not in self.numbers:
            cursor.fail(f"{cursor.named()} names the number `{name}`, which does not exist", near(name, self.numbers))
        return name

    def option_name(self, cursor: Cursor) -> str:
        """``options.x`` of a declared number option; gives ``x``."""
        name = cursor.text()
        if f"{name}" not in self.numbers or not name.startswith("options."):
            known = [n for n in self.numbers if n.startswith("options.")]
            cursor.fail(f"{cursor.named()} names `{name}`, which is no number option", near(name, known))
            return ""
        return name.removeprefix("options.")

    # --- guards, proof, gates ------------------------------------------------------------------------------------

    def comparison(self, cursor: Cursor) -> Any:
        """A comparison over numbers that exist."""
        text = cursor.text()
        if not text:
            return None
        try:
            comparison = compare.parse(text)
        except compare.ComparisonError as e:
            cursor.fail(f"{cursor.named()}: {e}")
            return None
        for name in compare.names(comparison):
            if name not in self.numbers:
                cursor.fail(
                    f"{cursor.named()} names the number `{name}`, which does not exist", near(name, self.numbers)
                )
        return comparison

    def load_guard(self, cursor: Cursor) -> Guard:
        """A comparison, or ``{absent: number, message}``."""
        if isinstance(cursor.value, str):
            return Guard(self.comparison(cursor))
        parts = cursor.mapping(("absent", "message"))
        if "absent" not in parts:
            cursor.fail(f"{cursor.named()} is neither a comparison nor has `absent`")
            return Guard()
        message = ex.template(parts["message"], self.numbers) if "message" in parts else ()
        return Guard(None, self.number_name(parts["absent"]), message)

    def load_proof(self, spec: Spec) -> tuple[Proof, ...]:
        """``proof``: at least one line; findings that are promised need more than a comparison of nothing."""
        if "proof" not in self.blocks:
            return ()
        items = self.blocks["proof"].items()
        if not items:
            self.blocks["proof"].fail("`proof` is empty", "say what shows that the tool did its work, or `exit_code`")
        return tuple(self.load_proof_line(cursor, spec) for cursor in items)

    def load_proof_line(self, cursor: Cursor, spec: Spec) -> Proof:
        """report, exit_code, a comparison, or {match | no_match | holds, in}."""
        if isinstance(cursor.value, str):
            text = cursor.text()
            if text == "report":
                if not any(i.source == "file" and not i.optional for i in spec.inputs):
                    cursor.fail("`report` without a required file input", "declare the report in `inputs`")
                return Proof("report", text)
            if text == "exit_code":
                return Proof("exit_code", text)
            if text.replace("_", "a").isalpha():
                cursor.fail(f"`{text}` is no proof", near(text, ("report", "exit_code")))
                return Proof("exit_code", text)
            return Proof("comparison", text, self.comparison(cursor))
        parts = cursor.mapping(("match", "no_match", "holds", "in"))
        kinds = [k for k in ("match", "no_match", "holds") if k in parts]
        if len(kinds) != 1:
            cursor.fail(f"{cursor.named()} needs exactly one of match, no_match, holds")
            return Proof("exit_code", "")
        kind = kinds[0]
        text = f"{kind}: {parts[kind].value}"
        if kind != "holds":
            return Proof(kind, text, pattern=ex.regex(parts[kind]), input=self.match_input(parts.get("in")))
        given = Rows(self.inputs, self.options).input_for(parts.get("in"), cursor, "")
        return Proof(kind, text, input=given.name, expression=ex.extraction(parts[kind], given.format))

    def match_input(self, cursor: Cursor | None) -> str:
        """``match`` and ``no_match`` read the log unless ``in`` says otherwise."""
        return LOG if cursor is None else self.text_input(cursor)

    def load_gate(self, cursor: Cursor) -> Gate:
        """``{number, min | max: options.x or a constant, label, unset?}``."""
        parts = cursor.mapping(("number", "min", "max", "label", "unset"))
        ops = [k for k in ("min", "max") if k in parts]
        if len(ops) != 1 or "number" not in parts or "label" not in parts:
            cursor.fail(f"{cursor.named()} needs `number`, `label` and exactly one of min, max")
            return Gate("", "max", 0, "")
        limit = parts[ops[0]]
        value: int | float | str
        if isinstance(limit.value, str):
            value = self.option_name(limit)
        elif isinstance(limit.value, int | float) and not isinstance(limit.value, bool):
            value = limit.value
        else:
            limit.wrong("a number or options.NAME")
            value = 0
        unset = parts["unset"].text() if "unset" in parts else ""
        return Gate(self.number_name(parts["number"]), ops[0], value, parts["label"].text(), unset)

    def load_exit_codes(self) -> dict[str, tuple[int, ...]]:
        """``exit_codes``: which codes mean clean, findings, crash."""
        codes: dict[str, tuple[int, ...]] = {}
        if "exit_codes" not in self.blocks:
            return codes
        seen: dict[int, str] = {}
        for key, cursor in self.blocks["exit_codes"].mapping(("clean", "findings", "crash")).items():
            codes[key] = tuple(c.integer(minimum=0) for c in cursor.items(lone=True))
            for code in codes[key]:
                if code in seen and seen[code] != key:
                    cursor.fail(f"exit code {code} is both {seen[code]} and {key}")
                seen[code] = key
                if (code == 0) != (key == "clean") and key != "findings":
                    cursor.fail(f"exit code {code} cannot mean {key}", "0 is clean, everything else is not")
        return codes

    def load_zero(self, spec: Spec) -> None:
        """``findings_on_zero``: expected, or under a predicate over numbers."""
        if "findings_on_zero" not in self.blocks:
            return
        cursor = self.blocks["findings_on_zero"]
        if isinstance(cursor.value, str):
            cursor.choice(("expected",))
            spec.zero_expected = True
            return
        parts = cursor.mapping(("expected",))
        if "expected" in parts:
            spec.zero_predicate = self.comparison(parts["expected"])


MISSING_MENDS = {
    "schema": f"schema: {SCHEMA}",
    "name": "the file's stem",
    "title": "the tool's name as people write it",
    "category": f"one of {', '.join(CATEGORIES)}",
    "findings": "what is a record; `findings: []` promises none",
    "proof": "what shows that the tool did its work: report, a match, a comparison, or exit_code",
}


def numbers_of(spec: Spec) -> list[str]:
    """The number names of a loaded spec, for those who include it."""
    names = [f"summary.{'.'.join(i.key)}" for i in spec.summary if i.verb not in ("tally", "list")]
    names += [f"declared.{n.name}" for n in spec.declared]
    names += [f"rows.{r.name}" for r in spec.rows if "[" not in r.name]
    for word in NUMBER_WORDS:
        names += [word, *(f"{word}.{severity}" for severity in SEVERITY_WORDS)]
    return names


def check_default(cursor: Cursor, schema: dict[str, Any]) -> None:
    """A default must be a value of its own option's type."""
    value, kind = cursor.value, schema.get("type")
    fits = {
        "string": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "boolean": isinstance(value, bool),
        "array": isinstance(value, list),
    }
    if not fits.get(str(kind), True):
        cursor.wrong(f"of type {kind}")
    elif "enum" in schema and value not in schema["enum"]:
        cursor.fail(f"the default {value!r} is not in `enum`")


def looks_into(field: Field) -> list[str]:
    """The rows a field looks up."""
    return [c.rows for c in field.candidates if isinstance(c, Candidate) and c.kind == "lookup" and c.rows]


def staged(rows: Rows, root: Cursor) -> tuple[Any, ...]:
    """The row sets in the order of the file, each with the pass in which it is made."""
    for row in rows.sets.values():
        stage = 0
        if row.origin in rows.sets:
            stage = rows.sets[row.origin].stage
        for field in row.fields:
            for name in looks_into(field):
                if name in rows.sets:
                    stage = max(stage, rows.sets[name].stage + 1)
        if row.without is not None and row.without.rows in rows.sets:
            stage = max(stage, rows.sets[row.without.rows].stage)
        row.stage = stage
    return tuple(rows.sets.values())
