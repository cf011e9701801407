"""The settings of sending: which answers leave, and which are only kept."""

from dataclasses import dataclass, field
from enum import StrEnum

from segue.config.declaring import about, is_word
from segue.config.kinds import Choice, Key, Listing, Problem, Section, Text
from segue.core.sending import Action, Match, SendPolicy, SendRule


class _ChatType(StrEnum):
    DM = "dm"
    GROUP = "group"
    CHANNEL = "channel"
    THREAD = "thread"


@dataclass(frozen=True, slots=True)
class _MatchSettings:
    """What a rule is about."""

    platform: str | None = field(default=None, metadata=about(Text("a platform", is_word), "The platform."))
    chat_type: str | None = field(default=None, metadata=about(Choice(_ChatType), "The kind of chat."))
    key_prefix: str | None = field(
        default=None, metadata=about(Text("the beginning of a key", is_word), "How its key goes on behind its agent.")
    )
    raw_key_prefix: str | None = field(
        default=None, metadata=about(Text("the beginning of a key", is_word), "How its key begins.")
    )


@dataclass(frozen=True, slots=True)
class _RuleSettings:
    """A rule."""

    action: Action | None = field(default=None, metadata=about(Choice(Action), "What is done."))
    match: _MatchSettings = field(
        default_factory=_MatchSettings, metadata=about(Section(_MatchSettings), _MatchSettings.__doc__)
    )


class _RuleKind(Section):
    allowed = "a mapping with action (allow or deny) and match (platform, chat_type, key_prefix, raw_key_prefix)"

    def read(self, value: object, key: Key, **given: object) -> SendRule:
        said: _RuleSettings = super().read(value, key, **given)
        if said.action is None:
            raise Problem(key, "has no action: write allow or deny")
        where = said.match
        return SendRule(said.action, Match(where.platform, where.chat_type, where.key_prefix, where.raw_key_prefix))

    def plain(self, value: SendRule) -> dict[str, object]:
        match = {name: said for name, said in value.match._asdict().items() if said is not None}
        return {"action": str(value.action), "match": match}


@dataclass(frozen=True, slots=True)
class SendPolicySettings:
    """Which answers are sent."""

    rules: tuple[SendRule, ...] = field(
        default=(),
        metadata=about(
            Listing(_RuleKind(_RuleSettings)),
            "What is done in which lanes: {action: deny, match: {platform: discord, chat_type: group}}. One rule that "
            "denies is enough, whatever the others say.",
        ),
    )
    default: Action = field(
        default=Action.ALLOW, metadata=about(Choice(Action), "What is done where no rule says anything.")
    )

    @property
    def policy(self) -> SendPolicy:
        """The same as the core reads it."""
        return SendPolicy(self.rules, self.default)


SEND_POLICY = Section(SendPolicySettings)
