"""The settings of Telegram, and what is said of wrong ones."""

from typing import Any

import pytest

from segue.core.errors import InvalidSettings
from segue.platforms.telegram.settings import OFFICIAL, TelegramSettings, WebhookDoor, read_settings

TOKEN = "123456789:" + "AA" + "x" * 33
SECRET = "0123456789abcdef"
HOOK = {"url": "https://bot.example.org/telegram", "secret": SECRET}


def test_what_is_usual() -> None:
    assert read_settings({"token": TOKEN}) == TelegramSettings(TOKEN, OFFICIAL, None, 50)


def test_a_webhook_knows_its_names_and_its_path() -> None:
    own = {"token": TOKEN, "mode": "webhook", "webhook": {**HOOK, "hosts": ("Other.Example",)}}
    door = read_settings(own).webhook
    assert door == WebhookDoor(HOOK["url"], SECRET, "127.0.0.1", 8768, ("other.example",))
    assert door.path == "/telegram"
    assert door.names == frozenset({"bot.example.org", "other.example"})
    assert WebhookDoor("https://bot.example.org", SECRET).path == "/"


def test_secrets_are_not_shown() -> None:
    settings = read_settings({"token": TOKEN, "mode": "webhook", "webhook": HOOK})
    assert TOKEN not in repr(settings)
    assert SECRET not in repr(settings)


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ({}, "platforms.telegram.token is no token"),
        ({"token": 5}, "platforms.telegram.token is no token"),
        ({"token": "abc"}, "@BotFather"),
        ({"token": f"{TOKEN}/x"}, "platforms.telegram.token is no token"),
        ({"token": TOKEN, "tokne": ""}, "unknown key 'tokne'"),
        ({"token": TOKEN, "api_url": "ftp://x"}, "platforms.telegram.api_url"),
        ({"token": TOKEN, "api_url": "http://x?y"}, "platforms.telegram.api_url"),
        ({"token": TOKEN, "api_url": "http://{token}/"}, "platforms.telegram.api_url"),
        ({"token": TOKEN, "api_url": "http://[x"}, "platforms.telegram.api_url"),
        ({"token": TOKEN, "mode": "push"}, "platforms.telegram.mode"),
        ({"token": TOKEN, "webhook": HOOK}, "only for mode: webhook"),
        ({"token": TOKEN, "poll_seconds": 0}, "platforms.telegram.poll_seconds"),
        ({"token": TOKEN, "poll_seconds": True}, "platforms.telegram.poll_seconds"),
        ({"token": TOKEN, "mode": "webhook"}, "platforms.telegram.webhook must be a mapping"),
        ({"token": TOKEN, "mode": "webhook", "webhook": {"url": HOOK["url"]}}, "openssl rand"),
        ({"token": TOKEN, "mode": "webhook", "webhook": {**HOOK, "secret": "short"}}, "16 to 256"),
        ({"token": TOKEN, "mode": "webhook", "webhook": {**HOOK, "secret": "with spaces in it!"}}, "16 to 256"),
        ({"token": TOKEN, "mode": "webhook", "webhook": {**HOOK, "url": "http://bot.example.org"}}, "webhook.url"),
        ({"token": TOKEN, "mode": "webhook", "webhook": {**HOOK, "port": 70000}}, "webhook.port"),
        ({"token": TOKEN, "mode": "webhook", "webhook": {**HOOK, "host": ""}}, "webhook.host"),
        ({"token": TOKEN, "mode": "webhook", "webhook": {**HOOK, "hosts": ["a b"]}}, "webhook.hosts"),
        ({"token": TOKEN, "mode": "webhook", "webhook": {**HOOK, "path": "/x"}}, "unknown key 'path'"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(own: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        read_settings(own)
    assert sentence in str(caught.value)
    assert TOKEN not in str(caught.value)
