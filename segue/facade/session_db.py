"""`SessionDB`: sessions and messages for programs, a method for each act. `docs/python.md` has an example of each."""

import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from segue import app
from segue.core.errors import Invalid, choice
from segue.core.messages import JSON_COLUMNS, Message, decode, draft, encode
from segue.core.moments import DAY
from segue.core.portable import from_mapping
from segue.core.scope import OWNER, Principal, scope_for
from segue.core.sessions import COMPRESSION, Kind, Session, as_row, kind_of
from segue.core.text import storable
from segue.core.usage import Billing, Purpose, Usage
from segue.facade.searching import names_in, searching_rows
from segue.ports.store import Filter, Narrowing, Transaction
from segue.sessions import (
    discarding,
    exporting,
    finding,
    importing,
    listing,
    marking,
    reading,
    recording,
    rewinding,
    starting,
    titling,
)
from segue.sessions.importing import OnConflict
from segue.sessions.minding import Hand
from segue.sessions.searching import Sort, Wish
from segue.upkeep.living import is_gone, this_run


class SessionDB:
    """A store of conversations, seen by one principal. Safe from several threads; many processes may share the file."""

    def __init__(
        self, db_path: str | Path | None = None, read_only: bool = False, principal: Principal | str = OWNER
    ) -> None:
        self._store = app.open_store(db_path, read_only=read_only)
        self._scope = scope_for(Principal(principal))
        self._closing = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Sessions

    def create_session(
        self,
        session_id: str | None = None,
        source: str = "cli",
        *,
        model: str | None = None,
        model_config: Mapping[str, Any] | str | None = None,
        system_prompt: str | None = None,
        user_id: str | None = None,
        parent_session_id: str | None = None,
        title: str | None = None,
        kind: str | None = None,
        agent: str = "main",
        cwd: str | None = None,
        spawned_by: str | None = None,
        branched_from: str | None = None,
        principal: str | None = None,
        started_at: float | None = None,
    ) -> str:
        """Begin a session and return its id, a new one when none is given."""
        now = time.time() if started_at is None else float(started_at)
        session = Session(
            id=session_id or app.new_session_id(),
            source=source,
            user_id=user_id,
            model=model,
            model_config=model_config
            if model_config is None or isinstance(model_config, str)
            else encode(model_config),
            system_prompt=system_prompt,
            parent_session_id=parent_session_id,
            kind=choice(Kind, kind, "a kind of session") if kind else kind_of(source),
            agent=agent,
            cwd=cwd,
            spawned_by=spawned_by,
            branched_from=branched_from,
            principal=principal or self._scope.principal,
            started_at=now,
            start_reason=COMPRESSION if parent_session_id else "new",
        )
        self._store.write(self._scope, _create_titled, session, title)
        return session.id

    def end_session(self, session_id: str, end_reason: str) -> None:
        """Close a session. The first reason stays."""
        self._store.write(self._scope, starting.end_session, session_id, end_reason, time.time())

    def reopen_session(self, session_id: str) -> None:
        """Clear the end of a session, to carry on with it."""
        self._store.write(self._scope, starting.reopen_session, session_id)

    def get_session(self, session_id: str) -> dict[str, Any] | None:
        """Every column of a session, or None."""
        found = self._store.read(self._scope, lambda tx: tx.sessions.find(session_id))
        return as_row(found) if found else None

    def set_session_archived(self, session_id: str, archived: bool) -> bool:
        """Hide a conversation from lists, or show it again; False when there is no such session."""
        if self.get_session(session_id) is None:
            return False
        self._store.write(self._scope, marking.archive_conversation, session_id, archived=archived)
        return True

    def update_system_prompt(self, session_id: str, system_prompt: str) -> None:
        """Keep the system prompt that the session runs with."""
        self._store.write(self._scope, recording.keep_system_prompt, session_id, system_prompt)

    def update_token_counts(
        self,
        session_id: str,
        input_tokens: int = 0,
        output_tokens: int = 0,
        model: str | None = None,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
        reasoning_tokens: int = 0,
        estimated_cost_usd: float | None = None,
        actual_cost_usd: float | None = None,
        cost_status: str | None = None,
        cost_source: str | None = None,
        pricing_version: str | None = None,
        billing_provider: str | None = None,
        billing_base_url: str | None = None,
        billing_mode: str | None = None,
        api_call_count: int = 0,
        absolute: bool = False,
    ) -> None:
        """Add what model calls used to a session; with `absolute`, set the totals."""
        usage = Usage(
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_write_tokens,
            reasoning_tokens,
            api_call_count,
            estimated_cost_usd,
            actual_cost_usd,
        )
        billing = Billing(
            model, billing_provider, billing_base_url, billing_mode, cost_status, cost_source, pricing_version
        )
        if absolute:
            self._store.write(self._scope, recording.set_usage, session_id, usage, billing, time.time())
        else:
            self._store.write(self._scope, recording.add_usage, session_id, usage, billing, time.time(), Purpose.REPORT)

    # Messages

    def append_message(
        self,
        session_id: str,
        role: str,
        content: Any = None,
        tool_name: str | None = None,
        tool_calls: Any = None,
        tool_call_id: str | None = None,
        token_count: int | None = None,
        finish_reason: str | None = None,
        reasoning: str | None = None,
        reasoning_content: str | None = None,
        reasoning_details: Any = None,
        codex_reasoning_items: Any = None,
        codex_message_items: Any = None,
        platform_message_id: str | None = None,
        author: str | None = None,
        provider: str | None = None,
        attachments: Any = None,
        extra: Mapping[str, Any] | None = None,
        timestamp: float | None = None,
    ) -> int:
        """Add a message and return its row id. When this returns, the message is on disk."""
        message = draft(
            role,
            content,
            time.time() if timestamp is None else timestamp,
            tool_name=tool_name,
            tool_calls=tool_calls,
            tool_call_id=tool_call_id,
            token_count=token_count,
            finish_reason=finish_reason,
            reasoning=reasoning,
            reasoning_content=reasoning_content,
            reasoning_details=reasoning_details,
            codex_reasoning_items=codex_reasoning_items,
            codex_message_items=codex_message_items,
            platform_message_id=platform_message_id,
            author=author,
            provider=provider,
            attachments=attachments,
            extra=dict(extra) if extra else None,
        )
        return self._store.write(self._scope, recording.append_message, session_id, message).id

    def get_messages(
        self,
        session_id: str,
        include_inactive: bool = False,
        limit: int | None = None,
        offset: int = 0,
        last: int | None = None,
    ) -> list[dict[str, Any]]:
        """The messages of one session with all their columns, or only the `last` few."""

        def work(tx: Transaction) -> list[Message]:
            if last is not None:
                return tx.messages.last(session_id, last, every_state=include_inactive)
            return tx.messages.of(session_id, every_state=include_inactive, limit=limit, offset=offset)

        return [message_row(message) for message in self._store.read(self._scope, work)]

    def get_messages_as_conversation(self, session_id: str, provider: str | None = None) -> list[dict[str, Any]]:
        """The conversation in OpenAI chat format, always valid; a compressed one reads through to its parents."""
        return self._store.read(self._scope, reading.conversation, session_id, provider=provider)

    def rewind_to_message(self, session_id: str, target_message_id: int) -> dict[str, Any]:
        """Undo a user message and all that followed."""
        rewound = self._store.write(self._scope, rewinding.rewind_to, session_id, target_message_id)
        assert rewound.target is not None
        head = self._store.read(self._scope, lambda tx: tx.messages.last(session_id, 1))
        return {
            "rewound_count": rewound.messages,
            "target_message": message_row(rewound.target),
            "new_head_id": head[0].id if head else None,
        }

    def restore_rewound(self, session_id: str, since_message_id: int) -> int:
        """Take an undo back; the number of messages that speak again."""
        return self._store.write(self._scope, rewinding.restore_rewound, session_id, since_message_id)

    def clear_messages(self, session_id: str) -> None:
        """Empty a session but keep its record; the messages are kept as undone."""
        self._store.write(self._scope, recording.clear_messages, session_id)

    # Titles and finding

    def set_session_title(self, session_id: str, title: str | None) -> bool:
        """Name a session, or take its name away. A taken or over-long title is an error."""
        self._store.write(self._scope, titling.set_title, session_id, title)
        return True

    def get_session_title(self, session_id: str) -> str | None:
        """The title of a session, if it has one."""
        found = self._store.read(self._scope, lambda tx: tx.sessions.find(session_id))
        return found.title if found else None

    def resolve_session_by_title(self, title: str) -> str | None:
        """The newest part of the conversation that carries the title."""
        return self._store.read(self._scope, finding.find_titled, title)

    def get_next_title_in_lineage(self, base_title: str) -> str:
        """The next free `#N` of a title."""
        return self._store.read(self._scope, titling.free_title, self._scope.principal, base_title)

    def resolve_session_id(self, session_id_or_prefix: str) -> str | None:
        """The session with that id or the only one whose id begins so; several are an error that lists them."""
        return self._store.read(self._scope, finding.find_id, session_id_or_prefix)

    # Lists and counts

    def list_sessions_rich(
        self,
        source: str | None = None,
        exclude_sources: Iterable[str] = (),
        limit: int = 20,
        offset: int = 0,
        include_children: bool = False,
        min_message_count: int = 0,
        include_archived: bool = False,
        archived_only: bool = False,
        kind: str | None = None,
        tag: str | None = None,
    ) -> list[dict[str, Any]]:
        """Conversations with preview and last activity, the most recently active first."""
        wanted = Filter(
            sources=(source,) if source else (),
            exclude_sources=tuple(exclude_sources),
            kinds=(kind,) if kind else () if include_children else (Kind.INTERACTIVE,),
            archived=True if archived_only else None if include_archived else False,
            tips_only=not include_children,
            min_messages=min_message_count,
            tag=tag,
        )
        rows = self._store.read(self._scope, listing.list_rows, wanted, limit, offset)
        for row in rows:
            row["preview"], row["last_active"] = row["first_line"][:60], row["last_active_at"]
        return rows

    def search_sessions(self, source: str | None = None, limit: int = 20, offset: int = 0) -> list[dict[str, Any]]:
        """Every session of a source, in all kinds and parts, the most recently active first."""
        wanted = Filter(sources=(source,) if source else (), archived=None, tips_only=False)
        return self._store.read(self._scope, listing.list_rows, wanted, limit, offset)

    def search_messages(
        self,
        query: str,
        source_filter: str | Iterable[str] | None = None,
        exclude_sources: str | Iterable[str] = (),
        role_filter: str | Iterable[str] | None = None,
        limit: int = 20,
        offset: int = 0,
        sort: str = "rank",
    ) -> list[dict[str, Any]]:
        """Messages that a query asks for, the best first, each with a snippet and what was said around it."""
        narrowing = Narrowing(names_in(source_filter), names_in(exclude_sources), names_in(role_filter))
        wish = Wish(limit, offset, choice(Sort, sort, "a way to sort"), narrowing)
        return searching_rows(self._store, self._scope, query, wish)

    def session_count(self, source: str | None = None, include_archived: bool = True) -> int:
        """How many sessions there are."""
        wanted = Filter(
            sources=(source,) if source else (), archived=None if include_archived else False, tips_only=False
        )
        return self._store.read(self._scope, listing.count_sessions, wanted)

    def message_count(self, session_id: str | None = None) -> int:
        """How many live messages there are, in one session or in all."""
        return self._store.read(self._scope, lambda tx: tx.messages.count(session_id))

    # Export, import, removal

    def export_session(self, session_id: str) -> dict[str, Any] | None:
        """A session whole: every column and every message in every state."""
        if self.get_session(session_id) is None:
            return None
        return self._store.read(self._scope, exporting.export_session, session_id)

    def export_all(self, source: str | None = None) -> list[dict[str, Any]]:
        """All sessions whole, oldest first. For very many, `segue sessions export` uses less memory."""

        def work(tx: Transaction) -> list[dict[str, Any]]:
            sessions = tx.sessions.in_order((source,) if source else ())
            return [exporting.export_session(tx, session.id) for session in sessions]

        return self._store.read(self._scope, work)

    def import_sessions(
        self, sessions: Iterable[Mapping[str, Any]], on_conflict: OnConflict | str = OnConflict.SKIP
    ) -> dict[str, Any]:
        """Take exported sessions in, each by itself; what could not be taken is reported by its place in the list."""
        policy = choice(OnConflict, on_conflict, "a policy")
        report: dict[str, Any] = {outcome.value: 0 for outcome in importing.Outcome} | {"sessions": [], "errors": []}
        for number, data in enumerate(sessions, 1):
            try:
                done = self._store.write(
                    self._scope,
                    importing.import_session,
                    from_mapping(data),
                    on_conflict=policy,
                    now=time.time(),
                )
            except Invalid as error:
                report["errors"].append({"number": number, "error": str(error)})
                continue
            report[done.outcome.value] += 1
            report["sessions"].append(done._asdict())
        return report

    def delete_session(self, session_id: str) -> bool:
        """Move a conversation into the trash with all its parts; False when there is no such session."""
        if self.get_session(session_id) is None:
            return False
        self._store.write(self._scope, discarding.discard_conversation, session_id, time.time())
        return True

    def prune_sessions(
        self, older_than_days: float = 90, source: str | None = None, *, include_idle: bool = False
    ) -> int:
        """Move ended conversations without activity for that long into the trash; how many sessions went.

        With `include_idle` also open ones that nobody works in.
        """
        now = time.time()
        sources = (source,) if source else ()
        idle = Hand(this_run("segue").id, is_gone) if include_idle else None
        return len(self._store.write(self._scope, discarding.prune, now - older_than_days * DAY, now, sources, idle))

    # The store itself

    def get_meta(self, key: str) -> str | None:
        """A small fact kept beside the sessions."""
        return self._store.read(self._scope, lambda tx: tx.meta.get(key))

    def set_meta(self, key: str, value: str) -> None:
        """Keep a small fact beside the sessions."""
        self._store.write(self._scope, lambda tx: tx.meta.set(key, storable(value)))

    def vacuum(self) -> None:
        """Give free space back to the disk."""
        self._store.compact()

    def close(self) -> None:
        """Close the store. Closing twice is fine."""
        with self._closing:
            self._store.close()


def message_row(message: Message) -> dict[str, Any]:
    """A message as a dictionary of its columns, JSON ones as values."""
    row = message._asdict() | {"active": int(message.is_live), "compacted": int(message.state == "compacted")}
    row["content"] = message.original
    del row["content_json"]
    for name in JSON_COLUMNS:
        row[name] = decode(row[name])
    return row


def _create_titled(tx: Transaction, session: Session, title: str | None) -> None:
    starting.create_session(tx, session)
    if title is not None:
        titling.set_title(tx, session.id, title)
