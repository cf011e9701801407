"""The watcher: every few minutes it looks after what nobody is talking about.

It lets the agent of an expired session write down what it wants to remember, tells hooks, forgets lanes that nobody
uses and empties the trash. It holds the session, never the lane: whoever writes meanwhile is answered at once.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from segue.agent.door import Door
from segue.agent.holding import Holder, Presence
from segue.agent.remembering import Remembered, readable, remember
from segue.core.compaction import Need
from segue.core.errors import InUse, LeaseLost, StoreError
from segue.core.moments import DAY
from segue.core.preferences import Preferences
from segue.core.sessions import Session
from segue.core.silence import FAREWELL_REQUEST
from segue.core.sizes import UNKNOWN_WINDOW, tokens_in
from segue.core.text import count, one_line
from segue.gateway.at_work import logged_for
from segue.gateway.live import LiveAgents
from segue.gateway.outages import log_store_error
from segue.hookspecs import SessionFinalized, Tell
from segue.ports.agent import Agent, Task
from segue.ports.failpoints import Point, reached
from segue.sessions.clearing import clear_lanes, clear_rows
from segue.sessions.finalising import Farewell, Try, end_farewell, ended_among, find_due, find_left, take_leave
from segue.sessions.opening import Opened, Rules
from segue.sessions.retaining import Keeping, is_due
from segue.sessions.tidying import tidy

WATCH_SECONDS = 300.0
MOST_FAREWELLS = 4
"""Agents that remember at the same time."""

_log = logging.getLogger(__name__)


def _always(_session: Session) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Watching:
    """How often the watcher looks, and by which rules."""

    seconds: float = WATCH_SECONDS
    can_take_notes: Callable[[Session], bool] = _always
    """Whether the agent of a session can write something down."""
    live: LiveAgents = field(default_factory=LiveAgents)
    """The agents that are kept, and go when nobody needs them any more."""
    max_age: timedelta | None = None
    """After how long a lane that nobody used is forgotten."""
    keeping: Keeping | None = None
    """For how long things are kept in the trash."""
    sweep: Callable[[], int] | None = None
    """Removes the files that nothing needs any more; how many."""


class Watcher:
    """Looks after lanes in which nothing happens."""

    def __init__(
        self,
        door: Door,
        presence: Presence,
        rules: Rules,
        agent_for: Callable[[Opened, Preferences], Awaitable[Agent]],
        watching: Watching,
        tell: Tell,
    ) -> None:
        self._door = door
        self._presence = presence
        self._rules = rules
        self._agent_for = agent_for
        self._watching = watching
        self._tell = tell
        self._woken = asyncio.Event()
        self._free = asyncio.Semaphore(MOST_FAREWELLS)
        self._sweep_at = 0.0

    def wake(self) -> None:
        """A session was left owing: its agent need not wait for the next look."""
        self._woken.set()

    async def run(self) -> None:
        """Look, again and again, until cancelled."""
        next_at = time.monotonic() + self._watching.seconds
        while True:
            if await self._is_woken(next_at - time.monotonic()):
                await self._trying(self._look_at_left)
                continue
            await self._trying(self.look)
            await self._trying(self.clear)
            await self._trying(self.let_go)
            next_at = time.monotonic() + self._watching.seconds

    async def look(self) -> None:
        """Bring to their end the sessions whose time is over."""
        await self._finalise_all(await self._door.read(find_due, self._rules, time.time()))

    async def clear(self) -> None:
        """Let go of what nobody needs any more."""
        max_age, keeping = self._watching.max_age, self._watching.keeping
        if max_age and (pruned := await self._door.write_beside(clear_lanes, time.time(), max_age)):
            _log.info("Forgot %s unused for %d days", count(pruned, "lane"), max_age.days)
        if keeping is not None:
            await self._tidy(keeping)
        if self._watching.sweep and time.monotonic() >= self._sweep_at:
            if gone := await asyncio.to_thread(self._watching.sweep):
                _log.info("Removed %s that no conversation uses", count(gone, "attachment"))
            self._sweep_at = time.monotonic() + DAY
        await self._door.write_beside(clear_rows)

    async def let_go(self) -> None:
        """Close the agents of conversations that have ended, and those that nobody has needed for long."""
        live = self._watching.live
        for session_id in await self._door.read(ended_among, live.sessions):
            await live.let_go(session_id)
        await live.let_go_idle()

    # A session

    async def _look_at_left(self) -> None:
        await self._finalise_all(await self._door.read(find_left))

    async def _finalise_all(self, session_ids: Sequence[str]) -> None:
        async with asyncio.TaskGroup() as group:
            for session_id in session_ids:
                group.create_task(self._one_of_few(session_id))

    async def _one_of_few(self, session_id: str) -> None:
        async with self._free:
            with logged_for(session_id=session_id):
                await self._trying(lambda: self._finalise(session_id))

    async def _finalise(self, session_id: str) -> None:
        session = await self._door.read(lambda tx: tx.sessions.find(session_id))
        if session is None:
            return
        can_take_notes = self._watching.can_take_notes(session)
        attempt = Try(uuid.uuid4().hex, self._presence.run.id, time.time(), can_take_notes)
        holder = Holder(self._presence)
        try:
            farewell = await self._door.write(take_leave, session_id, attempt, self._rules, holder.claim)
            if farewell is None:
                return
            await holder.now_holds(farewell.lease)
            if farewell.turn is None:
                await self._finalised(farewell, has_remembered=False)
            else:
                await self._remember(farewell)
        except InUse:
            return  # somebody has it open
        except LeaseLost:
            _log.info("Expired session continues: somebody wrote in it")
        finally:
            await holder.let_go()

    async def _remember(self, farewell: Farewell) -> None:
        """Let the agent write down what it wants to."""
        reached(Point.AFTER_FAREWELL_BEGINS)
        replies, trouble = await self._ask(farewell)
        reached(Point.BEFORE_FAREWELL_ENDS)
        is_over = await self._door.write(end_farewell, farewell, replies, trouble, time.time())
        if trouble:
            then = "given up" if is_over else "retried later"
            _log.warning("Agent wrote no notes of the expired session, %s: %s", then, one_line(trouble))
        if is_over:
            await self._finalised(farewell, has_remembered=trouble is None)

    async def _ask(self, farewell: Farewell) -> Remembered:
        session, chosen = farewell.opened.session, farewell.preferences
        need = Need(session.context_window or UNKNOWN_WINDOW, tokens_in(session.system_prompt or ""))
        view = readable(farewell.view, need, FAREWELL_REQUEST)
        if not view:
            return Remembered([])
        task = Task(session.id, session.system_prompt or "", view, model=chosen.model, effort=chosen.effort)
        try:
            return await remember(await self._agent_for(farewell.opened, chosen), task, FAREWELL_REQUEST)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - of an agent anything may come
            return Remembered([], str(error) or type(error).__name__)

    async def _finalised(self, farewell: Farewell, *, has_remembered: bool) -> None:
        lane, session = farewell.opened.lane, farewell.opened.session
        await self._watching.live.let_go(session.id)
        self._tell(SessionFinalized(lane.key, session.id, session.principal, has_remembered))

    # The rest

    async def _tidy(self, keeping: Keeping) -> None:
        if not await self._door.read(is_due, keeping, time.time()):
            return
        done = await self._door.write_beside(tidy, keeping, time.time())
        if done.left_trash:
            self._sweep_at = 0.0
        for number, what in (
            (done.leaving_trash, "{} will leave the trash for good in a day."),
            (done.left_trash, "{} left the trash for good."),
            (done.leaving_store, "{} will be moved to the trash in a day."),
            (done.left_store, "{} moved to the trash."),
        ):
            if number:
                _log.warning(what.format(count(number, "session")))

    async def _is_woken(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True

    async def _trying(self, act: Callable[[], Awaitable[None]]) -> None:
        try:
            await act()
        except StoreError as error:
            log_store_error(_log, "Sessions not looked after, retrying", error)
        except Exception:  # noqa: BLE001 - one session is not the others, and the watcher outlives them all
            _log.exception("Looking after sessions failed, retrying in %g s", self._watching.seconds)
