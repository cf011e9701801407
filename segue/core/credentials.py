"""Tokens by which programs are let in: what one is worth, and whose it is.

    segue_<8 hexadecimal digits>_<secret>

The digits only name a token. Of the secret a digest is kept, and nothing else: it has 256 bits, so that no salt is
needed.
"""

import hashlib
import hmac
import re
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from segue.core.errors import Invalid
from segue.core.scope import OWNER, Principal, Scope, scope_for

CHANCE = 4 + 32
"""Bytes of chance that a token is made from."""
BEGINNING = "segue_"
_TOKEN = re.compile(rf"{BEGINNING}([0-9a-f]{{8}})_([0-9a-f]{{64}})")
BEHIND = "~"
"""Behind it stands what tells tokens of one program apart; nobody can choose a name with it."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_PRINCIPAL = re.compile(r"[a-z][a-z0-9_]*:\S{1,200}")


class Level(StrEnum):
    """What may be done with a token; each level holds those before it."""

    READ = "read"
    WRITE = "write"
    """Also say something, and change what was said about conversations."""
    ADMIN = "admin"
    """Also remove conversations, and begin lanes anew."""

    def allows(self, wanted: "Level") -> bool:
        levels = list(Level)
        return levels.index(self) >= levels.index(wanted)


class Credential(NamedTuple):
    """A token as it is kept."""

    key_id: str
    name: str
    digest: str
    level: str
    principal: str
    created_at: float
    expires_at: float | None = None
    used_at: float | None = None

    @property
    def scope(self) -> Scope:
        """What may be read with it."""
        return scope_for(Principal(self.principal))

    @property
    def client(self) -> str:
        """The program that has it, by which its conversations are named; several tokens can be one program's."""
        return self.name.partition(BEHIND)[0]

    def allows(self, wanted: Level) -> bool:
        return Level(self.level).allows(wanted)

    def is_good(self, now: float) -> bool:
        return self.expires_at is None or now < self.expires_at

    def fits(self, secret: str) -> bool:
        return hmac.compare_digest(_digest(secret).encode(), self.digest.encode())


class Presented(NamedTuple):
    """A token that somebody shows."""

    key_id: str
    secret: str

    def __repr__(self) -> str:
        return f"Presented({self.key_id!r})"  # never the secret


def presented(text: str) -> Presented | None:
    """What somebody shows, if it has the form of a token."""
    found = _TOKEN.fullmatch(text)
    return Presented(*found.groups()) if found else None


def made(
    name: str,
    chance: bytes,
    now: float,
    *,
    mark: str = "",
    level: Level = Level.READ,
    principal: str = OWNER,
    expires_at: float | None = None,
) -> tuple[Credential, str]:
    """A new token, as it is kept and as whoever has it shows it; that is said once and never again."""
    if not _NAME.fullmatch(name):
        raise Invalid(f"{name!r} cannot name a token: use letters, digits, - _ and ., at most 64.")
    if principal != OWNER and not _PRINCIPAL.fullmatch(principal):
        raise Invalid(f"{principal!r} is nobody: write owner, person:NAME or PLATFORM:ID, as in telegram:123456789.")
    key_id, secret = chance[:4].hex(), chance[4:].hex()
    kept = Credential(key_id, name + mark, _digest(secret), level, principal, now, expires_at)
    return kept, f"{BEGINNING}{key_id}_{secret}"


def bearer(header: Callable[[str], str | None]) -> Presented | None:
    """The token of a call."""
    kind, _, shown = (header("authorization") or "").partition(" ")
    return presented(shown.strip()) if kind.lower() == "bearer" else None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
