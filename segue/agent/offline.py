"""The agent when there is no model: it says so once, and finds, shows, summarises and resumes past conversations."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from datetime import tzinfo
from functools import partial
from typing import NamedTuple

from segue.agent import recollecting, telling
from segue.agent.recollecting import PROVIDER, Memory, Moment, Remembered
from segue.agent.telling import Offer, Row
from segue.core.errors import SegueError
from segue.core.events import CarryOn, Event, Failed, Reply, Steered, Text, ToolFinished
from segue.core.extracts import excerpt_of, summary_of
from segue.core.messages import Said
from segue.core.requests import (
    About,
    Act,
    Days,
    Find,
    Greet,
    Help,
    Latest,
    List,
    Nth,
    Request,
    Resume,
    Show,
    Summarise,
    That,
    Which,
    understand,
)
from segue.core.scope import Scope
from segue.core.turns import OUTCOME_UNKNOWN, Fate, last_calls
from segue.ports.agent import Task
from segue.ports.store import Store, Transaction
from segue.sessions.finding import find_tip, get_session
from segue.sessions.searching import INCOMPLETE

SECONDS = 3.0
"""After so long the best that was found is the answer."""
_LISTED = 10
_SHOWN = 4_000  # characters of a conversation
_CLEAR_FROM = 2
"""A passage with the only word that was asked for says no more than the list does."""
_NOT_RUN = "This was not run: there is no model to go on with its result."


class Answer(NamedTuple):
    text: str
    carry_on: str | None = None
    """The session in which the person wants to go on."""


class OfflineAgent:
    """Answers from what a scope may see, by the clock and the days of whoever asks."""

    def __init__(self, store: Store, scope: Scope, clock: Callable[[], float], zone: Callable[[], tzinfo]) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock
        self._zone = zone

    async def run(self, task: Task) -> AsyncGenerator[Event]:
        for result in _left_open(task):
            yield result
        asked, replies, is_answered = _standing(task.view)
        has_begun = bool(replies)
        waiting = [asked]
        while waiting:
            try:
                answer = await self._answer(waiting.pop(0), replies, task.session_id)
            except SegueError as error:
                yield Failed(str(error), error.public)
                return
            pieces = [answer.text] if has_begun else [f"{telling.NOTICE}\n\n", answer.text]
            if not is_answered:
                for piece in pieces:
                    yield Text(piece)
                yield Reply("".join(pieces), model=PROVIDER, provider=PROVIDER)
            if answer.carry_on:
                yield CarryOn(answer.carry_on)
                return
            replies, has_begun, is_answered = [*replies, answer.text], True, False
            for text in await task.steered():
                yield Steered(text)
                waiting.append(text)

    async def _answer(self, text: str, replies: Sequence[str], current: str) -> Answer:
        """The answer, read in another thread; whoever is cancelled meanwhile waits for its end."""
        deadline = time.monotonic() + SECONDS
        moment = Moment(self._clock(), self._zone(), lambda: deadline - time.monotonic())
        offer = telling.offered(replies)
        request = understand(text, len(offer.ids), offer.act)
        work = partial(_answered, request=request, offer=offer, moment=moment, current=current)
        reading = asyncio.ensure_future(asyncio.to_thread(self._store.read, self._scope, work))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            await asyncio.wait({reading})
            raise


def _standing(view: Sequence[Said]) -> tuple[str, list[str], bool]:
    """What was asked last, this agent's replies before that, and whether one of them answers it already."""
    at = max((at for at, row in enumerate(view) if row.role == "user"), default=len(view))
    replies = [row.content or "" for row in view[:at] if row.provider == PROVIDER]
    is_answered = any(row.provider == PROVIDER for row in view[at + 1 :])
    return (view[at].content or "" if at < len(view) else ""), replies, is_answered


def _left_open(task: Task) -> list[ToolFinished]:
    """Results for the calls that a model made before there was none, and that have no result."""
    outcomes = {Fate.RUN: _NOT_RUN, Fate.UNKNOWN: OUTCOME_UNKNOWN}
    return [
        ToolFinished(call, outcomes[task.pending[call.id]], is_error=True)
        for call in last_calls(task.view)[0]
        if call.id in task.pending
    ]


def _answered(tx: Transaction, *, request: Request, offer: Offer, moment: Moment, current: str) -> Answer:
    return _Answering(tx, offer, moment, current).answer(request)


class _Answering:
    """One answer in one transaction."""

    def __init__(self, tx: Transaction, offer: Offer, moment: Moment, current: str) -> None:
        self._tx = tx
        self._offer = offer
        self._moment = moment
        self._current = current
        self._now, self._zone = moment.now, moment.zone

    def answer(self, request: Request) -> Answer:
        match request:
            case Help():
                return Answer(telling.HELP)
            case Greet():
                return Answer(telling.GREETING)
            case List(days):
                return Answer(self._list(days))
            case Find(text, days):
                return Answer(self._find(text, days))
            case Show(which) | Summarise(which) | Resume(which):
                meant = self._meant(type(request), which)
                return meant if isinstance(meant, Answer) else self._done(type(request), meant, which)

    # Finding

    def _find(self, text: str, days: Days | None) -> str:
        found = self._remember(text, days)
        elsewhere = ""
        if days and not found.conversations:
            elsewhere = "Nothing was said of that in those days; this is from other days.\n\n"
            found = self._remember(text)
        if not found.conversations:
            return "\n\n".join([*self._nothing(text, found.notes), *found.notes])
        first, rows = _best_first(text, found.conversations)
        told = telling.numbered(rows, self._now, self._zone)
        return elsewhere + "\n\n".join(filter(None, [first, told, *found.notes, telling.NEXT]))

    def _nothing(self, text: str, notes: list[str]) -> Iterator[str]:
        is_incomplete = INCOMPLETE in notes  # then nobody knows whether there is nothing
        if here := recollecting.said_here(self._tx, text, self._current):
            elsewhere = "" if is_incomplete else "I find nothing about that in other conversations. "
            yield f"{elsewhere}In this one:\n\n{telling.quotation(here)}"
        elif not is_incomplete:
            yield f"I find nothing about that. {self._advice()}"

    def _remember(self, text: str, days: Days | None = None) -> Memory:
        return recollecting.remember(self._tx, text, self._moment, self._current, days)

    def _list(self, days: Days | None = None) -> str:
        rows = self._recent(days)
        if not rows:
            return "There are no conversations of those days." if days else "There are no other conversations yet."
        return f"{telling.numbered(rows, self._now, self._zone)}\n\n{telling.NEXT}"

    def _recent(self, days: Days | None = None) -> list[Row]:
        return [Row(one) for one in recollecting.recent(self._tx, self._current, self._moment, days, _LISTED)]

    def _advice(self) -> str:
        return "Try other or fewer words, or say `list` to see the last conversations."

    # The one that is meant

    def _meant(self, act: Act, which: Which) -> str | Answer:
        """The session that is meant, or what to say when there is none or more than one."""
        match which:
            case Nth(number):
                return self._nth(number)
            case That():
                return self._that(act)
            case Latest():
                return recollecting.latest(self._tx, self._current, self._moment) or Answer(self._list())
            case Days():
                rows = self._recent(which)
                return rows[0].session.id if len(rows) == 1 else self._choice(act, rows, "in those days")
            case About(words):
                return recollecting.named(self._tx, words) or self._about(act, words)

    def _nth(self, number: int) -> str | Answer:
        ids = self._offer.ids
        if 1 <= number <= len(ids):
            return ids[number - 1]
        if ids:
            return Answer(f"The last list has no {number}; it ends with {len(ids)}.")
        if not self._recent():
            return Answer(f"There is no list yet that {number} could be of, and no other conversation.")
        return Answer(f"There is no list yet that {number} could be of. These are the last ones:\n\n{self._list()}")

    def _that(self, act: Act) -> str | Answer:
        ids = [self._offer.shown] if self._offer.shown else self._offer.ids
        if len(ids) == 1:
            return ids[0]
        there = [session for one in ids if (session := self._tx.sessions.find(one))]
        if there:
            return self._choice(act, [Row(session) for session in there], "there")
        return recollecting.latest(self._tx, self._current, self._moment) or Answer(self._list())

    def _about(self, act: Act, words: str) -> str | Answer:
        found = self._remember(words)
        if found.clear:
            return found.clear.session.id
        return self._choice(act, _best_first(words, found.conversations)[1], "about that")

    def _choice(self, act: Act, rows: Sequence[Row], where: str) -> Answer:
        if not rows:
            return Answer(f"I find no conversation {where}. {self._advice()}")
        return Answer(telling.which(act, rows, self._now, self._zone))

    # What is done with it

    def _done(self, act: Act, session_id: str, which: Which) -> Answer:
        if self._tx.sessions.find(session_id) is None:
            return Answer(f"That conversation is no longer there. {self._advice()}")
        tip = get_session(self._tx, find_tip(self._tx, session_id))
        if act is Resume:
            return self._resumed(tip.id)
        said = recollecting.spoken_in(self._tx, tip.id)
        if act is Summarise:
            return Answer(telling.summary(tip, summary_of(said), len(said), self._now, self._zone))
        about = which.words if isinstance(which, About) else ""
        shown = excerpt_of(said, _SHOWN, recollecting.place_in(said, about))
        return Answer(telling.transcript(tip, shown, self._now, self._zone))

    def _resumed(self, session_id: str) -> Answer:
        if session_id == find_tip(self._tx, self._current):
            return Answer("That is this conversation.")
        session = get_session(self._tx, session_id)
        return Answer(f"Going on in this conversation:\n\n{telling.facts(session, self._now, self._zone)}", session_id)


def _best_first(text: str, found: Sequence[Remembered]) -> tuple[str, list[Row]]:
    """The passage that clearly answers, if one does, and the conversations; no passage stands there twice."""
    best = max(found, key=lambda one: one.passage.share, default=None)
    is_clear = best is not None and best.passage.is_clear and recollecting.says_enough(text, _CLEAR_FROM)
    rows = [Row(one.session, "" if is_clear and one is best else one.passage.text) for one in found]
    if best is None or not is_clear:
        return "", rows
    return f"{telling.quotation(best.passage.text)}\n\nThat is from {1 + list(found).index(best)}.", rows
