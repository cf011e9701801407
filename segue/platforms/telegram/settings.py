"""The settings of Telegram, as the adapter reads them: whose bot it is, and how it hears what people say.

Whoever has the token is the bot, and whoever has the secret can pretend to be Telegram: neither is ever shown.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from segue.core.addresses import read_networks
from segue.core.errors import InvalidSettings

OFFICIAL = "https://api.telegram.org"
SHORTEST_SECRET = 16
LONGEST_POLL = 50
_KEYS = frozenset({"token", "api_url", "mode", "webhook", "poll_seconds"})
_WEBHOOK_KEYS = frozenset({"url", "secret", "host", "port", "hosts", "trusted_proxies"})
_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{20,100}")
_SECRET = re.compile(rf"[A-Za-z0-9_-]{{{SHORTEST_SECRET},256}}")
_HOST = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]")
_LAST_PORT = 65_535
_WHERE = "platforms.telegram"


@dataclass(frozen=True, slots=True)
class WebhookDoor:
    """Where Telegram calls us."""

    url: str
    """By which it calls."""
    secret: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 8768
    hosts: tuple[str, ...] = ()
    """Names by which we are called, beside that of the URL and those of this machine to itself."""
    trusted_proxies: tuple[str, ...] = ()
    """Whose X-Forwarded-For says who calls."""

    @property
    def path(self) -> str:
        return urlsplit(self.url).path or "/"

    @property
    def names(self) -> frozenset[str]:
        return frozenset({*self.hosts, _host_of(self.url)})


@dataclass(frozen=True, slots=True)
class TelegramSettings:
    token: str = field(repr=False)
    api_url: str = OFFICIAL
    webhook: WebhookDoor | None = None
    """Only when Telegram is to call us; otherwise it is asked."""
    poll_seconds: int = LONGEST_POLL
    """For which Telegram waits for something new before it answers."""


def read_settings(own: Mapping[str, object]) -> TelegramSettings:
    """The settings as they were written, or one sentence that says what is wrong."""
    _known(own, _KEYS, _WHERE)
    token, api_url, mode = own.get("token", ""), own.get("api_url", OFFICIAL), own.get("mode", "polling")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise InvalidSettings(
            f"{_WHERE}.token is no token of a bot: @BotFather on Telegram gives you one, digits, a colon and 35 more"
            " characters; put it in quotation marks or in an environment variable."
        )
    if not isinstance(api_url, str) or not _is_url(api_url, ("http", "https")) or urlsplit(api_url).query:
        raise InvalidSettings(f"{_WHERE}.api_url must be the URL of a Bot API server, such as {OFFICIAL}.")
    if mode not in ("polling", "webhook"):
        raise InvalidSettings(f"{_WHERE}.mode must be polling or webhook.")
    if mode == "polling" and "webhook" in own:
        raise InvalidSettings(f"{_WHERE}.webhook is only for mode: webhook; write that, or remove it.")
    webhook = _webhook(own.get("webhook"), has_own_server=api_url != OFFICIAL) if mode == "webhook" else None
    return TelegramSettings(token, api_url.rstrip("/"), webhook, _poll_seconds(own))


def _poll_seconds(own: Mapping[str, object]) -> int:
    seconds = own.get("poll_seconds", LONGEST_POLL)
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not 1 <= seconds <= LONGEST_POLL:
        raise InvalidSettings(f"{_WHERE}.poll_seconds must be a number from 1 to {LONGEST_POLL}.")
    return seconds


def _webhook(said: object, *, has_own_server: bool) -> WebhookDoor:
    where = f"{_WHERE}.webhook"
    if not isinstance(said, Mapping):
        raise InvalidSettings(f"{where} must be a mapping with a url and a secret.")
    _known(said, _WEBHOOK_KEYS, where)
    url, secret = said.get("url"), said.get("secret")
    if not isinstance(url, str) or not _is_url(url, ("https", "http") if has_own_server else ("https",)):
        raise InvalidSettings(f"{where}.url must be where Telegram reaches us, such as https://example.org/telegram.")
    if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
        raise InvalidSettings(
            f"{where} has no secret of {SHORTEST_SECRET} to 256 letters, digits, - and _, so nothing listens: make one"
            " with `openssl rand -hex 32`."
        )
    host, port = said.get("host", "127.0.0.1"), said.get("port", 8768)
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= _LAST_PORT:
        raise InvalidSettings(f"{where}.port must be a number from 0 to 65535; 0 is any that is free.")
    if not isinstance(host, str) or not host.strip():
        raise InvalidSettings(f"{where}.host must be a name or an address of this machine.")
    proxies = read_networks(said.get("trusted_proxies", ()), where)
    return WebhookDoor(url, secret, host, port, _hosts(said.get("hosts", ()), where), proxies)


def _hosts(said: object, where: str) -> tuple[str, ...]:
    if not isinstance(said, tuple | list) or not all(isinstance(one, str) and _HOST.fullmatch(one) for one in said):
        raise InvalidSettings(f"{where}.hosts must be a list of names, such as [bot.example.org].")
    return tuple(one.lower() for one in said)


def _is_url(text: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(text)
        is_whole = bool(_host_of(text)) and parts.port != 0
    except ValueError:
        return False
    is_plain = text.isascii() and text.isprintable() and not set(" {}#@") & set(text)
    return is_whole and is_plain and parts.scheme in schemes


def _host_of(url: str) -> str:
    """The name of a host as it stands in the header that says by which name we are called."""
    name = (urlsplit(url).hostname or "").lower()
    return f"[{name}]" if ":" in name else name


def _known(said: Mapping[str, object], keys: frozenset[str], where: str) -> None:
    if unknown := sorted(map(str, set(said) - keys)):
        raise InvalidSettings(f"{where} has the unknown key {unknown[0]!r}: it knows {', '.join(sorted(keys))}.")
