"""What the page about Telegram says is so: its settings are taken, and its sentences are said."""

from pathlib import Path
from typing import Any

import yaml
from documents import ROOT, blocks

from segue import config
from segue.platforms.telegram import failing, settings
from segue.platforms.telegram.settings import read_settings

PAGE = ROOT / "docs" / "platforms" / "telegram.md"
TOKEN = "123456789:" + "AA" + "x" * 33


def shown() -> list[dict[str, Any]]:
    return [yaml.safe_load(block) for block in blocks(PAGE, "yaml")]


def test_the_settings_of_the_page_are_taken(tmp_path: Path) -> None:
    found = shown()
    assert len(found) == 4
    for number, block in enumerate(found):
        home = tmp_path / str(number)
        home.mkdir(mode=0o700)
        (home / "config.yaml").write_text(yaml.safe_dump(block))
        (home / "config.yaml").chmod(0o600)
        variables = {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_SECRET": "0123456789abcdef"}
        assert read_settings(config.load(home, variables).platforms["telegram"].own).token == TOKEN


def test_every_key_is_described() -> None:
    text = PAGE.read_text("utf-8")
    keys = {*settings._KEYS - {"webhook"}, *(f"webhook.{key}" for key in settings._WEBHOOK_KEYS)}
    assert [key for key in sorted(keys) if f"`{key}`" not in text] == []


def test_the_troubles_are_called_as_they_are() -> None:
    text = PAGE.read_text("utf-8")
    for sentence in (failing.WRONG_TOKEN, failing.ANOTHER):
        assert sentence[:32] in text
