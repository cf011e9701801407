"""One spelling for people whom WhatsApp names by their telephone number: `+` and its digits (E.164).

WhatsApp and the gateways in front of it write the same person as `491512345678@s.whatsapp.net`, with the device behind
the number (`491512345678:12@…`), as `whatsapp:+491512345678` or as the number alone. Groups, broadcasts and the
anonymous ids that end in `@lid` are no numbers and stay as they are, without the device.
"""

import re
from collections.abc import Iterable

WHATSAPP = "whatsapp"
_NUMBER_SERVERS = frozenset({"", "s.whatsapp.net", "c.us"})
_PUNCTUATION = re.compile(r"[\s().\-/]+")
_DEVICE = re.compile(r"(?:[._][0-9]+)?(?::[0-9]+)?\Z")
_E164 = re.compile(r"(?:\+|00)?([1-9][0-9]{6,14})")


def canonical_id(platform: str, given: str) -> str:
    """Return the id of a person or of a direct chat in its one spelling; other platforms' ids stay as they are."""
    if platform != WHATSAPP or not given:
        return given
    user, at, server = given.strip().removeprefix("whatsapp:").partition("@")
    if server == "lid":
        return f"{_DEVICE.sub('', user)}@lid"
    if server not in _NUMBER_SERVERS:
        return given
    number = _E164.fullmatch(_PUNCTUATION.sub("", _DEVICE.sub("", user) if at else user))
    return f"+{number[1]}" if number else given


def is_number(person: str) -> bool:
    """Return whether a canonical id is a telephone number."""
    return _E164.fullmatch(person) is not None and person.startswith("+")


def is_among(platform: str, person: str, ids: Iterable[str]) -> bool:
    """Return whether a person is one of those whom somebody listed, in whatever spelling."""
    return person in ids or (platform == WHATSAPP and person in {canonical_id(platform, one) for one in ids})
