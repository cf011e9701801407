"""`segue` and `segue chat`: a conversation in the terminal."""

import sys
from contextlib import nullcontext
from typing import Any

import click

_LATEST = "\0latest"


def chat_options(command: Any) -> Any:
    """The options of a chat, for `segue` itself and for `segue chat`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS: tuple[Any, ...] = (
    click.option(
        "-q", "--question", metavar="TEXT", help="Ask one question and print the answer; - reads it from stdin."
    ),
    click.option(
        *("-c", "--continue", "latest"),
        is_flag=False,
        flag_value=_LATEST,
        metavar="[NAME]",
        help="Go on with the last conversation, or with the newest part of NAME.",
    ),
    click.option("-r", "--resume", "wanted", metavar="ID|TITLE", help="Go on with this conversation."),
    click.option("--branch", is_flag=True, help="With -r: go on in a branch of it, and leave it as it is."),
    click.option("--exact", is_flag=True, help="With -r: branch from this very part, though it was compressed since."),
    click.option("-m", "--model", metavar="NAME", help="The model that answers."),
    click.option("-y", "--yes", is_flag=True, help="Let the agent's tools run without asking."),
)


@click.command()
@chat_options
def chat(**options: Any) -> None:
    """Talk to your agent. /help says what can be typed."""
    run(**options)


def run(
    question: str | None,
    latest: str | None,
    wanted: str | None,
    branch: bool,
    exact: bool,
    model: str | None,
    yes: bool,
) -> None:
    """Talk, and leave with a code that says whether a single question was answered."""
    from segue.cli.chatting.beginning import Beginning
    from segue.cli.chatting.here import keyboard_here

    if latest is not None and wanted is not None:
        raise click.UsageError("-c and -r both name a conversation; give one of them.")
    if any(name is not None and not name.strip() for name in (latest, wanted)):
        raise click.UsageError("The name of the conversation is empty; `segue sessions list` shows what is there.")
    if (branch or exact) and wanted is None:
        named = "--exact" if exact else "--branch"
        raise click.UsageError(f"{named} needs -r and the conversation to begin a branch of.")
    if question == "-":
        question = sys.stdin.read()
    begin = Beginning(
        name=wanted if latest in (None, _LATEST) else latest,
        is_latest=latest == _LATEST,
        question=question,
        model=model,
        is_allowed=yes,
        is_branch=branch or exact,
        is_exact=exact,
    )
    with keyboard_here() if question is None else nullcontext("") as typed:
        import asyncio  # slow to load, and most commands do without

        from segue.cli.chatting.chat import converse

        raise SystemExit(asyncio.run(converse(begin, typed)))
