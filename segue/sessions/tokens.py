"""Tokens are given out, shown by programs, and taken back."""

from segue.core.credentials import Credential, Presented
from segue.core.errors import Invalid, NotFound
from segue.ports.store import Transaction

SELDOM = 60.0
"""Seconds after which it is noted again that a token is in use."""


def give_token(tx: Transaction, credential: Credential) -> None:
    """Keep a new token. Those that are not good any more make room."""
    tx.tokens.forget_expired(credential.created_at)
    if not tx.tokens.add(credential):
        raise Invalid(
            f"There is a token {credential.name!r} already; revoke it first with `segue tokens revoke"
            f" {credential.name}`, or choose another name."
        )


def take_token_back(tx: Transaction, name: str) -> None:
    if not tx.tokens.remove(name):
        raise NotFound(f"There is no token {name!r}; `segue tokens list` shows those that there are.")


def find_bearer(tx: Transaction, shown: Presented, now: float) -> Credential | None:
    """Whose token it is; nobody's when it is not known, not good any more, or not the whole of it."""
    found = tx.tokens.find(shown.key_id)
    return found if found is not None and found.fits(shown.secret) and found.is_good(now) else None


def is_news(credential: Credential, now: float) -> bool:
    """Whether it is worth noting that a token is in use."""
    return credential.used_at is None or not 0 <= now - credential.used_at < SELDOM


def note_use(tx: Transaction, credential: Credential, now: float) -> None:
    tx.tokens.used(credential.key_id, now)
