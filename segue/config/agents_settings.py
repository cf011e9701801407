"""The settings of agents that have a name of their own."""

from dataclasses import dataclass, field

from segue.config.declaring import about, is_word
from segue.config.kinds import Flag, Listing, Section, Text
from segue.config.naming import is_platform


def _is_model_or_nothing(text: str) -> bool:
    return text == "" or is_word(text)


def _is_place(text: str) -> bool:
    platform, colon, chat = text.partition(":")
    return is_platform(platform) and (not colon or is_word(chat))


@dataclass(frozen=True, slots=True)
class NamedAgentSettings:
    """An agent: what answers, as whom, with what, and where."""

    model: str = field(
        default="",
        metadata=about(
            Text("the name of a model, or an alias", _is_model_or_nothing), "Its model; else the usual one."
        ),
    )
    prompt: str = field(
        default="", metadata=about(Text("a text", lambda _: True), "What it is told of itself before everything else.")
    )
    tools: tuple[str, ...] | None = field(
        default=None,
        metadata=about(
            Listing(Text("the name of a tool", is_word)), "The tools it may use; all, when nothing is said."
        ),
    )
    memory: bool = field(default=True, metadata=about(Flag(), "Whether it keeps notes, which are its own."))
    bindings: tuple[str, ...] = field(
        default=(),
        metadata=about(
            Listing(Text("a platform, or a chat as platform:id", _is_place)),
            "Where it answers in place of main: on whole platforms, or in single chats.",
        ),
    )


NAMED_AGENT = Section(NamedAgentSettings)
