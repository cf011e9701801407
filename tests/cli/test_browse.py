"""`segue sessions browse` without a terminal: every key, what it leaves in the store, and what the screen says."""

import asyncio
import json
import re
import stat
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from postgres_server import Emptied
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import Input
from waiting import DEADLINE

from segue import app
from segue.cli import browsing
from segue.cli.browse import browse
from segue.cli.browsing.acts import file_name_for
from segue.cli.browsing.browser import READ_ONLY, Browser
from segue.cli.browsing.dialogs import Option
from segue.cli.browsing.keys import KEYS
from segue.cli.browsing.preview import look_at
from segue.cli.browsing.rows import View, list_rows, row_pieces
from segue.core.errors import StoreBusy, StoreReadOnly
from segue.core.messages import Draft
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sessions import Session
from segue.facade.searching import consult
from segue.ports.store import Transaction
from segue.sessions import discarding, marking, titling
from segue.storage.postgres import PostgresEngine
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import Engine, SqlStore

pytestmark = pytest.mark.on_file

Run = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[[Pilot[str]], Awaitable[None]]

NOW = 1_741_170_000.0
HOUR = 3600.0
WIDE, NARROW = (140, 40), (80, 24)
NEVER = 1e9
"""Seconds that no test lasts."""
on_each_database = pytest.mark.parametrize("engine", ["sqlite", "postgres"], indirect=True)

DANGEROUS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
HOSTILE = {
    "markup": "[red]danger[/red] [link=https://example.org]here[/link] [/] [@click=app.leave]x[/]",
    "escapes": "a\x1b[2Jb\x1b]0;owned\x07c\x9b31md\x07",
    "lines": "first\nsecond\r\nthird\tfourth\u2028fifth",
    "direction": "abc\u202edef\u2066ghi",
    "wide": "旅行の計画：京都と奈良をめぐる四日間の旅" * 6,
    "joined": "👩‍👩‍👧‍👦👍🏽❤️1️⃣🇵🇹🏴‍☠️" * 12,
    "marks": "z\u0301\u0302\u0303\u0304" * 80,
    "right to left": "מסמכים לדירה החדשה رسالة إلى المدرسة " * 5,
    "unseen": "a\u00adb\u200bc\u2060d\ufefff",
    "long": "word " * 400,
    "empty": "",
}


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Engine:
    """What the browser draws is the same on each database; what it asks of the store is tried on each."""
    if getattr(request, "param", "sqlite") == "sqlite":
        prepared: Path = request.getfixturevalue("prepared_home")
        return SqliteEngine(prepared / "state.db")
    emptied: Emptied = request.getfixturevalue("emptied")
    return PostgresEngine(emptied.empty())


async def _give_way(*_: float) -> None:
    """Let everything run that is ready to."""
    for _turn in range(20):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def _is_waited_for_by_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is followed by what the test waits for, not by Textual's guess, by the clock, that all is done."""
    monkeypatch.setattr("textual.app.wait_for_idle", _give_way)
    monkeypatch.setattr("textual.pilot.wait_for_idle", _give_way)


def add(store: SqlStore, session_id: str, said: list[str] | None = None, **columns: Any) -> str:
    """A session whose messages are said by turns."""
    texts = ["Hello there", "Good morning"] if said is None else said
    values: dict[str, Any] = {"source": "cli", "last_active_at": NOW, "started_at": NOW, "message_count": len(texts)}
    values |= {"first_line": texts[0]} | columns

    def work(tx: Transaction) -> None:
        assert tx.sessions.insert(Session(session_id, **values))
        for at, text in enumerate(texts):
            tx.messages.insert(session_id, at + 1, "live", Draft(("user", "assistant")[at % 2], text, timestamp=NOW))

    store.write(OWNER_AT_CONSOLE, work)
    return session_id


def tag_with(tx: Transaction, session_id: str, tag: str) -> None:
    tx.sessions.tag(session_id, [tag])


def found(store: SqlStore, session_id: str) -> Session | None:
    return store.read(OWNER_AT_CONSOLE, lambda tx: tx.sessions.find(session_id))


def tags(store: SqlStore, session_id: str) -> list[str]:
    return store.read(OWNER_AT_CONSOLE, lambda tx: tx.sessions.tags([session_id]).get(session_id, []))


def drive(store: Any, script: Script, size: tuple[int, int] = WIDE, *, can_write: bool = True) -> str | None:
    """Run the browser, do what the script says once the list is there, and leave; what was chosen."""

    async def run() -> str | None:
        browser = Browser(store, can_write=can_write, clock=lambda: NOW)
        async with browser.run_test(size=size) as pilot:
            await until(pilot, lambda: "Reading…" not in screen(pilot))
            await pilot.pause()
            await script(pilot)
        return browser.return_value

    return asyncio.run(run())


async def until(pilot: Pilot[str], condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"it never came to this:\n{screen(pilot)}"
        await pilot.pause(0.01)


async def until_seen(pilot: Pilot[str], *texts: str) -> None:
    def are_seen() -> bool:
        seen = screen(pilot)
        return all(text in seen for text in texts)

    await until(pilot, are_seen)


async def until_listed(pilot: Pilot[str], *expected: str) -> None:
    await until(pilot, lambda: listed(pilot) == [*expected])


async def until_current(pilot: Pilot[str], session_id: str) -> None:
    await until(pilot, lambda: pilot.app._panes.current == session_id)  # type: ignore[attr-defined]


async def until_closed(pilot: Pilot[str]) -> None:
    """Wait until no dialog is open."""
    await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


async def type_in(pilot: Pilot[str], text: str) -> None:
    """Into the dialog that is open, in place of what stands there."""
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))
    field = pilot.app.screen.query_one(Input)
    field.value = text[:-1]
    field.cursor_position = len(field.value)
    await pilot.press(*("space" if character == " " else character for character in text[-1:]))
    await until(pilot, lambda: field.value == text)


def screen(pilot: Pilot[str]) -> str:
    return "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())


def status(pilot: Pilot[str]) -> str:
    return str(pilot.app.screen_stack[0].query_one("#status").render())


def looked_at(pilot: Pilot[str]) -> str | None:
    """The session whose preview is shown."""
    preview = pilot.app.screen_stack[0].query_one("#preview")._text.preview  # type: ignore[attr-defined]
    return preview and str(preview.session.id)


def listed(pilot: Pilot[str]) -> list[str]:
    return [row.session.id for row in pilot.app.screen_stack[0].query_one("#table")._rows]  # type: ignore[attr-defined]


# Looking


def test_the_list_is_that_of_sessions_list_newest_first(store: SqlStore, run: Run) -> None:
    add(store, "older", title="Older one", last_active_at=NOW - HOUR)
    add(store, "newest", title="Newest one", last_active_at=NOW)
    add(store, "archived", archived=1)
    add(store, "nightly", source="cron", kind="automation")
    add(store, "part", end_reason="compression", ended_at=NOW)
    add(store, "tip", parent_session_id="part", title="Tip", last_active_at=NOW - 2 * HOUR)
    expected = [row["id"] for row in json.loads(run("sessions", "list", "--json").stdout)]
    assert expected == ["newest", "older", "tip"]

    async def script(pilot: Pilot[str]) -> None:
        assert listed(pilot) == expected
        assert "3 conversations" in screen(pilot)
        lines = screen(pilot).splitlines()
        assert [
            name for line in lines[2:5] for name in ("Newest one", "Older one", "Tip") if f"   {name} " in line[:20]
        ] == [
            "Newest one",
            "Older one",
            "Tip",
        ]
        assert "just now" in lines[2]

    drive(store, script)


@on_each_database
def test_v_goes_through_archived_and_everything_and_comes_back(store: SqlStore) -> None:
    add(store, "shown")
    add(store, "aside", archived=1)
    add(store, "nightly", source="cron", kind="automation", last_active_at=NOW - HOUR)
    add(store, "part", end_reason="compression", ended_at=NOW, last_active_at=NOW - 3 * HOUR)
    add(store, "tip", parent_session_id="part", last_active_at=NOW - 2 * HOUR)
    assert [view.following for view in View] == [View.ARCHIVED, View.EVERYTHING, View.CONVERSATIONS]

    async def script(pilot: Pilot[str]) -> None:
        for expected in (["aside"], ["shown", "aside", "nightly", "tip", "part"], ["shown", "tip"]):
            await pilot.press("v")
            await until_listed(pilot, *expected)

    drive(store, script)


def test_typing_filters_and_esc_clears(store: SqlStore) -> None:
    add(store, "20250305_lisbon", title="A week away", last_active_at=NOW)
    add(store, "b", title="Soup for Sunday", last_active_at=NOW - 1)
    add(store, "c", ["The boat leaks"], last_active_at=NOW - 2)

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("end", "slash", *"soup")
        await until_listed(pilot, "b")
        await until_seen(pilot, "1 of 3 conversations")
        await pilot.press("ctrl+u", *"LEAKS")
        await until_listed(pilot, "c")
        await pilot.press("ctrl+u", *"20250305_lis")
        await until_listed(pilot, "20250305_lisbon")
        await pilot.press(*"zzz")
        await until_listed(pilot)
        await until_seen(pilot, "Nothing fits.")
        await pilot.press("escape")
        await until(pilot, lambda: len(listed(pilot)) == 3)
        assert pilot.app.focused is pilot.app.query_one("#table")
        assert pilot.app.is_running

    drive(store, script)


@on_each_database
def test_the_filter_finds_what_was_said_and_shows_where(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.cli.browsing.panes._TYPING", NEVER)
    add(store, "a", title="Harbour notes", last_active_at=NOW)
    add(store, "b", ["Good evening", "The tide turns at noon, by the harbour"], last_active_at=NOW - 1)
    add(store, "c", ["Nothing to see"], last_active_at=NOW - 2)
    add(store, "first", ["Where do boats sleep?", "In a harbourage"], end_reason="compression", ended_at=NOW)
    add(store, "second", ["Go on"], parent_session_id="first", last_active_at=NOW - 3)

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("slash", *"har")
        await until_listed(pilot, "a")  # titles at once: as yet nothing else is searched
        monkeypatch.setattr("segue.cli.browsing.panes._TYPING", 0.0)
        await pilot.press("b")
        await until(pilot, lambda: sorted(listed(pilot)) == ["a", "b", "second"])
        assert listed(pilot)[0] == "a", "titles before what was said"
        await until_seen(pilot, "The tide turns at noon, by the harbour")  # instead of how it began
        await pilot.press(*"our")
        await until_seen(pilot, "harbour")
        await until(pilot, lambda: sorted(listed(pilot)) == ["a", "b", "second"])
        await pilot.press(*["down"] * listed(pilot).index("b"))
        await until_seen(pilot, "◆ The tide turns at noon, by the harbour")
        await pilot.press("ctrl+u", *"NOT")
        await until_seen(pilot, "Nothing to see")

    drive(store, script)


def test_a_space_behind_a_word_finds_no_less(store: SqlStore) -> None:
    add(store, "a", ["Good evening", "We sail from the harbour"])
    add(store, "b", ["Nothing to see"], last_active_at=NOW - 1)

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("slash", *"harbour", "space")
        await until_listed(pilot, "a")

    drive(store, script)


@on_each_database
def test_however_often_it_was_said_elsewhere_each_conversation_is_found(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what runs by itself, by what is archived, and by one conversation that speaks of nothing else."""
    monkeypatch.setattr("segue.cli.browsing.contents.consult", partial(consult, seconds=DEADLINE))
    add(store, "quiet", ["Good evening", "We sail from the harbour"], last_active_at=NOW)
    add(store, "aside", ["Good evening", "From the harbour we sail"], archived=1)
    add(store, "talkative", ["Hello", *["The harbour again"] * 250], last_active_at=NOW - 1)
    add(store, "archived", ["Hello", *["The harbour, archived"] * 250], archived=1, last_active_at=NOW - 1)
    add(store, "nightly", ["Hello", *["Harbour"] * 250], source="cron", kind="automation", last_active_at=NOW - 2)

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("slash", *"harbour")
        await until(pilot, lambda: sorted(listed(pilot)) == ["quiet", "talkative"])
        assert status(pilot) == "", "all of them were found, and they have it"
        for expected in (["archived", "aside"], ["archived", "aside", "nightly", "quiet", "talkative"]):
            await pilot.press("tab", "v")
            await until(pilot, lambda expected=expected: sorted(listed(pilot)) == expected)  # type: ignore[misc]
            await pilot.press("slash")

    drive(store, script)


def test_what_is_only_similar_is_said_to_be(store: SqlStore) -> None:
    add(store, "a", ["Good evening", "We sail from the harbour"])
    add(store, "b", ["Good evening", "The lighthouse is on"], last_active_at=NOW - 1)

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("slash", *"harbour", "space", *"lighthouse")
        await until(pilot, lambda: sorted(listed(pilot)) == ["a", "b"])
        await until(pilot, lambda: "these have some of the words" in status(pilot))
        await pilot.press("ctrl+u", *"harbour")
        await until_listed(pilot, "a")
        await until(pilot, lambda: status(pilot) == "")

    drive(store, script)


def test_the_chosen_row_is_seen_when_the_filter_goes(store: SqlStore) -> None:
    for at in range(200):
        add(store, f"s{at:03}", title=f"{'needle' if at > 150 else 'hay'} {at:03}", last_active_at=NOW - at)

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("slash", *"needle")
        await until(pilot, lambda: len(listed(pilot)) == 49)
        await pilot.press("tab", "down", "down", "escape")
        await until(pilot, lambda: len(listed(pilot)) == 200)
        await until_seen(pilot, "needle 151", "needle 152", "needle 153")

    drive(store, script)


def test_letters_in_the_filter_are_letters_and_arrows_move_the_list(store: SqlStore) -> None:
    for at in range(3):
        add(store, f"draft {at}", title=f"draft q? / {at}", last_active_at=NOW - at)

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("slash", *"draft", "space", "q", "question_mark", "space", "slash", "down", "enter")

    assert drive(store, script) == "draft 1"
    assert found(store, "draft 0") is not None


def test_the_current_row_stays_while_it_fits_and_else_the_first_is_current(store: SqlStore) -> None:
    for at in range(50):
        add(store, f"s{at:02}", title=f"{'even' if at % 2 == 0 else 'odd'} {at:02}", last_active_at=NOW - at)

    async def script(pilot: Pilot[str]) -> None:
        panes = pilot.app._panes  # type: ignore[attr-defined]
        await pilot.press(*["down"] * 40)
        await until_current(pilot, "s40")
        await pilot.press("slash", *"even")
        await until(pilot, lambda: len(listed(pilot)) == 25)
        assert panes.current == "s40"
        await pilot.press("ctrl+u", *"odd")
        await until_current(pilot, "s01")

    drive(store, script)


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_the_preview_says_who_when_and_what_was_said_last(store: SqlStore, size: tuple[int, int]) -> None:
    add(store, "abc", ["Which week?", "The third one."], title="A week in Lisbon", source="telegram", pinned=1)
    store.write(OWNER_AT_CONSOLE, lambda tx: marking.tag_conversation(tx, "abc", add=["travel", "with friends"]))

    async def script(pilot: Pilot[str]) -> None:
        await until_seen(pilot, "● Which week?", "◆ The third one.", "travel · with friends", "abc · telegram")
        assert "2 messages" in screen(pilot)
        assert all(word in screen(pilot) for word in ("open", "pinned", "began 2025-03-05", "active just now"))
        await pilot.press("space")
        await until(pilot, lambda: "The third one." not in screen(pilot))
        await pilot.press("space")
        await until_seen(pilot, "The third one.")

    drive(store, script, size)


@on_each_database
def test_the_preview_of_a_long_session_reads_its_end_only(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    add(store, "long", [f"message {at}" for at in range(1, 1001)], title="Long", first_line="")
    monkeypatch.setattr("segue.storage.messages.SqlMessages.of", None)

    async def script(pilot: Pilot[str]) -> None:
        await until_seen(pilot, "● message 999", "◆ message 1000")
        shown = [at for at in range(1, 1001) if f" message {at} " in screen(pilot)]
        assert f"… {1000 - len(shown)} earlier messages" in screen(pilot)
        assert shown == list(range(1001 - len(shown), 1001))

    drive(store, script)


@on_each_database
def test_the_parts_are_listed_in_order_with_the_current_one_marked(store: SqlStore) -> None:
    add(store, "one", title="Project", end_reason="compression", ended_at=NOW, last_active_at=NOW - 3)
    add(store, "two", title="Project #2", parent_session_id="one", end_reason="compression", ended_at=NOW)
    add(store, "three", title="Project #3", parent_session_id="two", last_active_at=NOW + 1)

    def marks(pilot: Pilot[str]) -> list[str]:
        right = [line[84:].split("message")[0].split() for line in screen(pilot).splitlines()]
        return [" ".join(words) for words in right if "Project" in words and words[-1].isdigit()]

    async def script(pilot: Pilot[str]) -> None:
        await until_seen(pilot, "part 3 of 3")
        assert marks(pilot) == ["1 Project 2", "2 Project #2 2", "▸ 3 Project #3 2"]
        await pilot.press("v", "v")
        await until(pilot, lambda: len(listed(pilot)) == 3)
        await pilot.press("end")
        await until_seen(pilot, "part 1 of 3")
        assert marks(pilot) == ["▸ 1 Project 2", "2 Project #2 2", "3 Project #3 2"]

    drive(store, script)


def test_a_part_beside_the_main_line_is_in_its_own_lineage(store: SqlStore) -> None:
    add(store, "root", title="Root", end_reason="compression", ended_at=NOW)
    add(store, "left", title="Left", parent_session_id="root", last_active_at=NOW + 1)
    add(store, "right", title="Right", parent_session_id="root", last_active_at=NOW + 2)

    async def script(pilot: Pilot[str]) -> None:
        for session_id, name in (("right", "Right"), ("left", "Left")):
            await until_current(pilot, session_id)
            await until_seen(pilot, "part 2 of 2", f"▸ 2  {name}")
            await pilot.press("down")

    drive(store, script)


def test_where_a_conversation_came_from_is_said_by_name(store: SqlStore) -> None:
    add(store, "mother", title="The mother", last_active_at=NOW - 5)
    add(store, "child", branched_from="mother", reset_from="gone", spawned_by="mother")

    async def script(pilot: Pilot[str]) -> None:
        await until_seen(pilot, "Branched from The mother", "Begun anew after gone", "Started by The mother")

    drive(store, script)


def test_running_through_the_list_reads_few_previews(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for at in range(60):
        add(store, f"s{at:02}", last_active_at=NOW - at)
    seen: list[str] = []

    class Counting:
        write = store.write

        def read(self, scope: Any, work: Any, *args: Any) -> Any:
            seen.append(work.__name__)
            return store.read(scope, work, *args)

    async def script(pilot: Pilot[str]) -> None:
        await until_seen(pilot, "● Hello there")
        seen.clear()
        monkeypatch.setattr("segue.cli.browsing.panes._PAUSE", NEVER)  # longer than between two keys anywhere
        await pilot.press(*["down"] * 19)
        await until_current(pilot, "s19")
        monkeypatch.setattr("segue.cli.browsing.panes._PAUSE", 0.0)
        await pilot.press("down")
        await until_seen(pilot, "s20 ·")

    drive(Counting(), script)
    assert seen == ["look_at"]


def test_ten_thousand_sessions_are_filtered_and_only_the_screen_is_drawn(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(tx: Transaction) -> None:
        for at in range(10_000):
            tx.sessions.insert(Session(f"s{at:05}", "cli", title=f"Session {at}", last_active_at=NOW - at))

    store.write(OWNER_AT_CONSOLE, work)
    drawn = 0

    def counted(*args: Any) -> Any:
        nonlocal drawn
        drawn += 1
        return row_pieces(*args)

    monkeypatch.setattr("segue.cli.browsing.table.row_pieces", counted)

    async def script(pilot: Pilot[str]) -> None:
        await until_seen(pilot, "10,000 conversations")
        await pilot.press("slash", *"sessi")
        await until_seen(pilot, "10,000 conversations")
        await pilot.press(*"on", "space", *"998")
        await until_seen(pilot, "20 of 10,000 conversations", "Session 1998", "Session 9989")
        await pilot.press("escape", "end")
        await until(pilot, lambda: any("Session 9999 " in line[:60] for line in screen(pilot).splitlines()))

    drive(store, script)
    assert drawn < 40 * 40  # keystrokes times lines, not keystrokes times sessions


def test_an_empty_home_says_so_and_no_key_does_harm(store: SqlStore) -> None:
    async def script(pilot: Pilot[str]) -> None:
        await until_seen(pilot, "No conversations yet.")
        await pilot.press("enter", "r", "t", "a", "p", "d", "e", "up", "down", "pagedown", "end", "home", "space", "u")
        await until(pilot, lambda: "Nothing was deleted here." in status(pilot))
        assert len(pilot.app.screen_stack) == 1
        assert pilot.app.is_running

    drive(store, script)


@pytest.mark.parametrize("size", [WIDE, NARROW, (99, 30), (40, 12), (20, 6)])
def test_stored_text_is_drawn_literally_and_breaks_nothing(store: SqlStore, size: tuple[int, int]) -> None:
    kinds = [kind for kind in HOSTILE if kind != "empty"]
    for at, kind in enumerate(kinds):
        text = HOSTILE[kind]
        add(store, f"{kind} a", [text, text], title=text, source=text[:40], last_active_at=NOW - 2 * at)
        add(store, f"{kind} b", [text, text], last_active_at=NOW - 2 * at - 1)
        store.write(OWNER_AT_CONSOLE, tag_with, f"{kind} a", HOSTILE[kind])

    async def check(pilot: Pilot[str], kind: str) -> None:
        await until_current(pilot, f"{kind} a")
        if not pilot.app.query_one("#preview").display:
            await pilot.press("space")  # hidden at first where there is little room
        await until(pilot, lambda: looked_at(pilot) == f"{kind} a")
        pilot.app._status.say("")  # type: ignore[attr-defined]
        await pilot.press("p")
        await until(pilot, lambda: "pinned" in status(pilot))
        strips = pilot.app.screen._compositor.render_strips()
        assert {strip.cell_length for strip in strips} == {size[0]}
        assert {cell_len(strip.text) for strip in strips} == {size[0]}
        assert all(strip.text.isprintable() for strip in strips)
        if kind == "markup" and size == WIDE:
            assert "[red]danger[/red] [link=https://example.org]" in screen(pilot)
            assert "[@click=app.leave]x[/]" in status(pilot)
        for key, back in (("d", "n"), ("r", "escape")):
            await pilot.press(key)
            await until(pilot, lambda: len(pilot.app.screen_stack) == 2)
            await pilot.pause()
            assert not DANGEROUS.search(screen(pilot).replace("\n", ""))
            await pilot.press(back)
            await until_closed(pilot)

    async def script(pilot: Pilot[str]) -> None:
        for kind in kinds:
            await check(pilot, kind)
            await pilot.press("down", "down")

    drive(store, script, size)


def test_where_there_is_little_room_the_list_has_it_until_the_preview_is_asked_for(store: SqlStore) -> None:
    add(store, "abc", title="A week in Lisbon")

    async def script(pilot: Pilot[str]) -> None:
        table, preview = pilot.app.query_one("#table"), pilot.app.query_one("#preview")
        assert "A week in Lisbon" in screen(pilot)
        assert (table.region.height, preview.display) == (12, False)
        await pilot.press("space")
        await until_seen(pilot, "A week in Lisbon", "abc · cli")
        assert (table.region.height, preview.region.height) == (6, 6)
        await pilot.press("space")
        await until(pilot, lambda: table.region.height == 12)
        await pilot.resize_terminal(*WIDE)
        await pilot.press("space")
        await until_seen(pilot, "◆ Good morning")

    drive(store, script, (40, 15))


def test_the_help_can_be_scrolled_where_there_is_little_room(store: SqlStore) -> None:
    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("question_mark")
        await until_seen(pilot, "Keys")
        await pilot.press("end")
        await until_seen(pilot, "Esc does so too")

    drive(store, script, (40, 15))


def test_resizing_moves_the_preview_below_the_list(store: SqlStore) -> None:
    add(store, "abc", title="A week in Lisbon")

    async def script(pilot: Pilot[str]) -> None:
        table, preview = pilot.app.query_one("#table"), pilot.app.query_one("#preview")
        assert preview.region.x == table.region.right
        await pilot.resize_terminal(*NARROW)
        await until(pilot, lambda: preview.region.y == table.region.bottom)
        assert preview.region.width == table.region.width == 80
        await until_seen(pilot, "A week in Lisbon", "◆ Good morning", "q Quit")
        await pilot.resize_terminal(*WIDE)
        await until(pilot, lambda: preview.region.x == table.region.right)

    drive(store, script)


# Choosing and leaving


def test_enter_chooses_the_current_row(store: SqlStore) -> None:
    add(store, "first", last_active_at=NOW)
    add(store, "second", last_active_at=NOW - 1)

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("j", "enter")

    assert drive(store, script) == "second"


def test_two_clicks_choose_a_row(store: SqlStore) -> None:
    add(store, "first", last_active_at=NOW)
    add(store, "second", last_active_at=NOW - 1)

    async def script(pilot: Pilot[str]) -> None:
        await pilot.double_click("#table", offset=(10, 2))

    assert drive(store, script) == "second"


@pytest.mark.parametrize("key", ["q", "escape", "ctrl+c"])
def test_leaving_chooses_nothing(store: SqlStore, key: str) -> None:
    add(store, "first")

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press(key)
        await until(pilot, lambda: not pilot.app.is_running)

    assert drive(store, script) is None


def test_a_key_in_the_bottom_line_can_be_clicked(store: SqlStore) -> None:
    add(store, "first")

    async def script(pilot: Pilot[str]) -> None:
        at = screen(pilot).splitlines()[-1].index("? Help")
        await pilot.click("#keys", offset=(at, 0))
        await until_seen(pilot, "move it into the trash")

    drive(store, script)


def test_help_names_every_key_at_80_by_24(store: SqlStore) -> None:
    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("question_mark")
        await until_seen(pilot, *(f"{key.sign}  {key.help}" for key in KEYS))
        await pilot.press("q")
        await until_closed(pilot)
        assert pilot.app.is_running

    drive(store, script, NARROW)


def test_in_a_home_that_can_only_be_read_enter_says_how_to_read_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.cli.browse.pick", lambda _: ("it's odd", False))
    assert browse.callback
    browse.callback()
    captured = capsys.readouterr()
    assert captured.out == "it's odd\n"
    assert captured.err == "segue sessions show 'it'\"'\"'s odd'\n"


# Acting


def test_r_renames_and_an_empty_title_takes_it_away(store: SqlStore) -> None:
    add(store, "abc", title="Old name")

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("r")
        await until_seen(pilot, "Rename", "Old name")
        await type_in(pilot, "A new name")
        await pilot.press("enter")
        await until_seen(pilot, "It is called 'A new name' now.")
        assert found(store, "abc").title == "A new name"  # type: ignore[union-attr]
        await pilot.press("r")
        await type_in(pilot, "")
        await pilot.press("enter")
        await until_seen(pilot, "It has no title now.")
        assert pilot.app.is_running

    assert drive(store, script) is None
    assert found(store, "abc").title is None  # type: ignore[union-attr]


def test_a_title_that_cannot_be_taken_is_refused_where_it_was_typed(store: SqlStore) -> None:
    add(store, "abc", title="Mine", last_active_at=NOW + 1)
    add(store, "def", title="Taken")

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("r")
        await type_in(pilot, "Taken")
        await pilot.press("enter")
        await until_seen(pilot, "The title 'Taken' belongs to session def (open).")
        await type_in(pilot, "x" * 101)
        await pilot.press("enter")
        await until_seen(pilot, "The title has 101 characters; at most 100 are allowed.")
        await type_in(pilot, "Free")
        await pilot.press("enter")
        await until_closed(pilot)
        await until_seen(pilot, "It is called 'Free' now.")

    drive(store, script)
    assert found(store, "abc").title == "Free"  # type: ignore[union-attr]


def test_renaming_offers_the_title_exactly_and_esc_leaves_it(store: SqlStore) -> None:
    title = "👩‍👩‍👧 [b]family[/b] 🇵🇹"
    add(store, "abc")
    store.write(OWNER_AT_CONSOLE, titling.set_title, "abc", title)

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.focused, Input))
        assert pilot.app.screen.query_one(Input).value == title
        await pilot.press("x", "escape")
        await until_closed(pilot)

    drive(store, script)
    assert found(store, "abc").title == title  # type: ignore[union-attr]


@on_each_database
def test_t_adds_a_tag_and_takes_it_away(store: SqlStore) -> None:
    add(store, "abc")

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("t")
        await until_seen(pilot, "It has no tags yet.")
        await type_in(pilot, "travel")
        await pilot.press("enter")
        await until_seen(pilot, "Tagged 'travel'.")
        assert tags(store, "abc") == ["travel"]
        await pilot.press("t")
        await until_seen(pilot, "It has travel.")
        await type_in(pilot, "travel")
        await pilot.press("enter")
        await until_seen(pilot, "The tag 'travel' is gone.")
        await pilot.press("t")
        await type_in(pilot, "")
        await pilot.press("enter")
        await until_seen(pilot, "A tag has 1 to 50 visible characters.")

    drive(store, script)
    assert tags(store, "abc") == []


def test_a_archives_and_brings_back(store: SqlStore) -> None:
    add(store, "abc", title="Aside")

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("a")
        await until_listed(pilot)
        assert "'Aside' is archived" in status(pilot)
        assert found(store, "abc").archived == 1  # type: ignore[union-attr]
        await pilot.press("v")
        await until_listed(pilot, "abc")
        await pilot.press("a")
        await until_seen(pilot, "'Aside' is back in the list.", "Nothing is archived.")

    drive(store, script)
    assert found(store, "abc").archived == 0  # type: ignore[union-attr]


def test_p_pins_and_unpins(store: SqlStore) -> None:
    add(store, "abc", title="Kept")

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("p")
        await until_seen(pilot, "★ Kept", "'Kept' is pinned.")
        assert found(store, "abc").pinned == 1  # type: ignore[union-attr]
        await pilot.press("p")
        await until_seen(pilot, "'Kept' can be pruned again.")

    drive(store, script)
    assert found(store, "abc").pinned == 0  # type: ignore[union-attr]


@on_each_database
def test_d_asks_deletes_the_conversation_and_u_brings_it_back(store: SqlStore) -> None:
    add(store, "one", title="Project", end_reason="compression", ended_at=NOW)
    add(store, "two", title="Project #2", parent_session_id="one", last_active_at=NOW + 1)
    add(store, "other", title="Other", last_active_at=NOW + 2)
    before = [found(store, one) for one in ("one", "two")]

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("down", "d")
        await until_seen(pilot, "Move 'Project #2' into the trash?", "2 sessions, 4 messages")
        await pilot.press("n")
        await until_closed(pilot)
        assert found(store, "two") is not None
        await pilot.press("d")
        await until_seen(pilot, "into the trash?")
        await pilot.press("y")
        await until_listed(pilot, "other")
        assert "'Project #2' is in the trash; u brings it back." in status(pilot)
        assert found(store, "one") is found(store, "two") is None
        await pilot.press("u")
        await until_listed(pilot, "other", "two")
        assert pilot.app._panes.current == "two"  # type: ignore[attr-defined]
        await pilot.press("u")
        await until_seen(pilot, "Nothing was deleted here.")

    drive(store, script)
    assert [found(store, one) for one in ("one", "two")] == before


class SlowPreviews:
    """A store that answers about a preview after the conversation was deleted, and lists what is left after that."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self.is_asked, self._is_listing, self._is_answered = Event(), Event(), Event()
        self._is_deleted = False

    def read(self, scope: Any, work: Callable[..., Any], *arguments: Any) -> Any:
        if work is look_at:
            self.is_asked.set()
            assert self._is_listing.wait(DEADLINE)
        elif work is list_rows and self._is_deleted:
            self._is_listing.set()
            assert self._is_answered.wait(DEADLINE)
        try:
            return self._store.read(scope, work, *arguments)
        finally:
            if work is look_at:
                self._is_answered.set()

    def write(self, scope: Any, work: Callable[..., Any], *arguments: Any) -> Any:
        said = self._store.write(scope, work, *arguments)
        self._is_deleted = True
        return said


def test_a_preview_that_comes_too_late_does_not_hide_that_it_was_deleted(store: SqlStore) -> None:
    add(store, "one", title="Project")
    slow = SlowPreviews(store)

    async def script(pilot: Pilot[str]) -> None:
        await until(pilot, slow.is_asked.is_set)
        await pilot.press("d")
        await until_seen(pilot, "into the trash?")
        await pilot.press("y")
        await until_listed(pilot)
        for _ in range(5):
            await pilot.pause(0.01)  # what was posted before is shown
        assert status(pilot) == "'Project' is in the trash; u brings it back."

    drive(slow, script)


def test_undo_says_when_the_title_was_given_away(store: SqlStore) -> None:
    add(store, "abc", title="Name")

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("d")
        await until_seen(pilot, "into the trash?")
        await pilot.press("y")
        await until_listed(pilot)
        add(store, "thief", title="Name")
        await pilot.press("u")
        await until_seen(pilot, "it came back as 'Name #2'.")

    drive(store, script)


def test_undo_says_when_there_is_nothing_left_to_restore(store: SqlStore) -> None:
    add(store, "abc", title="Name")

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("d")
        await until_seen(pilot, "into the trash?")
        await pilot.press("y")
        await until_listed(pilot)
        store.write(OWNER_AT_CONSOLE, discarding.empty_trash)
        await pilot.press("u")
        await until_seen(pilot, "Nothing in the trash has the id or title 'abc'")

    drive(store, script)


def test_e_writes_every_part_to_a_private_file(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    secret = "sk-ant-api03-" + "a1B2c3D4e5F6g7H8" * 5
    add(store, "one", title="Project", end_reason="compression", ended_at=NOW)
    add(store, "two", [f"my key is {secret}"], parent_session_id="one", last_active_at=NOW + 1)

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("e")
        await until_seen(pilot, "Export to a file", "two.jsonl")
        await pilot.press("enter")
        await until(pilot, lambda: "2 sessions written to" in status(pilot))
        assert "What looks like a secret was left in it: " in status(pilot)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.focused, Input))
        await pilot.press("enter")
        await until_seen(pilot, "is there already;")
        await type_in(pilot, "-")
        await pilot.press("tab", "space")
        assert pilot.app.screen.query_one(Option).value
        await pilot.press("shift+tab", "enter")
        await until_closed(pilot)

    drive(store, script)
    plain, redacted = tmp_path / "two.jsonl", tmp_path / "-"
    assert [json.loads(line)["id"] for line in plain.read_text().splitlines()] == ["one", "two"]
    assert stat.S_IMODE(plain.stat().st_mode) == 0o600
    assert secret in plain.read_text()
    assert secret not in redacted.read_text()
    assert "redacted" in redacted.read_text()


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [("", "Name a file to write to."), ("nowhere/x.jsonl", "could not be written"), (".", "there already")],
)
def test_a_file_that_cannot_be_written_is_said(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    add(store, "abc")

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("e")
        await type_in(pilot, typed)
        await pilot.press("enter")
        await until_seen(pilot, sentence)

    drive(store, script)


def test_an_id_of_any_shape_suggests_a_file_name() -> None:
    assert file_name_for("20250305_091523_a1b2c3d4") == "20250305_091523_a1b2c3d4.jsonl"
    assert file_name_for("../../etc/passwd") == "_._.._etc_passwd.jsonl"
    assert "/" not in file_name_for("a/b\x1b[2J")
    assert not file_name_for(".hidden").startswith(".")


# When something is wrong


class Failing:
    """A store that others hold."""

    def __init__(self, store: SqlStore, *failing: str) -> None:
        self._store = store
        self.failing = failing

    def read(self, *args: Any) -> Any:
        self._fail("read", args[1])
        return self._store.read(*args)

    def write(self, *args: Any) -> Any:
        self._fail("write", args[1])
        return self._store.write(*args)

    def _fail(self, *names: Any) -> None:
        if {names[0], names[1].__name__} & set(self.failing):
            raise StoreBusy("Others held the store [b]too long[/b].")


@pytest.mark.parametrize("key", ["a", "p", "d"])
def test_a_busy_store_is_said_and_the_browser_goes_on(store: SqlStore, key: str) -> None:
    add(store, "abc", title="Name")

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press(key)
        if key == "d":
            await until_seen(pilot, "into the trash?")
            await pilot.press("y")
        await until_seen(pilot, "Others held the store [b]too long[/b].")
        assert listed(pilot) == ["abc"]
        assert pilot.app.is_running

    drive(Failing(store, "write"), script)


def test_a_busy_store_is_said_in_the_dialog(store: SqlStore) -> None:
    add(store, "abc", title="Name")

    async def script(pilot: Pilot[str]) -> None:
        await pilot.press("r")
        await type_in(pilot, "Other")
        await pilot.press("enter")
        await until_seen(pilot, "Others held the store [b]too long[/b].")
        assert len(pilot.app.screen_stack) == 2

    drive(Failing(store, "write"), script)


@pytest.mark.parametrize("work", ["list_rows", "look_at"])
def test_what_cannot_be_read_is_said(store: SqlStore, work: str) -> None:
    add(store, "abc", title="Name")
    failing = Failing(store)

    async def script(pilot: Pilot[str]) -> None:
        failing.failing = (work,)
        await pilot.press("f5")
        await until_seen(pilot, "Others held the store [b]too long[/b].")
        failing.failing = ()
        await pilot.press("f5")
        await until_seen(pilot, "Name", "◆ Good morning")

    drive(failing, script)


def test_a_session_that_went_meanwhile_is_said(store: SqlStore) -> None:
    add(store, "abc", title="Name")

    async def script(pilot: Pilot[str]) -> None:
        await until_seen(pilot, "◆ Good morning")
        store.write(OWNER_AT_CONSOLE, lambda tx: tx.sessions.delete(["abc"]))
        await pilot.press("r")
        await until_seen(pilot, "No session has the id or title 'abc'")
        assert len(pilot.app.screen_stack) == 1

    drive(store, script)


def test_a_home_that_can_only_be_read_is_looked_at(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    add(store, "abc", title="Name")
    path = store._engine.path  # type: ignore[attr-defined]

    async def script(pilot: Pilot[str]) -> None:
        assert READ_ONLY in screen(pilot)
        await until_seen(pilot, "◆ Good morning")
        for key in "rtapd":
            pilot.app._status.say("")  # type: ignore[attr-defined]
            await pilot.press(key)
            await until_seen(pilot, READ_ONLY)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.focused, Input))
        await pilot.press("enter")
        await until(pilot, lambda: "1 session written" in status(pilot))

    with SqlStore(SqliteEngine(path, read_only=True)) as reading:
        drive(reading, script, can_write=False)
    assert found(store, "abc").title == "Name"  # type: ignore[union-attr]


def test_a_store_that_cannot_be_written_is_opened_for_reading(
    home: Path, monkeypatch: pytest.MonkeyPatch, store: SqlStore
) -> None:
    opened = app.open_store

    def refuse(*args: Any, read_only: bool = False, **kwargs: Any) -> SqlStore:
        if not read_only:
            raise StoreReadOnly("No.")
        return opened(*args, read_only=True, **kwargs)

    monkeypatch.setattr("segue.app.open_store", refuse)
    reading, can_write = browsing._opened()
    with reading:
        assert not can_write


def test_browse_needs_a_terminal(run: Run) -> None:
    done = run("sessions", "browse")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "segue: browse needs a terminal; use `segue sessions list`.\n"


def test_without_textual_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "textual", None)
    with pytest.raises(browsing.BrowseMissing, match=r"segue\[browse\]"):
        browsing.pick("")


@pytest.mark.parametrize("command", [("sessions", "list"), ("sessions", "browse", "--help"), ("sessions", "browse")])
def test_textual_is_imported_by_nothing_but_the_browser(run: Run, command: tuple[str, ...]) -> None:
    done = run(*command, PYTHONPROFILEIMPORTTIME="1")
    assert "segue.sessions.listing" in done.stderr
    assert not re.search(r"\|\s+textual", done.stderr)
