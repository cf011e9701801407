"""Telegram does as every adapter does, whether it is asked or calls."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from bot_api.client import World
from telegram_counterpart import CalledTelegramCounterpart, TelegramCounterpart

from segue.testing.kit import Case, cases_for


def marked(other: type[TelegramCounterpart]) -> list[Any]:
    """The cases of a counterpart; how much waits in the one that is marked depends on who asks."""
    cases = cases_for(other.cannot)
    return [pytest.param(case, marks=pytest.mark.torture) if case.name == "backlog" else case for case in cases]


@pytest.mark.parametrize("case", marked(TelegramCounterpart), ids=str)
def test_telegram_that_is_asked_does_as_every_adapter_does(case: Case, bot_world: World, tmp_path: Path) -> None:
    asyncio.run(case.run(TelegramCounterpart(bot_world, tmp_path)))


@pytest.mark.parametrize("case", marked(CalledTelegramCounterpart), ids=str)
def test_telegram_that_calls_does_as_every_adapter_does(case: Case, bot_world: World, tmp_path: Path) -> None:
    asyncio.run(case.run(CalledTelegramCounterpart(bot_world, tmp_path)))
