"""Secrets do not survive redaction, and everything else does.

No key is written out here: each is put together at run time from a prefix and drawn characters.
"""

import json
import random
import string
import uuid
from collections.abc import Callable

import pytest
from examples import examples
from growth import costs, seconds
from hypothesis import example, given
from hypothesis import strategies as st
from secret_shapes import BASE64, HEX, LETTERS, SHAPES, Shape, drawn

from segue.core import redaction
from segue.core.redaction import Secrets, count_in_values, count_secrets, find_secrets, redact, redact_values


def in_user_text(shape: Shape) -> str:
    return f"Hello, please take {shape.before}{shape.secret}{shape.after} and deploy, thanks"


def in_json(shape: Shape) -> str:
    return json.dumps(
        {"role": "user", "content": f"Hello {shape.before}{shape.secret}{shape.after}", "tail": "thanks"},
        ensure_ascii=False,
    )


def in_json_in_json(shape: Shape) -> str:
    return json.dumps({"arguments": in_json(shape)}, ensure_ascii=False)


def in_a_shell_line(shape: Shape) -> str:
    return f"Hello=1 run --with '{shape.before}{shape.secret}{shape.after}' && echo thanks"


def in_many_lines(shape: Shape) -> str:
    return f"Hello\n\n  {shape.before}{shape.secret}{shape.after}\nthe next line\r\nthanks\n"


def in_lines_made_one(shape: Shape) -> str:
    return json.dumps(in_many_lines(shape), ensure_ascii=False)


SETTINGS = [in_user_text, in_json, in_json_in_json, in_a_shell_line, in_many_lines, in_lines_made_one]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize("setting", SETTINGS)
def test_no_shape_of_secret_survives_and_the_words_around_it_do(setting: Callable[[Shape], str], shape: Shape) -> None:
    text = setting(shape)
    clean = redact(text)
    head, _, tail = text.partition(shape.secret)
    assert clean.startswith(head[: len(head) - len(shape.before)])
    assert clean.endswith(tail[len(shape.after) :])
    kept = clean[len(head) - len(shape.before) : len(clean) - len(tail) + len(shape.after)]
    assert not any(shape.secret[at : at + 6] in kept for at in range(4, len(shape.secret) - 5))
    assert count_secrets(text) == 1
    assert count_secrets(clean) == 0
    assert redact(clean) == clean


def block(label: str, *, lines: int = 12, newline: str = "\n") -> tuple[str, list[str]]:
    body = [drawn(f"{label}{line}", BASE64, 64) for line in range(lines)] + [drawn(label, BASE64, 22) + "=="]
    edge = "-" * 5
    return newline.join([f"{edge}BEGIN {label}{edge}", *body, f"{edge}END {label}{edge}"]), body


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\\\\n"])
@pytest.mark.parametrize(
    "label",
    [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ],
)
def test_a_private_key_goes_whole_or_cut_at_either_end(label: str, newline: str) -> None:
    whole, body = block(label, newline=newline)
    without_end = newline.join(whole.split(newline)[:-3])
    for text in (whole, without_end):
        clean = redact(f"before it\n{text}\nafter it")
        assert clean.startswith("before it\n[redacted: ")
        assert clean.endswith("]\nafter it")
        assert clean.count("\n") == 2
    if newline != "\\\\n":
        without_begin = newline.join(whole.split(newline)[3:])
        assert not any(line in redact(f"before it\n{without_begin}\nafter it") for line in body)


def test_a_public_key_or_certificate_is_no_secret() -> None:
    for label in ("PUBLIC KEY", "CERTIFICATE", "PGP PUBLIC KEY BLOCK"):
        text = f"before\n{block(label)[0]}\nafter"
        assert redact(text) == text


def test_of_a_service_account_only_the_key_goes() -> None:
    account = {"type": "service_account", "private_key": block("PRIVATE KEY")[0] + "\n", "client_email": "a@b.example"}
    clean = json.loads(redact(json.dumps(account)))
    assert clean == account | {"private_key": "[redacted: service account key]"}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("PASSWORD={}", "PASSWORD=[redacted: password]"),
        ('"password": "{} and more"', '"password": "[redacted: password]"'),
        ("'password' => '{}'", "'password' => '[redacted: password]'"),
        ('config["password"] = "{}"', 'config["password"] = "[redacted: password]"'),
        ('password: str = "{}"', 'password: str = "[redacted: password]"'),
        ('PASSWORD="{}\\"more"', 'PASSWORD="[redacted: password]"'),
        ("(password: {})", "(password: [redacted: password])"),
        ("Use password={}, then go.", "Use password=[redacted: password], then go."),
        ("a=1&password={}&b=2", "a=1&password=[redacted: URL parameter]&b=2"),
        ("**Password:** {}", "**Password:** [redacted: password]"),
        ("password: swordfish\nuser: alice", "password: [redacted: password]\nuser: alice"),
        ("postgres://app:{}@db/x", "postgres://app:[redacted: connection password]@db/x"),
        ("postgres://app:{}@9@db/x", "postgres://app:[redacted: connection password]@db/x"),
        ("ftp://bob:{}@host", "ftp://bob:[redacted: URL password]@host"),
        ("api_key = '{}'", "api_key = '[redacted: secret]'"),
        ("password=[redacted: password]{}", "password=[redacted: password]"),
        ("[redacted: GitHub token]: {}", "[redacted: GitHub token]: {}"),
    ],
)
def test_a_value_goes_and_its_frame_stays(text: str, clean: str) -> None:
    value = "hun" + "ter2"
    assert redact(text.replace("{}", value)) == clean.replace("{}", value)


PLACEHOLDERS = (
    *(
        "",
        "***",
        "xxxx",
        "...",
        "<password>",
        "<your key here>",
        "${SECRET}",
        "$SECRET",
        "$(pass show x)",
        "{{ secret }}",
    ),
    *("changeme", "change-me", "CHANGE_ME", "your-api-key", "YOUR_TOKEN", "example", "null", "None", "true", "false"),
    *("os.environ", "process.env.TOKEN", "[REDACTED]", "[redacted: password]", "%PASSWORD%", "todo", "placeholder"),
)


@pytest.mark.parametrize("value", PLACEHOLDERS)
@pytest.mark.parametrize("frame", ["PASSWORD={}", '"password": "{}"', "api_key: {}", "token = '{}'", "--token {}"])
def test_a_placeholder_is_no_secret(frame: str, value: str) -> None:
    text = frame.replace("{}", value)
    assert redact(text) == text


CODE = """\
def login(user: str, password: str, token: str | None = None) -> Session:
    token = get_token(user)
    password = request.form["password"]
    api_key = os.environ["API_KEY"]
    api_key=os.getenv("API_KEY", default)
    return connect(user=user, password=password, token=token)
    self.token = token
    client = Client(api_key=settings.api_key, secret=secret)
    if token == "+": tokens.append(token)
    max_tokens = 4096
    tokens: 15234, token_count=12, total_token: 90210
    token = self.tokens[0]
    next_token: Token = lexer.next()
const password: string = props.password;
interface Login { password: string; token?: string }
let token = await fetchToken();
password = user_input
match token::Kind { token => 1 }
export PWD=/home/alice/project
<label for="password">Password:</label><input type="password" name="password">
PASSWORD_FILE=/run/secrets/db
- uses: actions/checkout@v4
    token: ${{ secrets.GITHUB_TOKEN }}
.sk-fading-circle-with-a-long-name { color: #a1b2c3 }
from sklearn import tree  # task-management-for-everybody-2025
class VeryLongNameOfAFactory2Bean(BaseFactoryOfBeans): pass
DATABASE_URL=postgres://localhost:5432/main
handler = HttpRequestHandlerFactory2ForTests
"integrity": "sha512-{b64}=="
![logo](data:image/png;base64,{b64})
<img src="data:image/png;base64,{b64}">
"""
PROSE = """\
The secret: nobody knows what the key to the city is.
A token: the smallest unit that a model reads.
Password: see the vault, not this page.
I forgot my password again, and the reset token is late.
Basic understanding of bearer authentication is required.
Das Passwort steht im Tresor, der Schlüssel liegt unter der Matte.
Le mot de passe est dans le coffre, la clé est sous le tapis.
La contraseña: está en la caja fuerte de siempre.
Пароль хранится в сейфе, а ключ под ковриком.
密码保存在保险箱里，钥匙在门口。
パスワードは金庫にあります。
secret santa: everybody brings a present
The API key is rotated every 90 days by the operations team.
Use --password to be asked for it, or --token TOKEN to give one.
"""
WORDS = ("session", "lane", "turn", "café", "Straße", "мир", "会話", "夜", "the", "key", "token", "secret", "password")


def clean_lines(seed: int, count: int) -> list[str]:
    dice = random.Random(seed)

    def some(alphabet: str, length: int) -> str:
        return "".join(dice.choices(alphabet, k=length))

    def words(count: int) -> str:
        return " ".join(dice.choices(WORDS, k=count))

    def day() -> str:
        return f"20{dice.randint(10, 39)}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"

    def id_of_ours() -> str:
        return f"{day().replace('-', '')}_{dice.randint(0, 235959):06}_{some(HEX, 8)}"

    kinds: list[Callable[[], str]] = [
        lambda: words(dice.randint(3, 14)).capitalize() + ".",
        lambda: dice.choice(PROSE.splitlines()),
        lambda: dice.choice(CODE.splitlines()).replace("{b64}", some(BASE64, 86)),
        lambda: (
            f"{day()}T10:{dice.randint(10, 59)}:07.123Z INFO worker={dice.randint(1, 9)} request_id={some(HEX, 32)}"
        ),
        lambda: f"commit {some(HEX, 40)} ({words(1)})",
        lambda: f"sha256: {some(HEX, 64)}  /usr/lib/python3.{dice.randint(8, 14)}/site-packages/Module7.py",
        lambda: f"session {id_of_ours()} continues {id_of_ours()}",
        lambda: f"session_id={id_of_ours()}, trace: {uuid.UUID(int=dice.getrandbits(128), version=4)}",
        lambda: f"the token count of {uuid.UUID(int=dice.getrandbits(128))} is {dice.randint(1, 99999)}",
        lambda: f"path=/Users/Alice/Documents/Project{dice.randint(1, 99)}/src/main/java/org/Example/HelloWorld.java",
        lambda: f"C:\\Users\\Bob\\AppData\\Local\\Temp\\{some(HEX, 8)}.tmp",
        lambda: f"https://example.org/{words(1)}/{dice.randint(1, 999)}?page=2&sort=name&q={some(HEX, 6)}#top",
        lambda: f"http://localhost:{dice.randint(1024, 65535)}/api/v1/users/alice@example.org",
        lambda: f"| {words(2)} | {dice.random():.6f} | {day()} | `{some(HEX, 7)}` |",
        lambda: (
            f"alice.{some(string.ascii_lowercase, 6)}@example.org wrote to bob+{dice.randint(1, 99)}@mail.example.net"
        ),
        lambda: " ".join(str(dice.randint(-(10**9), 10**12)) for _ in range(6)),
        lambda: f'{{"id": "msg_{some(LETTERS, 24)}", "tokens": {dice.randint(1, 9999)}, "model": "gpt-4o-2024-08-06"}}',
        lambda: f"![image](data:image/png;base64,{some(BASE64, 120)})",
        lambda: some(BASE64, 76),
        lambda: (
            f"tel. +49 30 {dice.randint(10**6, 10**7)}, IBAN DE{some(string.digits, 20)}, 10.0.{dice.randint(0, 9)}.1"
        ),
    ]
    return [dice.choice(kinds)() for _ in range(count)]


def test_five_thousand_clean_lines_stay_as_they_are() -> None:
    lines = clean_lines(seed=20250305, count=5000)
    assert [(line, redact(line)) for line in lines if count_secrets(line)] == []
    text = "\n".join(lines)
    assert redact(text) == text


@pytest.mark.parametrize("line", [*CODE.splitlines(), *PROSE.splitlines()])
def test_ordinary_code_and_prose_stay_as_they_are(line: str) -> None:
    assert redact(line) == line


FRAGMENTS = (
    *(
        "password",
        "token",
        "api_key",
        "secret",
        "PWD",
        "key",
        "=",
        ": ",
        " = ",
        ":=",
        "=>",
        '"',
        "'",
        "`",
        "\\",
        '\\"',
        "\n",
    ),
    *(
        ",",
        ";",
        "&",
        "?",
        "@",
        "://",
        "user:",
        "postgres",
        "Bearer ",
        "Authorization: ",
        "--",
        "<",
        ">",
        "</",
        "[",
        "]",
        "{",
        "(",
    ),
    *(
        "[redacted: password]",
        "[redacted: ",
        "password]",
        "hunter2",
        "swordfish",
        " ",
        "  ",
        "***",
        "$X",
        "\ufdd0",
        "é",
        "語",
    ),
    *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "eyJ", "sk-", "SG.", "AKIA", "Private-Lines: 3"),
    *(shape.secret for shape in SHAPES[::3]),
    *(shape.before + shape.secret + shape.after for shape in SHAPES[::4]),
)
nasty = st.lists(st.sampled_from(FRAGMENTS) | st.text(st.characters(), max_size=12), max_size=14).map("".join)


@given(nasty)
@examples(60, in_torture=1500)
@example("password=[redacted: password]x")
@example("password='[redacted: secret] x'")
@example("password=a,password=b;password=c")
def test_redacting_twice_is_redacting_once(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@given(nasty)
@examples(60, in_torture=1500)
def test_secrets_are_found_in_order_and_apart_and_none_is_left(text: str) -> None:
    secrets = find_secrets(text)
    ends = [0, *(secret.end for secret in secrets)]
    assert all(end <= secret.start < secret.end for end, secret in zip(ends, secrets, strict=False))
    assert count_secrets(text) == len(secrets)
    assert count_secrets(redact(text)) == 0
    assert (redact(text) == text) is (not secrets)


@given(st.text(st.characters(exclude_characters=":=-._?&<>：＝", exclude_categories=["Nd"]), max_size=200))
@examples(50, in_torture=1000)
def test_text_without_any_candidate_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


PROSE = "The quick brown fox forgot the token. "
QUARTER_OF_A_MEGABYTE = 250_000
TIMES_AS_LONG = 30
"""A megabyte of prose takes a fifteenth of a second on a usual machine, and no other may take more than two."""
FEW_ROUNDS = 5
HOSTILE = (
    *(
        "a",
        "1",
        "-",
        "\\",
        '"',
        "\n",
        " ",
        "=",
        "x=",
        "a-",
        "sk-",
        "eyJ",
        "eyJaaaaaaaaaa.",
        "SG.aaaaaaaaaaaaaaaaaaaa",
        "--a-",
    ),
    *(
        "password=",
        'password="',
        "password='\\",
        "password ",
        "token ",
        "key a b c ",
        "token=a,",
        "password=a;b b",
        "&a_a_",
    ),
    *(
        "://a:",
        "postgres://a:a",
        "Bearer ",
        "authorization:",
        "Private-Lines: 1\n",
        "[redacted: ",
        "[redacted: secret]",
    ),
    *("-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----", '"private_key": "-----BEGIN', "A" * 64 + "\n"),
    *(
        "M" + "a" * 23 + ".",
        "123456789:",
        "<password>",
        PROSE,
        "Qx7Qx7Qx7aB3dE5gH7jK=",
    ),
)


def of_length(length: int, unit: str) -> str:
    return unit * (length // len(unit))


@pytest.fixture(scope="module")
def usual() -> float:
    """How long prose takes here."""
    text = of_length(QUARTER_OF_A_MEGABYTE, PROSE)
    return min(seconds(find_secrets, text) for _ in range(5))


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_megabyte_is_read_in_two_seconds(unit: str, usual: float) -> None:
    """Said of the machine at hand: as long as four quarters, each of which takes so many times as long as prose."""
    spent = costs(find_secrets, lambda length: of_length(length, unit), QUARTER_OF_A_MEGABYTE)
    assert spent.is_linear
    assert spent.large < usual * TIMES_AS_LONG


@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("start", ["", "password=", "-----BEGIN PRIVATE KEY-----", "token: '"])
def test_hostile_text_is_redacted_in_few_rounds(start: str, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[str] = []

    def counted(text: str) -> list[redaction.Secret]:
        rounds.append(text)
        return find_secrets(text)

    monkeypatch.setattr(redaction, "find_secrets", counted)
    redact(start + of_length(10_000, unit))
    assert 0 < len(rounds) <= FEW_ROUNDS


# What makes it fast


@given(nasty)
@examples(100, in_torture=2500)
@example("ADOBE paßword=hunter2 toKen=abc123 pıN ſecret=hunter2")
def test_trying_only_the_rules_that_a_text_hints_at_finds_the_same(text: str) -> None:
    every_rule = set(range(len(redaction._RULES)))
    quick = find_secrets(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "_worth_trying", lambda _text: every_rule)
        patch.setattr(redaction, "_SHORTEST_KEY", 0)
        assert find_secrets(text) == quick


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_rule_that_finds_a_shape_is_among_those_its_text_hints_at(setting: Callable[[Shape], str]) -> None:
    for shape in SHAPES:
        text = setting(shape)
        matching = {
            rank for rank, rule in enumerate(redaction._RULES) if any(map(rule.judge, rule.pattern.finditer(text)))
        }
        assert matching
        assert matching <= redaction._worth_trying(text), shape.name


@pytest.mark.parametrize(
    ("value", "clean", "count"),
    [
        ({"password": "swordfish", "note": "hello"}, {"password": "[redacted: named]", "note": "hello"}, 1),
        ({"token": ["abc123xyz", 5, None]}, {"token": ["[redacted: named]", 5, None]}, 1),
        (
            ["PASSWORD=hunter2 and PASSWORD=hunter3"],
            ["PASSWORD=[redacted: password] and PASSWORD=[redacted: password]"],
            2,
        ),
        ({"count": 5, "is": True, "none": None, "text": ""}, {"count": 5, "is": True, "none": None, "text": ""}, 0),
    ],
)
def test_values_are_counted_as_they_are_redacted(value: object, clean: object, count: int) -> None:
    assert redact_values(value) == clean
    assert count_in_values(value) == count
    for redacts in (True, False):
        secrets = Secrets(redacts=redacts)
        assert secrets(value) == (clean if redacts else value)
        assert secrets.count == count


@given(st.recursive(nasty | st.none(), lambda inner: st.lists(inner) | st.dictionaries(nasty, inner), max_leaves=5))
@examples(50, in_torture=1000)
def test_no_secret_counted_means_that_nothing_is_replaced(value: object) -> None:
    assert (count_in_values(value) == 0) == (redact_values(value) == value)


def test_a_value_nested_as_deeply_as_json_can_be_is_redacted_too() -> None:
    deep: object = "PASSWORD=hunter2"
    for _ in range(900):
        deep = [deep]
    secrets = Secrets(redacts=True)
    assert "hunter2" not in json.dumps(secrets(json.loads(json.dumps(deep))))
    assert secrets.count == 1
