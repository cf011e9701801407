"""`segue pairing`: strangers are let in by their code, and sent away again."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from homes import Beside, configure, database_of

from segue import app
from segue.core.pairing import CHANCE
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sources import SessionSource
from segue.sessions.pairing import Asked, ask_to_pair

Run = Callable[..., subprocess.CompletedProcess[str]]


def ask(home: Path, peer: str = "7", name: str = "Alice", platform: str = "telegram", ago: float = 0.0) -> str:
    """What a gateway does when a stranger writes."""
    source = SessionSource(platform=platform, chat_id=peer, user_id=peer, user_name=name)
    with app.open_store(database_of(home)) as store:
        asked = store.write(OWNER_AT_CONSOLE, ask_to_pair, source, os.urandom(CHANCE), time.time() - ago)
    assert isinstance(asked, Asked)
    return asked.code


def refused(result: subprocess.CompletedProcess[str], code: int = 2) -> str:
    assert (result.returncode, result.stdout) == (code, "")
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


def test_a_stranger_is_listed_approved_and_revoked(home: Path, run: Run) -> None:
    assert "Nobody was let in" in run("pairing", "list").stdout
    code = ask(home)
    waiting = run("pairing", "list").stdout
    assert "telegram:7" in waiting
    assert "Alice" in waiting
    assert code not in waiting
    assert run("pairing", "approve", code.lower()).stdout == "telegram:7 (Alice) is now let in.\n"
    assert json.loads(run("pairing", "list", "--json").stdout)["people"][0]["role"] == "person"
    assert run("pairing", "revoke", "telegram:7").stdout == "telegram:7 is let in no longer.\n"
    assert "Nobody is let in as 'telegram:7'" in refused(run("pairing", "revoke", "telegram:7"), 1)


def test_an_owner_is_made_only_when_it_is_said(home: Path, run: Run) -> None:
    assert run("pairing", "approve", ask(home), "--owner").stdout == "telegram:7 (Alice) is now an owner.\n"
    with Beside(home) as database:
        assert database.ask("SELECT platform, peer, role, paired_by FROM people") == [
            ("telegram", "7", "owner", "console")
        ]


@pytest.mark.on_file
@pytest.mark.parametrize("code", ["AAAAAAAA", "nonsense"])
def test_a_wrong_code_is_refused_in_a_sentence_however_often(home: Path, run: Run, code: str) -> None:
    right = ask(home)
    for _ in range(7):
        assert "Nobody waits with this code" in refused(run("pairing", "approve", code))
    assert run("pairing", "approve", right).returncode == 0, "the owner is never locked out"
    assert "used" in refused(run("pairing", "approve", right))


def test_a_code_that_is_an_hour_old_is_refused(home: Path, run: Run) -> None:
    code = ask(home, ago=3601)
    assert json.loads(run("pairing", "list", "--json").stdout) == {"people": [], "waiting": []}
    assert "older than an hour" in refused(run("pairing", "approve", code))


def test_programs_are_told_everything_but_the_fingerprints(home: Path, run: Run) -> None:
    code = ask(home, "@a:b.org", "Bob", "matrix")
    ask(home)
    told = json.loads(run("pairing", "approve", code, "--json").stdout)
    assert (told["platform"], told["peer"], told["name"], told["role"]) == ("matrix", "@a:b.org", "Bob", "person")
    listed = json.loads(run("pairing", "list", "--json").stdout)
    assert listed["people"] == [told]
    assert sorted(listed["waiting"][0]) == ["chat", "created_at", "expires_at", "name", "peer", "platform"]
    gone = json.loads(run("pairing", "revoke", "matrix:@a:b.org", "--json").stdout)
    assert gone == {"person": "matrix:@a:b.org", "revoked": True, "still_by": None}


@pytest.mark.on_file
def test_whom_the_settings_let_in_is_not_sent_away_by_a_command(home: Path, run: Run) -> None:
    configure(home, "owners: ['telegram:1']\naccess: {telegram: {allow: ['7']}}\n")
    assert "is let in by owners" in refused(run("pairing", "revoke", "telegram:1"))
    assert "is let in by access.telegram.allow" in refused(run("pairing", "revoke", "telegram:7"))
    run("pairing", "approve", ask(home))
    assert "still lets them in" in run("pairing", "revoke", "telegram:7").stdout


@pytest.mark.on_file
def test_what_strangers_call_themselves_does_not_steer_the_terminal(home: Path, run: Run) -> None:
    code = ask(home, "7\x1b[31m\n8", "Al\x1b]0;owned\x07ice\u202e")
    for words in (["list"], ["list", "--json"], ["approve", code], ["list"]):
        shown = run("pairing", *words)
        assert shown.returncode == 0
        assert not set(shown.stdout + shown.stderr) & set("\x1b\x07\u202e")


@pytest.mark.on_file
def test_who_was_let_in_is_completed(home: Path, run: Run) -> None:
    run("pairing", "approve", ask(home))
    done = run("segue", "pairing", "revoke", "tele", _SEGUE_COMPLETE="fish_complete")
    assert done.stdout.split("\t")[:2] == ["plain", "telegram:7"]
