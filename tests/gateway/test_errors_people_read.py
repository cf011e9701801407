"""Only the owner, alone, reads what went wrong in detail: names of providers, addresses, paths and bodies of errors."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from lane_house import Building, dm

from segue.core.errors import (
    INTERNAL_FAULT,
    BadKey,
    ContextOverflow,
    InvalidSettings,
    ModelError,
    ModelUnavailable,
    NoModel,
    RateLimited,
    SegueError,
    StreamBroken,
    UnknownModel,
    Unreachable,
)
from segue.core.events import Failed, Reply, ToolCall
from segue.core.keys import KeyRules
from segue.core.preferences import Preferences
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.ports.agent import Agent
from segue.ports.model import Request
from segue.ports.tool import ToolSpec
from segue.sessions.commanding.acts import Situation
from segue.sessions.opening import Opened
from segue.sessions.requeueing import look_at_message
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, Stage

PRIVATE = "acme at 10.0.0.7:9999 answered 'account of Mr Smith is closed', see /home/op/agent.py"
WORDS = ("acme", "10.0.0.7", "Mr Smith", "/home/op", "RuntimeError")
KEYS = KeyRules(owners=frozenset({"scripted:boss"}))
GROUP = SessionSource(platform="scripted", chat_type="group", chat_id="room", user_id="boss", user_name="Boss")
ERRORS = (
    ModelError,
    BadKey,
    ContextOverflow,
    ModelUnavailable,
    NoModel,
    RateLimited,
    StreamBroken,
    UnknownModel,
    Unreachable,
)
Making = Callable[[Opened, Preferences], Awaitable[Agent]]


def named(text: str) -> list[str]:
    return [word for word in WORDS if word in text]


def read_by(store: SqlStore, source: SessionSource, *lines: str, **building: Any) -> tuple[str, str]:
    """What is sent to a chat, and why the last message there was not answered as its sender may know."""
    stage = Stage()
    built = Building(store, stage, keys=KEYS, name=f"gateway-of-{source.chat_id}", **building)

    async def work() -> None:
        for line in lines:
            stage.say(source, line)
            await built.quiet()

    built.run(work)
    entries = store.read(OWNER, lambda tx: tx.inbox.latest(("done", "dead", "cancelled"), 10))
    return "\n".join(stage.posted_to(source.chat_id)), entries[-1].reason or ""


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.on_file
def test_a_stranger_reads_what_to_do_and_not_what_the_provider_said(store: SqlStore, kind: type[ModelError]) -> None:
    told, reason = read_by(store, dm("alice"), "hello", model=ScriptedModel(lambda _: kind(PRIVATE)))
    assert named(told + reason) == []
    assert told == reason == kind.public_text


def test_the_owner_reads_all_of_it_and_so_does_the_inbox(store: SqlStore) -> None:
    unreachable = ScriptedModel(lambda _: Unreachable(PRIVATE))
    assert read_by(store, dm("boss"), "hello", model=unreachable) == (PRIVATE, PRIVATE)
    told, reason = read_by(store, dm("alice"), "hello", model=unreachable)
    assert (told, reason) == (Unreachable.public_text, Unreachable.public_text)
    (_, last) = store.read(OWNER, lambda tx: tx.inbox.listed(("dead",)))
    entry, _ = store.read(OWNER, look_at_message, last.id)
    assert entry.reason == PRIVATE  # whoever looks after the machine knows why


@pytest.mark.on_file
def test_an_owner_in_a_group_reads_what_the_group_may(store: SqlStore) -> None:
    told, reason = read_by(store, GROUP, "hello", model=ScriptedModel(lambda _: Unreachable(PRIVATE)))
    assert told == reason == Unreachable.public_text


def fails_with(error: Exception) -> Making:
    async def agent_for(_opened: Opened, _chosen: Preferences) -> Agent:
        raise error

    return agent_for


class Own:
    """Somebody's own agent, which says of its failure what it likes."""

    async def run(self, _task: object) -> Any:
        yield Failed(PRIVATE)


async def own_agent(_opened: Opened, _chosen: Preferences) -> Any:
    return Own()


@pytest.mark.parametrize(
    ("agent_for", "expected"),
    [
        (fails_with(RuntimeError(PRIVATE)), INTERNAL_FAULT),
        (fails_with(SegueError(PRIVATE)), PRIVATE),  # a sentence of ours about what somebody asked for
        (fails_with(InvalidSettings(PRIVATE)), InvalidSettings.public_text),
        (own_agent, INTERNAL_FAULT),
    ],
)
@pytest.mark.on_file
def test_an_agent_that_fails_tells_a_stranger_nothing_of_the_machine(
    store: SqlStore, agent_for: Making, expected: str
) -> None:
    told, reason = read_by(store, dm("alice"), "hello", agent_for=agent_for)
    assert told == reason == expected


@pytest.mark.on_file
def test_a_message_that_cannot_be_begun_names_no_error(store: SqlStore) -> None:
    def prompt(*_: object) -> str:
        raise RuntimeError(PRIVATE)

    told, reason = read_by(store, dm("alice"), "hello", prompt=prompt)
    assert named(told + reason) == []


class Broken:
    """A tool that fails as nobody expected."""

    spec = ToolSpec("look", "Look.", {"type": "object", "properties": {}})

    def is_idempotent(self, _arguments: dict[str, Any]) -> bool:
        return True

    def risk(self, _arguments: dict[str, Any]) -> str | None:
        return None

    async def run(self, _arguments: dict[str, Any], _session_id: str) -> str:
        raise RuntimeError(PRIVATE)


def repeats(request: Request) -> Reply:
    """Uses the tool, and says what it said."""
    last = request.conversation[-1]
    if last["role"] == "tool":
        return Reply(str(last["content"]))
    return Reply("", (ToolCall("c1", "look"),), finish_reason="tool_calls")


@pytest.mark.on_file
def test_a_model_cannot_repeat_to_a_stranger_how_a_tool_failed(store: SqlStore) -> None:
    told, _ = read_by(store, dm("alice"), "hello", model=ScriptedModel(repeats), tools=[Broken()])
    assert told == "The tool failed: RuntimeError."
    told, _ = read_by(store, dm("boss"), "hello", model=ScriptedModel(repeats), tools=[Broken()])
    assert PRIVATE in told


@pytest.mark.parametrize("command", ["/status", "/model", "/model acme", "/model gone"])
@pytest.mark.on_file
def test_commands_name_no_provider_to_a_stranger(store: SqlStore, command: str) -> None:
    def models(name: str) -> str:
        if name == "gone":
            raise UnknownModel(PRIVATE)
        return f"{PRIVATE}/{name}"

    def situated(building: Building) -> None:
        found = building.gateway.clerk._means.situation

        def situation(*given: Any) -> Situation:
            return found(*given)._replace(model=f"{PRIVATE}/small", public_model="small", models=models)

        object.__setattr__(building.gateway.clerk._means, "situation", situation)

    def ask(source: SessionSource) -> str:
        stage = Stage()
        unreachable = ScriptedModel(lambda _: Unreachable(PRIVATE))
        built = Building(store, stage, keys=KEYS, name=f"gateway-of-{source.chat_id}", model=unreachable)
        situated(built)

        async def work() -> None:
            for line in ("hello", command):
                stage.say(source, line)
                await built.quiet()

        built.run(work)
        return stage.posted_to(source.chat_id)[-1]

    assert named(ask(dm("alice")).replace("/model acme", "").replace("The model is acme now.", "")) == []
    assert PRIVATE in ask(dm("boss"))
