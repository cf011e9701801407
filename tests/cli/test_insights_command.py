"""`segue insights`: every number it prints is one that SQL gives too."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from homes import NewHome, database_of
from postgres_server import psql
from psycopg.conninfo import make_conninfo

from segue import SessionDB

Run = Callable[..., subprocess.CompletedProcess[str]]
DAY = 86400
ZONE = {"TZ": "Asia/Kolkata"}
SUMMED = (
    *("message_count", "tool_call_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"),
    *("reasoning_tokens", "api_call_count"),
)
pytestmark = pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 program is not here")


@pytest.fixture(scope="module")
def office(new_home: NewHome) -> Path:
    """A home with forty sessions of four platforms over sixty days."""
    home = new_home("insights")
    now = time.time()
    with SessionDB(database_of(home)) as db:
        for number in range(40):
            at = now - number * 1.5 * DAY - 3600
            source = ["cli", "telegram", "slack", "cron"][number % 4]
            model = [None, "example-large", "example-small"][number % 3]
            name = db.create_session(f"session-{number}", source, started_at=at, model=model)
            for turn in range(number % 7 + 1):
                db.append_message(name, "user", "Hello \x1b[31m", timestamp=at + turn * 1000)
                names = ["terminal", "weather"][: turn % 3]
                calls = [{"id": "c", "function": {"name": one, "arguments": "{}"}} for one in names]
                db.append_message(name, "assistant", "Hi", tool_calls=calls or None, timestamp=at + turn * 1000 + 5)
            costs: dict[str, Any] = [
                {},
                {"estimated_cost_usd": 0.25},
                {"estimated_cost_usd": 0.5, "actual_cost_usd": 0.75},
            ][number % 3]
            db.update_token_counts(name, input_tokens=number, output_tokens=2 * number, cache_read_tokens=3, **costs)
        db.set_session_archived("session-1", True)
    return home


def ask(home: Path, sql: str) -> list[list[str]]:
    """What the database's own program answers."""
    place = database_of(home)
    if isinstance(place, str):
        answer = psql(make_conninfo(place, user="postgres", options="-c search_path=segue"), sql)
        return [line.split("|") for line in answer.split("\n")]
    command = ["sqlite3", "-readonly", "-separator", "|", str(place), sql]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**ZONE}, timeout=60)
    return [line.split("|") for line in done.stdout.splitlines()]


def number(home: Path, sql: str) -> float:
    return float(ask(home, sql)[0][0] or 0)


def seen(run: Run, home: Path, *arguments: str) -> dict[str, Any]:
    result = run("insights", "--json", *arguments, SEGUE_HOME=str(home), **ZONE)
    assert (result.returncode, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("days", [7, 30, 365])
@pytest.mark.parametrize("source", ["", "telegram"])
def test_every_sum_is_what_sql_says(run: Run, office: Path, days: int, source: str) -> None:
    found = seen(run, office, "--days", str(days), *(["--source", source] if source else []))
    since = f"{time.time() - days * DAY:.3f}"
    only = f" AND source = '{source}'" if source else ""
    period = f"FROM sessions WHERE last_active_at >= {since}{only}"
    assert found["sessions"] == number(office, f"SELECT count(*) {period}")
    names = {"message_count": "messages", "tool_call_count": "tool_calls", "api_call_count": "api_calls"}
    for column in SUMMED:
        assert found[names.get(column, column)] == number(office, f"SELECT sum({column}) {period}"), column
    for column in ("estimated_cost_usd", "actual_cost_usd"):
        assert (found[column] or 0) == pytest.approx(number(office, f"SELECT sum({column}) {period}"))
    cost = "SELECT sum(coalesce(actual_cost_usd, estimated_cost_usd))"
    assert found["cost_usd"] == pytest.approx(number(office, f"{cost} {period}"))
    unknown = f"SELECT count(*) {period} AND actual_cost_usd IS NULL AND estimated_cost_usd IS NULL"
    assert found["without_cost"] == number(office, unknown)
    for column, groups in (("model", found["models"]), ("source", found["sources"])):
        rows = ask(office, f"SELECT {column}, count(*), sum(input_tokens) {period} GROUP BY {column}")
        said = {(group[column] or "", group["sessions"], group["input_tokens"]) for group in groups}
        assert said == {(name, int(sessions), int(tokens)) for name, sessions, tokens in rows}


@pytest.mark.on_file  # in the dialect of one of the two
@pytest.mark.parametrize("days", [7, 365])
def test_activity_and_tools_are_what_sql_says(run: Run, office: Path, days: int) -> None:
    found = seen(run, office, "--days", str(days))
    since = f"{time.time() - days * DAY:.3f}"
    period = f"FROM messages WHERE state = 'live' AND timestamp >= {since}"
    local = "timestamp, 'unixepoch', 'localtime'"
    hours = {
        int(hour): int(messages)
        for hour, messages in ask(office, f"SELECT strftime('%H', {local}), count(*) {period} GROUP BY 1")
    }
    assert dict(enumerate(found["activity"]["hours"])) == {hour: hours.get(hour, 0) for hour in range(24)}
    days_said = {
        day: int(messages) for day, messages in ask(office, f"SELECT date({local}), count(*) {period} GROUP BY 1")
    }
    assert found["activity"]["days"] == days_said
    weekdays = {
        int(day): int(messages)
        for day, messages in ask(office, f"SELECT strftime('%w', {local}), count(*) {period} GROUP BY 1")
    }
    assert list(found["activity"]["weekdays"].values()) == [weekdays.get((day + 1) % 7, 0) for day in range(7)]
    assert found["activity"]["messages"] == sum(hours.values())
    calls_of = f"(SELECT tool_calls {period}), json_each(tool_calls)"
    tools = f"SELECT json_extract(value, '$.function.name'), count(*) FROM {calls_of} GROUP BY 1"
    assert found["tools"]["calls"] == {name: int(calls) for name, calls in ask(office, tools)}
    busiest = found["activity"]["busiest_day"]
    assert busiest["messages"] == max(days_said.values()) == days_said[busiest["day"]]


def test_what_is_printed_is_what_programs_get(run: Run, office: Path) -> None:
    found = seen(run, office)
    result = run("insights", SEGUE_HOME=str(office), COLUMNS="100", **ZONE)
    assert (result.returncode, result.stderr) == (0, "")
    shown = result.stdout
    assert shown.startswith("The last 30 days\n")
    assert f"Sessions       {found['sessions']:,}, with {found['messages']:,} messages" in shown
    assert f"{found['input_tokens']:,} in, {found['output_tokens']:,} out" in shown
    assert f"{found['without_cost']} sessions without a known cost" in shown
    assert f"${found['cost_usd']:.2f} (estimated ${found['estimated_cost_usd']:.2f}" in shown
    for group in found["models"]:
        assert re.search(rf"^{group['model'] or 'unknown'} +{group['sessions']} +{group['messages']} ", shown, re.M)
    for hour, messages in enumerate(found["activity"]["hours"]):
        assert re.search(rf"^  {hour:02} +{messages}( |$)", shown, re.M)


@pytest.mark.parametrize("columns", [24, 40, 60, 120])
def test_bars_and_tables_fit_the_terminal(run: Run, office: Path, columns: int) -> None:
    shown = run("insights", SEGUE_HOME=str(office), COLUMNS=str(columns), **ZONE).stdout.splitlines()
    drawn = [line for line in shown if re.search("[█▏▎▍▌▋▊▉─]", line)]
    assert len(drawn) > 10
    assert max(map(len, drawn)) <= columns


def test_costs_that_nobody_knows_are_called_unknown(run: Run, home: Path) -> None:
    with SessionDB() as db:
        db.append_message(db.create_session("only"), "user", "Hello")
    shown = run("insights").stdout
    assert "Cost           unknown (estimated unknown, actual unknown; 1 session without a known cost)" in shown


def test_an_empty_home_gets_a_kind_sentence(run: Run, home: Path) -> None:
    result = run("insights")
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.startswith(f"No conversations yet in {home}; ")
    assert json.loads(run("insights", "--json").stdout)["sessions"] == 0


def test_a_quiet_time_says_where_to_look(run: Run, office: Path) -> None:
    result = run("insights", "--source", "nowhere", SEGUE_HOME=str(office))
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == "Nothing was said on nowhere in the last 30 days; --days looks further back.\n"


@pytest.mark.parametrize("days", ["0", "-1", "many", "1000000000000"])
def test_days_that_cannot_be_are_refused(run: Run, days: str) -> None:
    assert run("insights", "--days", days).returncode == 2
