"""`segue batch` as people use it: real processes, killed, interrupted, and beside a gateway."""

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from gateway_process import LAUNCHER, SUPPORT, House, kill
from homes import Beside, database_of
from postgres_server import Emptied
from terminal import Terminal
from waiting import DEADLINE, wait_until
from zygote import Zygote

FORGETFUL = SUPPORT / "forgetful_batch_launcher.py"
LAST = 20
HELD = "wait until go{}"
"""A prompt that is answered when its file is there."""


class Home(House):
    """One in which what comes to its end by itself is asked for without starting Python each time."""

    zygote: Zygote

    def ask(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self.zygote.run(arguments, None, self._environment, program=LAUNCHER, cwd=self.folder)


@pytest.fixture
def house(request: pytest.FixtureRequest, tmp_path: Path, database: str, zygote: Zygote) -> Iterator[House]:
    kept: dict[str, Any] = {}
    if database == "postgres":
        emptied: Emptied = request.getfixturevalue("emptied")
        kept = {"database": emptied.empty()}
    house = Home(tmp_path, **kept)
    house.zygote = zygote
    yield house
    house.close()


def prompts(house: House, number: int = LAST, prompt: str = HELD) -> Path:
    file = house.folder / "questions.jsonl"
    lines = [json.dumps({"id": f"q{at}", "prompt": prompt.format(at)}) for at in range(number)]
    file.write_text("\n".join(lines) + "\n")
    return file


def rows(house: House, sql: str) -> list[tuple[Any, ...]]:
    with Beside(house.home) as beside:
        return beside.ask(sql)


def answered(house: House, state: str = "done") -> int:
    """How many lines have an answer so far; none while there is no database."""
    place = database_of(house.home)
    if isinstance(place, Path) and not place.exists():
        return 0
    try:
        return int(rows(house, f"SELECT count(*) FROM inbox WHERE state = '{state}'")[0][0])
    except (sqlite3.OperationalError, psycopg.errors.UndefinedTable):
        return 0  # the tables are about to be made


def running(house: House) -> int:
    """How many lines are being answered."""
    return answered(house, "running")


def let_go(house: House, *numbers: int) -> None:
    """From now on these prompts are answered."""
    for number in numbers:
        (house.folder / f"go{number}").touch()


def wait_for(house: House, process: "subprocess.Popen[str]", done: int) -> None:
    """Wait until so many lines have an answer, and others are being answered."""

    def is_so() -> bool:
        assert process.poll() is None, house.log.read_text()
        return answered(house) >= done and running(house) > 0

    wait_until(is_so, f"{done} answers")


def wait_until_taken(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    """Wait until a process has received a signal: one that is sent before that would be the same one."""

    def is_taken() -> bool:
        status = Path(f"/proc/{process.pid}/status").read_text()
        pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
        return not any(mask >> (number - 1) & 1 for mask in pending)

    wait_until(is_taken)


def results(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def turns_of(house: House) -> dict[str, int]:
    """How many turns have answered each prompt."""
    sql = """
        SELECT m.content, count(*) FROM turns t JOIN messages m ON m.session_id = t.session_id AND m.role = 'user'
        WHERE t.kind = 'answer' AND t.state = 'done' GROUP BY m.content"""
    return dict(rows(house, sql))


def test_a_file_is_answered_line_by_line_and_the_results_are_in_its_order(house: House) -> None:
    file, out = prompts(house, prompt="question {}"), house.folder / "results.jsonl"
    done = house.ask("batch", "run", str(file), "--out", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"The batch questions is done: 20 prompts answered. The results are in {out}.\n"
    assert out.stat().st_mode & 0o777 == 0o600
    found = results(out)
    assert [one["id"] for one in found] == [f"q{at}" for at in range(LAST)]
    assert {tuple(one) for one in found} == {("id", "state", "answer", "session_id", "error")}
    assert [one["answer"] for one in found] == [f"You said: question {at}" for at in range(LAST)]
    assert turns_of(house) == {f"question {at}": 1 for at in range(LAST)}
    listed = json.loads(house.ask("sessions", "list", "--source", "batch", "--kind", "automation", "--json").stdout)
    assert {one["id"] for one in listed} == {one["session_id"] for one in found}
    assert json.loads(house.ask("batch", "show", "questions", "--json").stdout) == found
    (batch,) = json.loads(house.ask("batch", "list", "--json").stdout)
    assert (batch["name"], batch["asked"], batch["done"], batch["failed"], batch["left"]) == ("questions", 20, 20, 0, 0)
    assert "questions  20     20        0       0" in house.ask("batch", "list").stdout


def test_run_again_it_answers_what_is_missing_and_prints_all(house: House) -> None:
    file = prompts(house, 2, "question {}")
    house.ask("batch", "run", str(file))
    prompts(house, 3, "question {}")
    printed = house.ask("batch", "run", str(file), "--out", "-")
    assert [json.loads(line)["id"] for line in printed.stdout.splitlines()] == ["q0", "q1", "q2"]
    assert "is done: 3 prompts answered" in printed.stderr
    assert turns_of(house) == {f"question {at}": 1 for at in range(3)}
    told = json.loads(house.ask("batch", "run", str(file), "--json").stdout)
    assert told == {
        "name": "questions", "lines": 3, "done": 3, "failed": 0, "left": 0, "interrupted": False, "out": None,
    }  # fmt: skip


@pytest.mark.torture
def test_killed_again_and_again_each_prompt_is_answered_by_one_turn(house: House) -> None:
    file, out = prompts(house), house.folder / "results.jsonl"
    for enough in (2, 5, 9, 13):
        let_go(house, *range(enough))
        process = house.begin("batch", "run", str(file), "--out", str(out))
        wait_for(house, process, enough)
        kill(process)
        assert not out.exists()
    assert answered(house) == 13
    let_go(house, *range(LAST))
    done = house.ask("batch", "run", str(file), "--out", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    assert turns_of(house) == {HELD.format(at): 1 for at in range(LAST)}
    assert rows(house, "SELECT count(*), count(DISTINCT session_id) FROM inbox") == [(LAST, LAST)]
    assert [one["answer"] for one in results(out)] == [f"You said: {HELD.format(at)}" for at in range(LAST)]


@pytest.mark.torture
@pytest.mark.on_file
def test_without_the_id_in_its_name_a_prompt_would_be_answered_again(house: House) -> None:
    file = prompts(house)
    let_go(house, 0, 1, 2)
    process = house.begin("batch", "run", str(file), launcher=FORGETFUL)
    wait_for(house, process, 3)
    kill(process)
    let_go(house, *range(LAST))
    again = house.begin("batch", "run", str(file), launcher=FORGETFUL)
    assert again.wait(DEADLINE) == 1  # it does not find its own lines again, either
    assert max(turns_of(house).values()) > 1


def test_interrupted_it_brings_to_an_end_what_it_began_and_writes_what_is_there(house: House) -> None:
    file, out = prompts(house), house.folder / "results.jsonl"
    let_go(house, 0, 1, 2)
    process = house.begin("batch", "run", str(file), "--out", str(out), "--at-once", "3")
    wait_for(house, process, 3)
    process.send_signal(signal.SIGINT)
    wait_until_taken(process, signal.SIGINT)
    let_go(house, *range(LAST))
    assert process.wait(DEADLINE) == 130
    told = house.log.read_text()
    assert "The batch questions was interrupted: " in told
    assert "Run the same command again" in told
    there = [one["id"] for one in results(out)]
    assert 3 < len(there) < LAST
    assert there == [f"q{at}" for at in range(len(there))]
    assert running(house) == 0
    done = house.ask("batch", "run", str(file), "--out", str(out))
    assert done.returncode == 0
    assert len(results(out)) == LAST
    assert turns_of(house) == {HELD.format(at): 1 for at in range(LAST)}


def test_interrupted_twice_it_waits_for_nothing_and_goes_on_with_it_later(house: House) -> None:
    file, out = prompts(house, 4), house.folder / "results.jsonl"
    process = house.begin("batch", "run", str(file), "--out", str(out))
    wait_until(lambda: running(house) == 4, "all prompts at once")
    process.send_signal(signal.SIGINT)
    wait_until_taken(process, signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE) == 130, "although nothing was answered"
    assert (results(out), running(house)) == ([], 4)
    let_go(house, *range(4))
    assert house.ask("batch", "run", str(file), "--out", str(out)).returncode == 0
    assert turns_of(house) == {HELD.format(at): 1 for at in range(4)}
    assert rows(house, "SELECT DISTINCT attempt FROM turns") == [(2,)]


@pytest.mark.on_file
def test_somebody_at_a_terminal_sees_a_bar(house: House) -> None:
    prompts(house, 3)
    let_go(house, 0)
    launcher = f"{sys.executable} {SUPPORT / 'gateway_launcher.py'}"
    terminal = Terminal(house.folder, *house.variables)
    try:
        terminal.send(f"{launcher} batch run questions.jsonl --at-once 1")
        terminal.until("questions", "━", "1/3")
        let_go(house, 1, 2)
        terminal.until("3/3", "The batch questions is done: 3 prompts answered.")
    finally:
        terminal.close()


def test_a_gateway_that_lives_answers_and_when_it_is_killed_the_command_does(house: House) -> None:
    gateway = house.begin()
    wait_until(lambda: json.loads(house.ask("gateway", "status", "--json").stdout), "a gateway that lives")
    file = prompts(house)
    let_go(house, *range(8))
    process = house.begin("batch", "run", str(file), "--at-once", "8")
    wait_for(house, process, 8)
    kill(gateway)
    let_go(house, *range(LAST))
    assert process.wait(DEADLINE) == 0, house.log.read_text()
    assert turns_of(house) == {HELD.format(at): 1 for at in range(LAST)}
    ran = rows(house, "SELECT DISTINCT r.program, t.state FROM turns t JOIN runs r ON r.id = t.run_id")
    assert set(ran) == {("segue gateway", "done"), ("segue batch", "done")}
    assert rows(house, "SELECT count(*) FROM outbox") == [(0,)]


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("body", "words", "says"),
    [
        ('{"prompt": "a"}\n{"promt": "b"}\n', (), "Line 2 has the unknown key 'promt'"),
        ('{"prompt": "a", "agent": "nobody"}\n', (), "Line 1 names the agent 'nobody'"),
        ('{"prompt": "a"}\n', ("--agent", "nobody"), "There is no agent 'nobody' in the settings"),
        ('{"prompt": "a"}\n', ("--name", "A b"), "'A b' cannot name a batch"),
        ('{"prompt": "a"}\n', ("--out", "questions.jsonl"), "questions.jsonl holds the prompts"),
        ('{"prompt": "a"}\n', ("--out", "nowhere/results"), "nowhere/results cannot be written"),
        (None, (), "questions.jsonl cannot be read: No such file"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence_before_anything_is_asked(
    house: House, body: str | None, words: tuple[str, ...], says: str
) -> None:
    if body is not None:
        (house.folder / "questions.jsonl").write_text(body)
    refused = house.ask("batch", "run", "questions.jsonl", *words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"segue: {says}")
    assert len(refused.stderr.splitlines()) == 1
    assert answered(house) == 0


@pytest.mark.on_file
def test_a_prompt_that_changed_under_a_known_id_is_told(house: House) -> None:
    file = prompts(house, 2, "question {}")
    house.ask("batch", "run", str(file))
    prompts(house, 3, "another question {}")
    refused = house.ask("batch", "run", str(file))
    assert refused.returncode == 2
    assert "Line 1 ('q0') has another prompt than it had when the batch 'questions' was run before" in refused.stderr
    assert turns_of(house) == {"question 0": 1, "question 1": 1}
    assert house.ask("batch", "run", str(file), "--name", "others").returncode == 0
    assert len(turns_of(house)) == 5
    assert "There is no batch 'drinks'" in house.ask("batch", "show", "drinks").stderr
