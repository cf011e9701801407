"""Archive, pin, tag and prune, as people type them."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from segue import SessionDB

Run = Callable[..., subprocess.CompletedProcess[str]]


DAY = 86400.0


@pytest.fixture
def shelf(home: Path) -> Path:
    """An old ended conversation, an old pinned one, an old open one and a recent ended one."""
    now = time.time()
    with SessionDB() as db:
        for name, days, ended in (("old", 100, True), ("kept", 100, True), ("open", 100, False), ("recent", 1, True)):
            db.create_session(name, "cli", title=name.title(), started_at=now - days * DAY)
            db.append_message(name, "user", f"hello from {name}", timestamp=now - days * DAY)
            if ended:
                db.end_session(name, "user_exit")
    return home


def names(run: Run, *arguments: str) -> set[str]:
    return {line.split()[-1] for line in run("sessions", "list", *arguments).stdout.splitlines()[2:]}


def test_what_is_archived_is_put_aside_and_comes_back(run: Run, shelf: Path) -> None:
    assert run("sessions", "archive", "Old", "recent").stdout == "2 conversations archived: old, recent.\n"
    assert names(run) == {"kept", "open"}
    assert names(run, "--archived") == {"old", "recent"}
    assert run("sessions", "unarchive", "old").returncode == 0
    assert "old" in names(run)


def test_one_unknown_name_marks_nothing(run: Run, shelf: Path) -> None:
    result = run("sessions", "archive", "old", "nobody")
    assert (result.returncode, result.stdout) == (1, "")
    assert names(run, "--archived") == set()


def test_tags_find_a_conversation(run: Run, shelf: Path) -> None:
    assert run("sessions", "tag", "Old", "work", "two words").stdout == "old has the tags two words, work.\n"
    assert names(run, "--tag", "two words") == {"old"}
    assert run("sessions", "untag", "old", "work", "two words").stdout == "old has no tags.\n"


def test_prune_takes_what_is_ended_and_quiet_and_nothing_else(run: Run, shelf: Path) -> None:
    run("sessions", "pin", "kept")
    before = names(run)
    preview = run("sessions", "prune", "--dry-run").stdout
    assert "1 conversation" in preview
    assert preview.splitlines()[3].split()[0] == "Old"
    assert preview.endswith("Nothing was changed.\n")
    assert names(run) == before
    refused = run("sessions", "prune")
    assert (refused.returncode, "--yes" in refused.stderr) == (1, True)
    assert run("sessions", "prune", "--yes").stdout.endswith("1 conversation moved to the trash for 7 days.\n")
    assert names(run) == before - {"old"}
    assert "No ended conversation" in run("sessions", "prune", "--yes").stderr
    assert "for 1 day." in run("sessions", "prune", "--older-than", "1", "--source", "telegram", "--yes").stderr
    run("sessions", "unpin", "kept")
    assert run("sessions", "prune", "--source", "telegram", "--yes").stdout == ""
    assert run("sessions", "prune", "--older-than", "0.5", "--yes").stdout.endswith(
        "2 conversations moved to the trash for 7 days.\n"
    )
    assert names(run) == {"open"}


def test_an_export_from_before_holds_everything_that_a_prune_takes_away(run: Run, shelf: Path) -> None:
    before = names(run)
    exported = {json.loads(line)["id"] for line in run("sessions", "export", "-").stdout.splitlines()}
    run("sessions", "prune", "--older-than", "0.5", "--yes")
    taken = before - names(run)
    assert taken == {"old", "kept", "recent"}
    assert taken <= exported


def test_open_conversations_end_by_command_all_or_none(run: Run, shelf: Path) -> None:
    refused = run("sessions", "end", "open", "old")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Session old is not open (ended: user_exit)" in refused.stderr
    would = run("sessions", "end", "Open", "--dry-run")
    assert would.stdout == "1 conversation would be ended: open.\n"
    assert run("sessions", "end", "Open").stdout == "1 conversation ended: open.\n"
    with SessionDB() as db:
        ended = db.get_session("open")
        assert ended is not None
        assert ended["end_reason"] == "user_request"
        db.create_session("another", "cli")
    told = json.loads(run("sessions", "end", "another", "--json").stdout)
    assert told == {"sessions": ["another"], "dry_run": False}


def test_prune_takes_open_idle_conversations_on_request(run: Run, shelf: Path) -> None:
    run("sessions", "pin", "kept")
    assert "2 conversations" in run("sessions", "prune", "--include-idle", "--dry-run").stdout
    assert run("sessions", "prune", "--include-idle", "--yes").stdout.endswith(
        "2 conversations moved to the trash for 7 days.\n"
    )
    assert names(run) == {"kept", "recent"}
    assert "No unused conversation" in run("sessions", "prune", "--include-idle", "--yes").stderr
    with SessionDB() as db:
        db.create_session("idle", "cli", started_at=time.time() - 100 * DAY)
        assert (db.prune_sessions(90), db.prune_sessions(90, include_idle=True)) == (0, 1)


def test_prune_and_delete_count_conversations_alike(run: Run, shelf: Path) -> None:
    """One in three parts is one, also when a subagent of it is named beside it."""
    long_ago = time.time() - 200 * DAY
    with SessionDB() as db:
        for parent, name in ((None, "story"), ("story", "story-2"), ("story-2", "story-3")):
            db.create_session(name, "cli", parent_session_id=parent, started_at=long_ago)
            db.append_message(name, "user", "Once upon a time", timestamp=long_ago)
            db.end_session(name, "compression" if name != "story-3" else "user_exit")
        db.create_session("scout", "subagent", spawned_by="story-3", started_at=long_ago)
        db.end_session("scout", "done")
    pruning = json.loads(run("sessions", "prune", "--older-than", "150", "--dry-run", "--json").stdout)
    deleting = json.loads(run("sessions", "delete", "scout", "story", "--dry-run", "--json").stdout)
    assert pruning == deleting
    (one,) = pruning.pop("conversations")
    assert pruning == {"purged": False, "dry_run": True}
    assert (one["id"], one["preview"], one["message_count"]) == ("story-3", "Once upon a time", 3)
    assert sorted(one["parts"]) == ["scout", "story", "story-2", "story-3"]
    assert abs(one["last_active_at"] - long_ago) < 1
    deleted = run("sessions", "delete", "scout", "story", "--yes").stdout
    assert deleted.endswith("1 conversation moved to the trash for 7 days.\n")
    assert run("sessions", "trash", "restore", "story").returncode == 0
    pruned = run("sessions", "prune", "--older-than", "150", "--yes").stdout
    assert pruned.endswith("1 conversation moved to the trash for 7 days.\n")


def test_what_prune_did_is_data_for_programs_too(run: Run, shelf: Path) -> None:
    refused = run("sessions", "prune", "--json")
    assert (refused.returncode, refused.stdout, "--yes" in refused.stderr) == (1, "", True)
    done = run("sessions", "prune", "--json", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert {one["title"] for one in told["conversations"]} == {"Old", "Kept"}
    assert (told["purged"], told["dry_run"]) == (False, False)
    none = run("sessions", "prune", "--json", "--yes")
    assert (json.loads(none.stdout)["conversations"], none.stderr) == ([], "")


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("span", "found"),
    [("12h", {"old", "kept", "recent"}), ("5w", {"old", "kept"}), ("101d", set()), ("99", {"old", "kept"})],
)
def test_an_age_can_be_said_as_a_span(run: Run, shelf: Path, span: str, found: set[str]) -> None:
    told = json.loads(run("sessions", "prune", "--older-than", span, "--dry-run", "--json").stdout)
    assert {one["id"] for one in told["conversations"]} == found


@pytest.mark.on_file
@pytest.mark.parametrize("days", ["-1", "nan", "inf", "long ago", "5y", "6m"])
def test_an_age_that_is_none_is_refused(run: Run, shelf: Path, days: str) -> None:
    result = run("sessions", "prune", f"--older-than={days}", "--yes")
    assert (result.returncode, result.stdout) == (2, "")
    assert "--older-than" in result.stderr
