"""What is kept of a call that a program makes, so that the same call made again is the same.

Everything that names words is a digest. A call is written down in the transaction that makes its place ready, before
what it says is put down: killed in between, a program that calls again goes on where it was.
"""

import hashlib
import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from segue.core.errors import Invalid
from segue.core.scope import Principal, scope_for
from segue.ports.store import Meta, Transaction

CALL, HISTORY, BODY, TOLD, DONE = "api:call:", "api:history:", "api:body:", "api:told:", "api:done:"
METADATA = "api:metadata:"
SAID, MADE = "api:said:", "api:made:"
"""Which calls were made in a session, and under which keys something was put down there: they go with it."""
MOST_ALIKE = 8
"""Conversations that were begun in the same words are remembered so many times."""
RETRY_SECONDS = 600.0


OTHERWISE = "This idempotency key was used before, with another body. Use a key of its own."


class SpokenOtherwise(Invalid):
    """A key that was used before, for something else."""


class Call(NamedTuple):
    """Where a program has said something, and how it was asked for."""

    mark: str
    """Of all that was asked."""
    lane: str
    chat: str
    """Under which name it comes in."""
    model: str
    at: float
    conversation: str | None = None
    previous: str | None = None
    is_background: bool = False
    session_id: str = ""
    history: str | None = None
    """The digest of all that was said up to it, by which a client is recognised that says it again."""


def digest_of(*parts: Any) -> str:
    """The same for what is the same, in whatever order its fields stand."""
    said = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(said.encode()).hexdigest()


def find_call(tx: Transaction, message_id: str) -> Call | None:
    kept = tx.meta.get(CALL + message_id)
    return Call(**json.loads(kept)) if kept else None


def same_call(tx: Transaction, message_id: str, mark: str) -> Call | None:
    """The call that was made before under a name, which must be the same one."""
    found = find_call(tx, message_id)
    if found is not None and found.mark != mark:
        raise SpokenOtherwise(OTHERWISE)
    return found


def keep_call(tx: Transaction, message_id: str, call: Call) -> None:
    """Write a call down."""
    tx.meta.set(CALL + message_id, json.dumps(call._asdict()))
    tx.meta.set(f"{SAID}{call.session_id}:{message_id}", "")
    lately = {name: row for name, row in _lately(tx.meta, call.mark).items() if call.at - row[1] <= RETRY_SECONDS}
    _put(tx.meta, BODY + call.mark[:2], lately | {call.mark: [message_id, call.at]})
    if call.history is not None:
        alike = [one for one in calls_after(tx, call.history) if one != message_id]
        tx.meta.set(HISTORY + call.history, json.dumps([*alike, message_id][-MOST_ALIKE:]))


def calls_after(tx: Transaction, history: str) -> Sequence[str]:
    """The names of what was said at the end of a history, the latest last."""
    kept = tx.meta.get(HISTORY + history)
    return json.loads(kept) if kept else []


def retried(tx: Transaction, mark: str, now: float) -> str | None:
    """The name of the same call, made a moment ago and not given its answer: who says they try again means that one."""
    message_id, at = _lately(tx.meta, mark).get(mark, (None, 0.0))
    return message_id if 0 <= now - at <= RETRY_SECONDS else None


def has_arrived(tx: Transaction, message_id: str, mark: str) -> None:
    """Whoever was given the whole answer does not try again: the same words are new ones."""
    _not_again(tx.meta, message_id, mark)


def _not_again(meta: Meta, message_id: str, mark: str) -> None:
    lately = _lately(meta, mark)
    if lately.get(mark, [""])[0] == message_id:
        del lately[mark]
        _put(meta, BODY + mark[:2], lately)


def _lately(meta: Meta, mark: str) -> dict[str, list[Any]]:
    """Calls whose digests begin alike; they are kept together, so that what is old goes when something new comes."""
    kept: dict[str, list[Any]] = json.loads(meta.get(BODY + mark[:2]) or "{}")
    return kept


def _put(meta: Meta, key: str, value: dict[str, list[Any]] | list[str]) -> None:
    """Keep something, or nothing at all."""
    if value:
        meta.set(key, json.dumps(value))
    else:
        meta.remove(key)


def find_done(tx: Transaction, key: str, mark: str) -> list[str] | None:
    """What came of something that was done under a key, which must have been the same."""
    kept = tx.meta.get(DONE + key)
    if kept is None:
        return None
    was, found = json.loads(kept)
    if was != mark:
        raise SpokenOtherwise(OTHERWISE)
    return list(found)


def keep_done(tx: Transaction, session_id: str, key: str, mark: str, found: Sequence[str]) -> None:
    tx.meta.set(DONE + key, json.dumps([mark, found]))
    tx.meta.set(f"{MADE}{session_id}:{key}", "")


def forget_calls(tx: Transaction, session_ids: Collection[str], owners: Collection[str]) -> None:
    """Nothing is kept of the calls that were made in sessions, by those whose they are and by whoever asks for it."""
    for meta in (tx.meta, *(tx.meta.drawer(scope_for(Principal(owner))) for owner in owners)):
        for session_id in session_ids:
            meta.remove(METADATA + session_id)
            for key in meta.beginning(f"{MADE}{session_id}:"):
                meta.remove(DONE + key.rpartition(":")[2])
                meta.remove(key)
            for key in meta.beginning(f"{SAID}{session_id}:"):
                _forget_call(meta, key.rpartition(":")[2])
                meta.remove(key)


def _forget_call(meta: Meta, message_id: str) -> None:
    if (kept := meta.get(CALL + message_id)) is None:
        return
    call = Call(**json.loads(kept))
    _not_again(meta, message_id, call.mark)
    if call.history is not None:
        alike = json.loads(meta.get(HISTORY + call.history) or "[]")
        _put(meta, HISTORY + call.history, [one for one in alike if one != message_id])
    meta.remove(TOLD + digest_of(call.lane))
    meta.remove(CALL + message_id)


def is_news(tx: Transaction, lane_key: str, instructions: str) -> bool:
    """Whether a conversation was told something else last; noted at once."""
    key, mark = TOLD + digest_of(lane_key), digest_of(instructions)
    if tx.meta.get(key) == mark:
        return False
    tx.meta.set(key, mark)
    return True
