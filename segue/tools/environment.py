"""What a command is told of our environment: what it needs to find its way, and nothing that could be a secret."""

from collections.abc import Mapping

_LOCALE = "ALL COLLATE CTYPE MESSAGES MONETARY NUMERIC TIME ADDRESS IDENTIFICATION MEASUREMENT NAME PAPER TELEPHONE"

HANDED_ON = (
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
    *(f"LC_{name}" for name in _LOCALE.split()),
)
"""By name, so that a key or a token that somebody sets tomorrow is not handed on."""

SAID = {"TERM": "dumb"}


def environment_for(given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command."""
    return {name: given[name] for name in HANDED_ON if name in given} | SAID
