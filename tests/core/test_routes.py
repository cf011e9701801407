"""Where something is to be delivered, as people write it."""

import pytest

from segue.core.errors import Invalid
from segue.core.routes import Route, as_last_seen, parse_route
from segue.core.sources import SessionSource


@pytest.mark.parametrize(
    ("text", "route"),
    [
        ("telegram:123", Route("telegram", "123")),
        ("telegram", Route("telegram")),
        ("matrix:!room:example.org", Route("matrix", "!room:example.org")),
        ("email:a@b.org", Route("email", "a@b.org")),
        ("telegram:group:-100123", Route("telegram", "-100123", "group")),
        ("telegram:dm:group:1", Route("telegram", "group:1", "dm")),
        ("irc:group", Route("irc", "group")),
    ],
)
def test_a_route_is_read_and_written_alike(text: str, route: Route) -> None:
    assert parse_route(text) == route
    assert str(route) == text


@pytest.mark.parametrize(
    "text", ["", ":", "telegram:", "telegram: ", "Telegram:1", "a b:1", "webhook:x", "cron:tea", "dm:7", "irc:dm:"]
)
def test_what_is_no_place_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(Invalid, match="is no place to deliver to"):
        parse_route(text)


@pytest.mark.parametrize(("text", "chat_type"), [("slack:C1", "dm"), ("slack:group:C1", "group")])
def test_a_chat_is_one_persons_unless_somebody_says_what_it_is(text: str, chat_type: str) -> None:
    assert parse_route(text).source == SessionSource(platform="slack", chat_id="C1", chat_type=chat_type)


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        pytest.param(None, {}, id="nobody has spoken there"),
        pytest.param({"user_id": "7", "user_name": "Bob"}, {"user_id": "7", "user_name": "Bob"}, id="one person's"),
        pytest.param({"chat_type": "group", "user_id": "7"}, {"chat_type": "group"}, id="a group"),
        pytest.param({"chat_type": "group", "thread_id": "5"}, {"chat_type": "group"}, id="a thread of it was last"),
        pytest.param({"chat_type": "thread", "thread_id": "5"}, {"chat_type": "group"}, id="as others tell of one"),
        pytest.param(
            {"chat_type": "thread", "thread_id": "C1", "parent_chat_id": "C0"},
            {"chat_type": "thread", "thread_id": "C1", "parent_chat_id": "C0"},
            id="a thread with an id of its own",
        ),
        pytest.param({"message_id": "9", "user_id": "7"}, {"user_id": "7"}, id="no single message is answered"),
    ],
)
def test_a_chat_is_known_by_what_came_from_it_last(said: dict[str, str] | None, seen: dict[str, str]) -> None:
    here = {"platform": "slack", "chat_id": "C1"}
    last = None if said is None else SessionSource.from_dict(here | said)
    assert as_last_seen(SessionSource.from_dict(here), last) == SessionSource.from_dict(here | seen)


def test_a_home_channel_that_others_came_into_is_one_persons_no_more() -> None:
    home = SessionSource(platform="matrix", chat_id="!r", user_id="owner", thread_id="5")
    seen = as_last_seen(home, SessionSource(platform="matrix", chat_id="!r", chat_type="group", user_id="bob"))
    assert seen == SessionSource(platform="matrix", chat_id="!r", chat_type="group", thread_id="5")
