"""Every setting: its name, what it allows, its default and what it means. Nothing about settings is said elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from segue.config.chat_settings import AgentSettings, DisplaySettings, ModelsSettings, ProviderSettings
from segue.config.context_settings import AuxiliarySettings, CompressionSettings, PruningSettings
from segue.config.declaring import about, is_word, nothing
from segue.config.kinds import Choice, Flag, Listing, Number, Section, Table, Text, Zone
from segue.config.masking import masked
from segue.config.mcp_settings import McpSettings
from segue.config.zones import HOST, zone_of
from segue.core.errors import InvalidKey, InvalidSource
from segue.core.places import is_address
from segue.core.policy import ResetMode, ResetPolicies, ResetPolicy, ResetRule
from segue.core.sharing import DmScope

if TYPE_CHECKING:
    from segue.core.keys import KeyRules

CONFIG_FILE = "config.yaml"
DATABASE_FILE = "state.db"
SQLITE = "sqlite"

_TYPES = ("dm", "group", "thread")
_YEAR = 31_536_000  # seconds


def _is_database(said: str) -> bool:
    return said == SQLITE or is_address(said)


def _is_platform(name: str) -> bool:
    from segue.core.keys import Chat  # slow to load, and most configurations name no platform

    try:
        Chat(name, "dm")
    except InvalidSource:
        return False
    return True


def _is_main_key(name: str) -> bool:
    from segue.core.keys import Main  # slow to load, and most configurations do not name it

    try:
        Main(name)
    except InvalidKey:
        return False
    return True


def _is_person(text: str) -> bool:
    platform, _, peer = text.partition(":")
    return _is_platform(platform) and is_word(peer)


def _is_link_name(name: str) -> bool:
    return is_word(name) and ":" not in name


def _is_model(name: str) -> bool:
    return name == "" or is_word(name)


_PERSON = Text("a person as platform:id, like telegram:123456", _is_person)


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
            Text("small letters and digits, and no reserved word like cron or dm", _is_main_key),
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
                Text("without a colon", _is_link_name),
                Listing(_PERSON),
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
                Text("that of a platform", _is_platform),
                Section(ResetSettings),
                "a mapping from a platform to settings as in session.reset",
            ),
            "What holds on a platform in place of session.reset and session.reset_by_type; what it leaves out has the "
            "default of session.reset, except the time zone, which is that of session.reset.",
        ),
    )


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long things are kept."""

    trash_days: int = field(
        default=7,
        metadata=about(
            Number(0, 36_500),
            "How many days a deleted session can be restored from the trash; it is announced a day before it goes.",
        ),
    )
    prune_days: int = field(
        default=0,
        metadata=about(
            Number(0, 36_500),
            "After how many days without activity an ended conversation goes into the trash, announced a day before; "
            "pinned and open ones never do; 0 is never.",
        ),
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be configured, and where it was found: the home folder and the environment's TZ."""

    home: Path
    tz: str | None = None
    database: str = field(
        default=SQLITE,
        metadata=about(
            Text("sqlite or an address that begins with postgresql://", _is_database),
            f"Where sessions are kept: sqlite is the file {DATABASE_FILE} in the home folder; an address is a database"
            " on a PostgreSQL server.",
        ),
    )
    model: str = field(
        default="",
        metadata=about(
            Text("the name of a model, like anthropic/claude-sonnet-4-5 or an alias", _is_model),
            "The model that answers; when it is not said, it is found by the keys in the environment or as a server on"
            " this machine.",
        ),
    )
    models: ModelsSettings = field(
        default_factory=ModelsSettings, metadata=about(Section(ModelsSettings), ModelsSettings.__doc__)
    )
    providers: Mapping[str, ProviderSettings] = field(
        default_factory=nothing,
        metadata=about(
            Table(
                Text("a word", is_word),
                Section(ProviderSettings),
                "a mapping from a name to kind, base_url and api_key",
            ),
            "Places with models beside those whose keys are in the environment.",
        ),
    )
    display: DisplaySettings = field(
        default_factory=DisplaySettings, metadata=about(Section(DisplaySettings), DisplaySettings.__doc__)
    )
    owners: tuple[str, ...] = field(
        default=(), metadata=about(Listing(_PERSON), "Who you are on each platform; the terminal is always yours.")
    )
    group_sessions_per_user: bool = field(
        default=True,
        metadata=about(Flag(), "Whether each person in a group or channel has a conversation of their own there."),
    )
    thread_sessions_per_user: bool = field(
        default=False, metadata=about(Flag(), "Whether each person in a thread has a conversation of their own there.")
    )
    session_store_max_age_days: int = field(
        default=0,
        metadata=about(
            Number(0, 36_500),
            "After how many days without activity a lane is removed, though not its sessions; 0 is never.",
        ),
    )
    session: SessionSettings = field(
        default_factory=SessionSettings, metadata=about(Section(SessionSettings), SessionSettings.__doc__)
    )
    agent: AgentSettings = field(
        default_factory=AgentSettings, metadata=about(Section(AgentSettings), AgentSettings.__doc__)
    )
    mcp: McpSettings = field(default_factory=McpSettings, metadata=about(Section(McpSettings), McpSettings.__doc__))
    auxiliary: AuxiliarySettings = field(
        default_factory=AuxiliarySettings, metadata=about(Section(AuxiliarySettings), AuxiliarySettings.__doc__)
    )
    compression: CompressionSettings = field(
        default_factory=CompressionSettings, metadata=about(Section(CompressionSettings), CompressionSettings.__doc__)
    )
    pruning: PruningSettings = field(
        default_factory=PruningSettings, metadata=about(Section(PruningSettings), PruningSettings.__doc__)
    )
    retention: RetentionSettings = field(
        default_factory=RetentionSettings, metadata=about(Section(RetentionSettings), RetentionSettings.__doc__)
    )

    @property
    def config_path(self) -> Path:
        return self.home / CONFIG_FILE

    @property
    def is_on_server(self) -> bool:
        return self.database != SQLITE

    @property
    def database_at(self) -> str | Path:
        """The file or the address of the database."""
        return self.database if self.is_on_server else self.database_path

    @property
    def database_place(self) -> str:
        """Where sessions are kept, without the password of an address."""
        return masked(self.database) if self.is_on_server else str(self.database_path)

    @property
    def database_path(self) -> Path:
        return self.home / DATABASE_FILE

    @property
    def key_rules(self) -> "KeyRules":
        """The settings that decide which messages share a lane."""
        from segue.core.keys import KeyRules  # slow to load, and only lanes need it

        return KeyRules(
            dm_scope=self.session.dm_scope,
            main_key=self.session.main_key,
            identity_links=self.session.identity_links,
            owners=frozenset(self.owners),
            group_sessions_per_user=self.group_sessions_per_user,
            thread_sessions_per_user=self.thread_sessions_per_user,
        )

    @property
    def reset_policies(self) -> ResetPolicies:
        """The settings that decide when a conversation begins anew."""
        session = self.session
        return ResetPolicies(
            session.reset.rule(self.tz).over(ResetPolicy(zone=zone_of(session.reset.timezone or HOST, self.tz))),
            {name: one.rule(self.tz) for name, one in session.reset_by_type.items()},
            {name: one.rule(self.tz) for name, one in session.reset_by_platform.items()},
        )
