"""`segue lanes`: where people talk to the agent, how each of these places stands, and how to begin anew there."""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from segue import app
from segue.cli.completing import complete_lane
from segue.cli.groups import CommandGroup, DestructiveCommand
from segue.cli.lane_places import Elsewhere, Ours, sight_of
from segue.cli.lane_words import (
    LANES,
    MESSAGES,
    Row,
    entry_row_cells,
    lane_cells,
    moment,
    name_of,
    next_reset,
    policy_words,
    worker_words,
)
from segue.cli.options import AS_JSON, DRY_RUN, REMOTE, YES, limit_option
from segue.cli.output import Column, confirm, note, say, show_json, table
from segue.core.documents import WHY_ANEW
from segue.core.errors import Invalid
from segue.core.moments import ago
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sources import SessionSource
from segue.core.text import count, one_line
from segue.facade.lane_rows import detail_row, lane_row
from segue.sessions.overseeing import list_lanes, look_into

if TYPE_CHECKING:
    from segue.cli.remote import Asked

_PAGE = 1000
_INDENT = 14
_RESETS = [Column("When"), Column("Why", 1), Column("Who", yields=1), Column("From"), Column("To")]
_LETTERS = [Column("State"), Column("Age", yields=1), Column("What", yields=2), Column("Text", 3), Column("Reason", 2)]

KEY = click.argument("wanted", metavar="KEY", shell_complete=complete_lane)


@click.group(cls=CommandGroup)
def lanes() -> None:
    """Where people talk to your agent: how each place stands, and what to do about it.

    KEY is the key of a lane, or a part of it that no other lane has.
    """


@lanes.command("list")
@click.option(
    "--active", "active_minutes", type=float, metavar="MINUTES", help="Only those in use in the last minutes."
)
@limit_option(20)
@REMOTE
@AS_JSON
def list_(active_minutes: float | None, limit: int, there: "Asked | None", as_json: bool) -> None:
    """Show the lanes that were in use last."""
    now, settings = time.time(), app.settings()
    since = None if active_minutes is None else _before(now, active_minutes)
    if there:
        params = {"limit": min(limit, _PAGE)} | ({} if since is None else {"active_since": since.timestamp()})
        rows = there.ask("lanes.list", params)["lanes"]
    else:
        with app.open_for_reading(settings) as store:
            found = store.read(OWNER_AT_CONSOLE, list_lanes, sight_of(settings), since, limit)
        rows = [lane_row(view) for view in found]
    if as_json:
        show_json(rows)
    elif rows:
        table(LANES, [lane_cells(row, now) for row in rows])
    else:
        note("Nobody has talked to your agent on a platform yet." if since is None else "No lane was in use.")


@lanes.command("show")
@KEY
@REMOTE
@AS_JSON
def show(wanted: str, there: "Asked | None", as_json: bool) -> None:
    """Show everything about one lane."""
    if there:
        row = there.ask("lanes.get", {"key": wanted})
    else:
        settings = app.settings()
        with app.open_for_reading(settings) as store:
            row = detail_row(store.read(OWNER_AT_CONSOLE, look_into, wanted, sight_of(settings)))
    if as_json:
        show_json(row)
        return
    _tell(row, time.time())


@lanes.command("reset", cls=DestructiveCommand)
@KEY
@YES
@DRY_RUN
@REMOTE
@AS_JSON
def reset(wanted: str, yes: bool, dry_run: bool, there: "Asked | None", as_json: bool) -> None:
    """Begin a new conversation in a lane. The old one is kept, and what waits is answered in the new one."""
    places = Elsewhere(there) if there else Ours(app.settings())
    with places.opened():
        row = places.free(wanted)
        key = row["key"]
        if not as_json:
            _preview(row, "A new conversation begins in:")
        if dry_run:
            _unchanged(as_json, {"key": key, "old_session_id": row["session_id"], "session_id": None})
            return
        confirm("Begin a new conversation there?", yes=yes)
        done = places.renew(key)
    if as_json:
        show_json(done | {"dry_run": False})
        return
    say(f"{key} goes on in {done['session_id']}.")
    if done["old_session_id"]:
        say(f"The old conversation is kept: `segue sessions show {done['old_session_id']}`.")
    if done["given_up"]:
        what = f"{count(done['given_up'], 'message')} had an answer that was cut off, and get none"
        say(f"{what}; `segue inbox list` shows them, and `segue inbox retry` answers them after all.")


@lanes.command("delete", cls=DestructiveCommand)
@KEY
@YES
@DRY_RUN
@REMOTE
@AS_JSON
def delete(wanted: str, yes: bool, dry_run: bool, there: "Asked | None", as_json: bool) -> None:
    """Forget a lane in which nothing waits. Its conversation ends and is kept; the next message begins afresh."""
    places = Elsewhere(there) if there else Ours(app.settings())
    with places.opened():
        row = places.idle(wanted)
        key, session_id = row["key"], row["session_id"]
        if not as_json:
            _preview(row, "To be forgotten:")
        if dry_run:
            _unchanged(as_json, {"key": key, "session_id": session_id})
            return
        confirm("Forget it?", yes=yes)
        places.forget(key)
    if as_json:
        show_json({"key": key, "session_id": session_id, "dry_run": False})
        return
    kept = f" Its conversation is kept: `segue sessions show {session_id}`." if session_id else ""
    say(f"{key} is forgotten.{kept}")


def _before(now: float, minutes: float) -> datetime:
    try:
        return datetime.fromtimestamp(now, UTC) - timedelta(minutes=minutes)
    except (OverflowError, ValueError):
        raise Invalid(f"--active takes a number of minutes, not {minutes}.") from None


def _unchanged(as_json: bool, told: dict[str, object]) -> None:
    if as_json:
        show_json(told | {"dry_run": True})
        return
    say("Nothing was changed.")


def _preview(row: Row, heading: str) -> None:
    say(heading, bold=True)
    table(LANES, [lane_cells(row, time.time())])


def _tell(row: Row, now: float) -> None:
    say(row["key"], bold=True)
    _line("Phase", _phase(row))
    _line("Conversation", f"{name_of(row)} ({row['session_id']})" if row["session_id"] else "none")
    _line("Queue", f"{row['waiting']} waiting, {row['running']} running")
    _line("At work", worker_words(row["at_work"]))
    _line("Background", "something still runs" if row["background_work"] else "nothing")
    _line("Resets", f"{policy_words(row['policy'])}; next: {next_reset(row, now)}")
    _line("Last message", f"{ago(row['last_person_at'], now)} ({moment(row['last_person_at'])})")
    _line("Belongs to", f"{row['principal']}, seen by {row['audience']}" if row["audience"] else row["principal"])
    if row["source"]:
        source = SessionSource.from_dict(row["source"])
        _line("Origin", f"{one_line(source.description)} on {one_line(source.platform)}")
        _line("", ", ".join(f"{name} {one_line(str(value))}" for name, value in row["origin"].items()))
    chosen = {name: value for name, value in row["overrides"].items() if value is not None}
    _line("Overrides", ", ".join(f"{name} {value}" for name, value in chosen.items()) or "none")
    _rows(row, now)


def _phase(row: Row) -> str:
    since = f" since {moment(row['phase_since'])}" if row["phase_since"] else ""
    return f"{row['phase']}{since}" + (f" ({row['phase_reason']})" if row["phase_reason"] else "")


def _rows(row: Row, now: float) -> None:
    if row["resets"]:
        say()
        rows = [
            [moment(one["at"]), WHY_ANEW[one["reason"]], one["who"], one["from_session"] or "—", one["to_session"]]
            for one in row["resets"]
        ]
        table(_RESETS, rows)
    if row["inbox"]:
        say()
        shown = [at for at, column in enumerate(MESSAGES) if column.name != "Lane"]
        cells = [entry_row_cells(one, now) for one in row["inbox"]]
        table([MESSAGES[at] for at in shown], [[one[at] for at in shown] for one in cells])
    if row["outbox"]:
        say()
        say("Not delivered:", bold=True)
        told = [
            [one["state"], ago(one["created_at"], now), one["what"], one_line(one["text"]), one["reason"] or ""]
            for one in row["outbox"]
        ]
        table(_LETTERS, told)


def _line(name: str, text: str) -> None:
    say(f"{name:<{_INDENT}}{text}")
