"""Letting people in: a stranger gets a code, and whoever may approves it.

Nothing that a stranger does can keep the owner from approving: wrong codes are counted for the person who tries them,
and at the console they are not counted at all.
"""

from dataclasses import replace
from typing import NamedTuple

from segue.core.access import Role, can_be_known
from segue.core.errors import InvalidSource
from segue.core.keys import KeyRules
from segue.core.pairing import (
    LIFETIME,
    MOST_PENDING,
    MOST_PENDING_ON_PLATFORM,
    MOST_WRONG,
    WRONG_SLOT,
    PairedPerson,
    Pairing,
    PairingState,
    as_typed,
    fingerprint,
    fits,
    new_code,
)
from segue.core.sources import SessionSource
from segue.core.text import one_line, shorten, storable
from segue.ports.store import Transaction

AT_CONSOLE = "console"
_LONGEST_NAME = 80


class Asked(NamedTuple):
    """What a stranger is told."""

    code: str
    expires_at: float


class TooManyAsked(NamedTuple):
    """Nobody is given a code; the stranger is told nothing."""

    until: float


class Approved(NamedTuple):
    person: PairedPerson
    chat: str
    """Where they asked."""


class NoSuchCode(NamedTuple):
    """Nobody waits with that code: it is wrong, too old or used."""


class MustWait(NamedTuple):
    """Somebody tried too many wrong codes."""

    until: float


class Peer(NamedTuple):
    """Somebody on a platform who gives a code."""

    platform: str
    peer: str


class Pairings(NamedTuple):
    """Who was let in, and who waits for it."""

    people: list[PairedPerson]
    waiting: list[Pairing]


def ask_to_pair(tx: Transaction, source: SessionSource, chance: bytes, now: float) -> Asked | TooManyAsked:
    """Give a stranger a code; `chance` is as many bytes of it as `CHANCE` says."""
    platform, peer = source.platform, source.peer
    if not can_be_known(peer):
        raise InvalidSource(f"Nobody can be let in on {platform} as {peer!r}.")
    tx.people.forget_expired(now)
    there = [one for one in tx.people.pairings() if one.platform == platform and one.is_pending(now)]
    theirs = [one for one in there if one.peer == peer]
    if len(theirs) >= MOST_PENDING or len(there) >= MOST_PENDING_ON_PLATFORM:
        return TooManyAsked(min(one.expires_at for one in theirs or there))
    code, expires_at = new_code(chance), now + LIFETIME
    pairing = Pairing(
        platform,
        peer,
        slot=_free_slot(theirs),
        code_hash=fingerprint(code, chance[5:]),
        chat=storable(source.chat_id),
        name=shorten(one_line(source.user_name or ""), _LONGEST_NAME),
        created_at=now,
        expires_at=expires_at,
        attempts=0,
        state=str(PairingState.PENDING),
    )
    tx.people.put_pairing(pairing)
    return Asked(code, expires_at)


def approve(
    tx: Transaction, code: str, now: float, *, as_owner: bool = False, by: Peer | None = None
) -> Approved | NoSuchCode | MustWait:
    """Let the person in who was given the code; `by` is who approves, unless that happens at the console."""
    tx.people.forget_expired(now)
    wrong = None if by is None else _wrong_codes(tx, by)
    if wrong is not None and wrong.attempts >= MOST_WRONG:
        return MustWait(wrong.expires_at)
    found = _find(tx, code, now)
    if found is None or not tx.people.use_pairing(found):
        if by is not None:
            _count_wrong(tx, by, wrong, now)
        return NoSuchCode()
    approver = AT_CONSOLE if by is None else f"{by.platform}:{by.peer}"
    role = Role.OWNER if as_owner else Role.PERSON
    person = PairedPerson(found.platform, found.peer, str(role), found.name, now, approver)
    tx.people.put(person)
    return Approved(person, found.chat)


def revoke(tx: Transaction, platform: str, peer: str) -> bool:
    """Let somebody in no longer, and forget the codes they were given; False when there was nothing to take back."""
    was_in, codes = tx.people.remove(platform, peer), tx.people.forget_pairings(platform, peer)
    return was_in or codes > 0


def list_pairings(tx: Transaction, now: float) -> Pairings:
    return Pairings(tx.people.listed(), [one for one in tx.people.pairings() if one.is_pending(now)])


def known_as(tx: Transaction, source: SessionSource, rules: KeyRules) -> Role | None:
    """What somebody was made, by the settings or by pairing; nothing for strangers."""
    if rules.is_owner(source.platform, source.peer):
        return Role.OWNER
    person = tx.people.find(source.platform, source.peer) if can_be_known(source.peer) else None
    return None if person is None else Role(person.role)


def rules_with_owners(tx: Transaction, rules: KeyRules) -> KeyRules:
    """The rules with those as owners, too, who were made so by pairing."""
    return replace(rules, owners=rules.owners | {one.id for one in tx.people.owners()})


def _free_slot(theirs: list[Pairing]) -> int:
    taken = {one.slot for one in theirs}
    return next(slot for slot in range(WRONG_SLOT + 1, MOST_PENDING + 1) if slot not in taken)


def _find(tx: Transaction, code: str, now: float) -> Pairing | None:
    wanted = as_typed(code)
    if wanted is None:
        return None
    return next((one for one in tx.people.pairings() if one.is_pending(now) and fits(wanted, one.code_hash)), None)


def _wrong_codes(tx: Transaction, by: Peer) -> Pairing | None:
    """How often somebody tried in vain."""
    theirs = (one for one in tx.people.pairings() if (one.platform, one.peer) == by)
    return next((one for one in theirs if one.state == PairingState.WRONG), None)


def _count_wrong(tx: Transaction, by: Peer, before: Pairing | None, now: float) -> None:
    attempts = 1 if before is None else before.attempts + 1
    state = str(PairingState.WRONG)
    tx.people.put_pairing(Pairing(by.platform, by.peer, WRONG_SLOT, "", "", "", now, now + LIFETIME, attempts, state))
