"""An answer that people can read while it is written: one message that says more and more.

What is shown on the way is good Markdown at every moment: what is open is closed, half a mark waits for its other half,
and the cursor stands at the end. It never grows past one message; what does not fit waits until the answer is complete.
Then the message says what was meant, to the letter, and the rest follows in messages of its own.

Moments are seconds of any clock that does not go back.
"""

import re
from typing import NamedTuple

from segue.core.chunks import Measure, characters, first_chunk
from segue.core.fences import lines_of, open_fence
from segue.core.silence import may_be_silent

PATIENCE = 3
"""After so many intervals even a few new characters are shown."""

_AHEAD = 4
"""What stands behind so many messages does not change the first one, and is not looked at."""
_HALF_A_FENCE = re.compile(r"[ \t]*(?:`{1,2}|~{1,2}|`{3,}[^`]*|~{3,}.*)")
_BACKTICKS = re.compile("`+")
_BOLD = "**"


class Streaming(NamedTuple):
    """How answers are shown while they are written."""

    edit_interval: float = 1.0
    """Seconds that pass at least between two edits."""
    buffer_threshold: int = 40
    """Characters that an edit adds at least."""
    cursor: str = "▌"
    is_enabled: bool = True


class Shown(NamedTuple):
    """What people see of an answer; without a text, that it was begun."""

    at: float
    text: str = ""
    length: int = 0
    """How many characters of the answer had come by then."""


class Wait(NamedTuple):
    """Nothing is to be shown now."""

    until: float | None = None
    """When something is to be shown if nothing new comes; None if that changes nothing."""
    not_before: float = 0.0
    """When it is looked again at the earliest, whatever comes."""


def show(
    answer: str, shown: Shown, now: float, streaming: Streaming, longest: int, measure: Measure = characters
) -> Shown | Wait:
    """What to show of an answer of which so much has come by now."""
    fresh = len(answer) - shown.length
    if not streaming.is_enabled or fresh <= 0 or may_be_silent(answer):
        return Wait()
    next_edit = shown.at + streaming.edit_interval
    if shown.text and now < next_edit:
        return Wait(next_edit)
    patient_until = shown.at + PATIENCE * streaming.edit_interval
    if fresh < streaming.buffer_threshold and now < patient_until:
        return Wait(patient_until)
    text = unfinished(answer, streaming.cursor, longest, measure)
    if text in ("", shown.text):
        return Wait(not_before=now + streaming.edit_interval)
    return Shown(now, text, len(answer))


def unfinished(answer: str, cursor: str, longest: int, measure: Measure = characters) -> str:
    """An answer that is still being written, as it is shown; empty when nothing of it can be shown."""
    ahead = len(answer) - len(answer.lstrip())
    body = _without_half_a_fence(answer[: ahead + _AHEAD * max(longest, 1)]).rstrip()
    room = longest
    while room > 0 and body:
        beginning = first_chunk(body, room, measure)
        text = _with_cursor(balanced(beginning), cursor)
        excess = measure(text) - longest
        if excess <= 0:
            return text
        room = min(room, measure(beginning)) - excess
    return ""


def balanced(text: str) -> str:
    """The same text with everything closed that it leaves open: a block of code, else code in a line and bold words."""
    if fence := open_fence(text):
        return f"{text}\n{fence.closing}"
    start = _start_of_last_paragraph(text)
    closed = text[:start] + _bold_closed(_code_closed(text[start:]))
    return text if open_fence(closed) else closed  # a backtick less can make a fence of what was none


def _without_half_a_fence(answer: str) -> str:
    """The answer without a last line that may become a fence."""
    before, _, last = answer.rpartition("\n")
    return before if _HALF_A_FENCE.fullmatch(last) else answer


def _with_cursor(text: str, cursor: str) -> str:
    if not text.strip():
        return ""
    if not cursor:
        return text
    return f"{text}\n{cursor}" if lines_of(text)[-1].is_fence else text + cursor  # a fence stands alone on its line


def _start_of_last_paragraph(text: str) -> int:
    start = len(text)
    for line in reversed(lines_of(text)):
        if line.is_fence or not text[line.start : line.end].strip():
            break
        start = line.start
    return start


def _code_closed(text: str) -> str:
    """A paragraph whose last code within a line is closed."""
    opened = _outside_code(text)[1]
    if opened is None:
        return text
    code = text[opened.end() :].rstrip("` \t\r\n")  # without half of what closes it
    return text[: opened.end()] + code + opened[0] if code else text[: opened.start()].rstrip()


def _bold_closed(text: str) -> str:
    """A paragraph whose last bold words are closed."""
    if not _leaves_bold_open(text):
        return text
    bare = text.rstrip("* \t\n")  # half of what closes them, or all of what opens them
    return bare + _BOLD if _leaves_bold_open(bare) else bare


def _leaves_bold_open(text: str) -> bool:
    return _outside_code(text)[0].count(_BOLD) % 2 == 1


def _outside_code(text: str) -> tuple[str, re.Match[str] | None]:
    """What is not code in a paragraph, and the backticks that nobody closed."""
    words: list[str] = []
    at = 0
    opened: re.Match[str] | None = None
    for run in _BACKTICKS.finditer(text):
        if opened is None:
            words.append(text[at : run.start()])
            opened = run
        elif len(run[0]) == len(opened[0]):
            at, opened = run.end(), None
    return "".join(words) + (text[at:] if opened is None else ""), opened
