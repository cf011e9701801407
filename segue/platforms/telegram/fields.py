"""What stands in an update under a name, if it is what it should be: others have written it."""

from collections.abc import Mapping
from typing import Any

Said = Mapping[str, Any]


def text_of(said: Said, name: str) -> str:
    found = said.get(name)
    return found if isinstance(found, str) else ""


def number_of(said: Said, name: str) -> int | None:
    found = said.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def map_of(said: Said, name: str) -> Said:
    found = said.get(name)
    return found if isinstance(found, dict) else {}


def maps_of(said: Said, name: str) -> list[Said]:
    found = said.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
