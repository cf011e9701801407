"""An agent at work for another one, in a session of its own that is kept like any other."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, tzinfo

from segue.agent.compression import Compression
from segue.agent.door import Door
from segue.agent.holding import Holder, Presence
from segue.agent.turn import Agrees, TurnRunner
from segue.core.errors import SegueError
from segue.core.events import Event, Failed, Reply
from segue.core.leases import Lease
from segue.core.messages import draft
from segue.core.preferences import Preferences, decode
from segue.hookspecs import SubagentStopped, Tell, nobody
from segue.ports.agent import Agent
from segue.ports.store import Transaction
from segue.ports.tool import ToolFailed
from segue.sessions.delegating import Ending, begin_subagent
from segue.sessions.finding import find_tip, get_session
from segue.sessions.starting import end_session


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a subagent needs of the world."""

    door: Door
    presence: Presence
    agent_for: Callable[[Preferences], Awaitable[Agent]]
    """One that hands on nothing itself."""
    agrees: Agrees
    compression: Callable[[Holder], Compression | None]
    new_session_id: Callable[[], str]
    prompt: Callable[[datetime], str]
    zone: tzinfo
    tell: Tell = nobody


class _Outcome:
    """What a subagent said last, and what went wrong."""

    def __init__(self) -> None:
        self.text = ""
        self.failure: str | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case Reply(text=text):
                self.text = text
            case Failed(sentence):
                self.failure = sentence


async def delegate(place: Workplace, task: str, session_id: str) -> str:
    """Have a task of a session done by another agent; what it says in the end. Whoever is cancelled stops it."""
    holder, outcome = Holder(place.presence), _Outcome()
    subagent_id, now = place.new_session_id(), time.time()
    prompt = place.prompt(datetime.fromtimestamp(now, place.zone))
    chosen = decode((await place.door.read(get_session, session_id)).model_config)
    runner = TurnRunner(place.door, holder, await place.agent_for(chosen), place.agrees, place.compression(holder))

    def opening(tx: Transaction) -> tuple[str, Lease]:
        begun = begin_subagent(tx, session_id, subagent_id, prompt, now)
        return begun.id, holder.claim(tx, begun.id, begun.principal)

    ending = Ending.FAILED
    try:
        await runner.answer(opening, draft("user", task, now), outcome, chosen)
        ending = Ending.FAILED if outcome.failure else Ending.COMPLETED
    except asyncio.CancelledError:
        ending = Ending.STOPPED
        raise
    finally:
        await _leave(place.door, holder, subagent_id, ending)
        place.tell(SubagentStopped(subagent_id, session_id, ending))
    if outcome.failure:
        raise ToolFailed(f"The subagent could not finish: {outcome.failure} Its session is {subagent_id}.")
    return f"{outcome.text}\n\n(Session {subagent_id} of the subagent.)"


async def _leave(door: Door, holder: Holder, subagent_id: str, ending: Ending) -> None:
    with suppress(SegueError):  # whatever went wrong first is the one to hear about
        await door.write(_end, subagent_id, ending)
        await holder.let_go()


def _end(tx: Transaction, subagent_id: str, ending: Ending) -> None:
    if tx.sessions.find(subagent_id) is not None:  # it was never begun when the first transaction failed
        end_session(tx, find_tip(tx, subagent_id), ending, time.time())
