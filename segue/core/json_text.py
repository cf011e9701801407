"""JSON written by somebody else: the same text is accepted or refused alike on every version of Python.

How deep Python's own parser goes before it gives up depends on its version and on the stack it is called from. Here
the depth is counted before anything is parsed, in time and memory that do not depend on it.
"""

import json
import re
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 128
"""Lists and objects inside one another. What people and programs exchange has ten at most."""

_STRING_OR_BRACKET = re.compile(r'"(?>(?:[^"\\]++|\\.)*)(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


class TooDeep(ValueError):
    """A text or a value with more lists and objects inside one another than are read."""


def parse_json(
    text: str | bytes,
    max_depth: int = MAX_DEPTH,
    *,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
    parse_constant: Callable[[str], Any] | None = None,
    parse_float: Callable[[str], Any] | None = None,
) -> Any:
    """Return what a text says. Raises ValueError when it is no JSON, and TooDeep, which is one, when it is too deep."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    check_depth(text, max_depth)
    return json.loads(text, object_pairs_hook=object_pairs_hook, parse_constant=parse_constant, parse_float=parse_float)


def dump_json(value: Any, max_depth: int = MAX_DEPTH, **options: Any) -> str:
    """Return a value as JSON. Raises TooDeep, TypeError or ValueError for a value that JSON cannot hold."""
    try:
        text = json.dumps(value, **options)
    except RecursionError:
        raise _too_deep(max_depth) from None
    check_depth(text, max_depth)
    return text


def check_depth(text: str, max_depth: int = MAX_DEPTH) -> None:
    """Raise TooDeep when more than `max_depth` lists and objects stand inside one another."""
    if text.count("[") + text.count("{") <= max_depth:
        return
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        sign = text[found.start()]
        if sign in "[{":
            depth += 1
            if depth > max_depth:
                raise _too_deep(max_depth)
        elif sign in "]}":
            depth -= 1


def _too_deep(max_depth: int) -> TooDeep:
    return TooDeep(f"it is nested more than {max_depth} levels deep")
