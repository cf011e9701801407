"""A person's place at the conversations: the session that is going on, what it has chosen, and who answers."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo

from segue.agent.door import Door
from segue.agent.holding import Holder
from segue.agent.turn import Agrees, Emit, TurnRunner
from segue.core.commands import Command
from segue.core.errors import SegueError
from segue.core.events import CarryOn, Event, Note
from segue.core.leases import Lease
from segue.core.messages import draft
from segue.core.preferences import Preferences, encode
from segue.core.sessions import Kind, Session
from segue.core.turns import Turn
from segue.ports.agent import Agent
from segue.ports.store import Filter, Transaction
from segue.sessions import titling
from segue.sessions.commanding import act
from segue.sessions.commanding.acts import Answer, Begin, Offer, Prefer, Situation, Switch, Title
from segue.sessions.finding import get_session
from segue.sessions.listing import list_sessions
from segue.sessions.starting import create_session, end_session
from segue.sessions.turning import find_broken_turn, give_up_turn

LEFT = "user_exit"
_SEARCH_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Kit:
    """What a chat needs of the world."""

    door: Door
    holder: Holder
    agent_for: Callable[[Preferences], Awaitable[Agent]]
    model_named: Callable[[Preferences], str]
    """What answers now, as people call it."""
    resolve_model: Callable[[str], str]
    new_session_id: Callable[[], str]
    prompt: Callable[[datetime], str]
    parts: Callable[[], list[tuple[str, int]]]
    """What else the model is told, and how many characters each takes."""
    agrees: Agrees
    zone: tzinfo
    source: str = "cli"
    cwd: str | None = None
    freshness: float = 3600.0
    """For how many seconds an answer that was cut off is carried on by itself."""


class Chat:
    """One conversation after another, at most one at a time."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._offered: tuple[str, ...] = ()
        self._title: str | None = None
        self._reset_from: str | None = None
        self._runner: TurnRunner | None = None
        self.session_id: str | None = None
        self.preferences = Preferences()

    # Speaking

    async def say(self, content: object, emit: Emit) -> None:
        """Say something; a first word begins a session."""
        now = time.time()
        runner = await self._ready()
        carried: list[str] = []

        def watch(event: Event) -> None:
            if isinstance(event, CarryOn):
                carried.append(event.session_id)
            emit(event)

        await runner.answer(self._opening(now), draft("user", content, now), watch, self.preferences)
        await self._name(emit)
        if carried:
            await self.resume(carried[-1])

    async def take_up(self, emit: Emit) -> bool:
        """Carry on an answer that was cut off, if there is one; whether there was."""
        if self.session_id is None:
            return False
        broken = await self._kit.door.read(find_broken_turn, self.session_id)
        if broken is None:
            return False
        if time.time() - broken.begun_at > self._kit.freshness:
            await self._kit.door.write(self._give_up, broken)
            emit(Note("The last answer was cut off long ago; say how to go on, or /retry."))
            return False
        emit(Note("The last answer was cut off; it is carried on."))
        runner = await self._ready()
        await runner.carry_on(self._claim, broken, emit, self.preferences)
        return True

    def steer(self, text: str) -> None:
        """Say something to the agent while it works."""
        if self._runner is not None:
            self._runner.steer(text)

    def stop(self) -> None:
        if self._runner is not None:
            self._runner.stop()

    # Going from one session to another

    async def command(self, command: Command) -> Answer:
        """Do what a command says; what only a front end can do is in the answer."""
        claimed: list[Lease] = []

        def claim(tx: Transaction, session_id: str) -> None:
            claimed.append(self._claim_session(tx, session_id))

        def work(tx: Transaction) -> Answer:
            claimed.clear()
            return act(tx, command, self._situation(claim))

        answer = await self._kit.door.write(work)
        if claimed:
            await self._kit.holder.now_holds(claimed[-1])
        if answer.is_index_damaged:
            self._kit.door.store.begin_index_again()
        await self._follow(answer)
        return answer

    async def resume(self, wanted: str) -> Answer:
        """Go on with the session that an id or a title means."""
        return await self.command(Command("resume", wanted))

    async def resume_latest(self) -> Answer | None:
        """Go on with the session of this place that was active last; None when there is none."""
        wanted = Filter(sources=(self._kit.source,), kinds=(Kind.INTERACTIVE,), min_messages=1)
        found = await self._kit.door.read(list_sessions, wanted, 1)
        return await self.resume(found[0].id) if found else None

    async def session(self) -> Session | None:
        """What is known of the session that is going on."""
        return await self._kit.door.read(get_session, self.session_id) if self.session_id else None

    async def close(self) -> None:
        """Leave. The conversation is kept, and everybody may go on with it."""
        if self.session_id is not None:
            await self._kit.door.write(end_session, self.session_id, LEFT, time.time())
        await self._kit.holder.end()

    @property
    def model(self) -> str:
        return self._kit.model_named(self.preferences)

    # How

    async def _ready(self) -> TurnRunner:
        agent = await self._kit.agent_for(self.preferences)
        self._runner = TurnRunner(self._kit.door, self._kit.holder, agent, self._kit.agrees)
        return self._runner

    def _opening(self, now: float) -> Callable[[Transaction], tuple[str, Lease]]:
        """Makes the session there is to be, and makes it ours, in the transaction that stores the first message."""
        if self.session_id is not None:
            return self._claim
        fresh = self._kit.new_session_id()
        began = datetime.fromtimestamp(now, self._kit.zone)
        session = Session(
            fresh,
            self._kit.source,
            started_at=now,
            cwd=self._kit.cwd,
            reset_from=self._reset_from,
            start_reason="reset" if self._reset_from else "new",
            model_config=encode(self.preferences),
            system_prompt=self._kit.prompt(began),
        )
        self.session_id = fresh

        def opening(tx: Transaction) -> tuple[str, Lease]:
            create_session(tx, session)
            return fresh, self._claim_session(tx, fresh)

        return opening

    def _claim(self, tx: Transaction) -> tuple[str, Lease]:
        assert self.session_id is not None
        return self.session_id, self._claim_session(tx, self.session_id)

    def _claim_session(self, tx: Transaction, session_id: str) -> Lease:
        return self._kit.holder.claim(tx, session_id, get_session(tx, session_id).principal)

    def _give_up(self, tx: Transaction, broken: Turn) -> None:
        _, lease = self._claim(tx)
        give_up_turn(tx, lease, broken, time.time(), "It was cut off, and not carried on in time.")

    async def _follow(self, answer: Answer) -> None:
        match answer.act:
            case Switch(session_id, _, preferences):
                self.session_id, self.preferences = session_id, preferences
                self._title = self._reset_from = None
            case Begin(_, preferences, reset_from):
                self.session_id, self.preferences = None, preferences
                self._title, self._reset_from = None, reset_from
                await self._kit.holder.let_go()
            case Prefer(preferences):
                self.preferences = preferences
            case Title(title):
                self._title = title
            case Offer(session_ids):
                self._offered = session_ids

    async def _name(self, emit: Emit) -> None:
        """Give the session the title that somebody chose before it began."""
        if self._title is None or self.session_id is None:
            return
        title, self._title = self._title, None
        try:
            await self._kit.door.write(titling.set_title, self.session_id, title)
        except SegueError as error:
            emit(Note(str(error)))

    def _situation(self, claim: Callable[[Transaction, str], object]) -> Situation:
        now = time.time()
        deadline = time.monotonic() + _SEARCH_SECONDS
        return Situation(
            session_id=self.session_id,
            now=now,
            zone=self._kit.zone,
            new_session_id=self._kit.new_session_id(),
            source=self._kit.source,
            cwd=self._kit.cwd,
            model=self.model,
            preferences=self.preferences,
            listed=self._offered,
            models=self._kit.resolve_model,
            system_prompt=self._kit.prompt(datetime.fromtimestamp(now, self._kit.zone)),
            parts=self._kit.parts(),
            time_left=lambda: deadline - time.monotonic(),
            claim=claim,
        )
