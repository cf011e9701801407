"""Where something is to be delivered, as people write it."""

import pytest

from segue.core.errors import Invalid
from segue.core.routes import Route, parse_route
from segue.core.sources import SessionSource

HOME = SessionSource(platform="telegram", chat_id="-100", thread_id="5")


def homes(platform: str) -> SessionSource | None:
    return HOME if platform == "telegram" else None


@pytest.mark.parametrize(
    ("text", "route"),
    [
        ("telegram:123", Route("telegram", "123")),
        ("telegram", Route("telegram")),
        ("matrix:!room:example.org", Route("matrix", "!room:example.org")),
        ("email:a@b.org", Route("email", "a@b.org")),
    ],
)
def test_a_route_is_read_and_written_alike(text: str, route: Route) -> None:
    assert parse_route(text) == route
    assert str(route) == text


@pytest.mark.parametrize("text", ["", ":", "telegram:", "telegram: ", "Telegram:1", "a b:1", "webhook:x", "cron:tea"])
def test_what_is_no_place_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(Invalid, match="is no place to deliver to"):
        parse_route(text)


def test_a_route_without_a_chat_leads_to_the_home_channel() -> None:
    assert parse_route("telegram").leads_to(homes) == HOME
    assert parse_route("slack").leads_to(homes) is None
    assert parse_route("slack:C1").leads_to(homes) == SessionSource(platform="slack", chat_id="C1")
