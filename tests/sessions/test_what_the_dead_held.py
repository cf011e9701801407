"""What a process held that is no more is free as soon as another one notices, for everybody."""

import pytest

from segue.core.errors import InUse
from segue.core.leases import Run, session_lease
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Principal, Scope
from segue.ports.store import Transaction
from segue.sessions.leasing import begin_only_run, begin_run, take_lease
from segue.sessions.recovering import interrupt_left
from segue.storage.store import SqlStore

ALICE = Scope(Principal("telegram:alice"))
NAME = session_lease("talk")


def run(name: str) -> Run:
    return Run(name, "segue gateway", "here", "boot", 7, "1", 1.0, 1.0)


def take(tx: Transaction, owner: str) -> str:
    return take_lease(tx, NAME, owner, "telegram:alice", lambda other: other.id == "dead").owner


def test_a_person_goes_on_in_what_a_dead_gateway_held(store: SqlStore) -> None:
    for name in ("dead", "alive"):
        store.write(OWNER, begin_run, run(name))
    store.write(OWNER, take, "dead")
    store.write(OWNER, interrupt_left, lambda other: other.id == "dead", 2.0)
    assert store.write(ALICE, take, "alive") == "alive"


def test_what_the_living_hold_stays_theirs(store: SqlStore) -> None:
    store.write(OWNER, begin_run, run("alive"))
    store.write(OWNER, take, "alive")
    store.write(OWNER, interrupt_left, lambda other: other.id == "dead", 2.0)
    held = store.read(OWNER, lambda tx: tx.leases.unexpired(NAME))
    assert [lease.owner for lease in held] == ["alive"]


@pytest.mark.parametrize(
    ("host", "is_beating", "is_refused"),
    [("here", True, True), ("here", False, True), ("there", True, True), ("there", False, False)],
)
def test_a_gateway_is_alone_unless_another_one_lives_here_or_gives_signs_of_life_elsewhere(
    store: SqlStore, host: str, is_beating: bool, is_refused: bool
) -> None:
    """A container that was made anew has another name, and what ran in the old one is over."""
    now = store.read(OWNER, lambda tx: tx.leases.now())
    first = run("first")._replace(host=host, beat_at=now if is_beating else now - 60)
    store.write(OWNER, begin_run, first)

    def is_let_begin() -> bool:
        try:
            store.write(OWNER, begin_only_run, run("second"), lambda _: False)
        except InUse:
            return False
        return True

    assert is_let_begin() is not is_refused
