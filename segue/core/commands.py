"""Slash commands as people type them: which there are, and which of them a message is.

A command is the whole message. Those that take text take the rest as it is; those that take a word take one; anything
else, such as `/etc/hosts`, `/stop the music` or `/think about it`, is something that a person says.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from enum import StrEnum
from typing import NamedTuple


class Takes(StrEnum):
    """What may stand behind the name of a command."""

    NOTHING = "none"
    WORD = "optional"
    TEXT = "rest"


class Where(StrEnum):
    EVERYWHERE = "everywhere"
    TERMINAL = "terminal"
    PLATFORMS = "platforms"

    def is_here(self, *, in_terminal: bool) -> bool:
        return self is Where.EVERYWHERE or (self is Where.TERMINAL) == in_terminal


class Spec(NamedTuple):
    """A command as `/help` shows it."""

    name: str
    group: str
    takes: Takes
    usage: str
    """What stands behind the name, as people are told."""
    help: str
    more: str
    example: str
    aliases: tuple[str, ...] = ()
    where: Where = Where.EVERYWHERE

    @property
    def shown(self) -> str:
        return f"/{self.name} {self.usage}".rstrip()


_CONVERSATIONS = "Conversations"
_GOING_BACK = "Going back"
_ANSWERING = _CHAT = "This conversation"

COMMANDS = (
    Spec(
        *("new", _CONVERSATIONS, Takes.TEXT, "[TEXT]", "begin a new conversation"),
        "The old conversation ends and is kept; the answer says how to come back to it. The thinking and verbose"
        " levels go along, the model does not. TEXT is the first thing said in the new one; when its first word is the"
        " name of a model, that one answers.",
        "/new What is left to do for the launch?",
        aliases=("reset",),
    ),
    Spec(
        *("title", _CONVERSATIONS, Takes.TEXT, "[TITLE]", "show or set the title"),
        "Alone it shows the title, where it comes from, and the id. A title has at most 100 characters and belongs to"
        " one conversation. Before the first message it is kept until there is something to name.",
        "/title A week in Lisbon",
    ),
    Spec(
        *("resume", _CONVERSATIONS, Takes.TEXT, "[ID|TITLE|NUMBER]", "go on with another conversation"),
        "Takes an id or the beginning of one, a title, or a number of the last list. Alone it shows the list. Of a"
        " conversation in several parts it goes on with the newest.",
        "/resume A week in Lisbon",
    ),
    Spec(
        *("sessions", _CONVERSATIONS, Takes.WORD, "[HOW MANY]", "list recent conversations"),
        "The numbers are for /resume.",
        "/sessions 20",
    ),
    Spec(
        *("branch", _CONVERSATIONS, Takes.TEXT, "[TITLE]", "try something else from here on"),
        "Goes on in a new conversation that has everything said so far; the one it comes from stays as it is. Without"
        " a TITLE it gets the next number of the old one.",
        "/branch Lisbon by train",
    ),
    Spec(
        *("compress", _CONVERSATIONS, Takes.TEXT, "[WHAT MATTERS]", "go on from a summary"),
        "What was said first is summarised, and the last turns stay as they are; every word is kept and found by"
        " /search. This happens by itself when a conversation becomes too long for its model.",
        "/compress the choice of the hotel",
        ("compact",),
    ),
    Spec(
        *("handoff", _CONVERSATIONS, Takes.WORD, "PLATFORM", "go on in the home channel of a platform"),
        "The conversation goes on there, with all that was said. For owners.",
        "/handoff telegram",
    ),
    Spec(
        *("history", _GOING_BACK, Takes.WORD, "[HOW MANY]", "show the last exchanges"),
        "Ten of them, when nothing else is said.",
        "/history 3",
    ),
    Spec(
        *("search", _GOING_BACK, Takes.TEXT, "WORDS", "find what was said, in all conversations"),
        'Every word has to be there; also "a phrase", OR, NOT, begin*, ~part, after:2025-01-31.',
        "/search hotel alfama",
    ),
    Spec(
        *("undo", _GOING_BACK, Takes.WORD, "[HOW MANY]", "take back the last turns"),
        "Hides your last message and all that followed from the agent and from search; nothing is deleted.",
        "/undo 2",
    ),
    Spec(
        *("redo", _GOING_BACK, Takes.NOTHING, "", "bring back what the last /undo took"),
        "As long as nothing else was said since, and this chat is open; each /redo takes one /undo back.",
        "/redo",
    ),
    Spec(
        *("retry", _GOING_BACK, Takes.NOTHING, "", "ask the last question again"),
        "The last turn is taken back, as /undo does, and what you said is said again.",
        "/retry",
    ),
    Spec(
        *("model", _ANSWERING, Takes.WORD, "[NAME|default]", "show or choose the model"),
        "For this conversation alone. `default` leaves the choice to the configuration.",
        "/model gpt-5-mini",
    ),
    Spec(
        *("think", _ANSWERING, Takes.WORD, "[none|low|medium|high|default]", "show or choose how long it may think"),
        "`default` leaves it to the model.",
        "/think high",
    ),
    Spec(
        *("verbose", _ANSWERING, Takes.WORD, "[off|tools|all|default]", "show or choose how much of its work is shown"),
        "`off`: the answers. `tools`: also a line for each tool it uses. `all`: also its thoughts and what tools say.",
        "/verbose all",
    ),
    Spec(
        *("status", _CHAT, Takes.NOTHING, "", "model, context, levels, title, messages, tokens"),
        "All that holds for this conversation now.",
        "/status",
    ),
    Spec(
        *("usage", _CHAT, Takes.NOTHING, "", "tokens and cost of this conversation"),
        "All its parts together. What is not known is called unknown, never nothing.",
        "/usage",
    ),
    Spec(
        *("context", _CHAT, Takes.WORD, "[list|detail]", "what the model is told, and how large it is"),
        "`list`: the parts and their sizes. `detail`: also each tool, and the ten largest messages.",
        "/context detail",
    ),
    Spec(
        *("stop", _CHAT, Takes.NOTHING, "", "stop what is being done"),
        "The answer that is being written ends, with every tool that it runs. On a platform, what waits for an answer"
        " is cancelled, too.",
        "/stop",
    ),
    Spec(
        *("queue", _CHAT, Takes.TEXT, "[TEXT|MODE]", "what happens to messages that come while it answers"),
        "Alone: how many wait, and the mode. TEXT has an answer of its own, behind those before it. Modes are collect"
        " (one answer for all), followup (one for each), steer (heard between two steps), interrupt (the newest alone)"
        " and default.",
        "/queue And then tell me about the trams.",
        aliases=("q",),
        where=Where.PLATFORMS,
    ),
    Spec(
        *("steer", _CHAT, Takes.TEXT, "TEXT", "say something to the answer that is being written"),
        "It is heard between two steps; when nothing is being written, it is answered like any message.",
        "/steer Only hotels with a view.",
        where=Where.PLATFORMS,
    ),
    Spec(
        *("send", _CHAT, Takes.WORD, "[on|off|inherit]", "whether answers are sent here"),
        "For this conversation, whatever the settings say; `inherit` leaves it to them. For owners.",
        "/send off",
        where=Where.PLATFORMS,
    ),
    Spec(
        *("sethome", _CHAT, Takes.NOTHING, "", "make this the home channel of the platform"),
        "What runs by itself, and /handoff, go there. For owners.",
        "/sethome",
        where=Where.PLATFORMS,
    ),
    Spec(
        *("restart", _CHAT, Takes.NOTHING, "", "restart the gateway"),
        "Answers that are being written come to their end first, or go on afterwards. For owners.",
        "/restart",
        where=Where.PLATFORMS,
    ),
    Spec(
        *("help", _CHAT, Takes.WORD, "[COMMAND]", "what can be typed here"),
        "With the name of a command: more about it.",
        "/help branch",
    ),
    Spec(
        *("quit", _CHAT, Takes.NOTHING, "", "leave"),
        "The conversation is kept.",
        "/quit",
        aliases=("exit",),
        where=Where.TERMINAL,
    ),
)

_BY_NAME = {name: spec for spec in COMMANDS for name in (spec.name, *spec.aliases)}
_LONGEST_NAME = 32

_FORM = re.compile(r"/(?P<name>[A-Za-z]+)(?:@(?P<bot>[^\s/@]+))?(?:(?P<gap>\r\n|\s)(?P<rest>.*))?", re.DOTALL)
_MENTION = re.compile(r"\s*@(?P<bot>[^\s/@:,]+)[:,]?\s+(?=/)")


class Command(NamedTuple):
    """A command that somebody gave."""

    name: str
    argument: str = ""

    def __str__(self) -> str:
        return f"/{self.name} {self.argument}" if self.argument else f"/{self.name}"


class Unknown(NamedTuple):
    """What looks like a command and is none; `near` is the one that may be meant."""

    name: str
    near: str | None = None


def parse(text: str, *, bot: str = "", in_terminal: bool = True) -> Command | Unknown | None:
    """The command that a message is; None when it is something to say.

    `bot` is our name where people write `/title@name` or `@name /title`. What is meant for another bot is no command.
    """
    said = _unaddressed(text, bot)
    form = _FORM.fullmatch(said.lstrip())
    if form is None or (form["bot"] is not None and not _is_called(form["bot"], bot)):
        return None
    name = form["name"].lower()
    spec = find_spec(name, in_terminal=in_terminal)
    if spec is None:
        return None if said[:1].isspace() or len(name) > _LONGEST_NAME else Unknown(name, near(name, in_terminal))
    argument = _argument(spec.takes, form["rest"] or "")
    return None if argument is None else Command(spec.name, argument)


def find_spec(name: str, *, in_terminal: bool = True) -> Spec | None:
    """The command of that name, with or without its slash, where it is asked for."""
    spec = _BY_NAME.get(name.removeprefix("/").lower())
    return spec if spec and spec.where.is_here(in_terminal=in_terminal) else None


def known(*, in_terminal: bool = True) -> Iterator[Spec]:
    """Every command there is, in the order of the table."""
    return (spec for spec in COMMANDS if spec.where.is_here(in_terminal=in_terminal))


def near(name: str, in_terminal: bool = True) -> str | None:
    """The command that somebody may have meant."""
    names = [each for spec in known(in_terminal=in_terminal) for each in (spec.name, *spec.aliases)]
    return next(iter(get_close_matches(name[:_LONGEST_NAME], names, 1)), None)


def _unaddressed(text: str, bot: str) -> str:
    """The message without the mention of us that it begins with."""
    mention = _MENTION.match(text)
    return text[mention.end() :] if mention and _is_called(mention["bot"], bot) else text


def _is_called(name: str, bot: str) -> bool:
    return bool(bot) and name.casefold() == bot.removeprefix("@").casefold()


def _argument(takes: Takes, rest: str) -> str | None:
    """What a command is given; None when it does not take that."""
    if not rest.strip():
        return ""
    if takes is Takes.TEXT:
        return rest
    words = rest.split()
    return words[0] if takes is Takes.WORD and len(words) == 1 else None
