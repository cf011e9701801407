"""Code of others hears what happens, and can neither delay nor break anything."""

import logging
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from lane_house import Building, dm, let_time_pass
from waiting import DEADLINE, until

from segue import hookspecs
from segue.core.policy import ResetMode, ResetPolicies, ResetPolicy
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.hookspecs import (
    Fact,
    Group,
    Hook,
    Hooks,
    MessageAccepted,
    ReplyDelivered,
    SessionReset,
    SessionStarted,
    load,
)
from segue.storage.store import SqlStore
from segue.testing import Stage

LANE = "agent:main:scripted:dm:alice"
STARTED = SessionStarted(LANE, "s", "scripted:alice")


class Listener:
    """Hears everything."""

    def __init__(self) -> None:
        self.heard: list[Fact] = []

    def __getattr__(self, name: str) -> Any:
        if name not in list(Hook):
            raise AttributeError(name)
        return self.heard.append


class Broken:
    def session_started(self, _fact: Fact) -> None:
        raise RuntimeError("no idea")


class Stuck:
    """Never comes back."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()

    def session_started(self, _fact: Fact) -> None:
        self.has_begun.set()
        threading.Event().wait()


def test_everything_that_happens_to_a_message_is_told_in_order(store: SqlStore) -> None:
    stage, listener = Stage(), Listener()
    brief = ResetPolicies(default=ResetPolicy(ResetMode.IDLE, idle=timedelta(hours=1)))
    building = Building(store, stage, policies=brief, hooks=Hooks({"test": listener}))

    async def work() -> None:
        stage.say(dm(), "hello")
        await building.quiet()
        let_time_pass(store, timedelta(hours=2))
        stage.say(dm(), "good morning")
        await building.quiet()

    building.run(work)
    figures = (hookspecs.MessageReceived, hookspecs.TurnEnded, hookspecs.SendTried)
    told = [fact for fact in listener.heard if not isinstance(fact, (hookspecs.SessionFinalized, *figures))]
    first = next(fact for fact in told if isinstance(fact, ReplyDelivered))
    assert first == ReplyDelivered(LANE, "gateway-1", first.turn_id, "scripted", "alice", "p1")
    assert [type(fact) for fact in told] == [
        *(MessageAccepted, SessionStarted, ReplyDelivered),
        *(MessageAccepted, SessionReset, ReplyDelivered),
    ]
    assert told[0] == MessageAccepted(LANE, "scripted:alice", "scripted", "alice", "m1")
    assert told[1] == SessionStarted(LANE, "gateway-1", "scripted:alice")
    assert told[4] == SessionReset(LANE, "gateway-2", "scripted:alice", "gateway-1", "idle")


def test_what_commands_do_to_a_lane_is_told_like_what_happens_by_itself(store: SqlStore) -> None:
    stage, listener = Stage(), Listener()
    building = Building(store, stage, hooks=Hooks({"test": listener}))

    async def work() -> None:
        for line in (
            *("/title Lisbon", "hello", "/new", "/new and now?"),
            *("/resume Lisbon", "/resume Lisbon", "/branch Porto"),
        ):
            stage.say(dm(), line)
            await building.quiet()

    building.run(work)
    told = [fact for fact in listener.heard if isinstance(fact, SessionStarted | SessionReset)]
    first, names = told[0].session_id, [fact.session_id for fact in told]
    assert told == [
        SessionStarted(LANE, first, "scripted:alice"),
        SessionReset(LANE, names[1], "scripted:alice", first, "session_reset"),
        SessionReset(LANE, names[2], "scripted:alice", names[1], "session_reset"),
        SessionReset(LANE, first, "scripted:alice", names[2], "session_switch"),
        SessionReset(LANE, names[4], "scripted:alice", first, "branched"),
    ]
    lane = store.read(OWNER, lambda tx: tx.lanes.find(LANE))
    assert lane is not None
    assert lane.session_id == names[4]


@pytest.mark.on_file
def test_a_listener_that_fails_or_hangs_breaks_nothing(
    store: SqlStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that hangs does so for ever: whoever waited for it would never come to an end."""
    monkeypatch.setattr("segue.gateway.gateway.LEAVING_SECONDS", 0.1)
    stage, listener, stuck = Stage(), Listener(), Stuck()
    building = Building(store, stage, hooks=Hooks({"broken": Broken(), "stuck": stuck, "test": listener}))

    async def work() -> None:
        stage.say(dm("alice"), "hello")
        stage.say(dm("bob"), "hello")
        await building.quiet()
        await until(lambda: sum(isinstance(fact, SessionStarted) for fact in listener.heard) == 2)
        await until(lambda: stuck.has_begun.is_set() and "session_started of broken" in caplog.text)

    with caplog.at_level(logging.ERROR):
        building.run(work)
    assert stage.posted_to("alice") == stage.posted_to("bob") == ["You said: hello"]
    assert sum(isinstance(fact, SessionStarted) for fact in listener.heard) == 2
    assert [line for line in caplog.messages if "session_started of broken" in line]


@pytest.mark.on_file
def test_a_listener_that_is_too_slow_is_not_told_everything_and_that_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hookspecs, "MOST_WAITING", 5)
    stuck = Stuck()
    hooks = Hooks({"stuck": stuck})
    hooks.tell(STARTED)
    assert stuck.has_begun.wait(DEADLINE)
    for _ in range(20):
        hooks.tell(STARTED)
    hooks.close(0.05)
    assert len([line for line in caplog.messages if "stuck are too slow" in line]) == 1


@pytest.mark.on_file
def test_listeners_are_found_in_installed_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "loud.py").write_text(
        "heard = []\ndef session_started(fact):\n    heard.append(fact)\ndef make(settings):\n    return settings\n"
    )
    metadata = tmp_path / "loud-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[segue.hooks]\nloud = loud\nabsent = nowhere_to_be_found\n[segue.platforms]\npigeon = loud:make\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    listeners = load(Group.HOOKS)
    hooks = Hooks(listeners)
    hooks.tell(STARTED)
    hooks.close(DEADLINE)
    assert listeners["loud"].heard == [STARTED]
    assert "absent" not in listeners
    assert [line for line in caplog.messages if "nowhere_to_be_found" in line]
    assert load(Group.PLATFORMS)["pigeon"]({"name": "x"}) == {"name": "x"}
