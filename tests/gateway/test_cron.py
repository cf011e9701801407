"""Jobs run at their moments: each once, in a session of its own, and where they were asked to answer."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hooks import places
from lane_house import Building, dm
from obedient_model import Obedient
from serving_house import Served, use_obedient_model, write_settings
from waiting import until

from segue.app import crew
from segue.core.errors import Invalid, Unreachable
from segue.core.events import Reply, Text
from segue.core.inbound import Inbound, Receipt
from segue.core.inbox import Entry, InboxState, Want
from segue.core.jobs import Job, due_name
from segue.core.keys import KeyRules
from segue.core.outbox import OutboxState
from segue.core.queueing import QueueRules
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.gateway.timetable import StoredTimetable
from segue.platforms.cron.moments import checked_schedule, missed, next_due, zone_named
from segue.platforms.cron.platform import CronPlatform
from segue.ports.model import Request
from segue.ports.platform import Post, SendRefused
from segue.ports.store import Transaction
from segue.sessions.accepting import accept, entry_in_lane
from segue.sessions.finding import get_session
from segue.sessions.scheduling import add_job, ask_now, note_due, remove_job
from segue.storage.store import SqlStore
from segue.testing import ScriptedPlatform, Stage
from segue.testing.ledger import Ledger

START = datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC).timestamp()
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
JOB = Job("tea", "*/5 * * * *", "UTC", "Is there tea?", START, deliver="scripted:kitchen")


class Clock:
    """A clock that is set by hand; whoever sleeps looks at it again soon."""

    def __init__(self, now: float = START) -> None:
        self.now = now
        self._sleeps = 0

    async def looked(self) -> None:
        """Wait until somebody has looked at everything from now on, and sleeps again."""
        wanted = self._sleeps + 2  # one of them may be on its way
        await until(lambda: self._sleeps >= wanted, "two more looks")

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self._sleeps += 1
        await asyncio.sleep(0.005)


class House:
    """A gateway with jobs and a scripted platform."""

    def __init__(self, store: SqlStore, clock: Clock, name: str = "gateway") -> None:
        self.store, self.clock, self.stage = store, clock, Stage()
        self.timetable = StoredTimetable(store)
        self.cron = CronPlatform(self.timetable, places, clock, clock.sleep)
        self.building = Building(store, self.stage, name=name, only=[ScriptedPlatform(self.stage), self.cron])

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            self.building.run(work)
        finally:
            self.timetable.close()

    async def at(self, now: float, entries: int) -> None:
        """Set the clock, and wait until so many messages of jobs have been answered."""
        self.clock.now = now
        await until(lambda: len(self.entries()) >= entries)
        await self.building.quiet()

    def entries(self) -> list[Entry]:
        return self.store.read(OWNER, lambda tx: tx.inbox.listed(list(InboxState)))


def put(store: SqlStore, job: Job = JOB) -> None:
    store.write(OWNER, add_job, job)


def moment(day: str, zone: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=zone_named(zone)).timestamp()


def test_a_job_runs_at_its_moments_and_each_has_a_session_of_its_own(store: SqlStore) -> None:
    put(store)
    house = House(store, Clock())

    async def work() -> None:
        await house.clock.looked()
        assert house.entries() == [], "nothing is due yet"
        await house.at(START + 5 * MINUTE, 1)
        await house.at(START + 10 * MINUTE, 2)
        await house.clock.looked()

    house.run(work)
    first, second = house.entries()
    assert (first.message_id, second.message_id) == ("tea@2026-05-01T12:05:00Z", "tea@2026-05-01T12:10:00Z")
    assert (first.lane_key, first.principal, first.is_person) == ("agent:main:cron:tea", "owner", 0)
    assert first.session_id != second.session_id
    assert house.stage.posted_to("kitchen") == ["You said: Is there tea?"] * 2
    sessions = [store.read(OWNER, get_session, one.session_id or "") for one in (first, second)]
    assert [(session.source, session.kind) for session in sessions] == [("cron", "automation")] * 2
    job = store.read(OWNER, lambda tx: tx.jobs.find("tea"))
    assert job is not None
    assert job.last_due_at == START - 30 + 10 * MINUTE


class Choosy(Obedient):
    """Two models: one that is never there, and one that does what it is told."""

    def __init__(self, _endpoint: object, name: str, **_: object) -> None:
        self.name = name

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        if self.name == "away":
            raise Unreachable("Nobody is there.")
        async for piece in super().stream(request):
            yield piece


def test_a_job_is_answered_by_a_fallback_model_as_a_chat_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_obedient_model(monkeypatch)
    monkeypatch.setattr(crew, "ProviderModel", Choosy)
    stage = Stage()
    models, auxiliary = {"fallback": ["openai/there"]}, {"model": "openai/there"}
    home = write_settings(tmp_path / "home", model="openai/away", models=models, auxiliary=auxiliary)
    served = Served(home, {"scripted": stage})
    kitchen = SessionSource(platform="scripted", chat_id="kitchen")

    async def work() -> None:
        stage.say(dm("owner"), "hello")
        served.store.write(OWNER, ask_now, JOB, "tea@now", kitchen, START, KeyRules())
        await served.quiet()

    served.run(work)
    served.close()
    assert stage.posted_to("owner") == ["You said: hello"]
    assert stage.posted_to("kitchen") == ["You said: Is there tea?"]


def test_after_a_pause_only_the_latest_moment_runs_and_once(store: SqlStore) -> None:
    put(store)
    house = House(store, Clock())

    async def work() -> None:
        await house.at(START + 7 * DAY + HOUR, 1)
        await house.clock.looked()

    house.run(work)
    assert [entry.message_id for entry in house.entries()] == ["tea@2026-05-08T13:00:00Z"]


def test_a_moment_runs_once_although_the_note_of_it_was_lost(store: SqlStore) -> None:
    """A crash between taking a moment in and noting it: the next life finds it due again, and knows it."""
    put(store)
    for life in ("first", "second"):
        house = House(store, Clock(START + 5 * MINUTE), life)

        async def work(house: House = house) -> None:
            await house.at(START + 5 * MINUTE, 1)
            await house.clock.looked()

        house.run(work)
        assert len(house.entries()) == 1
        assert house.stage.posted_to("kitchen") == (["You said: Is there tea?"] if life == "first" else [])
        store.write(OWNER, lambda tx: tx.jobs.change("tea", last_due_at=None))


def test_without_the_name_of_the_moment_it_would_run_twice(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the last one: the name is what keeps a moment from being asked again."""
    names = iter("ab")
    monkeypatch.setattr("segue.platforms.cron.inbound.due_name", lambda _job, _due: next(names))
    put(store)
    for life in ("first", "second"):
        house = House(store, Clock(START + 5 * MINUTE), life)

        async def work(house: House = house, life: str = life) -> None:
            await house.at(START + 5 * MINUTE, 1 if life == "first" else 2)

        house.run(work)
        store.write(OWNER, lambda tx: tx.jobs.change("tea", last_due_at=None))
    assert len(house.entries()) == 2


def test_a_clock_that_is_set_back_runs_nothing_again(store: SqlStore) -> None:
    put(store)
    house = House(store, Clock())

    async def work() -> None:
        await house.at(START + 5 * MINUTE, 1)
        house.clock.now = START - DAY
        await house.clock.looked()
        house.clock.now = START + 9 * MINUTE
        await house.clock.looked()
        assert len(house.entries()) == 1
        await house.at(START + 10 * MINUTE, 2)

    house.run(work)


def test_jobs_come_and_go_while_a_gateway_runs(store: SqlStore) -> None:
    house = House(store, Clock(START + 5 * MINUTE))

    async def work() -> None:
        put(store)
        await house.at(START + 5 * MINUTE, 1)
        store.write(OWNER, remove_job, "tea")
        await house.clock.looked()  # whoever has looked already may still find it
        house.clock.now = START + DAY
        await house.clock.looked()
        assert len(house.entries()) == 1
        put(store, JOB._replace(created_at=START + DAY, enabled=0))
        house.clock.now = START + 2 * DAY
        await house.clock.looked()

    house.run(work)
    assert len(house.entries()) == 1


@pytest.mark.parametrize(("deliver", "chat"), [("scripted", "home"), ("scripted:kitchen", "kitchen")])
@pytest.mark.on_file
def test_an_answer_goes_where_the_job_says(store: SqlStore, deliver: str, chat: str) -> None:
    put(store, JOB._replace(deliver=deliver))
    house = House(store, Clock())

    async def work() -> None:
        await house.at(START + 5 * MINUTE, 1)

    house.run(work)
    assert len(house.stage.posted_to(chat)) == 1


@pytest.mark.parametrize("deliver", [None, "telegram"])
def test_an_answer_without_a_place_to_go_is_kept(store: SqlStore, deliver: str | None) -> None:
    put(store, JOB._replace(deliver=deliver))
    house = House(store, Clock())

    async def work() -> None:
        await house.at(START + 5 * MINUTE, 1)

    house.run(work)
    assert [entry.state for entry in house.entries()] == ["done"]
    assert store.read(OWNER, lambda tx: tx.outbox.listed(list(OutboxState))) == []


def test_a_job_that_was_asked_by_hand_is_answered_by_a_gateway_that_runs(store: SqlStore) -> None:
    put(store, JOB._replace(schedule="0 0 1 1 *"))
    house = House(store, Clock())

    async def work() -> None:
        route = SessionSource(platform="scripted", chat_id="kitchen")
        accepted = store.write(OWNER, ask_now, JOB, "tea@by hand", route, START, KeyRules())
        assert accepted.is_new
        await house.building.quiet()

    house.run(work)
    assert house.stage.posted_to("kitchen") == ["You said: Is there tea?"]


def test_where_the_answer_of_a_job_goes_is_known_by_what_came_from_there_last(store: SqlStore) -> None:
    """Also to the send policy, which may deny groups; what was erased tells nothing."""
    kitchen = SessionSource(platform="scripted", chat_id="kitchen", user_id="7")
    group = replace(kitchen, chat_type="group")

    def asked(tx: Transaction, name: str) -> SessionSource:
        route = SessionSource(platform="scripted", chat_id="kitchen")
        return ask_now(tx, JOB, name, route, START, KeyRules()).entry.destination

    def said(tx: Transaction, source: SessionSource, name: str) -> None:
        entry = entry_in_lane(Inbound(source, name, "hello"), KeyRules(), "main", Want.PLAIN, START)
        tx.inbox.change([accept(tx, entry, QueueRules()).entry], session_id=name)

    assert store.write(OWNER, asked, "unknown").user_id is None
    store.write(OWNER, said, kitchen, "1")
    assert store.write(OWNER, asked, "one person").user_id == "7"
    store.write(OWNER, said, group, "2")
    seen = store.write(OWNER, asked, "a group")
    assert (seen.chat_type, seen.user_id) == ("group", None)
    store.write(OWNER, lambda tx: tx.inbox.erase(["2"]))
    assert store.write(OWNER, asked, "as before").chat_type == "dm"
    store.write(OWNER, said, replace(group, account="work"), "3")
    assert store.write(OWNER, asked, "another account").chat_type == "dm"


def test_a_job_that_makes_no_sense_here_keeps_no_other_from_running(store: SqlStore) -> None:
    put(store)
    put(store, JOB._replace(name="lost", zone="Atlantis/Poseidonis"))
    put(store, JOB._replace(name="mad", schedule="61 * * * *"))
    store.write(OWNER, lambda tx: tx.jobs.add(JOB._replace(name="nowhere", deliver="dm:7")))
    house = House(store, Clock())

    async def work() -> None:
        await house.at(START + 5 * MINUTE, 1)

    house.run(work)
    assert [entry.chat for entry in house.entries()] == ["tea"]


def test_a_note_never_goes_back_and_is_for_the_job_that_ran(store: SqlStore) -> None:
    put(store)
    store.write(OWNER, note_due, JOB, START + 2)
    store.write(OWNER, note_due, JOB, START + 1)
    store.write(OWNER, note_due, JOB._replace(created_at=START - 1), START + 3)
    job = store.read(OWNER, lambda tx: tx.jobs.find("tea"))
    assert job is not None
    assert job.last_due_at == START + 2


SPRING, AUTUMN = "2026-03-29", "2026-10-25"


def ran(schedule: str, zone: str, day: str, *, step: float = MINUTE) -> list[str]:
    """When a job runs on a day, if somebody looks every so often."""
    now, end = moment(f"{day}T00:00", zone), moment(f"{day}T00:00", zone) + 25 * HOUR
    job = Job("j", schedule, zone, "?", now - 1)
    moments = []
    while now < end:
        if (due := missed(job, now)) is not None:
            moments.append(datetime.fromtimestamp(due, zone_named(zone)))
            job = job._replace(last_due_at=due)
        assert next_due(job, now) > now
        now += step
    return [f"{one:%H:%M %z}" for one in moments if f"{one:%Y-%m-%d}" == day]


@pytest.mark.parametrize(
    ("schedule", "day", "moments"),
    [
        ("30 2 * * *", SPRING, ["03:00 +0200"]),
        ("30 2 * * *", AUTUMN, ["02:30 +0200"]),
        ("30 7 * * *", SPRING, ["07:30 +0200"]),
        ("30 7 * * *", AUTUMN, ["07:30 +0100"]),
        ("0 1-4 * * *", SPRING, ["01:00 +0100", "03:00 +0200", "04:00 +0200"]),
        ("0 1-4 * * *", AUTUMN, ["01:00 +0200", "02:00 +0200", "03:00 +0100", "04:00 +0100"]),
    ],
)
@pytest.mark.parametrize("step", [MINUTE, 7 * MINUTE])
def test_on_the_days_on_which_clocks_change_what_has_its_hour_runs_once(
    schedule: str, day: str, moments: list[str], step: float
) -> None:
    assert ran(schedule, "Europe/Berlin", day, step=step) == moments


@pytest.mark.parametrize(("day", "often"), [(SPRING, 46), (AUTUMN, 50), ("2026-05-01", 48)])
def test_what_runs_every_half_hour_goes_by_the_time_that_passes(day: str, often: int) -> None:
    assert len(ran("*/30 * * * *", "Europe/Berlin", day)) == often


def test_a_zone_whose_clock_changes_by_half_an_hour_is_right_too() -> None:
    assert ran("15 2 * * *", "Australia/Lord_Howe", "2026-10-04") == ["02:30 +1100"]
    assert ran("45 1 * * *", "Australia/Lord_Howe", "2026-04-05") == ["01:45 +1100"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it has not five fields"),
        ("* * * *", "it has not five fields"),
        ("0 * * * * *", "it has not five fields"),
        ("61 * * * *", "bad minute"),
        ("* * * * mo", "bad day-of-week"),
        ("0 0 31 2 *", "bad day-of-month"),
        ("@often", "it has not five fields"),
    ],
)
def test_what_is_no_schedule_is_refused_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(Invalid, match="is no schedule") as refused:
        checked_schedule(text)
    assert says in str(refused.value)


def test_schedules_are_kept_in_one_spelling() -> None:
    assert checked_schedule("  0   7 * *  mon-fri ") == "0 7 * * mon-fri"
    assert checked_schedule("@Daily") == "0 0 * * *"


def test_the_name_of_a_moment_is_the_same_in_every_zone() -> None:
    assert due_name(JOB, START) == due_name(JOB._replace(zone="Asia/Tokyo"), START) == "tea@2026-05-01T12:00:30Z"


@pytest.mark.on_file
def test_nothing_is_sent_to_a_job(store: SqlStore) -> None:
    class Nobody:
        async def jobs(self) -> list[Job]:
            return []

        async def note(self, job: Job, due_at: float) -> None: ...

    platform = CronPlatform(Nobody())
    with pytest.raises(SendRefused, match="add it with --deliver"):
        asyncio.run(platform.send(Post(SessionSource(platform="cron", chat_id="tea"), "text", "key")))


def test_what_the_gateway_cannot_take_in_is_not_noted(store: SqlStore) -> None:
    """A refused moment that were noted would be lost."""
    put(store)
    timetable = StoredTimetable(store)

    class Full(Ledger):
        async def receive(self, inbound: Inbound) -> Receipt:
            raise OSError("The disk is full.")

    with pytest.raises(OSError, match="full"):
        asyncio.run(CronPlatform(timetable, now=lambda: START + DAY).run(Full()))
    timetable.close()
    job = store.read(OWNER, lambda tx: tx.jobs.find("tea"))
    assert job is not None
    assert job.last_due_at is None
