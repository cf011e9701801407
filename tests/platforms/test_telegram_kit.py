"""Telegram does as every adapter does, whether it is asked or calls."""

import asyncio
from pathlib import Path

import pytest
from bot_api.client import World
from telegram_counterpart import CalledTelegramCounterpart, TelegramCounterpart

from segue.testing.kit import Case, cases_for


@pytest.mark.parametrize("case", cases_for(TelegramCounterpart.cannot), ids=str)
def test_telegram_that_is_asked_does_as_every_adapter_does(case: Case, bot_world: World, tmp_path: Path) -> None:
    asyncio.run(case.run(TelegramCounterpart(bot_world, tmp_path)))


@pytest.mark.parametrize("case", cases_for(CalledTelegramCounterpart.cannot), ids=str)
def test_telegram_that_calls_does_as_every_adapter_does(case: Case, bot_world: World, tmp_path: Path) -> None:
    asyncio.run(case.run(CalledTelegramCounterpart(bot_world, tmp_path)))
