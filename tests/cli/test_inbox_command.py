"""`segue inbox`: what waits and what died, answered after all or no more."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lane_rows import ALICE, answered, cut_off, died, found, hold, live_run, opened, say

from segue.core.leases import lane_lease
from segue.core.queueing import Drop, QueueRules

Run = Callable[..., subprocess.CompletedProcess[str]]

CAROL = "agent:main:scripted:dm:carol"
DAVE = "agent:main:scripted:dm:dave"
KEYS = {
    *("id", "state", "lane_key", "principal", "audience", "person", "platform", "account", "chat", "message_id"),
    *("edit", "want", "text", "admitted_at", "turn_id", "session_id", "reason", "ended_at", "author"),
}


def refused(result: subprocess.CompletedProcess[str], code: int = 1) -> str:
    assert result.returncode == code
    return result.stderr


def listed(run: Run, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("inbox", "list", "--json", *arguments).stdout)
    return found


def states(run: Run, *arguments: str) -> list[str]:
    return [one["state"] for one in listed(run, *arguments)]


def furnish(home: Path) -> dict[str, int]:
    """One message in each state."""
    full = QueueRules(cap=1, drop=Drop.NEW)
    with opened(home) as store:
        made = {
            "done": answered(store, "What is the time?"),
            "dead": died(store, "Where am I?", "bob"),
            "running": cut_off(store, "Who is there?", "carol"),
            "waiting": say(store, "How are you?", "dave"),
            "refused": say(store, "Well?", "dave", rules=full),
        }
        assert {name: found(store, entry).state for name, entry in made.items()} == {name: name for name in made}
    return {name: entry.id for name, entry in made.items()}


def test_one_message_is_shown_whole_with_what_was_sent(home: Path, run: Run) -> None:
    with opened(home) as store:
        long = answered(store, "What is\nthe time? " + "word " * 100 + "\x1b[31mend")
    told = run("inbox", "show", str(long.id), COLUMNS="160").stdout
    assert "the time?" in told
    assert "word " * 100 + "end" in told
    assert "\x1b" not in told
    for name in ("From", "State         done", "Accepted", "Lane", "Conversation"):
        assert name in told
    shown = json.loads(run("inbox", "show", str(long.id), "--json").stdout)
    assert set(shown) == {*KEYS, "replies"}
    assert "There is no message 77" in refused(run("inbox", "show", "77"))


def test_an_empty_inbox_says_so(run: Run) -> None:
    result = run("inbox", "list")
    assert (result.returncode, result.stdout) == (0, "")
    assert "everything was answered" in result.stderr
    assert listed(run) == []


def test_what_somebody_may_have_to_do_something_about_is_listed(home: Path, run: Run) -> None:
    furnish(home)
    assert states(run) == ["dead", "running", "waiting", "refused"]
    assert states(run, "--all") == ["done", "dead", "running", "waiting", "refused"]
    assert states(run, "--state", "done", "--state", "dead") == ["done", "dead"]
    assert states(run, "--limit", "2") == ["waiting", "refused"]
    assert set(listed(run)[0]) == KEYS
    told = run("inbox", "list", COLUMNS="160").stdout
    for words in ("Where am I?", "The model is gone.", "Bob", "just now", "Too many messages were waiting."):
        assert words in told


def test_the_messages_of_one_lane_are_listed(home: Path, run: Run) -> None:
    furnish(home)
    assert states(run, "--lane", DAVE) == ["waiting", "refused"], "a lane that has no row yet is known by its key"
    assert states(run, "--lane", ALICE) == []
    assert states(run, "--lane", "dm:alice", "--all") == ["done"], "a part of a key names a lane"
    assert states(run, "--lane", CAROL, "--state", "running") == ["running"]
    assert states(run, "--lane", DAVE, "--limit", "1") == ["refused"]
    assert "Nothing waits in this lane" in run("inbox", "list", "--lane", ALICE).stderr
    assert "No lane has" in refused(run("inbox", "list", "--lane", "dm:nobody"))


def test_dead_and_refused_messages_wait_again(home: Path, run: Run) -> None:
    ids = furnish(home)
    done = run("inbox", "retry", str(ids["refused"]), str(ids["dead"]))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "2 messages wait again.")
    assert states(run) == ["waiting", "running", "waiting", "waiting"]
    assert "waits already" in refused(run("inbox", "retry", str(ids["dead"])))
    assert "was answered" in refused(run("inbox", "retry", str(ids["done"])))
    assert "no message 999" in refused(run("inbox", "retry", "999"))


def test_everything_dead_is_retried_when_somebody_agrees(home: Path, run: Run) -> None:
    with opened(home) as store:
        dead = [died(store, "one"), died(store, "two", "bob")]
        say(store, "waits", "carol")
    assert run("inbox", "retry", "--all-dead", "--dry-run").stdout.endswith("Nothing was changed.\n")
    assert "pass --yes" in refused(run("inbox", "retry", "--all-dead"))
    assert states(run) == ["dead", "dead", "waiting"]
    told = json.loads(run("inbox", "retry", "--all-dead", "--yes", "--json").stdout)
    assert [(one["id"], one["state"], one["turn_id"]) for one in told["messages"]] == [
        (entry.id, "waiting", None) for entry in dead
    ]
    assert states(run) == ["waiting"] * 3
    assert json.loads(run("inbox", "retry", "--all-dead", "--yes", "--json").stdout)["messages"] == []


def test_messages_are_cancelled_by_number_or_by_lane(home: Path, run: Run) -> None:
    with opened(home) as store:
        first, second, other = say(store, "one"), say(store, "two"), say(store, "three", "bob")
    assert run("inbox", "cancel", str(first.id), "--dry-run").stdout.endswith("Nothing was changed.\n")
    assert "pass --yes" in refused(run("inbox", "cancel", str(first.id)))
    assert run("inbox", "cancel", str(first.id), "--yes").stdout.splitlines()[-1] == "1 message is cancelled."
    told = json.loads(run("inbox", "cancel", "--lane", ALICE, "--yes", "--json").stdout)
    assert [(one["id"], one["reason"]) for one in told["messages"]] == [(second.id, "It was cancelled at the console.")]
    assert [one["id"] for one in listed(run)] == [other.id]
    assert run("inbox", "retry", str(first.id)).returncode == 0
    assert [one["id"] for one in listed(run)] == [first.id, other.id]


def test_what_a_living_process_answers_is_not_cancelled(home: Path, run: Run) -> None:
    ids = furnish(home)
    with opened(home) as store:
        hold(store, lane_lease(CAROL), live_run(store))
    assert "is being answered" in refused(run("inbox", "cancel", str(ids["running"]), str(ids["waiting"]), "--yes"))
    assert states(run) == ["dead", "running", "waiting", "refused"]
    run("inbox", "cancel", str(ids["dead"]), str(ids["refused"]), "--yes")
    assert states(run) == ["running", "waiting"]


def test_what_no_process_works_on_any_more_is_cancelled(home: Path, run: Run) -> None:
    ids = furnish(home)
    (cancelled,) = json.loads(run("inbox", "cancel", str(ids["running"]), "--yes", "--json").stdout)["messages"]
    assert (cancelled["id"], cancelled["state"]) == (ids["running"], "cancelled")
    assert states(run) == ["dead", "waiting", "refused"]


def test_it_has_to_be_said_which_messages(run: Run) -> None:
    for words in (["retry"], ["retry", "1", "--all-dead"], ["cancel"], ["cancel", "1", "--lane", "x"]):
        assert "Give the ids of messages, or --" in refused(run("inbox", *words), 2)
    assert "No lane has 'x' in its key" in refused(run("inbox", "cancel", "--lane", "x"))
