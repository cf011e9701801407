"""What the pane beside the list says of a conversation: who and when, its parts and origins, what was said last."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from segue.cli.browsing.cells import fitted, line, lines, steady
from segue.cli.output import cut
from segue.core.messages import SUMMARY_SEQ, Message
from segue.core.moments import ago
from segue.core.recap import Line, Voice, recap
from segue.core.sessions import Session, standing
from segue.core.snippets import stretches
from segue.core.text import count, one_line
from segue.core.titles import shorten_title
from segue.ports.store import Transaction
from segue.sessions import finding
from segue.sessions.searching import Hit

_LAST_MESSAGES = 30
_PASSAGES_SHOWN = 3
_DOT = " · "
_NARROWEST = 8
_LONGEST = 2000  # characters of a message; the recap shows fewer
_PARTS_SHOWN = 5  # those next to the one that is looked at
_SIGNS = {
    Voice.USER: ("●", "$accent"),
    Voice.ASSISTANT: ("◆", "$success"),
    Voice.TOOLS: (" ", "$quiet"),
    Voice.SUMMARY: ("■", "$quiet"),
}


class Preview(NamedTuple):
    """A conversation as the pane shows it, looked at from one of its parts."""

    session: Session
    parts: list[Session]
    tags: list[str]
    origins: list[tuple[str, str]]
    messages: list[Message]


def look_at(tx: Transaction, session_id: str) -> Preview:
    session = finding.get_session(tx, session_id)
    tags = tx.sessions.tags([session_id]).get(session_id, [])
    last = tx.messages.last(session_id, _LAST_MESSAGES)
    messages = [message._replace(content=(message.content or "")[:_LONGEST]) for message in last]
    return Preview(session, _parts(tx, session), tags, _origins(tx, session), messages)


def _parts(tx: Transaction, session: Session) -> list[Session]:
    parts = finding.find_parts(tx, session.id)
    if session.id in {part.id for part in parts}:
        return parts
    return [*finding.find_ancestors(tx, session), session]  # a part that another one was preferred to


def _origins(tx: Transaction, session: Session) -> list[tuple[str, str]]:
    links = [
        ("Branched from", session.branched_from),
        ("Begun anew after", session.reset_from),
        ("Started by", session.spawned_by),
    ]
    return [(how, _name(tx.sessions.find(origin)) or line(origin)) for how, origin in links if origin]


def _name(session: Session | None) -> str:
    return line(session.title or session.first_line or session.id) if session else ""


def drawn(preview: Preview, hits: Sequence[Hit], now: float, width: int, height: int) -> Content:
    """The pane's text, wrapped for its width, with as much of what was said last as its height has room for."""
    about = [*_facts(preview, now, width), *_lineage(preview, width), *_passages(hits, width)]
    room = height - sum(map(_height, about))
    return Content("\n").join([*about, *_said(preview, width, room)])


def _facts(preview: Preview, now: float, width: int) -> list[Content]:
    session, parts = preview.session, preview.parts
    began = datetime.fromtimestamp(parts[0].started_at).astimezone().strftime("%Y-%m-%d %H:%M")
    facts = [
        session.id,
        session.source,
        count(sum(part.message_count for part in parts), "message"),
        f"began {began}",
        f"active {ago(session.last_active_at, now)}",
        standing(session),
        *(["pinned"] if session.pinned else []),
        *([f"part {_place(preview) + 1} of {len(parts)}"] if len(parts) > 1 else []),
    ]
    return [
        *Content.styled(_name(session), "bold").wrap(width),
        *(Content.styled(text, "$quiet") for text in flowed(list(map(line, facts)), width)),
        *(Content.styled(text, "$accent") for text in flowed(list(map(line, preview.tags)), width)),
        Content(""),
    ]


def flowed(facts: list[str], width: int) -> list[str]:
    """Facts side by side, as many to a line as fit."""
    found: list[str] = []
    for fact in facts:
        longer = f"{found[-1]}{_DOT}{fact}" if found else fact
        if found and cell_len(longer) <= width:
            found[-1] = longer
        else:
            found.append(fact)
    return found


def _lineage(preview: Preview, width: int) -> list[Content]:
    shown = [] if len(preview.parts) < 2 else _part_lines(preview, width)
    origins = [Content.assemble((f"{how} ", "$quiet"), name) for how, name in preview.origins]
    return [*shown, *origins, Content("")] if shown or origins else []


def _passages(hits: Sequence[Hit], width: int) -> list[Content]:
    """What the filter found here."""
    return [*(_passage(hit, width) for hit in hits[:_PASSAGES_SHOWN]), Content("")] if hits else []


def _passage(hit: Hit, width: int) -> Content:
    voice = Voice.USER if hit.found.role == "user" else Voice.ASSISTANT
    sign, colour = _SIGNS[Voice.SUMMARY if hit.found.seq == SUMMARY_SEQ else voice]
    found = stretches(one_line(hit.snippet))
    text = Content.assemble(*((steady(piece), "bold $accent" if is_match else "$quiet") for piece, is_match in found))
    return _behind(sign, colour, text, width)


def _part_lines(preview: Preview, width: int) -> list[Content]:
    at = _place(preview)
    first, end = window(at, len(preview.parts), _PARTS_SHOWN)
    return [_part_line(number, preview.parts[number], width, is_marked=number == at) for number in range(first, end)]


def _place(preview: Preview) -> int:
    return next(at for at, part in enumerate(preview.parts) if part.id == preview.session.id)


def _part_line(number: int, part: Session, width: int, *, is_marked: bool) -> Content:
    messages = count(part.message_count, "message")
    room = max(width - len(messages) - 4, _NARROWEST)
    name = fitted(shorten_title(f"{number + 1}  {_name(part)}", room, cut), room)
    return Content.assemble(
        ("▸ " if is_marked else "  ", "$accent"),
        (name, "bold" if is_marked else "$quiet"),
        ("  " + messages, "$quiet"),
    )


def window(at: int, length: int, most: int) -> tuple[int, int]:
    """The beginning and the end of so many neighbours of a place in a list."""
    first = max(0, min(at - most // 2, length - most))
    return first, min(first + most, length)


def _said(preview: Preview, width: int, room: int) -> list[Content]:
    """The newest messages, and how many came before them."""
    found: list[Content] = []
    earlier = preview.session.message_count
    for place, message in enumerate(reversed(preview.messages), 1):
        spoken = [_said_line(one, width) for one in recap([message]).lines]
        if found and sum(map(_height, [*spoken, *found])) >= room:
            break
        if spoken:
            found, earlier = [*spoken, *found], preview.session.message_count - place
    before = [Content.styled(f"… {count(earlier, 'earlier message')}", "$quiet")] if found and earlier > 0 else []
    return [*before, *(found or [Content.styled("Nothing has been said yet.", "$quiet")])]


def _height(drawing: Content) -> int:
    return drawing.plain.count("\n") + 1


def _said_line(spoken: Line, width: int) -> Content:
    """A message behind its sign, its further lines below its first word."""
    sign, colour = _SIGNS[spoken.voice]
    text = Content.styled(lines(spoken.text), "$quiet" if spoken.voice is Voice.TOOLS else "")
    return _behind(sign, colour, text, width)


def _behind(sign: str, colour: str, text: Content, width: int) -> Content:
    wrapped = text.wrap(max(width - 2, _NARROWEST))
    return Content.assemble((f"{sign} ", colour), Content("\n  ").join(wrapped))


class PreviewText(Static):
    """The text in the pane, wrapped again when it gets another width."""

    def __init__(self, clock: Callable[[], float], room: Callable[[], int]) -> None:
        super().__init__()
        self._clock = clock
        self._room = room
        self.preview: Preview | None = None
        self.hits: Sequence[Hit] = ()

    def on_resize(self) -> None:
        self.draw()

    def draw(self) -> None:
        if self.preview is None:
            self.update(Content(""))
            return
        width, height = max(self.content_size.width, _NARROWEST), self._room()
        self.update(drawn(self.preview, self.hits, self._clock(), width, height))


class PreviewPane(VerticalScroll):
    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(id="preview")
        self._text = PreviewText(clock, lambda: self.size.height - self._text.gutter.height)

    def compose(self) -> ComposeResult:
        yield self._text

    def on_resize(self) -> None:
        self._text.draw()

    def show(self, preview: Preview | None, hits: Sequence[Hit] = ()) -> None:
        before = self._text.preview
        if preview is None or before is None or preview.session.id != before.session.id:
            self.scroll_home(animate=False)
        self._text.preview, self._text.hits = preview, hits
        self._text.draw()
