"""What is kept of a call that a program makes, so that the same call made again is the same.

Everything that names words is a digest. A call is written down in the transaction that makes its place ready, before
what it says is put down: killed in between, a program that calls again goes on where it was.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from segue.core.errors import Invalid
from segue.ports.store import Transaction

CALL, HISTORY, BODY, TOLD, DONE = "api:call:", "api:history:", "api:body:", "api:told:", "api:done:"
MOST_ALIKE = 8
"""Conversations that were begun in the same words are remembered so many times."""
RETRY_SECONDS = 600.0


OTHERWISE = "This idempotency key was used before, with another body. Use a key of its own."


class SpokenOtherwise(Invalid):
    """A key that was used before, for something else."""


class Call(NamedTuple):
    """Where a program has said something, and how it was asked for."""

    digest: str
    """Of all that was asked."""
    lane: str
    chat: str
    """Under which name it comes in."""
    model: str
    at: float
    conversation: str | None = None
    previous: str | None = None
    is_background: bool = False


def digest_of(*parts: Any) -> str:
    """The same for what is the same, in whatever order its fields stand."""
    said = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(said.encode()).hexdigest()


def find_call(tx: Transaction, message_id: str) -> Call | None:
    kept = tx.meta.get(CALL + message_id)
    return Call(**json.loads(kept)) if kept else None


def same_call(tx: Transaction, message_id: str, digest: str) -> Call | None:
    """The call that was made before under a name, which must be the same one."""
    found = find_call(tx, message_id)
    if found is not None and found.digest != digest:
        raise SpokenOtherwise(OTHERWISE)
    return found


def keep_call(tx: Transaction, message_id: str, call: Call, history: str | None = None) -> None:
    """Write a call down; a history is the digest of all that was said up to it."""
    tx.meta.set(CALL + message_id, json.dumps(call._asdict()))
    tx.meta.set(BODY + call.digest, json.dumps([message_id, call.at]))
    if history is not None:
        alike = [one for one in calls_after(tx, history) if one != message_id]
        tx.meta.set(HISTORY + history, json.dumps([*alike, message_id][-MOST_ALIKE:]))


def calls_after(tx: Transaction, history: str) -> Sequence[str]:
    """The names of what was said at the end of a history, the latest last."""
    kept = tx.meta.get(HISTORY + history)
    return json.loads(kept) if kept else []


def retried(tx: Transaction, digest: str, now: float) -> str | None:
    """The name of the same call, if it was made a moment ago: whoever says that they try again means that one."""
    kept = tx.meta.get(BODY + digest)
    message_id, at = json.loads(kept) if kept else (None, 0.0)
    return message_id if 0 <= now - at <= RETRY_SECONDS else None


def find_done(tx: Transaction, key: str, digest: str) -> list[str] | None:
    """What came of something that was done under a key, which must have been the same."""
    kept = tx.meta.get(DONE + key)
    if kept is None:
        return None
    was, found = json.loads(kept)
    if was != digest:
        raise SpokenOtherwise(OTHERWISE)
    return list(found)


def keep_done(tx: Transaction, key: str, digest: str, found: Sequence[str]) -> None:
    tx.meta.set(DONE + key, json.dumps([digest, found]))


def is_news(tx: Transaction, lane_key: str, instructions: str) -> bool:
    """Whether a conversation was told something else last; noted at once."""
    key, digest = TOLD + digest_of(lane_key), digest_of(instructions)
    if tx.meta.get(key) == digest:
        return False
    tx.meta.set(key, digest)
    return True
