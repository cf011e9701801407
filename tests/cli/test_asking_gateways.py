"""A gateway is asked from a terminal, on its own machine or from another one."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway_there import There, gateway_at
from waiting import wait_until

from segue import SessionDB
from segue.core.links import LinkState
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.sessions.searching import INCOMPLETE
from segue.storage.engines import engine_at
from segue.storage.store import SqlStore

pytestmark = pytest.mark.on_file

Run = Callable[..., "subprocess.CompletedProcess[str]"]
MOVING = {"beat_at", "unattended_seconds", "home", "config", "database", "database_bytes", "version", "score"}


def seed(home: Path) -> None:
    """Conversations of an hour and a half ago, which are called `1h ago` for as long as a test may take."""
    db, at = SessionDB(home / "state.db"), time.time() - 5_400
    for number in range(4):
        name = f"2026010{number + 1}_120000_0000000{number}"
        db.create_session(name, "telegram" if number % 2 else "cli", started_at=at)
        db.append_message(name, "user", f"a hotel in Lisbon, number {number}", timestamp=at + number)
        call = {"id": "c1", "function": {"name": "web", "arguments": "{}"}}
        db.append_message(name, "assistant", "Let me look.", tool_calls=[call], timestamp=at + number)
        db.append_message(name, "tool", "three hotels", tool_call_id="c1", tool_name="web", timestamp=at + number)
        db.append_message(name, "assistant", f"There are three, {number}.", timestamp=at + number)
        db.update_token_counts(name, input_tokens=100, output_tokens=20)
    db.set_session_title("20260101_120000_00000000", "Lisbon")
    db.close()


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    home = tmp_path_factory.mktemp("there") / "home"
    home.mkdir(mode=0o700)
    seed(home)
    with gateway_at(home) as gateway:
        wait_until(lambda: are_connected(home), "all platforms connected, and noted to be so")
        yield gateway


def are_connected(home: Path) -> bool:
    with SqlStore(engine_at(home / "state.db", read_only=True)) as store:
        links = store.read(OWNER, lambda tx: tx.leases.links())
    return {link.platform for link in links if link.state == LinkState.CONNECTED} == {"cron", "batch", "api_server"}


def still(value: Any) -> Any:
    """What does not change between two looks."""
    if isinstance(value, dict):
        return {name: still(one) for name, one in value.items() if name not in MOVING}
    return [still(one) for one in value] if isinstance(value, list) else value


def asked(there: There, run: Run, *look: str) -> "subprocess.CompletedProcess[str]":
    """What the other machine says, for once that it had the time to look at everything."""
    while INCOMPLETE in (told := run(*look, "--url", there.url, SEGUE_TOKEN=there.token)).stderr:
        """It was too busy."""
    return told


LOOKS = [
    ("sessions", "list"),
    ("sessions", "list", "--all"),
    ("sessions", "list", "--source", "telegram", "--limit", "1"),
    ("sessions", "show", "Lisbon"),
    ("sessions", "search", "lisbon"),
    ("sessions", "search", "hotel", "--sort", "new", "--role", "user"),
    ("sessions", "stats"),
    ("status",),
    ("insights",),
    ("lanes", "list"),
]


@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_another_machine_tells_what_it_says_of_itself(there: There, run: Run, look: tuple[str, ...]) -> None:
    itself = run(*look, "--json", SEGUE_HOME=str(there.home))
    told = asked(there, run, *look, "--json")
    assert told.returncode == 0, told.stderr
    assert still(json.loads(told.stdout)) == still(json.loads(itself.stdout))
    assert json.loads(told.stdout) or look[0] == "lanes"


@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_people_are_shown_the_same(there: There, run: Run, look: tuple[str, ...]) -> None:
    itself = run(*look, SEGUE_HOME=str(there.home))
    told = asked(there, run, *look)
    assert told.returncode == 0, told.stderr
    if look[0] != "status":
        assert told.stdout == itself.stdout
    else:
        assert "4 sessions, 16 messages" in told.stdout
    assert "Traceback" not in told.stderr


def test_conversations_of_another_machine_are_named_marked_and_removed(there: There, run: Run) -> None:
    def elsewhere(*arguments: str) -> str:
        done = run(*arguments, "--url", there.url, SEGUE_TOKEN=there.token)
        assert done.returncode == 0, done.stderr
        return done.stdout

    one = "20260103_120000_00000002"
    assert elsewhere("sessions", "rename", one, "Porto", "by", "train") == f"{one} is now called 'Porto by train'.\n"
    assert elsewhere("sessions", "tag", one, "travel") == f"{one} has the tags travel.\n"
    assert elsewhere("sessions", "untag", one, "travel") == f"{one} has no tags.\n"
    assert elsewhere("sessions", "archive", one) == f"1 conversation archived: {one}.\n"
    assert elsewhere("sessions", "unarchive", one) == f"1 conversation back in the lists: {one}.\n"
    assert elsewhere("sessions", "pin", one) == f"1 conversation pinned: {one}.\n"
    assert elsewhere("sessions", "unpin", one) == f"1 conversation no longer pinned: {one}.\n"
    assert "Nothing was changed." in elsewhere("sessions", "delete", one, "--dry-run")
    assert "moved to the trash" in elsewhere("sessions", "delete", one, "--yes")
    assert one not in elsewhere("sessions", "list", "--all", "--json")
    back = run("sessions", "trash", "restore", one, SEGUE_HOME=str(there.home))
    assert back.returncode == 0


def test_conversations_are_fetched_whole_from_another_machine(there: There, run: Run, tmp_path: Path) -> None:
    fetched, own = tmp_path / "there.jsonl", tmp_path / "own.jsonl"
    done = run("sessions", "export", str(fetched), "--url", there.url, SEGUE_TOKEN=there.token)
    assert done.returncode == 0, done.stderr
    run("sessions", "export", str(own), SEGUE_HOME=str(there.home))

    def by_id(file: Path) -> dict[str, Any]:
        return {data["id"]: data for data in map(json.loads, file.read_text().splitlines())}

    assert by_id(fetched) == by_id(own)
    assert fetched.stat().st_mode & 0o777 == 0o600
    taken = run("sessions", "import", str(fetched))
    assert taken.returncode == 0, taken.stderr


@pytest.mark.parametrize(
    "look",
    [("show", "Tale", "--json"), ("show", "tale-1", "--json"), ("export", "-", "--session-id", "Tale")],
    ids=" ".join,
)
def test_every_part_of_a_conversation_is_fetched(there: There, run: Run, look: tuple[str, ...]) -> None:
    parts: list[dict[str, Any]] = [
        {"id": "tale-1", "title": "Tale", "messages": [{"role": "user", "content": "Once", "timestamp": 1.0}]},
        {"id": "tale-2", "title": "Tale #2", "parent_session_id": "tale-1"},
    ]
    with SessionDB(there.home / "state.db") as db:
        db.import_sessions([{"source": "cli", "started_at": 1.0} | part for part in parts])
    told = asked(there, run, "sessions", *look)
    itself = run("sessions", *look, SEGUE_HOME=str(there.home))
    with SessionDB(there.home / "state.db") as db:
        for part in parts:
            db.delete_session(part["id"])
    assert (told.stdout, told.returncode) == (itself.stdout, 0)
    assert told.stdout.count('"id":"tale-') == len(parts)


def test_the_gateway_of_this_home_is_asked_without_a_token_of_yours(there: There, run: Run) -> None:
    asked = run("gateway", "call", "sessions.list", "--params", '{"limit": 2}', SEGUE_HOME=str(there.home))
    assert asked.returncode == 0, asked.stderr
    assert len(json.loads(asked.stdout)["sessions"]) == 2
    names = json.loads(run("tokens", "list", "--json", SEGUE_HOME=str(there.home)).stdout)
    assert [one["name"] for one in names] == ["laptop"]


def test_a_conversation_with_the_gateway_goes_on_from_call_to_call(there: There, run: Run) -> None:
    for number in range(2):
        params = json.dumps({"conversation": "desk", "text": f"hello {number}", "wait_seconds": 30})
        asked = run("gateway", "call", "chat.send", "--params", params, SEGUE_HOME=str(there.home))
        assert json.loads(asked.stdout)["lane_key"] == "agent:main:api:console:desk"
    shown = run("lanes", "show", "desk", "--url", there.url, SEGUE_TOKEN=there.token)
    assert "0 waiting, 0 running" in shown.stdout
    again = run("lanes", "reset", "desk", "--yes", "--url", there.url, SEGUE_TOKEN=there.token)
    assert "goes on in" in again.stdout
    gone = run("lanes", "delete", "desk", "--yes", "--url", there.url, SEGUE_TOKEN=there.token)
    assert "is forgotten" in gone.stdout
    session = json.loads(run("sessions", "list", "--json", SEGUE_HOME=str(there.home)).stdout)[0]["id"]
    run("sessions", "delete", session, "--purge", "--yes", SEGUE_HOME=str(there.home))


@pytest.mark.parametrize(
    ("arguments", "environment", "told", "code"),
    [
        (("--url", "URL"), {}, "wants a token", 2),
        (("--url", "URL"), {"SEGUE_TOKEN": "wrong"}, "The token is not accepted at", 1),
        (("--url", "URL", "--token-file", "/nowhere"), {}, "cannot be read", 2),
        (("--token-file", "/nowhere"), {}, "goes with --url", 2),
        (("--url", "ftp://x"), {"SEGUE_TOKEN": "x"}, "takes the whole address of a gateway", 2),
        (("--url", "http://user:secret@x"), {"SEGUE_TOKEN": "x"}, "takes the whole address of a gateway", 2),
        (("--url", "http://127.0.0.1:9"), {"SEGUE_TOKEN": "x"}, "No gateway answers at 127.0.0.1:9", 1),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_sentence(
    there: There, run: Run, arguments: tuple[str, ...], environment: dict[str, str], told: str, code: int
) -> None:
    said = [there.url if one == "URL" else one for one in arguments]
    asked = run("sessions", "list", *said, **environment)
    assert asked.returncode == code
    assert told in asked.stderr
    assert asked.stderr.count("\n") == 1
    assert "secret" not in asked.stderr


def test_the_token_may_come_from_a_file(there: There, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{there.token}\n")
    asked = run("sessions", "list", "--json", "--url", there.url, "--token-file", str(file))
    assert len(json.loads(asked.stdout)) >= 3


def test_no_command_takes_a_token_as_an_argument(run: Run) -> None:
    for command in (("sessions", "list"), ("gateway", "call", "status"), ("lanes", "list"), ("status",), ("insights",)):
        asked = run(*command, "--token", "x")
        assert asked.returncode == 2
        assert "No such option" in asked.stderr


def test_without_a_gateway_a_call_says_how_to_start_one(run: Run) -> None:
    asked = run("gateway", "call", "status")
    assert asked.returncode == 1
    assert "segue gateway run" in asked.stderr
