"""`segue lanes`: where people talk to the agent, how each of these places stands, and how to begin anew there."""

import time
from datetime import UTC, datetime, timedelta

import click

from segue import app
from segue.cli.completing import complete_lane
from segue.cli.lane_words import (
    LANES,
    MESSAGES,
    entry_cells,
    lane_cells,
    moment,
    name_of,
    next_reset,
    policy_words,
    worker_words,
)
from segue.cli.options import AS_JSON, DRY_RUN, YES
from segue.cli.output import Column, confirm, note, say, show_json, table
from segue.config import Settings
from segue.core.documents import WHY_ANEW
from segue.core.errors import Invalid
from segue.core.moments import ago
from segue.core.origins import origin_of
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count, one_line
from segue.facade.lane_rows import detail_row, lane_row, overrides_row
from segue.ports.store import Transaction
from segue.sessions import minding
from segue.sessions.overseeing import LaneDetail, LaneView, Sight, find_lane, list_lanes, look_at, look_into
from segue.upkeep.living import is_gone, this_run

_MOST = 10**9
_INDENT = 14
_RESETS = [Column("When"), Column("Why", 1), Column("Who", yields=1), Column("From"), Column("To")]
_LETTERS = [Column("State"), Column("Age", yields=1), Column("What", yields=2), Column("Text", 3), Column("Reason", 2)]

KEY = click.argument("wanted", metavar="KEY", shell_complete=complete_lane)


@click.group()
def lanes() -> None:
    """Where people talk to your agent: how each place stands, and what to do about it.

    KEY is the key of a lane, or a part of it that no other lane has.
    """


@lanes.command("list")
@click.option(
    "--active", "active_minutes", type=float, metavar="MINUTES", help="Only those in use in the last minutes."
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, _MOST), help="How many at most.")
@AS_JSON
def list_(active_minutes: float | None, limit: int, as_json: bool) -> None:
    """Show the lanes that were in use last."""
    now, settings = time.time(), app.settings()
    since = None if active_minutes is None else _before(now, active_minutes)
    with app.open_for_reading(settings) as store:
        found = store.read(OWNER_AT_CONSOLE, list_lanes, _sight(settings), since, limit)
    if as_json:
        show_json([lane_row(view) for view in found])
    elif found:
        table(LANES, [lane_cells(view, now) for view in found])
    else:
        note("Nobody has talked to your agent on a platform yet." if since is None else "No lane was in use.")


@lanes.command("show")
@KEY
@AS_JSON
def show(wanted: str, as_json: bool) -> None:
    """Show everything about one lane."""
    settings = app.settings()
    with app.open_for_reading(settings) as store:
        detail = store.read(OWNER_AT_CONSOLE, look_into, wanted, _sight(settings))
    if as_json:
        show_json(detail_row(detail))
        return
    _tell(detail, time.time())


@lanes.command("reset")
@KEY
@YES
@DRY_RUN
@AS_JSON
def reset(wanted: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Begin a new conversation in a lane. The old one is kept, and what waits is answered in the new one."""
    settings = app.settings()
    with app.open_store(chosen=settings) as store:
        view = store.read(OWNER_AT_CONSOLE, _free, wanted, _sight(settings))
        key = view.lane.key
        if not as_json:
            _preview(view, "A new conversation begins in:")
        if dry_run:
            _unchanged(as_json, {"key": key, "old_session_id": view.lane.session_id, "session_id": None})
            return
        confirm("Begin a new conversation there?", yes=yes)
        fresh, now = app.new_session_id(), datetime.now(UTC)
        done = store.write(OWNER_AT_CONSOLE, minding.renew_lane, key, fresh, now, _hand())
    if as_json:
        told = {"key": key, "old_session_id": done.old_session, "session_id": done.lane.session_id}
        show_json(told | {"given_up": done.given_up, "waiting": done.waiting, "dry_run": False})
        return
    say(f"{key} goes on in {done.lane.session_id}.")
    if done.old_session:
        say(f"The old conversation is kept: `segue sessions show {done.old_session}`.")
    if done.given_up:
        what = f"{count(done.given_up, 'message')} had an answer that was cut off, and get none"
        say(f"{what}; `segue inbox list` shows them, and `segue inbox retry` answers them after all.")


@lanes.command("delete")
@KEY
@YES
@DRY_RUN
@AS_JSON
def delete(wanted: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Forget a lane in which nothing waits. Its conversation ends and is kept; the next message begins afresh."""
    settings = app.settings()
    with app.open_store(chosen=settings) as store:
        view = store.read(OWNER_AT_CONSOLE, _idle, wanted, _sight(settings))
        lane = view.lane
        if not as_json:
            _preview(view, "To be forgotten:")
        if dry_run:
            _unchanged(as_json, {"key": lane.key, "session_id": lane.session_id})
            return
        confirm("Forget it?", yes=yes)
        store.write(OWNER_AT_CONSOLE, minding.forget_lane, lane.key, datetime.now(UTC), _hand())
    if as_json:
        show_json({"key": lane.key, "session_id": lane.session_id, "dry_run": False})
        return
    kept = f" Its conversation is kept: `segue sessions show {lane.session_id}`." if lane.session_id else ""
    say(f"{lane.key} is forgotten.{kept}")


def _free(tx: Transaction, wanted: str, sight: Sight) -> LaneView:
    """A lane in which nobody works."""
    lane = find_lane(tx, wanted)
    minding.check_free(tx, lane, sight.is_gone)
    return look_at(tx, lane, sight)


def _idle(tx: Transaction, wanted: str, sight: Sight) -> LaneView:
    """A lane in which nothing is to be done."""
    view = _free(tx, wanted, sight)
    minding.check_idle(tx, view.lane)
    return view


def _sight(settings: Settings) -> Sight:
    return Sight(settings.session.main_key, settings.reset_policies, is_gone)


def _hand() -> minding.Hand:
    return minding.Hand(this_run("segue lanes").id, is_gone)


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


def _preview(view: LaneView, heading: str) -> None:
    say(heading, bold=True)
    table(LANES, [lane_cells(view, time.time())])


def _tell(detail: LaneDetail, now: float) -> None:
    view, lane = detail.view, detail.view.lane
    say(lane.key, bold=True)
    _line("Phase", _phase(detail))
    _line("Conversation", f"{name_of(view)} ({view.session.id})" if view.session else "none")
    _line("Queue", f"{view.standing.waiting} waiting, {view.standing.running} running")
    _line("At work", worker_words(view.worker))
    _line("Background", "something still runs" if detail.has_background_work else "nothing")
    _line("Resets", f"{policy_words(view.policy)}; next: {next_reset(view, now)}")
    _line("Last message", f"{ago(lane.last_person_at.timestamp(), now)} ({moment(lane.last_person_at)})")
    _line("Belongs to", f"{lane.principal}, seen by {lane.audience}" if lane.audience else lane.principal)
    if lane.origin:
        _line("Origin", f"{one_line(lane.origin.description)} on {one_line(lane.origin.platform)}")
        known = origin_of(lane.origin).to_dict()
        _line("", ", ".join(f"{name} {one_line(str(value))}" for name, value in known.items()))
    chosen = {name: value for name, value in overrides_row(detail.overrides).items() if value is not None}
    _line("Overrides", ", ".join(f"{name} {value}" for name, value in chosen.items()) or "none")
    _rows(detail, now)


def _phase(detail: LaneDetail) -> str:
    lane = detail.view.lane
    since = f" since {moment(lane.phase_since)}" if lane.phase_since else ""
    return f"{lane.phase}{since}" + (f" ({lane.phase_reason})" if lane.phase_reason else "")


def _rows(detail: LaneDetail, now: float) -> None:
    if detail.resets:
        say()
        rows = [
            [moment(one.at), WHY_ANEW[one.reason], one.who, one.from_session or "—", one.to_session]
            for one in detail.resets
        ]
        table(_RESETS, rows)
    if detail.entries:
        say()
        shown = [at for at, column in enumerate(MESSAGES) if column.name != "Lane"]
        cells = [entry_cells(entry, now) for entry in detail.entries]
        table([MESSAGES[at] for at in shown], [[row[at] for at in shown] for row in cells])
    if detail.letters:
        say()
        say("Not delivered:", bold=True)
        told = [
            [one.state, ago(one.created_at, now), one.what, one_line(one.text), one.reason or ""]
            for one in detail.letters
        ]
        table(_LETTERS, told)


def _line(name: str, text: str) -> None:
    say(f"{name:<{_INDENT}}{text}")
