"""Loading text rules: ``lines`` and their riders."""

from __future__ import annotations

from ckdn.errors import near
from ckdn.spec import expressions as ex
from ckdn.spec.types import Input, LineRule, Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ckdn.spec.cursor import Cursor

MAX_RULES = 64
VERBS = ("new", "add", "attach", "set", "unset", "push", "pop", "end", "skip")
RULE_KEYS = (*VERBS, "into", "then", "last", "join", "names", "where")
BETWEEN_KEYS = ("start", "stop")
OPEN_ROW_VERBS = ("add", "attach", "end")
"""Verbs that act on an open row, and only while one is open."""
FIELD_VERBS = ("new", "add", "set", "push")
"""Verbs whose named groups become fields."""
INTO_VERBS = ("new", "add", "attach", "push", "pop", "skip")
"""Verbs behind which a row can still be open."""


def load_lines(cursor: Cursor, parts: dict[str, Cursor], scope: ex.Scope, given: Input, options: ex.Options) -> Lines:
    """``lines`` with its riders; the named groups of its rules become fields."""
    items = cursor.items(lone=isinstance(cursor.value, str))
    if len(items) > MAX_RULES:
        cursor.fail(f"{cursor.named()} has {len(items)} rules", f"at most {MAX_RULES}")
    rules = [load_rule(item) for item in items]
    prefixed = prefix_groups(given)
    add_groups(scope, rules, given, prefixed)
    if any(not rule.pattern for rule in rules) or not any(rule.verb == "new" for rule in rules):
        scope.blur()
    check_verbs(cursor, rules, items)
    for rule, item in zip(rules, items, strict=True):
        if isinstance(item.value, dict) and "where" in item.value:
            rule.where = ex.predicate(item.at("where"), scope, options)
            if rule.verb not in OPEN_ROW_VERBS:
                item.at("where").fail("`where` asks the open row, so it goes with add, attach or end")
    check_unreachable(rules, items)
    lines = Lines(tuple(rules))
    if "between" in parts:
        between = parts["between"].mapping(BETWEEN_KEYS)
        if "start" not in between and parts["between"].sound:
            parts["between"].fail("`between` needs `start`", "give the regex of the line before the first one")
        lines.start = ex.regex(between["start"]) if "start" in between else ""
        lines.stop = ex.regex(between["stop"]) if "stop" in between else ""
    if "per" in parts:
        opening = {*prefixed, *[g for rule in rules if rule.verb == "new" for g in rule.groups]}
        known = opening if all(rule.pattern for rule in rules) else scope.fields
        lines.per = parts["per"].text()
        if lines.per and lines.per not in known:
            said = f"{parts['per'].named()} is `{lines.per}`, which no `new` rule has as a group"
            parts["per"].fail(said, near(lines.per, known))
    if "otherwise" in parts:
        lines.otherwise_end = bool(parts["otherwise"].choice(("end",)))
    check_kept(rules, items, lines.per)
    return lines


def add_groups(scope: ex.Scope, rules: list[LineRule], given: Input, prefixed: list[str]) -> None:
    """The fields that the groups of rules and of the input's prefix give."""
    patterns = [(rule.pattern, name) for rule in rules if rule.verb in FIELD_VERBS for name in rule.groups]
    patterns += [(given.prefix.match, name) for name in prefixed if given.prefix is not None]
    for name in dict.fromkeys(name for _, name in patterns):
        found = [ex.alternatives(pattern, name) for pattern, known in patterns if known == name]
        joined = any(rule.join and name in rule.groups for rule in rules)
        values = () if joined or not all(found) or ex.group_kind(name) != "string" else sum(found, ())
        scope.add(name, ex.group_kind(name), values)
    if any(rule.into == "detail" or rule.verb == "attach" for rule in rules):
        scope.add("detail", None)


def prefix_groups(given: Input) -> list[str]:
    """The named groups of an input's prefix (its regex is known to compile)."""
    return list(ex.compiled(given.prefix.match).groupindex) if given.prefix and given.prefix.match else []


def load_rule(cursor: Cursor) -> LineRule:
    """One text rule."""
    if isinstance(cursor.value, str):
        pattern, groups = ex.regex_groups(cursor)
        return LineRule("new", pattern, groups)
    parts = cursor.mapping(RULE_KEYS)
    verbs = [v for v in VERBS if v in parts]
    if len(verbs) != 1:
        if cursor.sound:
            cursor.fail(f"{cursor.named()} needs exactly one verb", f"one of {', '.join(VERBS)}")
        return LineRule("skip", "")
    verb = verbs[0]
    pattern, groups = ex.regex_groups(parts[verb])
    rule = LineRule(verb, pattern, groups)
    if verb in ("set", "push", "add") and pattern and not groups and "into" not in parts:
        parts[verb].fail(f"`{verb}` without a named group changes nothing", "write (?P<name>…)")
    load_riders(rule, parts)
    return rule


def load_riders(rule: LineRule, parts: dict[str, Cursor]) -> None:
    """into, then, last, join, names: each beside the verbs with which it means something."""
    verb = rule.verb
    if "into" in parts:
        rule.into = parts["into"].choice(("detail",))
        if verb not in INTO_VERBS:
            parts["into"].fail(f"`into` beside `{verb}`, which leaves no row open", "attach the line in another rule")
    if "then" in parts:
        rule.ends = bool(parts["then"].choice(("end",)))
        if verb not in ("new", "add", "attach", "skip"):
            parts["then"].fail(f"`then: end` beside `{verb}`", "it goes with new, add, attach and skip")
    if "last" in parts:
        rule.last = parts["last"].flag()
    if "join" in parts:
        rule.join = parts["join"].flag()
        if rule.join and rule.last:
            parts["join"].fail("`join` and `last` beside each other", "a text grows, or it is replaced")
    for key in ("last", "join"):
        if key in parts and verb != "add":
            parts[key].fail(f"`{key}` only goes with `add`")
    if "names" in parts:
        rule.names = parts["names"].texts(lone=True)
        if verb != "unset":
            parts["names"].fail("`names` only goes with `unset`")


def check_verbs(cursor: Cursor, rules: list[LineRule], items: list[Cursor]) -> None:
    """Verbs that only mean something beside others."""
    verbs = [rule.verb for rule in rules]
    whole = all(rule.pattern for rule in rules)
    if "new" not in verbs and whole and isinstance(cursor.value, list | str):
        cursor.fail(f"{cursor.named()} has no `new` rule, so there are no rows", "a plain text is one")
    context = [name for rule in rules if rule.verb == "set" for name in rule.groups]
    for rule, item in zip(rules, items, strict=True):
        if not whole:
            break
        if rule.verb == "pop" and "push" not in verbs:
            item.fail(f"{item.named()}: `pop` without a `push` rule", "add the rule that enters what this one leaves")
        if rule.verb == "push" and "pop" not in verbs:
            item.fail(f"{item.named()}: `push` without a `pop` rule", "add one, or use `set`")
        if rule.verb == "unset" and "set" not in verbs:
            item.fail(f"{item.named()}: `unset` without a `set` rule", "take it out")
        for name in rule.names if rule.verb == "unset" else ():
            if "set" in verbs and name not in context:
                item.fail(f"{item.named()}: `unset` names `{name}`, which no rule sets", near(name, context))


def check_kept(rules: list[LineRule], items: list[Cursor], per: str) -> None:
    """Groups that no row would get: only some verbs fill fields."""
    for rule, item in zip(rules, items, strict=True):
        at = item.at(rule.verb) if isinstance(item.value, dict) and rule.verb in item.value else item
        allowed = (per, "detail") if rule.verb == "attach" else (per,)
        for name in rule.groups:
            if rule.verb not in FIELD_VERBS and name not in allowed:
                mend = "write (?:…), or (?P<detail>…) for what is to be attached" if rule.verb == "attach" else ""
                at.fail(f"{at.named()}: `{rule.verb}` drops the group `{name}`", mend or "write (?:…)")
            if rule.verb == "add" and name == "detail":
                at.fail(f"{at.named()}: `add` cannot fill `detail`", "use `attach`, or the rider `into: detail`")


def check_unreachable(rules: list[LineRule], items: list[Cursor]) -> None:
    """A rule behind one that takes the same lines, or all of them, is never reached."""
    taking: list[tuple[int, LineRule]] = []
    for number, (rule, item) in enumerate(zip(rules, items, strict=True)):
        if not rule.pattern:
            continue
        needs_row = rule.verb in OPEN_ROW_VERBS
        for earlier, other in taking:
            if other.verb not in OPEN_ROW_VERBS or needs_row:
                same = other.pattern == rule.pattern
                what = "has the same pattern" if same else "takes every line"
                if same or ex.takes_everything(other.pattern):
                    item.fail(
                        f"{item.named()} is never reached: rule {earlier + 1} {what}",
                        "put it first, or narrow that one",
                    )
                    break
        if rule.where is None and not (isinstance(item.value, dict) and "where" in item.value):
            taking.append((number, rule))
        if rule.verb == "skip" and ex.takes_everything(rule.pattern):
            item.fail(f"{item.named()} skips every line", "lines that no rule takes change nothing anyway")
