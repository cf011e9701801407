"""Lanes that are begun anew or forgotten: those of this home, or those of another machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from segue import app
from segue.config import Settings
from segue.core.scope import OWNER_AT_CONSOLE
from segue.facade.lane_rows import lane_row
from segue.ports.store import Transaction
from segue.sessions import minding
from segue.sessions.overseeing import LaneView, Sight, find_lane, look_at
from segue.storage.store import SqlStore
from segue.upkeep.living import is_gone, this_run

if TYPE_CHECKING:
    from segue.cli.remote import Asked

Row = dict[str, Any]


class Places(Protocol):
    @contextmanager
    def opened(self) -> Iterator[None]: ...
    def free(self, wanted: str) -> Row:
        """A lane in which nobody works."""

    def idle(self, wanted: str) -> Row:
        """A lane in which nothing is to be done."""

    def renew(self, key: str) -> Row: ...
    def forget(self, key: str) -> None: ...


class Ours(Places):
    """Those of this home."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store: SqlStore

    @contextmanager
    def opened(self) -> Iterator[None]:
        with app.open_store(chosen=self._settings) as self._store:
            yield

    def free(self, wanted: str) -> Row:
        return lane_row(self._store.read(OWNER_AT_CONSOLE, _free, wanted, sight_of(self._settings)))

    def idle(self, wanted: str) -> Row:
        return lane_row(self._store.read(OWNER_AT_CONSOLE, _idle, wanted, sight_of(self._settings)))

    def renew(self, key: str) -> Row:
        fresh, now = app.new_session_id(), datetime.now(UTC)
        done = self._store.write(OWNER_AT_CONSOLE, minding.renew_lane, key, fresh, now, _hand())
        told = {"key": key, "old_session_id": done.old_session, "session_id": done.lane.session_id}
        return told | {"given_up": done.given_up, "waiting": done.waiting}

    def forget(self, key: str) -> None:
        self._store.write(OWNER_AT_CONSOLE, minding.forget_lane, key, datetime.now(UTC), _hand())


class Elsewhere(Places):
    """Those of another machine. Whether something is at work there is found out when it is done."""

    def __init__(self, there: "Asked") -> None:
        self._there = there

    @contextmanager
    def opened(self) -> Iterator[None]:
        yield

    def free(self, wanted: str) -> Row:
        row: Row = self._there.ask("lanes.get", {"key": wanted})
        return row

    idle = free

    def renew(self, key: str) -> Row:
        done: Row = self._there.ask("lanes.reset", {"key": key})
        return done

    def forget(self, key: str) -> None:
        self._there.ask("lanes.delete", {"key": key})


def sight_of(settings: Settings) -> Sight:
    return Sight(settings.session.main_key, settings.reset_policies, is_gone)


def _free(tx: Transaction, wanted: str, sight: Sight) -> LaneView:
    lane = find_lane(tx, wanted)
    minding.check_free(tx, lane, sight.is_gone)
    return look_at(tx, lane, sight)


def _idle(tx: Transaction, wanted: str, sight: Sight) -> LaneView:
    view = _free(tx, wanted, sight)
    minding.check_idle(tx, view.lane)
    return view


def _hand() -> minding.Hand:
    return minding.Hand(this_run("segue lanes").id, is_gone)
