"""`sessions.*`: conversations are listed, found, read, named, put aside and removed."""

import json
import time
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from segue.core.credentials import Level
from segue.core.errors import Invalid
from segue.core.messages import LARGEST_SEQ
from segue.core.recap import recap
from segue.core.redaction import Secrets
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sessions import Kind, as_row
from segue.facade.searching import Ask, consult
from segue.facade.searching import as_row as hit_row
from segue.ports.store import Filter, Narrowing, Transaction
from segue.sessions import attaching, discarding, exporting, finding, listing, marking
from segue.sessions.searching import Sort, Wish
from segue.web.budgets import MAX_ANSWER
from segue.web.rpc.commands import carried_out
from segue.web.rpc.method import Caller, Closed, Count, Id, Method, Names, Offset
from segue.web.rpc.rows import SessionRow, public_session, session_row
from segue.web.rpc.troubles import NOT_NOW, Refused

_RECAP = 60  # messages looked at for a preview
_PAGE_CHARS = 1_000_000  # of a page of an export, about


class ListParams(Closed):
    sources: Names = Field([], description="Only these platforms.")
    kind: Kind | None = Field(None, strict=False, description="Another kind than interactive.")
    archived: bool = Field(False, description="The archived ones instead.")
    every: bool = Field(False, description="Every kind, archived or not, and every part of a conversation.")
    tag: str | None = Field(None, max_length=200, description="Only conversations with this tag.")
    agent: str | None = Field(None, max_length=200, description="Only conversations of this agent.")
    active_since: float | None = Field(None, description="Only those active since, in Unix seconds.")
    limit: Count = 20
    offset: Offset = 0


class Listing(Closed):
    sessions: list[SessionRow]
    has_more: bool


class OneParams(Closed):
    id: Id = Field(description="The id of a session, the beginning of one, or a title.")


class Whole(Closed):
    session: SessionRow
    parts: list[str] = Field(description="The sessions of the conversation, from its beginning.")
    tip: str = Field(description="Where the conversation goes on now.")


class PreviewLine(Closed):
    voice: str
    text: str


class Preview(Closed):
    session: SessionRow
    earlier: int = Field(description="How many messages came before.")
    lines: list[PreviewLine]


class ResolveParams(Closed):
    name: str = Field(min_length=1, max_length=600, description="An id, the beginning of one, or a title.")


class Resolved(Closed):
    id: str
    tip: str


class PatchParams(OneParams):
    title: str | None = Field(None, max_length=10_000, description="An empty one takes it away.")
    archived: bool | None = Field(None, description="Put it aside, or back.")
    pinned: bool | None = Field(None, description="Keep it from being pruned, or no longer.")
    add_tags: Names = Field([], description="Tags it gets.")
    remove_tags: Names = Field([], description="Tags it loses.")


class DeleteParams(OneParams):
    purge: bool = Field(False, description="Every copy at once, for good, also from the trash.")


class Deleted(Closed):
    sessions: list[str]
    is_purged: bool


class ResetDone(Closed):
    lane_key: str
    old_session_id: str | None
    session_id: str | None


class CompactParams(OneParams):
    focus: str = Field("", max_length=2000, description="What the summary should be about above all.")


class Said(Closed):
    text: str


class SearchParams(Closed):
    query: str = Field(max_length=2000, description="What to look for, as on the page about searching.")
    sources: Names = Field([], description="Only these platforms.")
    exclude_sources: Names = Field([], description="All platforms but these.")
    roles: Annotated[list[Literal["user", "assistant", "tool", "system"]], Field(max_length=4)] = Field(
        [], description="Only what these have said."
    )
    since: float | None = Field(None, description="Only what was said since a moment, in Unix seconds.")
    until: float | None = Field(None, description="Only what was said until a moment, in Unix seconds.")
    sort: Sort = Field(Sort.RANK, strict=False, description="The best first, or the newest or the oldest.")
    limit: Count = 20
    offset: Offset = 0


class HitRow(Closed):
    id: int
    session_id: str
    seq: int
    role: str
    timestamp: float
    tool_name: str | None
    source: str
    model: str | None
    session_started: float
    title: str | None
    snippet: str
    score: float
    context: list[dict[str, str]] = Field(description="What was said before and after, with its role.")


class Hits(Closed):
    hits: list[HitRow]
    notes: list[str] = Field(description="What to know about the answer, such as that it may not be complete.")
    incomplete: bool = Field(description="Whether time ran out before everything was looked at.")


class ExportParams(OneParams):
    raw: bool = Field(False, description="With the secrets that somebody wrote; otherwise they are left out.")
    after: int | None = Field(
        None, ge=-1, le=LARGEST_SEQ, description="Only messages behind this number, as many as fit; -1 for the first."
    )


class Exported(Closed):
    session: dict[str, Any]
    next: int | None = Field(description="The `after` with which a page goes on; null when nothing is left.")


async def list_(caller: Caller, params: ListParams) -> Listing:
    """The most recently active conversations; one in several parts is one row, its newest part."""
    wanted = Filter(
        sources=tuple(params.sources),
        kinds=(params.kind,) if params.kind else () if params.every or params.sources else (Kind.INTERACTIVE,),
        archived=None if params.every and not params.archived else params.archived,
        tips_only=not params.every,
        tag=params.tag,
        agent=params.agent,
        active_since=params.active_since,
    )
    read = caller.premises.read
    rows = await read(caller.scope, listing.list_rows, wanted, params.limit + 1, params.offset)
    has_more = len(rows) > params.limit
    return Listing(sessions=[session_row(row) for row in rows[: params.limit]], has_more=has_more)


async def get(caller: Caller, params: OneParams) -> Whole:
    """A session, and the conversation that it is a part of."""

    def work(tx: Transaction) -> Whole:
        session_id = finding.get_id(tx, params.id)
        parts = [part.id for part in finding.find_parts(tx, session_id)]
        return Whole(session=_row(tx, session_id), parts=parts, tip=parts[-1])

    return await caller.premises.read(caller.scope, work)


async def preview(caller: Caller, params: OneParams) -> Preview:
    """What was said last in a conversation, in a few lines."""

    def work(tx: Transaction) -> Preview:
        session = finding.get_session(tx, finding.find_tip(tx, finding.get_id(tx, params.id)))
        last = tx.messages.last(session.id, _RECAP)
        told = recap(last)
        lines = [PreviewLine(voice=line.voice, text=line.text) for line in told.lines]
        earlier = max(session.message_count - len(last), 0) + told.earlier
        return Preview(session=_row(tx, session.id), earlier=earlier, lines=lines)

    return await caller.premises.read(caller.scope, work)


async def resolve(caller: Caller, params: ResolveParams) -> Resolved:
    """The session that an id, a title or the beginning of an id means."""

    def work(tx: Transaction) -> Resolved:
        session_id = finding.get_id(tx, params.name)
        return Resolved(id=session_id, tip=finding.find_tip(tx, session_id))

    return await caller.premises.read(caller.scope, work)


async def patch(caller: Caller, params: PatchParams) -> SessionRow:
    """Name a conversation, put it aside, keep it for good, or give it tags; what is not said stays as it is."""

    def work(tx: Transaction) -> SessionRow:
        session_id = finding.get_id(tx, params.id)
        marking.mark_conversation(tx, session_id, **params.model_dump(exclude={"id"}))
        return _row(tx, session_id)

    return await caller.premises.write(caller.scope, work)


async def reset(caller: Caller, params: OneParams) -> ResetDone:
    """Begin a new conversation in the lane that a session is in. The old one is kept."""
    key = await _lane_of(caller, params.id)
    await carried_out(caller, key, "/new")
    lane = await caller.premises.read(caller.scope, lambda tx: tx.lanes.find(key))
    return ResetDone(lane_key=key, old_session_id=params.id, session_id=lane.session_id if lane else None)


async def compact(caller: Caller, params: CompactParams) -> Said:
    """Go on from a summary of what was said first, in the lane that a session is in."""
    key = await _lane_of(caller, params.id)
    return Said(text=await carried_out(caller, key, f"/compress {params.focus}".strip()))


async def delete(caller: Caller, params: DeleteParams) -> Deleted:
    """Move a conversation into the trash with all its parts, or remove every copy of it."""

    session_id = await caller.premises.read(caller.scope, finding.get_id, params.id)
    files = await caller.premises.read(OWNER_AT_CONSOLE, attaching.files_of, session_id) if params.purge else set()

    def work(tx: Transaction) -> list[str]:
        gone = finding.find_conversation(tx, session_id)
        if params.purge:
            discarding.purge_conversation(tx, session_id)
        else:
            discarding.discard_conversation(tx, session_id, time.time())
        return gone

    gone = await caller.premises.write(caller.scope, work)
    if params.purge:
        await caller.premises.beside(caller.premises.store.compact)
        await caller.premises.beside(partial(caller.premises.sweep, files))
    return Deleted(sessions=gone, is_purged=params.purge)


async def search(caller: Caller, params: SearchParams) -> Hits:
    """Messages by what they say, the best first, each with what was said around it."""
    narrowing = Narrowing(
        tuple(params.sources), tuple(params.exclude_sources), tuple(params.roles), params.since, params.until
    )
    wish = Wish(params.limit, params.offset, params.sort, narrowing)

    def found(tx: Transaction, ask: Ask) -> Hits:
        answer = ask(wish)
        hits = [HitRow(**hit_row(tx, hit)) for hit in answer.hits]
        return Hits(hits=hits, notes=answer.notes, incomplete=answer.is_incomplete)

    premises = caller.premises
    return await premises.beside(lambda: consult(premises.store, caller.scope, params.query, found))


async def export(caller: Caller, params: ExportParams) -> Exported:
    """A session whole: every column, and every message in every state; in pages with `after`, when it is long."""
    mask = None if params.raw else Secrets(redacts=True)

    def work(tx: Transaction) -> tuple[str, int | None]:
        session_id, pieces = finding.get_id(tx, params.id), _Pieces()
        if params.after is None:
            exporting.export_lines(tx, pieces.add, ids=[session_id], mask=mask)
            return pieces.text, None
        following = exporting.export_page(tx, pieces.add, session_id, params.after, _PAGE_CHARS, mask)
        return pieces.text, following

    text, following = await caller.premises.read(caller.scope, work)
    session = json.loads(text)
    return Exported(session=session if caller.scope.sees_all else public_session(session), next=following)


class _Pieces:
    """An export as it is put together, which is given up as soon as it is too long to be an answer."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._chars = 0

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def add(self, piece: str) -> None:
        self._chars += len(piece)
        if self._chars > MAX_ANSWER:
            raise Refused(
                NOT_NOW, f"The session is longer than {MAX_ANSWER} bytes; ask for it in pages, with after=-1."
            )
        self._pieces.append(piece)


async def _lane_of(caller: Caller, wanted: str) -> str:
    """The lane that goes on with a session."""

    def work(tx: Transaction) -> str:
        tip = finding.find_tip(tx, finding.get_id(tx, wanted))
        lane = tx.lanes.find_by_session(tip)
        if lane is None:
            raise Invalid(f"Session {tip} is in no lane, so nobody is answered there at the moment.")
        return lane.key

    return await caller.premises.read(caller.scope, work)


def _row(tx: Transaction, session_id: str) -> SessionRow:
    tags = tx.sessions.tags([session_id]).get(session_id, [])
    return session_row(as_row(finding.get_session(tx, session_id)) | {"tags": tags})


METHODS: tuple[Method[Any], ...] = (
    Method("sessions.list", Level.READ, ListParams, Listing, list_, is_long=True),
    Method("sessions.get", Level.READ, OneParams, Whole, get),
    Method("sessions.preview", Level.READ, OneParams, Preview, preview),
    Method("sessions.resolve", Level.READ, ResolveParams, Resolved, resolve),
    Method("sessions.patch", Level.WRITE, PatchParams, SessionRow, patch),
    Method("sessions.reset", Level.WRITE, OneParams, ResetDone, reset),
    Method("sessions.delete", Level.ADMIN, DeleteParams, Deleted, delete),
    Method("sessions.compact", Level.WRITE, CompactParams, Said, compact),
    Method("sessions.search", Level.READ, SearchParams, Hits, search, is_long=True),
    Method("sessions.export", Level.READ, ExportParams, Exported, export, is_long=True),
)
