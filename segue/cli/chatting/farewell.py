"""The last line of a chat: how to come back."""

import shlex

from segue.core.text import one_line


def farewell(session_id: str, title: str | None = None) -> str:
    """What to type, ready to be copied; the title is there to be recognised."""
    line = f"Resume with: segue -r {shlex.quote(one_line(session_id))}"
    shown = one_line(title or "")
    return f"{line}  ({shown})" if shown else line
