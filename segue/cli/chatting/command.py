"""`segue` and `segue chat`: a conversation in the terminal."""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # slow to load
    from segue.cli.chatting.beginning import Beginning
    from segue.cli.chatting.json_answer import JsonAnswer

_LATEST = "\0latest"
_PICK = "\0pick"
_NAMED = ("-c", "--continue", "-r", "--resume")
_VALUED = ("-q", "-p", "--question", "-m", "--model")
_LETTERS = "qpcrmyhV"
_AFTER_FLAGS = re.compile("-y+[cr]")


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
        metavar="[ID|TITLE]",
        help="Go on with the last conversation, or with this one. A title needs no quotes.",
    ),
    click.option(
        *("-r", "--resume", "wanted"),
        is_flag=False,
        flag_value=_PICK,
        metavar="[ID|TITLE]",
        help="Go on with this conversation, or with one that you choose from a list.",
    ),
    click.option("--branch", is_flag=True, help="With -c or -r: go on in a branch of it, and leave it as it is."),
    click.option(
        "--exact", is_flag=True, help="With -c or -r: branch from this very part, though it was compressed since."
    ),
    click.option("-m", "--model", metavar="NAME", help="The model that answers."),
    click.option("-y", "--yes", is_flag=True, help="Let the agent's tools run without asking."),
)


def join_titles(arguments: Sequence[str]) -> list[str]:
    """The options of a chat with the words behind -c and -r made one; from the first command on nothing changes."""
    joined, rest = list[str](), list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        option = rest.pop(0)
        if _AFTER_FLAGS.fullmatch(option):
            joined.append(option[:-1])
            option = f"-{option[-1]}"
        if option in _VALUED:
            joined += [option, *rest[:1]]
            del rest[:1]
        elif option in _NAMED or option.startswith(("-c", "-r", "--continue=", "--resume=")):
            words = list(takewhile(_is_word, rest))
            del rest[: len(words)]
            joined += _named(option, words)
        else:
            joined.append(option)
    return joined + rest


def _named(option: str, words: list[str]) -> list[str]:
    """An option and its value. What begins with a dash is a value only when it is written as part of the option."""
    if option not in _NAMED:
        return [" ".join([option, *words])]
    if not words or not words[0].startswith("-"):
        return [option, *([" ".join(words)] if words else [])]
    return [f"{'--continue' if option in _NAMED[:2] else '--resume'}={' '.join(words)}"]


def _is_word(argument: str) -> bool:
    """Whether it is part of a title or an id, rather than an option."""
    return argument[:1] != "-" or argument[1:2] not in {"-", *_LETTERS}


class ChatCommand(click.Command):
    """A command with the options of a chat."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, join_titles(args))


@click.command(cls=ChatCommand)
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
    if (branch or exact) and wanted is None and latest is None:
        named = "--exact" if exact else "--branch"
        raise click.UsageError(f"{named} needs -c or -r and the conversation to begin a branch of.")
    if as_json and question is None:
        raise click.UsageError("--json needs -q and a question; a chat has no JSON.")
    if wanted == _PICK:
        if as_json:
            raise click.UsageError("--json takes no list to choose from; name the conversation, as in -r ID.")
        from segue.cli.browsing import pick  # only this needs it

        wanted, _ = pick("-r opens a list to choose from, which needs a terminal; name the conversation, as in -r ID.")
        if wanted is None:
            return
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


def resume(session_id: str) -> None:
    """Go on with a conversation in a chat."""
    run(None, as_json=False, latest=None, wanted=session_id, branch=False, exact=False, model=None, yes=False)


def _ask(begin: "Beginning", screen: "JsonAnswer | None") -> int:
    """Ask one question. What stdin holds is read first, while Ctrl-C still ends the program at once."""
    from segue.cli.chatting.stdin import question_with_context

    begin = begin._replace(question=question_with_context(begin.question or ""))
    import asyncio

    from segue.cli.chatting.chat import converse

    return asyncio.run(converse(begin, screen=screen))
