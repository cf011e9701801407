"""`segue insights`: tokens, costs, models, tools, and when people were there."""

import time
from collections.abc import Sequence
from datetime import datetime

import click

from segue import app
from segue.cli.options import AS_JSON
from segue.cli.output import Column, note, say, show_json, table, terminal_columns
from segue.core.insights import WEEKDAYS, Activity, Conversation, Group, Insights, Sums, as_data
from segue.core.moments import DAY
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count, one_line, shorten
from segue.sessions import listing
from segue.sessions.insights import insights as look

_MOSTDAYS = 100_000
_MOST_GROUPS = 10
_BAR, _WIDEST_BAR = "█", 50
_EIGHTHS = " ▏▎▍▌▋▊▉"
_TITLE = 60


@click.command()
@click.option("--days", default=30, show_default=True, type=click.IntRange(1, _MOSTDAYS), help="How far back to look.")
@click.option("--source", multiple=True, help="Only this platform (may be repeated).")
@AS_JSON
def insights(days: int, source: tuple[str, ...], as_json: bool) -> None:
    """How much was used in the last days, by model and platform, and when."""
    now = time.time()
    today = datetime.fromtimestamp(now).astimezone().date()
    with app.open_for_reading() as store:
        found = store.read(OWNER_AT_CONSOLE, look, max(now - days * DAY, 0.0), source)
        is_empty = not found.total.sessions and not store.read(OWNER_AT_CONSOLE, listing.stats).sessions
    if as_json:
        show_json({"days": days, **as_data(found, today)})
        return
    if is_empty:
        note(f"No conversations yet in {app.settings().home}; there will be something to see once there are.")
        return
    if not found.total.sessions:
        where = f" on {', '.join(source)}" if source else ""
        note(f"Nothing was said{where} in the last {count(days, 'day')}; --days looks further back.")
        return
    say(f"The last {count(days, 'day')}", bold=True)
    say()
    _tell_sums(found.total)
    _tell_groups("Model", found.models)
    _tell_groups("Platform", found.sources)
    _tell_tools(found)
    _tell_activity(found.activity)
    _tell_records(found, today.isoformat(), found.activity.streak(today))


def _tell_sums(total: Sums) -> None:
    say(f"Sessions       {total.sessions:,}, with {count(total.messages, 'message')}")
    say(f"Calls          {count(total.tool_calls, 'tool call')}, {count(total.api_calls, 'model call')}")
    say(f"Tokens         {total.input_tokens:,} in, {total.output_tokens:,} out")
    if total.cache_read_tokens or total.cache_write_tokens or total.reasoning_tokens:
        cached = f"{total.cache_read_tokens:,} read from a cache, {total.cache_write_tokens:,} written to one"
        say(f"               {cached}, {total.reasoning_tokens:,} for reasoning")
    how = f"estimated {_dollars(total.estimated_cost_usd)}, actual {_dollars(total.actual_cost_usd)}"
    unknown = f"; {count(total.without_cost, 'session')} without a known cost" if total.without_cost else ""
    say(f"Cost           {_dollars(total.cost_usd)} ({how}{unknown})")


def _tell_groups(kind: str, groups: Sequence[Group]) -> None:
    columns = [Column(kind, 1), *(Column(name, yields=order) for name, order in _FIGURES)]
    say()
    table(columns, [[one_line(group.name or "unknown"), *_figures(group.sums)] for group in groups[:_MOST_GROUPS]])
    if len(groups) > _MOST_GROUPS:
        note(f"… and {len(groups) - _MOST_GROUPS:,} more; --json names them all.")


_FIGURES = (("Sessions", 0), ("Messages", 3), ("Tokens in", 1), ("Tokens out", 2), ("Cost", 4))


def _figures(sums: Sums) -> list[str]:
    figures = [sums.sessions, sums.messages, sums.input_tokens, sums.output_tokens]
    return [*(f"{figure:,}" for figure in figures), _dollars(sums.cost_usd)]


def _tell_tools(found: Insights) -> None:
    if found.tools.total:
        say()
        say(f"Tools, {count(found.tools.total, 'call')}", bold=True)
        _bars([(one_line(name), calls) for name, calls in found.tools.top(_MOST_GROUPS)])


def _tell_activity(activity: Activity) -> None:
    if activity.total:
        say()
        say(f"Messages by weekday, {activity.total:,} in all", bold=True)
        _bars([(day[:3], messages) for day, messages in zip(WEEKDAYS, activity.weekdays, strict=True)])
        say()
        say("Messages by hour of the day", bold=True)
        _bars([(f"{hour:02}", messages) for hour, messages in enumerate(activity.hours)])


def _tell_records(found: Insights, today: str, streak: int) -> None:
    activity = found.activity
    say()
    if busiest := activity.busiest_day:
        day, messages = busiest
        say(f"Busiest day    {day:%A}, {day}: {count(messages, 'message')}")
        longest = count(activity.longest_streak, "day")
        say(f"Streak         {count(streak, 'day')} up to {today}; the longest was {longest}")
    if found.longest:
        say(f"Longest        {_name(found.longest)}: {count(found.longest.messages, 'message')}")


def _name(conversation: Conversation) -> str:
    said = conversation.title or conversation.first_line
    return f"{shorten(one_line(said), _TITLE)} ({conversation.session_id})" if said else conversation.session_id


def _bars(rows: list[tuple[str, int]]) -> None:
    """A line each: its name, its bar, its number. The longest bar fills what the terminal has left."""
    most = max(number for _, number in rows)
    figure = len(f"{most:,}")
    label = min(max(len(name) for name, _ in rows), 24)
    width = min(max(terminal_columns() - label - figure - 6, 1), _WIDEST_BAR)
    for name, number in rows:
        bar = _bar(number / most * width if most else 0.0)
        say(f"  {shorten(name, label):{label}}  {number:>{figure},}  {bar}".rstrip())


def _bar(length: float) -> str:
    """A bar of that many cells, to an eighth of one; something is never nothing."""
    eighths = max(round(length * 8), 1) if length > 0 else 0
    return _BAR * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:,.2f}" if amount >= 0.01 or amount == 0 else f"${amount:.4f}"
