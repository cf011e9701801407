"""The settings of conversations: which messages share one, how long it lasts, and where answers are sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from segue.config.declaring import about, is_word, nothing
from segue.config.kinds import Choice, Flag, Later, Listing, Number, Section, Table, Text, Zone
from segue.config.naming import PERSON, PLATFORM, is_link_name, is_main_key
from segue.config.zones import zone_of
from segue.core.policy import ResetMode, ResetRule
from segue.core.sharing import DmScope

if TYPE_CHECKING:
    from segue.config.sending_settings import SendPolicySettings

_TYPES = ("dm", "group", "thread")


def _is_trigger(text: str) -> bool:
    return is_word(text) and len(text.split()) == 1


@dataclass(frozen=True, slots=True)
class ResetSettings:
    """When a conversation begins anew by itself."""

    mode: ResetMode | None = field(
        default=None,
        metadata=about(
            Choice(ResetMode),
            "What begins a new session: a time of silence (idle), an hour of the day (daily), whichever comes first "
            "(both), or nothing (none). daily with idle_minutes beside it means both.",
        ),
    )
    at_hour: int | None = field(default=None, metadata=about(Number(0, 23), "The hour of the daily reset."))
    idle_minutes: int | None = field(
        default=None,
        metadata=about(
            Number(1, 10_000_000),
            "After how many minutes without a word from a person the next one begins a new session.",
        ),
    )
    notify: bool | None = field(
        default=None, metadata=about(Flag(), "Whether the user is told of a reset that happened by itself.")
    )
    timezone: str | None = field(
        default=None,
        metadata=about(Zone(), "The time zone of at_hour; host is the zone of the machine, clock changes included."),
    )

    def rule(self, tz: str | None) -> ResetRule:
        """The same as the core reads it; `tz` is the environment's TZ."""
        zone = None if self.timezone is None else zone_of(self.timezone, tz)
        return ResetRule(self.mode, self.at_hour, self.idle_minutes, self.notify, zone)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Which messages share a conversation, and how long one lasts."""

    main_key: str = field(
        default="main",
        metadata=about(
            Text("small letters and digits, and no reserved word like cron or dm", is_main_key),
            "The name of the owners' common lane, which dm_scope main uses.",
        ),
    )
    dm_scope: DmScope = field(
        default=DmScope.PER_CHANNEL_PEER,
        metadata=about(
            Choice(DmScope),
            "Whose direct messages share a lane: all of the owners' (main), those of one person (per-peer), in one "
            "chat (per-channel-peer), or in one chat with one of our accounts (per-account-channel-peer).",
        ),
    )
    identity_links: Mapping[str, tuple[str, ...]] = field(
        default_factory=nothing,
        metadata=about(
            Table(
                Text("without a colon", is_link_name),
                Listing(PERSON),
                "a mapping from a name to a list of platform:id",
            ),
            "Ids that belong to one person, whose direct messages then share a lane in per-peer and per-channel-peer: "
            '{alice: ["telegram:123", "discord:987"]}.',
        ),
    )
    reset: ResetSettings = field(
        default_factory=ResetSettings, metadata=about(Section(ResetSettings), ResetSettings.__doc__)
    )
    reset_by_type: Mapping[str, ResetSettings] = field(
        default_factory=nothing,
        metadata=about(
            Table(
                Text(" or ".join(_TYPES), _TYPES.__contains__),
                Section(ResetSettings),
                "a mapping from dm, group or thread to settings as in session.reset",
            ),
            "What differs from session.reset in direct messages, in groups and channels, or in threads.",
        ),
    )
    reset_by_platform: Mapping[str, ResetSettings] = field(
        default_factory=nothing,
        metadata=about(
            Table(
                PLATFORM,
                Section(ResetSettings),
                "a mapping from a platform to settings as in session.reset",
            ),
            "What holds on a platform in place of session.reset and session.reset_by_type; what it leaves out has the "
            "default of session.reset, except the time zone, which is that of session.reset.",
        ),
    )
    reset_triggers: tuple[str, ...] = field(
        default=(),
        metadata=about(
            Listing(Text("a word without spaces, like /fresh", _is_trigger)),
            "Words that begin a new session beside /new and /reset, alone or followed by text.",
        ),
    )
    greet: bool = field(
        default=True,
        metadata=about(
            Flag(), "Whether the agent greets whoever gives /new or /reset alone; without a model nobody is greeted."
        ),
    )
    _send_policy: "SendPolicySettings | None" = field(
        default=None,
        metadata=about(
            Later("segue.config.sending_settings", "SEND_POLICY"),
            "Which answers are sent; what is not is written all the same, and kept.",
        ),
    )

    @property
    def send_policy(self) -> "SendPolicySettings":
        from segue.config.sending_settings import SendPolicySettings

        return self._send_policy or SendPolicySettings()
