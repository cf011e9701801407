"""The settings of the agent: which models answer, who is asked before something happens, what is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from segue.config.declaring import about, is_word, nothing
from segue.config.kinds import Amount, Choice, Key, Listing, Number, Secret, Section, Table, Text
from segue.core.policy import FRESHNESS
from segue.core.prices import Price

_YEAR = 31_536_000  # seconds
_MOST_DOLLARS = 1_000_000.0
_MOST_TOKENS = 1_000_000_000
_WEB = "an address that begins with http:// or https://"


def _is_word_or_nothing(text: str) -> bool:
    return text == "" or is_word(text)


def _is_web_or_nothing(text: str) -> bool:
    return text == "" or (text.startswith(("http://", "https://")) and is_word(text))


def _is_entry_or_nothing(text: str) -> bool:
    """A function in a module, or a word by which an installed package names its agent."""
    module, colon, name = text.partition(":")
    if not colon:
        return text == "" or is_word(text)
    return all(part.isidentifier() for part in (*module.split("."), *name.split(".")))


class Approval(StrEnum):
    """What happens before a tool does something that cannot be taken back."""

    ASK = "ask"
    ALLOW = "allow"
    DENY = "deny"


class ResumeDisplay(StrEnum):
    FULL = "full"
    MINIMAL = "minimal"


class Wire(StrEnum):
    """The language that a provider speaks."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """A place where models are."""

    kind: Wire = field(default=Wire.OPENAI, metadata=about(Choice(Wire), "Whose interface it has."))
    base_url: str = field(default="", metadata=about(Text(_WEB, _is_web_or_nothing), "Where it is."))
    api_key: str = field(
        default="",
        metadata=about(
            Secret("a text", _is_word_or_nothing), "Its key, best taken from the environment; a local one has none."
        ),
    )
    models: tuple[str, ...] = field(
        default=(),
        metadata=about(
            Listing(Text("a model", is_word)),
            "Its models, the default first. They can be named without the provider, or by a part of six characters.",
        ),
    )


@dataclass(frozen=True, slots=True)
class PriceSettings:
    """US dollars for a million tokens."""

    input: float | None = field(default=None, metadata=about(Amount(_MOST_DOLLARS), "Of what a model reads."))
    output: float | None = field(default=None, metadata=about(Amount(_MOST_DOLLARS), "Of what it answers."))
    cache_read: float | None = field(
        default=None, metadata=about(Amount(_MOST_DOLLARS), "Of what it reads from a cache; else as input.")
    )
    cache_write: float | None = field(
        default=None, metadata=about(Amount(_MOST_DOLLARS), "Of what it writes to a cache; else as input.")
    )


class _PriceKind(Section):
    allowed = "a mapping with input, output, cache_read and cache_write, in US dollars for a million tokens"

    def read(self, value: object, key: Key, **given: object) -> Price:
        said = super().read(value, key, **given)
        return Price(said.input, said.output, said.cache_read, said.cache_write)


@dataclass(frozen=True, slots=True)
class ModelsSettings:
    """Names for models, which ones stand in for others, and what is not known of them elsewhere."""

    aliases: Mapping[str, str] = field(
        default_factory=nothing,
        metadata=about(
            Table(Text("a word", is_word), Text("a model", is_word), "a mapping from a name to a model"),
            "Names of your own: {fast: openai/gpt-5-mini}.",
        ),
    )
    fallback: tuple[str, ...] = field(
        default=(),
        metadata=about(
            Listing(Text("a model", is_word)), "Models that are asked, in this order, when the first does not answer."
        ),
    )

    prices: Mapping[str, Price] = field(
        default_factory=nothing,
        metadata=about(
            Table(Text("a model", is_word), _PriceKind(PriceSettings), "a mapping from a model to its prices"),
            "Prices of your own, in US dollars for a million tokens: {my-model: {input: 0.5, output: 2}}, also with "
            "cache_read and cache_write. They are before those of the price table.",
        ),
    )
    windows: Mapping[str, int] = field(
        default_factory=nothing,
        metadata=about(
            Table(Text("a model", is_word), Number(1, _MOST_TOKENS), "a mapping from a model to a number of tokens"),
            "How many tokens a model can read, where that is not known: {my-model: 32768}.",
        ),
    )


@dataclass(frozen=True, slots=True)
class DisplaySettings:
    """What is shown in the terminal."""

    resume_display: ResumeDisplay = field(
        default=ResumeDisplay.FULL,
        metadata=about(
            Choice(ResumeDisplay), "What is shown of a conversation that is carried on: its last exchanges, or a line."
        ),
    )


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How the agent's turns run."""

    approvals: Approval = field(
        default=Approval.ASK,
        metadata=about(
            Choice(Approval),
            "What happens before the agent runs a command or removes something: you are asked, it is allowed, or it is "
            "denied. Where nobody can be asked, ask means deny.",
        ),
    )
    entry: str = field(
        default="",
        metadata=about(
            Text("a module and a name in it, like mypackage.agents:answer, or only a name", _is_entry_or_nothing),
            "A Python function or agent of your own that answers in place of the built-in one; its module is looked "
            "for where Python looks, and in the home folder, and a name alone among installed packages.",
        ),
    )

    auto_continue_freshness: int = field(
        default=int(FRESHNESS.total_seconds()),
        metadata=about(
            Number(0, _YEAR),
            "For how many seconds after it was cut off a turn is continued in the same session; 0 is never.",
        ),
    )
    turn_timeout: int = field(
        default=1800,
        metadata=about(
            Number(1, _YEAR), "After how many seconds a turn on a platform is stopped, and its sender told."
        ),
    )
    drain_timeout: int = field(
        default=30,
        metadata=about(Number(0, 3600), "For how many seconds a gateway that stops waits for the turns that run."),
    )
