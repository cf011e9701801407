"""`segue insights`: tokens, costs, models, tools, and when people were there."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue import app, config
from segue.cli.charts import bars, columns
from segue.cli.files import check_replacing, opened, writer
from segue.cli.options import AS_JSON, REMOTE, REPLACE
from segue.cli.output import Column, note, say, show_json, table
from segue.cli.sources import check_sources, check_sources_there, source_option
from segue.core.errors import Invalid
from segue.core.insights import (
    WEEKDAYS,
    Activity,
    Conversation,
    Group,
    Insights,
    Period,
    as_data,
    cost_words,
    dollars,
    from_data,
    period_of,
)
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count, one_line
from segue.core.titles import shorten_title
from segue.sessions import listing
from segue.sessions.insights import insights as look

if TYPE_CHECKING:
    from datetime import date

    from segue.cli.remote import Asked

_MOST_DAYS = 100_000
_MOST_GROUPS = 10
_TITLE = 60
_TALK = (("Sessions", 3), ("Messages", 5))
_SPENDING = (("Calls", 4), ("Tokens in", 0), ("Tokens out", 2), ("Cost", 1))


@click.command()
@click.option("--days", default=30, show_default=True, type=click.IntRange(1, _MOST_DAYS), help="How far back to look.")
@source_option()
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="A page with plots instead.",
)
@REPLACE
@REMOTE
@AS_JSON
def insights(
    days: int,
    source: tuple[str, ...],
    page: Path | None,
    yes: bool,
    there: "Asked | None",
    as_json: bool,
) -> None:
    """How much was used in the last days, by model, platform and purpose, and when."""
    if page and as_json:
        raise Invalid("--html and --json do not go together: it is a page for people or data for programs.")
    period = period_of(days, time.time(), config.zone_here())
    if there:
        check_sources_there(there, source)
        told = there.ask("insights", {"days": days, "sources": list(source)})
        found, is_empty = from_data(told["insights"]), False
    else:
        with app.open_for_reading() as store:
            check_sources(store, source)
            found = store.read(OWNER_AT_CONSOLE, look, period.since, source)
            is_empty = not found.total.talk.sessions and not store.read(OWNER_AT_CONSOLE, listing.stats).sessions
    if as_json:
        show_json(_named(period) | as_data(found, period.last))
    elif page:
        _write(page, found, _heading(days, source), period, yes=yes)
    elif is_empty:
        note(f"No conversations yet in {app.settings().home}; there will be something to see once there are.")
    elif not found.total.talk.sessions and not found.days:
        where = f" on {', '.join(source)}" if source else ""
        when = "today" if days == 1 else f"in the last {count(days, 'day')}"
        note(f"Nothing was said{where} {when}; --days looks further back.")
    else:
        _tell(found, _heading(days, source), period)


def _named(period: Period) -> dict[str, str]:
    return {"first_day": str(period.first), "last_day": str(period.last)}


def _heading(days: int, source: tuple[str, ...]) -> str:
    return ("Today" if days == 1 else f"The last {count(days, 'day')}") + (f" on {', '.join(source)}" if source else "")


def _write(file: Path, found: Insights, heading: str, period: Period, *, yes: bool) -> None:
    from segue.core.insights_page import page_of  # only this needs it

    check_replacing(file, yes=yes)
    with opened(file) as target:
        writer(target)(page_of(found, heading, period))
    if str(file) != "-":
        note(f"The page is in {file}.")


def _tell(found: Insights, heading: str, period: Period) -> None:
    say(heading, bold=True)
    say()
    _tell_sums(found)
    columns("Tokens by day", found.days, period)
    _tell_groups("Model", found.models)
    _tell_groups("Platform", found.sources)
    _tell_groups("Purpose", found.purposes, has_talk=False)
    _tell_tools(found)
    _tell_activity(found.activity)
    _tell_records(found, period.last)


def _tell_sums(found: Insights) -> None:
    _, talk, total = found.total
    say(f"Sessions       {talk.sessions:,}, with {count(talk.messages, 'message')}")
    say(f"Calls          {count(talk.tool_calls, 'tool call')}, {count(total.api_calls, 'model call')}")
    say(f"Tokens         {total.input_tokens:,} in, {total.output_tokens:,} out")
    if total.cache_read_tokens or total.cache_write_tokens or total.reasoning_tokens:
        cached = f"{total.cache_read_tokens:,} read from a cache, {total.cache_write_tokens:,} written to one"
        say(f"               {cached}, {total.reasoning_tokens:,} for reasoning")
    if total.is_none:
        say("Cost           none, no model was called")
        return
    how = f"estimated {_dollars(total.estimated_cost_usd)}, actual {_dollars(total.actual_cost_usd)}"
    say(f"Cost           {_dollars(total.cost_usd)} ({how})")
    if total.is_partly_unknown:
        calls, tokens = count(total.calls_without_cost, "model call"), count(total.tokens_without_cost, "token")
        say(f"               unknown for {calls} with {tokens}")
    for one in found.prices:
        say(f"Prices         {one.label}: {count(one.api_calls, 'call')} estimated")


def _tell_groups(kind: str, groups: Sequence[Group], *, has_talk: bool = True) -> None:
    if not groups:
        return
    headings = [*(_TALK if has_talk else ()), *_SPENDING]
    rows = [[group.label, *_figures(group, has_talk)] for group in groups[:_MOST_GROUPS]]
    say()
    table([Column(kind, 1), *(Column(name, yields=order) for name, order in headings)], rows)
    if len(groups) > _MOST_GROUPS:
        note(f"… and {len(groups) - _MOST_GROUPS:,} more; --json names them all.")


def _figures(group: Group, has_talk: bool) -> list[str]:
    used = group.spending
    figures = [*(group.talk[:2] if has_talk else ()), used.api_calls, used.input_tokens, used.output_tokens]
    return [*(f"{figure:,}" for figure in figures), cost_words(used.cost_usd, is_partly_unknown=used.is_partly_unknown)]


def _tell_tools(found: Insights) -> None:
    if found.tools.total:
        say()
        say(f"Tools, {count(found.tools.total, 'call')}", bold=True)
        bars([(one_line(name), calls) for name, calls in found.tools.top(_MOST_GROUPS)])


def _tell_activity(activity: Activity) -> None:
    if activity.total:
        say()
        say(f"Messages by weekday, {activity.total:,} in all", bold=True)
        bars([(day[:3], messages) for day, messages in zip(WEEKDAYS, activity.weekdays, strict=True)])
        say()
        say("Messages by hour of the day", bold=True)
        bars([(f"{hour:02}", messages) for hour, messages in enumerate(activity.hours)])


def _tell_records(found: Insights, today: "date") -> None:
    activity = found.activity
    say()
    if busiest := activity.busiest_day:
        day, messages = busiest
        say(f"Busiest day    {day:%A}, {day}: {count(messages, 'message')}")
        longest = count(activity.longest_streak, "day")
        say(f"Streak         {count(activity.streak(today), 'day')} up to {today}; the longest was {longest}")
    if found.longest:
        say(f"Longest        {_name(found.longest)}: {count(found.longest.messages, 'message')}")


def _name(conversation: Conversation) -> str:
    said = conversation.title or conversation.first_line
    return f"{shorten_title(one_line(said), _TITLE)} ({conversation.session_id})" if said else conversation.session_id


def _dollars(amount: float | None) -> str:
    return "unknown" if amount is None else dollars(amount)
