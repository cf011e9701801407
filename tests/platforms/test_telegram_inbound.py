"""What an update of Telegram becomes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.inbound import Inbound, Quote
from segue.platforms.telegram.contents import Media
from segue.platforms.telegram.inbound import Message, Moved, Ourselves, Renamed, read_update

US = Ourselves(700, "Segue_Bot")
ALICE = {"id": 5, "is_bot": False, "first_name": "Alice", "last_name": "Liddell", "username": "alice"}
BOT = {"id": 700, "is_bot": True, "first_name": "Segue", "username": "segue_bot"}
OTHER_BOT = {"id": 701, "is_bot": True, "first_name": "Other"}
PRIVATE = {"id": 5, "type": "private", "first_name": "Alice"}
GROUP = {"id": -10, "type": "supergroup", "title": "Tea"}
FORUM = {**GROUP, "is_forum": True}
CHANNEL = {"id": -20, "type": "channel", "title": "News"}
MADE = {"message_id": 3, "from": BOT, "chat": FORUM, "forum_topic_created": {"name": "Cakes", "icon_color": 1}}


def message(chat: dict[str, Any] = PRIVATE, **more: Any) -> dict[str, Any]:
    return {"message_id": 9, "date": 1, "chat": chat, "from": ALICE, **more}


def read(said: dict[str, Any], kind: str = "message") -> Inbound:
    found = read_update({"update_id": 1, kind: said}, US)
    assert isinstance(found, Message)
    return found.inbound


def entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (message(text="a"), ("5", "dm", "Alice", "5", "Alice Liddell", None, False)),
        (message(GROUP, text="a"), ("-10", "group", "Tea", "5", "Alice Liddell", None, False)),
        (message({**GROUP, "type": "group"}, text="a"), ("-10", "group", "Tea", "5", "Alice Liddell", None, False)),
        (message(GROUP, text="a", message_thread_id=4), ("-10", "group", "Tea", "5", "Alice Liddell", None, False)),
        (
            message(FORUM, text="a", message_thread_id=4, is_topic_message=True),
            ("-10", "group", "Tea", "5", "Alice Liddell", "4", False),
        ),
        (message(FORUM, text="a"), ("-10", "group", "Tea", "5", "Alice Liddell", "1", False)),
        (message(FORUM, text="a", message_thread_id=4), ("-10", "group", "Tea", "5", "Alice Liddell", "1", False)),
        (
            message(text="a", message_thread_id=4, is_topic_message=True),
            ("5", "dm", "Alice", "5", "Alice Liddell", "4", False),
        ),
        (message({**PRIVATE, "is_forum": True}, text="a"), ("5", "dm", "Alice", "5", "Alice Liddell", None, False)),
        (message(GROUP, text="a", **{"from": OTHER_BOT}), ("-10", "group", "Tea", "701", "Other", None, True)),
        (
            message(GROUP, text="a", sender_chat=GROUP, **{"from": {"id": 1, "is_bot": True, "first_name": "Group"}}),
            ("-10", "group", "Tea", "-10", "Tea", None, False),
        ),
        (
            message(GROUP, text="a", sender_chat=CHANNEL, **{"from": {"id": 2, "is_bot": True, "first_name": "C"}}),
            ("-10", "group", "Tea", "-20", "News", None, False),
        ),
    ],
)
def test_where_and_by_whom(said: dict[str, Any], expected: tuple[Any, ...]) -> None:
    source = read(said).source
    found = (source.chat_id, source.chat_type, source.chat_name, source.user_id, source.user_name, source.thread_id)
    assert (*found, source.is_bot) == expected
    assert source.platform == "telegram"


def test_a_post_in_a_channel_is_said_by_the_channel() -> None:
    said = {"message_id": 9, "date": 1, "chat": CHANNEL, "sender_chat": CHANNEL, "text": "a"}
    for kind in ("channel_post", "edited_channel_post"):
        source = read(said, kind).source
        assert (source.chat_type, source.user_id, source.user_name, source.is_bot) == ("channel", "-20", "News", False)


def test_our_own_words_are_told_to_be_ours() -> None:
    assert read(message(GROUP, text="a", **{"from": BOT})).is_own
    assert not read(message(GROUP, text="a")).is_own


def test_a_topic_has_the_name_that_the_message_which_began_it_tells() -> None:
    said = message(FORUM, text="a", message_thread_id=3, is_topic_message=True, reply_to_message=MADE)
    inbound = read(said)
    assert inbound.source.chat_topic == "Cakes"
    assert inbound.quote is None
    assert not inbound.is_mention  # though we began the topic


@pytest.mark.parametrize(
    ("said", "is_mention"),
    [
        (message(text="hello"), True),
        (message(GROUP, text="hello"), False),
        (message(GROUP, text="@SEGUE_bot hi", entities=[entity("mention", 0, 10)]), True),
        (message(GROUP, text="😀😀 @segue_bot", entities=[entity("mention", 5, 10)]), True),
        (message(GROUP, text="😀😀 @segue_bot", entities=[entity("mention", 3, 10)]), False),
        (message(GROUP, text="@segue_bot2 hi", entities=[entity("mention", 0, 11)]), False),
        (message(GROUP, text="@segue_bot hi"), False),  # what Telegram does not take for a name is none
        (message(GROUP, text="Segue!", entities=[entity("text_mention", 0, 5, user=BOT)]), True),
        (message(GROUP, text="Alice!", entities=[entity("text_mention", 0, 5, user=ALICE)]), False),
        (message(GROUP, text="/status", entities=[entity("bot_command", 0, 7)]), True),
        (message(GROUP, text="/status@segue_bot", entities=[entity("bot_command", 0, 17)]), True),
        (message(GROUP, text="/status@other_bot", entities=[entity("bot_command", 0, 17)]), False),
        (message(GROUP, text="try /status", entities=[entity("bot_command", 4, 7)]), False),
        (
            message(GROUP, caption="@segue_bot", caption_entities=[entity("mention", 0, 10)], photo=[{"file_id": "p"}]),
            True,
        ),
        (message(GROUP, text="yes", reply_to_message=message(GROUP, text="?", **{"from": BOT})), True),
        (message(GROUP, text="yes", reply_to_message=message(GROUP, text="?")), False),
        (message(CHANNEL, text="yes"), False),
        (message(GROUP, text="x", entities=[entity("mention", -5, 10), {"type": 7}, "no"]), False),
    ],
)
def test_whether_it_is_addressed_to_us(said: dict[str, Any], is_mention: bool) -> None:
    assert read(said).is_mention is is_mention


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"text": "a\n  b"}, "a\n  b"),
        ({"caption": "below", "photo": [{"file_id": "p"}]}, "below"),
        (
            {
                "text": "😀 see this and https://a.b",
                "entities": [
                    entity("text_link", 3, 3, url="https://c.d/e"),
                    entity("bold", 3, 3),
                    entity("text_link", 16, 11, url="https://a.b/"),
                    entity("text_link", 7, 4, url="https://f.g"),
                    entity("text_link", 7, 4),
                    entity("text_link", -9, 3, url="https://h.i"),
                ],
            },
            "😀 see (https://c.d/e) this (https://f.g) and https://a.b",
        ),
        ({"sticker": {"emoji": "👍", "file_id": "s"}}, "[sticker 👍]"),
        ({"location": {"latitude": 38.71, "longitude": -9.13}}, "[location: 38.71, -9.13]"),
        (
            {
                "venue": {"title": "Ca]fé", "address": "Rua 1", "location": {"latitude": 1, "longitude": 2}},
                "location": {"latitude": 1, "longitude": 2},
            },
            "[venue: Café, Rua 1, 1, 2]",
        ),
        ({"contact": {"first_name": "Bob", "phone_number": "+351"}}, "[contact: Bob, +351]"),
        ({"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}}, "[poll: Tea? / yes / no]"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "[dice 🎲: 4]"),
        ({"story": {"id": 1, "chat": {}}}, "[story]"),
        ({"checklist": {"title": "Shopping", "tasks": []}}, "[checklist: Shopping]"),
        (
            {"text": "so", "forward_origin": {"type": "user", "sender_user": ALICE}},
            "[forwarded from Alice Liddell]\nso",
        ),
        ({"text": "so", "forward_origin": {"type": "hidden_user", "sender_user_name": "X"}}, "[forwarded from X]\nso"),
        ({"text": "so", "forward_origin": {"type": "channel", "chat": CHANNEL}}, "[forwarded from News]\nso"),
        ({"text": "/start"}, "/help"),
        ({"text": "/start deep-link"}, "/help"),
        ({"text": "/started"}, "/started"),
    ],
)
def test_what_it_says(more: dict[str, Any], text: str) -> None:
    assert read(message(**more)).text == text


def test_what_is_passed_on_is_no_command() -> None:
    said = message(text="/stop", forward_origin={"type": "user", "sender_user": ALICE})
    assert read(said).is_verbatim
    assert not read(message(text="/stop")).is_verbatim


@pytest.mark.parametrize(
    ("more", "media"),
    [
        (
            {"photo": [{"file_id": "s", "width": 90}, {"file_id": "l", "width": 800, "file_size": 7}]},
            Media("l", "photo.jpg", "image/jpeg", 7),
        ),
        (
            {"document": {"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 1}},
            Media("d", "a.pdf", "application/pdf", 1),
        ),
        ({"document": {"file_id": "d"}}, Media("d", "document", None, None)),
        ({"voice": {"file_id": "v", "mime_type": "audio/ogg"}}, Media("v", "voice.ogg", "audio/ogg", None)),
        ({"audio": {"file_id": "a", "file_name": "s.mp3"}}, Media("a", "s.mp3", "audio/mpeg", None)),
        ({"video": {"file_id": "v"}}, Media("v", "video.mp4", "video/mp4", None)),
        ({"video_note": {"file_id": "n"}}, Media("n", "video-note.mp4", "video/mp4", None)),
        (
            {"animation": {"file_id": "a", "file_name": "x.mp4"}, "document": {"file_id": "a", "file_name": "x.mp4"}},
            Media("a", "x.mp4", "video/mp4", None),
        ),
    ],
)
def test_which_file_comes_along(more: dict[str, Any], media: Media) -> None:
    found = read_update({"update_id": 1, "message": message(**more)}, US)
    assert isinstance(found, Message)
    assert (found.media, found.inbound.text) == (media, "")


@pytest.mark.parametrize(
    ("more", "quote"),
    [
        ({"reply_to_message": message(text="what?")}, Quote("Alice Liddell", "what?")),
        ({"reply_to_message": message(text="a b c"), "quote": {"text": "b"}}, Quote("Alice Liddell", "b")),
        (
            {"reply_to_message": message(document={"file_id": "d", "file_name": "a.pdf"})},
            Quote("Alice Liddell", "a.pdf"),
        ),
        ({"reply_to_message": message(sender_chat=CHANNEL, text="x")}, Quote("News", "x")),
        ({"reply_to_message": MADE}, None),
        ({"external_reply": {"origin": {}}}, None),
        ({}, None),
    ],
)
def test_what_it_answers(more: dict[str, Any], quote: Quote | None) -> None:
    assert read(message(text="so", **more)).quote == quote


def test_versions_differ_by_what_they_say_and_are_the_same_again() -> None:
    def edited(text: str, at: int) -> str:
        return read(message(text=text, edit_date=at), "edited_message").edit

    assert read(message(text="a")).edit == ""
    assert edited("a", 5) == edited("a", 5)
    assert len({edited("a", 5), edited("b", 5), edited("a", 6)}) == 3
    assert edited("a", 5).startswith("5:")


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({"message": message(GROUP, new_chat_title="Coffee")}, ("-10", "Coffee", None, None)),
        (
            {"message": {**MADE, "message_thread_id": 3, "is_topic_message": True, "from": ALICE}},
            ("-10", "Tea", "3", "Cakes"),
        ),
        (
            {
                "message": message(
                    FORUM, message_thread_id=3, is_topic_message=True, forum_topic_edited={"name": "Pies"}
                )
            },
            ("-10", "Tea", "3", "Pies"),
        ),
    ],
)
def test_names_are_learned(update: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = read_update(update, US)
    assert isinstance(found, Renamed)
    source = found.source
    assert (source.chat_id, source.chat_name, source.thread_id, source.chat_topic) == expected


def test_a_group_that_becomes_another_is_noted() -> None:
    assert read_update({"message": message(GROUP, migrate_to_chat_id=-99)}, US) == Moved("-10", "-99")


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"update_id": 1},
        {"poll": {"id": "1"}},
        {"callback_query": {"id": "1", "message": message(text="a")}},
        {"message": None},
        {"message": []},
        {"message": "text"},
        {"message": {"text": "no chat"}},
        {"message": message({"id": "5", "type": "private"}, text="a")},
        {"message": message({"id": 5, "type": "planet"}, text="a")},
        {"message": {**message(text="a"), "message_id": None}},
        {"message": message()},
        {"message": message(text=7)},
        {"message": message(new_chat_members=[ALICE])},
        {"message": message(pinned_message=message(text="a"))},
        {"edited_message": message(location={"latitude": 1, "longitude": 2, "live_period": 60})},
    ],
)
def test_what_is_no_message_is_left_aside(update: dict[str, Any]) -> None:
    assert read_update(update, US) is None


def test_half_a_character_is_no_trouble() -> None:
    said = message(GROUP, text="\ud83d @segue_bot", entities=[entity("mention", 2, 10)], edit_date=1)
    assert read(said, "edited_message").is_mention


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "private", "mention", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*message(), "text", "photo"]), inner),
    max_leaves=8,
)
FIELDS = [
    "text",
    "caption",
    "entities",
    "photo",
    "document",
    "reply_to_message",
    "from",
    "sender_chat",
    "chat",
    "quote",
]
FIELDS += [
    "location",
    "poll",
    "dice",
    "contact",
    "forward_origin",
    "media_group_id",
    "message_thread_id",
    "new_chat_title",
]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.sampled_from(["message", "edited_message", "channel_post"]))
def test_whatever_comes_is_read_or_left_aside(fields: dict[str, Any], kind: str) -> None:
    read_update({"update_id": 1, kind: {**message(GROUP, text="a"), **fields}}, US)
