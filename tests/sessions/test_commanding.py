"""Commands do what they say, in one transaction, and only to what their giver may see."""

import re
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

import pytest

from segue.core.commands import COMMANDS, Command, Unknown, Where, known, parse
from segue.core.errors import (
    Ambiguous,
    InUse,
    Invalid,
    InvalidSession,
    NotFound,
    SegueError,
    SessionNotFound,
    TitleTaken,
    TitleTooLong,
    UnknownModel,
)
from segue.core.events import Compressed
from segue.core.leases import Lease, Run, session_lease
from segue.core.lifecycle import Phase
from segue.core.messages import Spot, State, draft
from segue.core.preferences import Effort, Preferences, Verbosity, decode
from segue.core.prompts import Place, WorkspaceFile, system_prompt
from segue.core.queueing import QueueMode
from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.core.sources import SessionSource
from segue.core.turns import Turn, TurnState
from segue.core.usage import Billing, Purpose, Usage
from segue.ports.store import Store, Transaction
from segue.sessions.branching import branch_session
from segue.sessions.commanding import READS, act
from segue.sessions.commanding.acts import (
    Again,
    Answer,
    Begin,
    Offer,
    Prefer,
    Quit,
    Redone,
    Situation,
    Stop,
    Switch,
    Title,
    Undone,
)
from segue.sessions.commanding.helping import unknown
from segue.sessions.compressing import compress_session
from segue.sessions.discarding import discard_conversation, purge_conversation
from segue.sessions.exporting import export_lines
from segue.sessions.finding import get_session
from segue.sessions.lane_status import LaneStatus
from segue.sessions.leasing import begin_run, end_run, take_lease
from segue.sessions.reading import conversation
from segue.sessions.recording import add_usage, append_message
from segue.sessions.rewinding import rewind_turns
from segue.sessions.searching import INCOMPLETE, REBUILDING
from segue.sessions.starting import create_session, end_session
from segue.sessions.titling import set_title
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

ME = OWNER_AT_CONSOLE
BOB = Scope(Principal("telegram:1"))
BOB_IN_A_ROOM = Scope(Principal("telegram:1"), Audience("room"))
EVE = Scope(Principal("telegram:2"))
NOW = 1_000_000.0
DM = SessionSource(platform="telegram", chat_id="7", user_id="7")
HOSTILE = "\x1b[2Jred\x1b]0;pwned\x07\u202e alert\r\n  9  Faked line"


def begin(store: Store, name: str, title: str | None = None, scope: Scope = ME, **columns: Any) -> None:
    store.write(scope, create_session, Session(name, "cli", started_at=1.0)._replace(**columns))
    if title:
        store.write(scope, set_title, name, title)


def say(
    store: Store, name: str, text: Any, role: str = "user", scope: Scope = ME, at: float = 10.0, **more: Any
) -> int:
    return store.write(scope, append_message, name, draft(role, text, at, **more)).id


def compress(store: Store, parent: str, child: str, kept: Spot | None = None) -> None:
    summary = draft("user", f"summary of {parent}", 50.0)
    store.write(ME, compress_session, parent, child_id=child, summary=summary, kept=kept, now=50.0)


def give(store: Store, text: str, session_id: str | None = "a", scope: Scope = ME, **more: Any) -> Answer:
    """Type a command, as a person does."""
    command = parse(text, in_terminal=more.get("route") is None)
    assert isinstance(command, Command)
    situation = Situation(session_id, NOW, UTC, "fresh", model="openai/gpt")._replace(**more)
    run = store.read if command.name in READS else store.write
    return run(scope, act, command, situation)


def found(store: Store, name: str) -> Session:
    return store.read(ME, get_session, name)


def texts(store: Store, name: str) -> list[Any]:
    """What a conversation says now."""
    return [message["content"] for message in store.read(ME, conversation, name)]


def everything(store: Store) -> str:
    pieces: list[str] = []
    store.read(ME, export_lines, pieces.append)
    return "".join(pieces)


@pytest.fixture
def talk(store: Store) -> Store:
    """One conversation, `a`, with two exchanges; another one, `other`, that has ended."""
    begin(store, "a", "Lisbon", model_config='{"effort":"high","model":"gpt","temperature":0}')
    say(store, "a", "which hotel?")
    say(store, "a", "the old one", "assistant")
    say(store, "a", "which tram?")
    say(store, "a", None, "assistant", tool_calls=[{"id": "c", "function": {"name": "web_fetch", "arguments": "{}"}}])
    say(store, "a", "28", "tool", tool_call_id="c")
    say(store, "a", "number 28\ngoes up", "assistant")
    begin(store, "other")
    say(store, "other", "pasta recipe", at=NOW - 7200)
    store.write(ME, end_session, "other", "user_exit", NOW - 7000)
    return store


NEED_WORDS = {
    "search": "Say what to look for",
    "steer": "/steer takes what is to be said",
    "handoff": "the name of a platform",
    "sethome": "The terminal is no home channel",
}


def test_every_command_is_carried_out(talk: Store) -> None:
    for spec in COMMANDS:
        command = Command(spec.name)
        situation = Situation("a", NOW, UTC, f"fresh_{spec.name}")
        run = talk.read if spec.name in READS else talk.write
        if spec.name in NEED_WORDS:
            with pytest.raises(Invalid, match=NEED_WORDS[spec.name]):
                run(ME, act, command, situation)
            continue
        assert isinstance(run(ME, act, command, situation), Answer), spec.name


def test_commands_that_read_change_nothing(talk: Store) -> None:
    before = everything(talk)
    for text in ("/sessions 3", "/history 1", "/search hotel", "/status", "/usage", "/context detail", "/help undo"):
        assert give(talk, text).text
    assert give(talk, "/title").text
    assert give(talk, "/resume").text
    assert everything(talk) == before


# Titles


def test_title_alone_shows_title_source_and_id(talk: Store) -> None:
    assert give(talk, "/title").text == "“Lisbon” (set by you).\na"
    assert give(talk, "/title", "other").text == "This conversation has no title.\nother"
    assert "Nothing has been said yet" in give(talk, "/title", None).text


def test_a_title_is_set_at_once(talk: Store) -> None:
    assert give(talk, "/title  A   week\nin \x1b[1mLisbon") == Answer(
        "This conversation is called “A week in [1mLisbon” now."
    )
    assert (found(talk, "a").title, found(talk, "a").title_source) == ("A week in [1mLisbon", "user")


def test_a_title_waits_for_its_session(talk: Store) -> None:
    answer = give(talk, "/title  Porto ", None)
    assert answer.act == Title("Porto")
    assert "Porto" in answer.text


@pytest.mark.parametrize(
    ("text", "error"),
    [("/title Lisbon", TitleTaken), ("/title " + "x" * 101, TitleTooLong), ("/title \u200b", Invalid)],
)
def test_a_title_that_cannot_be_is_refused_at_once(talk: Store, text: str, error: type[Exception]) -> None:
    for session_id in ("other", None):
        with pytest.raises(error):
            give(talk, text, session_id)


# From one conversation to another


@pytest.mark.parametrize("name", ["new", "reset"])
def test_a_new_conversation_ends_the_old_one_and_says_the_way_back(talk: Store, name: str) -> None:
    answer = give(talk, f"/{name}  first\n\nlines ")
    assert answer.act == Begin(" first\n\nlines ", Preferences(effort=Effort.HIGH), reset_from="a")
    assert answer.text == "A new conversation begins. The last one, “Lisbon”, is kept.\n/resume a"
    assert (found(talk, "a").ended_at, found(talk, "a").end_reason) == (NOW, "session_reset")
    assert found(talk, "a").message_count == 6


@pytest.mark.parametrize(
    ("argument", "model", "text"),
    [
        ("fast", "fast", None),
        ("fast what now?", "fast", "what now?"),
        ("what now?", None, "what now?"),
        ("faster please", None, "faster please"),
        ("fast\nlines stay", None, "fast\nlines stay"),
    ],
)
def test_the_first_word_of_a_new_conversation_may_be_its_model(
    talk: Store, argument: str, model: str | None, text: str | None
) -> None:
    names = {"fast": "fast"}
    begun = give(talk, f"/new {argument}", meant=names.get).act
    assert isinstance(begun, Begin)
    assert (begun.preferences.model, begun.text) == (model, text)


def test_a_new_conversation_before_anything_was_said(store: Store) -> None:
    chosen = Preferences("m", Effort.LOW, Verbosity.ALL)
    answer = give(store, "/new", None, preferences=chosen)
    assert answer.act == Begin(None, chosen._replace(model=None))
    begin(store, "a")
    assert "/resume" not in give(store, "/new").text


def test_a_conversation_that_was_deleted_meanwhile_can_be_left(talk: Store) -> None:
    talk.write(ME, purge_conversation, "a")
    assert isinstance(give(talk, "/new").act, Begin)
    assert isinstance(give(talk, "/resume other").act, Switch)


def test_recent_conversations_are_numbered(talk: Store) -> None:
    begin(talk, "silent")
    begin(talk, "task", kind="automation")
    say(talk, "task", "by itself", at=NOW)
    begin(talk, "tele", source="telegram")
    say(talk, "tele", "hi  there\nyou", at=NOW - 60)
    answer = give(talk, "/sessions")
    assert answer.text.splitlines() == [
        "  1  hi there you · 1m ago · tele · telegram",
        "  2  pasta recipe · 2h ago · other",
        "  3  Lisbon · 1970-01-01 · a · this one",
        "  4  (nothing said yet) · 1970-01-01 · silent",
        "/resume NUMBER goes on with one of them.",
    ]
    assert answer.act == Offer(("tele", "other", "a", "silent"))
    fewer = give(talk, "/sessions 1")
    assert fewer.act == Offer(("tele",))
    assert "… 3 more conversations" in fewer.text
    assert give(talk, "/resume") == answer


def test_no_conversation_yet(store: Store) -> None:
    assert give(store, "/sessions", None) == Answer("There is no conversation yet.")


@pytest.mark.parametrize("wanted", ["other", "oth", "Porto", " Porto\n", "2"])
def test_resuming_goes_over_and_back(talk: Store, wanted: str) -> None:
    talk.write(ME, set_title, "other", "Porto")
    talk.write(ME, lambda tx: tx.sessions.change("other", model_config='{"verbose":"all"}'))
    answer = give(talk, f"/resume {wanted}", listed=("a", "other"))
    assert answer.act == Switch("other", recap=True, preferences=Preferences(verbose=Verbosity.ALL))
    assert answer.text == "You are in “Porto” now.\nother"
    assert found(talk, "other").is_open
    assert (found(talk, "a").ended_at, found(talk, "a").end_reason) == (NOW, "session_switch")
    assert give(talk, "/resume a", "other").act == Switch(
        "a", recap=True, preferences=Preferences("gpt", Effort.HIGH, rest={"temperature": 0})
    )


def test_a_compressed_part_leads_to_the_newest(talk: Store) -> None:
    compress(talk, "a", "a2")
    compress(talk, "a2", "a3")
    answer = give(talk, "/resume a", "other")
    assert isinstance(answer.act, Switch)
    assert answer.act.session_id == "a3"
    assert answer.text.endswith(" “Lisbon” was compressed; this is where it goes on.\na3")
    assert give(talk, "/resume Lisbon", "other").act == answer.act
    assert give(talk, "/resume a2", "a3") == Answer("You are in that conversation already.")


def test_what_is_not_there_cannot_be_resumed(talk: Store) -> None:
    begin(talk, "2025_1")
    begin(talk, "2025_2")
    before = everything(talk)
    with pytest.raises(SessionNotFound):
        give(talk, "/resume nowhere")
    with pytest.raises(Ambiguous):
        give(talk, "/resume 2025")
    for number in ("2", "0", "999"):
        with pytest.raises(NotFound, match="/sessions"):
            give(talk, f"/resume {number}", listed=("a",))
    assert everything(talk) == before


def test_a_number_may_be_a_title_when_it_was_not_listed(talk: Store) -> None:
    talk.write(ME, set_title, "other", "42")
    assert isinstance(give(talk, "/resume 42", listed=("a",)).act, Switch)


def test_a_session_that_somebody_else_works_on_is_left_to_them(talk: Store) -> None:
    def claim(_tx: Transaction, session_id: str) -> None:
        raise InUse(f"{session_id} is open elsewhere")

    before = everything(talk)
    with pytest.raises(InUse, match="other"):
        give(talk, "/resume other", claim=claim)
    assert everything(talk) == before


def test_a_session_is_taken_over_in_the_same_transaction(talk: Store) -> None:
    def claim(tx: Transaction, session_id: str) -> Lease:
        return take_lease(tx, session_lease(session_id), "mine", "owner", lambda _run: False)

    theirs = Run("theirs", "segue chat", "host", "boot", 1, "", NOW, NOW)
    talk.write(ME, begin_run, theirs)
    talk.write(ME, take_lease, session_lease("other"), "theirs", "owner", lambda _run: False)
    with pytest.raises(InUse, match="segue chat"):
        give(talk, "/resume other", claim=claim)
    assert found(talk, "a").is_open
    talk.write(ME, end_run, "theirs", NOW)
    give(talk, "/resume other", claim=claim)
    held = talk.read(ME, lambda tx: tx.leases.find(session_lease("other")))
    assert held is not None
    assert held.owner == "mine"


def test_an_old_session_of_a_lane_is_taken_out_of_it(talk: Store) -> None:
    begin(talk, "old", lane_key="lane")
    talk.write(ME, end_session, "old", "daily", 5.0)
    begin(talk, "current", lane_key="lane")
    give(talk, "/resume old")
    assert (found(talk, "old").is_open, found(talk, "old").lane_key) == (True, None)
    assert (found(talk, "current").is_open, found(talk, "current").lane_key) == (True, "lane")


def test_a_branch_goes_on_with_the_same_and_leaves_the_old_one(talk: Store) -> None:
    before = talk.read(ME, conversation, "a")
    answer = give(talk, "/branch By train")
    assert answer.act == Switch("fresh", False, Preferences("gpt", Effort.HIGH, rest={"temperature": 0}))
    assert answer.text == "You are in a branch now, “By train”.\nfresh\n“Lisbon” stays as it is.\n/resume a"
    assert talk.read(ME, conversation, "fresh") == talk.read(ME, conversation, "a") == before
    assert found(talk, "fresh").branched_from == "a"
    assert found(talk, "a").end_reason == "branched"
    assert isinstance(give(talk, "/resume a", "fresh").act, Switch)


def test_a_branch_without_a_name_and_without_anything_said(talk: Store) -> None:
    give(talk, "/branch", cwd="/tmp")
    assert (found(talk, "fresh").title, found(talk, "fresh").cwd) == ("Lisbon #2", "/tmp")
    with pytest.raises(InvalidSession):
        give(talk, "/branch", None)
    with pytest.raises(TitleTaken):
        give(talk, "/branch Lisbon", "other", new_session_id="x")


# Looking back


def test_history_shows_the_last_exchanges(talk: Store) -> None:
    assert give(talk, "/history").text.splitlines() == [
        "● which hotel?",
        "◆ the old one",
        "● which tram?",
        "  [1 tool call: web_fetch]",
        "◆ number 28",
        "  goes up",
    ]
    shorter = give(talk, "/history 1").text.splitlines()
    assert shorter[:2] == ["… 2 earlier messages …", "● which tram?"]
    assert give(talk, "/history", None).text == "Nothing has been said yet."


def test_history_goes_through_the_parts_of_a_conversation(talk: Store) -> None:
    compress(talk, "a", "a2", Spot("a", 3))
    say(talk, "a2", "left to do", "assistant")
    say(talk, "a2", "and now?")
    lines = give(talk, "/history 2", "a2").text.splitlines()
    assert lines[:2] == ["… 2 earlier messages …", "● which tram?"]
    assert lines[-2:] == ["◆ left to do", "● and now?"]
    assert not any("summary" in line for line in lines)
    assert give(talk, "/history 1", "a2").text.splitlines() == ["… 7 earlier messages …", "● and now?"]


def test_a_long_history_is_as_long_as_was_asked_for(store: Store) -> None:
    begin(store, "a")
    for number in range(30):
        say(store, "a", f"question {number}")
    lines = give(store, "/history 25").text.splitlines()
    assert lines[0] == "… 5 earlier messages …"
    assert [line.split()[-1] for line in lines[1:]] == [str(number) for number in range(5, 30)]


def test_search_groups_by_conversation(talk: Store) -> None:
    compress(talk, "a", "a2")
    for number in range(4):
        say(talk, "a2", f"hotel number {number}")
    say(talk, "other", "no hotel here", at=NOW - 3600)
    answer = give(talk, "/search hotel", "a2")
    assert isinstance(answer.act, Offer)
    assert sorted(answer.act.session_ids) == ["a2", "other"]
    lines = answer.text.splitlines()
    number = answer.act.session_ids.index("other") + 1
    assert f"  {number}  pasta recipe · other" in lines
    assert "     ● no >>>hotel<<< here · 1h ago" in lines
    assert "     … 2 more here" in lines
    assert lines[-1].startswith("/resume NUMBER")


def test_a_summary_that_is_found_is_not_taken_for_the_persons_words(talk: Store) -> None:
    compress(talk, "a", "a2")
    assert "     ■ >>>summary<<< of a" in give(talk, "/search summary", "a2").text


def test_a_search_without_result_says_so(talk: Store) -> None:
    assert give(talk, "/search zebra").text == "Nothing was found."
    assert give(talk, "/search hotel", time_left=lambda: -1.0).text == INCOMPLETE
    assert give(talk, "/search hotel", None, time_left=lambda: inf).act == Offer(("a",))


def test_a_damaged_index_is_begun_again_by_whoever_searches(home: Path) -> None:
    with SqlStore(SqliteEngine(home / "state.db")) as store:
        begin(store, "a")
        say(store, "a", "which hotel?")
        store.index_all()
        harm = "DELETE FROM messages_fts_data"
        store.write(ME, lambda tx: tx.search._db.run(harm, {}))  # type: ignore[attr-defined]
        answer = give(store, "/search hotel")
        assert (answer.act, answer.is_index_damaged) == (Offer(("a",)), True)
        assert REBUILDING in answer.text
        store.begin_index_again()
        assert not give(store, "/search hotel").is_index_damaged


# Going back


def test_undo_says_what_was_undone_and_how_to_get_it_back(talk: Store) -> None:
    answer = give(talk, "/undo")
    assert answer.text.startswith("Undone: 1 turn, 4 messages, from “which tram?” on.")
    assert found(talk, "a").message_count == 2
    assert "/redo brings it back" in answer.text
    assert isinstance(answer.act, Undone)
    back = give(talk, "/redo", undone=answer.act.spots)
    assert back == Answer("Back again: 4 messages, from “which tram?” on.", Redone())
    assert found(talk, "a").message_count == 6


def test_redo_brings_back_what_one_undo_took_and_nothing_else(talk: Store) -> None:
    talk.write(ME, rewind_turns, "a", 1)  # as /retry does
    say(talk, "a", "which bus?", at=NOW)
    say(talk, "a", "Number 28.", "assistant", at=NOW)
    before = [message.seq for message in talk.read(ME, lambda tx: tx.messages.of("a"))]
    first, second = give(talk, "/undo").act, give(talk, "/undo").act
    assert isinstance(first, Undone)
    assert isinstance(second, Undone)
    assert found(talk, "a").message_count == 0
    give(talk, "/redo", undone=second.spots)
    assert found(talk, "a").message_count == 2
    give(talk, "/redo", undone=first.spots)
    assert [message.seq for message in talk.read(ME, lambda tx: tx.messages.of("a"))] == before


def test_redo_after_something_else_was_said_brings_nothing_back(talk: Store) -> None:
    undone = give(talk, "/undo").act
    assert isinstance(undone, Undone)
    say(talk, "a", "which bus?", at=NOW)
    for seqs in (undone.spots, ()):
        assert give(talk, "/redo", undone=seqs).text.startswith("There is nothing to bring back")
    assert found(talk, "a").message_count == 3


def test_a_branch_of_what_has_no_title_is_told_apart_from_it(talk: Store) -> None:
    assert "You are in a branch of “pasta recipe” now; /title names it.\nfresh\n" in give(talk, "/branch", "other").text


def test_undo_several_and_more_than_there_are(talk: Store) -> None:
    assert "2 turns, 6 messages, from “which hotel?” on. There were no more." in give(talk, "/undo 9").text
    assert give(talk, "/undo").text == "There is nothing to undo: nothing has been said yet."
    assert give(talk, "/undo", None).text == "There is nothing to undo: nothing has been said yet."


def test_what_a_compression_kept_word_for_word_can_be_undone_and_said_again(talk: Store) -> None:
    compress(talk, "a", "a2", Spot("a", 3))
    before = texts(talk, "a2")
    assert give(talk, "/retry", "a2").act == Again("which tram?", "which tram?", undo_from=Spot("a", 3))
    undone = give(talk, "/undo 5", "a2")
    assert "1 turn, 4 messages, from “which tram?” on. There were no more." in undone.text
    assert texts(talk, "a2") == before[:1]
    assert undone.act == Undone(tuple(Spot("a", seq) for seq in (3, 4, 5, 6)))
    assert "4 messages" in give(talk, "/redo", "a2", undone=undone.act.spots).text
    assert texts(talk, "a2") == before


def test_a_turn_that_was_compressed_on_its_way_is_undone_in_both_sessions(talk: Store) -> None:
    compress(talk, "a", "a2", Spot("a", 3))
    say(talk, "a2", "and so on", "assistant")
    before = texts(talk, "a2")
    undone = give(talk, "/undo", "a2")
    assert isinstance(undone.act, Undone)
    assert undone.act.spots[-1] == Spot("a2", 1)
    assert texts(talk, "a2") == before[:1]
    give(talk, "/redo", "a2", undone=undone.act.spots)
    assert texts(talk, "a2") == before
    say(talk, "a2", "something else")
    assert "nothing to bring back" in give(talk, "/redo", "a2", undone=undone.act.spots).text


def test_what_was_summarised_is_not_undone(talk: Store) -> None:
    compress(talk, "a", "a2", None)
    assert "part of what was compressed" in give(talk, "/undo", "a2").text
    assert "part of what was compressed" in give(talk, "/retry", "a2").text
    assert found(talk, "a").message_count == 6


def test_retry_asks_the_same_again(talk: Store) -> None:
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}]
    assert give(talk, "/retry").act == Again("which tram?", "which tram?", undo_from=Spot("a", 3))
    assert give(talk, "/retry").text == "Once more: “which tram?”."
    say(talk, "a", parts)
    assert give(talk, "/retry").act == Again("look\n[image]", parts, undo_from=Spot("a", 7))
    states = [message.state for message in talk.read(ME, lambda tx: tx.messages.of("a", every_state=True))]
    assert states == [State.LIVE] * 7, "it falls silent when it is said again, and not before"
    assert give(talk, "/retry", None).act is None


@pytest.mark.parametrize("text", ["/undo", "/retry"])
def test_nothing_is_undone_under_an_answer_that_is_being_written(talk: Store, text: str) -> None:
    with pytest.raises(InUse, match="/stop"):
        give(talk, text, is_answering=True)
    assert found(talk, "a").message_count == 6


@pytest.mark.parametrize(
    "text", ["/undo x", "/undo 0", "/undo -1", "/history 1.5", "/sessions ٣", "/undo " + "9" * 5000]
)
def test_what_is_no_number_is_refused(talk: Store, text: str) -> None:
    with pytest.raises(Invalid, match="takes a number, such as /"):
        give(talk, text)


# Choices


def test_a_model_is_kept_as_it_was_named(talk: Store) -> None:
    answer = give(talk, "/model fast", models={"fast": "openai/gpt-5-mini"}.__getitem__)
    assert answer.text == "The model is openai/gpt-5-mini (fast) now."
    chosen = Preferences("fast", Effort.HIGH, rest={"temperature": 0})
    assert answer.act == Prefer(chosen)
    assert decode(found(talk, "a").model_config) == chosen
    assert give(talk, "/model", model="openai/gpt-5-mini").text == "The model is openai/gpt-5-mini, chosen as fast."
    assert give(talk, "/model DEFAULT").act == Prefer(chosen._replace(model=None))
    assert give(talk, "/model").text == "The model is openai/gpt, by the configuration."


def test_a_model_that_does_not_exist_is_not_chosen(talk: Store) -> None:
    def models(name: str) -> str:
        raise UnknownModel(f"There is no model {name}.")

    with pytest.raises(UnknownModel):
        give(talk, "/model nonsense", models=models)
    with pytest.raises(Invalid):
        give(talk, "/model " + "x" * 201)
    assert decode(found(talk, "a").model_config).model == "gpt"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/think NONE", Preferences("gpt", Effort.NONE)),
        ("/think low", Preferences("gpt", Effort.LOW)),
        ("/think default", Preferences("gpt")),
        ("/verbose off", Preferences("gpt", Effort.HIGH, Verbosity.OFF)),
        ("/verbose all", Preferences("gpt", Effort.HIGH, Verbosity.ALL)),
        ("/verbose on", Preferences("gpt", Effort.HIGH, Verbosity.TOOLS)),
        ("/verbose full", Preferences("gpt", Effort.HIGH, Verbosity.ALL)),
        ("/verbose default", Preferences("gpt", Effort.HIGH)),
    ],
)
def test_levels_are_chosen(talk: Store, text: str, expected: Preferences) -> None:
    expected = expected._replace(rest={"temperature": 0})
    assert give(talk, text).act == Prefer(expected)
    assert decode(found(talk, "a").model_config) == expected


def test_levels_are_shown_and_wrong_ones_refused(talk: Store) -> None:
    assert give(talk, "/think").text == "Thinking: high. /think takes none, low, medium, high or default."
    assert give(talk, "/verbose").text == "Verbose: default. /verbose takes off, tools, all or default."
    for text in ("/think much", "/verbose yes", "/context everything"):
        with pytest.raises(Invalid, match="takes"):
            give(talk, text)


def test_a_choice_before_the_first_message_is_for_the_chat_to_keep(store: Store) -> None:
    chosen = Preferences(verbose=Verbosity.ALL)
    assert give(store, "/think low", None, preferences=chosen).act == Prefer(chosen._replace(effort=Effort.LOW))


# How things stand


def test_status(talk: Store) -> None:
    talk.write(ME, add_usage, "a", Usage(1200, 34, api_call_count=2), Billing(), 1.0)
    talk.write(ME, lambda tx: tx.sessions.change("a", context_tokens=50_000, context_window=200_000))
    turn = Turn("t", "a", "run", TurnState.DONE, 1, 1, NOW - 400, ended_at=NOW - 300)
    talk.write(ME, lambda tx: tx.turns.insert(turn))
    assert give(talk, "/status", cwd="/tmp").text.splitlines() == [
        "Model     openai/gpt",
        "Agent     answered, 5m ago",
        "Context   50,000 of 200,000 tokens (25%)",
        "Thinking  high",
        "Verbose   default",
        "Folder    /tmp",
        "Session   a",
        "Title     Lisbon",
        "Messages  6",
        "Tokens    1,234",
    ]


@pytest.mark.parametrize(
    ("chosen", "lane", "expected"),
    [
        (
            Preferences(),
            LaneStatus(next_reset=datetime(2025, 3, 6, 4, tzinfo=UTC)),
            [
                "on",
                "collect, by the settings; 2 messages waiting",
                "active",
                "2025-03-06 04:00, unless somebody writes before",
            ],
        ),
        (
            Preferences(send="off", queue="steer"),
            LaneStatus(phase=Phase.SUSPENDED),
            ["off, chosen here", "steer, chosen here; 2 messages waiting", "suspended", "with the next message"],
        ),
        (
            Preferences(),
            LaneStatus(QueueMode.FOLLOWUP, False, next_reset=datetime(1970, 1, 2, tzinfo=UTC), process_count=1),
            [
                "off, by the send policy",
                "followup, by the settings; 2 messages waiting",
                "active",
                "when 1 background process ended",
            ],
        ),
        (
            Preferences(send="on"),
            LaneStatus(is_sent=False, phase=Phase.INTERRUPTED),
            ["on, chosen here", "collect, by the settings; 2 messages waiting", "interrupted", "none"],
        ),
    ],
)
def test_status_in_a_lane(store: Store, chosen: Preferences, lane: LaneStatus, expected: list[str]) -> None:
    told = give(store, "/status", None, preferences=chosen, lane=lane, route=DM, waiting=2).text.splitlines()
    rows = dict(line.split("  ", 1) for line in told)
    assert [rows[name].strip() for name in ("Sending", "Queue", "Phase", "Next reset")] == expected


def test_texts_in_chats_name_no_command_of_a_terminal(talk: Store) -> None:
    """Neither help, nor answers, nor errors."""
    compress(talk, "a", "a2")
    for number in range(9):
        begin(talk, f"one_{number}")
        say(talk, f"one_{number}", "which tram then?")
    said = ["/help", *(f"/help {spec.name}" for spec in known(in_terminal=False)), *(spec.example for spec in COMMANDS)]
    said += [f"/{spec.name}" for spec in known(in_terminal=False)]
    said += ["/search which tram", "/undo", "/handoff cli", "/resume nothing", "/resume trashed", "/branch Lisbon"]
    talk.write(ME, discard_conversation, "other", NOW)
    for text in (*said, "/resume other"):
        if parse(text, in_terminal=False) is None or isinstance(parse(text, in_terminal=False), Unknown):
            continue
        try:
            told = give(talk, text, "one_8", route=DM, homes={"telegram": DM}).text
        except SegueError as error:
            told = error.in_chat
        assert "segue " not in told.replace("@segue ", ""), text


def test_a_conversation_that_is_open_elsewhere_is_told_in_chats_without_machine_and_process(talk: Store) -> None:
    run = Run("other", "segue chat", "host.example", "boot", 77, "1", 1.0, 1.0)
    talk.write(ME, begin_run, run)
    talk.write(ME, take_lease, session_lease("a"), "other", "owner", lambda _: False)
    with pytest.raises(InUse) as refused:
        talk.write(ME, take_lease, session_lease("a"), "mine", "owner", lambda _: False)
    assert "host.example" in str(refused.value)
    assert refused.value.in_chat == "“Lisbon” is open elsewhere. Go on there, or close it."


def test_ids_in_what_people_are_told_of_errors_stand_on_lines_of_their_own(talk: Store) -> None:
    for name in ("2025_1", "2025_2"):
        begin(talk, name)
    told = []
    for text in ("/title Lisbon", "/resume 2025"):
        with pytest.raises(SegueError) as refused:
            give(talk, text, "other", route=DM)
        told.append(refused.value.in_chat)
    assert told == [
        "The title 'Lisbon' belongs to another conversation of yours (open).\na",
        "'2025' fits 2 conversations. Give more of the id.\n2025_1\n2025_2",
    ]
    assert Compressed("a2", "Lisbon").notice.splitlines()[1:] == ["a2"]


def test_status_of_what_is_not_known(talk: Store) -> None:
    lines = give(talk, "/status", None, model="").text.splitlines()
    assert lines[:3] == ["Model     none", "Agent     not asked yet", "Context   unknown"]
    assert lines[-1].startswith("Session   none yet")
    compress(talk, "a", "a2")
    assert "Messages  1, and 6 in 1 earlier part" in give(talk, "/status", "a2").text


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (Usage(), Usage(), "$0.00"),
        (Usage(5, api_call_count=1), Usage(), "unknown"),
        (Usage(5, estimated_cost_usd=0.001), Usage(), "$0.0010 (estimated)"),
        (Usage(5, estimated_cost_usd=2.0), Usage(5), "$2.00 (estimated, a part of it unknown)"),
        (Usage(5, estimated_cost_usd=2.0, actual_cost_usd=3.0), Usage(5, actual_cost_usd=1.0), "$4.00"),
        (Usage(5, estimated_cost_usd=0.0), Usage(), "$0.00 (estimated)"),
    ],
)
def test_the_cost_of_all_parts(talk: Store, first: Usage, second: Usage, expected: str) -> None:
    talk.write(ME, add_usage, "a", first, Billing(), 1.0)
    compress(talk, "a", "a2")
    talk.write(ME, add_usage, "a2", second, Billing(), 1.0)
    assert f"Cost         {expected}\n" in give(talk, "/usage", "a2").text


def test_usage(talk: Store) -> None:
    talk.write(ME, add_usage, "a", Usage(1000, 20, 300, 40, 5, 6), Billing(), 1.0)
    assert give(talk, "/usage").text.splitlines()[:7] == [
        "Tokens in    1,000",
        "Tokens out   20",
        "Cache read   300",
        "Cache write  40",
        "Reasoning    5",
        "Model calls  6",
        "Cost         unknown",
    ]
    assert give(talk, "/usage", None).text == "Nothing has been used yet."


def test_usage_of_the_whole_conversation_by_model_and_purpose(talk: Store) -> None:
    table = Billing("large", cost_source="genai-prices", pricing_version="0.2.1 (2026-09-28)")
    talk.write(ME, add_usage, "a", Usage(1000, 20, 300, 0, 0, 1, 0.25), table, 1.0)
    talk.write(ME, add_usage, "a", Usage(10, 2, api_call_count=1), Billing("my\x1b[2J\nown"), 1.0, Purpose.TITLE)
    compress(talk, "a", "a2")
    talk.write(ME, add_usage, "a2", Usage(500, 10, 0, 0, 0, 1, 0.001), table, 1.0)
    assert give(talk, "/usage", "a2").text.splitlines()[5:] == [
        "Model calls  3",
        "Cost         $0.25 (estimated, a part of it unknown)",
        "Prices       genai-prices 0.2.1 (2026-09-28)",
        "Parts        2, all of them counted",
        "",
        "By model",
        "large   2 calls, 1,500 in (300 from a cache), 30 out, $0.25",
        "my own  1 call, 10 in, 2 out, cost unknown",
        "",
        "By purpose",
        "answer  2 calls, 1,500 in (300 from a cache), 30 out, $0.25",
        "title   1 call, 10 in, 2 out, cost unknown",
    ]


def test_a_branch_has_used_nothing_yet(talk: Store) -> None:
    talk.write(ME, add_usage, "a", Usage(1000, api_call_count=1), Billing(), 1.0)
    talk.write(ME, branch_session, "a", branch_id="b", source="cli", now=9.0)
    assert give(talk, "/usage", "b").text.splitlines()[0] == "Tokens in    0"
    assert "By model" not in give(talk, "/usage", "b").text


def test_context_names_each_part_with_its_size(talk: Store) -> None:
    talk.write(ME, lambda tx: tx.sessions.change("a", system_prompt="x" * 401))
    tools = [("terminal", 100), ("web\x1b[2J_fetch", 300)]
    lines = give(talk, "/context", parts=tools).text.splitlines()
    assert lines[:3] == [
        "System prompt  401 characters, about 101 tokens",
        "Tools (2)      400 characters, about 100 tokens",
        "You            23 characters, about 6 tokens",
    ]
    assert [line.split("  ")[0] for line in lines[3:]] == ["Answers", "Tool results", "Together"]
    assert lines[-1].endswith("6 messages")
    assert give(talk, "/context list", parts=tools).text == "\n".join(lines)
    detail = give(talk, "/context detail", parts=tools).text
    assert detail.startswith("\n".join(lines) + "\n\nTools\nweb_fetch  300 characters")
    assert "\n\nLargest messages\n#4 assistant" in detail
    assert ": web_fetch" in detail


def test_context_names_the_files_of_the_folder(talk: Store) -> None:
    place = Place(datetime(2025, 3, 5, tzinfo=UTC), "the terminal", "/tmp")
    prompt = system_prompt(place, [], [WorkspaceFile("AGENTS.md", "Use leeks.")])
    talk.write(ME, lambda tx: tx.sessions.change("a", system_prompt=prompt))
    assert "\n\nFiles of the folder\nFile AGENTS.md  10 characters" in give(talk, "/context detail").text


def test_context_of_a_compressed_conversation_and_of_none(talk: Store) -> None:
    compress(talk, "a", "a2", Spot("a", 3))
    text = give(talk, "/context", "a2").text
    assert "Summary" in text
    assert text.endswith("5 messages")
    assert "System prompt  5 characters" in give(talk, "/context detail", None, system_prompt="hello").text


def test_context_counts_a_result_that_was_cut_down_as_the_model_is_shown_it(talk: Store) -> None:
    say(talk, "a", None, "assistant", tool_calls=[{"id": "d", "function": {"name": "web_fetch", "arguments": "{}"}}])
    say(talk, "a", "x" * 50_000, "tool", tool_call_id="d")
    assert "Tool results   50,002 characters" in give(talk, "/context").text
    talk.write(ME, lambda tx: tx.messages.prune("a", 8, "100:100"))
    assert "Tool results   247 characters" in give(talk, "/context").text


def test_only_the_ten_largest_messages_are_shown(store: Store) -> None:
    begin(store, "a")
    for number in range(15):
        say(store, "a", "x" * (100 + number))
    largest = give(store, "/context detail").text.partition("Largest messages\n")[2].splitlines()
    assert [line.split()[0] for line in largest] == [f"#{seq}" for seq in range(15, 5, -1)]


# The chat itself


def test_stop_and_quit(talk: Store) -> None:
    assert give(talk, "/stop") == Answer("", Stop())
    assert give(talk, "/exit") == Answer("`segue --resume a` comes back to this conversation.", Quit())
    assert give(talk, "/quit", None) == Answer("", Quit())


def test_help_has_a_line_for_every_command(store: Store) -> None:
    text = give(store, "/help", None).text
    for spec in known():
        assert re.search(rf"^  {re.escape(spec.shown)} +{re.escape(spec.help)}$", text, re.MULTILINE), spec.name
    assert len(text.splitlines()) <= 24, "one screen"
    assert max(map(len, text.splitlines())) <= 100
    assert "/quit" not in give(store, "/help", None, route=SessionSource(platform="telegram")).text


def test_help_of_one_command(store: Store) -> None:
    for spec in known():
        text = give(store, f"/help {spec.name}", None).text
        assert text.startswith(f"{spec.shown}: ")
        assert spec.example in text
    assert "Also: /exit." in give(store, "/help /EXIT", None).text
    with pytest.raises(Invalid, match="did you mean /title"):
        give(store, "/help titel", None)
    with pytest.raises(Invalid, match="/help shows"):
        give(store, "/help \x1b[2Jqq", None)


def test_what_looks_like_a_command_is_answered() -> None:
    assert unknown(Unknown("titel", "title")) == "There is no command /titel; did you mean /title?"
    assert unknown(Unknown("qqq")) == "There is no command /qqq; /help shows those there are."


# Nothing stored can steer a terminal, or pass for something else


def test_no_answer_steers_a_terminal(store: Store) -> None:
    begin(store, "a\u202e", first_line=HOSTILE, model="m\x1b[1m", cwd="/\x1b[2J")
    say(store, "a\u202e", HOSTILE)
    say(store, "a\u202e", HOSTILE, "assistant", tool_calls=[{"id": "c", "function": {"name": HOSTILE}}])
    texts = [
        give(store, text, "a\u202e", model=HOSTILE, cwd=HOSTILE, parts=[(HOSTILE, 1)], models=lambda _: HOSTILE).text
        for text in (
            *("/title", "/sessions", "/resume", "/history", "/search alert", "/status", "/usage"),
            *("/context detail", "/model", "/model x", "/think", "/quit", "/branch", "/retry", "/undo", "/new"),
        )
    ]
    for text in texts:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text), text
        assert not re.search("^  9  Faked line", text, re.MULTILINE), text


# Whose it is


@pytest.fixture
def shared(store: Store) -> Store:
    """Bob has a conversation; so has Eve, and Bob another one in a room."""
    begin(store, "his", "Secret plan", BOB)
    say(store, "his", "the treasure is buried", scope=BOB)
    begin(store, "hers", scope=EVE)
    say(store, "hers", "hello", scope=EVE)
    begin(store, "there", scope=BOB_IN_A_ROOM)
    say(store, "there", "hello room", scope=BOB_IN_A_ROOM)
    return store


@pytest.mark.parametrize(("scope", "session_id"), [(EVE, "hers"), (BOB_IN_A_ROOM, "there")])
def test_nobody_reaches_what_they_may_not_see(shared: Store, scope: Scope, session_id: str) -> None:
    before = shared.read(ME, lambda tx: tx.sessions.find("his"))
    for text in ("/resume his", "/resume hi", "/resume Secret plan", "/resume 1"):
        with pytest.raises(NotFound):
            give(shared, text, session_id, scope, listed=("his",))
    for text in ("/sessions", "/resume", "/search treasure", "/search in:tools buried"):
        answer = give(shared, text, session_id, scope)
        assert not re.search(r"\bhis\b|Secret|treasure|buried", answer.text), text
        assert not isinstance(answer.act, Offer) or "his" not in answer.act.session_ids
    assert shared.read(ME, lambda tx: tx.sessions.find("his")) == before


@pytest.mark.parametrize("scope", [EVE, BOB_IN_A_ROOM])
def test_a_command_in_somebody_elses_session_does_nothing(shared: Store, scope: Scope) -> None:
    before = everything(shared)
    for spec in COMMANDS:
        if spec.name in ("stop", "help", "sessions", "new", "reset", "search", "steer", "sethome", "restart"):
            continue
        argument = {"title": "Mine now", "model": "m", "think": "low", "verbose": "all", "resume": "his"}.get(
            spec.name, ""
        )
        route = SessionSource(platform="telegram") if spec.where is Where.PLATFORMS else None
        with pytest.raises(SessionNotFound):
            give(shared, f"/{spec.name} {argument}", "his", scope, route=route)
    assert give(shared, "/new", "his", scope).text == "This is a new conversation already."
    assert everything(shared) == before


def test_a_title_is_free_for_everybody_else(shared: Store) -> None:
    assert give(shared, "/title Secret plan", "hers", EVE).text == "This conversation is called “Secret plan” now."
    with pytest.raises(TitleTaken, match="of yours elsewhere"):
        give(shared, "/title Secret plan", "there", BOB_IN_A_ROOM)
    with pytest.raises(TitleTaken, match="of yours elsewhere"):
        give(shared, "/title Secret plan", None, BOB_IN_A_ROOM)


def test_a_person_resumes_their_own_and_the_owner_any(shared: Store) -> None:
    assert isinstance(give(shared, "/resume Secret plan", None, BOB).act, Switch)
    assert isinstance(give(shared, "/resume his", None).act, Switch)


@pytest.mark.parametrize("name", ["restart", "sethome"])
def test_a_command_of_chats_is_named_as_such_in_the_terminal(name: str) -> None:
    said = parse(f"/{name}")
    assert isinstance(said, Unknown)
    assert unknown(said) == f"/{name} is for chats on platforms, where a gateway answers; the terminal needs none."
