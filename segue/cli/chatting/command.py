"""`segue` and `segue chat`: a conversation in the terminal."""

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # slow to load
    from segue.cli.chatting.beginning import Beginning
    from segue.cli.chatting.json_answer import JsonAnswer

_LATEST = "\0latest"


def chat_options(command: Any) -> Any:
    """The options of a chat, for `segue` itself and for `segue chat`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS: tuple[Any, ...] = (
    click.option(
        *("-q", "-p", "--question"),
        metavar="TEXT",
        help="Ask one question and print the answer. What is piped in is its context; - is all of it.",
    ),
    click.option("--json", "as_json", is_flag=True, help="With -q: print one JSON object, errors included."),
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
    as_json: bool,
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
    if as_json and question is None:
        raise click.UsageError("--json needs -q and a question; a chat has no JSON.")
    begin = Beginning(
        name=wanted if latest in (None, _LATEST) else latest,
        is_latest=latest == _LATEST,
        question=question,
        model=model,
        is_allowed=yes,
        is_branch=branch or exact,
        is_exact=exact,
        as_json=as_json,
    )
    if as_json:
        from segue.cli.chatting.json_answer import print_answer

        raise SystemExit(print_answer(lambda screen: _ask(begin, screen)))
    if question is not None:
        raise SystemExit(_ask(begin, None))
    with keyboard_here() as typed:
        import asyncio  # slow to load, and most commands do without

        from segue.cli.chatting.chat import converse

        raise SystemExit(asyncio.run(converse(begin, typed)))


def _ask(begin: "Beginning", screen: "JsonAnswer | None") -> int:
    """Ask one question. What stdin holds is read first, while Ctrl-C still ends the program at once."""
    from segue.cli.chatting.stdin import question_with_context

    begin = begin._replace(question=question_with_context(begin.question or ""))
    import asyncio

    from segue.cli.chatting.chat import converse

    return asyncio.run(converse(begin, screen=screen))
