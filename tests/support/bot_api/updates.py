"""The updates that wait for a bot: kept until an offset or a webhook confirms them."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from bot_api.refusals import conflict

_FIRST = 700_000_001
_ONLY_IF_ASKED_FOR = {"chat_member", "message_reaction", "message_reaction_count"}
_MOST = 100
_FUTURE = 10
_PAST = 2_000_000


@dataclass
class Entry:
    update_id: int
    text: str
    """The update as JSON, which need not be what a JSON library would write."""
    is_out_of_order: bool
    """It comes in spite of the offset, once."""
    was_given: bool = False


class Updates:
    def __init__(self) -> None:
        self.pending: list[Entry] = []
        self.all: dict[int, dict[str, Any]] = {}
        """Everything that ever came, by its id, the latest under each."""
        self.allowed: list[str] = []
        self.changed = asyncio.Event()
        self.next_id = _FIRST
        self._poll: asyncio.Future[str] | None = None

    def add(
        self, update: dict[str, Any], *, update_id: int | None = None, out_of_order: bool = False
    ) -> dict[str, Any]:
        """Without an id it gets the next one. Kinds that the bot does not want are dropped."""
        whole = {"update_id": self.new_id() if update_id is None else update_id} | update
        self.all[whole["update_id"]] = whole
        if out_of_order or self._is_wanted(whole):
            self.put(Entry(whole["update_id"], json.dumps(whole), out_of_order))
        return whole

    def put(self, entry: Entry) -> None:
        self.pending.append(entry)
        self.changed.set()
        self._wake("news")

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def forget(self, entry: Entry) -> None:
        self.pending = [one for one in self.pending if one is not entry]

    def end_poll(self, by: str) -> None:
        self._wake(f"terminated by {by}")

    @property
    def is_polled(self) -> bool:
        return self._poll is not None and not self._poll.done()

    async def take(self, offset: int, limit: int, timeout: float) -> list[Entry]:
        """What comes next, after everything below the offset was forgotten; waits when there is nothing."""
        self._confirm(offset)
        self.end_poll("other getUpdates request; make sure that only one bot instance is running")
        deadline = asyncio.get_running_loop().time() + timeout
        while not (found := self.pending[: min(limit, _MOST)]):
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or not await self._news(left):
                break
        for entry in found:
            entry.was_given = True
        return found

    async def _news(self, seconds: float) -> bool:
        poll = self._poll = asyncio.get_running_loop().create_future()
        try:
            reason = await asyncio.wait_for(poll, seconds)
        except TimeoutError:
            return False
        if reason != "news":
            raise conflict(reason)
        return True

    def _wake(self, reason: str) -> None:
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(reason)

    def _confirm(self, offset: int) -> None:
        if offset < 0:  # counted from the end
            self.pending = self.pending[offset:]
        elif self.next_id - _PAST <= offset <= self.next_id + _FUTURE:  # any other is taken for none
            self.pending = [one for one in self.pending if one.update_id >= offset or self._still_comes(one)]

    def _still_comes(self, entry: Entry) -> bool:
        return entry.is_out_of_order and not entry.was_given

    def _is_wanted(self, update: dict[str, Any]) -> bool:
        kinds = set(update) - {"update_id"}
        return bool(kinds & set(self.allowed)) if self.allowed else not kinds & _ONLY_IF_ASKED_FOR
