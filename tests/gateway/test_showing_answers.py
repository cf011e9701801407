"""An answer is read while it is written: one message that says more and more, and in the end what was meant."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from itertools import pairwise
from typing import Any, cast

import pytest
from lane_house import Building, dm, echo
from places import Probe
from waiting import until

from segue.core.chunks import Measure, chunks
from segue.core.errors import ModelError
from segue.core.events import Reply, Text, ToolCall
from segue.core.fences import open_fence
from segue.core.leases import Run, platform_lease
from segue.core.outbox import Letter, What
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sending import Action, SendPolicy
from segue.core.sources import SessionSource
from segue.core.streaming import Shown, Streaming, Wait, balanced, show, unfinished
from segue.ports.model import Request
from segue.ports.platform import Post, SendLater, SendRefused, Sent
from segue.ports.store import Transaction
from segue.sessions.delivering import Envelope, Posting, post
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, ScriptedPlatform, Stage
from segue.testing.platform import TRAITS
from segue.testing.stage import Busy, Posted

LIVELY = Streaming(edit_interval=0.02, buffer_threshold=10)
LANE = "agent:main:scripted:dm:alice"
ANSWER = """Here is how it is done, with **care** and `patience`:

```python
def answer(question):
    for word in question.split():
        print(word)
    return "that is all"
```

Then it is run, and what it prints is read aloud to everybody in the room.

~~~
one two three four five six seven eight nine ten eleven twelve thirteen
~~~

That is all there is to it."""


WORDS = 15
"""Between two stops of a model: so many are shown as soon as it waits."""


class Paced(ScriptedModel):
    """Waits on its way until each of some beginnings was shown, and ends its answer when it has been enough."""

    def __init__(
        self, text: str, enough: Callable[[], object] = lambda: True, *, stage: Stage | None = None, stops: int = 0
    ) -> None:
        super().__init__(lambda _: Reply(text))
        self._enough, self._stage, self._stops = enough, stage or Stage(), stops

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        words = 0
        async with aclosing(super().stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    await until(self._enough, "the end of an answer")
                yield piece
                words += 1
                if words % WORDS == 0 and words <= self._stops * WORDS:
                    await self._shown(words // WORDS)

    async def _shown(self, times: int) -> None:
        await until(lambda: sum(len(one.moments) for one in self._stage.posted) >= times, f"beginning {times}")


class Endless(ScriptedModel):
    """Says one word after another, faster than anybody edits, until it has been enough."""

    def __init__(self, enough: Callable[[], object]) -> None:
        super().__init__(lambda _: Reply(""))
        self._enough = enough

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        self.asked.append(request)
        said = ""
        while not self._enough():
            said += "word "
            yield Text("word ")
            await asyncio.sleep(0.001)
        yield Reply(said)


def says(text: str, enough: Callable[[], object] = lambda: True) -> ScriptedModel:
    return Paced(text, enough)


def says_slowly(text: str, stage: Stage, stops: int = 4, enough: Callable[[], object] = lambda: True) -> ScriptedModel:
    """At each stop it waits until people can read so far."""
    return Paced(text, enough, stage=stage, stops=stops)


def stored(store: SqlStore) -> list[str]:
    """What the agent said, as it is kept."""
    lane = store.read(OWNER, lambda tx: tx.lanes.find(LANE))
    assert lane is not None
    session_id = lane.session_id or ""
    rows = store.read(OWNER, lambda tx: tx.messages.of(session_id))
    return [row.content or "" for row in rows if row.role == "assistant"]


def states(store: SqlStore) -> list[str]:
    every = ("draft", "pending", "sending", "delivered", "unknown", "dead", "suppressed")
    return [letter.state for letter in store.read(OWNER, lambda tx: tx.outbox.listed(every))]


def drafts(store: SqlStore) -> list[Letter]:
    return store.read(OWNER, lambda tx: tx.outbox.listed(("draft",)))


def ask(building: Building) -> None:
    """Somebody asks something, and all of it comes to its end."""

    async def work() -> None:
        building.stage.say(dm(), "how?")
        await building.quiet()

    building.run(work)


def test_one_message_says_more_and_more_and_in_the_end_what_is_stored(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage, model=says_slowly(ANSWER, stage), streaming=LIVELY)
    ask(building)
    [posted] = building.stage.posted
    assert posted.text == ANSWER == stored(store)[-1]
    assert len(posted.versions) >= 4
    assert all(text.endswith("▌") and open_fence(text) is None for text in posted.versions)
    assert sorted(posted.versions, key=len) == posted.versions
    assert states(store) == ["delivered"]


@pytest.mark.on_file
def test_it_is_edited_at_most_once_in_an_interval(store: SqlStore) -> None:
    stage, streaming = Stage(), LIVELY._replace(edit_interval=0.1)
    model = Endless(lambda: stage.posted and len(stage.posted[0].moments) >= 4)
    platform = ScriptedPlatform(stage, traits=TRAITS._replace(longest=1_000_000))
    ask(Building(store, stage, model=model, streaming=streaming, only=[platform]))
    [posted] = stage.posted
    gaps = [after - before for before, after in pairwise(posted.moments)]
    assert len(gaps) >= 4
    assert min(gaps) >= streaming.edit_interval


def test_what_does_not_fit_follows_in_messages_of_its_own(store: SqlStore) -> None:
    stage, longest = Stage(), 100
    platform = ScriptedPlatform(stage, traits=TRAITS._replace(longest=longest))
    model = says_slowly(ANSWER, stage, stops=1)
    ask(Building(store, stage, model=model, streaming=LIVELY, only=[platform]))
    assert stage.posted_to("alice") == chunks(ANSWER, longest)
    first, *others = stage.posted
    assert first.versions
    assert all(len(text) <= longest for text in first.versions)
    assert not any(one.versions for one in others)


@pytest.mark.on_file
def test_a_message_that_is_full_is_not_looked_at_with_every_word(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, looks, moment = Stage(), list[float](), 0.0

    def timed(answer: str, shown: Shown, now: float, *more: Any) -> Shown | Wait:
        nonlocal moment
        moment = now
        return show(answer, shown, now, *more)

    def counted(answer: str, cursor: str, longest: int, measure: Measure) -> str:
        looks.append(moment)
        return unfinished(answer, cursor, longest, measure)

    def since_the_last_edit() -> list[float]:
        return [at for at in looks if at > stage.posted[0].moments[-1]] if stage.posted else []

    monkeypatch.setattr("segue.gateway.streaming.show", timed)
    monkeypatch.setattr("segue.core.streaming.unfinished", counted)
    platform = ScriptedPlatform(stage, traits=TRAITS._replace(longest=100))
    streaming = LIVELY._replace(edit_interval=0.1)
    model = Endless(lambda: len(since_the_last_edit()) >= 4)  # of which one would have led to an edit
    ask(Building(store, stage, model=model, streaming=streaming, only=[platform]))
    after = [at for at in looks if at > stage.posted[0].moments[-2]]  # the last edit but one filled it
    assert len(after) >= 4
    assert min(later - earlier for earlier, later in pairwise(after)) >= streaming.edit_interval


@pytest.mark.on_file
def test_a_platform_may_name_what_is_shown_by_a_number(store: SqlStore) -> None:
    stage = Stage()
    ask(Building(store, stage, model=says_slowly(ANSWER, stage), streaming=LIVELY, only=[Counting(stage)]))
    [posted] = stage.posted
    assert posted.text == ANSWER
    assert posted.versions
    assert states(store) == ["delivered"]


@pytest.mark.on_file
def test_a_few_words_are_not_shown_before_they_are_complete(store: SqlStore) -> None:
    building = Building(store, Stage(), model=says("It is noon."), streaming=Streaming(edit_interval=3600.0))
    ask(building)
    [posted] = building.stage.posted
    assert (posted.text, posted.versions) == ("It is noon.", [])


@pytest.mark.on_file
@pytest.mark.parametrize("streaming", [LIVELY, LIVELY._replace(is_enabled=False)], ids=["cannot edit", "turned off"])
def test_where_nothing_is_streamed_an_answer_is_sent_when_it_is_complete(
    store: SqlStore, streaming: Streaming, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.streaming.TYPING_SECONDS", 3600.0)
    stage = Stage()
    platform = ScriptedPlatform(stage, traits=TRAITS._replace(can_edit=not streaming.is_enabled))
    model = says(ANSWER, lambda: platform.typed)
    ask(Building(store, stage, model=model, streaming=streaming, only=[platform]))
    [posted] = stage.posted
    assert (posted.text, posted.versions) == (ANSWER, [])
    assert platform.typed == ["alice"]


@pytest.mark.on_file
def test_nothing_is_typed_any_more_when_there_is_something_to_read(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = 0.02
    monkeypatch.setattr("segue.gateway.streaming.TYPING_SECONDS", pause)
    stage = Stage()
    platform, may_end = ScriptedPlatform(stage), asyncio.Event()
    building = Building(store, stage, model=says(ANSWER, may_end.is_set), streaming=LIVELY, only=[platform])

    async def work() -> None:
        stage.say(dm(), "how?")
        await until(lambda: any(letter.message_id for letter in drafts(store)), "a draft that was noted")
        typed = len(platform.typed)
        for _ in range(5):  # each of which is as long as the pause before another sign would be
            await asyncio.sleep(pause)
        assert len(platform.typed) <= typed + 1  # the one that was on its way
        may_end.set()
        await building.quiet()

    building.run(work)
    assert platform.typed


@pytest.mark.on_file
def test_a_sign_that_cannot_be_shown_is_not_missed(store: SqlStore) -> None:
    stage = Stage()
    platform = Clumsy(stage)
    ask(Building(store, stage, model=says(ANSWER, lambda: platform.tries), only=[platform]))
    assert stage.posted_to("alice") == [ANSWER]


def test_a_platform_that_does_not_answer_does_not_keep_the_turn_waiting(store: SqlStore) -> None:
    stage = Stage()
    platform = Slow(stage)
    model = says(ANSWER, lambda: platform.asked)
    building = Building(store, stage, model=model, streaming=LIVELY, only=[platform])

    async def work() -> None:
        stage.say(dm(), "how?")
        await until(lambda: platform.asked)
        await until(lambda: stored(store))
        assert stage.posted == []
        assert states(store) == ["unknown"]
        platform.answers.set()
        await building.quiet()

    building.run(work)
    [posted] = stage.posted
    assert posted.text == ANSWER
    assert len(posted.versions) == 1


def test_what_could_not_be_shown_is_left_to_the_gateway_that_has_the_platform_by_then(store: SqlStore) -> None:
    stage = Stage()
    platform = Slow(stage, refuses=True)
    model = says(ANSWER, lambda: platform.asked)
    building = Building(store, stage, model=model, streaming=LIVELY, only=[platform], is_gone=lambda _: False)

    async def work() -> None:
        stage.say(dm(), "how?")
        await until(lambda: platform.asked)
        await until(lambda: stored(store))
        store.write(OWNER, take_platform)
        platform.answers.set()
        await until(lambda: not building.gateway.connections[0].link.is_up)
        await until(lambda: not building.gateway.office._streams._tasks)
        assert states(store) == ["unknown"]

    building.run(work)


def take_platform(tx: Transaction) -> None:
    """Another gateway is connected from now on."""
    tx.leases.add_run(Run("other", "segue gateway", "there", "boot", 8, "1", tx.leases.now(), tx.leases.now()))
    tx.leases.take(platform_lease("scripted", ""), "other", "owner", 3600.0)


@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "without"])
def test_an_edit_that_is_still_on_its_way_does_not_undo_the_end(store: SqlStore, has_key: bool) -> None:
    stage = Stage(has_key=has_key)
    platform = Slow(stage, edits_only=True)
    model = says_slowly(ANSWER, stage, 1, lambda: platform.asked)
    building = Building(store, stage, model=model, streaming=LIVELY, only=[platform])

    async def work() -> None:
        stage.say(dm(), "how?")
        await until(lambda: platform.asked)
        await until(lambda: stored(store))
        await until(lambda: not building.gateway.connections[0].delivery.is_idle())
        platform.answers.set()
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == [ANSWER]


def test_a_busy_platform_is_shown_more_when_it_has_time(store: SqlStore) -> None:
    stage = Stage(has_key=False)
    stage.before_post = Refusing(times=2, seconds=0.1)
    ask(Building(store, stage, model=says_slowly(ANSWER, stage), streaming=LIVELY))
    [posted] = stage.posted
    assert posted.text == ANSWER, "what was certainly not there is not marked as sent again"
    assert posted.versions


@pytest.mark.on_file
def test_a_platform_that_is_busy_is_left_alone_until_the_moment_it_names(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.delivery.LOOK_SECONDS", 0.05)
    stage = Stage(has_key=False)
    stage.before_post = refusing = Refusing(times=1, seconds=3600)
    building = Building(store, stage, model=says(ANSWER, lambda: refusing.moments), streaming=LIVELY)
    delivery = building.gateway.connections[0].delivery

    async def work() -> None:
        stage.say(dm(), "how?")
        await until(lambda: refusing.moments)
        await until(lambda: stored(store))
        await until(lambda: delivery._senders)
        [chat] = delivery._senders
        assert delivery._rests[chat] - refusing.moments[0] >= 3600
        assert stage.posted == []
        delivery.rest(chat, 0.0)
        await building.quiet()

    building.run(work)
    [posted] = stage.posted
    assert (posted.text, posted.versions) == (ANSWER, [])


def test_an_answer_whose_message_was_removed_is_another_message(store: SqlStore) -> None:
    stage = Stage()
    model = says(ANSWER, lambda: stage.posted)
    ask(Building(store, stage, model=model, streaming=LIVELY, only=[Removing(stage)]))
    assert len(stage.posted) == 2
    assert stage.posted_to("alice")[-1] == ANSWER
    assert states(store) == ["delivered"]


def test_nothing_is_shown_while_something_older_waits_for_the_chat(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.delivery.pause_after", lambda _: 0.2)
    stage = Stage()
    stage.before_post = Refusing(times=1, seconds=0.2, only="an older word")
    building = Building(store, stage, model=says(ANSWER, lambda: len(stage.posted) > 1), streaming=LIVELY)
    letter = Envelope(LANE, "scripted:alice", "", dm(), "older")
    posting = Posting(lambda _platform, _account: TRAITS)
    store.write(OWNER, lambda tx: post(tx, posting, letter, "an older word", What.NOTICE, 1.0))
    ask(building)
    assert stage.posted_to("alice") == ["an older word", ANSWER]
    assert stage.posted[1].versions


@pytest.mark.on_file
def test_what_is_not_sent_is_not_streamed(store: SqlStore) -> None:
    stage = Stage()
    platform = ScriptedPlatform(stage)
    silent = SendPolicy(default=Action.DENY)
    ask(Building(store, stage, model=says(ANSWER), streaming=LIVELY, policy=silent, only=[platform]))
    assert (stage.posted, platform.typed) == ([], [])
    assert states(store) == ["suppressed"]


def test_a_stopped_answer_says_what_was_said_and_that_it_was_stopped(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage, model=says_slowly(ANSWER, stage, 4, lambda: False), streaming=LIVELY)

    async def work() -> None:
        stage.say(dm(), "how?")
        await until(lambda: stage.posted and "def answer" in stage.posted[0].text)
        assert building.gateway.office.stop(LANE, "Somebody said so.")
        await building.quiet()

    building.run(work)
    [text] = stage.posted_to("alice")
    said = stored(store)[-1]
    assert ANSWER.startswith(said)
    assert text == f"{balanced(said)}\n\n(stopped)"
    assert "▌" not in text
    assert open_fence(text) is None


def test_an_answer_that_fails_keeps_what_was_said_and_tells_why(store: SqlStore) -> None:
    stage = Stage()
    ask(Building(store, stage, model=Breaking(ANSWER[:200], stage), streaming=LIVELY))
    text, notice = stage.posted_to("alice")
    assert text == ANSWER[:200]
    assert "cut off" in notice
    assert stage.posted[0].versions


@pytest.mark.on_file
@pytest.mark.parametrize(("last", "seen"), [("NO_REPLY", "(no answer)"), ("It is noon now.", "It is noon now.")])
def test_words_on_the_way_to_a_tool_give_way_to_the_answer(store: SqlStore, last: str, seen: str) -> None:
    def answer(request: Request) -> Reply:
        if request.conversation[-1]["role"] == "tool":
            return Reply(last)
        return Reply("Let me have a look at the clock on the wall.", (ToolCall("1", "probe"),))

    async def look(_arguments: dict[str, Any]) -> str:
        await until(lambda: any("clock" in one.text for one in stage.posted))
        return "noon"

    stage = Stage()
    model = ScriptedModel(answer)
    ask(Building(store, stage, model=model, streaming=LIVELY, tools=[Probe(look)]))
    [posted] = stage.posted
    assert posted.text == seen
    assert any("clock" in text for text in posted.versions)


@pytest.mark.on_file
def test_what_is_shown_is_told_to_others_as_well(store: SqlStore) -> None:
    building = Building(store, Stage(), model=ScriptedModel(echo), streaming=LIVELY)
    ask(building)
    assert any(isinstance(event, Text) for event in building.events)


class Counting(ScriptedPlatform):
    """Names messages by numbers."""

    async def send(self, post: Post) -> Sent:
        sent = await super().send(post)
        return Sent(cast(str, int((sent.message_id or "").removeprefix("p"))))

    async def edit(self, post: Post, message_id: str) -> None:
        await super().edit(post, f"p{message_id}")


class Clumsy(ScriptedPlatform):
    tries = 0

    async def typing(self, route: SessionSource) -> None:
        self.tries += 1
        raise RuntimeError(f"nobody can see that in {route.chat_id}")


class Slow(ScriptedPlatform):
    """Does not answer what it is asked first before it is told to."""

    def __init__(self, stage: Stage, *, edits_only: bool = False, refuses: bool = False) -> None:
        super().__init__(stage)
        self.asked = 0
        self.answers = asyncio.Event()
        self._edits_only = edits_only
        self._refuses = refuses

    async def send(self, post: Post) -> Sent:
        if not self._edits_only:
            await self._hesitate()
        return await super().send(post)

    async def edit(self, post: Post, message_id: str) -> None:
        await self._hesitate()
        await super().edit(post, message_id)

    async def _hesitate(self) -> None:
        self.asked += 1
        if self.asked == 1:
            await self.answers.wait()
            if self._refuses:
                raise SendLater("Not now.")


class Removing(ScriptedPlatform):
    """Somebody removes every message at once."""

    async def edit(self, post: Post, message_id: str) -> None:
        raise SendRefused(f"There is no message {message_id} for {post.key}.")


class Refusing:
    """Is busy for some times."""

    def __init__(self, times: int, seconds: float, only: str = "") -> None:
        self._times, self._seconds, self._only = times, seconds, only
        self.moments: list[float] = []

    def __call__(self, posted: Posted) -> None:
        if self._times and self._only in posted.text:
            self._times -= 1
            self.moments.append(time.monotonic())
            raise Busy(self._seconds)


class Breaking(ScriptedModel):
    """Falls silent in the middle, as soon as something was shown."""

    def __init__(self, text: str, stage: Stage) -> None:
        super().__init__(lambda _: Reply(text))
        self._text, self._stage = text, stage

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        self.asked.append(request)
        for letter in self._text:
            yield Text(letter)
            await asyncio.sleep(0)
        await until(lambda: self._stage.posted)
        raise ModelError("The line broke.")
