"""`segue status` and `segue doctor` about the gateway: is it up, does anybody wait, did everything arrive?"""

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lane_rows import ALICE, BOB, answered, cut_off, died, hold, live_run, opened, say

from segue.core.leases import Run as LeaseRun
from segue.core.leases import lane_lease, platform_lease
from segue.core.links import LinkRow, LinkState
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.ports.store import Transaction
from segue.sessions.watching import note_left_out
from segue.storage.store import SqlStore

Run = Callable[..., subprocess.CompletedProcess[str]]


def lasting_run(store: SqlStore) -> LeaseRun:
    """This process, as a gateway whose last sign of life counts for longer than any test takes."""
    run = live_run(store)
    store.write(OWNER, lambda tx: tx.leases.change_run(run.id, beat_at=time.time() + 3600))
    return run


def status(run: Run) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(run("status", "--json").stdout)
    return facts


def examined(run: Run) -> dict[str, list[dict[str, Any]]]:
    report = json.loads(run("doctor", "--json").stdout)
    return {check["check"]: check["findings"] for check in report["checks"] if check["findings"]}


def spoil_letters(store: SqlStore, state: str, at: float) -> None:
    """Everything that is to be sent ends in a state."""

    def work(tx: Transaction) -> None:
        for letter in tx.outbox.listed(("pending",)):
            tx.outbox.change(letter.id, state=state, reason="The chat is gone.", created_at=at, ended_at=at)

    store.write(OWNER, work)


def note_link(store: SqlStore, link: LinkRow) -> None:
    store.write(OWNER, lambda tx: tx.leases.put_link(link))


def test_status_says_that_no_gateway_runs(run: Run) -> None:
    assert "Gateway   not running\n" in run("status").stdout
    facts = status(run)
    assert facts["gateway"] == {"up": False, "runs": [], "platforms": [], "left_out": {}}
    assert facts["inbox"] == {
        "waiting": 0,
        "running": 0,
        "refused": 0,
        "dead": 0,
        "unattended_seconds": 0,
        "unattended": 0,
    }
    assert facts["outbox"] == {"pending": 0, "sending": 0, "unknown": 0, "dead": 0, "undelivered": 0}


def test_status_says_who_runs_what_is_connected_and_who_waits(home: Path, run: Run) -> None:
    with opened(home) as store:
        gateway = lasting_run(store)
        now = time.time()
        for name, account in (("telegram", ""), ("discord", "work"), ("matrix", ""), ("slack", ""), ("signal", "")):
            hold(store, platform_lease(name, account), gateway)
        for link in (
            LinkRow("telegram", "", gateway.id, LinkState.CONNECTED, now),
            LinkRow("discord", "work", gateway.id, LinkState.CONNECTED, now),
            LinkRow("matrix", "", gateway.id, LinkState.FAILED, now - 180, 1, "Nobody answers.", now + 3600),
            LinkRow("slack", "", gateway.id, LinkState.RESTING, now - 3600, 4, "The token is wrong.", now + 3600),
            LinkRow("gone", "", "a run that is over", LinkState.CONNECTED, now),
        ):
            note_link(store, link)
        answered(store, "hello")
        died(store, "why?", "carol")
        say(store, "attended", at=time.time() - 900)
        hold(store, lane_lease(ALICE), gateway)
        assert status(run)["inbox"]["unattended_seconds"] == 0
        say(store, "unattended", "bob", at=time.time() - 300)
    told = run("status").stdout
    assert re.search(rf"Gateway   process {gateway.pid} on {re.escape(gateway.host)}, since (just now|\d+m ago);", told)
    assert "connected: discord:work, telegram\n" in told
    assert re.search(r"matrix is not connected, since \d+m ago: Nobody answers; the next try is in \d+ s\n", told)
    assert "slack failed 4 times in a row and is left alone for a while, since 1h ago: The token is wrong;" in told
    assert "signal is being connected" in told
    assert "2 waiting, 1 dead, 2 to be sent" in told
    assert re.search(r"nobody is at work on 1 message, the oldest of \d+m ago", told)
    facts = status(run)
    assert (facts["gateway"]["up"], facts["gateway"]["runs"][0]["pid"]) == (True, gateway.pid)
    states = {one["platform"]: one["state"] for one in facts["gateway"]["platforms"]}
    assert states == {
        "discord": "connected",
        "matrix": "failed",
        "signal": "connecting",
        "slack": "resting",
        "telegram": "connected",
    }
    assert 300 <= facts["inbox"]["unattended_seconds"] < 900, "what is attended has waited for longer"


def test_status_says_which_of_several_gateways_is_connected_where(home: Path, run: Run) -> None:
    with opened(home) as store:
        first = lasting_run(store)
        second = first._replace(id="far", host="far", pid=7, beat_at=time.time() + 3600)
        store.write(OWNER, lambda tx: tx.leases.add_run(second))
        hold(store, platform_lease("telegram", ""), first)
        note_link(store, LinkRow("telegram", "", first.id, LinkState.CONNECTED, time.time()))
    told = run("status").stdout
    assert f"process {first.pid} on {first.host}, since just now; connected: telegram\n" in told
    assert "process 7 on far, since just now; connected: nothing (standby)\n" in told


def test_the_doctor_names_platforms_that_are_not_connected(home: Path, run: Run) -> None:
    with opened(home) as store:
        gateway, now = lasting_run(store), time.time()
        note_link(store, LinkRow("telegram", "", gateway.id, LinkState.CONNECTED, now))
        note_link(store, LinkRow("matrix", "", gateway.id, LinkState.RESTING, now - 60, 3, "Nobody answers.", now))
        store.write(OWNER, note_left_out, gateway.id, {"slack": "It is not installed."})
    assert [one["says"] for one in examined(run)["platforms"]] == [
        "matrix is not connected: Nobody answers.",
        "slack is left out: It is not installed.",
    ]


def test_a_gateway_that_was_killed_is_not_up(home: Path, run: Run) -> None:
    with opened(home) as store:
        gateway = lasting_run(store)
        hold(store, platform_lease("telegram", ""), gateway)
        store.write(OWNER, lambda tx: tx.leases.change_run(gateway.id, process_started="another life"))
    assert status(run)["gateway"] == {"up": False, "runs": [], "platforms": [], "left_out": {}}


def test_the_doctor_has_nothing_to_say_when_everything_was_answered(home: Path, run: Run) -> None:
    with opened(home) as store:
        answered(store, "hello")
        say(store, "a moment ago")
    assert {"gateway", "messages", "deliveries", "lanes"}.isdisjoint(examined(run))


def test_the_doctor_names_messages_that_nobody_answers(home: Path, run: Run) -> None:
    with opened(home) as store:
        died(store, "why?")
        say(store, "for long", "bob", at=time.time() - 300)
    found = examined(run)
    (waiting,) = found["gateway"]
    assert (waiting["severity"], waiting["says"]) == ("problem", f"1 message waits in {BOB}, and no gateway runs.")
    (dead,) = found["messages"]
    assert (dead["severity"], dead["says"]) == ("advice", "The answer to 1 message failed: The model is gone.")
    assert run("doctor").returncode == 1
    with opened(home) as store:
        lasting_run(store)
    assert "although a gateway runs" in examined(run)["gateway"][0]["says"]


def test_the_doctor_names_replies_that_did_not_arrive(home: Path, run: Run) -> None:
    with opened(home) as store:
        answered(store, "hello")
        spoil_letters(store, "unknown", time.time() - 3600)
        answered(store, "good morning", "bob")
        spoil_letters(store, "dead", time.time() - 3600)
    doubtful, dead = examined(run)["deliveries"]
    assert doubtful["says"] == f"Of 1 reply piece nobody knows whether they arrived, in {ALICE}."
    assert dead["says"] == "1 reply piece of the last 7 days could not be delivered: The chat is gone."
    assert BOB in dead["remedy"]
    assert "1 to be sent, 1 not deliverable" in run("status").stdout


def test_the_doctor_names_replies_that_nobody_will_send(home: Path, run: Run) -> None:
    with opened(home) as store:
        answered(store, "hello")
        spoil_letters(store, "pending", time.time() - 3600)
    (stranded,) = examined(run)["deliveries"]
    assert stranded["says"] == "1 reply piece wait for a platform that no setting here names: scripted."
    told = run("doctor")
    assert (told.returncode, told.stdout.splitlines()[-1]) == (0, "All is well; 2 notes above.")


def test_the_doctor_names_lanes_that_were_cut_off_long_ago(home: Path, run: Run) -> None:
    with opened(home) as store:
        cut_off(store, "long ago", at=time.time() - 7200)
        cut_off(store, "just now", "bob")
    (found,) = examined(run)["lanes"]
    assert found["severity"] == "advice"
    assert ALICE in found["says"]
    assert BOB not in found["says"]


def test_both_commands_agree_on_a_gateway_that_gives_no_sign_of_life(home: Path, run: Run) -> None:
    with opened(home) as store:
        gateway = lasting_run(store)
        assert f"process {gateway.pid}" in run("gateway", "status").stdout
        store.write(OWNER, lambda tx: tx.leases.change_run(gateway.id, host="elsewhere", beat_at=time.time() - 60))
    assert status(run)["gateway"]["up"] is False
    assert "No gateway is running" in run("gateway", "status").stdout
    assert json.loads(run("gateway", "status", "--json").stdout) == []
