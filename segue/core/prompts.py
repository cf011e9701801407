"""What our agent is told before anything else. Written once, when a conversation begins, and never changed in it."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from segue.core.text import cut, one_line


class Place(NamedTuple):
    """Where a conversation begins."""

    began: datetime
    source: str
    cwd: str | None


class WorkspaceFile(NamedTuple):
    """What the folder wants its agents to know."""

    name: str
    text: str


WORKSPACE_FILES = ("AGENTS.md", "SEGUE.md")
LONGEST_FILE = 20_000
_TAG = "workspace-file"
_TOLD = "The working directory holds this for whoever works there:"
_FILE = re.compile(rf'<{_TAG} name="(?P<name>[^"\n]+)">\n(?P<text>.*?)\n</{_TAG}>', re.DOTALL)

_RULES = """\
You are a personal agent. You answer in the language you are spoken to in, briefly, in Markdown.

Earlier conversations are kept. When somebody speaks of something that is not in this one, use session_search before
you ask them to repeat it. When you learn something that will matter later, write it down with memory. Do not say that
you did something that you did not do; when the outcome of a tool is unknown, find out before you go on."""


_SUBAGENT = """\
Another agent has given you a task. Nobody reads along and nobody answers questions: do it with what you were told, and
end with one answer that says what you found or did, and what you could not do."""


def system_prompt(place: Place, tools: Sequence[str], files: Sequence[WorkspaceFile] = ()) -> str:
    """The same bytes for the same place, tools and files."""
    return "\n\n".join([_rules(tools), _where(place), *map(_quoted, files)])


def subagent_prompt(prompt: str) -> str:
    """What an agent is told that works for another one."""
    return f"{prompt}\n\n{_SUBAGENT}"


def files_in(prompt: str) -> list[WorkspaceFile]:
    """The files that a prompt was written with."""
    return [WorkspaceFile(found["name"], found["text"]) for found in _FILE.finditer(prompt)]


def _quoted(file: WorkspaceFile) -> str:
    text = file.text.replace(f"</{_TAG}>", f"<{_TAG}>")  # nothing in a file ends it early
    left_out = len(text) - LONGEST_FILE
    if left_out > 0:
        text = f"{cut(text, LONGEST_FILE)}\n[… {left_out:,} characters are left out]"
    return f'{_TOLD}\n<{_TAG} name="{file.name}">\n{text}\n</{_TAG}>'


def _rules(tools: Sequence[str]) -> str:
    lines = _RULES
    if "session_search" not in tools:
        lines = lines.partition("\n\nEarlier conversations")[0]
    return lines


def _where(place: Place) -> str:
    zone = place.began.tzname() or "UTC"
    told = f"This conversation began on {place.began:%A, %d %B %Y} at {place.began:%H:%M} {zone}, on {place.source}."
    return told if place.cwd is None else f"{told} The working directory is {one_line(place.cwd)}."
