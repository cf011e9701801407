"""The shapes that secrets have, each put together at run time from a prefix and drawn characters: none is in full."""

import random
import string
import uuid
from typing import NamedTuple

LETTERS = string.ascii_letters + string.digits
URL_SAFE = LETTERS + "_-"
BASE64 = LETTERS + "+/"
HEX = "0123456789abcdef"
CAPITALS = string.ascii_uppercase + string.digits


def drawn(seed: object, alphabet: str, length: int) -> str:
    """Characters drawn by lot, the first three of three classes where the alphabet has them."""
    dice = random.Random(str(seed))
    first = [next((char for char in alphabet if char in among), alphabet[0]) for among in ("Q", "x", "7")]
    return "".join(first + dice.choices(alphabet, k=length - 4) + [alphabet[5]])


class Shape(NamedTuple):
    """A secret with what must stand around it to be known as one."""

    name: str
    secret: str
    before: str = ""
    after: str = ""


def key(name: str, prefix: str, alphabet: str, length: int) -> Shape:
    return Shape(name, prefix + drawn(name + prefix, alphabet, length))


def keys(name: str, prefixes: str, alphabet: str, length: int) -> list[Shape]:
    return [key(f"{name} {prefix}", prefix, alphabet, length) for prefix in prefixes.split()]


def valued(name: str, before: str, alphabet: str, length: int, after: str = "") -> Shape:
    return Shape(name, drawn(name, alphabet, length), before, after)


def dotted(name: str, *parts: str) -> Shape:
    return Shape(name, ".".join(parts))


AN_UUID = str(uuid.UUID(int=random.Random("uuid").getrandbits(128), version=4))

SHAPES = [
    key("Anthropic", "sk-" + "ant-api03-", URL_SAFE, 95),
    *keys("OpenAI", "sk- sk-proj- sk-svcacct-", URL_SAFE, 48),
    *keys("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", LETTERS, 36),
    key("GitHub fine-grained", "github_" + "pat_", LETTERS + "_", 82),
    key("GitLab", "glpat-", URL_SAFE, 20),
    *keys("Slack", "xoxa- xoxb- xoxp- xoxr- xoxs- xapp-1-", LETTERS, 48),
    valued("Slack webhook", "https://hooks.slack.com/services/", LETTERS, 44),
    valued("Discord webhook", "https://discord.com/api/webhooks/123456789012345678/", URL_SAFE, 68),
    dotted("Discord bot", "M" + drawn("d1", LETTERS, 23), drawn("d2", LETTERS, 6), drawn("d3", URL_SAFE, 38)),
    Shape("Telegram bot", "123456789:" + "AA" + drawn("t", URL_SAFE, 33)),
    Shape("Telegram bot of later years", "12345678901:" + "AA" + drawn("l", URL_SAFE, 33)),
    Shape(
        "Telegram bot in a URL",
        "987654321:" + "AA" + drawn("u", URL_SAFE, 33),
        "https://api.telegram.org/bot",
        "/getMe",
    ),
    *keys("AWS id", "AKIA ASIA", CAPITALS, 16),
    valued("AWS secret", "aws_secret_access_key = ", BASE64, 40),
    valued("AWS secret in the environment", "AWS_SECRET_ACCESS_KEY=", BASE64, 40),
    key("Google", "AIza", URL_SAFE, 35),
    key("Google client", "GOCSPX-", URL_SAFE, 28),
    valued(
        "Azure storage", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=", BASE64, 86, ";EndpointSuffix=b"
    ),
    *keys("Stripe", "sk_live_ rk_live_ whsec_", LETTERS, 24),
    *keys("Twilio", "SK AC", HEX, 32),
    valued("Twilio auth token", "TWILIO_AUTH_TOKEN=", HEX, 32),
    dotted("SendGrid", "SG", drawn("s1", URL_SAFE, 22), drawn("s2", URL_SAFE, 43)),
    key("Mailgun", "key-", HEX, 32),
    key("npm", "npm_", LETTERS, 36),
    key("PyPI", "pypi-", URL_SAFE, 150),
    key("Docker", "dckr_" + "pat_", URL_SAFE, 27),
    key("Hugging Face", "hf_", string.ascii_letters, 34),
    key("Replicate", "r8_", LETTERS, 37),
    key("Groq", "gsk_", LETTERS, 52),
    key("DigitalOcean", "dop_v1_", HEX, 64),
    *keys("Shopify", "shpat_ shpss_", HEX, 32),
    key("Square", "sq0atp-", URL_SAFE, 22),
    key("Square access", "EAAA", URL_SAFE, 60),
    Shape("Heroku", AN_UUID, "HEROKU_API_KEY="),
    Shape("Cloudflare origin", "v1.0-" + drawn("c1", HEX, 24) + "-" + drawn("c2", HEX, 146)),
    valued("Cloudflare token", "CLOUDFLARE_API_TOKEN=", URL_SAFE, 40),
    key("Databricks", "dapi", HEX, 32),
    key("Vault", "hvs.", URL_SAFE, 90),
    key("Linear", "lin_" + "api_", LETTERS, 40),
    *keys("Notion", "secret_ ntn_", LETTERS, 43),
    key("Figma", "figd_", URL_SAFE, 40),
    key("Atlassian", "ATATT3x", URL_SAFE, 180),
    dotted("JWT", "eyJ" + drawn("j1", LETTERS, 33), "eyJ" + drawn("j2", URL_SAFE, 80), drawn("j3", URL_SAFE, 43)),
    valued("Bearer header", "Authorization: Bearer ", URL_SAFE, 32),
    valued("Basic header", "Authorization: Basic ", BASE64, 24),
    valued("Bearer alone", "Bearer ", LETTERS, 32),
    valued("Postgres", "postgres://app:", LETTERS, 12, "@db.internal:5432/main"),
    valued("MongoDB", "mongodb+srv://app:", LETTERS, 12, "@cluster.example.net/main"),
    valued("Redis", "redis://:", LETTERS, 12, "@cache:6379/0"),
    valued("URL with a password", "https://alice:", LETTERS, 12, "@example.org/path"),
    *(
        valued(f"URL {name}", f"https://example.org/a?b=1&{name}=", LETTERS, 24, "&c=2")
        for name in ("token", "key", "secret")
    ),
    valued("URL signature", "https://example.org/a?X-Amz-Signature=", HEX, 64),
    valued("password in the environment", "PASSWORD=", LETTERS, 9),
    valued("password in YAML", "db_password: ", LETTERS, 9),
    valued("API key in YAML", "api_key: ", LETTERS, 16),
    valued("client secret", "client_secret=", LETTERS, 16),
    valued("ADO.NET", "Server=db;User Id=sa;Password=", LETTERS, 10, ";Database=main"),
    valued("flag", "login --password ", LETTERS, 10),
    valued("flag with equals", "login --api-key=", LETTERS, 20),
    valued("XML", "<password>", LETTERS, 10, "</password>"),
    valued("Passwort", "Passwort: ", LETTERS, 10),
    valued("пароль", "пароль: ", LETTERS, 10),
    valued("密码", "密码：", LETTERS, 10),
    valued("disorder in an assignment", "DEPLOY_CFG=", LETTERS, 32),
    valued("disorder after a word", "the key is ", LETTERS, 32),
]
