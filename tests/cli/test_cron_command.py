"""`segue cron`: jobs are added, listed, run by hand and removed."""

import json
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from homes import Beside, configure

Run = Callable[..., subprocess.CompletedProcess[str]]
ADD = ("cron", "add", "tea", "30 7 * * 1-5", "Is there tea?", "--zone", "Europe/Berlin")


def refused(result: subprocess.CompletedProcess[str], code: int = 2) -> str:
    assert (result.returncode, result.stdout) == (code, "")
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


def test_a_job_is_added_listed_and_removed(home: Path, run: Run) -> None:
    assert run("cron", "list").stdout == "There are no jobs; `segue cron add` adds one.\n"
    added = run(*ADD, "--deliver", "telegram:123")
    assert added.stdout.startswith("tea runs next on ")
    assert added.stdout.endswith("07:30 Europe/Berlin, whenever a gateway runs.\n")
    listed = run("cron", "list").stdout
    for part in ("tea", "30 7 * * 1-5", "07:30 Europe/Berlin", "never", "telegram:123", "Is th"):
        assert part in listed
    assert run("cron", "remove", "tea").stdout == "tea runs no more.\n"
    assert "There is no job 'tea'" in refused(run("cron", "remove", "tea"), 1)


def test_programs_are_told_the_next_moment(home: Path, run: Run) -> None:
    told = json.loads(run(*ADD, "--json").stdout)
    assert (told["name"], told["zone"], told["enabled"], told["deliver"]) == ("tea", "Europe/Berlin", True, None)
    due = datetime.fromtimestamp(told["next_due_at"], ZoneInfo("Europe/Berlin"))
    assert (due.hour, due.minute, due.weekday() < 5) == (7, 30, True)
    assert json.loads(run("cron", "list", "--json").stdout)[0]["schedule"] == "30 7 * * 1-5"
    assert json.loads(run("cron", "remove", "tea", "--json").stdout) == {"name": "tea", "removed": True}


def test_a_job_is_put_down_to_run_now_and_whoever_asks_is_told_that_nobody_does_it(home: Path, run: Run) -> None:
    configure(home, "platforms: {telegram: {home_channel: '-100'}}\n")
    run(*ADD, "--deliver", "telegram")
    assert "at the moment there is none" in run("cron", "run", "tea").stdout
    assert json.loads(run("cron", "run", "tea", "--json").stdout)["gateway"] is False
    with Beside(home) as database:
        rows = database.ask("SELECT lane_key, text, state, want, is_person, route FROM inbox")
    assert {row[:5] for row in rows} == {("agent:main:cron:tea", "Is there tea?", "waiting", "queued", 0)}
    told = {"platform": "telegram", "chat_id": "-100", "chat_type": "dm", "user_id": "-100"}
    assert json.loads(rows[0][5]) == told
    assert len(rows) == 2
    assert "There is no job 'coffee'" in refused(run("cron", "run", "coffee"), 1)


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("tea", "every day", "x"), "'every day' is no schedule"),
        (("tea", "0 7 * * *", "x", "--zone", "Mars/Olympus"), "'Mars/Olympus' is no time zone here"),
        (("Tea time", "0 7 * * *", "x"), "'Tea time' cannot name a job"),
        (("tea", "0 7 * * *", " "), "needs a prompt"),
        (("tea", "0 7 * * *", "x", "--deliver", "webhook:a"), "no place to deliver to"),
        (("tea", "0 7 * * *", "x", "--agent", "nobody"), "There is no agent 'nobody'"),
    ],
)
def test_what_makes_no_job_is_refused_in_a_sentence(home: Path, run: Run, words: tuple[str, ...], says: str) -> None:
    given = words if "--zone" in words else (*words, "--zone", "UTC")
    assert says in refused(run("cron", "add", *given))
    assert json.loads(run("cron", "list", "--json").stdout) == []


def test_a_name_is_given_once(home: Path, run: Run) -> None:
    run(*ADD)
    assert "There is a job 'tea' already" in refused(run(*ADD))


@pytest.mark.on_file
def test_without_a_zone_the_one_of_the_settings_counts(home: Path, run: Run) -> None:
    configure(home, "session: {reset: {timezone: Asia/Tokyo}}\n")
    assert json.loads(run("cron", "add", "tea", "@daily", "x", "--json").stdout)["zone"] == "Asia/Tokyo"


@pytest.mark.on_file
def test_without_a_zone_in_the_settings_the_machines_own_counts(home: Path, run: Run) -> None:
    assert (
        json.loads(run("cron", "add", "tea", "@daily", "x", "--json", TZ="Asia/Seoul").stdout)["zone"] == "Asia/Seoul"
    )


@pytest.mark.on_file
def test_what_a_prompt_says_does_not_steer_the_terminal(home: Path, run: Run) -> None:
    run("cron", "add", "tea", "0 7 * * *", "a\x1b[31m\nb\x07\u202e", "--zone", "UTC")
    for words in (["list"], ["list", "--json"]):
        shown = run("cron", *words).stdout
        assert not set(shown) & set("\x1b\x07\u202e")


@pytest.mark.on_file
def test_jobs_are_completed(home: Path, run: Run) -> None:
    run(*ADD)
    done = run("segue", "cron", "remove", "t", _SEGUE_COMPLETE="fish_complete")
    assert done.stdout.split("\t")[:2] == ["plain", "tea"]
