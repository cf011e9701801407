"""`segue outbox`: what was not delivered, sent again."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lane_house import Building
from lane_rows import answered, opened

from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.ports.store import Transaction
from segue.testing import Stage

Run = Callable[..., subprocess.CompletedProcess[str]]


def refused(result: subprocess.CompletedProcess[str], code: int = 1) -> str:
    assert result.returncode == code
    return result.stderr


def listed(run: Run, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("outbox", "list", "--json", *arguments).stdout)
    return found


def states(run: Run, *arguments: str) -> list[str]:
    return [one["state"] for one in listed(run, *arguments)]


def furnish(home: Path, **ends: tuple[str, int]) -> list[int]:
    """A reply to each of these people, which came to an end after some attempts; their numbers."""

    def work(tx: Transaction) -> list[int]:
        for letter in tx.outbox.listed(("pending",)):
            state, attempts = ends[letter.chat]
            reason = "The chat is gone." if state == "dead" else None
            tx.outbox.change(letter.id, state=state, attempts=attempts, reason=reason, not_before=9e9, ended_at=1.0)
        return [letter.id for letter in tx.outbox.listed(("pending", "delivered", "dead", "suppressed"))]

    with opened(home) as store:
        for person in ends:
            answered(store, f"Is {person} there?", person)
        return store.write(OWNER, work)


def test_an_empty_outbox_says_so(run: Run) -> None:
    result = run("outbox", "list")
    assert (result.returncode, result.stdout) == (0, "")
    assert "Everything was delivered." in result.stderr
    assert listed(run) == []


def test_true_and_false_are_words_for_programs(home: Path, run: Run) -> None:
    furnish(home, alice=("dead", 1))
    (row,) = listed(run)
    assert {name: row[name] for name in row if name.startswith("is_")} == {"is_repeat": False, "is_shown": False}
    assert {type(row[name]) for name in row if name.startswith("is_")} == {bool}


def test_what_was_not_delivered_is_listed(home: Path, run: Run) -> None:
    furnish(home, alice=("delivered", 1), bob=("dead", 1), carol=("pending", 0))
    assert states(run) == ["dead", "pending"]
    assert states(run, "--all") == ["delivered", "dead", "pending"]
    assert states(run, "--state", "delivered") == ["delivered"]
    told = run("outbox", "list", COLUMNS="160").stdout
    assert "The chat is gone." in told
    assert "Yes." in told


def test_a_dead_piece_is_sent_again_and_one_that_may_have_arrived_as_such(home: Path, run: Run) -> None:
    first, second, _ = furnish(home, alice=("dead", 1), bob=("dead", 8), carol=("delivered", 1))
    done = run("outbox", "retry", str(first), str(second))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "2 pieces are sent again.")
    found = [(one["state"], one["attempts"], one["not_before"], one["reason"]) for one in listed(run)]
    assert found == [("pending", 0, 0.0, None), ("unknown", 0, 0.0, None)]
    stage = Stage(has_key=False)
    with opened(home) as store:
        building = Building(store, stage)
        building.run(building.quiet)
    assert stage.posted_to("alice") == ["Yes."]
    (marked,) = stage.posted_to("bob")
    assert marked != "Yes."
    assert marked.endswith("Yes.")
    assert stage.posted_to("carol") == []


def test_everything_dead_is_sent_again_when_somebody_agrees(home: Path, run: Run) -> None:
    numbers = furnish(home, alice=("dead", 1), bob=("dead", 1))
    assert run("outbox", "retry", "--all", "--dry-run").stdout.endswith("Nothing was changed.\n")
    assert "pass --yes" in refused(run("outbox", "retry", "--all"))
    assert states(run) == ["dead", "dead"]
    told = json.loads(run("outbox", "retry", "--all", "--yes", "--json").stdout)
    assert [(one["id"], one["state"]) for one in told["pieces"]] == [(number, "pending") for number in numbers]
    assert json.loads(run("outbox", "retry", "--all", "--yes", "--json").stdout)["pieces"] == []


def test_what_is_not_dead_is_not_sent_again(home: Path, run: Run) -> None:
    delivered, held, dead = furnish(home, alice=("delivered", 1), bob=("suppressed", 0), carol=("dead", 1))
    assert "was delivered" in refused(run("outbox", "retry", str(dead), str(delivered)))
    assert "held back by the send policy" in refused(run("outbox", "retry", str(held)))
    assert "no piece 999" in refused(run("outbox", "retry", "999"))
    assert states(run) == ["dead"]
    for words in (["retry"], ["retry", "1", "--all"]):
        assert "Give the ids of pieces, or --all" in refused(run("outbox", *words), 2)
