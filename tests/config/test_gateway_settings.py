"""The settings of the gateway: what they mean, what is refused, and that nobody pays for them who has none."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from segue.config import Settings, check, settings_from
from segue.config.documenting import shown
from segue.core.access import AccessRules, DmAccess
from segue.core.errors import InvalidSettings
from segue.core.ids import LaneKey
from segue.core.queueing import Drop, QueueMode, QueueRules
from segue.core.sending import Action, Delivery, Match, SendPolicy, SendRule, suppress
from segue.core.sources import SessionSource
from segue.core.streaming import Streaming

HOME = Path("/home/someone/.segue")


def settings(**raw: Any) -> Settings:
    return settings_from(raw, HOME, {})


def test_the_defaults_are_those_of_the_rules() -> None:
    plain = settings()
    assert plain.queue.on("telegram") == QueueRules(QueueMode.COLLECT, timedelta(seconds=1), 20, Drop.SUMMARIZE)
    assert plain.streaming.on("telegram") == Streaming(1.0, 40, "▌", True)
    assert plain.session.send_policy.policy == SendPolicy((), Action.ALLOW)
    assert plain.access_on("telegram") == AccessRules(DmAccess.PAIRING, allow_bots=False, mention=True)
    assert plain.privacy.redact_ids
    assert (plain.gateway.host, plain.gateway.port) == ("127.0.0.1", 8766)
    assert (plain.agent.turn_timeout, plain.agent.drain_timeout) == (1800, 30)
    assert (plain.stop_suspends, plain.session.reset_triggers) == (False, ())
    assert (dict(plain.agents), dict(plain.platforms)) == ({}, {})


def test_a_platform_says_only_what_is_different_there() -> None:
    said = settings(
        queue={"mode": "followup", "cap": 5, "by_platform": {"slack": {"mode": "steer", "debounce": 0.5}, "sms": {}}},
        streaming={"cursor": "", "by_platform": {"discord": {"enabled": False}, "slack": {"edit_interval": 2}}},
    )
    assert said.queue.on("telegram") == said.queue.on("sms") == QueueRules(QueueMode.FOLLOWUP, cap=5)
    assert said.queue.on("slack") == QueueRules(QueueMode.STEER, timedelta(seconds=0.5), 5)
    assert said.streaming.on("telegram") == Streaming(cursor="")
    assert said.streaming.on("discord") == Streaming(cursor="", is_enabled=False)
    assert said.streaming.on("slack") == Streaming(edit_interval=2.0, cursor="")


def test_who_may_speak_is_said_for_each_platform() -> None:
    telegram = {"dm": "allowlist", "groups": ["-100"], "allow": ["7", "telegram:8"], "mention": False}
    said = settings(access={"telegram": telegram, "discord": {"allow_roles": ["staff"], "allow_bots": True}})
    assert said.access_on("telegram") == AccessRules(
        DmAccess.ALLOWLIST, frozenset({"-100"}), frozenset({"7", "8"}), mention=False
    )
    assert said.access_on("discord") == AccessRules(allow_roles=frozenset({"staff"}), allow_bots=True)
    assert said.access_on("slack") == AccessRules()


def test_the_rules_of_sending_are_read_under_their_own_and_under_other_names() -> None:
    rules = [
        {"action": "deny", "match": {"platform": "discord", "chat_type": "group"}},
        {"action": "deny", "match": {"key_prefix": "cron:"}},
        {"action": "allow", "match": {"raw_key_prefix": "agent:main:cron:news"}},
        {"action": "allow"},
    ]
    others = [
        {"action": "deny", "match": {"channel": "discord", "chatType": "group"}},
        {"action": "deny", "match": {"keyPrefix": "cron:"}},
        {"action": "allow", "match": {"rawKeyPrefix": "agent:main:cron:news"}},
        {"action": "allow"},
    ]
    expected = SendPolicy(
        (
            SendRule(Action.DENY, Match(platform="discord", chat_type="group")),
            SendRule(Action.DENY, Match(key_prefix="cron:")),
            SendRule(Action.ALLOW, Match(raw_key_prefix="agent:main:cron:news")),
            SendRule(Action.ALLOW, Match()),
        ),
        Action.DENY,
    )
    own = settings(session={"send_policy": {"rules": rules, "default": "deny"}})
    other = settings(session={"sendPolicy": {"rules": others, "default": "deny"}})
    assert own.session.send_policy.policy == other.session.send_policy.policy == expected
    assert shown(own)["session"]["send_policy"] == {
        "rules": [*rules[:3], {"action": "allow", "match": {}}],
        "default": "deny",
    }


def test_a_whole_block_of_another_program_is_accepted() -> None:
    session = {
        "scope": "per-sender",
        "dmScope": "main",
        "identityLinks": {"alice": ["telegram:123456789", "discord:987654321012345678"]},
        "reset": {"mode": "daily", "atHour": 4, "idleMinutes": 120},
        "resetByType": {
            "thread": {"mode": "daily", "atHour": 4},
            "dm": {"mode": "idle", "idleMinutes": 240},
            "group": {"mode": "idle", "idleMinutes": 120},
        },
        "resetByChannel": {"discord": {"mode": "idle", "idleMinutes": 10080}},
        "resetTriggers": ["/new", "/reset"],
        "sendPolicy": {
            "rules": [
                {"action": "deny", "match": {"channel": "discord", "chatType": "group"}},
                {"action": "deny", "match": {"keyPrefix": "cron:"}},
            ],
            "default": "allow",
        },
        "store": "~/.other/agents/{agentId}/sessions/sessions.json",
        "mainKey": "main",
    }
    read = settings(session=session).session
    assert (read.dm_scope, read.main_key, read.reset.idle_minutes) == ("main", "main", 120)
    assert read.reset_by_type["dm"].idle_minutes == 240
    assert read.reset_by_platform["discord"].idle_minutes == 10080
    assert read.reset_triggers == ("/new", "/reset")
    group, direct = (SessionSource(platform="discord", chat_id="5", chat_type=kind) for kind in ("group", "dm"))
    cron = Delivery(direct, LaneKey("agent:main:cron:nightly"))
    policy = read.send_policy.policy
    assert suppress(Delivery(group, LaneKey("agent:main:discord:group:5")), policy)
    assert suppress(Delivery(direct, LaneKey("agent:main:discord:dm:5")), policy) is None
    assert suppress(cron, policy)


def test_other_names_are_told_of(tmp_path: Path) -> None:
    raw = {
        "agent": {"gateway_timeout": 60},
        "channels": {"slack": {"enabled": False}},
        "session": {
            "resetTriggers": ["/new"],
            "sendPolicy": {"rules": [{"action": "deny", "match": {"channel": "x"}}]},
        },
        "streaming": {"transport": "edit"},
        "access": {"sms": {"dm": "open"}},
    }
    (tmp_path / "config.yaml").write_text(json.dumps(raw))
    assert check(tmp_path, {}) == [
        "agent.gateway_timeout is read as agent.turn_timeout.",
        "channels.slack is read as platforms.slack.",
        "session.resetTriggers is read as session.reset_triggers.",
        "session.sendPolicy is read as session.send_policy.",
        "channel in session.send_policy.rules is read as platform.",
        "streaming.transport has no effect in Segue.",
        "access.sms.dm is open: everybody who finds your agent there can talk to it.",
    ]


def test_agents_have_names_and_places() -> None:
    work = {
        "model": "fast",
        "prompt": "You help\nat work.",
        "tools": [],
        "memory": False,
        "bindings": ["slack", "sms:+1"],
    }
    agents = settings(agents={"work": work, "main": {}}).agents
    assert (agents["work"].model, agents["work"].prompt, agents["work"].tools) == ("fast", "You help\nat work.", ())
    assert (agents["work"].memory, agents["work"].bindings) == (False, ("slack", "sms:+1"))
    assert (agents["main"].tools, agents["main"].memory) == (None, True)


def test_a_platform_keeps_what_only_its_adapter_knows_and_shows_none_of_its_texts() -> None:
    own = {"bot_token": "hunter2", "poll_seconds": 2.5, "pin": 1234, "webhook": True, "servers": ["hunter2", 5]}
    said = settings(platforms={"telegram": {"home_channel": "-100", **own}, "slack": {"enabled": False}})
    telegram = said.platforms["telegram"]
    assert (telegram.enabled, telegram.home_channel) == (True, "-100")
    assert telegram.own == {**own, "servers": ("hunter2", 5)}
    assert not said.platforms["slack"].enabled
    assert shown(said)["platforms"]["telegram"] == {
        "enabled": True, "home_channel": "-100", "bot_token": "***", "poll_seconds": 2.5, "pin": "***",
        "webhook": True, "servers": ["***", 5],
    }  # fmt: skip
    with pytest.raises(TypeError):
        telegram.own["more"] = 1  # type: ignore[index]


def test_a_platform_keeps_mappings_for_its_adapter_and_shows_none_of_their_texts() -> None:
    hooks = {"github": {"secret": "hunter2", "port": 5, "hosts": ["hunter2"], "nothing": None}}
    said = settings(platforms={"webhook": {"hooks": hooks}})
    kept = said.platforms["webhook"].own
    assert kept == {"hooks": {"github": {"secret": "hunter2", "port": 5, "hosts": ("hunter2",)}}}
    shown_hooks = shown(said)["platforms"]["webhook"]["hooks"]
    assert shown_hooks == {"github": {"secret": "***", "port": 5, "hosts": ["***"]}}
    with pytest.raises(TypeError):
        kept["hooks"]["github"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({"platforms": {"webhook": {"a": {"b": {"c": {"d": {"e": 1}}}}}}}, "platforms.webhook.a.b.c.d must be a text"),
        ({"queue": {"mode": "drop"}}, "queue.mode is 'drop', but must be collect, followup, steer or interrupt"),
        ({"queue": {"cap": 0}}, "queue.cap is 0, but must be a whole number from 1 to 1000"),
        ({"queue": {"drop": "none"}}, "queue.drop is 'none', but must be summarize, old or new"),
        ({"queue": {"by_platform": {"cron": {}}}}, "queue.by_platform has the name 'cron'"),
        ({"queue": {"by_platform": {"slack": {"mod": 1}}}}, "queue.by_platform.slack.mod is no setting"),
        ({"streaming": {"cursor": "x" * 9}}, "streaming.cursor is 'xxxxxxxxx', but must be at most 8"),
        ({"streaming": {"edit_interval": -1}}, "streaming.edit_interval is -1, but must be a number from 0"),
        ({"streaming": {"transport": "off"}}, "streaming.transport is 'off', but Segue knows only edit"),
        ({"access": {"telegram": {"dm": "all"}}}, "access.telegram.dm is 'all', but must be pairing, allowlist, open"),
        ({"access": {"telegram": {"allow": [123]}}}, "access.telegram.allow[0] is 123, but must be the id of a person"),
        ({"access": {"telegram": {"allow": ["*"]}}}, "access.telegram.allow[0] is '*', but must be the id of a person"),
        ({"access": {"Telegram!": {}}}, "access has the name 'Telegram!'"),
        ({"gateway": {"port": 70000}}, "gateway.port is 70000, but must be a whole number from 0 to 65535"),
        ({"gateway": {"host": "a b"}}, "gateway.host is 'a b'"),
        ({"privacy": {"redact_ids": "maybe"}}, "privacy.redact_ids is 'maybe', but must be true or false"),
        ({"agent": {"turn_timeout": 0}}, "agent.turn_timeout is 0"),
        ({"agent": {"gateway_timeout": 0}}, "agent.gateway_timeout is 0"),
        ({"session": {"reset_triggers": ["two words"]}}, "session.reset_triggers[0] is 'two words'"),
        ({"session": {"send_policy": {"rules": [{}]}}}, "session.send_policy.rules.[0] has no action"),
        ({"session": {"send_policy": {"rules": [{"action": "拒绝"}]}}}, "but must be allow or deny"),
        ({"session": {"send_policy": {"rules": {}}}}, "session.send_policy.rules is a mapping, but must be a list"),
        (
            {"session": {"send_policy": {"rules": [{"action": "deny", "match": {"channel": "x", "platform": "y"}}]}}},
            "the same under two names",
        ),
        ({"agents": {"Work": {}}}, "agents has the name 'Work', but a name there must be small letters and digits"),
        ({"agents": {"work": {"bindings": ["cron"]}}}, "agents.work.bindings[0] is 'cron'"),
        ({"platforms": {"telegram": {"x": {"y": float("inf")}}}}, "platforms.telegram.x.y must be a text, a number"),
        ({"platforms": {"telegram": {"x": [[[["hunter2"]]]]}}}, "platforms.telegram.x must be a text, a number"),
        ({"platforms": {"telegram": {"x": float("inf")}}}, "platforms.telegram.x must be a text, a number"),
        ({"platforms": {"telegram": {"Bot Token": "hunter2"}}}, "platforms.telegram has the name 'Bot Token'"),
        ({"platforms": {"telegram": {"home_channel": -100}}}, "platforms.telegram.home_channel is -100"),
        ({"platforms": {"telegram": "hunter2"}}, "platforms.telegram is"),
        ({"platforms": {"dm": {}}}, "platforms has the name 'dm'"),
        ({"platforms": {"cron": {"enabled": False}}}, "platforms.cron.enabled cannot be false: every gateway has it"),
        ({"platforms": {"api_server": {"home_channel": "1"}}}, "platforms.api_server.home_channel cannot be set"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_by_its_name(raw: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        settings(**raw)
    assert says.replace(".[", "[") in str(refused.value)
    assert "hunter2" not in str(refused.value) or raw["platforms"]["telegram"] == "hunter2"


def test_whoever_has_no_gateway_does_not_wait_for_its_settings(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from segue.config import load
settings = load(Path({str(tmp_path)!r}), {{}})
loaded = {{name for name in sys.modules if name.startswith("segue.")}}
assert not {{"segue.config.gateway_settings", "segue.config.access_settings", "segue.core.keys"}} & loaded, loaded
assert settings.queue.cap == 20
assert "segue.config.gateway_settings" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)
