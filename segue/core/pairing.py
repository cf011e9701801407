"""How strangers are let in: they are given a code, and the owner approves it where only the owner can.

A code has 40 bits, is good for an hour and for one use, and only its fingerprint is kept.
"""

import hashlib
import hmac
from enum import StrEnum
from typing import NamedTuple

from segue.core.access import Role

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""32 signs; I, O, 0 and 1 are left out because people mistake them for each other."""
CODE_LENGTH = 8
CHANCE = 5 + 16
"""Bytes of chance that a code and its salt are made from."""
LIFETIME = 3600.0
"""Seconds."""
MOST_PENDING = 3
"""Of one person."""
MOST_PENDING_ON_PLATFORM = 100
MOST_WRONG = 5
"""Wrong codes from one person before that person, and nobody else, has to wait."""
WRONG_SLOT = 0
"""Where the wrong codes of a person are counted; their own codes have the slots from 1 on."""


class PairingState(StrEnum):
    PENDING = "pending"
    USED = "used"
    WRONG = "wrong"
    """No code of theirs: they tried others."""


class Pairing(NamedTuple):
    """A code that somebody was given; or how often somebody tried wrong ones."""

    platform: str
    peer: str
    slot: int
    code_hash: str
    chat: str
    name: str
    """What the person is called there."""
    created_at: float
    expires_at: float
    attempts: int
    state: str

    def is_pending(self, now: float) -> bool:
        return self.state == PairingState.PENDING and now < self.expires_at


class PairedPerson(NamedTuple):
    """Somebody who was let in."""

    platform: str
    peer: str
    role: str
    name: str
    paired_at: float
    paired_by: str

    @property
    def id(self) -> str:
        return f"{self.platform}:{self.peer}"

    @property
    def is_owner(self) -> bool:
        return self.role == Role.OWNER


def new_code(chance: bytes) -> str:
    """A code from the first five bytes of chance, five bits for each sign."""
    number = int.from_bytes(chance[:5], "big")
    return "".join(ALPHABET[number >> 5 * place & 31] for place in reversed(range(CODE_LENGTH)))


def fingerprint(code: str, salt: bytes) -> str:
    """What is kept of a code: the salt and a hash with it."""
    return f"{salt.hex()}:{hmac.new(salt, code.encode(), hashlib.sha256).hexdigest()}"


def fits(code: str, kept: str) -> bool:
    """Whether this is the code of a fingerprint."""
    salt, _, _ = kept.partition(":")
    return hmac.compare_digest(fingerprint(code, bytes.fromhex(salt)).encode(), kept.encode())


def as_typed(code: str) -> str | None:
    """The code that somebody typed, whatever its case and with spaces and hyphens; None when it can be none."""
    signs = "".join(code.split()).replace("-", "").upper()
    return signs if len(signs) == CODE_LENGTH and set(signs) <= set(ALPHABET) else None


def invitation(code: str) -> str:
    """What a stranger is told."""
    return (
        f"I do not know you yet. Give this code to whoever runs me, who can let you in with it within an hour.\n{code}"
    )
