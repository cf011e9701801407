"""The keys, said once: the browser binds them, the bottom line and the help show them."""

from collections.abc import Sequence
from typing import NamedTuple

_GAP = 2  # cells between two keys


class Key(NamedTuple):
    """A key, how it is written, and what it does. The lowest rank stays longest in the bottom line; 0 is not shown."""

    key: str
    sign: str
    label: str
    action: str
    help: str
    rank: int = 0


KEYS = (
    Key("enter", "⏎", "Resume", "choose", "go on with it in a chat", 3),
    Key("slash", "/", "Filter", "filter", "filter by title, id or anything said", 4),
    Key("r", "r", "Rename", "rename", "give it a title, or take it away", 5),
    Key("t", "t", "Tag", "tag", "add a tag, or take one away", 6),
    Key("a", "a", "Archive", "archive", "put it aside, or bring it back", 7),
    Key("p", "p", "Pin", "pin", "keep it from being pruned, or let it go", 10),
    Key("d", "d", "Delete", "delete", "move it into the trash, with all its parts", 8),
    Key("u", "u", "Undo", "undo", "bring back what was deleted last"),
    Key("e", "e", "Export", "export", "write it to a file", 9),
    Key("v", "v", "View", "view", "conversations, archived ones, everything", 11),
    Key("space", "space", "Preview", "preview", "show or hide the preview", 12),
    Key("f5", "F5", "Reload", "reload", "read the list again"),
    Key("question_mark", "?", "Help", "help", "this page", 2),
    Key("q", "q", "Quit", "leave", "leave without choosing; Esc does so too", 1),
)
FILTER_KEYS = (
    Key("enter", "⏎", "Resume", "choose", "", 1),
    Key("up", "↑↓", "Move", "", "", 4),
    Key("tab", "tab", "To the list", "list", "", 3),
    Key("escape", "esc", "Clear", "step_back", "", 2),
)


def fitting(keys: Sequence[Key], width: int) -> list[Key]:
    """The keys that the bottom line has room for, in their order."""
    shown = [key for key in keys if key.rank]
    while shown and sum(_width(key) + _GAP for key in shown) - _GAP > width:
        shown.remove(max(shown, key=lambda key: key.rank))
    return shown


def key_at(keys: Sequence[Key], x: int) -> Key | None:
    """The key that stands in that cell of the bottom line."""
    for key in keys:
        if 0 <= x < _width(key):
            return key
        x -= _width(key) + _GAP
    return None


def _width(key: Key) -> int:
    return len(f"{key.sign} {key.label}")
