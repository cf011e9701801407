"""Letting people in: codes that are good once and for an hour, limits that nobody can turn against the owner."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from segue.core.access import Role
from segue.core.errors import InvalidSource, StoreError
from segue.core.keys import KeyRules
from segue.core.pairing import CHANCE, LIFETIME, MOST_PENDING, MOST_PENDING_ON_PLATFORM, MOST_WRONG, new_code
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Principal, Scope
from segue.core.sources import SessionSource
from segue.ports.store import Transaction
from segue.sessions.pairing import (
    Approved,
    Asked,
    MustWait,
    NoSuchCode,
    Pairings,
    Peer,
    TooManyAsked,
    approve,
    ask_to_pair,
    known_as,
    list_pairings,
    revoke,
    rules_with_owners,
)
from segue.storage.store import SqlStore

NOW = 1_700_000_000.0
RULES = KeyRules(owners=frozenset({"telegram:1"}))


def source(peer: str = "7", platform: str = "telegram", name: str | None = "Alice") -> SessionSource:
    return SessionSource(platform=platform, chat_id=f"chat of {peer}", user_id=peer, user_name=name)


def ask(store: SqlStore, who: SessionSource | None = None, now: float = NOW) -> Asked | TooManyAsked:
    return store.write(OWNER, ask_to_pair, who or source(), os.urandom(CHANCE), now)


def code_of(store: SqlStore, who: SessionSource | None = None, now: float = NOW) -> str:
    asked = ask(store, who, now)
    assert isinstance(asked, Asked)
    return asked.code


def listed(store: SqlStore, now: float = NOW) -> Pairings:
    return store.read(OWNER, list_pairings, now)


def role_of(store: SqlStore, who: SessionSource) -> Role | None:
    return store.read(OWNER, known_as, who, RULES)


@pytest.mark.parametrize(("as_owner", "role"), [(False, Role.PERSON), (True, Role.OWNER)])
def test_whoever_was_approved_is_known_from_then_on(store: SqlStore, as_owner: bool, role: Role) -> None:
    code = code_of(store)
    assert role_of(store, source()) is None
    assert [(one.peer, one.name) for one in listed(store).waiting] == [("7", "Alice")]
    done = store.write(OWNER, approve, code, NOW + 1, as_owner=as_owner)
    assert isinstance(done, Approved)
    assert (done.person.id, done.person.role, done.person.name) == ("telegram:7", role, "Alice")
    assert (done.chat, done.person.paired_by) == ("chat of 7", "console")
    assert role_of(store, source()) is role
    assert role_of(store, source("8")) is None
    assert role_of(store, source(platform="slack")) is None
    assert listed(store) == Pairings([done.person], [])


def test_an_owner_made_by_pairing_is_one_like_those_of_the_settings(store: SqlStore) -> None:
    matrix = source("@a:b.org", platform="matrix")
    store.write(OWNER, approve, code_of(store, matrix), NOW, as_owner=True)
    store.write(OWNER, approve, code_of(store, source("8")), NOW)
    rules = store.read(OWNER, rules_with_owners, RULES)
    assert rules.owners == {"telegram:1", "matrix:@a:b.org"}
    assert rules.is_owner("matrix", "@a:b.org")
    assert role_of(store, source("1")) is Role.OWNER


def test_a_code_is_good_once(store: SqlStore) -> None:
    code = code_of(store)
    assert isinstance(store.write(OWNER, approve, code, NOW), Approved)
    assert store.write(OWNER, revoke, "telegram", "7")
    assert store.write(OWNER, approve, code, NOW) == NoSuchCode()
    assert role_of(store, source()) is None


def test_a_code_is_good_for_an_hour(store: SqlStore) -> None:
    first, second = code_of(store), code_of(store)
    assert isinstance(store.write(OWNER, approve, first, NOW + LIFETIME - 1), Approved)
    assert store.write(OWNER, approve, second, NOW + LIFETIME) == NoSuchCode()


def test_of_many_who_approve_at_once_one_does(store: SqlStore) -> None:
    code = code_of(store)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda at: store.write(OWNER, approve, code, NOW + at), range(4)))
    assert [isinstance(one, Approved) for one in done].count(True) == 1


def test_codes_are_not_in_the_database(store: SqlStore) -> None:
    code = code_of(store)
    rows = store.read(OWNER, lambda tx: tx.people.pairings())
    assert len(rows) == 1
    assert code not in repr(rows)


def test_a_person_has_three_codes_at_most(store: SqlStore) -> None:
    codes = [code_of(store, now=NOW + at) for at in range(MOST_PENDING)]
    assert ask(store, now=NOW + 9) == TooManyAsked(NOW + LIFETIME)
    assert isinstance(ask(store, source("8"), NOW + 9), Asked), "others can ask"
    assert isinstance(ask(store, now=NOW + LIFETIME), Asked), "the first one is too old by then"
    assert isinstance(store.write(OWNER, approve, codes[-1], NOW + LIFETIME), Approved)


def test_many_who_ask_at_once_have_three_codes_each_at_most(store: SqlStore) -> None:
    with ThreadPoolExecutor(6) as pool:
        asked = list(pool.map(lambda _: ask(store), range(6)))
    assert [isinstance(one, Asked) for one in asked].count(True) == MOST_PENDING
    assert len(listed(store).waiting) == MOST_PENDING


def test_a_platform_full_of_strangers_keeps_neither_the_others_nor_the_owner_out(store: SqlStore) -> None:
    code = code_of(store)

    def crowd(tx: Transaction) -> None:
        for number in range(MOST_PENDING_ON_PLATFORM):
            ask_to_pair(tx, source(f"stranger {number}"), os.urandom(CHANCE), NOW)

    store.write(OWNER, crowd)
    assert len(listed(store).waiting) == MOST_PENDING_ON_PLATFORM
    assert ask(store, source("late")) == TooManyAsked(NOW + LIFETIME)
    assert isinstance(ask(store, source("late", platform="slack")), Asked)
    assert isinstance(store.write(OWNER, approve, code, NOW), Approved)


def test_whoever_tries_wrong_codes_waits_and_nobody_else(store: SqlStore) -> None:
    code, guesser = code_of(store), Peer("telegram", "666")
    tries = [store.write(OWNER, approve, new_code(os.urandom(5)), NOW + at, by=guesser) for at in range(MOST_WRONG)]
    assert tries == [NoSuchCode()] * MOST_WRONG
    until = NOW + MOST_WRONG - 1 + LIFETIME
    assert store.write(OWNER, approve, code, NOW + 60, by=guesser) == MustWait(until), "the right one, too"
    assert isinstance(store.write(OWNER, approve, code, NOW + 60, by=Peer("telegram", "1")), Approved)
    later = code_of(store, source("8"), until)
    assert isinstance(store.write(OWNER, approve, later, until, by=guesser), Approved), "an hour later"


def test_the_console_never_waits(store: SqlStore) -> None:
    code = code_of(store)
    for at in range(3 * MOST_WRONG):
        assert store.write(OWNER, approve, new_code(os.urandom(5)), NOW + at) == NoSuchCode()
    assert isinstance(store.write(OWNER, approve, code.lower(), NOW + 60), Approved)


@pytest.mark.parametrize("code", ["", "nonsense", "A" * 7, "A" * 9, "I0I0I0I0", "\x00" * 8, "'; DROP TABLE people"])
def test_what_is_no_code_approves_nobody(store: SqlStore, code: str) -> None:
    code_of(store)
    assert store.write(OWNER, approve, code, NOW) == NoSuchCode()


def test_revoking_takes_the_codes_along(store: SqlStore) -> None:
    code = code_of(store)
    assert store.write(OWNER, revoke, "telegram", "7")
    assert store.write(OWNER, approve, code, NOW) == NoSuchCode()
    assert not store.write(OWNER, revoke, "telegram", "7")


def test_an_owner_can_become_a_person_again(store: SqlStore) -> None:
    store.write(OWNER, approve, code_of(store), NOW, as_owner=True)
    store.write(OWNER, approve, code_of(store), NOW + 1)
    assert role_of(store, source()) is Role.PERSON
    assert len(listed(store).people) == 1


def test_names_are_kept_short_and_harmless(store: SqlStore) -> None:
    code_of(store, source(name="\x1b[31mA\nlice\x00" + "x" * 999))
    (waiting,) = listed(store).waiting
    assert waiting.name.startswith("A lice")
    assert len(waiting.name) == 80


@pytest.mark.parametrize("peer", ["a\x00", "\ud800", ""])
def test_nobody_is_taken_for_somebody_whose_id_only_looks_like_it_when_it_is_kept(store: SqlStore, peer: str) -> None:
    odd = SessionSource(platform="telegram", user_id=peer)
    with pytest.raises(InvalidSource):
        ask(store, odd)
    assert role_of(store, odd) is None


@pytest.mark.parametrize("scope", [Scope(Principal("owner")), Scope(Principal("telegram:7"))])
def test_only_the_owner_at_the_console_knows_and_lets_in(store: SqlStore, scope: Scope) -> None:
    store.write(OWNER, approve, code_of(store), NOW)
    code = code_of(store, source("8"))
    assert store.read(scope, list_pairings, NOW) == Pairings([], [])
    assert store.read(scope, known_as, source(), RULES) is None
    assert store.write(scope, approve, code, NOW) == NoSuchCode()
    assert not store.write(scope, revoke, "telegram", "7")
    with pytest.raises(StoreError):
        store.write(scope, ask_to_pair, source("9"), os.urandom(CHANCE), NOW)
    assert [one.peer for one in listed(store).people] == ["7"]
    assert [one.peer for one in listed(store).waiting] == ["8"]
