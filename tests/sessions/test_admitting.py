"""Who is heard, and who may bring us into a room: judged by the same rules."""

import pytest

from segue.core.access import AccessRules, DmAccess
from segue.core.inbound import Inbound
from segue.core.keys import KeyRules
from segue.core.queueing import QueueRules
from segue.core.reading import read
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.sessions.admitting import Routing, is_heard, is_welcome
from segue.sessions.delivering import Posting
from segue.storage.store import SqlStore

YOU = SessionSource(platform="matrix", chat_id="!a", user_id="@you:here")
STRANGER = SessionSource(platform="matrix", chat_id="!b", user_id="@who:there")
ROOM = SessionSource(platform="matrix", chat_id="!room", chat_type="group", user_id="@who:there")
BOT = SessionSource(platform="matrix", chat_id="!c", user_id="@bot:there", is_bot=True)


def routing(rules: AccessRules | None) -> Routing:
    keys = KeyRules(owners=frozenset({"matrix:@you:here"}))

    def reading(inbound: Inbound) -> object:
        return read(inbound.text)

    return Routing(keys, lambda _: rules, lambda _: QueueRules(), lambda _: "main", reading, Posting(lambda *_: None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rules", "source", "heard", "welcome"),
    [
        (AccessRules(), YOU, True, True),
        (AccessRules(), STRANGER, False, True),
        (AccessRules(dm=DmAccess.ALLOWLIST), STRANGER, False, False),
        (AccessRules(dm=DmAccess.OPEN), STRANGER, True, True),
        (AccessRules(dm=DmAccess.DISABLED), STRANGER, False, False),
        (AccessRules(dm=DmAccess.DISABLED), YOU, True, True),
        (AccessRules(), ROOM, False, False),
        (AccessRules(groups=frozenset({"!room"})), ROOM, True, True),
        (AccessRules(allow=frozenset({"@who:there"})), ROOM, True, True),
        (AccessRules(), BOT, False, False),
        (None, STRANGER, True, True),
    ],
)
def test_who_is_heard_and_who_is_welcome(
    store: SqlStore, rules: AccessRules | None, source: SessionSource, heard: bool, welcome: bool
) -> None:
    assert store.read(OWNER, is_heard, source, routing(rules)) == heard
    assert store.read(OWNER, is_welcome, source, routing(rules)) == welcome
