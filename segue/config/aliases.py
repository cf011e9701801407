"""Names that other programs give to our settings. They are accepted, translated and reported."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from segue.config.kinds import Key, Problem
from segue.config.masking import dotted, quoted

_RULES = ("session.reset", "session.reset_by_type.*", "session.reset_by_platform.*")
_RULE_FIELDS = {"atHour": "at_hour", "idleMinutes": "idle_minutes"}

ALIASES = {
    "session_reset": "session.reset",
    "platforms.*.session_reset": "session.reset_by_platform.*",
    "channels.*.session_reset": "session.reset_by_platform.*",
    "channels.*": "platforms.*",
    "agent.gateway_timeout": "agent.turn_timeout",
    "agent.gateway_auto_continue_freshness": "agent.auto_continue_freshness",
    "session.group_sessions_per_user": "group_sessions_per_user",
    "session.thread_sessions_per_user": "thread_sessions_per_user",
    "session.mainKey": "session.main_key",
    "session.dmScope": "session.dm_scope",
    "session.identityLinks": "session.identity_links",
    "session.resetByType": "session.reset_by_type",
    "session.resetByChannel": "session.reset_by_platform",
    "session.reset_by_channel": "session.reset_by_platform",
    "session.resetTriggers": "session.reset_triggers",
    "session.sendPolicy": "session.send_policy",
    "session.idleMinutes": "session.reset.idle_minutes",
    "session.idle_minutes": "session.reset.idle_minutes",
    **{f"{rule}.{alias}": f"{rule}.{name}" for rule in _RULES for alias, name in _RULE_FIELDS.items()},
}
"""Written name → name in Segue; `*` stands for any one name."""

MATCH_ALIASES = {
    "channel": "platform",
    "chatType": "chat_type",
    "keyPrefix": "key_prefix",
    "rawKeyPrefix": "raw_key_prefix",
}
"""The same for what a rule of `session.send_policy` is about."""

WITHOUT_EFFECT = {"session.scope": "per-sender", "session.store": None, "streaming.transport": "edit"}
"""Keys that are accepted and ignored, with the only value that may be ignored when there is one."""

_PATTERNS = {tuple(alias.split(".")): tuple(name.split(".")) for alias, name in ALIASES.items()}
_LEGACY_IDLE = (("session", "idleMinutes"), ("session", "idle_minutes"))
_DEFAULT_RESET = ("session", "reset")
_TYPED_RESET = ("session", "reset_by_type")
_SEND_RULES = ("session", "send_policy", "rules")


class Translation(NamedTuple):
    """A configuration under our names; `origins` says how each of its keys was written."""

    settings: dict[str, object]
    notes: list[str]
    origins: dict[Key, Key]

    def as_written(self, key: Key) -> Key:
        """The key as the user knows it."""
        for name, written in self.origins.items():
            if _begins(key, name):
                return (*written, *key[len(name) :])
            if _begins(name, key):
                return written[: max(0, len(written) - len(name) + len(key))] or key
        return key


def translate(raw: Mapping[str, object]) -> Translation:
    """The configuration under Segue's own names, and a sentence about every other name in it."""
    translation = Translation({}, [], {})
    said: dict[Key, object] = {}
    for written, value in _leaves(raw):
        if _is_without_effect(written, value):
            _note(translation, f"{dotted(written)} has no effect in Segue.")
            continue
        key = _renamed(written, translation)
        if key in said:
            raise _twice(written, translation.origins[key])
        said[key] = _renamed_rules(value, translation) if key == _SEND_RULES else value
        translation.origins[key] = written
    _read_legacy_idle(said, translation)
    for key, value in said.items():
        _place(translation, key, value)
    return translation


def _leaves(value: object, key: Key = ()) -> Iterator[tuple[Key, object]]:
    if not isinstance(value, Mapping) or (key and not value):
        yield key, value
        return
    for name, item in value.items():
        if not isinstance(name, str):
            raise Problem((*key, str(name)), "is no setting: a name must be text")
        yield from _leaves(item, (*key, name))


def _is_without_effect(key: Key, value: object) -> bool:
    name = ".".join(key)
    if name not in WITHOUT_EFFECT:
        return False
    only = WITHOUT_EFFECT[name]
    if only is not None and value not in (only, None):
        raise Problem(key, f"is {quoted(value)}, but Segue knows only {only}, which needs no setting")
    return True


def _renamed(written: Key, translation: Translation) -> Key:
    """The key with every alias in it replaced, from the outside inwards."""
    key = written
    while found := next((alias for alias in _PATTERNS if _begins(key, alias)), None):
        rest = key[len(found) :]
        stars = [part for part, pattern in zip(key, found, strict=False) if pattern == "*"]
        name = tuple(stars.pop(0) if part == "*" else part for part in _PATTERNS[found])
        alias = written[: len(written) - len(rest)]
        _note(translation, f"{dotted(alias)} is read as {dotted(name)}.")
        key = (*name, *rest)
    return key


def _renamed_rules(rules: object, translation: Translation) -> object:
    """The rules of sending with every alias in them replaced; what is no list of rules is left to who reads it."""
    if not isinstance(rules, list | tuple):
        return rules
    return [_renamed_rule(rule, translation) for rule in rules]


def _renamed_rule(rule: object, translation: Translation) -> object:
    match = rule.get("match") if isinstance(rule, Mapping) else None
    if not isinstance(rule, Mapping) or not isinstance(match, Mapping):
        return rule
    named = {MATCH_ALIASES.get(name, name): value for name, value in match.items()}
    if len(named) < len(match):
        raise Problem(_SEND_RULES, "has a rule that says the same under two names; keep one of them")
    for name in match:
        if name in MATCH_ALIASES:
            _note(translation, f"{name} in session.send_policy.rules is read as {MATCH_ALIASES[name]}.")
    return {**rule, "match": named}


def _begins(key: Key, pattern: Key) -> bool:
    return len(key) >= len(pattern) and all(wanted in ("*", part) for part, wanted in zip(key, pattern, strict=False))


def _read_legacy_idle(said: dict[Key, object], translation: Translation) -> None:
    """A lone idle time, from before there were modes, means the mode idle."""
    written = translation.origins.get((*_DEFAULT_RESET, "idle_minutes"))
    others = [key for key, value in said.items() if key[:2] in (_DEFAULT_RESET, _TYPED_RESET) and value is not None]
    if written in _LEGACY_IDLE and len(others) == 1:
        mode = (*_DEFAULT_RESET, "mode")
        said[mode], translation.origins[mode] = "idle", written
        _note(translation, f"{dotted(written)} without session.reset means the mode idle.")


def _place(translation: Translation, key: Key, value: object) -> None:
    """Puts a value under its nested names; two keys collide where one has a value and the other goes on below it."""
    at = translation.settings
    for name in key[:-1]:
        inner = at[name] = {} if at.get(name) is None else at[name]
        if not isinstance(inner, dict):
            raise _collision(translation, key)
        at = inner
    if at.get(key[-1]) is None:
        at[key[-1]] = {} if value == {} else value
    elif value not in (None, {}):
        raise _collision(translation, key)


def _collision(translation: Translation, key: Key) -> Problem:
    """What to say of a key that lies above or below another one with a value of its own."""
    others = (name for name in translation.origins if name != key and (_begins(key, name) or _begins(name, key)))
    return _twice(translation.origins[key], translation.origins[next(others)])


def _twice(written: Key, other: Key) -> Problem:
    return Problem(written, f"is the same setting as {dotted(other)}; keep one of them")


def _note(translation: Translation, sentence: str) -> None:
    if sentence not in translation.notes:
        translation.notes.append(sentence)
