"""The settings of long conversations: when they are compressed, what of old tool results stays, who summarises."""

from dataclasses import dataclass, field

from segue.config.declaring import about, is_word
from segue.config.kinds import Amount, Number, Text
from segue.core.pruning import KEPT_TURNS, Pruning, Rules

_MOST_CHARACTERS = 10_000_000
_RULES, _PRUNING = Rules(), Pruning()


def _is_model_or_nothing(text: str) -> bool:
    return text == "" or is_word(text)


@dataclass(frozen=True, slots=True)
class CompressionSettings:
    """When a conversation becomes too long for its model and goes on from a summary."""

    threshold: float = field(
        default=_RULES.threshold,
        metadata=about(Amount(1.0), "The share of the model's window from which on it is compressed."),
    )
    protect_last_n: int = field(
        default=KEPT_TURNS,
        metadata=about(
            Number(1, 1_000), "How many of the last turns stay word for word; fewer when they fill half the window."
        ),
    )


@dataclass(frozen=True, slots=True)
class PruningSettings:
    """How old tool results are cut down in what the model is shown."""

    keep_last: int = field(
        default=_PRUNING.keep_last, metadata=about(Number(1, 1_000), "Of how many last answers the results stay whole.")
    )
    soft: float = field(
        default=_PRUNING.soft,
        metadata=about(Amount(1.0), "The share of the window from which on old results keep only their ends."),
    )
    hard: float = field(
        default=_PRUNING.hard,
        metadata=about(Amount(1.0), "The share of the window from which on nothing of old results is shown."),
    )
    min_chars: int = field(
        default=_PRUNING.min_chars,
        metadata=about(Number(0, _MOST_CHARACTERS), "Old results with fewer characters together stay as they are."),
    )
    max_chars: int = field(
        default=_PRUNING.max_chars,
        metadata=about(Number(0, _MOST_CHARACTERS), "A result that is not longer stays as it is."),
    )
    head: int = field(
        default=_PRUNING.head, metadata=about(Number(0, _MOST_CHARACTERS), "Characters that stay of its beginning.")
    )
    tail: int = field(
        default=_PRUNING.tail, metadata=about(Number(0, _MOST_CHARACTERS), "Characters that stay of its end.")
    )


@dataclass(frozen=True, slots=True)
class AuxiliarySettings:
    """Who does the small work beside the conversation: summaries and titles."""

    model: str = field(
        default="",
        metadata=about(
            Text("the name of a model, or an alias", _is_model_or_nothing),
            "A small model is enough; when none is named, the one that answers does it.",
        ),
    )
