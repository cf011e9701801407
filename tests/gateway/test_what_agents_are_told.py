"""What the real gateway tells its agents about where they are, while everything else goes by the real ids."""

import asyncio
import json
import re
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from lane_house import Building, dm
from obedient_model import Obedient
from serving_house import Served, use_obedient_model, write_settings
from waiting import until

from segue.app.serving import Serving
from segue.config import settings_from
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Session
from segue.core.sources import SessionSource
from segue.ports.model import Request
from segue.ports.store import Transaction
from segue.sessions.opening import Opened
from segue.storage.store import SqlStore
from segue.testing import ScriptedPlatform, Stage
from segue.testing.platform import TRAITS
from segue.upkeep.living import this_run

KEY = "agent:main:scripted:dm:4711"
OPEN = {"access": {"scripted": {"dm": "open", "groups": ["*"]}}, "queue": {"debounce": 0}}


def talk(
    store: SqlStore,
    home: Path,
    sources: list[SessionSource],
    raw: dict[str, Any],
    *,
    is_raw: bool = False,
    expected: int = 0,
) -> Stage:
    """Everybody says something, one after another, and nobody has a model."""
    stage = Stage()

    async def work() -> None:
        stop = asyncio.Event()
        platform = ScriptedPlatform(stage, traits=TRAITS._replace(needs_raw_ids=is_raw))
        settings = settings_from({**OPEN, **raw}, home, {})
        serving = Serving(settings, store, this_run("segue gateway"), [platform], stop.set)
        serving.begin()
        living = asyncio.create_task(serving.gateway.run(stop))
        for number, source in enumerate(sources, 1):
            stage.say(source, "hello", message_id=uuid.uuid4().hex)
            await until(lambda wanted=number: len(stage.posted) >= wanted)  # type: ignore[misc]
        await until(lambda: len(stage.posted) >= expected)
        stop.set()
        await living
        await serving.close()

    asyncio.run(work())
    return stage


def session_in(store: SqlStore, key: str) -> Session:
    lane = store.read(OWNER, lambda tx: tx.lanes.find(key))
    assert lane is not None
    session = store.read(OWNER, lambda tx: tx.sessions.find(str(lane.session_id)))
    assert session is not None
    return session


def _age(tx: Transaction) -> None:
    lane = tx.lanes.find(KEY)
    assert lane is not None
    tx.lanes.change(lane._replace(last_person_at=lane.last_person_at - timedelta(hours=2)))


@pytest.fixture(autouse=True)
def without_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.config.environment_of_models", dict)


@pytest.fixture
def obedient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A gateway whose model says what it was told."""
    use_obedient_model(monkeypatch)
    monkeypatch.setattr("segue.config.environment_of_models", lambda: {"OPENAI_API_KEY": "x"})
    monkeypatch.chdir(tmp_path)
    served = Served(write_settings(tmp_path / "home"), {"scripted": Stage()})
    yield served
    served.close()


def ask(served: Served, *lines: str) -> Request:
    """The owner says one thing after another; what the agent was told in the end."""

    async def work() -> None:
        for line in lines:
            served.stages["scripted"].say(dm("owner"), line)
            await served.quiet()

    served.run(work)
    return [request for request in Obedient.asked if request.tools][-1]  # the others are for titles


@pytest.mark.on_file
@pytest.mark.parametrize("is_raw", [False, True])
def test_the_prompt_names_place_and_person_and_hides_ids_unless_the_platform_needs_them(
    store: SqlStore, tmp_path: Path, is_raw: bool
) -> None:
    alice = SessionSource(platform="scripted", chat_id="4711", user_id="4711", user_name="Alice")
    stage = talk(store, tmp_path, [alice], {}, is_raw=is_raw)
    session = session_in(store, KEY)
    prompt = session.system_prompt or ""
    assert re.fullmatch(r"\d{8}_\d{6}_[0-9a-f]{8}", session.id)
    assert "takes place on scripted, in a direct chat with" in prompt
    assert "Alice" in prompt
    assert ("4711" in prompt) is is_raw
    assert ("user_" in prompt) is not is_raw
    assert len(stage.posted_to("4711")) == 1


@pytest.mark.on_file
def test_the_main_lane_is_on_no_platform_and_its_owner_is_told_of_each_stranger_once(
    store: SqlStore, tmp_path: Path
) -> None:
    owner = SessionSource(platform="scripted", chat_id="1", user_id="1", user_name="Me")
    bob = SessionSource(platform="scripted", chat_id="7", user_id="7", user_name='Bob" and "all')
    raw = {"owners": ["scripted:1"], "session": {"dm_scope": "main"}}
    stage = talk(store, tmp_path, [owner, bob, bob, owner], raw, expected=5)
    prompt = session_in(store, "agent:main:main").system_prompt or ""
    assert "takes place in the direct chats of your owner, on every platform" in prompt
    assert "takes place on scripted" not in prompt
    assert "takes place on scripted, in a direct chat with" in (
        session_in(store, "agent:main:scripted:dm:7").system_prompt or ""
    )
    told = '"Bob and all" (7) wrote to you on scripted for the first time and has a conversation of their own;'
    assert [text.startswith(told) for text in stage.posted_to("1") if "for the first time" in text] == [True]
    assert not any("for the first time" in text for text in stage.posted_to("7"))


def test_the_prompt_after_a_reset_says_why_there_was_one(store: SqlStore, tmp_path: Path) -> None:
    alice = SessionSource(platform="scripted", chat_id="4711", user_id="4711", user_name="Alice")
    reset = {"session": {"reset": {"mode": "idle", "idle_minutes": 5, "notify": False}}}
    talk(store, tmp_path, [alice], reset)
    old = session_in(store, KEY).id
    store.write(OWNER, _age)
    talk(store, tmp_path, [alice], reset)
    prompt = session_in(store, KEY).system_prompt or ""
    assert "This conversation was begun anew after a long silence" in prompt
    assert f"The one before it is the session {old}" in prompt


@pytest.mark.on_file
def test_the_prompt_of_a_shared_room_names_nobody_and_stays_the_same(store: SqlStore, tmp_path: Path) -> None:
    people = [
        SessionSource(platform="scripted", chat_type="group", chat_id="room", user_id=name, user_name=name.title())
        for name in ("alice", "bob", "alice")
    ]
    talk(store, tmp_path, people, {"group_sessions_per_user": False})
    session = session_in(store, "agent:main:scripted:group:room")
    prompt = session.system_prompt or ""
    assert "Several people speak in this conversation." in prompt
    assert not any(name in prompt for name in ("alice", "Alice", "bob", "Bob"))
    assert session.message_count == 6
    assert len(store.read(OWNER, lambda tx: tx.lanes.listed())) == 1


HOMES = {"owners": ["scripted:4711"], "platforms": {"scripted": {"home_channel": "4711"}}}


@pytest.mark.on_file
def test_owners_are_told_of_home_channels_and_where_things_can_be_delivered(store: SqlStore, tmp_path: Path) -> None:
    owner = SessionSource(platform="scripted", chat_id="4711", user_id="4711", user_name="Alice")
    talk(store, tmp_path, [owner], {**HOMES, "privacy": {"redact_ids": False}})
    prompt = session_in(store, KEY).system_prompt or ""
    assert "Connected platforms: scripted." in prompt
    assert "Home channels:\n- scripted: 4711" in prompt
    assert "What you are asked to deliver goes there with send_message. Its targets:\n- scripted: The home" in prompt


@pytest.mark.on_file
def test_nobody_else_is_told_where_the_owner_is_at_home(store: SqlStore, tmp_path: Path) -> None:
    bob = SessionSource(platform="scripted", chat_id="99", user_id="99", user_name="Bob")
    in_group = SessionSource(platform="scripted", chat_type="group", chat_id="room", user_id="4711", user_name="Alice")
    talk(store, tmp_path, [bob, in_group], HOMES)
    for key in ("agent:main:scripted:dm:99", "agent:main:scripted:group:room:4711"):
        prompt = session_in(store, key).system_prompt or ""
        assert "Connected platforms: scripted." in prompt
        assert "Home channels" not in prompt
        assert "deliver" not in prompt


@pytest.mark.on_file
def test_what_an_agent_is_told_comes_with_key_id_and_times_of_its_session(store: SqlStore) -> None:
    stage, told = Stage(), list[Opened]()

    def prompt(_tx: Transaction, opened: Opened, _earlier: object) -> str:
        told.append(opened)
        return "Be brief."

    building = Building(store, stage, prompt=prompt)

    async def work() -> None:
        stage.say(dm("4711"), "hello")
        await building.quiet()

    building.run(work)
    (opened,) = told
    session = session_in(store, KEY)
    assert (opened.lane.key, opened.session.id) == (KEY, session.id)
    assert opened.session.started_at == session.started_at
    assert opened.lane.updated_at is not None


@pytest.mark.parametrize("text", ["What about @file:{}?", "@folder:{} @diff @staged", "@url:file://{}"])
def test_a_reference_is_the_words_it_is_made_of(tmp_path: Path, obedient: Served, text: str) -> None:
    (tmp_path / "notes.txt").write_text("Nobody was told of the leeks.\n")
    said = text.format(tmp_path / "notes.txt")
    request = ask(obedient, said)
    assert request.conversation[-1]["content"] == said
    assert "leeks" not in f"{request.system}{request.conversation}"


def test_a_skill_is_a_note_that_nothing_brings_up_by_itself(obedient: Served) -> None:
    before = ask(obedient, "hello")
    skill = "---\nname: soup\nrequires_toolsets: [terminal]\ntopics: [soup]\n---\nLeeks first.\n"
    write = {"action": "write", "name": "skills/soup", "text": skill}
    after = ask(obedient, f"use memory {json.dumps(write)}", "/new", "How do I make soup in the terminal?")
    assert "Leeks" not in f"{after.system}{after.conversation}"
    assert [tool.name for tool in after.tools] == [tool.name for tool in before.tools]
    assert (obedient.settings.home / "memory" / "skills" / "soup.md").read_text() == skill
    read = ask(obedient, 'use memory {"action": "read", "name": "skills/soup"}')
    assert "Leeks first." in str(read.conversation[-1]["content"]), "the control: who asks for it is told"


def test_who_asks_for_the_model_is_told_the_one_that_the_conversation_has_chosen(obedient: Served) -> None:
    ask(obedient, "hello", "/model openai/other", "/model", "/status")
    model, status = obedient.stages["scripted"].posted_to("owner")[-2:]
    assert model == "The model is openai/other, chosen as openai/other."
    assert status.splitlines()[0].split() == ["Model", "openai/other"]


def test_context_counts_every_tool_that_the_model_is_told_of(obedient: Served) -> None:
    ask(obedient, "hello", "/context detail")
    told = obedient.stages["scripted"].posted_to("owner")[-1].splitlines()
    tools = next(request.tools for request in Obedient.asked if request.tools)
    listed = told[told.index("Tools") + 1 : told.index("Largest messages") - 1]
    assert {line.split()[0] for line in listed} == {tool.name for tool in tools}
    assert "send_message" in {tool.name for tool in tools}
    assert any(line.startswith(f"Tools ({len(tools)})") for line in told)


def test_owners_are_told_since_when_each_platform_is_connected(obedient: Served) -> None:
    ask(obedient, "hello", "/status")
    (told,) = [line for line in obedient.stages["scripted"].posted_to("owner")[-1].splitlines() if "Platforms" in line]
    assert told.split(maxsplit=1)[1] == "scripted, connected just now"
