"""Whether something may be done is asked where the agent was asked for it, and answered by whoever asked."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from segue.agent.door import Door
from segue.core.events import ToolCall
from segue.core.inbox import Entry, InboxState
from segue.core.outbox import What
from segue.core.preferences import decode
from segue.core.text import printable, shorten
from segue.ports.store import Transaction
from segue.sessions.delivering import Posting, envelope_of, post

SECONDS = 60.0
_LONGEST_RISK = 2_000
_YES = frozenset({"yes", "y", "ok", "allow", "👍"})
_NO = frozenset({"no", "n", "deny", "👎"})


@dataclass(slots=True)
class _Question:
    person: str
    answer: "asyncio.Future[bool]"


class Agreements:
    """The questions that are open, at most one in a lane."""

    def __init__(self, door: Door, posting: Posting, sent: Callable[[], None], seconds: float = SECONDS) -> None:
        self._door = door
        self._posting = posting
        self._sent = sent
        self._seconds = seconds
        self._open: dict[str, _Question] = {}

    async def ask(self, entry: Entry, call: ToolCall, risk: str) -> bool:
        """Ask the person who wrote a message; nobody's answer is no."""
        question = _Question(entry.person, asyncio.get_running_loop().create_future())
        self._open[entry.lane_key] = question
        await self._door.write(self._post, entry, call, risk)
        self._sent()
        try:
            async with asyncio.timeout(self._seconds):
                return await question.answer
        except TimeoutError:
            return False
        finally:
            self._open.pop(entry.lane_key, None)

    def is_answer(self, entry: Entry) -> bool:
        """Whether a message answers the question that is open in its lane."""
        question = self._open.get(entry.lane_key)
        return question is not None and question.person == entry.person and _meaning(entry.text) is not None

    async def answer(self, entry: Entry) -> None:
        """Take a message as an answer: it is crossed off, and nothing else answers it."""
        question = self._open.get(entry.lane_key)
        is_ours = await self._door.write(_cross_off, entry)
        if is_ours and question is not None and not question.answer.done():
            question.answer.set_result(_meaning(entry.text) is True)

    def _post(self, tx: Transaction, entry: Entry, call: ToolCall, risk: str) -> None:
        told = shorten(printable(risk), _LONGEST_RISK)
        text = f"May I? {told}\n\nAnswer yes or no; after {self._seconds:g} seconds it is no."
        envelope = envelope_of(entry, f"{entry.id}:{call.id}:{time.time()}")
        post(tx, self._posting, envelope, text, What.NOTICE, time.time(), _sending_in(tx, entry))


def _sending_in(tx: Transaction, entry: Entry) -> str | None:
    """What was chosen with /send in the conversation that goes on there."""
    lane = tx.lanes.find(entry.lane_key)
    session = tx.sessions.find(lane.session_id or "") if lane else None
    return decode(session.model_config).send if session else None


def _meaning(text: str) -> bool | None:
    word = text.strip().strip(".!").lower()
    return True if word in _YES else False if word in _NO else None


def _cross_off(tx: Transaction, entry: Entry) -> bool:
    found = tx.inbox.find(entry.id)
    if found is None or found.state != InboxState.WAITING:
        return False
    tx.inbox.change([entry], state=str(InboxState.DONE), reason="It answered a question.", ended_at=time.time())
    return True
