"""The index follows the messages, a batch at a time, and never stands in their way."""

import threading
from collections.abc import Callable

from segue.core.errors import IndexDamaged, StoreBusy, StoreError
from segue.ports.store import IndexState

BATCH = 128
"""As many messages may wait before they are taken in: enough to be cheap, few enough to be looked through."""
_LARGE_BATCH = 512
_SMALL_BATCH = 8
"""For those who have other things to do as well."""
_AT_ONCE = 10_000
"""Characters of these: going through more takes longer than anybody should wait."""


class Indexing:
    """When to take messages into the index, and what to do when that fails."""

    def __init__(
        self,
        state: Callable[[], IndexState],
        index_more: Callable[[int, float], IndexState],
        begin_again: Callable[[float], None],
        count_characters: Callable[[int], int],
        patience: float,
    ) -> None:
        self._state = state
        self._index_more = index_more
        self._begin_again = begin_again
        self._count_characters = count_characters
        self._patience = patience
        self._indexed_to: int | None = None
        self._newest = 0
        self._is_catching_up = False
        self._beside = threading.Lock()

    def follow(self, newest: int, added: int = 1) -> None:
        """Messages were added. Whatever goes wrong from here on is no business of whoever added them.

        As many are taken in as were added and a batch more, so that who adds thousands at once leaves none behind.
        """
        self.note(newest)
        for _ in range(0, added + _LARGE_BATCH, _LARGE_BATCH):
            if not (self._is_behind() and self._follow(_LARGE_BATCH)):
                return

    def note(self, newest: int) -> None:
        """A message was added, and somebody calls `follow_a_little` when there is time."""
        self._newest = max(self._newest, newest)

    def follow_a_little(self) -> bool:
        """Take a few messages in if many wait, long ones in a thread; whether it is worth while to go on at once."""
        if self._beside.locked() or not (self._is_catching_up or self._is_behind()):
            return False
        try:
            is_much = self._count_characters(_SMALL_BATCH) > _AT_ONCE
        except StoreError:
            return False  # whoever searches hears of it
        if is_much:
            self._begin_beside()
            return False
        has_come_on = self._follow(_SMALL_BATCH)
        self._is_catching_up = self._newest - (self._indexed_to or 0) >= _SMALL_BATCH
        return has_come_on and self._is_catching_up

    def _is_behind(self) -> bool:
        """Whether so many messages wait that it is time to take them in."""
        try:
            if self._indexed_to is None:
                self._indexed_to = self._state().indexed_to
        except StoreError:
            return False
        return self._newest - self._indexed_to >= BATCH

    def _begin_beside(self) -> None:
        self._beside.acquire()
        try:
            threading.Thread(target=self._follow_beside, name="segue-index", daemon=True).start()
        except RuntimeError:  # there can be no more threads; whoever searches looks through what waits
            self._beside.release()

    def _follow_beside(self) -> None:
        try:
            self._follow(_LARGE_BATCH)
        finally:
            self._beside.release()

    def _follow(self, most: int) -> bool:
        """Take messages in; whether any were."""
        try:
            self._indexed_to = self._next(most, patience=0).indexed_to
        except StoreBusy:
            return False  # somebody else is writing, and will do it or leave it to the next
        except StoreError:
            self._indexed_to = self._newest  # heard of by whoever searches; tried again a batch later
        return True

    def catch_up(self, advance: Callable[[int], object], *, anew: bool) -> None:
        if anew:
            self._begin_again(self._patience)
        before = 0
        while True:
            state = self._next(_LARGE_BATCH, self._patience)
            advance(state.indexed_to - before)
            before = state.indexed_to
            if state.indexed_to >= state.last_id:
                return

    def _next(self, most: int, patience: float) -> IndexState:
        try:
            return self._index_more(most, patience)
        except IndexDamaged:
            self._begin_again(patience)
            return self._index_more(most, patience)
