"""`/v1/conversations/{id}/items`: what was said in a conversation, item by item."""

import time
from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from segue.core.errors import NotFound
from segue.core.messages import LARGEST_SEQ, Message, Spot, State
from segue.core.sessions import Session
from segue.ports.store import Transaction
from segue.sessions.calling import find_done, keep_done
from segue.sessions.conversing import footing_in, get_part, put_down, silence, stretches
from segue.web.openai.conversations import once_of
from segue.web.openai.conversations import retrieve as retrieve_conversation
from segue.web.openai.door import Visit, told
from segue.web.openai.errors import Wrong
from segue.web.openai.placing import session_named
from segue.web.openai.shapes import MOST_LISTED, ItemList, NewItems
from segue.web.openai.wording import Item, draft_of, given_item, item_id, item_of, spot_of

_USUAL = 20
_AT_ONCE = 100
LONGEST_PAGE = 4_000_000
"""Characters with which a page is full, however few items it has."""


async def create(visit: Visit) -> Response:
    """Put items down at the end of a conversation; nobody answers them."""
    asked = await visit.body(NewItems)
    given = [given_item(one, f"items[{number}]") for number, one in enumerate(asked.items)]
    drafts = [draft_of(one, time.time()) for one in given]
    once = once_of(visit, visit.request.url.path, asked)

    def work(tx: Transaction) -> list[Message]:
        if once and (kept := find_done(tx, *once)) is not None:
            return [_row(tx, _session(visit), name) for name in kept]
        footing = footing_in(tx, _session(visit))
        rows = put_down(tx, footing, drafts)
        if once:
            keep_done(tx, footing.session_id, *once, [item_id("item", row) for row in rows])
        return rows

    rows = await visit.premises.write(visit.scope, work)
    return told(_listed([item for row in rows if (item := item_of(row))], has_more=False))


async def list_(visit: Visit) -> Response:
    """The items of a conversation, the newest first unless asked otherwise."""
    limit, is_rising, after = _paging(visit.request)
    found, has_more = await visit.premises.read(visit.scope, _page, _session(visit), after, limit, is_rising)
    return await visit.premises.beside(lambda: told(_listed(found, has_more=has_more)))


async def retrieve(visit: Visit) -> Response:
    """One item."""

    def work(tx: Transaction) -> Item:
        row = _row(tx, _session(visit), visit.path("item_id"))
        item = item_of(row)
        if item is None:
            raise NotFound("There is no such item.")
        return item

    return JSONResponse(await visit.premises.read(visit.scope, work))


async def delete(visit: Visit) -> Response:
    """Take an item out of a conversation. The conversation is told."""

    def work(tx: Transaction) -> None:
        row = _row(tx, _session(visit), visit.path("item_id"))
        silence(tx, row.session_id, row.seq)

    await visit.premises.write(visit.scope, work)
    return await retrieve_conversation(visit)


def _session(visit: Visit) -> str:
    return session_named(visit.path("conversation_id"))


def _row(tx: Transaction, session_id: str, item_id: str) -> Message:
    spot = spot_of(item_id)
    if spot is None or spot.seq > LARGEST_SEQ:
        raise NotFound("There is no such item.")
    row = tx.messages.find_seq(get_part(tx, session_id, spot.session_id).id, spot.seq)
    if row is None or row.state == State.UNDONE:
        raise NotFound("There is no such item.")
    return row


def _paging(request: Request) -> tuple[int, bool, Spot | None]:
    asked = request.query_params
    limit = asked.get("limit", str(_USUAL))
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= MOST_LISTED):
        raise Wrong(f"'limit' must be between 1 and {MOST_LISTED}.", "limit", "invalid_value")
    if (order := asked.get("order", "desc")) not in ("asc", "desc"):
        raise Wrong("'order' must be asc or desc.", "order", "invalid_value")
    after = spot_of(asked["after"]) if asked.get("after") else None
    if asked.get("after") and (after is None or after.seq > LARGEST_SEQ):
        raise Wrong("'after' must be the id of an item.", "after", "invalid_value")
    return int(limit), order == "asc", after


def _page(tx: Transaction, session_id: str, after: Spot | None, most: int, is_rising: bool) -> tuple[list[Item], bool]:
    """So many items behind another one, or fewer long ones, in the order that is asked for; whether there are more."""
    parts = stretches(tx, session_id)
    if not is_rising:
        parts = parts[::-1]
    if after is not None:
        names = [part.id for part in parts]
        if after.session_id not in names:
            raise Wrong("'after' must be the id of an item.", "after", "invalid_value")
        parts = parts[names.index(after.session_id) :]
    found: list[Item] = []
    length = 0
    for row in _rows(tx, parts, after, is_rising):
        if (item := item_of(row)) is None:
            continue
        if len(found) == most or length > LONGEST_PAGE:
            return found, True
        found.append(item)
        length += sum(len(column) for column in row if isinstance(column, str))
    return found, False


def _rows(tx: Transaction, parts: list[Session], after: Spot | None, is_rising: bool) -> Iterator[Message]:
    for part in parts:
        seq = after.seq if after is not None and part.id == after.session_id else None
        rows = _rising(tx, part.id, seq) if is_rising else _falling(tx, part.id, seq)
        yield from (row for row in rows if row.state != State.UNDONE)


def _rising(tx: Transaction, session_id: str, after: int | None) -> Iterator[Message]:
    seq = -1 if after is None else after
    while rows := tx.messages.of(session_id, every_state=True, after=seq, limit=_AT_ONCE):
        yield from rows
        seq = rows[-1].seq


def _falling(tx: Transaction, session_id: str, before: int | None) -> Iterator[Message]:
    """From the end on, always more of it at once until there is no more."""
    seq, most = LARGEST_SEQ + 1 if before is None else before, _AT_ONCE
    while rows := tx.messages.last(session_id, most, every_state=True):
        yield from (row for row in reversed(rows) if row.seq < seq)
        if len(rows) < most:
            return
        seq, most = min(seq, rows[0].seq), most * 4


def _listed(items: list[dict[str, Any]], *, has_more: bool) -> ItemList:
    first, last = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    return ItemList(data=items, first_id=first, last_id=last, has_more=has_more)
