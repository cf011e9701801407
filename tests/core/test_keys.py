"""Two lanes never share a key, and a key can be read back, whatever ids people and platforms come up with."""

import pytest
from examples import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from segue.core.access import AccessRules, Allowed, DmAccess, Role, decide
from segue.core.errors import InvalidKey, InvalidSource
from segue.core.keys import (
    RESERVED,
    Chat,
    KeyRules,
    Main,
    Person,
    Place,
    Task,
    build_key,
    is_isolated,
    parse_key,
    place_of,
)
from segue.core.principals import principal_of
from segue.core.scope import OWNER as OWNER_PRINCIPAL
from segue.core.sharing import DmScope
from segue.core.sources import SessionSource

FRAGMENTS = (
    *("", ":", "::", "%", "%3A", "%3a", "%25", "%ED%A0%80", "%zz", "a:b", "telegram:1", "telegram%3A1"),
    *("agent", "main", "topic", "account", "default", "dm", "group", "channel", "thread", "cron", "node-"),
    *("node-x", "node"),
    *("alice", "Alice", "1", "01", "-100", "\x00", "\n", "\t", " ", "\x7f", "\x80", "\x9f", "\ud800", "\udc00"),
    "\ud800\udc00",
    *("é", "e\u0301", "語", "👩‍💻", "\u200b", "\u202e", "/../", "\\", "x" * 5000),
)
hostile = st.sampled_from(FRAGMENTS) | st.text(st.characters(), max_size=8)
agents = hostile.filter(bool)
platforms = st.sampled_from(["telegram", "discord", "slack", "cli", "main", "api_server", "webhook", "x1"])
chat_types = st.sampled_from(["dm", "group", "channel"])

chats = st.builds(Chat, platforms, chat_types, hostile, hostile, hostile, hostile, agents)
people = st.builds(Person, hostile, agents)
mains = st.builds(Main, st.just("main"), agents)
tasks = st.one_of(
    st.builds(Task, st.sampled_from(["cron", "hook", "subagent", "node"]), st.tuples(hostile), agents),
    st.builds(Task, st.just("api"), st.tuples(hostile, hostile), agents),
)
places: st.SearchStrategy[Place] = st.one_of(chats, people, mains, tasks)

LINKS = {"alice": ("telegram:1", "discord:1"), "1": ("slack:1",), "per%3Acent": ("slack:%",)}
rules = st.builds(
    KeyRules,
    dm_scope=st.sampled_from(DmScope),
    identity_links=st.just(LINKS),
    owners=st.just(frozenset({"telegram:01", "discord:1"})),
    group_sessions_per_user=st.booleans(),
    thread_sessions_per_user=st.booleans(),
)
perhaps = st.none() | hostile
sources = st.builds(
    SessionSource,
    platform=platforms,
    chat_id=hostile,
    chat_type=st.sampled_from(["dm", "group", "channel", "thread"]),
    user_id=perhaps,
    user_id_alt=perhaps,
    thread_id=perhaps,
    parent_chat_id=perhaps,
    account=perhaps,
)


@given(places)
@examples(50, in_torture=1000)
def test_a_key_is_read_back_into_its_lane(place: Place) -> None:
    assert parse_key(build_key(place)) == place


@given(places, places)
@examples(50, in_torture=1000)
@example(Chat("telegram", "group", "1", participant="topic"), Chat("telegram", "group", "1", thread="topic"))
@example(Chat("telegram", "group", "1", thread="a", participant="b"), Chat("telegram", "group", "1", thread="a:b"))
@example(Chat("telegram", "group", participant="1"), Chat("telegram", "group", "1"))
@example(Chat("telegram", "dm", account="dm"), Chat("telegram", "dm", "dm"))
@example(Person("telegram:1"), Person("telegram%3A1"))
@example(Main("main", agent="a:main"), Person("main", agent="a"))
def test_different_lanes_have_different_keys(one: Place, other: Place) -> None:
    assert (build_key(one) == build_key(other)) == (one == other)


def test_names_that_are_only_joined_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.core.keys.encode_segment", str)
    one, other = Chat("telegram", "group", "1:topic:2"), Chat("telegram", "group", "1", thread="2")
    assert build_key(one) == build_key(other)


@given(sources, rules, agents)
@examples(50, in_torture=1000)
def test_the_lane_of_any_message_has_a_key_that_is_read_back(
    source: SessionSource, rules: KeyRules, agent: str
) -> None:
    place = place_of(source, rules, agent)
    assert parse_key(build_key(place), rules.main_key) == place


@given(places)
@examples(40, in_torture=500)
def test_a_key_is_text_that_any_database_and_terminal_can_hold(place: Place) -> None:
    key = build_key(place)
    assert not any(character < " " or "\x7f" <= character <= "\x9f" for character in key)
    assert key.encode("utf-8").decode("utf-8") == key


@given(st.lists(hostile, max_size=8).map(":".join) | st.text(st.characters(), max_size=30))
@examples(50, in_torture=1000)
def test_what_is_no_key_is_refused(text: str) -> None:
    for key in (text, f"agent:{text}", f"agent:main:telegram:{text}", f"agent:main:telegram:account:{text}"):
        try:
            place = parse_key(key)
        except InvalidKey:
            continue
        assert build_key(place) == key


@pytest.mark.parametrize(
    "key",
    [
        "",
        "agent",
        "agent:main",
        "agent::main",
        "Agent:main:main",
        "agent:main:",
        "agent:main:home",
        "agent:main:telegram",
        "agent:main:telegram:",
        "agent:main:telegram:dm:",
        "agent:main:telegram:thread:1",
        "agent:main:telegram:direct:1",
        "agent:main:Telegram:dm:1",
        "agent:main:tele-gram:dm:1",
        "agent:main:topic:dm:1",
        "agent:main:telegram:account:dm:1",
        "agent:main:telegram:account::dm:1",
        "agent:main:telegram:account:work",
        "agent:main:telegram:group:1:",
        "agent:main:telegram:group:1:topic:",
        "agent:main:telegram:group:1:topic::2",
        "agent:main:telegram:group:1:topic:5:",
        "agent:main:telegram:group:1:thread:5",
        "agent:main:telegram:group:1:topic:5:2:3",
        "agent:main:telegram:dm:%3a",
        "agent:main:telegram:dm:%41",
        "agent:main:telegram:dm:%",
        "agent:main:telegram:dm:%2",
        "agent:main:telegram:dm:%ED%A0",
        "agent:main:telegram:dm:%FF",
        "agent:main:telegram:dm:a\nb",
        "agent:main:telegram:dm:\ud800",
        "agent:main:dm",
        "agent:main:dm:a:b",
        "agent:main:cron",
        "agent:main:cron:a:b",
        "agent:main:api:client",
        "agent:main:node:x",
        "agent%3Amain:main",
        "group:-100",
        "main",
    ],
)
def test_not_a_key(key: str) -> None:
    with pytest.raises(InvalidKey):
        parse_key(key)


@pytest.mark.parametrize(
    ("place", "key"),
    [
        (Chat("telegram", "dm", "12345"), "agent:main:telegram:dm:12345"),
        (Chat("telegram", "dm"), "agent:main:telegram:dm"),
        (Chat("telegram", "dm", "1", thread="2"), "agent:main:telegram:dm:1:topic:2"),
        (Chat("telegram", "group", "1", thread="2", participant="3"), "agent:main:telegram:group:1:topic:2:3"),
        (Chat("telegram", "group", thread="2"), "agent:main:telegram:group::topic:2"),
        (Chat("telegram", "group", participant="3"), "agent:main:telegram:group::3"),
        (Chat("telegram", "dm", "1", account="work"), "agent:main:telegram:account:work:dm:1"),
        (Chat("matrix", "group", "!Room:example.org"), "agent:main:matrix:group:!Room%3Aexample.org"),
        (Chat("email", "dm", "100%@x"), "agent:main:email:dm:100%25@x"),
        (Chat("email", "dm", "a\x00\x85\ud800"), "agent:main:email:dm:a%00%C2%85%ED%A0%80"),
        (Chat("slack", "channel", "C12345", agent="ops"), "agent:ops:slack:channel:C12345"),
        (Person("alice"), "agent:main:dm:alice"),
        (Person("telegram:123"), "agent:main:dm:telegram%3A123"),
        (Main(), "agent:main:main"),
        (Main(agent="ops"), "agent:ops:main"),
        (Task("cron", ("backup",)), "agent:main:cron:backup"),
        (Task("hook", ("9f:8",)), "agent:main:hook:9f%3A8"),
        (Task("node", ("mac",)), "agent:main:node-mac"),
        (Task("api", ("client", "talk")), "agent:main:api:client:talk"),
        (Task("subagent", ("7",)), "agent:main:subagent:7"),
    ],
)
def test_the_key_of(place: Place, key: str) -> None:
    assert build_key(place) == key
    assert parse_key(key) == place


def test_the_main_key_can_be_another_word() -> None:
    assert build_key(Main("home")) == "agent:main:home"
    assert parse_key("agent:main:home", main_key="home") == Main("home")
    with pytest.raises(InvalidKey):
        parse_key("agent:main:main", main_key="home")


def dm(platform: str = "telegram", chat_id: str = "", **fields: str) -> SessionSource:
    return SessionSource(platform=platform, chat_id=chat_id, **fields)  # type: ignore[arg-type]


NUMBER_FORMS = [
    {"chat_id": "+4915123456789"},
    {"chat_id": "4915123456789@s.whatsapp.net"},
    {"chat_id": "4915123456789:12@s.whatsapp.net", "user_id": "4915123456789:12@s.whatsapp.net"},
    {"chat_id": "4915123456789.0:1@c.us"},
    {"chat_id": "whatsapp:+49 151 2345-6789"},
    {"chat_id": "004915123456789"},
    {"user_id": "4915123456789"},
    {"chat_id": "99887766554433@lid", "user_id": "99887766554433@lid", "user_id_alt": "4915123456789@s.whatsapp.net"},
    {"chat_id": "99887766554433:3@lid", "user_id": "+4915123456789"},
]


@pytest.mark.parametrize("form", NUMBER_FORMS)
@pytest.mark.parametrize("scope", DmScope)
def test_a_number_on_whatsapp_is_one_person_in_every_spelling(form: dict[str, str], scope: DmScope) -> None:
    written = ("whatsapp:4915123456789@s.whatsapp.net",)
    rules = KeyRules(dm_scope=scope, owners=frozenset(written), identity_links={"bob": ("whatsapp:+4930999999",)})
    source, plain = dm("whatsapp", **form), dm("whatsapp", "+4915123456789")
    assert build_key(place_of(source, rules)) == build_key(place_of(plain, rules))
    assert principal_of(source, rules) == OWNER_PRINCIPAL
    assert principal_of(source, KeyRules()) == principal_of(plain, KeyRules())
    assert rules.linked_name("whatsapp", dm("whatsapp", "4930999999:1@s.whatsapp.net").peer) == "bob"
    listed = AccessRules(DmAccess.ALLOWLIST, allow=frozenset({"0049 151 23456789"}))
    assert decide(source, listed, None) == Allowed(Role.PERSON)


@pytest.mark.parametrize("given", ["1203-17@g.us", "status@broadcast", "123@newsletter", "Alice", "+49", "0123456"])
def test_what_is_no_number_keeps_its_id_on_whatsapp(given: str) -> None:
    assert dm("whatsapp", given).peer == given
    assert dm("telegram", "4915123456789").peer == "4915123456789"


def room(chat_type: str = "group", platform: str = "telegram", chat_id: str = "-100", **fields: str) -> SessionSource:
    return SessionSource(platform=platform, chat_type=chat_type, chat_id=chat_id, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "key"),
    [
        pytest.param(dm("telegram", "12345"), "agent:main:telegram:dm:12345", id="Telegram DM"),
        pytest.param(dm("discord", "987"), "agent:main:discord:dm:987", id="Discord DM"),
        pytest.param(dm("whatsapp", "+4912345"), "agent:main:whatsapp:dm:+4912345", id="WhatsApp DM"),
        pytest.param(
            dm("telegram", "12345", thread_id="thread_678"),
            "agent:main:telegram:dm:12345:topic:thread_678",
            id="DM in a thread",
        ),
        pytest.param(dm("signal", user_id="user_abc"), "agent:main:signal:dm:user_abc", id="DM of a known person"),
        pytest.param(dm("telegram"), "agent:main:telegram:dm", id="DM of nobody known"),
        pytest.param(
            dm("telegram", thread_id="5"), "agent:main:telegram:dm::topic:5", id="DM of nobody known in a thread"
        ),
        pytest.param(room(), "agent:main:telegram:group:-100", id="group, nobody known"),
        pytest.param(room(user_id="user_abc"), "agent:main:telegram:group:-100:user_abc", id="group"),
        pytest.param(
            room(user_id="u", user_id_alt="stable"), "agent:main:telegram:group:-100:stable", id="the id that stays"
        ),
        pytest.param(
            room("channel", "slack", "C12345", user_id="U1"), "agent:main:slack:channel:C12345:U1", id="channel"
        ),
        pytest.param(room("channel", "slack", "C12345"), "agent:main:slack:channel:C12345", id="channel, nobody known"),
        pytest.param(
            room("group", "discord", "12345", thread_id="thread_678", user_id="user_abc"),
            "agent:main:discord:group:12345:topic:thread_678",
            id="a thread is shared",
        ),
        pytest.param(
            room("thread", "discord", "678", parent_chat_id="12345", user_id="u"),
            "agent:main:discord:group:12345:topic:678",
            id="a thread with its parent",
        ),
        pytest.param(
            room("thread", "slack", "C1", thread_id="17.5", user_id="u"),
            "agent:main:slack:group:C1:topic:17.5",
            id="a thread in a chat",
        ),
        pytest.param(
            room("thread", "discord", "678", user_id="u"),
            "agent:main:discord:group:678:topic:678",
            id="a thread whose parent is unknown",
        ),
        pytest.param(dm("telegram", "1", account="default"), "agent:main:telegram:dm:1", id="the default account"),
        pytest.param(dm("telegram", "1", account=""), "agent:main:telegram:dm:1", id="no account"),
        pytest.param(
            dm("telegram", "1", account="work"), "agent:main:telegram:account:work:dm:1", id="another account"
        ),
        pytest.param(
            room(account="work", user_id="u"),
            "agent:main:telegram:account:work:group:-100:u",
            id="another account in a group",
        ),
        pytest.param(
            room("group", "whatsapp", "1203@g.us", user_id="+49"),
            "agent:main:whatsapp:group:1203@g.us:+49",
            id="WhatsApp group",
        ),
        pytest.param(dm("matrix", "!AbC:x.org"), "agent:main:matrix:dm:!AbC%3Ax.org", id="ids keep their case"),
    ],
)
def test_by_default_the_key_of_a_message_is(source: SessionSource, key: str) -> None:
    assert build_key(place_of(source, KeyRules())) == key


OWNER_ON_TELEGRAM = frozenset({"telegram:1"})
ALICE = {"alice": ("telegram:123", "discord:987")}
MAIN_RULES = KeyRules(dm_scope=DmScope.MAIN, owners=OWNER_ON_TELEGRAM, identity_links=ALICE)
PER_PEER = KeyRules(dm_scope=DmScope.PER_PEER, owners=OWNER_ON_TELEGRAM, identity_links=ALICE)
PER_CHANNEL_PEER = KeyRules(dm_scope=DmScope.PER_CHANNEL_PEER, owners=OWNER_ON_TELEGRAM, identity_links=ALICE)
PER_ACCOUNT = KeyRules(dm_scope=DmScope.PER_ACCOUNT_CHANNEL_PEER, owners=OWNER_ON_TELEGRAM, identity_links=ALICE)
OWNER = dm("telegram", "1", user_id="1")
LINKED = dm("telegram", "123", user_id="123")
LINKED_ELSEWHERE = dm("discord", "channel-5", user_id="987")
STRANGER = dm("telegram", "555", user_id="555")
STRANGER_AT_WORK = dm("telegram", "555", user_id="555", account="work")
NAMESAKE = dm("telegram", "alice", user_id="alice")
SAME_NUMBER = dm("discord", "123", user_id="123")
NOBODY = dm("telegram")


@pytest.mark.parametrize(
    ("rules", "source", "key"),
    [
        (MAIN_RULES, OWNER, "agent:main:main"),
        (MAIN_RULES, dm("telegram", "1"), "agent:main:main"),
        (MAIN_RULES, dm("telegram", "1", account="work"), "agent:main:main"),
        (MAIN_RULES, dm("discord", "1", user_id="1"), "agent:main:discord:dm:1"),
        (KeyRules(DmScope.MAIN, owners=frozenset({"telegram:1", "sms:+2"})), dm("sms", "+2"), "agent:main:main"),
        (MAIN_RULES, dm("telegram", "1", user_id="2"), "agent:main:telegram:dm:1"),
        (MAIN_RULES, STRANGER, "agent:main:telegram:dm:555"),
        (MAIN_RULES, STRANGER_AT_WORK, "agent:main:telegram:account:work:dm:555"),
        (MAIN_RULES, LINKED, "agent:main:telegram:dm:123"),
        (MAIN_RULES, NOBODY, "agent:main:telegram:dm"),
        (KeyRules(dm_scope=DmScope.MAIN), OWNER, "agent:main:telegram:dm:1"),
        (KeyRules(dm_scope=DmScope.MAIN, owners=OWNER_ON_TELEGRAM, main_key="home"), OWNER, "agent:main:home"),
        (PER_PEER, OWNER, "agent:main:dm:telegram%3A1"),
        (PER_PEER, STRANGER, "agent:main:dm:telegram%3A555"),
        (PER_PEER, STRANGER_AT_WORK, "agent:main:dm:telegram%3A555"),
        (PER_PEER, dm("telegram", "chat-9", user_id="555"), "agent:main:dm:telegram%3A555"),
        (PER_PEER, LINKED, "agent:main:dm:alice"),
        (PER_PEER, LINKED_ELSEWHERE, "agent:main:dm:alice"),
        (PER_PEER, SAME_NUMBER, "agent:main:dm:discord%3A123"),
        (PER_PEER, NAMESAKE, "agent:main:dm:telegram%3Aalice"),
        (PER_PEER, NOBODY, "agent:main:telegram:dm"),
        (PER_CHANNEL_PEER, OWNER, "agent:main:telegram:dm:1"),
        (PER_CHANNEL_PEER, STRANGER, "agent:main:telegram:dm:555"),
        (PER_CHANNEL_PEER, STRANGER_AT_WORK, "agent:main:telegram:account:work:dm:555"),
        (PER_CHANNEL_PEER, LINKED, "agent:main:dm:alice"),
        (PER_CHANNEL_PEER, LINKED_ELSEWHERE, "agent:main:dm:alice"),
        (PER_CHANNEL_PEER, SAME_NUMBER, "agent:main:discord:dm:123"),
        (PER_CHANNEL_PEER, NAMESAKE, "agent:main:telegram:dm:alice"),
        (PER_ACCOUNT, STRANGER, "agent:main:telegram:dm:555"),
        (PER_ACCOUNT, STRANGER_AT_WORK, "agent:main:telegram:account:work:dm:555"),
        (PER_ACCOUNT, LINKED, "agent:main:telegram:dm:123"),
        (PER_ACCOUNT, LINKED_ELSEWHERE, "agent:main:discord:dm:channel-5"),
    ],
)
def test_whose_direct_messages_share_a_lane(rules: KeyRules, source: SessionSource, key: str) -> None:
    assert build_key(place_of(source, rules)) == key


@pytest.mark.parametrize("scope", DmScope)
def test_links_and_owners_say_nothing_about_rooms(scope: DmScope) -> None:
    rules = KeyRules(dm_scope=scope, owners=OWNER_ON_TELEGRAM, identity_links=ALICE)
    assert build_key(place_of(room(user_id="1"), rules)) == "agent:main:telegram:group:-100:1"
    assert build_key(place_of(room(user_id="123"), rules)) == "agent:main:telegram:group:-100:123"
    assert build_key(place_of(room("channel", user_id="1"), rules)) == "agent:main:telegram:channel:-100:1"


GROUP, TOPIC = "agent:main:telegram:group:-100", "agent:main:telegram:group:-100:topic:5"


@pytest.mark.parametrize(
    ("per_user_in_groups", "per_user_in_threads", "source", "key", "is_shared"),
    [
        (True, False, room(user_id="u"), f"{GROUP}:u", False),
        (False, False, room(user_id="u"), GROUP, True),
        (False, True, room(user_id="u"), GROUP, True),
        (True, True, room(user_id="u"), f"{GROUP}:u", False),
        (True, False, room(user_id="u", thread_id="5"), TOPIC, True),
        (False, False, room(user_id="u", thread_id="5"), TOPIC, True),
        (False, True, room(user_id="u", thread_id="5"), f"{TOPIC}:u", False),
        (True, True, room(user_id="u", thread_id="5"), f"{TOPIC}:u", False),
        (True, True, room(), GROUP, True),
        (True, True, room(thread_id="5"), TOPIC, True),
        (False, True, room("thread", chat_id="5", parent_chat_id="-100", user_id="u"), f"{TOPIC}:u", False),
        (True, False, room("thread", chat_id="5", parent_chat_id="-100", user_id="u"), TOPIC, True),
    ],
)
def test_who_shares_a_room(
    per_user_in_groups: bool, per_user_in_threads: bool, source: SessionSource, key: str, is_shared: bool
) -> None:
    rules = KeyRules(group_sessions_per_user=per_user_in_groups, thread_sessions_per_user=per_user_in_threads)
    place = place_of(source, rules)
    assert build_key(place) == key
    assert isinstance(place, Chat)
    assert place.is_shared is is_shared


@given(sources, rules)
@settings(max_examples=50)
def test_a_direct_message_is_never_shared_and_has_no_room(source: SessionSource, rules: KeyRules) -> None:
    assume(source.chat_type == "dm")
    place = place_of(source, rules)
    assert not isinstance(place, Chat) or (place.room is None and not place.is_shared)


@given(chats)
@settings(max_examples=50)
def test_everybody_in_a_room_sees_the_same_room(chat: Chat) -> None:
    if chat.room is not None:
        assert chat.room.is_shared
        assert chat.room.room == chat.room
        assert (chat.room.chat_id, chat.room.thread, chat.room.account) == (chat.chat_id, chat.thread, chat.account)


@given(hostile, rules, st.sampled_from(["dm", "group", "channel", "thread"]))
@settings(max_examples=50)
def test_the_same_id_on_two_platforms_is_two_people(number: str, rules: KeyRules, chat_type: str) -> None:
    one = SessionSource(platform="telegram", chat_id=number, chat_type=chat_type, user_id=number)
    other = SessionSource(platform="slack", chat_id=number, chat_type=chat_type, user_id=number)
    assert build_key(place_of(one, rules)) != build_key(place_of(other, rules))


@given(hostile, hostile, st.sampled_from(DmScope))
@settings(max_examples=50)
def test_nobody_gets_into_the_lane_of_another_by_the_choice_of_an_id(peer: str, chat_id: str, scope: DmScope) -> None:
    rules = KeyRules(dm_scope=scope, owners=OWNER_ON_TELEGRAM, identity_links=ALICE)
    assume((peer or chat_id) not in ("1", "123"))
    key = build_key(place_of(dm("telegram", chat_id, user_id=peer), rules))
    assert key not in ("agent:main:main", "agent:main:dm:alice", "agent:main:dm:telegram%3A1")


@pytest.mark.parametrize(
    "platform", [*sorted(RESERVED), "", "Telegram", "tele gram", "tele:gram", "1st", "node-1", "é"]
)
def test_a_platform_cannot_be_called(platform: str) -> None:
    with pytest.raises(InvalidSource):
        Chat(platform, "dm", "1")
    if platform in ("batch", "cron"):
        return  # which are no chats, but have lanes of their own
    with pytest.raises(InvalidSource):
        place_of(dm(platform, "1"), KeyRules())


@pytest.mark.parametrize("chat_type", ["dm", "group", "channel"])
@pytest.mark.parametrize(
    ("platform", "chat_id", "user_id", "key", "is_alone"),
    [
        ("webhook", "github", None, "agent:work:hook:github", False),
        ("webhook", "a:b", "7", "agent:work:hook:a%3Ab", False),
        ("cron", "tea", None, "agent:work:cron:tea", True),
        ("cron", "cron:tea", None, "agent:work:cron:cron%3Atea", True),
        ("api_server", "42", "laptop", "agent:work:api:laptop:42", False),
        ("api_server", "42", None, "agent:work:api::42", False),
        ("telegram", "cron", None, None, False),
    ],
)
def test_what_runs_by_itself_has_a_lane_of_its_own(
    platform: str, chat_id: str, user_id: str | None, key: str | None, is_alone: bool, chat_type: str
) -> None:
    source = SessionSource(platform=platform, chat_id=chat_id, user_id=user_id, chat_type=chat_type)
    for scope in DmScope:
        rules = KeyRules(dm_scope=scope, owners=frozenset({f"{platform}:{chat_id}"}))
        built = build_key(place_of(source, rules, "work"))
        assert key in (None, built)
        assert is_isolated(built) is is_alone


@pytest.mark.parametrize("chat_type", ["", "DM", "direct", "topic", "account"])
def test_a_chat_cannot_be_of_type(chat_type: str) -> None:
    with pytest.raises(InvalidSource):
        place_of(SessionSource(platform="telegram", chat_id="1", chat_type=chat_type), KeyRules())


@pytest.mark.parametrize("name", ["cron", "dm", "node-x", "", "a:b", "a%3Ab", "Main", "a b"])
def test_the_main_key_cannot_be(name: str) -> None:
    with pytest.raises(InvalidKey):
        KeyRules(main_key=name)


@pytest.mark.parametrize("name", ["", ":", "telegram:1"])
def test_a_linked_person_cannot_be_called(name: str) -> None:
    with pytest.raises(InvalidKey):
        KeyRules(identity_links={name: ("telegram:1",)})


@pytest.mark.parametrize(
    ("kind", "name"), [("cron", ()), ("cron", ("a", "b")), ("api", ("a",)), ("dm", ("a",)), ("telegram", ("a",))]
)
def test_a_task_cannot_be(kind: str, name: tuple[str, ...]) -> None:
    with pytest.raises(InvalidKey):
        Task(kind, name)
