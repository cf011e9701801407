"""`SessionStore`: lanes for programs that run their own gateway. `docs/python.md` has an example of each method."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from segue import app
from segue.config import Settings
from segue.core.errors import choice
from segue.core.keys import build_key, place_of
from segue.core.lifecycle import Interruption, Lane, Phase
from segue.core.messages import draft_from
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sources import SessionSource
from segue.facade.session_entry import SessionEntry, entry_of
from segue.ports.store import Filter, Transaction
from segue.sessions import opening, reading, recording, rewinding, steering
from segue.sessions.finding import get_session


class SessionStore:
    """Which session each conversation on each platform is in."""

    def __init__(
        self,
        db_path: str | Path | None = None,
        config: Settings | None = None,
        has_active_processes_fn: Callable[[str], bool] | None = None,
    ) -> None:
        self._settings = config or app.settings()
        self._store = app.open_store(db_path, chosen=self._settings)
        self._is_busy = has_active_processes_fn or (lambda _key: False)
        freshness = timedelta(seconds=self._settings.agent.auto_continue_freshness)
        self._rules = opening.Rules(self._settings.key_rules, self._settings.reset_policies, freshness)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get_or_create_session(self, source: SessionSource, force_new: bool = False) -> SessionEntry:
        """The session a message from this source belongs to, new when the lane is new, suspended or expired."""
        busy = self._is_busy(build_key(place_of(source, self._rules.keys)))
        arrival = opening.Arrival(source, _now(), app.new_session_id(), busy=busy, force_new=force_new)
        return self._entry(lambda tx: opening.open_session(tx, arrival, self._rules).lane)

    def update_session(self, session_key: str, last_prompt_tokens: int | None = None) -> None:
        """Note that something happened in a lane. Only a person's message moves the clock that resets go by."""
        self._store.write(OWNER_AT_CONSOLE, steering.touch_lane, session_key, _now(), last_prompt_tokens)

    def reset_session(self, session_key: str, display_name: str | None = None) -> SessionEntry:
        """`/new`: a new session in the lane, whose chat may have got another name."""
        fresh_id = app.new_session_id()
        return self._entry(steering.reset_on_request, session_key, fresh_id, _now(), "owner", display_name)

    def switch_session(self, session_key: str, target_session_id: str) -> SessionEntry:
        """`/resume`: the lane goes on with an existing session."""
        return self._entry(steering.switch_session, session_key, target_session_id, _now())

    def suspend_session(self, session_key: str) -> bool:
        """The next message starts a new session."""
        lane = self._store.write(OWNER_AT_CONSOLE, steering.suspend_lane, session_key, _now())
        return lane.phase is Phase.SUSPENDED

    def mark_resume_pending(self, session_key: str, reason: str = Interruption.RESTART_DRAIN) -> bool:
        """A turn was cut off: keep the session. False when the lane is suspended, which wins."""
        why = choice(Interruption, reason, "a reason")
        lane = self._store.write(OWNER_AT_CONSOLE, steering.interrupt_lane, session_key, why, _now())
        return lane.phase is Phase.INTERRUPTED

    def clear_resume_pending(self, session_key: str) -> bool:
        """A turn completed."""
        lane = self._store.write(OWNER_AT_CONSOLE, steering.complete_turn, session_key)
        return lane.phase is not Phase.INTERRUPTED

    def suspend_recently_active(self, max_age_seconds: float = 120) -> int:
        """After a crash: keep the sessions of lanes that were in use a moment ago; how many."""
        age = timedelta(seconds=max_age_seconds)
        return self._store.write(OWNER_AT_CONSOLE, steering.interrupt_recent, _now(), age)

    def prune_old_entries(self, max_age_days: float) -> int:
        """Forget lanes that nobody used for so long; suspended ones and those with running processes stay.

        An age of 0 is no limit.
        """
        if max_age_days <= 0:
            return 0
        lanes = self._store.read(OWNER_AT_CONSOLE, lambda tx: tx.lanes.listed())
        busy = [lane.key for lane in lanes if self._is_busy(lane.key)]
        age = timedelta(days=max_age_days)
        return self._store.write(OWNER_AT_CONSOLE, steering.prune_lanes, _now(), age, busy)

    def list_sessions(self, active_minutes: float | None = None) -> list[SessionEntry]:
        """The current session of every lane, the most recently used first."""
        since = None if active_minutes is None else _now() - timedelta(minutes=active_minutes)

        def work(tx: Transaction) -> list[SessionEntry]:
            return [_entry(tx, lane) for lane in tx.lanes.listed(since) if lane.session_id]

        return self._store.read(OWNER_AT_CONSOLE, work)

    def lookup_by_session_id(self, session_id: str) -> SessionEntry | None:
        """The lane that is in this session now."""

        def work(tx: Transaction) -> SessionEntry | None:
            lane = tx.lanes.find_by_session(session_id)
            return _entry(tx, lane) if lane else None

        return self._store.read(OWNER_AT_CONSOLE, work)

    def has_any_sessions(self) -> bool:
        """Whether any session was ever created here, and not purged."""
        wanted = Filter(archived=None, tips_only=False)
        return self._store.read(
            OWNER_AT_CONSOLE, lambda tx: bool(tx.sessions.listed(wanted, 1, 0) or tx.trash.listed())
        )

    def append_to_transcript(self, session_id: str, message: Mapping[str, Any], skip_db: bool = False) -> None:
        """Add a message in chat format; `skip_db` when the agent stored it already."""
        if not skip_db:
            stored = draft_from(message, _now().timestamp())
            self._store.write(OWNER_AT_CONSOLE, recording.append_message, session_id, stored)

    def rewrite_transcript(self, session_id: str, messages: list[Mapping[str, Any]]) -> bool:
        """Let a transcript say something else from now on; what it said is kept as undone."""
        drafts = [draft_from(message, _now().timestamp()) for message in messages]
        self._store.write(OWNER_AT_CONSOLE, recording.replace_messages, session_id, drafts)
        return True

    def load_transcript(self, session_id: str) -> list[dict[str, Any]]:
        """The conversation in chat format."""
        return self._store.read(OWNER_AT_CONSOLE, reading.conversation, session_id)

    def rewind_session(self, session_id: str, n: int = 1) -> dict[str, Any]:
        """Undo the last turns."""
        rewound = self._store.write(OWNER_AT_CONSOLE, rewinding.rewind_turns, session_id, n)
        text = rewound.target.original if rewound.target else None
        return {"rewound_count": rewound.messages, "turns_undone": rewound.turns, "target_text": text}

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _entry(self, work: Callable[..., Lane], *args: object) -> SessionEntry:
        def changed(tx: Transaction) -> SessionEntry:
            return _entry(tx, work(tx, *args))

        return self._store.write(OWNER_AT_CONSOLE, changed)


def _entry(tx: Transaction, lane: Lane) -> SessionEntry:
    session = get_session(tx, lane.session_id or "")
    return entry_of(lane, session, tx.lanes.reset_into(session.id))


def _now() -> datetime:
    return datetime.now(UTC)
