"""The whole chat over a real connection, for many times what its model can read; what the server saw is the judge."""

import asyncio
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from counting_server import Asked, CountingServer, Said
from torture_rounds import rounds
from waiting import DEADLINE

from segue import app
from segue.app.chatting import OpenChat
from segue.config import settings_from
from segue.core.commands import Command
from segue.core.events import Compressed, Event, Failed, ToolCall
from segue.core.naming import TITLE_INSTRUCTIONS
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.silence import FLUSH_REQUEST
from segue.core.summaries import INSTRUCTIONS
from segue.sessions.finding import find_tip, get_id
from segue.sessions.reading import view_of
from segue.tools import session_search

pytestmark = pytest.mark.process

WINDOW = 12_000
WINDOWS = {"openai": rounds(8, in_torture=20), "anthropic": rounds(4, in_torture=20)}
NAMES = ["Agatha", "Bertram", "Cosima", "Dietmar", "Elfriede", "Friedrich", "Gudrun", "Hartmut", "Irmgard", "Jürgen"]
FACTS = [f"The locker of {name} has the code {1_000 + 37 * at}." for at, name in enumerate(NAMES * 2)]
TROUBLES = ("well", "failing", "garbage")


class Talk:
    """What the model answers: it looks at a file now and then, and its summaries are as good as the trouble allows."""

    def __init__(self, trouble: str) -> None:
        self._trouble = trouble
        self._turns = itertools.count(1)

    def __call__(self, asked: Asked) -> Said:
        if asked.system == INSTRUCTIONS:
            return Said(self._summary(asked.last))
        if asked.system == TITLE_INSTRUCTIONS:
            return Said("Lockers and soup")
        if asked.last == FLUSH_REQUEST:
            return Said("NO_REPLY")
        if "leek" in asked.last:
            return Said("The file is about leeks.")
        if next(self._turns) % 7 == 0:
            return Said("", "read_file", '{"path": "notes.txt"}')
        return Said("Noted. " + "Soup is good. " * 20)

    def _summary(self, words: str) -> str:
        if self._trouble == "garbage":
            return "xyzzy plugh fnord " * 300
        return " ".join(line[:60] for line in words.splitlines())[:3_000]


@pytest.fixture(autouse=True)
def _time_to_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found does not depend on how busy the machine is."""
    monkeypatch.setattr(session_search, "SECONDS", DEADLINE)


async def nobody(_call: ToolCall, _risk: str) -> bool:
    return False


def settings_for(kind: str, url: str, trouble: str, home: Path) -> Any:
    provider = {"kind": kind, "base_url": f"{url}/v1" if kind == "openai" else url, "api_key": "x"}
    nowhere = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1"}
    raw = {
        "model": "here/m",
        "models": {"windows": {"m": WINDOW}},
        "providers": {"here": provider, "nowhere": nowhere},
        "auxiliary": {"model": "nowhere/m" if trouble == "failing" else "here/m"},
    }
    return settings_from(raw, home, {"PATH": os.environ["PATH"]})


@pytest.mark.parametrize(
    ("kind", "trouble"), [("openai", "well"), ("anthropic", "well"), ("openai", "failing"), ("openai", "garbage")]
)
def test_no_request_is_too_long_and_nothing_is_lost(tmp_path: Path, kind: str, trouble: str) -> None:
    (tmp_path / "notes.txt").write_text("leek " * 400)
    windows = WINDOWS[kind] if trouble == "well" else min(WINDOWS[kind], 5)
    events: list[Event] = []

    async def work() -> tuple[CountingServer, str]:
        server = CountingServer(WINDOW, Talk(trouble))
        settings = settings_for(kind, await server.start(), trouble, tmp_path / "home")
        with app.open_store(chosen=settings) as store:
            opened = OpenChat(settings, store, tmp_path, nobody, lambda _: None)
            await opened.begin()
            await opened.chat.command(Command("title", "my project"))
            words = itertools.chain(FACTS, itertools.repeat("And what else is there to say about soup? " * 60))
            told = 0
            while told < windows * WINDOW * 4:
                said = next(words)
                await opened.chat.say(said, events.append)
                told += len(said) + 300
            session_id = str(opened.chat.session_id)
            tip = store.read(OWNER, lambda tx: find_tip(tx, get_id(tx, "my project")))
            assert tip == session_id, "the name leads to the newest part"
            await _finds(opened, session_id)
            await opened.close()
        await server.stop()
        return server, session_id

    server, _ = asyncio.run(work())
    assert not [event for event in events if isinstance(event, Failed)]
    check(server, [event for event in events if isinstance(event, Compressed)], windows)


async def _finds(opened: OpenChat, session_id: str) -> None:
    """Every fact is in what the model is told, or found by the agent's own search."""
    store = opened._door.store
    view = "\n".join(message.content or "" for message in store.read(OWNER, view_of, session_id))
    agent: Any = await opened.crew.agent_for(opened.chat.preferences, opened._tools(), opened._offline)
    search = agent._tools["session_search"]
    search._summarise = None
    for fact in FACTS:
        if fact not in view:
            assert fact in await search.run({"query": f"locker {fact.split()[3]}", "limit": 3}, session_id), fact


def check(server: CountingServer, moves: list[Compressed], windows: int) -> None:
    assert server.refused == 0
    assert max(asked.tokens for asked in server.journal) <= WINDOW
    assert len(moves) >= windows // 2
    assert [move.title for move in moves] == [f"my project #{number}" for number in range(2, len(moves) + 2)]
    flushes = [asked for asked in server.journal if asked.last == FLUSH_REQUEST]
    assert len(flushes) == len(moves), "once for each part, before it is compressed"
    talk = [asked for asked in server.journal if asked.system not in (INSTRUCTIONS, TITLE_INSTRUCTIONS)]
    for asked in talk:
        assert_answered(asked.body["messages"])
    changes = sum(not _begins_with(later.body, before.body) for before, later in itertools.pairwise(talk))
    assert changes <= 2 * len(moves), "what was sent before changes when it is compressed, and around the silent turn"


def assert_answered(messages: list[dict[str, Any]]) -> None:
    """Every call has its result right behind it."""
    said = json.dumps(messages)
    assert said.count('"tool_use"') == said.count('"tool_result"')
    for at, message in enumerate(messages):
        for number, call in enumerate(message.get("tool_calls") or [], 1):
            assert messages[at + number]["tool_call_id"] == call["id"]


def _begins_with(later: dict[str, Any], before: dict[str, Any]) -> bool:
    mine, theirs = ([_plain(one) for one in body["messages"]] for body in (later, before))
    return mine[: len(theirs)] == theirs


def _plain(message: dict[str, Any]) -> str:
    """A message without the marks that tell a provider what to keep in its cache."""
    said = json.loads(json.dumps(message))
    for part in said["content"] if isinstance(said.get("content"), list) else []:
        part.pop("cache_control", None)
    return json.dumps(said, sort_keys=True)
