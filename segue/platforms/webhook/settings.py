"""The settings of webhooks, as the adapter reads them: where it listens, and the hooks that there are.

Without a secret nobody could tell who calls, so a hook that has none keeps the whole door shut.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from segue.core.addresses import read_networks
from segue.core.errors import Invalid, InvalidSettings
from segue.core.routes import Route, parse_route

SHORTEST_SECRET = 16
WHOLE = "{{ . }}"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HOST = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]")
_HOOK_KEYS = frozenset(
    {"secret", "template", "deliver", "agent", "tools", "header", "prefix", "id_header", "timestamp_header", "signed"}
)
_KEYS = frozenset({"host", "port", "hosts", "trusted_proxies", "hooks"})
_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Hook:
    """One door: who may call, what the agent is told, and where its answer goes."""

    name: str
    secret: bytes
    template: str = WHOLE
    deliver: Route | None = None
    agent: str | None = None
    tools: tuple[str, ...] | None = None
    """Tools of the owner that its agent has, and no others; else it has those that reach nothing of the owner's."""
    header: str = "X-Hub-Signature-256"
    prefix: str = "sha256="
    """What stands before the hexadecimal digits."""
    id_header: str | None = None
    """What tells calls with equal bodies apart."""
    timestamp_header: str | None = None
    """Where the moment of the call stands, in Unix seconds."""
    signed: str = "{body}"
    """What the signature is made of: {body}, {timestamp} and {id} with anything between them."""

    def __repr__(self) -> str:
        return f"Hook({self.name!r})"  # never the secret


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    hooks: Mapping[str, Hook]
    host: str = "127.0.0.1"
    port: int = 8767
    hosts: tuple[str, ...] = ()
    """Names by which we are called, beside those of this machine to itself."""
    trusted_proxies: tuple[str, ...] = ()
    """Whose X-Forwarded-For says who calls."""


def read_settings(own: Mapping[str, object]) -> WebhookSettings:
    """The settings as they were written, or one sentence that says what is wrong."""
    _known(own, _KEYS, "platforms.webhook")
    hooks = own.get("hooks")
    if not isinstance(hooks, Mapping) or not hooks:
        raise InvalidSettings(
            "platforms.webhook has no hooks: write each with its secret under platforms.webhook.hooks."
        )
    said = {str(name): _hook(str(name), hook) for name, hook in hooks.items()}
    port, host = own.get("port", 8767), own.get("host", "127.0.0.1")
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= _LAST_PORT:
        raise InvalidSettings("platforms.webhook.port must be a number from 0 to 65535; 0 is any that is free.")
    if not isinstance(host, str) or not host.strip():
        raise InvalidSettings("platforms.webhook.host must be a name or an address of this machine.")
    hosts, proxies = _hosts(own.get("hosts", ())), read_networks(own.get("trusted_proxies", ()), "platforms.webhook")
    return WebhookSettings(said, host, port, hosts, proxies)


def _hook(name: str, said: object) -> Hook:
    where = f"platforms.webhook.hooks.{name}"
    if not _NAME.fullmatch(name):
        raise InvalidSettings(f"{name!r} cannot name a hook: use small letters, digits, - and _, at most 64.")
    if not isinstance(said, Mapping):
        raise InvalidSettings(f"{where} must be a mapping with a secret.")
    _known(said, _HOOK_KEYS, where)
    texts = {key: value for key, value in said.items() if value is not None and key != "tools"}
    if wrong := next((key for key, value in texts.items() if not isinstance(value, str)), None):
        raise InvalidSettings(f"{where}.{wrong} must be a text; put it in quotation marks.")
    secret = texts.pop("secret", "")
    if len(secret) < SHORTEST_SECRET:
        raise InvalidSettings(
            f"{where} has no secret of at least {SHORTEST_SECRET} characters, so nothing listens: make one with"
            " `openssl rand -hex 32`, and give it to whoever calls."
        )
    deliver = texts.pop("deliver", None)
    hook = Hook(name, secret.encode(), deliver=_route(deliver, where), tools=_tools(said.get("tools"), where), **texts)
    return _checked(hook, where)


def _checked(hook: Hook, where: str) -> Hook:
    for name in ("header", "id_header", "timestamp_header"):
        value = getattr(hook, name)
        if value is not None and not _HEADER.fullmatch(value):
            raise InvalidSettings(f"{where}.{name} must be the name of a header, such as X-Hub-Signature-256.")
    if hook.signed.count("{body}") != 1:
        raise InvalidSettings(f"{where}.signed must hold {{body}} once: what is not signed anybody can change.")
    if hook.timestamp_header and "{timestamp}" not in hook.signed:
        raise InvalidSettings(
            f"{where}.signed must hold {{timestamp}}, as in '{{timestamp}}.{{body}}': a moment that is not signed"
            " proves nothing."
        )
    if "{timestamp}" in hook.signed and not hook.timestamp_header:
        raise InvalidSettings(f"{where} needs timestamp_header, because {{timestamp}} is signed.")
    if "{id}" in hook.signed and not hook.id_header:
        raise InvalidSettings(f"{where} needs id_header, because {{id}} is signed.")
    return hook


def _route(text: str | None, where: str) -> Route | None:
    try:
        return None if text is None else parse_route(text)
    except Invalid as error:
        raise InvalidSettings(f"{where}.deliver: {error}") from None


def _tools(said: object, where: str) -> tuple[str, ...] | None:
    if said is None:
        return None
    if not isinstance(said, tuple | list) or not all(isinstance(one, str) and one.strip() for one in said):
        raise InvalidSettings(f"{where}.tools must be a list of names of tools, such as [session_search].")
    return tuple(said)


def _hosts(said: object) -> tuple[str, ...]:
    if not isinstance(said, tuple | list) or not all(isinstance(one, str) and _HOST.fullmatch(one) for one in said):
        raise InvalidSettings("platforms.webhook.hosts must be a list of names, such as [hooks.example.org].")
    return tuple(one.lower() for one in said)


def _known(said: Mapping[str, object], keys: frozenset[str], where: str) -> None:
    if unknown := sorted(map(str, set(said) - keys)):
        raise InvalidSettings(f"{where} has the unknown key {unknown[0]!r}: it knows {', '.join(sorted(keys))}.")
