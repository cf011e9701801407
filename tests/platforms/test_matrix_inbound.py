"""What the events of Matrix mean."""

from typing import Any

import pytest

from segue.core.errors import InvalidSettings
from segue.core.inbound import Inbound, Quote
from segue.platforms.matrix.events import Event, Media, is_message, media_of, redacted_by, since_we_came
from segue.platforms.matrix.inbound import (
    UNREADABLE,
    Me,
    Room,
    inbound_from,
    inviter_of,
    read_later,
    unaddressed,
    unreadable_from,
)
from segue.platforms.matrix.settings import read_settings

ME = Me("@segue:example.org", "Segue Bot")
ANN, BOB = "@ann:example.org", "@bob:example.org"
DM = Room("!dm", None, 2, {ANN: "Ann"})
GROUP = Room("!room:example.org", "The office", 5, {ANN: "Ann", BOB: "Bob", ME.user_id: "Segue Bot"})
OTHER: dict[str, Any] = {"event_id": "$other", "type": "m.room.message", "sender": BOB}


def event(content: object, kind: str = "m.room.message", **more: Any) -> dict[str, Any]:
    return {"event_id": "$e", "type": kind, "sender": ANN, "content": content, **more}


def text(body: str, **content: Any) -> dict[str, Any]:
    return event({"msgtype": "m.text", "body": body, **content})


def said(what: Event, room: Room = GROUP, **more: Any) -> Inbound:
    found = inbound_from(what, room, ME, **more)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"msgtype": "m.text", "body": "hello"}, "hello"),
        ({"msgtype": "m.text", "body": "> not a quote\n\nhello"}, "> not a quote\n\nhello"),
        ({"msgtype": "m.notice", "body": "beep"}, "beep"),
        ({"msgtype": "m.emote", "body": "waves"}, "* Ann waves"),
        ({"msgtype": "m.location", "body": "Lisbon", "geo_uri": "geo:38.7,-9.1"}, "[location: Lisbon, geo:38.7,-9.1]"),
        ({"msgtype": "m.image", "body": "cat.png", "url": "mxc://a/b"}, ""),
        ({"msgtype": "m.image", "body": "my cat", "filename": "cat.png", "url": "mxc://a/b"}, "my cat"),
        ({"msgtype": "m.file", "body": "a.pdf", "filename": "a.pdf", "url": "mxc://a/b"}, ""),
        ({"msgtype": "org.example.odd", "body": "hm"}, "hm"),
        ({"msgtype": "m.text", "body": 7}, ""),
        ({"msgtype": "m.text"}, ""),
    ],
)
def test_each_kind_of_message_has_its_words(content: dict[str, Any], words: str) -> None:
    assert said(event(content)).text == words


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        ("m.sticker", {"body": "a cat", "url": "mxc://a/b"}, "[sticker: a cat]"),
        (
            "org.matrix.msc3381.poll.start",
            {
                "org.matrix.msc3381.poll.start": {
                    "question": {"org.matrix.msc1767.text": "Tea?"},
                    "answers": [{"org.matrix.msc1767.text": "yes"}, {"org.matrix.msc1767.text": "no"}, 7],
                }
            },
            "[poll: Tea? yes / no]",
        ),
    ],
)
def test_what_is_no_text_is_told_in_brackets(kind: str, content: dict[str, Any], words: str) -> None:
    assert said(event(content, kind)).text == words


@pytest.mark.parametrize(
    "odd",
    [
        event({"name": "x"}, "m.room.name", state_key=""),
        event({"m.relates_to": {"rel_type": "m.annotation", "event_id": "$o", "key": "👍"}}, "m.reaction"),
        event({"msgtype": "m.key.verification.request", "body": "verify"}),
        event({}),
        event(None),
        event("text"),
        event({"msgtype": ["m.text"], "body": "x"}),
        {"type": "m.room.message", "content": {"msgtype": "m.text", "body": "x"}},
    ],
)
def test_what_says_nothing_is_no_message(odd: dict[str, Any]) -> None:
    assert not is_message(odd)
    assert inbound_from(odd, GROUP, ME) is None


@pytest.mark.parametrize("relation", [None, 7, [], "x", {"m.in_reply_to": 3}, {"rel_type": "m.thread", "event_id": 9}])
def test_a_relation_of_any_shape_stops_nothing(relation: object) -> None:
    found = said(text("hello", **{"m.relates_to": relation}))
    assert (found.text, found.source.thread_id, found.quote) == ("hello", None, None)


def test_a_source_names_room_and_person_whole() -> None:
    source = said(text("hello"), DM).source
    assert (source.platform, source.chat_id, source.chat_type) == ("matrix", "!dm", "dm")
    assert (source.user_id, source.user_name, source.message_id) == (ANN, "Ann", "$e")
    group = said(event({"msgtype": "m.notice", "body": "x"}, sender="@new:example.org")).source
    assert (group.chat_id, group.chat_name, group.chat_type) == ("!room:example.org", "The office", "group")
    assert (group.user_name, group.is_bot) == ("new", True)


def test_our_own_words_are_known_as_such() -> None:
    assert said(event({"msgtype": "m.text", "body": "x"}, sender=ME.user_id)).is_own
    assert not said(text("x")).is_own


@pytest.mark.parametrize(
    ("content", "is_mention"),
    [
        ({"body": "hello all"}, False),
        ({"body": "hello all", "m.mentions": {"user_ids": [ME.user_id]}}, True),
        ({"body": "hello all", "m.mentions": {"user_ids": [BOB]}}, False),
        ({"body": "hello all", "m.mentions": {"user_ids": 7}}, False),
        ({"body": "@segue:example.org look"}, True),
        ({"body": "@SEGUE what do you think?"}, True),
        ({"body": "what does @segue think?"}, True),
        ({"body": "segue: hello"}, True),
        ({"body": " Segue, hello"}, True),
        ({"body": "segue /new"}, True),
        ({"body": "we segue to the next point"}, False),
        ({"body": "segue is a word"}, False),
        ({"body": "me@segueway.org"}, False),
        ({"body": "what does the Segue Bot think?"}, True),
        ({"body": "segue bot: hello"}, True),
        ({"body": "a seguent thing"}, False),
        ({"body": "presegue"}, False),
    ],
)
def test_a_mention_is_by_id_or_by_name(content: dict[str, Any], is_mention: bool) -> None:
    assert said(event({"msgtype": "m.text", **content})).is_mention is is_mention


@pytest.mark.parametrize(
    ("name", "body", "is_mention"),
    [
        ("Agent", "ask Agent about it", True),
        ("Agent", "ask an agent about it", False),
        ("agent", "ask an agent about it", False),
        ("agent", "agent: about it", True),
        ("agent", "ask @agent about it", True),
        ("my agent", "ask My Agent about it", True),
        (None, "ask a bot about it", False),
        (None, "bot, about it", True),
    ],
)
def test_a_name_that_is_a_word_like_any_other_is_not_a_mention(name: str | None, body: str, is_mention: bool) -> None:
    found = inbound_from(text(body), GROUP, Me("@bot:example.org", name))
    assert found is not None
    assert found.is_mention is is_mention


def test_everything_is_for_us_where_only_two_are() -> None:
    assert said(text("hello all"), DM).is_mention


@pytest.mark.parametrize(
    ("room", "kind"),
    [
        (Room("!r", members=2), "dm"),
        (Room("!r", members=2, is_closed=False), "group"),
        (Room("!r", members=3), "group"),
        (Room("!r", members=1), "group"),
        (Room("!r"), "group"),
    ],
)
def test_a_direct_chat_has_two_inside_and_nobody_comes_in_uninvited(room: Room, kind: str) -> None:
    assert room.chat_type == kind


def test_an_answer_to_us_is_for_us_and_quotes_us() -> None:
    ours = {**OTHER, "sender": ME.user_id, "content": {"msgtype": "m.text", "body": "It is late."}}
    answer = text(
        "> <@segue:example.org> It is late.\n\nhow late?", **{"m.relates_to": {"m.in_reply_to": {"event_id": "$other"}}}
    )
    found = said(answer, answered=ours)
    assert (found.text, found.quote, found.is_mention) == ("how late?", Quote("Segue Bot", "It is late."), True)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("> <@bob:example.org> one\n> two\n\nthree", "three"),
        ("> * <@bob:example.org> waves\n\nthree", "three"),
        ("> <@bob:example.org> one\n\n> my own quote", "> my own quote"),
        ("> quoted by hand\n\nthree", "> quoted by hand\n\nthree"),
        ("three", "three"),
    ],
)
def test_what_old_clients_put_before_an_answer_is_left_out(body: str, words: str) -> None:
    answer = text(body, **{"m.relates_to": {"m.in_reply_to": {"event_id": "$other"}}})
    answered = {**OTHER, "content": {"msgtype": "m.text", "body": "one"}}
    found = said(answer, answered=answered)
    assert (found.text, found.quote, found.is_mention) == (words, Quote("Bob", "one"), False)


def test_in_a_thread_only_a_reply_that_somebody_chose_is_one() -> None:
    relation = {"rel_type": "m.thread", "event_id": "$root", "m.in_reply_to": {"event_id": "$other"}}
    fallback = said(text("> <@bob:example.org> x\n\nhello", **{"m.relates_to": {**relation, "is_falling_back": True}}))
    assert (fallback.source.thread_id, fallback.text) == ("$root", "> <@bob:example.org> x\n\nhello")
    chosen = said(text("> <@bob:example.org> x\n\nhello", **{"m.relates_to": relation}))
    assert (chosen.source.thread_id, chosen.text) == ("$root", "hello")


def test_an_edit_is_a_version_of_its_message_in_its_thread() -> None:
    new = {"msgtype": "m.text", "body": "the word"}
    edit = text("* the word", **{"m.new_content": new, "m.relates_to": {"rel_type": "m.replace", "event_id": "$first"}})
    first = {
        **text("teh word", **{"m.relates_to": {"rel_type": "m.thread", "event_id": "$root"}}),
        "event_id": "$first",
    }
    found = said(edit, original=first)
    assert (found.message_id, found.edit, found.text) == ("$first", "$e", "the word")
    assert found.source.thread_id == "$root"
    assert inbound_from(edit, GROUP, ME, original={**first, "sender": BOB}) is None, "Bob's words are Bob's"
    alone = said(edit)
    assert (alone.message_id, alone.edit, alone.text) == ("$e", "", "the word"), "nobody knows whose words it changes"


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("/new", "/new"),
        ("@segue /new", "/new"),
        ("@segue:example.org: /new hello", "/new hello"),
        ("Segue Bot: /title A day", "/title A day"),
        ("segue bot /stop", "/stop"),
        ("Segue Bot: hello", "Segue Bot: hello"),
        ("other /new", "other /new"),
        ("segue", "segue"),
    ],
)
def test_a_command_needs_no_name_before_it(words: str, command: str) -> None:
    assert unaddressed(words, ME) == command


@pytest.mark.parametrize(
    ("content", "media"),
    [
        (
            {"msgtype": "m.image", "body": "c.png", "url": "mxc://a/b", "info": {"mimetype": "image/png", "size": 9}},
            Media("mxc://a/b", "c.png", "image/png", 9),
        ),
        (
            {"msgtype": "m.file", "body": "see", "filename": "r.pdf", "file": {"url": "mxc://a/c", "iv": "x"}},
            Media("mxc://a/c", "r.pdf", None, None, {"url": "mxc://a/c", "iv": "x"}),
        ),
        ({"msgtype": "m.file", "body": "r", "info": {"size": "many", "mimetype": 7}}, Media("", "r", None, None)),
        ({"msgtype": "m.text", "body": "x", "url": "mxc://a/b"}, None),
    ],
)
def test_a_file_is_told_of_by_its_message(content: dict[str, Any], media: Media | None) -> None:
    assert media_of(event(content)) == media


def test_what_is_taken_back_is_named_in_old_and_new_rooms() -> None:
    assert redacted_by(event({}, "m.room.redaction", redacts="$old")) == "$old"
    assert redacted_by(event({"redacts": "$new"}, "m.room.redaction")) == "$new"
    assert redacted_by(text("x")) is None


def test_a_message_without_a_key_is_told_of_where_only_two_are() -> None:
    sealed = event({"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x"}, "m.room.encrypted")
    told = unreadable_from(sealed, DM)
    assert told is not None
    assert (told.text, told.message_id, told.edit) == (UNREADABLE, "$e", "")
    assert unreadable_from(sealed, GROUP) is None
    assert read_later(said(text("hello"), DM), "$e").edit == "decrypted:$e"


def member(membership: str, was: str | None = None, who: str = ME.user_id) -> dict[str, Any]:
    unsigned = {} if was is None else {"prev_content": {"membership": was}}
    return event({"membership": membership}, "m.room.member", state_key=who, unsigned=unsigned)


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        ([text("a"), text("b")], 2),
        ([text("old"), member("invite"), text("hello"), member("join", "invite"), text("again")], 4),
        ([text("old"), member("join"), text("hello")], 2),
        ([text("a"), member("join", "join"), text("b")], 3),
        ([text("a"), member("invite", who=ANN), text("b")], 3),
        ([member("join", "invite"), text("a")], 2),
        ([member("join"), text("a"), member("leave", "join"), text("b"), member("invite", "leave"), text("c")], 2),
    ],
)
def test_what_was_said_before_we_came_is_not_for_us(events: list[dict[str, Any]], kept: int) -> None:
    assert since_we_came(events, ME.user_id) == events[-kept:]


def test_whoever_invites_us_is_named_with_the_room() -> None:
    events = [
        event({"name": "The office"}, "m.room.name", state_key=""),
        event({"membership": "join", "displayname": "Ann"}, "m.room.member", state_key=ANN),
        event({"membership": "invite", "is_direct": True}, "m.room.member", state_key=ME.user_id),
    ]
    source = inviter_of("!dm", events, ME)
    assert source is not None
    assert (source.chat_id, source.chat_type, source.chat_name) == ("!dm", "dm", "The office")
    assert (source.user_id, source.user_name) == (ANN, "Ann")
    assert inviter_of("!dm", events[:2], ME) is None
    public = inviter_of("!dm", [event({"join_rule": "public"}, "m.room.join_rules", state_key=""), *events], ME)
    assert public is not None
    assert public.chat_type == "group", "what anybody can enter is no direct chat, whatever is said of it"


GOOD = {"homeserver": "https://matrix.example.org", "user": "@segue:example.org", "password": "hush"}


def test_settings_are_read_and_their_secrets_not_shown() -> None:
    settings = read_settings({**GOOD, "homeserver": "https://matrix.example.org/"})
    assert (settings.homeserver, settings.user, settings.localpart) == (GOOD["homeserver"], GOOD["user"], "segue")
    assert (settings.password, settings.encryption, settings.device_name) == ("hush", True, "Segue")
    assert "hush" not in repr(settings)
    for here in ("http://127.0.0.1:8008", "http://[::1]:8008", "http://[::ffff:127.0.0.1]:8008"):
        assert read_settings({**GOOD, "homeserver": here}).homeserver == here


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"homeserver": None}, "platforms.matrix.homeserver must be an address"),
        ({"homeserver": "http://matrix.example.org"}, "must begin with https://"),
        ({"homeserver": "ftp://matrix.example.org"}, "platforms.matrix.homeserver must be an address"),
        ({"homeserver": "https://me:hush@matrix.example.org"}, "platforms.matrix.homeserver must be an address"),
        ({"homeserver": "https://[x"}, "is no address"),
        ({"user": "segue"}, "platforms.matrix.user must be a whole Matrix id"),
        ({"password": None}, "needs either a password or an access_token"),
        ({"access_token": "t"}, "needs either a password or an access_token"),
        ({"password": 7}, "platforms.matrix.password must be a text"),
        ({"encryption": "yes"}, "platforms.matrix.encryption must be true or false"),
        ({"device_name": ""}, "platforms.matrix.device_name must be a text"),
        ({"pasword": "x"}, "unknown key 'pasword'"),
    ],
)
def test_settings_that_cannot_be_meant_are_named(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidSettings, match=sentence) as raised:
        read_settings({**GOOD, **change})
    assert "hush" not in str(raised.value)
