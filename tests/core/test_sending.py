"""Which deliveries are held back, and why."""

import pytest

from segue.core.ids import LaneKey
from segue.core.preferences import Preferences
from segue.core.sending import Action, Delivery, Match, Override, SendPolicy, SendRule, Suppression, suppress
from segue.core.sources import SessionSource

GROUP = Delivery(
    SessionSource(platform="discord", chat_type="group", chat_id="42"), LaneKey("agent:main:discord:group:42:alice")
)
TOPIC = Delivery(
    SessionSource(platform="telegram", chat_type="group", chat_id="-1", thread_id="7"),
    LaneKey("agent:work:telegram:group:-1:topic:7"),
)
THREAD = Delivery(
    SessionSource(platform="slack", chat_type="thread", chat_id="9", parent_chat_id="8"),
    LaneKey("agent:main:slack:group:8:topic:9"),
)
DM = Delivery(SessionSource(platform="telegram", chat_id="1"), LaneKey("agent:main:telegram:dm:1"))
CRON = Delivery(SessionSource(platform="telegram", chat_id="1"), LaneKey("agent:main:cron:backup"))


def deny(**match: str) -> SendRule:
    return SendRule(Action.DENY, Match(**match))


def allow(**match: str) -> SendRule:
    return SendRule(Action.ALLOW, Match(**match))


@pytest.mark.parametrize(
    ("rule", "delivery", "is_held_back"),
    [
        (deny(platform="discord"), GROUP, True),
        (deny(platform="discord"), DM, False),
        (deny(chat_type="group"), GROUP, True),
        (deny(chat_type="group"), TOPIC, True),
        (deny(chat_type="group"), THREAD, True),
        (deny(chat_type="thread"), TOPIC, True),
        (deny(chat_type="thread"), THREAD, True),
        (deny(chat_type="thread"), GROUP, False),
        (deny(chat_type="channel"), GROUP, False),
        (deny(platform="discord", chat_type="dm"), GROUP, False),
        (deny(platform="discord", chat_type="group"), GROUP, True),
        (deny(key_prefix="cron:"), CRON, True),
        (deny(key_prefix="cron:"), DM, False),
        (deny(key_prefix="agent:main:cron:"), CRON, False),
        (deny(key_prefix="telegram:group:"), TOPIC, True),
        (deny(raw_key_prefix="agent:main:"), TOPIC, False),
        (deny(raw_key_prefix="agent:work:"), TOPIC, True),
        (deny(raw_key_prefix="cron:"), CRON, False),
        (deny(), DM, True),
        (allow(), DM, False),
    ],
)
def test_a_rule_is_about_what_it_names(rule: SendRule, delivery: Delivery, is_held_back: bool) -> None:
    assert (suppress(delivery, SendPolicy((rule,))) is not None) == is_held_back


@pytest.mark.parametrize(
    ("rules", "default", "is_held_back"),
    [
        ((), Action.ALLOW, False),
        ((), Action.DENY, True),
        ((allow(platform="discord"),), Action.DENY, False),
        ((allow(platform="slack"),), Action.DENY, True),
        ((deny(platform="slack"),), Action.ALLOW, False),
        ((allow(platform="discord"), deny(chat_type="group")), Action.ALLOW, True),
        ((deny(chat_type="group"), allow(platform="discord")), Action.ALLOW, True),
    ],
)
def test_any_denial_wins_and_the_default_counts_where_no_rule_does(
    rules: tuple[SendRule, ...], default: Action, is_held_back: bool
) -> None:
    assert (suppress(GROUP, SendPolicy(rules, default)) is not None) == is_held_back


@pytest.mark.parametrize(
    ("override", "policy", "is_held_back"),
    [
        ("on", SendPolicy((deny(),)), False),
        ("on", SendPolicy(default=Action.DENY), False),
        ("off", SendPolicy(), True),
        ("off", SendPolicy((allow(),)), True),
        ("inherit", SendPolicy(), False),
        ("inherit", SendPolicy((deny(),)), True),
        (None, SendPolicy((deny(),)), True),
        ("what nobody can have chosen", SendPolicy((deny(),)), True),
        (Override.OFF, SendPolicy(), True),
    ],
)
def test_what_was_chosen_for_a_session_counts_more_than_all_rules(
    override: str | None, policy: SendPolicy, is_held_back: bool
) -> None:
    assert (suppress(DM, policy, Preferences(send=override).send) is not None) == is_held_back


@pytest.mark.parametrize("override", ["off", None])
def test_commands_are_answered_whatever_the_policy(override: str | None) -> None:
    policy = SendPolicy((deny(),), Action.DENY)
    assert suppress(DM, policy, override) is not None
    assert suppress(DM._replace(is_control=True), policy, override) is None


def test_whoever_asks_why_is_told() -> None:
    rule = deny(platform="discord", chat_type="group")
    found = suppress(GROUP, SendPolicy((allow(), rule)))
    assert found == Suppression("The send policy denies platform discord and chat_type group.", rule)
    assert suppress(DM, SendPolicy((deny(),))) == Suppression("The send policy denies everything.", deny())
    assert suppress(DM, SendPolicy(), "off") == Suppression(
        "Sending is turned off for this session; /send on turns it on."
    )
    assert suppress(DM, SendPolicy(default=Action.DENY)) == Suppression(
        "The send policy denies what none of its rules allows."
    )
