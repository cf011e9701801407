"""Values as an error message or a listing may show them: short, printable, and without what looks like a secret."""

import re
from collections.abc import Mapping

from segue.core.text import one_line, shorten

HIDDEN = "***"
_LONGEST = 80
_TOO_LONG = 1000  # to be searched for secrets

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_*-]+|\[[0-9]+\]")
_URL_PASSWORD = re.compile(r"(://[^:/@\s]*:).*@")  # up to the last @: a password may hold anything
_NAMED_SECRET = re.compile(r"(?i)((?:pass(?:word|wd)?|pwd|secret|token|api_?key)\s*=\s*)[^&;\s]+")
_OPAQUE = re.compile(r"(?=[^\s:]*[0-9])(?=[^\s:]*[A-Za-z])[A-Za-z0-9_+/=.~-]{20,}")


def masked(text: str) -> str:
    """The text without the password of an address."""
    return _NAMED_SECRET.sub(rf"\1{HIDDEN}", _URL_PASSWORD.sub(rf"\1{HIDDEN}@", text))


def quoted(value: object) -> str:
    """A refused value, named in a sentence; nobody knows what stands in the wrong place, so keys are hidden too."""
    match value:
        case None:
            return "empty"
        case bool():
            return str(value).lower()
        case str() if len(value) > _TOO_LONG:
            return f"a text of {len(value)} characters"
        case str():
            return repr(shorten(_OPAQUE.sub(HIDDEN, masked(value)), _LONGEST))
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case int() if abs(value) >= 10**_LONGEST:
            return "a huge number"
    return shorten(one_line(repr(value)), _LONGEST)


def dotted(key: tuple[str, ...]) -> str:
    """The name of a key as documentation writes it: `session.reset.mode`, `owners[0]`; odd parts in quotation marks."""
    parts = (part if _PLAIN_NAME.fullmatch(part) else repr(shorten(part, _LONGEST)) for part in key)
    return shorten(".".join(parts).replace(".[", "["), 3 * _LONGEST)
