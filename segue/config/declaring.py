"""How settings are declared: what each is, what it means, and what a word is."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from segue.config.kinds import Kind


def about(kind: Kind, meaning: str | None) -> dict[str, object]:
    return {"kind": kind, "help": meaning}


def nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


def is_word(text: str) -> bool:
    return text != "" and text == text.strip() and text.isprintable()
