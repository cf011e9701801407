"""Where something is to be delivered, as people write it."""

import pytest

from segue.core.errors import Invalid
from segue.core.routes import Route, parse_route
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
    "text", ["", ":", "telegram:", "telegram: ", "Telegram:1", "a b:1", "webhook:x", "cron:tea", "irc:dm:"]
)
def test_what_is_no_place_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(Invalid, match="is no place to deliver to"):
        parse_route(text)


@pytest.mark.parametrize(
    ("text", "known", "chat_type"),
    [
        ("telegram:-100", None, "dm"),
        ("telegram:-100", "group", "group"),
        ("telegram:group:-100", None, "group"),
        ("telegram:group:-100", "channel", "group"),
    ],
)
def test_a_chat_is_of_the_type_that_was_said_or_is_known(text: str, known: str | None, chat_type: str) -> None:
    meant = SessionSource(platform="telegram", chat_id="-100", chat_type=chat_type)
    assert parse_route(text).source(known) == meant
