"""A person's place at the conversations: the session that is going on, what it has chosen, and who answers."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from functools import partial

from segue.agent.compression import Compression, need_of
from segue.agent.door import Door
from segue.agent.holding import Holder
from segue.agent.late import Late
from segue.agent.naming import Namer
from segue.agent.recollecting import PROVIDER
from segue.agent.telling import offered
from segue.agent.turn import Agrees, Emit, TurnRunner
from segue.core.commands import Command
from segue.core.compaction import Need
from segue.core.errors import InvalidSession, SegueError
from segue.core.events import CarryOn, Compressed, Event, Note, Reply, Steered
from segue.core.keys import KeyRules
from segue.core.leases import Lease
from segue.core.messages import Said, Spot, draft
from segue.core.preferences import Preferences, encode
from segue.core.sessions import Kind, Session
from segue.core.sources import SessionSource
from segue.core.turns import Turn
from segue.ports.agent import Agent, Task
from segue.ports.store import Filter, Transaction
from segue.sessions import titling
from segue.sessions.commanding import CHANGES, READS, act, looking
from segue.sessions.commanding.acts import (
    Answer,
    Begin,
    Handed,
    Offer,
    Prefer,
    Redone,
    Situation,
    Switch,
    Title,
    Undone,
    greets_nobody,
)
from segue.sessions.commanding.switching import compressed_note
from segue.sessions.finding import find_tip, get_named, get_session
from segue.sessions.listing import list_sessions
from segue.sessions.reading import view_of
from segue.sessions.recording import keep_system_prompt
from segue.sessions.starting import create_session, end_session
from segue.sessions.turning import close_left_turn, find_broken_turn, find_unheard, give_up_turn

LEFT = "user_exit"


def _nothing_meant(_word: str) -> str | None:
    return None


_PLAIN_KEYS = KeyRules()


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
    compression: Compression | None = None
    namer: Namer | None = None
    meant: Callable[[str], str | None] = _nothing_meant
    """The model that a word names for certain."""
    greets: Callable[[Preferences], bool] = greets_nobody
    """True if the agent greets whoever begins a conversation with these choices."""
    source: str = "cli"
    cwd: str | None = None
    keys: KeyRules = _PLAIN_KEYS
    homes: Mapping[str, SessionSource] = field(default_factory=dict)
    """The home channels that the settings name."""
    freshness: float = 3600.0
    """For how many seconds an answer that was cut off is carried on by itself."""


class _Watch:
    """Passes events on, and remembers what is to be done when the turn is over."""

    def __init__(self, emit: Emit, moved: Callable[[str], None]) -> None:
        self._emit = emit
        self._moved = moved
        self.carried_on: str | None = None
        self.later: Note | None = None
        """What is told as soon as the turn has begun."""
        self.offered: tuple[str, ...] = ()
        """The numbers of a list that the answer has."""

    def __call__(self, event: Event) -> None:
        note, self.later = self.later, None
        if note is not None:
            self._emit(note)
        match event:
            case CarryOn(session_id):
                self.carried_on = session_id
            case Compressed(session_id):
                self._moved(session_id)
            case Reply(provider=provider, text=text) if provider == PROVIDER:
                self.offered = offered([text]).ids or self.offered
        self._emit(event)


class Chat:
    """One conversation after another, at most one at a time."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._offered: tuple[str, ...] = ()
        self._undone: list[tuple[Spot, ...]] = []
        self._title: str | None = None
        self._reset_from: str | None = None
        self._runner: TurnRunner | None = None
        self.session_id: str | None = None
        self.preferences = Preferences()

    # Speaking

    async def say(self, content: object, emit: Emit, *, undo_from: Spot | None = None) -> None:
        """Say something; a first word begins a session. With `undo_from` it is said in place of what stands there."""
        now = time.time()
        if undo_from is not None:
            await self._kit.agent_for(self.preferences)  # nothing is taken back that nobody can answer again
        runner = self._ready()
        self._undone.clear()
        message, watch = draft("user", content, now), self._watched(emit)
        opening = self._opening(now, watch) if self.session_id is None else await self._claiming()
        is_well = await runner.answer(
            opening, message, watch, self.preferences, undo_from=undo_from, opened=self._opened
        )
        await self._followed_up(runner, watch, is_well)

    async def greet(self, emit: Emit) -> None:
        """Let the agent speak first in the conversation that was just begun, if it greets at all."""
        if not await asyncio.to_thread(self._kit.greets, self.preferences):
            return
        runner, watch = self._ready(), self._watched(emit)
        opening = self._opening(time.time(), watch)
        is_well = await runner.answer(opening, None, watch, self.preferences, opened=self._opened)
        await self._followed_up(runner, watch, is_well)

    async def _followed_up(self, runner: TurnRunner, watch: "_Watch", is_well: bool) -> None:
        """What was said meanwhile and came too late for the turn is answered in the next one."""
        while is_well and (waiting := await self._kit.door.read(find_unheard, str(self.session_id))):
            for line in waiting:
                watch(Steered(line.content))
            claim = await self._claiming()
            is_well = await runner.answer(claim, None, watch, self.preferences, opened=self._opened)
        self._offered = watch.offered or self._offered
        if is_well and self._kit.namer is not None:
            await self._kit.namer.consider(str(self.session_id))
        if watch.carried_on:
            await self.resume(watch.carried_on)

    async def take_up(self, emit: Emit) -> bool:
        """Carry on an answer that was cut off, if there is one; whether there was."""
        if self.session_id is None:
            return False
        broken = await self._kit.door.read(find_broken_turn, self.session_id)
        if broken is None:
            return False
        if time.time() - broken.last_at > self._kit.freshness:
            await self._kit.door.write(self._give_up, broken.turn)
            emit(Note("The last answer was cut off long ago; say how to go on, or /retry."))
            return False
        emit(Note("The last answer was cut off; it is carried on."))
        runner, watch = self._ready(), self._watched(emit)
        is_well = await runner.carry_on(await self._claiming(), broken.turn, watch, self.preferences)
        await self._followed_up(runner, watch, is_well)
        return True

    async def compress(self, focus: str, emit: Emit) -> None:
        """Go on from a summary of what was said first."""
        if self.session_id is None or self._kit.compression is None:
            raise InvalidSession("There is nothing to compress: nothing has been said yet.")
        tip, lease = await self._kit.door.write(await self._claiming())
        await self._kit.holder.now_holds(lease)
        session = await self._kit.door.read(get_session, tip)
        view = await self._kit.door.read(view_of, tip)
        if sum(message.role == "user" for message in view) > 1:
            await self._flush(lease, session, view, need_of(session), emit)
        done = await self._kit.compression.compress_on_request(lease, session, focus, self._watched(emit))
        if done is None:
            emit(Note("There is nothing to compress yet: all of it is what was said last."))

    async def _flush(self, lease: Lease, session: Session, view: Sequence[Said], need: Need, emit: Emit) -> None:
        assert self._kit.compression is not None
        chosen = self.preferences
        task = Task(session.id, session.system_prompt or "", view, model=chosen.model, effort=chosen.effort)
        agent = Late(partial(self._kit.agent_for, chosen))
        await self._kit.compression.flush(lease, task, need, agent, emit)

    def _watched(self, emit: Emit) -> "_Watch":
        return _Watch(emit, self._moved)

    def _moved(self, session_id: str) -> None:
        self.session_id = session_id
        self._undone.clear()

    def steer(self, text: str) -> bool:
        """Say something to the agent while it works; False when it does not work any more."""
        return self._runner is not None and self._runner.steer(text)

    def stop(self) -> None:
        if self._runner is not None:
            self._runner.stop()

    def abandon(self) -> None:
        """Let go of the answer, and leave it open for whoever carries it on."""
        if self._runner is not None:
            self._runner.abandon()

    # Going from one session to another

    async def command(self, command: Command) -> Answer:
        """Do what a command says; what only a front end can do is in the answer."""
        claimed: list[Lease] = []

        def claim(tx: Transaction, session_id: str) -> None:
            claimed.append(self._claim_session(tx, session_id))

        situation = self._situation(claim)

        def work(tx: Transaction) -> Answer:
            claimed.clear()
            if self.session_id is not None and command.name in CHANGES:
                claim(tx, self.session_id)  # nobody changes what somebody else is at work on
                if not situation.is_answering:
                    close_left_turn(tx, self.session_id, situation.now)
            return act(tx, command, situation)

        if command.name in READS:
            answer = await self._kit.door.read(act, command, situation)
        else:
            answer = await self._kit.door.write(work)
        if claimed:
            await self._kit.holder.now_holds(claimed[-1])
        if answer.is_index_damaged:
            self._kit.door.store.begin_index_again()
        await self._follow(answer)
        return answer

    async def resume(self, wanted: str) -> Answer:
        """Go on with the session that an id or a title means."""
        return await self.command(Command("resume", await self._kit.door.read(get_named, wanted)))

    async def find_latest(self) -> str | None:
        """The session of this place that was active last."""
        wanted = Filter(sources=(self._kit.source,), kinds=(Kind.INTERACTIVE,))
        found = await self._kit.door.read(list_sessions, wanted, 1)
        return found[0].id if found else None

    async def branch(self, wanted: str, *, is_exact: bool = False) -> Answer:
        """Go on in a branch of the session that an id or a title means, whoever has that one open.

        Of a conversation that was compressed that is its newest part, or exactly the one that was named.
        """

        def meant(tx: Transaction) -> tuple[str, str]:
            named = get_named(tx, wanted)
            tip = named if is_exact else find_tip(tx, named)
            return tip, compressed_note(tx, named, tip)

        self.session_id, note = await self._kit.door.read(meant)
        try:
            answer = await self.command(Command("branch"))
        except SegueError:
            self.session_id = None
            raise
        assert isinstance(answer.act, Switch)
        return answer._replace(act=replace(answer.act, note=note))

    async def session(self) -> Session | None:
        """What is known of the session that is going on."""
        return await self._kit.door.read(get_session, self.session_id) if self.session_id else None

    async def close(self) -> None:
        """Leave. The conversation is kept, and everybody may go on with it."""
        if self._kit.namer is not None:
            await self._kit.namer.close()
        if self.session_id is not None:
            await self._kit.door.write(self._leave, self.session_id)
        await self._kit.holder.let_go()

    @property
    def model(self) -> str:
        return self._kit.model_named(self.preferences)

    # How

    def _ready(self) -> TurnRunner:
        agent = Late(partial(self._kit.agent_for, self.preferences))
        self._runner = TurnRunner(self._kit.door, self._kit.holder, agent, self._kit.agrees, self._kit.compression)
        return self._runner

    def _opening(self, now: float, watch: "_Watch") -> Callable[[Transaction], tuple[str, Lease]]:
        """Makes the session there is to be, and makes it ours, in the transaction that stores the first message.

        It has the title that somebody chose before it began, unless that is taken: then they are told.
        """
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
        title = self._title

        def opening(tx: Transaction) -> tuple[str, Lease]:
            create_session(tx, session)
            if title is not None:
                try:
                    titling.set_title(tx, fresh, title)
                except SegueError as error:
                    watch.later = Note(str(error))
            return fresh, self._claim_session(tx, fresh)

        return opening

    def _opened(self, session_id: str) -> None:
        """The session is there for certain."""
        self.session_id, self._title = session_id, None

    def _leave(self, tx: Transaction, session_id: str) -> None:
        """End the session, unless somebody else is at work there by now."""
        if self._kit.holder.has(tx, session_id):
            end_session(tx, session_id, LEFT, time.time())

    async def _claiming(self) -> Callable[[Transaction], tuple[str, Lease]]:
        """Makes the conversation ours; stored without a system prompt, it gets the one of a session that begins now."""
        session_id = str(self.session_id)
        newest = await self._kit.door.read(lambda tx: get_session(tx, find_tip(tx, session_id)))
        is_prompted = newest.system_prompt is not None
        return partial(self._claim, prompt=None if is_prompted else self._kit.prompt(datetime.now(self._kit.zone)))

    def _claim(self, tx: Transaction, prompt: str | None = None) -> tuple[str, Lease]:
        """The newest part of the conversation: it may have been compressed by a turn that was stopped just then."""
        assert self.session_id is not None
        tip = find_tip(tx, self.session_id)
        lease = self._claim_session(tx, tip)
        if prompt is not None and get_session(tx, tip).system_prompt is None:
            keep_system_prompt(tx, tip, prompt)
        return tip, lease

    def _claim_session(self, tx: Transaction, session_id: str) -> Lease:
        return self._kit.holder.claim(tx, session_id, get_session(tx, session_id).principal)

    def _give_up(self, tx: Transaction, broken: Turn) -> None:
        _, lease = self._claim(tx)
        give_up_turn(tx, lease, broken, time.time(), "It was cut off, and not carried on in time.")

    async def _follow(self, answer: Answer) -> None:
        if isinstance(answer.act, Switch | Begin | Handed):
            self._undone.clear()
        match answer.act:
            case Undone(spots):
                self._undone.append(spots)
            case Redone():
                self._undone.pop()
            case Switch(session_id, _, preferences):
                self.session_id, self.preferences = session_id, preferences
                self._title = self._reset_from = None
            case Begin(_, preferences, reset_from):
                self.session_id, self.preferences = None, preferences
                self._title, self._reset_from = None, reset_from
                await self._kit.holder.let_go()
            case Handed():
                self.session_id = self._title = self._reset_from = None
                await self._kit.holder.let_go()
            case Prefer(preferences):
                self.preferences = preferences
            case Title(title):
                self._title = title
            case Offer(session_ids):
                self._offered = session_ids

    def _situation(self, claim: Callable[[Transaction, str], object]) -> Situation:
        now = time.time()
        deadline = time.monotonic() + looking.SEARCH_SECONDS
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
            meant=self._kit.meant,
            system_prompt=self._kit.prompt(datetime.fromtimestamp(now, self._kit.zone)),
            title=self._title,
            parts=self._kit.parts(),
            time_left=lambda: deadline - time.monotonic(),
            claim=claim,
            is_ours=self._kit.holder.has,
            undone=self._undone[-1] if self._undone else (),
            is_answering=self._runner is not None and self._runner.is_running,
            keys=self._kit.keys,
            homes=self._kit.homes,
        )
