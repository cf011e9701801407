"""Everybody gets the tools that are for them, in the same order every time."""

import asyncio
from datetime import UTC
from pathlib import Path

from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.ports.tool import Tool
from segue.storage.store import SqlStore
from segue.tools.background import Background
from segue.tools.session_search import SessionSearch
from segue.tools.toolbox import Machine, notes_of, tools_for


async def nobody(_task: str, _session_id: str) -> str:
    raise NotImplementedError


def tools(store: SqlStore, scope: Scope, memory: Path, *, is_owner: bool) -> list[Tool]:
    search = SessionSearch(store, scope, lambda: UTC)
    notes = notes_of(scope, memory)
    background = Background(store, scope, "run", memory / "processes")
    machine = Machine(Path("/"), {}, memory, background, nobody) if is_owner else None
    return tools_for(machine=machine, notes=notes, search=search)


def test_owners_get_everything_and_others_what_is_theirs(store: SqlStore, tmp_path: Path) -> None:
    names = [tool.spec.name for tool in tools(store, OWNER_AT_CONSOLE, tmp_path, is_owner=True)]
    dangerous = ["read_file", "write_file", "terminal", "process", "delegate"]
    assert names == [*dangerous, "session_search", "memory", "web_fetch"]
    others = tools(store, Scope(Principal("telegram:1")), tmp_path, is_owner=False)
    assert [tool.spec.name for tool in others] == ["session_search", "memory", "web_fetch"]


def test_what_may_run_twice_says_so(store: SqlStore, tmp_path: Path) -> None:
    found = tools(store, OWNER_AT_CONSOLE, tmp_path, is_owner=True)
    assert {tool.spec.name: tool.is_idempotent({}) for tool in found} == {
        "read_file": True,
        "write_file": True,
        "terminal": False,
        "process": True,
        "delegate": False,
        "session_search": True,
        "memory": True,
        "web_fetch": True,
    }
    memory = found[-2]
    assert not memory.is_idempotent({"action": "append", "name": "a", "text": "b"})


def test_the_notes_of_each_person_and_each_room_are_apart(tmp_path: Path) -> None:
    alice, bob, room = Principal("telegram:1"), Principal("telegram:2"), Audience("agent:main:telegram:group:1")
    scopes = [OWNER_AT_CONSOLE, Scope(alice), Scope(bob), Scope(alice, room), Scope(Principal("owner"), room)]
    scopes += [Scope(Principal("../../etc")), Scope(Principal("telegram:1\nx")), Scope(alice, Audience("x"))]
    folders = [notes_of(scope, tmp_path) for scope in scopes]
    assert len(set(folders)) == len(scopes)
    assert folders[0] == notes_of(Scope(Principal("owner")), tmp_path) == tmp_path
    assert {folder.parent for folder in folders[1:]} == {tmp_path / "people"}


def test_nobody_reads_the_notes_of_somebody_else(store: SqlStore, tmp_path: Path) -> None:
    def told(scope: Scope, **said: str) -> str:
        *_, memory, _ = tools(store, scope, tmp_path, is_owner=scope == OWNER_AT_CONSOLE)
        return asyncio.run(memory.run(said, "s"))

    alice = Scope(Principal("telegram:1"))
    told(alice, action="write", name="birthday", text="in May")
    told(OWNER_AT_CONSOLE, action="write", name="password", text="secret")
    assert told(alice, action="list").startswith("1 note:\n- birthday ")
    assert told(OWNER_AT_CONSOLE, action="list").startswith("1 note:\n- password ")
    assert told(Scope(Principal("telegram:2")), action="list") == "There are no notes yet."
