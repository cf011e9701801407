"""Who asks, and who looks on."""

from typing import Any

import pytest
from examples import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from segue.core.keys import Chat, KeyRules, Main, Person, Place, Task, build_key, place_of
from segue.core.principals import onlookers_at, principal_of, scope_in
from segue.core.scope import CONSOLE, OWNER, OWNER_AT_CONSOLE, Audience, Principal, Scope, scope_for
from segue.core.sharing import DmScope
from segue.core.sources import SessionSource

RULES = KeyRules(
    owners=frozenset({"telegram:1", "cli:me"}),
    identity_links={"alice": ("telegram:123", "discord:987"), "owner": ("slack:U9",), "100%": ("slack:U8",)},
)
GROUP = "agent:main:telegram:group:-100"
BOB = Principal("telegram:7")
hostile = st.sampled_from(
    ["", ":", "%", "owner", "person:alice", "alice", "console", GROUP, "\x00", "\ud800"]
) | st.text(st.characters(), max_size=8)


@pytest.mark.parametrize(
    ("source", "principal"),
    [
        pytest.param(SessionSource(platform="telegram", chat_id="1", user_id="1"), "owner", id="an owner"),
        pytest.param(SessionSource(platform="telegram", chat_id="1"), "owner", id="an owner known by the chat"),
        pytest.param(
            SessionSource(platform="telegram", chat_id="-100", chat_type="group", user_id="1"),
            "owner",
            id="an owner in a group",
        ),
        pytest.param(
            SessionSource(platform="telegram", chat_id="1", user_id="7"), "telegram:7", id="a person in an owner's chat"
        ),
        pytest.param(
            SessionSource(platform="telegram", chat_id="1", user_id="1", user_id_alt="7"),
            "telegram:7",
            id="known by the id that stays",
        ),
        pytest.param(
            SessionSource(platform="telegram", chat_id="1", chat_type="group"),
            "telegram:",
            id="nobody known in a group with an owner's number",
        ),
        pytest.param(SessionSource(platform="discord", chat_id="1", user_id="1"), "discord:1", id="another platform"),
        pytest.param(SessionSource(platform="telegram", user_id="123"), "person:alice", id="a linked person"),
        pytest.param(SessionSource(platform="discord", user_id="987"), "person:alice", id="the same one elsewhere"),
        pytest.param(SessionSource(platform="discord", user_id="123"), "discord:123", id="the same id, not linked"),
        pytest.param(SessionSource(platform="slack", user_id="U9"), "person:owner", id="a person linked as owner"),
        pytest.param(SessionSource(platform="slack", user_id="U8"), "person:100%25", id="a name to be encoded"),
        pytest.param(SessionSource(platform="slack", user_id="a:b"), "slack:a%3Ab", id="an id to be encoded"),
        pytest.param(SessionSource(platform="slack", user_id="owner"), "slack:owner", id="a stranger called owner"),
        pytest.param(SessionSource(platform="slack"), "slack:", id="nobody known"),
    ],
)
def test_who_sent_a_message(source: SessionSource, principal: str) -> None:
    assert principal_of(source, RULES) == principal


@given(hostile, hostile, st.sampled_from(["dm", "group", "channel", "thread"]))
@examples(40, in_torture=500)
def test_no_choice_of_an_id_makes_a_stranger_somebody_else(user_id: str, chat_id: str, chat_type: str) -> None:
    assume("1" not in (user_id, chat_id))
    assume("123" not in (user_id, chat_id))
    source = SessionSource(platform="telegram", chat_id=chat_id, chat_type=chat_type, user_id=user_id)
    principal = principal_of(source, RULES)
    assert principal.startswith("telegram:")
    assert principal.count(":") == 1


@given(hostile, hostile)
@examples(40, in_torture=500)
def test_two_people_are_two_principals(one: str, other: str) -> None:
    assume(one and other)
    first, second = (principal_of(SessionSource(platform="slack", user_id=peer), KeyRules()) for peer in (one, other))
    assert (first == second) == (one == other)


def test_nobody_known_is_no_owner() -> None:
    careless = KeyRules(owners=frozenset({"telegram:"}), identity_links={"alice": ("telegram:",)})
    for source in (
        SessionSource(platform="telegram"),
        SessionSource(platform="telegram", chat_type="group", chat_id="-100"),
    ):
        assert principal_of(source, careless) == "telegram:"


@pytest.mark.parametrize(
    ("place", "principal", "audience"),
    [
        pytest.param(Main(), "owner", "", id="the main lane is the owner's"),
        pytest.param(Chat("telegram", "dm", "7"), BOB, "", id="a direct message"),
        pytest.param(Chat("telegram", "dm", "7", thread="5"), BOB, "", id="a direct message in a thread"),
        pytest.param(Person("telegram:7"), BOB, "", id="a person's own lane"),
        pytest.param(Task("api", ("client", "talk")), BOB, "", id="a conversation over the API"),
        pytest.param(Chat("telegram", "group", "-100", participant="7"), BOB, GROUP, id="one's own lane in a group"),
        pytest.param(Chat("telegram", "group", "-100"), GROUP, GROUP, id="a shared group"),
        pytest.param(
            Chat("telegram", "group", "-100", thread="5"), f"{GROUP}:topic:5", f"{GROUP}:topic:5", id="a shared thread"
        ),
        pytest.param(
            Chat("telegram", "group", "-100", thread="5", participant="7"),
            BOB,
            f"{GROUP}:topic:5",
            id="one's own lane in a thread",
        ),
        pytest.param(
            Chat("slack", "channel", "C1", account="work"),
            "agent:main:slack:account:work:channel:C1",
            "agent:main:slack:account:work:channel:C1",
            id="a shared channel of another account",
        ),
    ],
)
def test_the_scope_of_somebody_in(place: Place, principal: str, audience: str) -> None:
    scope = scope_in(place, BOB)
    assert scope == Scope(Principal(principal), Audience(audience))
    assert scope.room == (audience or None)
    assert not scope.sees_all


@pytest.mark.parametrize(
    "place",
    [Chat("telegram", "group", "-100"), Chat("telegram", "group", "-100", participant="1"), Person("alice"), Main()],
)
def test_even_the_owner_sees_everything_only_at_the_console(place: Place) -> None:
    assert not scope_in(place, OWNER).sees_all


@given(hostile, hostile, hostile, st.sampled_from(["group", "channel", "thread"]), st.booleans(), st.booleans())
@settings(max_examples=50)
def test_people_in_one_room_have_one_audience(
    chat_id: str, one: str, other: str, chat_type: str, in_groups: bool, in_threads: bool
) -> None:
    rules = KeyRules(group_sessions_per_user=in_groups, thread_sessions_per_user=in_threads)
    scopes = []
    for peer in (one, other):
        source = SessionSource(platform="telegram", chat_type=chat_type, chat_id=chat_id, user_id=peer)
        place = place_of(source, rules)
        scopes.append(scope_in(place, principal_of(source, rules)))
        assert isinstance(place, Chat)
        assert (str(scopes[-1].principal) == scopes[-1].audience) == place.is_shared
    assert scopes[0].audience == scopes[1].audience
    assert scopes[0].room is not None


@given(hostile)
@settings(max_examples=50)
def test_nobody_is_a_room_by_the_choice_of_an_id(peer: str) -> None:
    person = principal_of(SessionSource(platform="telegram", user_id=peer), RULES)
    assert str(person) != build_key(Chat("telegram", "group", "-100"))


@pytest.mark.parametrize("scope", DmScope)
def test_in_private_the_reader_is_the_person(scope: DmScope) -> None:
    rules = KeyRules(dm_scope=scope, identity_links={"alice": ("telegram:123",)})
    for peer, principal in (("123", "person:alice"), ("7", "telegram:7")):
        source = SessionSource(platform="telegram", chat_id=peer, user_id=peer)
        assert scope_in(place_of(source, rules), principal_of(source, rules)) == Scope(Principal(principal))


def test_a_job_is_the_owners_and_sees_no_more_than_those_who_are_sent_its_answer() -> None:
    for source in (SessionSource(platform="cron", chat_id="1"), SessionSource(platform="cron", user_id="7")):
        place, who = place_of(source, RULES), principal_of(source, RULES)
        assert scope_in(place, who) == Scope(OWNER)
        assert scope_in(place, who, Audience(GROUP)) == Scope(OWNER, Audience(GROUP))


@pytest.mark.parametrize("onlookers", ["", GROUP])
def test_a_hook_sees_nothing_but_what_was_said_there(onlookers: str) -> None:
    place = place_of(SessionSource(platform="webhook", chat_id="ci"), RULES, "helper")
    assert scope_in(place, OWNER, Audience(onlookers)) == Scope(OWNER, Audience("agent:helper:hook:ci"))


def place(chat_id: str, chat_type: str = "dm", **more: Any) -> SessionSource:
    return SessionSource(platform="telegram", chat_id=chat_id, chat_type=chat_type, **more)


@pytest.mark.parametrize(
    ("route", "onlookers"),
    [
        pytest.param(None, "", id="nowhere"),
        pytest.param(place("1"), "", id="an owner's direct chat, which has their id"),
        pytest.param(place("d", user_id="1"), "", id="an owner's direct chat, which has an id of its own"),
        pytest.param(place("d", thread_id="5", user_id="1"), "", id="a thread of an owner's direct chat"),
        pytest.param(place("7"), "agent:main:telegram:dm:7", id="somebody else's direct chat"),
        pytest.param(place("d", user_id="7"), "agent:main:telegram:dm:d", id="theirs by an id of its own"),
        pytest.param(place("123"), "agent:main:dm:alice", id="a linked person's direct chat"),
        pytest.param(place("-100", "group"), GROUP, id="a group"),
        pytest.param(place("-100", "group", user_id="1"), GROUP, id="a group in which an owner spoke last"),
        pytest.param(place("1", "group"), "agent:main:telegram:group:1", id="a group whose id is like an owner's"),
        pytest.param(place("-100", "group", thread_id="5"), f"{GROUP}:topic:5", id="a thread"),
        pytest.param(place("5", "thread", parent_chat_id="-100"), f"{GROUP}:topic:5", id="a thread with its own id"),
        pytest.param(place("C1", "channel"), "agent:main:telegram:channel:C1", id="a channel"),
    ],
)
def test_who_sees_what_is_sent_to(route: SessionSource | None, onlookers: str) -> None:
    rules = KeyRules(owners=frozenset({"telegram:1"}), identity_links={"alice": ("telegram:123",)})
    assert onlookers_at(route, rules) == onlookers


def test_a_program_at_the_api_speaks_for_itself_unless_it_is_an_owner() -> None:
    source = SessionSource(platform="api_server", chat_id="1", user_id="laptop")
    for owners, principal in ((frozenset[str](), "api_server:laptop"), (frozenset({"api_server:laptop"}), OWNER)):
        rules = KeyRules(owners=owners)
        assert scope_in(place_of(source, rules), principal_of(source, rules)) == Scope(Principal(principal))


def test_only_the_owner_at_the_console_sees_everything() -> None:
    assert scope_for(OWNER) == OWNER_AT_CONSOLE == Scope(OWNER, CONSOLE)
    assert OWNER_AT_CONSOLE.sees_all
    assert OWNER_AT_CONSOLE.room is None
    for scope in (Scope(OWNER), Scope(BOB, CONSOLE), scope_for(BOB), scope_for(Principal("person:owner"))):
        assert not scope.sees_all
