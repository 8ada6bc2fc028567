"""Masking: each shape with what it takes and what it must leave, and the properties of the whole."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckdn.masking import MASK, SHAPES, mask, suspicious


def fake(length: int, alphabet: str = "aB3dE6gH9jKmN") -> str:
    """A made-up secret: nothing in this file was ever valid, and it is put together so that no scanner stops at it."""
    return (alphabet * length)[:length]


HEX = fake(64, "0a1b2c3d4e5f")
KEY_LINES = "\n".join([fake(64), fake(64), fake(30) + "=="])
BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"

MASKED = [
    # shape, text, what it becomes
    ("aws access key id", "id AKIA" + fake(16, "ABCD2345") + ".", f"id {MASK}."),
    ("github", "ghp_" + fake(36), MASK),
    ("github", "remote: gho_" + fake(36) + "!", f"remote: {MASK}!"),
    ("fine-grained token", "github_pat_" + fake(22) + "_" + fake(59), MASK),
    ("fine-grained token", "dckr_pat_" + fake(27), MASK),
    ("gitlab", "glpat-" + fake(20), MASK),
    ("slack", "xoxb-123456789012-" + fake(24), MASK),
    ("webhook", "https://hooks.slack.com/services/T000/B000/" + fake(24), f"https://hooks.slack.com/services/{MASK}"),
    (
        "webhook",
        "https://discord.com/api/webhooks/1234/" + fake(60),
        f"https://discord.com/api/webhooks/{MASK}",
    ),
    ("jwt", "got eyJ" + fake(20) + ".eyJ" + fake(40) + "." + fake(43) + " here", f"got {MASK} here"),
    ("npm", "//registry/:_authToken npm_" + fake(36), f"//registry/:_authToken {MASK}"),
    ("pypi", "pypi-AgEI" + fake(80), MASK),
    ("sk key", "Incorrect API key provided: sk-proj-" + fake(48), f"Incorrect API key provided: {MASK}"),
    ("sk key", "sk-ant-api03-" + fake(80) + "-" + fake(8), MASK),
    ("stripe", "sk_live_" + fake(24), MASK),
    ("google", "?key=AIza" + fake(35), f"?key={MASK}"),
    ("azure signature", "sv=2020&sig=" + fake(30) + "%3D&x=1", f"sv=2020&sig={MASK}&x=1"),
    ("hugging face", "hf_" + fake(34), MASK),
    ("sendgrid", "SG." + fake(22) + "." + fake(43), MASK),
    ("digitalocean", "dop_v1_" + HEX, MASK),
    ("vault", "hvs." + fake(40), MASK),
    ("telegram", "bot 123456789:AA" + fake(33), f"bot {MASK}"),
    ("age", "AGE-SECRET-KEY-1" + fake(58, "QPZRY9X8"), MASK),
    ("private key", f"{BEGIN}\n{KEY_LINES}\n{END}", MASK),
    ("private key", f"a\n{BEGIN}\nProc-Type: 4,ENCRYPTED\n\n{KEY_LINES}\n{END}\nb", f"a\n{MASK}\nb"),
    ("private key", "k = '" + f"{BEGIN}\n{KEY_LINES}\n{END}".replace("\n", "\\n") + "'", f"k = '{MASK}'"),
    ("private key", f"E   {BEGIN}\nE   {fake(64)}\nE   {fake(64)}\nE   assert 0", f"E   {MASK}\nE   assert 0"),
    ("private key", f"{fake(64)}\n{fake(20)}==\n{END}\ndone", f"{MASK}\ndone"),
    ("authorization", "> Authorization: Bearer abcdef", f"> Authorization: Bearer {MASK}"),
    ("authorization", "{'authorization': 'Basic dXNlcjpwYXNz'}", f"{{'authorization': 'Basic {MASK}'}}"),
    ("bearer", "curl -H Bearer " + fake(24), f"curl -H Bearer {MASK}"),
    ("url credentials", "https://user:hunter2@example.org/x", f"https://user:{MASK}@example.org/x"),
    ("url credentials", "postgres://:hunter2@db:5432/app", f"postgres://:{MASK}@db:5432/app"),
    ("option", "tool --db-password hunter2 --fix", f"tool --db-password {MASK} --fix"),
    ("named value", "AWS_SECRET_ACCESS_KEY=" + fake(40), f"AWS_SECRET_ACCESS_KEY={MASK}"),
    ("named value", "DB_PASSWORD=hunter", f"DB_PASSWORD={MASK}"),
    ("named value", "host=db password=correcthorse user=a", f"host=db password={MASK} user=a"),
    ("named value", "password: hunter2", f"password: {MASK}"),
    ("named value", '{"password": "hunter2", "user": "a"}', f'{{"password": "{MASK}", "user": "a"}}'),
    ("named value", '\\"apiKey\\": \\"' + fake(12) + '\\"', f'\\"apiKey\\": \\"{MASK}\\"'),
    ("named value", "token: " + fake(20), f"token: {MASK}"),
    ("named value", "DefaultEndpoints;AccountKey=" + fake(86) + "==;x", f"DefaultEndpoints;AccountKey={MASK};x"),
    ("named value", "client_secret => '" + fake(20) + "'", f"client_secret => '{MASK}'"),
    ("named value", "https://host/cb?access_token=" + fake(20) + "&x=1", f"https://host/cb?access_token={MASK}&x=1"),
]

LEFT = [
    "error: token: IDENTIFIER expected",
    "Unexpected token: punc (;)",
    "SyntaxError: Unexpected token '}' at line 3",
    'Argument "password" to "login" has incompatible type "str"; expected "bytes"',
    "def f(password: str = None, token: Optional[str] = None) -> None:",
    "password=None",
    "self.token = token",
    "token=self.token",
    "secret=settings.SECRET_KEY",
    "password: required",
    "password=${DB_PASSWORD}",
    "password=<your-password-1>",
    "--password <value1234>",
    "--token=$TOKEN",
    '"password": ["This field may not be blank."]',
    "KeyError: 'api_key'",
    "max_tokens: 4096",
    "num_token: 12345678",
    "PWD=/home/user/project1",
    "private_key: ./keys/id1.pem",
    "primary_key: id1234567",
    "lib/password:1234:56 F401",
    "auth::token::parse2_tests",
    "tests/test_token.py::test_abc1",
    "Name 'secret' is not defined  [name-defined]",
    "Bearer authentication failed",
    "basic understanding of-the-thing",
    "Private key found in file a.pem",
    "https://docs.astral.sh/ruff/rules/hardcoded-password-string",
    "git@github.com:org/repo.git",
    "http://localhost:8080/@scope/pkg2",
    "sk-learn-compat-with-long-name",
    "task-runner-0123456789abcdef01",
    "npm_config_registry_something_long_enough_here",
    "commit 3b23585aabbccddeeff00112233445566778899",
    "eyJust a word",
    "E741 Ambiguous variable name: `l`",
    "AKIA is a prefix",
    f"{END[:20]} of it",
]


@pytest.mark.parametrize(("shape", "text", "masked"), MASKED)
def test_a_shape_is_masked_and_what_stands_beside_it_stays(shape: str, text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(masked) == masked
    assert mask(f"before ({text}) after") == f"before ({masked}) after" or shape == "private key"


def test_every_shape_has_a_sample() -> None:
    assert {shape for shape, _, _ in MASKED} == {name for name, _, _, _ in SHAPES}


@pytest.mark.parametrize("text", LEFT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text) == text


def test_a_key_that_is_only_named_hides_nothing_else() -> None:
    assert mask(f"found {BEGIN} in a.pem") == f"found {MASK} in a.pem"
    assert mask(f"{BEGIN}\nnot a key at all\n") == f"{MASK}\nnot a key at all\n"


fragments = st.sampled_from(
    [
        *(text for _, text, _ in MASKED),
        *LEFT,
        *(
            "=",
            ":",
            " ",
            "\n",
            '"',
            "'",
            "\\",
            MASK,
            "-",
            "password",
            "token",
            "://",
            "@",
            BEGIN,
            END,
            "\\n",
            "==",
            "A" * 40,
        ),
    ]
)
mixtures = st.lists(fragments, max_size=8).map("".join)


@given(mixtures)
def test_masking_is_idempotent(text: str) -> None:
    once = mask(text)
    assert mask(once) == once


@given(st.one_of(mixtures, st.text(st.characters(exclude_categories=()))))
def test_what_is_not_suspicious_does_not_change(text: str) -> None:
    """The promise that lets a block of records be searched as one text, also piece by piece."""
    if not suspicious(text):
        assert all(mask(part) == part for part in (text, *text.split()))


@given(mixtures, st.sampled_from([text for name, text, _ in MASKED if name != "private key"]))
def test_a_secret_between_blanks_is_always_masked(around: str, secret: str) -> None:
    assert secret not in mask(f"{around}\n\n{secret}\n\n{around}").split("\n")


@pytest.mark.parametrize(
    "unit",
    [
        *("eyJ-", "sk-", "sk-a-", "ghp_", "xoxb-", "://:", "://a:b", "password=", "password ", "--token ", "token: '"),
        *("Bearer ", "Authorization: ", "sig=", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "\\n"),
        *("SG.", "SG.a", "AKIA", ":AA", "1", "A", "=", "-", "hooks.slack.com/services/", "secret-", "PRIVATE KEY"),
    ],
)
def test_the_time_is_linear(unit: str) -> None:
    """A quadratic pattern would need minutes for these; with newlines too, as keys are sought over lines."""
    for text in (unit * (400_000 // len(unit)), f"{unit}\n" * (200_000 // len(unit))):
        mask(f"password token {text} PRIVATE KEY @ eyJ SG. ://")


def test_a_text_without_secrets_does_not_load_re() -> None:
    script = "import sys; from ckdn.masking import mask; mask('a.py:1:1 F401 x'); sys.exit('re' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {script}"]
        ).returncode
        == 0
    )
