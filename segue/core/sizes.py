"""How many tokens something is for a model, more or less: nobody but the model knows, so we rather guess too many."""

import json
from collections.abc import Iterable, Sequence

from segue.core.messages import Said
from segue.core.pruning import shown

_BYTES_OF_A_TOKEN = 3.5
_BYTES_OF_A_FOREIGN_TOKEN = 3.0
"""In scripts other than ours a character has two to four bytes, and seldom shares a token with another."""
_OF_A_MESSAGE = 8
_OF_A_PICTURE = 1_600
_PICTURE = '"image_url"'
_COLUMNS = ("tool_calls", "reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items")

UNKNOWN_WINDOW = 128_000
"""What a model is taken to be able to read when nobody says."""


def tokens_in(text: str) -> int:
    size = len(text.encode("utf-8", "surrogatepass"))
    return int(size / (_BYTES_OF_A_TOKEN if size == len(text) else _BYTES_OF_A_FOREIGN_TOKEN)) + 1


def tokens_of(message: Said) -> int:
    """What a message takes of a model's window."""
    words = message.content or ""
    if message.pruned is not None:
        words = shown(words, message.pruned)
    pictures = message.content_json.count(_PICTURE) if message.content_json else 0
    rest = sum(tokens_in(value) for name in _COLUMNS if (value := getattr(message, name)))
    return _OF_A_MESSAGE + tokens_in(words) + _OF_A_PICTURE * pictures + rest


def tokens_of_all(messages: Iterable[Said]) -> int:
    return sum(map(tokens_of, messages))


def tokens_of_rest(system: str, tools: Sequence[object]) -> int:
    """What a model is told beside the conversation."""
    return tokens_in(system) + sum(tokens_in(json.dumps(tool)) + _OF_A_MESSAGE for tool in tools)
