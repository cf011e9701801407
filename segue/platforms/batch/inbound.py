"""The file of a batch: a JSON object on each line, with a prompt. Nothing here asks anything.

The whole file is read before anything is asked, and whatever is wrong with it is one sentence that names the line.
"""

from collections.abc import Iterator
from typing import Any

from segue.core.batches import Line
from segue.core.errors import Invalid
from segue.core.json_text import parse_json
from segue.core.text import one_line, shorten, storable

LONGEST_ID = 200
_KEYS = ("id", "prompt", "agent")
_BOM = b"\xef\xbb\xbf"
_SHOWN = 60


def read_lines(body: bytes) -> list[Line]:
    """The prompts of a file, in order; lines with nothing on them are none."""
    lines: dict[str, Line] = {}
    for number, text in _texts(body):
        line = _line(number, _said(number, text))
        if other := lines.get(line.id):
            raise Invalid(f"Lines {other.number} and {number} have the same id {_shown(line.id)}.")
        lines[line.id] = line
    if not lines:
        raise Invalid('There are no prompts in the file: write one on each line, as in {"prompt": "Is there tea?"}.')
    return list(lines.values())


def _texts(body: bytes) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(body.removeprefix(_BOM).split(b"\n"), 1):
        try:
            text = raw.decode("utf-8").strip()
        except UnicodeDecodeError:
            raise Invalid(f"Line {number} is not UTF-8.") from None
        if text:
            yield number, text


def _said(number: int, text: str) -> dict[str, Any]:
    """The object of a line; each of its keys is known, and there once."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise Invalid(f"Line {number} has the key {_shown(twice)} twice.")
        return dict(pairs)

    try:
        said = parse_json(text, object_pairs_hook=once)
    except Invalid:
        raise
    except ValueError:
        raise Invalid(f"Line {number} is no JSON: {shorten(one_line(text), _SHOWN)}") from None
    if not isinstance(said, dict):
        raise Invalid(f'Line {number} is no JSON object: write {{"prompt": "…"}}.')
    if unknown := next((key for key in said if key not in _KEYS), None):
        raise Invalid(f"Line {number} has the unknown key {_shown(unknown)}: it knows {', '.join(_KEYS)}.")
    return said


def _line(number: int, said: dict[str, Any]) -> Line:
    name, prompt, agent = (said.get(key) for key in _KEYS)
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    elif name is None and "id" not in said:
        name = str(number)
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_ID or name != storable(name):
        raise Invalid(f"The id of line {number} must be a text of 1 to {LONGEST_ID} characters, or a whole number.")
    if not isinstance(prompt, str) or not prompt.strip():
        raise Invalid(f"Line {number} needs a prompt: a text that says what the agent is to do.")
    if "agent" in said and (not isinstance(agent, str) or not agent):
        raise Invalid(f"The agent of line {number} must be the name of one.")
    return Line(number, name, prompt, agent)


def _shown(text: str) -> str:
    return repr(shorten(one_line(text), _SHOWN))
