"""Secrets in tool output: the usual token shapes, replaced by ``[masked]``.

:data:`SHAPES` is the list. A shape is tried only where one of its needles (plain substrings) stands, so a text without
secrets costs a few substring searches and no import of :mod:`re`. Every pattern starts behind a boundary of its own
character class, or is bounded, so that the time is linear in the text.

This is a net under everything ckdn prints, not a promise: the archived log is not masked, and a secret without a
shape and without a name beside it stays.
"""

from __future__ import annotations

MASK = "[masked]"

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re


def _token(prefix: str, body: str = r"[A-Za-z0-9]", least: int = 20) -> str:
    """A token by its prefix: not behind a character of its own kind, and whole to its last character."""
    return rf"(?<![A-Za-z0-9_\-])(?:{prefix}){body}{{{least},}}"


_WORD = r"[A-Za-z0-9_\-]"
_PASSWORD_WORDS = "password|passwd|passphrase|pwd"
_SECRET_WORDS = (
    "secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|account[_-]?key|signing[_-]?key"
    "|encryption[_-]?key|secret[_-]?key[_-]?base|auth[_-]?key|credentials?"
)
_NAMED = (
    rf"(?i:(?P<name>{_PASSWORD_WORDS}|{_SECRET_WORDS}))"
    r"(?P<sep>\\?[\"']?[ \t]{0,8}(?:=>|:=|={1,3}|:)(?![=:])[ \t]{0,8})"
    r"(?:(?P<open>\\?[\"'])(?P<quoted>[^\"'\\\r\n]{1,4096})(?=\\?[\"'])|(?P<bare>[^\s\"'`,;&<>()\[\]{}|\\]{3,4096}))"
)
# Needles with a star are looked for whatever their case. "key" alone is no needle: it stands in every other program.
_WORDS = (
    *("*assw", "*assphrase", "*pwd", "*ecret", "*oken", "*redential"),
    *("*apikey", "*_key", "*-key", "*skey", "*ikey", "*tkey", "*ekey", "*gkey", "*nkey", "*hkey"),
)

SHAPES: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    # name, needles (any of them must occur), pattern, replacement ("" = decided by _named)
    ("aws access key id", ("AKIA", "ASIA"), r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])", MASK),
    ("github", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _token("gh[pousr]_", least=30), MASK),
    ("fine-grained token", ("_pat_",), _token("github_pat_|dckr_pat_", r"[A-Za-z0-9_\-]"), MASK),
    (
        "gitlab",
        ("glpat-", "gldt-", "glrt-"),
        _token("gl(?:pat|dt|rt)-", r"[A-Za-z0-9_\-.]", 16),
        MASK,
    ),
    ("slack", ("xox", "xapp-"), _token("xox[abeoprs][-.]|xapp-", r"[A-Za-z0-9\-.]", 10), MASK),
    (
        "webhook",
        ("hooks.slack.com/", "/api/webhooks/"),
        r"(hooks\.slack\.com/(?:services|workflows|triggers)/|/api/webhooks/)[A-Za-z0-9_\-/]{10,}",
        r"\g<1>" + MASK,
    ),
    ("jwt", ("eyJ",), rf"(?<!{_WORD})eyJ{_WORD}{{8,}}\.{_WORD}{{8,}}(?:\.{_WORD}*)?", MASK),
    ("npm", ("npm_",), _token("npm_", least=30), MASK),
    ("pypi", ("pypi-AgE",), _token("pypi-AgE", _WORD, 30), MASK),
    ("sk key", ("sk-",), rf"(?<!{_WORD})sk-(?:[a-z0-9]{{2,10}}-){{0,3}}[A-Za-z0-9_]{{16,}}{_WORD}*", MASK),
    (
        "stripe",
        ("k_live_", "k_test_", "whsec_"),
        _token("[rs]k_live_|[rs]k_test_|whsec_", r"[A-Za-z0-9+/=]", 10),
        MASK,
    ),
    ("google", ("AIza", "GOCSPX-", "ya29."), _token(r"AIza|GOCSPX-|ya29\.", _WORD), MASK),
    (
        "azure signature",
        ("sig=",),
        r"(?<![A-Za-z0-9])(sig=)(?=[A-Za-z%+/]{0,64}\d)[A-Za-z0-9%+/]{20,}={0,2}",
        r"\g<1>" + MASK,
    ),
    ("hugging face", ("hf_",), _token("hf_", least=30), MASK),
    ("sendgrid", ("SG.",), rf"(?<!{_WORD})SG\.{_WORD}{{16,}}\.{_WORD}{{16,}}", MASK),
    ("digitalocean", ("_v1_",), _token("do[opr]_v1_", "[a-f0-9]", 40), MASK),
    ("vault", ("hvs.",), _token(r"hvs\.", _WORD), MASK),
    ("telegram", (":AA",), rf"(?<![0-9A-Za-z])\d{{8,10}}:AA{_WORD}{{32,}}", MASK),
    ("age", ("AGE-SECRET-KEY-",), _token("AGE-SECRET-KEY-", "[0-9A-Z]"), MASK),
    (
        "private key",
        ("PRIVATE KEY",),
        r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
        "",  # these are its markers; what goes with them is decided by _mask_private_keys
    ),
    (
        "authorization",
        ("*uthorization",),
        r"(?i)(authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:basic|bearer|token|digest|negotiate|apikey)\s{1,4})"
        r"[A-Za-z0-9._~+/=\-]{4,}",
        r"\g<1>" + MASK,
    ),
    (
        "bearer",
        ("*earer ", "*asic "),
        r"(?<![A-Za-z0-9])([Bb]earer|BEARER|[Bb]asic)( {1,4})(?=[A-Za-z._~+/\-]{0,64}\d)[A-Za-z0-9._~+/\-]{16,}=*",
        r"\g<1>\g<2>" + MASK,
    ),
    # (its needle is "://" together with "@": see suspicious)
    ("url credentials", (), r"(?<=://)([^\s/:@'\"\[\]]{0,128}:)[^\s/@'\"\[\]]{1,256}(?=@)", r"\g<1>" + MASK),
    (
        "option",
        _WORDS,
        r"(?<=--)((?:[a-z]{1,20}-){0,3}(?:password|passwd|token|secret|api-key|secret-key|access-key) {1,4})"
        r"(?=[^\s\-]{0,64}\d)[^\s<${\-\"'\[\]][^\s\"'\[\]]{5,}",
        r"\g<1>" + MASK,
    ),
    (
        "named value",
        _WORDS,
        _NAMED,
        "",
    ),
)

_NEEDLES = tuple(dict.fromkeys([needle for _, needles, _, _ in SHAPES for needle in needles if needle[0] != "*"]))
_FOLDED = tuple(dict.fromkeys([needle[1:] for _, needles, _, _ in SHAPES for needle in needles if needle[0] == "*"]))
_FOLDED_KEYS = tuple([needle for needle in _FOLDED if "key" in needle])
_FOLDED_WORDS = tuple([needle for needle in _FOLDED if "key" not in needle])

_ROUNDS = 8
"""A bound for hostile text; two are enough for any other."""

_compiled: dict[str, re.Pattern[str]] = {}


def mask(text: str) -> str:
    """``text`` with every secret of a known shape replaced by ``[masked]``; names and schemes beside it stay.

    Idempotent and linear; the lines of a private key go with it. Never raises.
    """
    for _ in range(_ROUNDS):
        if not suspicious(text):
            break
        masked = _mask(text)
        if masked == text:
            break
        text = masked  # what stood beside a secret may be one itself, now that this one is gone
    return text


def suspicious(text: str) -> bool:
    """Whether :func:`mask` has to look closer; False promises that no part of ``text`` would change."""
    for needle in _NEEDLES:  # no generator: it costs three times as much, and this runs for every string
        if needle in text:
            return True
    folded = text.lower()
    for needle in _FOLDED_WORDS:
        if needle in folded:
            return True
    if "key" in folded:
        for needle in _FOLDED_KEYS:
            if needle in folded:
                return True
    return "://" in text and "@" in text


def _mask(text: str) -> str:
    for name, needles, pattern, replacement in SHAPES:
        folded = text.lower()
        if needles and not any(n[1:] in folded if n[0] == "*" else n in text for n in needles):
            continue
        if name == "private key":
            text = _mask_private_keys(text, _pattern(name, pattern))
        else:
            text = _pattern(name, pattern).sub(replacement or _named, text)
    return text


def _pattern(name: str, pattern: str) -> re.Pattern[str]:
    compiled = _compiled.get(name)
    if compiled is None:
        import re  # 4 ms, and only for a text that may hold a secret

        compiled = _compiled[name] = re.compile(pattern)
    return compiled


def _mask_private_keys(text: str, marker: re.Pattern[str]) -> str:
    """Mask from BEGIN to END; of a block that is cut off, the lines that look like one."""
    kept: list[str] = []
    inside = False
    for line in text.split("\n"):
        if "PRIVATE KEY" in line and marker.search(line):
            was_inside = inside
            line, inside = _mask_markers(line, marker, inside, kept)
            if line or not was_inside:
                kept.append(line)
        elif not (inside and _is_key_line(line, 16)):
            inside = False
            kept.append(line)
    return "\n".join(kept)


def _mask_markers(line: str, marker: re.Pattern[str], inside: bool, kept: list[str]) -> tuple[str, bool]:
    """One line that holds BEGIN or END markers, masked, and whether it leaves the key open."""
    parts: list[str] = []
    at = 0
    for match in marker.finditer(line):
        before, at = line[at : match.start()], match.end()
        begins = match[1] == "BEGIN"
        if begins and not inside:
            parts.append(before + MASK)
        elif not begins and not inside:  # its beginning was cut off: the lines before belong to it
            if not parts:
                while kept and _is_key_line(kept[-1], 4):
                    kept.pop()
            head = before.rpartition(" ")[0] if "\\n" in before else before
            parts.append(f"{head} {MASK}".lstrip())
        inside = begins
    rest = line[at:]
    if inside:
        escaped = _pattern("escaped key lines", r"(?:(?:\\[nr])+[A-Za-z0-9+/=]+)+").match(rest)
        if escaped:
            rest = rest[escaped.end() :]
        inside = not any(c.isalnum() for c in rest)
    return "".join(parts) + rest, inside


def _is_key_line(line: str, least: int) -> bool:
    """Base64 (behind a margin, as in "E   MIIE…"), a PEM header, or blank."""
    words = line.split()
    if not words:
        return least > 4
    if words[0] in ("Proc-Type:", "DEK-Info:", "Version:", "Comment:"):
        return True
    bare = words[-1].rstrip("=")
    plain = bare.replace("+", "a").replace("/", "a")
    return len(words) <= 2 and len(bare) >= least and plain.isascii() and plain.isalnum()


def _named(match: re.Match[str]) -> str:
    """``NAME = value``: masked when the value can be a secret rather than code, a type or prose."""
    name, sep, opening = match["name"], match["sep"], match["open"] or ""
    value = match["quoted"] if match["quoted"] is not None else match["bare"]
    if _harmless(name, value) or not _secretive(name, sep, value, bool(opening)):
        return match[0]
    return f"{name}{sep}{opening}{MASK}"


_LITERALS = frozenset(
    (
        *("none", "null", "nil", "true", "false", "undefined", "missing", "invalid", "empty", "expired", "required"),
        *("str", "string", "bytes", "int", "bool", "boolean", "object", "any", "optional", "unexpected", "expected"),
        *("identifier", "eof"),
    )
)


def _harmless(name: str, value: str) -> bool:
    """Placeholders, literals, and code that passes the secret on by a name (``token=self.token``)."""
    lower = value.strip().rstrip(".:!?").lower()
    if not lower or lower in _LITERALS or value == MASK:
        return True
    if lower[0] in "$<{%*" or not any(c.isalnum() for c in lower) or _is_path(value):
        return True
    # an identifier path that names the secret again
    is_path = lower.replace(".", "").replace("_", "").isalpha()
    return is_path and any(word in lower for word in (name.lower(), "password", "secret", "token", "key"))


def _is_path(value: str) -> bool:
    """A file's place (``PWD=/srv``, ``private_key: ./id1.pem``), but not base64 that happens to start with "/"."""
    if value[:2] in ("./", "..", "~/") or value[1:3] in (":/", ":\\"):
        return True
    mixed = value != value.lower() and any(c.isdigit() for c in value)
    return value[0] == "/" and not (len(value) >= 32 and mixed)


def _secretive(name: str, sep: str, value: str, quoted: bool) -> bool:
    digit = any(c.isdigit() for c in value)
    letter = any(c.isalpha() for c in value)
    if name.isupper() and "=" in sep and sep == sep.strip():
        return len(value) >= 4  # FOO_SECRET=…: an environment variable
    if name.lower() in _PASSWORD_WORDS.split("|"):
        if "=" in sep or quoted:
            return len(value) >= 4 and " " not in value
        return digit and letter and len(value) >= 6
    if " " in value:
        return False
    mixed = value != value.lower() and value != value.upper()
    return letter and ((digit and len(value) >= 8) or (mixed and len(value) >= 24))
