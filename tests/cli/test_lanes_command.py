"""`segue lanes`: where people talk to the agent, looked at and begun anew."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from homes import Beside, configure
from lane_rows import ALICE, BOB, answered, cut_off, died, hold, live_run, opened, say

from segue.core.leases import lane_lease

Run = Callable[..., subprocess.CompletedProcess[str]]

LIST_KEYS = {
    *("key", "phase", "phase_reason", "phase_since", "session_id", "title", "first_line", "waiting", "running"),
    *("at_work", "policy", "next_reset_at", "last_person_at", "updated_at", "principal", "audience"),
}
SHOW_KEYS = LIST_KEYS | {
    *("created_at", "finalised_at", "origin", "source", "overrides", "background_work", "resets", "inbox", "outbox"),
}


def refused(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


def lanes(run: Run, *arguments: str) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = json.loads(run("lanes", "list", "--json", *arguments).stdout)
    return listed


def shown(run: Run, key: str) -> dict[str, object]:
    lane: dict[str, object] = json.loads(run("lanes", "show", key, "--json").stdout)
    return lane


def test_a_home_without_lanes_says_so(run: Run) -> None:
    result = run("lanes", "list")
    assert (result.returncode, result.stdout) == (0, "")
    assert "Nobody has talked" in result.stderr
    assert lanes(run) == []
    assert "No lane has 'x' in its key" in refused(run("lanes", "show", "x"))


def test_lanes_are_listed_with_phase_queue_and_next_reset(home: Path, run: Run) -> None:
    configure(home, "session: {reset: {mode: idle, idle_minutes: 120}}\n")
    now = time.time()
    with opened(home) as store:
        answered(store, "what is the weather", at=now - 600)
        cut_off(store, "carry on", "bob", at=now - 5)
        say(store, "and tomorrow?", at=now)
    bob, alice = lanes(run)
    assert set(alice) == LIST_KEYS
    assert (alice["key"], alice["phase"], alice["waiting"], alice["running"]) == (ALICE, "active", 1, 0)
    assert (bob["key"], bob["phase"], bob["waiting"], bob["running"]) == (BOB, "interrupted", 0, 1)
    assert alice["next_reset_at"] == pytest.approx(now - 600 + 7200, abs=0.01)
    assert alice["policy"] is not None
    assert (alice["first_line"], alice["at_work"]) == ("what is the weather", None)
    assert [lane["key"] for lane in lanes(run, "--limit", "1")] == [BOB]
    assert [lane["key"] for lane in lanes(run, "--active", "5")] == [BOB]
    table = run("lanes", "list", COLUMNS="200").stdout
    assert "what is the weather" in table
    assert "after 2h" in table


@pytest.mark.on_file
@pytest.mark.parametrize("columns", ["40", "80", "120"])
def test_the_tables_fit_the_terminal(home: Path, run: Run, columns: str) -> None:
    with opened(home) as store:
        answered(store, "what is the weather like in a place with a very long name " * 3)
        died(store, "dead " * 50, reason="The model is gone and will not come back before next week.")
    for words in (["lanes", "list"], ["inbox", "list"]):
        told = run(*words, COLUMNS=columns).stdout.splitlines()
        assert len(told) == 3
        assert max(map(len, told)) <= int(columns)
        assert ALICE[:8] in told[2] or words[0] == "inbox"


def test_a_lane_is_shown_in_full_by_a_part_of_its_key(home: Path, run: Run) -> None:
    with opened(home) as store:
        answered(store, "hello")
        died(store, "why?")
        answered(store, "good morning", "bob")
        hold(store, lane_lease(BOB), live_run(store))
    run("lanes", "reset", "alice", "--yes")
    lane = shown(run, "alice")
    assert set(lane) == SHOW_KEYS
    assert lane["overrides"] == {"model": None, "effort": None, "verbose": None, "send": None, "queue": None}
    assert [entry["state"] for entry in lane["inbox"]] == ["done", "dead"]  # type: ignore[attr-defined]
    assert {letter["state"] for letter in lane["outbox"]} == {"pending"}  # type: ignore[attr-defined]
    assert [one["who"] for one in lane["resets"]] == ["console"]  # type: ignore[attr-defined]
    told = run("lanes", "show", ALICE).stdout
    for words in (ALICE, "on request", "why?", "The model is gone.", "Not delivered:", "DM with Alice on scripted"):
        assert words in told
    assert shown(run, "bob")["at_work"] is not None
    assert "segue gateway, process" in run("lanes", "show", "bob").stdout
    assert "is in 2 lanes" in refused(run("lanes", "show", "scripted"))


def test_a_reset_begins_a_new_conversation_and_keeps_the_old(home: Path, run: Run) -> None:
    with opened(home) as store:
        answered(store, "hello")
    (before,) = lanes(run)
    dry = run("lanes", "reset", "alice", "--dry-run")
    assert dry.stdout.endswith("Nothing was changed.\n")
    assert "pass --yes" in refused(run("lanes", "reset", "alice"))
    assert lanes(run) == [before]
    done = run("lanes", "reset", "alice", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    (after,) = lanes(run)
    assert after["session_id"] != before["session_id"]
    assert f"segue sessions show {before['session_id']}" in done.stdout
    assert "hello" in run("sessions", "show", str(before["session_id"])).stdout
    told = json.loads(run("lanes", "reset", "alice", "--yes", "--json").stdout)
    assert set(told) == {"key", "old_session_id", "session_id", "given_up", "waiting", "dry_run"}
    assert told["old_session_id"] == after["session_id"]


def test_nothing_is_reset_or_deleted_while_a_gateway_works_there(home: Path, run: Run) -> None:
    with opened(home) as store:
        answered(store, "hello")
        hold(store, lane_lease(ALICE), live_run(store))
    (before,) = lanes(run)
    for act in ("reset", "delete"):
        assert f"Somebody is at work in {ALICE}: segue gateway, process" in refused(run("lanes", act, "alice", "--yes"))
    assert [lane["session_id"] for lane in lanes(run)] == [before["session_id"]]


def test_an_answer_that_was_cut_off_is_given_up_by_a_reset_and_can_be_retried(home: Path, run: Run) -> None:
    with opened(home) as store:
        entry = cut_off(store, "carry on")
    assert "not finished" in refused(run("lanes", "delete", "alice", "--yes"))
    assert "1 message had an answer that was cut off" in run("lanes", "reset", "alice", "--yes").stdout
    assert [one["id"] for one in json.loads(run("inbox", "list", "--json", "--state", "dead").stdout)] == [entry.id]
    with Beside(home) as database:
        assert database.ask("SELECT state, reason FROM turns") == [("failed", "It was left open.")]
    assert run("inbox", "retry", str(entry.id)).returncode == 0


def test_an_idle_lane_is_forgotten_and_its_conversation_is_not(home: Path, run: Run) -> None:
    with opened(home) as store:
        answered(store, "hello")
        answered(store, "hello", "bob")
        waits = say(store, "waits", "bob")
    session = lanes(run)[-1]["session_id"]
    assert run("lanes", "delete", "alice", "--dry-run").stdout.endswith("Nothing was changed.\n")
    assert "1 message waits in" in refused(run("lanes", "delete", "bob", "--yes"))
    done = run("lanes", "delete", "alice", "--yes")
    assert done.stdout.endswith(f"{ALICE} is forgotten. Its conversation is kept: `segue sessions show {session}`.\n")
    assert [lane["key"] for lane in lanes(run)] == [BOB]
    assert "hello" in run("sessions", "show", str(session)).stdout
    run("inbox", "cancel", str(waits.id), "--yes")
    assert json.loads(run("lanes", "delete", "bob", "--yes", "--json").stdout)["dry_run"] is False
    assert lanes(run) == []


@pytest.mark.on_file
def test_what_people_say_and_are_called_does_not_steer_the_terminal(home: Path, run: Run) -> None:
    evil = "x\x1b]0;owned\x07\u202e\nALL IS WELL"
    with opened(home) as store:
        answered(store, evil, chat_name=evil)
        died(store, evil, reason=evil)
    for words in (["lanes", "list"], ["lanes", "show", "alice"], ["inbox", "list", "--all"], ["inbox", "retry", "2"]):
        told = run(*words)
        assert told.returncode == 0, told.stderr
        assert not set(told.stdout + told.stderr) & set("\x1b\x07\u202e")
        assert "ALL IS WELL" not in told.stdout.splitlines()


@pytest.mark.on_file
def test_keys_of_lanes_are_completed(home: Path, run: Run) -> None:
    with opened(home) as store:
        answered(store, "hello")
    for words in (["lanes", "show", "agent:"], ["inbox", "cancel", "--lane", "agent:"]):
        done = run("segue", *words, _SEGUE_COMPLETE="fish_complete")
        assert done.stdout.split("\t")[:2] == ["plain", ALICE]
