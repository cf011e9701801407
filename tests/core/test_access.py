"""Who may speak, said once more as a table: one row a case."""

import pytest

from segue.core.access import (
    OWNER_COMMANDS,
    Access,
    AccessRules,
    Allowed,
    AskToPair,
    DmAccess,
    Ignored,
    Reason,
    Role,
    decide,
    is_withheld,
)
from segue.core.sources import SessionSource

OWNER, PERSON = Allowed(Role.OWNER), Allowed(Role.PERSON)
STRANGER, SILENT = Ignored(Reason.STRANGER), Ignored(Reason.NOT_ADDRESSED)
PAIRING = AccessRules()
LISTED = AccessRules(DmAccess.ALLOWLIST, allow=frozenset({"7"}))
OPEN = AccessRules(DmAccess.OPEN)
CLOSED = AccessRules(DmAccess.DISABLED, allow=frozenset({"7"}))


def dm(user: str | None = "7", **fields: object) -> SessionSource:
    return SessionSource.from_dict({"platform": "telegram", "chat_id": "7", "user_id": user, **fields})


def room(user: str | None = "7", chat_type: str = "group", **fields: object) -> SessionSource:
    said = {"platform": "telegram", "chat_id": "-1", "user_id": user, "chat_type": chat_type, **fields}
    return SessionSource.from_dict(said)


@pytest.mark.parametrize(
    ("rules", "known_as", "access"),
    [
        (PAIRING, None, AskToPair()),
        (PAIRING, Role.PERSON, PERSON),
        (PAIRING, Role.OWNER, OWNER),
        (PAIRING._replace(allow=frozenset({"7"})), None, PERSON),
        (LISTED, None, PERSON),
        (AccessRules(DmAccess.ALLOWLIST), None, STRANGER),
        (AccessRules(DmAccess.ALLOWLIST), Role.PERSON, PERSON),
        (AccessRules(DmAccess.ALLOWLIST), Role.OWNER, OWNER),
        (OPEN, None, PERSON),
        (OPEN, Role.OWNER, OWNER),
        (CLOSED, None, Ignored(Reason.NO_DIRECT_MESSAGES)),
        (CLOSED, Role.PERSON, Ignored(Reason.NO_DIRECT_MESSAGES)),
        (CLOSED, Role.OWNER, OWNER),
    ],
)
def test_direct_messages(rules: AccessRules, known_as: Role | None, access: Access) -> None:
    assert decide(dm(), rules, known_as) == access


@pytest.mark.parametrize(
    ("source", "rules", "known_as", "is_mention", "access"),
    [
        (room(), PAIRING, None, True, STRANGER),
        (room(), OPEN, None, True, STRANGER),
        (room(), LISTED, None, True, PERSON),
        (room(), LISTED, None, False, SILENT),
        (room(), LISTED._replace(mention=False), None, False, PERSON),
        (room(), CLOSED, None, True, PERSON),
        (room(), PAIRING, Role.PERSON, True, PERSON),
        (room(), PAIRING, Role.OWNER, True, OWNER),
        (room(), PAIRING, Role.OWNER, False, SILENT),
        (room(), AccessRules(groups=frozenset({"-1"})), None, True, PERSON),
        (room(), AccessRules(groups=frozenset({"-2"})), None, True, STRANGER),
        (room(), AccessRules(groups=frozenset({"*"})), None, True, PERSON),
        (room(None), AccessRules(groups=frozenset({"-1"})), None, True, PERSON),
        (room(None), PAIRING._replace(allow=frozenset({""})), None, True, STRANGER),
        (room(chat_type="channel"), LISTED, None, True, PERSON),
        (room(chat_type="thread", parent_chat_id="-9"), AccessRules(groups=frozenset({"-9"})), None, True, PERSON),
        (room(chat_type="thread", parent_chat_id="-9"), PAIRING, None, True, STRANGER),
        (room(role_authorized=True), AccessRules(allow_roles=frozenset({"staff"})), None, True, PERSON),
        (room(role_authorized=True), PAIRING, None, True, STRANGER),
        (room(), AccessRules(allow_roles=frozenset({"staff"})), None, True, STRANGER),
    ],
)
def test_groups_channels_and_threads(
    source: SessionSource, rules: AccessRules, known_as: Role | None, is_mention: bool, access: Access
) -> None:
    assert decide(source, rules, known_as, is_mention=is_mention) == access


def test_bots_are_ignored_unless_they_may_speak_and_are_never_owners_nor_asked_to_pair() -> None:
    bot = dm(is_bot=True)
    assert decide(bot, OPEN, None) == Ignored(Reason.BOT)
    assert decide(bot, OPEN._replace(allow_bots=True), None) == PERSON
    assert decide(bot, PAIRING._replace(allow_bots=True), None) == STRANGER
    assert decide(bot, PAIRING._replace(allow_bots=True), Role.OWNER) == PERSON


def test_a_direct_message_without_a_person_or_a_chat_cannot_be_paired() -> None:
    assert decide(SessionSource(platform="telegram"), PAIRING, None) == STRANGER
    assert decide(SessionSource(platform="telegram", chat_id="5"), PAIRING, None) == AskToPair()
    assert decide(SessionSource(platform="telegram", chat_id="5\x00"), PAIRING, None) == STRANGER


@pytest.mark.parametrize("name", sorted(OWNER_COMMANDS))
@pytest.mark.parametrize(
    "form", ["/{}", " /{} ", "/{}@us", "@us /{}", "/{} off", "/{}\nnow, please", "\n/{} telegram", "/{}@us on"]
)
def test_an_owners_command_is_withheld_from_everybody_else(name: str, form: str) -> None:
    for spelled in (name, name.upper()):
        assert is_withheld(form.format(spelled), Role.PERSON)
        assert not is_withheld(form.format(spelled), Role.OWNER)
        assert is_withheld(form.format(spelled), Role.OWNER, is_person=False)


@pytest.mark.parametrize("text", ["/new", "/status", "/sending", "/send/off", "say /send off", "send", "", "/ send"])
def test_everything_else_is_for_everybody(text: str) -> None:
    assert not is_withheld(text, Role.PERSON)


@pytest.mark.parametrize(
    ("source", "known_as", "is_person"),
    [
        (dm(), Role.PERSON, True),
        (room(), Role.PERSON, True),
        (room(chat_type="channel"), None, True),
        (room(chat_type="thread", parent_chat_id="-9"), Role.PERSON, True),
        (room(role_authorized=True), None, True),
        (dm(is_bot=True), Role.OWNER, True),
        (room(is_bot=True), Role.OWNER, True),
        (dm(), Role.OWNER, False),
    ],
)
def test_whichever_way_somebody_else_comes_they_cannot_command(
    source: SessionSource, known_as: Role | None, is_person: bool
) -> None:
    open_to_all = AccessRules(DmAccess.OPEN, frozenset({"*"}), allow_roles=frozenset({"staff"}), allow_bots=True)
    access = decide(source, open_to_all, known_as, is_mention=True)
    assert isinstance(access, Allowed), "they may speak"
    assert is_withheld("/restart", access.role, is_person=is_person)


def test_an_owner_can_command_in_private_and_among_others() -> None:
    for source in (dm(), room(), room(chat_type="thread", parent_chat_id="-9")):
        access = decide(source, PAIRING, Role.OWNER, is_mention=True)
        assert isinstance(access, Allowed)
        assert not is_withheld("/restart", access.role)
