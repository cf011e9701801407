"""The settings of a platform: a few that all have, and those that only its adapter knows.

The latter are kept as they were written, for the adapter to check. Nobody knows which of them are secrets before it
does, so their texts are never shown.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from types import MappingProxyType
from typing import Any, Union

from segue.config.declaring import about, is_word, nothing
from segue.config.kinds import Flag, Key, Problem, Section, Text, kinds_of
from segue.config.masking import HIDDEN, quoted
from segue.core.sources import ALWAYS_CONNECTED

Single = str | int | float | bool
Own = Union[Single, "tuple[Own, ...]", "Mapping[str, Own]"]
"""What an adapter's own settings can be."""

_DEEPEST = 3
_NAME = re.compile("[a-z][a-z0-9_]*")
_SECRET = re.compile("token|secret|pass|key|pin|code|auth|credential")


def _is_word_or_nothing(text: str) -> bool:
    return text == "" or is_word(text)


@dataclass(frozen=True, slots=True)
class PlatformSettings:
    """What every platform has; each has more, which the page about it lists."""

    enabled: bool = field(default=True, metadata=about(Flag(), "Whether the gateway connects to it."))
    home_channel: str = field(
        default="",
        metadata=about(
            Text("the id of a chat in quotation marks", _is_word_or_nothing),
            "Where news go that answer nobody, and where /handoff leads; /sethome chooses it, too.",
        ),
    )
    own: Mapping[str, Own] = field(default_factory=nothing)
    """What only the adapter knows."""


class _PlatformKind(Section):
    def read(self, value: object, key: Key, **given: object) -> PlatformSettings:
        if not isinstance(value, Mapping):
            raise self.misfit(value, key)
        common = kinds_of(self.of)
        own = {name: _own(item, name, key) for name, item in value.items() if name not in common and item is not None}
        ours = {name: item for name, item in value.items() if name in common}
        said: PlatformSettings = super().read(ours, key, own=MappingProxyType(own), **given)
        if key[-1] in ALWAYS_CONNECTED:
            _check_always_connected(said, key)
        return said

    def plain(self, value: PlatformSettings) -> dict[str, object]:
        return super().plain(value) | {name: _shown(name, item) for name, item in value.own.items()}


def _check_always_connected(said: PlatformSettings, key: Key) -> None:
    if not said.enabled:
        raise Problem((*key, "enabled"), "cannot be false: every gateway has it")
    if said.home_channel:
        raise Problem((*key, "home_channel"), "cannot be set: nothing is sent there")


def _own(value: object, name: str, key: Key) -> Own:
    if not _NAME.fullmatch(name):
        raise Problem(key, f"has the name {quoted(name)}, but a name there must be small letters, digits and _")
    return _kept(value, (*key, name), _DEEPEST)


def _kept(value: object, key: Key, deeper: int) -> Own:
    if isinstance(value, list | tuple) and deeper:
        return tuple(_kept(item, key, deeper - 1) for item in value)
    if isinstance(value, Mapping) and deeper and all(isinstance(name, str) for name in value):
        said = {name: _kept(item, (*key, name), deeper - 1) for name, item in value.items() if item is not None}
        return MappingProxyType(said)
    return _single(value, key)


def _single(value: object, key: Key) -> Single:
    if isinstance(value, str | bool | int) or (isinstance(value, float) and isfinite(value)):
        return value
    raise Problem(key, "must be a text, a number, true or false, or a list or mapping of those")


def _shown(name: str, value: Any) -> object:
    if isinstance(value, tuple):
        return [_shown(name, item) for item in value]
    if isinstance(value, Mapping):
        return {inner: _shown(inner, item) for inner, item in value.items()}
    is_open = isinstance(value, bool) or (isinstance(value, int | float) and not _SECRET.search(name))
    return value if is_open else HIDDEN


PLATFORM_SECTION = _PlatformKind(PlatformSettings)
