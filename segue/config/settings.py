"""Every setting: its name, what it allows, its default and what it means. Nothing about settings is said elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from segue.config.chat_settings import AgentSettings, DisplaySettings, ModelsSettings, ProviderSettings
from segue.config.context_settings import AuxiliarySettings, CompressionSettings, PruningSettings
from segue.config.declaring import about, is_word, nothing
from segue.config.kinds import Flag, Later, Listing, Number, Section, Table, Text
from segue.config.masking import masked
from segue.config.mcp_settings import McpSettings
from segue.config.naming import AGENT, CONNECTABLE, PERSON, PLATFORM
from segue.config.session_settings import SessionSettings
from segue.config.zones import HOST, zone_of
from segue.core.places import is_address
from segue.core.policy import ResetPolicies, ResetPolicy

if TYPE_CHECKING:
    from segue.config.access_settings import AccessSettings
    from segue.config.agents_settings import NamedAgentSettings
    from segue.config.gateway_settings import (
        AttachmentSettings,
        GatewaySettings,
        PrivacySettings,
        QueueSettings,
        StreamingSettings,
    )
    from segue.config.log_settings import LogSettings
    from segue.config.platform_settings import PlatformSettings
    from segue.config.telemetry_settings import TelemetrySettings
    from segue.core.access import AccessRules
    from segue.core.keys import KeyRules
    from segue.core.sources import SessionSource

CONFIG_FILE = "config.yaml"
DATABASE_FILE = "state.db"
HISTORY_FILE = "history"
"""What was typed into chats in the terminal."""
SERVICE_LOG = "gateway.log"
"""Where launchd puts what a gateway says."""
SQLITE = "sqlite"
_GATEWAY = "segue.config.gateway_settings"


def _is_database(said: str) -> bool:
    return said == SQLITE or is_address(said)


def _is_model(name: str) -> bool:
    return name == "" or is_word(name)


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
                "a mapping from a name to kind, base_url, api_key and models",
            ),
            "Places with models beside those whose keys are in the environment.",
        ),
    )
    display: DisplaySettings = field(
        default_factory=DisplaySettings, metadata=about(Section(DisplaySettings), DisplaySettings.__doc__)
    )
    owners: tuple[str, ...] = field(
        default=(), metadata=about(Listing(PERSON), "Who you are on each platform; the terminal is always yours.")
    )
    access: Mapping[str, "AccessSettings"] = field(
        default_factory=nothing,
        metadata=about(
            Table(
                PLATFORM,
                Later("segue.config.access_settings", "ACCESS"),
                "a mapping from a platform to dm, groups, allow, allow_roles, allow_bots and mention",
            ),
            "Who may speak on a platform beside owners and those who were paired: {telegram: {allow: ['123456']}}.",
        ),
    )
    platforms: Mapping[str, "PlatformSettings"] = field(
        default_factory=nothing,
        metadata=about(
            Table(
                CONNECTABLE,
                Later("segue.config.platform_settings", "PLATFORM_SECTION"),
                "a mapping from a platform to enabled, home_channel and what the platform needs",
            ),
            "The platforms that the gateway connects to, and what each of them needs for it.",
        ),
    )
    agents: Mapping[str, "NamedAgentSettings"] = field(
        default_factory=nothing,
        metadata=about(
            Table(
                AGENT,
                Later("segue.config.agents_settings", "NAMED_AGENT"),
                "a mapping from a name to model, prompt, tools, memory and bindings",
            ),
            "Agents beside main, or what is different about main: {work: {model: fast, bindings: [slack]}}.",
        ),
    )
    stop_suspends: bool = field(
        default=False,
        metadata=about(Flag(), "Whether /stop also makes the next message begin a new session."),
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
    _gateway: "GatewaySettings | None" = field(
        default=None, metadata=about(Later(_GATEWAY, "GATEWAY"), "Where the gateway listens.")
    )
    _queue: "QueueSettings | None" = field(
        default=None,
        metadata=about(
            Later(_GATEWAY, "QUEUE"), "What becomes of messages that come while an answer is being written."
        ),
    )
    _streaming: "StreamingSettings | None" = field(
        default=None,
        metadata=about(Later(_GATEWAY, "STREAMING"), "How an answer is shown on a platform while it is being written."),
    )
    _privacy: "PrivacySettings | None" = field(
        default=None, metadata=about(Later(_GATEWAY, "PRIVACY"), "What models are told of people.")
    )
    _attachments: "AttachmentSettings | None" = field(
        default=None,
        metadata=about(Later(_GATEWAY, "ATTACHMENTS"), "How much of what people send along is kept."),
    )
    _logging: "LogSettings | None" = field(
        default=None,
        metadata=about(Later("segue.config.log_settings", "LOG"), "What a gateway tells of its work."),
    )
    _telemetry: "TelemetrySettings | None" = field(
        default=None,
        metadata=about(
            Later("segue.config.telemetry_settings", "TELEMETRY"), "Where a gateway sends traces of its answers."
        ),
    )

    @property
    def gateway(self) -> "GatewaySettings":
        from segue.config.gateway_settings import GatewaySettings

        return self._gateway or GatewaySettings()

    @property
    def queue(self) -> "QueueSettings":
        from segue.config.gateway_settings import QueueSettings

        return self._queue or QueueSettings()

    @property
    def streaming(self) -> "StreamingSettings":
        from segue.config.gateway_settings import StreamingSettings

        return self._streaming or StreamingSettings()

    @property
    def privacy(self) -> "PrivacySettings":
        from segue.config.gateway_settings import PrivacySettings

        return self._privacy or PrivacySettings()

    @property
    def attachments(self) -> "AttachmentSettings":
        from segue.config.gateway_settings import AttachmentSettings

        return self._attachments or AttachmentSettings()

    @property
    def logging(self) -> "LogSettings":
        from segue.config.log_settings import LogSettings

        return self._logging or LogSettings()

    @property
    def telemetry(self) -> "TelemetrySettings":
        from segue.config.telemetry_settings import TelemetrySettings

        return self._telemetry or TelemetrySettings()

    def access_on(self, platform: str) -> "AccessRules":
        """Who may speak on a platform beside owners."""
        from segue.config.access_settings import AccessSettings  # few configurations have any

        return self.access.get(platform, AccessSettings()).rules(platform)

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
    def homes(self) -> "Mapping[str, SessionSource]":
        """The home channels that are named here: each the chat with one person."""
        from segue.core.sources import SessionSource  # slow to load, as above

        named = {name: said.home_channel for name, said in self.platforms.items() if said.home_channel}
        return {name: SessionSource(platform=name, chat_id=chat, user_id=chat) for name, chat in named.items()}

    @property
    def reset_policies(self) -> ResetPolicies:
        """The settings that decide when a conversation begins anew."""
        session = self.session
        return ResetPolicies(
            session.reset.rule(self.tz).over(ResetPolicy(zone=zone_of(session.reset.timezone or HOST, self.tz))),
            {name: one.rule(self.tz) for name, one in session.reset_by_type.items()},
            {name: one.rule(self.tz) for name, one in session.reset_by_platform.items()},
        )
