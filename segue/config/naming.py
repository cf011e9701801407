"""What names in settings can be: of platforms, of people, of lanes. The rules for that are slow to load."""

import re

from segue.config.declaring import is_word
from segue.config.kinds import Text
from segue.core.errors import InvalidKey, InvalidSource

_AGENT = re.compile("[a-z0-9][a-z0-9_.-]*")


def is_platform(name: str) -> bool:
    from segue.core.keys import Chat  # slow to load, and most configurations name no platform

    try:
        Chat(name, "dm")
    except InvalidSource:
        return False
    return True


def is_connectable(name: str) -> bool:
    from segue.core.sources import ALWAYS_CONNECTED  # slow to load, as above

    return name in ALWAYS_CONNECTED or is_platform(name)


def is_main_key(name: str) -> bool:
    from segue.core.keys import Main  # slow to load, and most configurations do not name it

    try:
        Main(name)
    except InvalidKey:
        return False
    return True


def is_person(text: str) -> bool:
    platform, _, peer = text.partition(":")
    return is_platform(platform) and is_word(peer)


def is_link_name(name: str) -> bool:
    return is_word(name) and ":" not in name


PERSON = Text("a person as platform:id, like telegram:123456", is_person)
PLATFORM = Text("that of a platform", is_platform)
CONNECTABLE = Text("that of a platform", is_connectable)
AGENT = Text("small letters and digits", lambda name: _AGENT.fullmatch(name) is not None)
