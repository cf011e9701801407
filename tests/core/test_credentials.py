"""What a token is worth."""

import pytest

from segue.core.credentials import CHANCE, Level, Presented, bearer, made, presented
from segue.core.errors import Invalid
from segue.core.redaction import redact
from segue.core.scope import OWNER_AT_CONSOLE, Principal, Scope

NOW = 1_700_000_000.0
KEPT, TOKEN = made("laptop", bytes(range(CHANCE)), NOW, level=Level.WRITE, expires_at=NOW + 60)


def test_whoever_shows_the_whole_token_is_known_by_it() -> None:
    shown = presented(TOKEN)
    assert shown is not None
    assert (shown.key_id, KEPT.fits(shown.secret)) == (KEPT.key_id, True)


def test_neither_what_is_kept_nor_what_is_shown_of_a_token_tells_its_secret() -> None:
    shown = presented(TOKEN)
    assert shown is not None
    assert shown.secret not in f"{KEPT!r}{shown!r}"
    assert shown.secret not in redact(f"curl -H 'Authorization: Bearer {TOKEN}' and {TOKEN}")


@pytest.mark.parametrize("wrong", ["", "segue_", TOKEN[:-1], TOKEN + "0", TOKEN.upper(), f" {TOKEN}", "é" * 79])
def test_what_has_not_the_form_of_a_token_is_none(wrong: str) -> None:
    assert presented(wrong) is None


def test_another_secret_does_not_fit() -> None:
    assert not KEPT.fits("0" * 64)
    assert not KEPT.fits("é")


def test_a_token_is_good_until_its_moment() -> None:
    assert KEPT.is_good(NOW + 59)
    assert not KEPT.is_good(NOW + 60)


@pytest.mark.parametrize(("level", "wanted"), [(have, want) for have in Level for want in Level])
def test_each_level_holds_those_before_it(level: Level, wanted: Level) -> None:
    order = {"read": 0, "write": 1, "admin": 2}
    assert level.allows(wanted) == (order[level] >= order[wanted])


def test_a_token_sees_what_its_principal_sees() -> None:
    person, _ = made("phone", bytes(CHANCE), NOW, principal="telegram:1")
    assert KEPT.scope == OWNER_AT_CONSOLE
    assert person.scope == Scope(Principal("telegram:1"))


@pytest.mark.parametrize("principal", ["", "alice", "console", "owner ", "telegram:", "telegram:a b", "agent:main:x\n"])
def test_nobody_is_a_principal_that_could_be_mistaken(principal: str) -> None:
    with pytest.raises(Invalid):
        made("x", bytes(CHANCE), NOW, principal=principal)


@pytest.mark.parametrize("name", ["", "a b", "../x", "ü", "x" * 65, "-x"])
def test_a_name_is_a_short_word(name: str) -> None:
    with pytest.raises(Invalid):
        made(name, bytes(CHANCE), NOW)


@pytest.mark.parametrize("said", [f"Bearer {TOKEN}", f"bearer  {TOKEN} ", f"BEARER {TOKEN}"])
def test_a_call_shows_its_token_as_bearer(said: str) -> None:
    assert bearer({"authorization": said}.get) == presented(TOKEN)


@pytest.mark.parametrize("said", ["", TOKEN, f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN} x"])
def test_anything_else_is_no_token(said: str) -> None:
    assert bearer({"authorization": said}.get) is None


def test_nothing_is_shown_of_a_secret_that_is_being_looked_up() -> None:
    assert repr(Presented("00112233", "secret")) == "Presented('00112233')"
