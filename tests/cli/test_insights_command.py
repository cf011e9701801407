"""`segue insights`: every number it prints is one that SQL gives too."""

import json
import re
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from homes import Beside, NewHome, database_of

from segue import SessionDB
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.usage import Billing, Purpose, Usage
from segue.sessions.recording import add_usage

Run = Callable[..., subprocess.CompletedProcess[str]]
DAY = 86400
ZONE = {"TZ": "Asia/Kolkata"}
AHEAD = "+19800 seconds"
"""By which that zone is always ahead of the clock of SQL."""
VERSION = "0.2.1 (2026-09-28)"
TALK = {"sessions": "count(*)", "messages": "sum(message_count)", "tool_calls": "sum(tool_call_count)"}
SPENDING = {
    "api_calls": "sum(u.api_call_count)",
    "input_tokens": "sum(u.input_tokens)",
    "output_tokens": "sum(u.output_tokens)",
    "cache_read_tokens": "sum(u.cache_read_tokens)",
    "cache_write_tokens": "sum(u.cache_write_tokens)",
    "reasoning_tokens": "sum(u.reasoning_tokens)",
    "estimated_cost_usd": "sum(u.estimated_cost_usd)",
    "actual_cost_usd": "sum(u.actual_cost_usd)",
    "cost_usd": "sum(coalesce(u.actual_cost_usd, u.estimated_cost_usd))",
    "calls_without_cost": "sum(CASE WHEN u.actual_cost_usd IS NULL AND u.estimated_cost_usd IS NULL"
    " THEN u.api_call_count ELSE 0 END)",
    "tokens_without_cost": "sum(CASE WHEN u.actual_cost_usd IS NULL AND u.estimated_cost_usd IS NULL"
    " THEN u.input_tokens + u.output_tokens ELSE 0 END)",
}
"""Each number that is printed of model calls, and what it is in SQL."""


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
            store = db._store
            for call in range(number % 4 + 1):
                costs = [(None, None), (0.25, None), (0.5, 0.75), (0.001, None)][(number // 4 + call) % 4]
                usage = Usage(1000 * number + call, 20 * number, 3, call, 2 * call, 1, *costs)
                source = "config" if call % 2 else "genai-prices"
                billing = Billing(
                    ["example-large", "example-small", None][call % 3], cost_source=source, pricing_version=VERSION
                )
                purpose = [Purpose.ANSWER, Purpose.TITLE, Purpose.SUMMARY][call % 3]
                store.write(OWNER_AT_CONSOLE, add_usage, name, usage, billing, at - call * 5 * DAY, purpose)
        db.set_session_archived("session-1", True)
    return home


def ask(home: Path, sql: str) -> list[list[str]]:
    """What the database answers, as its own program would print it."""
    with Beside(home) as beside:
        return [["" if one is None else str(one) for one in row] for row in beside.ask(sql)]


def figures(home: Path, wanted: dict[str, str], rest: str) -> dict[str, float | None]:
    """One query, and what it says under each name."""
    (row,) = ask(home, f"SELECT {', '.join(wanted.values())} {rest}")
    return {name: float(value) if value else None for name, value in zip(wanted, row, strict=True)}


def same(said: dict[str, Any], wanted: dict[str, float | None]) -> None:
    for name, value in wanted.items():
        if value is None:
            assert not said[name], name
            assert name.endswith("_usd") is (said[name] is None), name
        else:
            assert said[name] == pytest.approx(value, rel=1e-12), name


def seen(run: Run, home: Path, *arguments: str) -> dict[str, Any]:
    result = run("insights", "--json", *arguments, SEGUE_HOME=str(home), **ZONE)
    assert (result.returncode, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def begin(found: dict[str, Any]) -> str:
    """When the first day that was told of began in `ZONE`."""
    return f"{datetime.fromisoformat(found['first_day']).replace(tzinfo=UTC).timestamp() - 19_800:.3f}"


def period(found: dict[str, Any], source: str) -> tuple[str, str]:
    """The sessions and the calls of the days that were told of, in SQL."""
    since, only = begin(found), f" AND s.source = '{source}'" if source else ""
    calls = f"FROM usage u JOIN sessions s ON s.id = u.session_id WHERE u.at >= {since}{only}"
    return f"FROM sessions s WHERE s.last_active_at >= {since}{only}", calls


@pytest.mark.parametrize("days", [7, 30, 365])
@pytest.mark.parametrize("source", ["", "telegram"])
def test_every_sum_is_what_sql_says(run: Run, office: Path, days: int, source: str) -> None:
    found = seen(run, office, "--days", str(days), *(["--source", source] if source else []))
    sessions, calls = period(found, source)
    same(found, figures(office, TALK, sessions))
    same(found, figures(office, SPENDING, calls))
    assert found["calls_without_cost"] > 0
    for column, groups in (("u.model", "models"), ("s.source", "sources"), ("u.purpose", "purposes")):
        name = column[2:]
        names = {row[0] for row in ask(office, f"SELECT DISTINCT {column} {calls}")}
        assert names == {group[name] or "" for group in found[groups] if group["api_calls"]}
        for group in found[groups]:
            only = f" AND {column} = '{group[name]}'" if group[name] else f" AND {column} IS NULL"
            same(group, figures(office, SPENDING, calls + only))
            if groups != "purposes":
                same(group, figures(office, TALK, sessions + only.replace("u.", "s.")))
    estimated = f"{calls} AND u.estimated_cost_usd IS NOT NULL AND u.actual_cost_usd IS NULL"
    prices = ask(office, f"SELECT u.cost_source, u.pricing_version, sum(u.api_call_count) {estimated} GROUP BY 1, 2")
    assert sorted([*map(str, one.values())] for one in found["prices"]) == sorted(prices)
    for name, kind in (("tokens", "tokens_without_cost"), ("cost_usd", "cost_usd")):
        assert sum(day[name] or 0 for day in found["days"].values()) == pytest.approx(
            found["input_tokens"] + found["output_tokens"] if name == "tokens" else found[kind] or 0
        )


@pytest.mark.on_file
def test_every_day_is_what_sql_says(run: Run, office: Path) -> None:
    found = seen(run, office, "--days", "365")
    _, calls = period(found, "")
    days = ask(office, f"SELECT DISTINCT date(u.at, 'unixepoch', '{AHEAD}') {calls}")
    assert sorted(found["days"]) == sorted(day for (day,) in days)
    wanted = {"tokens": "sum(u.input_tokens + u.output_tokens)"}
    wanted |= {name: SPENDING[name] for name in ("cost_usd", "tokens_without_cost")}
    for day, said in found["days"].items():
        same(said, figures(office, wanted, f"{calls} AND date(u.at, 'unixepoch', '{AHEAD}') = '{day}'"))


@pytest.mark.on_file  # in the dialect of one of the two
@pytest.mark.parametrize("days", [7, 365])
def test_activity_and_tools_are_what_sql_says(run: Run, office: Path, days: int) -> None:
    found = seen(run, office, "--days", str(days))
    since = begin(found)
    period = f"FROM messages WHERE state = 'live' AND timestamp >= {since}"
    local = f"timestamp, 'unixepoch', '{AHEAD}'"
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


@pytest.mark.on_file
def test_what_is_printed_is_what_programs_get(run: Run, office: Path) -> None:
    found = seen(run, office)
    result = run("insights", SEGUE_HOME=str(office), COLUMNS="100", **ZONE)
    assert (result.returncode, result.stderr) == (0, "")
    shown = result.stdout
    assert shown.startswith("The last 30 days\n")
    assert f"Sessions       {found['sessions']:,}, with {found['messages']:,} messages" in shown
    assert f"{found['input_tokens']:,} in, {found['output_tokens']:,} out" in shown
    assert f"{found['api_calls']:,} model calls\n" in shown
    assert (
        f"unknown for {found['calls_without_cost']} model calls with {found['tokens_without_cost']:,} tokens" in shown
    )
    for table in found["prices"]:
        label = "your own prices" if table["cost_source"] == "config" else f"genai-prices {VERSION}"
        assert f"Prices         {label}: {table['api_calls']} call" in shown
    for groups, name in (("models", "model"), ("sources", "source"), ("purposes", "purpose")):
        for group in found[groups]:
            talk = [] if groups == "purposes" else [group["sessions"], group["messages"]]
            numbers = [*talk, *(group[key] for key in ("api_calls", "input_tokens", "output_tokens"))]
            cost = "unknown" if group["cost_usd"] is None else f"${group['cost_usd']:,.2f}"
            cost += " + unknown" if group["cost_usd"] is not None and group["calls_without_cost"] else ""
            nameless = "unknown" if group["api_calls"] else "none"
            line = " +".join([group[name] or nameless, *(f"{one:,}" for one in numbers), re.escape(cost)])
            assert re.search(f"^{line}$", shown, re.M), line
    most = max(day["tokens"] for day in found["days"].values())
    assert f"Tokens by day, at most {most:,}\n" in shown
    assert f"${found['cost_usd']:.2f} (estimated ${found['estimated_cost_usd']:.2f}" in shown
    for hour, messages in enumerate(found["activity"]["hours"]):
        assert re.search(rf"^  {hour:02} +{messages}( |$)", shown, re.M)


@pytest.mark.on_file
@pytest.mark.parametrize("columns", [24, 40, 60, 120])
def test_bars_and_tables_fit_the_terminal(run: Run, office: Path, columns: int) -> None:
    shown = run("insights", SEGUE_HOME=str(office), COLUMNS=str(columns), **ZONE).stdout.splitlines()
    drawn = [line for line in shown if re.search("[█▏▎▍▌▋▊▉─]", line)]
    assert len(drawn) > 10
    assert max(map(len, drawn)) <= columns


@pytest.mark.on_file
@pytest.mark.parametrize("days", [7, 30])
def test_the_chart_draws_the_days_that_the_heading_names(run: Run, office: Path, days: int) -> None:
    lines = run("insights", "--days", str(days), SEGUE_HOME=str(office), COLUMNS="200", **ZONE).stdout.splitlines()
    assert lines[0] == f"The last {days} days"
    (axis,) = (line.strip() for line in lines if re.fullmatch(r"  \d{4}-\d\d-\d\d[ –]+\d{4}-\d\d-\d\d", line))
    assert date.fromisoformat(axis[-10:]) - date.fromisoformat(axis[:10]) == timedelta(days=days - 1)
    assert len(axis) == max(2 * days, len("2025-03-05 – 2025-03-09"))


@pytest.mark.on_file
def test_where_nothing_was_called_the_cost_is_none(run: Run, home: Path, tmp_path: Path) -> None:
    with SessionDB() as db:
        db.append_message(db.create_session("only"), "user", "Hello")
    shown = run("insights", "--days", "1").stdout
    assert shown.startswith("Today\n")
    assert "Cost           none, no model was called\n" in shown
    assert re.search(r"^none +1 +1 +0 +0 +0 +none$", shown, re.M)
    assert re.search(r"^cli +1 +1 +0 +0 +0 +none$", shown, re.M)
    assert "unknown" not in shown
    run("insights", "--html", str(tmp_path / "page.html"))
    words = "\n".join(Reader((tmp_path / "page.html").read_text("utf-8")).words)
    assert "\nnone\nno model call is noted\n" in words


@pytest.mark.on_file
def test_costs_that_nobody_knows_are_called_unknown(run: Run, home: Path) -> None:
    with SessionDB() as db:
        db.append_message(db.create_session("only"), "user", "Hello")
        db.update_token_counts("only", input_tokens=5, output_tokens=2, api_call_count=1)
    shown = run("insights").stdout
    assert "Cost           unknown (estimated unknown, actual unknown)\n" in shown
    assert "               unknown for 1 model call with 7 tokens\n" in shown
    assert "$" not in shown


def test_an_empty_home_gets_a_kind_sentence(run: Run, home: Path) -> None:
    result = run("insights")
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.startswith(f"No conversations yet in {home}; ")
    assert json.loads(run("insights", "--json").stdout)["sessions"] == 0


@pytest.mark.on_file
def test_a_quiet_time_says_where_to_look(run: Run, office: Path) -> None:
    result = run("insights", "--source", "matrix", SEGUE_HOME=str(office))
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == "Nothing was said on matrix in the last 30 days; --days looks further back.\n"


@pytest.mark.on_file
@pytest.mark.parametrize("days", ["0", "-1", "many", "1000000000000"])
def test_days_that_cannot_be_are_refused(run: Run, days: str) -> None:
    assert run("insights", "--days", days).returncode == 2


# The page


class Reader(HTMLParser):
    """What a page is made of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src") or name.startswith("on")]
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)


@pytest.mark.on_file
def test_the_page_says_what_programs_get(run: Run, office: Path, tmp_path: Path) -> None:
    found, file = seen(run, office), tmp_path / "page.html"
    result = run("insights", "--html", str(file), SEGUE_HOME=str(office), **ZONE)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", f"The page is in {file}.\n")
    assert file.stat().st_mode & 0o777 == 0o600
    page = Reader(file.read_text("utf-8"))
    assert (page.open, page.links) == ([], [])
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(page.tags)
    assert page.tags.count("svg") == 3
    words = "\n".join(page.words)
    for name in ("sessions", "api_calls", "input_tokens", "output_tokens"):
        assert f"\n{found[name]:,}\n" in words, name
    assert f"\n${found['cost_usd']:,.2f}\n" in words
    assert f"unknown for {found['calls_without_cost']} calls with {found['tokens_without_cost']:,} tokens" in words
    for groups, name in (("models", "model"), ("sources", "source"), ("purposes", "purpose")):
        for group in found[groups]:
            tokens = group["input_tokens"] + group["output_tokens"]
            if group["api_calls"]:
                assert f"\n{group[name] or 'unknown'}\n{tokens:,} token" in words
    for day, used in found["days"].items():
        assert f"{day}: {used['tokens']:,} token" in words
    for weekday, hours in found["activity"]["weekdays_by_hour"].items():
        assert all(f"{weekday.title()}, {hour:02}:00: {count}\n" in words for hour, count in enumerate(hours))
    assert f"genai-prices {VERSION} (" in words


@pytest.mark.on_file
def test_nothing_that_was_stored_is_taken_for_a_part_of_the_page(run: Run, home: Path, tmp_path: Path) -> None:
    hostile = "</style><script>alert(1)</script>\"'&\x1b[31m"
    call = {"id": "c", "function": {"name": hostile, "arguments": "{}"}}
    with SessionDB() as db:
        name = db.create_session("only", hostile, model=hostile)
        db.append_message(name, "assistant", "Hi", tool_calls=[call])
        db.update_token_counts(
            name, 5, 2, api_call_count=1, estimated_cost_usd=1.0, cost_source=hostile, pricing_version=hostile
        )
    file = tmp_path / "page.html"
    assert run("insights", "--html", str(file), "--source", hostile).returncode == 0
    text = file.read_text("utf-8")
    assert "<script" not in text
    assert "\x1b" not in text
    assert text.count("</style>") == 1
    assert Reader(text).open == []


@pytest.mark.on_file
def test_a_page_is_replaced_only_when_somebody_agrees(run: Run, office: Path, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("mine", "utf-8")
    result = run("insights", "--html", str(file), SEGUE_HOME=str(office))
    assert (result.returncode, file.read_text("utf-8")) == (1, "mine")
    assert run("insights", "--html", str(file), "--yes", SEGUE_HOME=str(office)).returncode == 0
    assert file.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert run("insights", "--html", "-", SEGUE_HOME=str(office)).stdout.startswith("<!DOCTYPE html>")
    assert "do not go together" in run("insights", "--html", str(file), "--json").stderr


@pytest.mark.on_file
def test_a_page_of_nothing_is_a_page(run: Run, home: Path, tmp_path: Path) -> None:
    assert run("insights", "--html", str(tmp_path / "page.html")).returncode == 0
    page = Reader((tmp_path / "page.html").read_text("utf-8"))
    assert "no model call is noted" in "\n".join(page.words)
