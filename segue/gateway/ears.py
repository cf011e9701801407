"""What people say in a lane while its agent works. It waits in the inbox until the agent has heard it."""

from collections import deque

from segue.agent.door import Door
from segue.agent.ears import Hears
from segue.core.inbox import Entry, InboxState, Want
from segue.core.messages import draft
from segue.gateway.holding import LaneHolder
from segue.ports.store import Transaction
from segue.sessions.answering import is_waiting, message_of
from segue.sessions.leasing import hold
from segue.sessions.recording import append_message


class LaneEars(Hears):
    """Open for as long as a turn runs. What comes too late for it waits for the next one."""

    def __init__(self, door: Door, holder: LaneHolder, turn_id: str, *, hears_all: bool = False) -> None:
        """`hears_all` says that whatever waits is to be heard: then nobody is heard before those who spoke earlier."""
        self._hears_all = hears_all
        self._door = door
        self._holder = holder
        self._turn_id = turn_id
        self._waiting: deque[Entry] = deque()
        self._passed_on: deque[Entry] = deque()
        self._is_open = True

    def hear(self, entry: Entry) -> bool:
        """Let the agent hear a message between two steps; False when the turn is over."""
        if self._is_open:
            self._waiting.append(entry)
        return self._is_open

    async def take(self) -> list[str]:
        """What still waits: who takes something back or edits it before it was heard is not answered for it."""
        heard = list(self._waiting)
        if not heard:
            return []
        entries = await self._door.read(self._still_waiting, heard)
        for _ in heard:
            self._waiting.popleft()
        self._passed_on += entries
        return [entry.text for entry in entries]

    def _still_waiting(self, tx: Transaction, heard: list[Entry]) -> list[Entry]:
        """Those of them who still wait; before them, perhaps, those who came too late for an earlier turn."""
        passed_on = {entry.id for entry in self._passed_on}
        first = heard[0]
        earlier = [one for one in tx.inbox.waiting(first.lane_key) if one.id < first.id] if self._hears_all else []
        late = [one for one in earlier if one.want == Want.PLAIN and one.id not in passed_on]
        return [*late, *(entry for entry in heard if is_waiting(tx, entry))]

    async def acknowledge(self, text: str) -> None:
        entry = next((one for one in self._passed_on if one.text == text), None)
        if entry is not None:
            self._passed_on.remove(entry)
        await self._door.write(self._record, entry, text)

    async def close(self) -> None:
        self._is_open = False

    def _record(self, tx: Transaction, entry: Entry | None, text: str) -> None:
        """What was heard becomes a message of the turn that heard it; what was taken back in that moment stays so."""
        hold(tx, self._holder.lease)
        turn = tx.turns.find(self._turn_id)
        assert turn is not None
        if entry is None:
            append_message(tx, turn.session_id, draft("user", text, turn.begun_at))
            return
        append_message(tx, turn.session_id, message_of(entry))
        if is_waiting(tx, entry):
            tx.inbox.change([entry], state=str(InboxState.RUNNING), turn_id=turn.id, session_id=turn.session_id)
