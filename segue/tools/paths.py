"""Paths as a model writes them."""

import os
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from segue.core.text import shorten
from segue.ports.tool import ToolFailed

_LOOKED_AT = 10_000
_LONGEST = 300


def path_in(folder: Path, said: str) -> Path:
    """What a path means in a folder; `~` is the home of whoever runs this."""
    try:
        return folder / Path(said).expanduser()
    except RuntimeError:
        raise ToolFailed(f"{shown(said)} begins with a home that nobody has; give a path without `~`.") from None


def shown(path: Path | str) -> str:
    """A path on one line, as it can be written again."""
    text = str(path)
    return shorten(text if text.isprintable() else repr(text), _LONGEST)


def near_names(path: Path) -> list[str]:
    """Paths that are there and look like one that is not."""
    missing = path
    while missing != missing.parent and not os.path.lexists(missing.parent):
        missing = missing.parent
    try:
        with os.scandir(missing.parent) as entries:
            names = [entry.name for entry in islice(entries, _LOOKED_AT)]
    except OSError:
        return []
    alike = {name.casefold(): name for name in names}
    close = get_close_matches(missing.name.casefold(), alike, n=3)
    return [str(missing.with_name(alike[one])) for one in close]
