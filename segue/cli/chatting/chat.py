"""A chat as it begins: the prompt first, and all that answers while somebody types."""

import asyncio
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from segue import __version__, config
from segue.cli.chatting.asking import Prompt
from segue.cli.chatting.beginning import HISTORY, Beginning
from segue.cli.chatting.completing import Completing
from segue.cli.chatting.here import is_full_terminal, prompt_here, screen_here
from segue.cli.chatting.standing import Standing
from segue.cli.chatting.termination import Termination
from segue.cli.output import say

if TYPE_CHECKING:  # slow to load
    from segue.cli.chatting.piping import Pipe
    from segue.cli.chatting.room import Room
    from segue.cli.chatting.screen import Screen

_DRAWING = 0.05  # seconds in which the prompt appears


async def converse(begin: Beginning, typed: str = "", screen: "Screen | Pipe | None" = None) -> int:
    """Talk until the person leaves, or until one question is answered; the exit code. Some may be `typed` already."""
    with Termination() as termination:
        return await _converse(begin, typed, screen, termination)


async def _converse(begin: Beginning, typed: str, screen: "Screen | Pipe | None", termination: Termination) -> int:
    settings = config.from_environment()
    cwd = _working_directory()
    standing, completing = Standing(), Completing()
    prompt = first = None
    if begin.question is None:
        prompt = prompt_here(settings.home / HISTORY, completing.offers, standing.line, typed)
        standing.redraw = prompt.redraw
        _open()
    if prompt is not None and begin.is_new and is_full_terminal():
        first = asyncio.create_task(prompt.ask())
        await asyncio.sleep(_DRAWING)
    try:
        app, room = await asyncio.to_thread(_loaded)
        with app.open_store(chosen=settings) as store:
            completing.store = store
            here = room.Room(settings, store, cwd, begin, standing, screen or screen_here())
            termination.call_first(here.abandon)
            return await _stay(here, begin, prompt, first)
    finally:
        if first is not None and not first.done():
            first.cancel()
            await asyncio.wait({first})


def _loaded() -> Any:
    """All that answers, which takes longer to load than a prompt takes to appear."""
    return import_module("segue.app"), import_module("segue.cli.chatting.room")


async def _stay(room: "Room", begin: Beginning, prompt: Prompt | None, first: "asyncio.Task[str | None] | None") -> int:
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
        say(f"Segue {__version__} · /help says what can be typed, Ctrl-D leaves.")


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise click.ClickException("The working directory was deleted; go to another one.") from None
