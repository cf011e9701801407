"""What somebody is asked about, shown as it is: nothing cut, and nothing that no eye sees."""

import re

_SPACES = re.compile(" {2,}")


def on_one_line(text: str) -> str:
    """The whole text on one line, with every character written out that does something and is not seen."""
    return _SPACES.sub(" ", "".join(map(_visible, text.strip())))


def _visible(character: str) -> str:
    if character == "\n":
        return " ⏎ "
    if character == "\t":
        return " "
    return character if character.isprintable() else character.encode("unicode_escape").decode()
