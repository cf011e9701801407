"""What a conversation has chosen, and what of it the next one takes over.

It is kept as JSON in the column `model_config`, where others may keep things too: what we do not know stays there.
"""

from collections.abc import Mapping
from enum import StrEnum
from math import isfinite
from types import MappingProxyType
from typing import Any, NamedTuple

from segue.core.json_text import parse_json
from segue.core.spelling import dumps
from segue.core.text import storable


class Effort(StrEnum):
    """How long a model may think."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Verbosity(StrEnum):
    """How much of the work is shown: the answers, also the tools, also thoughts and what tools say."""

    OFF = "off"
    TOOLS = "tools"
    ALL = "all"

    @property
    def has_tools(self) -> bool:
        return self is not Verbosity.OFF

    @property
    def has_reasoning(self) -> bool:
        return self is Verbosity.ALL

    @property
    def has_output(self) -> bool:
        """Whether what tools say is shown."""
        return self is Verbosity.ALL


class Succession(StrEnum):
    """How one session came after another."""

    NEW = "new"
    """Somebody asked for a new one: `/new`, `/reset`."""
    IDLE = "idle"
    DAILY = "daily"
    SUSPENDED = "suspended"
    COMPRESSION = "compression"
    RESUME = "resume"
    BRANCH = "branch"


class Preferences(NamedTuple):
    """What was chosen; nothing chosen leaves it to the configuration."""

    model: str | None = None
    effort: Effort | None = None
    verbose: Verbosity | None = None
    send: str | None = None
    """Whether answers are sent, whatever the policy says."""
    queue: str | None = None
    """What happens to messages that come while a turn runs."""
    rest: Mapping[str, Any] = MappingProxyType({})
    """What others keep beside it."""


_OURS = ("model", "effort", "verbose", "send", "queue")
_UNREADABLE = "model_config"
"""The key under which a column that is no JSON object is kept."""
_BY_ITSELF = frozenset({Succession.IDLE, Succession.DAILY, Succession.SUSPENDED})


def carried_over(chosen: Preferences, how: Succession, *, model: str | None = None) -> Preferences:
    """What a session begins with that comes after another; `model` is the one that was asked for with it."""
    if how is Succession.NEW:
        return chosen._replace(model=model, rest={})
    if how in _BY_ITSELF:
        return Preferences(model=model, send=chosen.send, queue=chosen.queue)
    return chosen if model is None else chosen._replace(model=model)


def decode(column: str | None) -> Preferences:
    """What a session has chosen, whatever its column holds."""
    if column is None:
        return Preferences()
    held = _object(column)
    chosen = Preferences(
        model=_text(held.get("model")),
        effort=_one_of(Effort, held.get("effort")),
        verbose=_one_of(Verbosity, held.get("verbose")),
        send=_text(held.get("send")),
        queue=_text(held.get("queue")),
    )
    return chosen._replace(rest={key: value for key, value in held.items() if not _is_ours(chosen, key)})


def encode(chosen: Preferences) -> str | None:
    """The column that says so; nothing when nothing is chosen."""
    ours = {name: str(value) for name in _OURS if (value := getattr(chosen, name)) is not None}
    held = {**chosen.rest, **ours}
    return storable(dumps(held)) if held else None


def _is_ours(chosen: Preferences, key: str) -> bool:
    return key in _OURS and getattr(chosen, key) is not None


def _object(column: str) -> dict[str, Any]:
    """The object that a column holds; anything else is kept as it is under a key of its own."""
    try:
        held = parse_json(column, parse_float=_number, parse_constant=str)
        dumps(held)
    except ValueError:
        held = column
    if isinstance(held, dict):
        return held
    return {_UNREADABLE: column} if column.strip() else {}


def _number(digits: str) -> float | str:
    """A number that can be written down again; one that is too large stays text."""
    number = float(digits)
    return number if isfinite(number) else digits


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _one_of(choices: type[Effort] | type[Verbosity], value: Any) -> Any:
    return choices(value) if isinstance(value, str) and value in list(choices) else None
