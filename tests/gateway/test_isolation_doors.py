"""What one person says reaches nobody else, whichever door the other one tries.

Everything is the product's own: the lanes, the commands, the tools, the prompts. Only the platform is a stage, and the
model does what it is told and keeps every request.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from lane_house import dm
from obedient_model import Obedient
from serving_house import Served, use_obedient_model, write_settings

from segue.app import serving
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.gateway import clerk
from segue.ports.model import Request
from segue.ports.store import Transaction
from segue.sessions.opening import Admitted
from segue.sessions.reading import conversation
from segue.testing import Stage

LINKS = {"anna": ["scripted:anna", "other:anna2"], "bert": ["scripted:bert", "other:bert2"]}


def elsewhere(person: str) -> SessionSource:
    """The same people on another platform, under another id."""
    return SessionSource(platform="other", chat_id=f"{person}2", user_id=f"{person}2", user_name=person.title())


def group(person: str, room: str = "club") -> SessionSource:
    return SessionSource(
        platform="scripted", chat_type="group", chat_id=room, chat_name=room, user_id=person, user_name=person.title()
    )


def thread(person: str) -> SessionSource:
    return SessionSource(
        platform="scripted",
        chat_type="group",
        chat_id="hall",
        thread_id="77",
        user_id=person,
        user_name=person.title(),
    )


class Houses:
    """Two platforms of one gateway, and what was said, sent and asked there."""

    def __init__(self, home: Path) -> None:
        self.stages = {"scripted": Stage(), "other": Stage()}
        self.served = Served(home, self.stages)
        self._seen = 0

    async def say(self, source: SessionSource, *lines: str) -> "Heard":
        """One thing after another; what was sent and asked because of it."""
        posted_before = {name: len(stage.posted) for name, stage in self.stages.items()}
        asked_before = len(Obedient.asked)
        for line in lines:
            self.stages[source.platform].say(source, line)
            await self.served.quiet()
        posted = [
            (str(one.route["platform"]), str(one.route.get("chat_id")), one.text)
            for name, stage in self.stages.items()
            for one in stage.posted[posted_before[name] :]
        ]
        return Heard(posted, list(Obedient.asked[asked_before:]))

    def session_of(self, lane_key: str) -> str:
        lane = self.served.store.read(OWNER, lambda tx: tx.lanes.find(lane_key))
        assert lane is not None
        assert lane.session_id is not None
        return lane.session_id


class Heard(NamedTuple):
    posted: Sequence[tuple[str, str, str]]
    asked: Sequence[Request]

    @property
    def everything(self) -> str:
        """Every byte that was sent or shown to a model."""
        asked = [[one.system, list(one.conversation), [tool.description for tool in one.tools]] for one in self.asked]
        return json.dumps([list(self.posted), asked], ensure_ascii=False)


@pytest.fixture
def houses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Houses]:
    use_obedient_model(monkeypatch)
    monkeypatch.chdir(tmp_path)
    made = Houses(write_settings(tmp_path / "home", session={"identity_links": LINKS}))
    yield made
    made.served.close()


def search(words: str) -> str:
    return f"use session_search {json.dumps({'query': words, 'limit': 10})}"


def doors(words: str, sessions: Sequence[str], title: str) -> list[str]:
    """Everything that a person could try to get at what somebody else has said."""
    return [
        f"/search {words}",
        f"/search ~{words[2:8]}",
        f"/resume {title}",
        *(f"/resume {session}" for session in sessions),
        *(f"/resume {session[:-2]}" for session in sessions),
        "/sessions 50",
        "/resume 1",
        "/history 50",
        "/title",
        f"/title {title}",
        "/status",
        "/usage",
        "/context detail",
        "/branch",
        "/undo 5",
        "/redo",
        "/retry",
        "/handoff scripted",
        "/send off",
        "/nonsense",
        search(words),
        search("*"),
        "hello",
        "/new",
        search(words),
        "/compress",
    ]


ANNAS = {
    "a direct message": dm("anna"),
    "a group": group("anna"),
    "a thread": thread("anna"),
    "another platform": elsewhere("anna"),
}
BERTS = {
    "a direct message": dm("bert"),
    "the same group": group("bert"),
    "another group": group("bert", "bar"),
    "another platform": elsewhere("bert"),
    "a stranger's": dm("carl"),
}


KEYS = ["agent:main:dm:anna", "agent:main:scripted:group:club:anna", "agent:main:scripted:group:hall:topic:77"]


async def anna_speaks(houses: Houses) -> list[str]:
    """Somebody tells a secret in every kind of place; the sessions that have it."""
    for number, (place, source) in enumerate(ANNAS.items()):
        await houses.say(source, f"the zebrafish{number} password is s3cret-{number} from {place}")
        await houses.say(source, f"/title Zebra {number}")
    return [houses.session_of(key) for key in KEYS]


async def leaks(houses: Houses, source: SessionSource, sessions: Sequence[str]) -> list[str]:
    """The doors through which somebody gets at what Anna has said."""
    found = []
    for number in range(len(ANNAS)):
        for line in doors(f"zebrafish{number}", sessions, f"Zebra {number}"):
            heard = await houses.say(source, line)
            strays = [chat for _, chat, _ in heard.posted if chat.startswith("anna")]
            is_in = any(f"now.\n{session}" in text for session in sessions for *_, text in heard.posted)
            if "s3cret" in heard.everything or "password" in heard.everything or strays or is_in:
                found.append(line)
    return found


@pytest.mark.parametrize("door", BERTS)
def test_what_somebody_said_is_in_no_byte_for_another(houses: Houses, door: str) -> None:
    async def work() -> None:
        sessions = await anna_speaks(houses)
        assert await leaks(houses, BERTS[door], sessions) == []
        for session in sessions:
            (first, *_) = houses.served.store.read(OWNER, conversation, session)
            assert "s3cret" in str(first["content"]), "and nobody has moved it or taken it back"

    houses.served.run(work)


def test_without_scopes_nearly_every_door_would_leak(houses: Houses, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the same doors, tried by somebody who is taken for the owner at the terminal."""
    monkeypatch.setattr(clerk, "admitted_to", lambda entry: Admitted(entry.lane_key, OWNER))
    monkeypatch.setattr(serving, "_scope_of", lambda _: OWNER)
    found: list[str] = []

    async def work() -> None:
        found.extend(await leaks(houses, dm("bert"), await anna_speaks(houses)))

    houses.served.run(work)
    for door in ("/search zebra", "/resume Zebra 1", "/resume 2", "/history", "use session_search"):
        assert any(line.startswith(door) for line in found), door


def test_who_said_it_gets_it_back_through_the_same_doors(houses: Houses) -> None:
    """Also under another id that is linked, and never in a group."""

    async def work() -> None:
        await anna_speaks(houses)
        for source in (dm("anna"), elsewhere("anna")):
            await houses.say(source, "/new")
            for line in ("/search zebrafish0", search("zebrafish0")):
                assert "s3cret-0" in (await houses.say(source, line)).everything, line
        for line in ("/search zebrafish0", "/search zebrafish3", "/sessions", search("zebrafish0 OR zebrafish3")):
            assert "s3cret" not in (await houses.say(group("anna", "bar"), line)).everything, line
        assert "s3cret-1" in (await houses.say(group("anna"), "/history")).everything
        assert "s3cret-0" not in (await houses.say(group("anna"), search("zebrafish0"))).everything

    houses.served.run(work)


def test_a_thread_has_what_was_said_in_it_and_nobodys_direct_messages(houses: Houses) -> None:
    async def work() -> None:
        await houses.say(dm("anna"), "the zebrafish password is s3cret-anna")
        await houses.say(dm("bert"), "the zebrafish password is s3cret-bert")
        await houses.say(thread("anna"), "the zebrafish swims on tuesday")
        heard = await houses.say(thread("bert"), "and who feeds it?")
        assert "zebrafish swims on tuesday" in heard.everything
        assert "[Anna] the zebrafish swims" in heard.everything
        for person in ("anna", "bert"):
            assert "swims on tuesday" in (await houses.say(thread(person), "/history 9")).everything
            assert "swims on tuesday" in (await houses.say(thread(person), "/search zebrafish")).everything
        for person in ("anna", "bert"):
            for line in doors("zebrafish", [houses.session_of("agent:main:dm:anna")], "Zebra"):
                assert "s3cret" not in (await houses.say(thread(person), line)).everything, line

    houses.served.run(work)


def test_an_owner_in_a_group_leaves_their_direct_messages_at_home(houses: Houses) -> None:
    async def work() -> None:
        await houses.say(dm("owner"), "the zebrafish password is s3cret-owner", "/title Zebra")
        mine = houses.session_of("agent:main:scripted:dm:owner")
        for source in (group("owner"), thread("owner")):
            for line in doors("zebrafish", [mine], "Zebra"):
                if line.startswith("/handoff"):
                    continue  # by which an owner decides otherwise
                assert "s3cret" not in (await houses.say(source, line)).everything, line
            tools = {tool.name for tool in Obedient.asked[-1].tools}
            assert "terminal" not in tools
        assert "s3cret" in (await houses.say(dm("owner"), "/new", "/search zebrafish")).everything

    houses.served.run(work)


def test_a_conversation_is_handed_over_by_owners_alone_and_said_only_there(houses: Houses) -> None:
    async def work() -> None:
        await houses.say(group("owner", "den"), "/sethome")
        await houses.say(dm("anna"), "the zebrafish password is s3cret-0", "/handoff scripted")
        assert not any("s3cret" in text for text in houses.stages["scripted"].posted_to("den"))
        await houses.say(dm("owner"), "the leek soup is s3cret-owner")
        heard = await houses.say(dm("owner"), "/handoff scripted")
        assert {chat for _, chat, _ in heard.posted} == {"owner", "den"}, heard.posted
        heard = await houses.say(dm("bert"), *doors("leek", [], "leek"))
        assert "s3cret" not in heard.everything

    houses.served.run(work)


def test_the_notice_of_a_reset_goes_to_whom_it_concerns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_obedient_model(monkeypatch)
    houses = Houses(write_settings(tmp_path / "home", session={"reset": {"mode": "idle", "idle_minutes": 1}}))

    async def work() -> None:
        for source in (dm("anna"), group("anna"), dm("bert"), group("bert")):
            await houses.say(source, f"the {source.user_id} {source.chat_type} password")
        houses.served.store.write(OWNER, _long_ago)
        for source in (dm("bert"), group("bert")):
            heard = await houses.say(source, "and now?")
            assert f"the bert {source.chat_type} password" in heard.posted[0][2], "the notice"
            assert "anna" not in heard.everything.replace('"anna"', "")

    houses.served.run(work)
    houses.served.close()


def _long_ago(tx: Transaction) -> None:
    for lane in tx.lanes.listed():
        tx.lanes.change(lane._replace(last_person_at=lane.last_person_at - timedelta(hours=5)))
