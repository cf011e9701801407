"""A chat as it begins: the prompt first, and all that answers while somebody types."""

import asyncio
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue import __version__, app
from segue.cli.chatting.asking import Prompt
from segue.cli.chatting.beginning import HISTORY, Beginning
from segue.cli.chatting.completing import offers_from
from segue.cli.chatting.here import is_full_terminal, prompt_here
from segue.cli.chatting.standing import Standing
from segue.config import Settings
from segue.storage.store import SqlStore

if TYPE_CHECKING:  # slow to load
    from segue.cli.chatting.room import Room

_ROOM = "segue.cli.chatting.room"
_DRAWING = 0.05  # seconds in which the prompt appears


async def converse(begin: Beginning, typed: str = "") -> int:
    """Talk until the person leaves, or until one question is answered; the exit code. Some may be `typed` already."""
    settings = app.settings()
    cwd = _working_directory()
    with app.open_store(chosen=settings) as store:
        standing = Standing()
        prompt = _prompt(settings, store, standing, typed) if begin.question is None else None
        first = None
        if prompt is not None:
            standing.redraw = prompt.redraw
            _open()
        if prompt is not None and begin.is_new and is_full_terminal():
            first = asyncio.create_task(prompt.ask())
            await asyncio.sleep(_DRAWING)
        loaded = await asyncio.to_thread(import_module, _ROOM)
        room: Room = loaded.Room(settings, store, cwd, begin, standing)
        try:
            await room.enter(prompt)
            if prompt is None:
                return await room.answer_once(begin.question or "")
            return await room.talk(prompt, first)
        finally:
            await room.leave()


def _open() -> None:
    """The first line, where somebody can read it."""
    if sys.stdout.isatty():
        click.echo(f"Segue {__version__} · /help says what can be typed, Ctrl-D leaves.")


def _prompt(settings: Settings, store: SqlStore, standing: Standing, typed: str) -> Prompt:
    return prompt_here(settings.home / HISTORY, offers_from(store), standing.line, typed)


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise click.ClickException("The working directory was deleted; go to another one.") from None
