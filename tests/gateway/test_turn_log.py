"""What a gateway logs of its work: a line for each turn, and to which lane and session each line belongs."""

import asyncio
import logging
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from lane_house import Building, HeldModel, dm, let_time_pass
from waiting import until

from segue.agent.door import Access
from segue.cli.log_lines import LineFormatter
from segue.core.errors import ModelUnavailable, StoreBusy, StoreClosed, StoreError, StoreFull
from segue.core.events import Reply
from segue.core.sources import SessionSource
from segue.core.usage import Usage
from segue.gateway import outages, spans
from segue.gateway.at_work import find_work, log_context, logged_for
from segue.gateway.outages import OutageLog
from segue.ports.model import Request
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, Stage

ALICE = "agent:main:scripted:dm:alice"
TURN = re.compile(
    r"INFO Turn done after \d+\.\d s \(1 model call, 0 tool calls, 1,200 input tokens, 34 output tokens\)"
    rf" \[lane={ALICE} session=gateway-\d+\]"
)


class Log(logging.Handler):
    """The lines that a gateway's log would hold."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LineFormatter())
        self.records: list[logging.LogRecord] = []
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.lines.append(self.format(record).partition(" ")[2].partition(" ")[2])

    def about(self, text: str) -> list[str]:
        return [line for line in self.lines if text in line]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    handler, ours = Log(), logging.getLogger("segue")
    level = ours.level
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    yield handler
    ours.removeHandler(handler)
    ours.setLevel(level)


def answer(request: Request) -> Any:
    if "fail" in str(request.conversation[-1]["content"]):
        return ModelUnavailable("acme is too busy.")
    return Reply("Yes.", usage=Usage(1200, 34))


def said(store: SqlStore, *lines: str, who: str = "alice", **building: Any) -> Building:
    stage = Stage()
    built = Building(store, stage, **({"model": ScriptedModel(answer)} | building))

    async def work() -> None:
        for number, line in enumerate(lines):
            stage.say(dm(who), line, message_id=f"{built.gateway.presence.run.id}-{number}")
            await built.quiet()

    built.run(work)
    return built


def test_each_turn_has_one_line_with_its_lane_session_seconds_tokens_and_outcome(store: SqlStore, log: Log) -> None:
    said(store, "hello", "hello again", "fail")
    done, again, failed = log.about("Turn ")
    assert TURN.fullmatch(done)
    assert TURN.fullmatch(again)
    assert failed.startswith("WARNING Turn failed after ")
    assert re.search(rf": acme is too busy\. \[lane={ALICE} session=gateway-\d+\]$", failed)


@pytest.mark.on_file
def test_a_turn_in_json_has_its_numbers_as_fields(store: SqlStore, log: Log) -> None:
    said(store, "hello")
    (record,) = [one for one in log.records if one.getMessage().startswith("Turn ")]
    fields = vars(record)["segue_fields"]
    assert fields["seconds"] >= 0
    assert fields | {"seconds": 0} == {
        "outcome": "done",
        "seconds": 0,
        "model_calls": 1,
        "tool_calls": 0,
        "input_tokens": 1200,
        "output_tokens": 34,
    }


@pytest.mark.on_file
def test_debug_adds_messages_calls_and_deliveries_and_none_of_their_words(store: SqlStore, log: Log) -> None:
    logging.getLogger("segue").setLevel(logging.DEBUG)
    said(store, "a secret plan")
    steps = ("Message gateway-0 of scripted accepted", "Model call: scripted/scripted", "Reply delivered on scripted")
    assert all(log.about(f"DEBUG {step}") for step in steps)
    assert log.about("Delivery to scripted: delivered")
    assert not log.about("a secret plan")
    assert not log.about("Yes.")


@pytest.mark.on_file
def test_a_session_that_begins_and_one_that_is_reset_have_a_line(store: SqlStore, log: Log) -> None:
    said(store, "hello", "/new")
    assert log.about("Session started") == [f"INFO Session started [lane={ALICE} session=gateway-1]"]
    (line,) = log.about("Session reset")
    assert re.fullmatch(rf"INFO Session reset \(\w+\), replaces gateway-1 \[lane={ALICE} session=gateway-\d+\]", line)
    let_time_pass(store, timedelta(days=3))
    said(store, "hello", name="later")
    assert [line for line in log.about("Session reset (") if "session=later-" in line]


@pytest.mark.on_file
def test_every_warning_about_a_conversation_says_in_which_lane_or_session(store: SqlStore, log: Log) -> None:
    """Also what somebody else's agent, or a library it uses, warns of."""

    async def broken(*_: object) -> Any:
        logging.getLogger("segue.somebody").warning("about to fail")
        raise RuntimeError("no idea")

    def unready(*_: object) -> str:
        raise RuntimeError("no prompt")

    said(store, "hello", agent_for=broken)
    said(store, "hello", who="bob", prompt=unready, name="other")
    warnings = [
        line
        for record, line in zip(log.records, log.lines, strict=True)
        if record.levelno >= logging.WARNING and record.name != spans.__name__  # whose thread may be of another test
    ]
    assert len(warnings) >= 4
    lanes = [re.search(r" \[lane=agent:main:scripted:dm:(alice|bob)[ \]]", line) for line in warnings]
    assert {found[1] for found in lanes if found} == {"alice", "bob"}
    assert all(lanes), warnings


@pytest.mark.on_file
def test_warnings_outside_of_turns_say_what_they_are_about(store: SqlStore, log: Log) -> None:
    async def compress(*_: object) -> str:
        raise RuntimeError("An odd model.")

    said(store, "hello", "/compress", compress=compress)
    (line,) = log.about("Compression failed")
    assert re.search(rf"told \[lane={ALICE}( session=\S+)?\]$", line.splitlines()[0])

    stage = Stage()
    building = Building(store, stage, name="other")

    async def work() -> None:
        stage.say(SessionSource(platform="scripted", chat_id="x", chat_type="odd", user_id="dave"), "hello")
        await until(lambda: log.about("belongs to no lane"))
        await building.quiet()

    building.run(work)
    (line,) = log.about("belongs to no lane")
    assert line.startswith("ERROR Message of scripted, chat x ignored, because it belongs to no lane: ")


@pytest.mark.on_file
def test_what_a_turn_began_and_left_behind_is_no_line_of_it() -> None:
    async def left_behind(go_on: asyncio.Event) -> dict[str, str]:
        await go_on.wait()
        return log_context()

    async def work() -> None:
        go_on = asyncio.Event()
        with logged_for("a lane", "a session"):
            assert log_context() == {"lane_key": "a lane", "session_id": "a session"}
            with logged_for("another"):
                assert log_context() == {"lane_key": "another"}
                assert find_work() is None
            left = asyncio.create_task(left_behind(go_on))
            await asyncio.sleep(0)
        go_on.set()
        assert await left == {}

    asyncio.run(work())


@pytest.mark.on_file
def test_a_gateway_that_stops_says_what_it_waits_for_and_what_it_leaves(store: SqlStore, log: Log) -> None:
    stage, model = Stage(), HeldModel()
    built = Building(store, stage, model=model)
    built.gateway.drain_seconds = 0.05

    async def work() -> None:
        stage.say(dm(), "hello")
        await built.asked()
        await until(lambda: built.gateway.office.at_work_in)

    built.run(work)
    assert log.about("Gateway stopping") == [
        f"INFO Gateway stopping (shutdown_timeout): waiting up to 0.05 s for 1 turn, lane {ALICE}"
    ]
    assert log.about("not finished") == [
        f"WARNING 1 turn not finished within 0.05 s; resumed by the next gateway: lane {ALICE}"
    ]
    assert log.about("Turn interrupted after ")
    assert built.gateway.stopping_at is not None
    said(store, name="idle")
    assert log.lines[-1] == "INFO Gateway stopping (shutdown_timeout): no turn is running"


@pytest.mark.on_file
def test_a_turn_that_a_crash_cut_off_is_resumed_with_a_line(store: SqlStore, log: Log) -> None:
    stage, model = Stage(), HeldModel()
    built = Building(store, stage, model=model)
    built.gateway.drain_seconds = 0.0

    async def work() -> None:
        stage.say(dm(), "hello")
        await built.asked()
        await until(lambda: built.gateway.office.at_work_in)

    built.run(work)
    said(store, "and?", name="next")
    (line,) = log.about("Resuming a turn")
    assert line == f"INFO Resuming a turn that was cut off (attempt 2) [lane={ALICE}]"


def test_an_outage_has_a_line_when_it_begins_and_one_when_it_is_over(log: Log) -> None:
    now = 0.0
    noted = OutageLog(lambda: now)
    lost = StoreBusy("The server at db does not answer.")
    for _ in range(3):
        noted.notice(Access.READ, lost, now)
        noted.notice(Access.WRITE, lost, now)
    now = 12.5
    noted.notice(Access.READ, None, -1.0)  # it began before the outage, and only ends now
    noted.notice(Access.WRITE, None, -1.0)
    assert len(log.lines) == 1
    noted.notice(Access.READ, None, now)
    noted.notice(Access.WRITE, None, now)
    noted.notice(Access.WRITE, None, now)
    assert log.lines == [
        "WARNING Database unavailable, retrying until it is back: The server at db does not answer.",
        "INFO Database available again after 12.5 s",
    ]


def test_a_full_disk_that_can_be_read_is_one_outage_and_a_refusal_is_none(log: Log) -> None:
    noted = OutageLog(lambda: 0.0)
    for _ in range(3):
        noted.notice(Access.WRITE, StoreFull("The disk is full."), 0.0)
        noted.notice(Access.READ, None, 0.0)
    noted.notice(Access.READ, StoreError("UNIQUE constraint failed."), 0.0)
    noted.notice(Access.READ, StoreClosed(), 0.0)
    assert len(log.lines) == 1


def test_a_database_outage_leaves_no_traceback(store: SqlStore, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a gateway was doing at that moment."""
    stage = Stage()
    built = Building(store, stage, model=ScriptedModel(answer))
    is_away = False
    for name in ("read", "write", "write_at_once", "write_together"):
        monkeypatch.setattr(store, name, _failing(getattr(store, name), lambda: is_away))

    async def work() -> None:
        nonlocal is_away
        stage.say(dm(), "hello")
        await built.quiet()
        is_away = True
        stage.say(dm(), "are you there?")
        await until(lambda: log.about("Database unavailable"))
        await built.lane_looks.more()
        is_away = False
        await built.quiet()

    built.run(work)
    assert stage.posted_to("alice") == ["Yes.", "Yes."]
    assert len(log.about("Database unavailable")) == len(log.about("Database available again")) == 1
    assert [record.getMessage() for record in log.records if record.exc_info] == []
    assert outages.is_outage(StoreBusy("x"))


def _failing(call: Any, is_away: Any) -> Any:
    def work(*args: Any, **kwargs: Any) -> Any:
        if is_away():
            raise StoreBusy("The server does not answer.")
        return call(*args, **kwargs)

    return work
