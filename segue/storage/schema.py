"""The wanted shape of the database, and the numbered steps that lead to it.

Tables are declared once, column by column. A new column is only added to its declaration: opening an older file adds
what is missing, and so does opening one that has the same version and lacks a simple column. Steps that change data or
indexes are numbered migrations, each one transaction.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

SCHEMA_VERSION = 11


class Column(NamedTuple):
    name: str
    type: str
    rule: str = ""

    @property
    def sql(self) -> str:
        return f"{self.name} {self.type} {self.rule}".rstrip()

    @property
    def is_simple(self) -> bool:
        """True if it can be added to a table with rows: it may be empty, or has a default."""
        return "PRIMARY KEY" not in self.rule and ("NOT NULL" not in self.rule or "DEFAULT" in self.rule)


IDENTITY = "PRIMARY KEY AUTOINCREMENT"
"""The rule of a column whose values the database gives, each higher than all before it."""


class Table(NamedTuple):
    name: str
    columns: tuple[Column, ...]
    constraints: tuple[str, ...] = ()
    ending: str = " STRICT"

    @property
    def has_identity(self) -> bool:
        return any(column.rule == IDENTITY for column in self.columns)

    @property
    def sql(self) -> str:
        lines = [*(column.sql for column in self.columns), *self.constraints]
        return f"CREATE TABLE IF NOT EXISTS {self.name} (\n  " + ",\n  ".join(lines) + f"\n){self.ending}"


class Definer(Protocol):
    """What a migration may do with the database it changes."""

    def run(self, sql: str) -> int: ...
    def columns_of(self, table: str) -> set[str]: ...


_COUNT = ("INTEGER", "NOT NULL DEFAULT 0")

SESSIONS = Table(
    "sessions",
    (
        Column("id", "TEXT", "PRIMARY KEY NOT NULL"),
        Column("source", "TEXT", "NOT NULL"),
        Column("user_id", "TEXT"),
        Column("model", "TEXT"),
        Column("parent_session_id", "TEXT"),
        Column("started_at", "REAL", "NOT NULL"),
        Column("ended_at", "REAL"),
        Column("end_reason", "TEXT"),
        Column("message_count", *_COUNT),
        Column("tool_call_count", *_COUNT),
        Column("input_tokens", *_COUNT),
        Column("output_tokens", *_COUNT),
        Column("cache_read_tokens", *_COUNT),
        Column("cache_write_tokens", *_COUNT),
        Column("reasoning_tokens", *_COUNT),
        Column("billing_provider", "TEXT"),
        Column("billing_base_url", "TEXT"),
        Column("billing_mode", "TEXT"),
        Column("estimated_cost_usd", "REAL"),
        Column("actual_cost_usd", "REAL"),
        Column("cost_status", "TEXT"),
        Column("cost_source", "TEXT"),
        Column("pricing_version", "TEXT"),
        Column("title", "TEXT"),
        Column("api_call_count", *_COUNT),
        Column("title_source", "TEXT"),
        Column("kind", "TEXT", "NOT NULL DEFAULT 'interactive'"),
        Column("agent", "TEXT", "NOT NULL DEFAULT 'main'"),
        Column("start_reason", "TEXT"),
        Column("lane_key", "TEXT"),
        Column("principal", "TEXT", "NOT NULL DEFAULT 'owner'"),
        Column("audience", "TEXT", "NOT NULL DEFAULT ''"),
        Column("last_active_at", "REAL", "NOT NULL DEFAULT 0"),
        Column("first_line", "TEXT", "NOT NULL DEFAULT ''"),
        Column("archived", *_COUNT),
        Column("pinned", *_COUNT),
        Column("cwd", "TEXT"),
        Column("branched_from", "TEXT"),
        Column("reset_from", "TEXT"),
        Column("spawned_by", "TEXT"),
        Column("kept_session_id", "TEXT"),
        Column("kept_seq", "INTEGER"),
        Column("context_tokens", "INTEGER"),
        Column("context_window", "INTEGER"),
        # The two large columns stand last, so that reading the others never reaches their pages.
        Column("model_config", "TEXT"),
        Column("system_prompt", "TEXT"),
    ),
)

MESSAGES = Table(
    "messages",
    (
        Column("id", "INTEGER", IDENTITY),
        Column("session_id", "TEXT", "NOT NULL REFERENCES sessions(id) ON DELETE CASCADE"),
        Column("seq", "INTEGER", "NOT NULL"),
        Column(
            "state", "TEXT", "NOT NULL DEFAULT 'live' CHECK (state = 'live' OR state = 'undone' OR state = 'compacted')"
        ),
        Column("role", "TEXT", "NOT NULL"),
        Column("content", "TEXT"),
        Column("content_json", "TEXT"),
        Column("tool_call_id", "TEXT"),
        Column("tool_calls", "TEXT"),
        Column("tool_name", "TEXT"),
        Column("timestamp", "REAL", "NOT NULL"),
        Column("token_count", "INTEGER"),
        Column("finish_reason", "TEXT"),
        Column("reasoning", "TEXT"),
        Column("reasoning_content", "TEXT"),
        Column("reasoning_details", "TEXT"),
        Column("codex_reasoning_items", "TEXT"),
        Column("codex_message_items", "TEXT"),
        Column("provider", "TEXT"),
        Column("author", "TEXT"),
        Column("platform_message_id", "TEXT"),
        Column("attachments", "TEXT"),
        Column("extra", "TEXT"),
        Column("outcome", "TEXT"),
        Column("pruned", "TEXT"),
        Column("active", "INTEGER", "GENERATED ALWAYS AS (CASE state WHEN 'live' THEN 1 ELSE 0 END) VIRTUAL"),
        Column("compacted", "INTEGER", "GENERATED ALWAYS AS (CASE state WHEN 'compacted' THEN 1 ELSE 0 END) VIRTUAL"),
    ),
    ("UNIQUE (session_id, seq)",),
)

SESSION_TAGS = Table(
    "session_tags",
    (
        Column("session_id", "TEXT", "NOT NULL REFERENCES sessions(id) ON DELETE CASCADE"),
        Column("tag", "TEXT", "NOT NULL"),
    ),
    ("PRIMARY KEY (session_id, tag)",),
)

LANES = Table(
    "lanes",
    (
        Column("key", "TEXT", "PRIMARY KEY NOT NULL"),
        Column("version", *_COUNT),
        Column("principal", "TEXT", "NOT NULL"),
        Column("audience", "TEXT", "NOT NULL DEFAULT ''"),
        Column("phase", "TEXT", "NOT NULL DEFAULT 'active' CHECK (phase IN ('active', 'interrupted', 'suspended'))"),
        Column("phase_reason", "TEXT"),
        Column("phase_since", "REAL"),
        Column("last_person_at", "REAL", "NOT NULL"),
        Column("created_at", "REAL", "NOT NULL"),
        Column("updated_at", "REAL", "NOT NULL"),
        Column("finalised_at", "REAL"),
        Column("origin", "TEXT"),
    ),
)

RESETS = Table(
    "resets",
    (
        Column("id", "INTEGER", IDENTITY),
        Column("lane_key", "TEXT", "NOT NULL"),
        Column("at", "REAL", "NOT NULL"),
        Column("reason", "TEXT", "NOT NULL"),
        Column("who", "TEXT", "NOT NULL"),
        Column("from_session", "TEXT"),
        Column("to_session", "TEXT", "NOT NULL"),
        Column("had_activity", *_COUNT),
    ),
)

TRASH = Table(
    "trash",
    (
        Column("id", "INTEGER", IDENTITY),
        Column("session_id", "TEXT", "NOT NULL"),
        Column("conversation", "TEXT", "NOT NULL"),
        Column("title", "TEXT"),
        Column("first_line", "TEXT", "NOT NULL DEFAULT ''"),
        Column("source", "TEXT", "NOT NULL"),
        Column("principal", "TEXT", "NOT NULL"),
        Column("audience", "TEXT", "NOT NULL DEFAULT ''"),
        Column("message_count", *_COUNT),
        Column("trashed_at", "REAL", "NOT NULL"),
        Column("payload", "TEXT", "NOT NULL"),
    ),
)

RUNS = Table(
    "runs",
    (
        Column("id", "TEXT", "PRIMARY KEY NOT NULL"),
        Column("program", "TEXT", "NOT NULL"),
        Column("host", "TEXT", "NOT NULL"),
        Column("boot", "TEXT", "NOT NULL"),
        Column("pid", "INTEGER", "NOT NULL"),
        Column("process_started", "TEXT", "NOT NULL"),
        Column("began_at", "REAL", "NOT NULL"),
        Column("beat_at", "REAL", "NOT NULL"),
        Column("ended_at", "REAL"),
        Column("how", "TEXT"),
    ),
)

LEASES = Table(
    "leases",
    (
        Column("name", "TEXT", "PRIMARY KEY NOT NULL"),
        Column("owner", "TEXT", "NOT NULL"),
        Column("epoch", "INTEGER", "NOT NULL"),
        Column("expires_at", "REAL", "NOT NULL"),
        Column("taken_at", "REAL", "NOT NULL"),
        Column("principal", "TEXT", "NOT NULL"),
    ),
)

TURNS = Table(
    "turns",
    (
        Column("id", "TEXT", "PRIMARY KEY NOT NULL"),
        Column("session_id", "TEXT", "NOT NULL REFERENCES sessions(id) ON DELETE CASCADE"),
        Column("run_id", "TEXT", "NOT NULL"),
        Column("state", "TEXT", "NOT NULL CHECK (state IN ('running', 'done', 'stopped', 'failed'))"),
        Column("attempt", "INTEGER", "NOT NULL"),
        Column("first_seq", "INTEGER", "NOT NULL"),
        Column("begun_at", "REAL", "NOT NULL"),
        Column("ended_at", "REAL"),
        Column("reason", "TEXT"),
        Column("kind", "TEXT", "NOT NULL DEFAULT 'answer'"),
        Column("blame", "REAL", "NOT NULL DEFAULT 0"),
    ),
)

STEPS = Table(
    "steps",
    (
        Column("turn_id", "TEXT", "NOT NULL REFERENCES turns(id) ON DELETE CASCADE"),
        Column("number", "INTEGER", "NOT NULL"),
        Column("kind", "TEXT", "NOT NULL CHECK (kind IN ('model', 'tool'))"),
        Column("name", "TEXT", "NOT NULL"),
        Column("call_id", "TEXT"),
        Column("is_idempotent", *_COUNT),
        Column("state", "TEXT", "NOT NULL CHECK (state IN ('begun', 'done', 'failed'))"),
        Column("begun_at", "REAL", "NOT NULL"),
        Column("ended_at", "REAL"),
    ),
    ("PRIMARY KEY (turn_id, number)",),
)

HEARD = Table(
    "heard",
    (
        Column("turn_id", "TEXT", "NOT NULL REFERENCES turns(id) ON DELETE CASCADE"),
        Column("number", "INTEGER", "NOT NULL"),
        Column("content", "TEXT", "NOT NULL"),
        Column("at", "REAL", "NOT NULL"),
    ),
    ("PRIMARY KEY (turn_id, number)",),
)

USAGE = Table(
    "usage",
    (
        Column("id", "INTEGER", IDENTITY),
        Column("session_id", "TEXT", "NOT NULL REFERENCES sessions(id) ON DELETE CASCADE"),
        Column("at", "REAL", "NOT NULL"),
        Column("purpose", "TEXT", "NOT NULL"),
        Column("model", "TEXT"),
        Column("provider", "TEXT"),
        Column("api_call_count", *_COUNT),
        Column("input_tokens", *_COUNT),
        Column("output_tokens", *_COUNT),
        Column("cache_read_tokens", *_COUNT),
        Column("cache_write_tokens", *_COUNT),
        Column("reasoning_tokens", *_COUNT),
        Column("estimated_cost_usd", "REAL"),
        Column("actual_cost_usd", "REAL"),
        Column("cost_source", "TEXT"),
        Column("pricing_version", "TEXT"),
    ),
)

PROCESSES = Table(
    "processes",
    (
        Column("id", "TEXT", "PRIMARY KEY NOT NULL"),
        Column("session_id", "TEXT", "NOT NULL REFERENCES sessions(id) ON DELETE CASCADE"),
        Column("run_id", "TEXT", "NOT NULL"),
        Column("command", "TEXT", "NOT NULL"),
        Column("cwd", "TEXT", "NOT NULL"),
        Column("pid", "INTEGER", "NOT NULL"),
        Column("state", "TEXT", "NOT NULL CHECK (state IN ('running', 'ended', 'stopped', 'lost'))"),
        Column("exit_code", "INTEGER"),
        Column("started_at", "REAL", "NOT NULL"),
        Column("ended_at", "REAL"),
    ),
)

INBOX = Table(
    "inbox",
    (
        Column("id", "INTEGER", IDENTITY),
        Column("lane_key", "TEXT", "NOT NULL"),
        Column("principal", "TEXT", "NOT NULL"),
        Column("audience", "TEXT", "NOT NULL DEFAULT ''"),
        Column("person", "TEXT", "NOT NULL"),
        Column("platform", "TEXT", "NOT NULL"),
        Column("account", "TEXT", "NOT NULL"),
        Column("chat", "TEXT", "NOT NULL"),
        Column("message_id", "TEXT", "NOT NULL"),
        Column("edit", "TEXT", "NOT NULL"),
        Column("origin", "TEXT", "NOT NULL"),
        Column("text", "TEXT", "NOT NULL"),
        Column("parts", "TEXT"),
        Column("want", "TEXT", "NOT NULL CHECK (want IN ('plain', 'queued', 'command'))"),
        Column(
            "state",
            "TEXT",
            "NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'cancelled', 'refused', 'dead'))",
        ),
        Column("admitted_at", "REAL", "NOT NULL"),
        Column("is_person", "INTEGER", "NOT NULL DEFAULT 1"),
        Column("turn_id", "TEXT"),
        Column("session_id", "TEXT"),
        Column("reason", "TEXT"),
        Column("ended_at", "REAL"),
        Column("route", "TEXT"),
        Column("attachments", "TEXT"),
    ),
    ("UNIQUE (platform, account, chat, message_id, edit)",),
)

OUTBOX = Table(
    "outbox",
    (
        Column("id", "INTEGER", IDENTITY),
        Column("key", "TEXT", "NOT NULL"),
        Column("lane_key", "TEXT", "NOT NULL"),
        Column("principal", "TEXT", "NOT NULL"),
        Column("audience", "TEXT", "NOT NULL DEFAULT ''"),
        Column("turn_id", "TEXT"),
        Column("session_id", "TEXT"),
        Column("platform", "TEXT", "NOT NULL"),
        Column("account", "TEXT", "NOT NULL"),
        Column("chat", "TEXT", "NOT NULL"),
        Column("route", "TEXT", "NOT NULL"),
        Column("text", "TEXT", "NOT NULL"),
        Column("what", "TEXT", "NOT NULL CHECK (what IN ('reply', 'notice', 'answer'))"),
        Column(
            "state",
            "TEXT",
            "NOT NULL CHECK (state IN ('draft', 'pending', 'sending', 'delivered', 'unknown', 'dead', 'suppressed'))",
        ),
        Column("created_at", "REAL", "NOT NULL"),
        Column("reply_to", "TEXT"),
        Column("attempts", *_COUNT),
        Column("is_repeat", *_COUNT),
        Column("is_shown", *_COUNT),
        Column("not_before", "REAL", "NOT NULL DEFAULT 0"),
        Column("message_id", "TEXT"),
        Column("reason", "TEXT"),
        Column("ended_at", "REAL"),
        Column("file", "TEXT"),
    ),
)

CURSORS = Table(
    "cursors",
    (
        Column("platform", "TEXT", "NOT NULL"),
        Column("account", "TEXT", "NOT NULL"),
        Column("name", "TEXT", "NOT NULL"),
        Column("value", "TEXT", "NOT NULL"),
    ),
    ("PRIMARY KEY (platform, account, name)",),
)

PEOPLE = Table(
    "people",
    (
        Column("platform", "TEXT", "NOT NULL"),
        Column("peer", "TEXT", "NOT NULL"),
        Column("role", "TEXT", "NOT NULL CHECK (role IN ('owner', 'person'))"),
        Column("name", "TEXT", "NOT NULL DEFAULT ''"),
        Column("paired_at", "REAL", "NOT NULL"),
        Column("paired_by", "TEXT", "NOT NULL"),
    ),
    ("PRIMARY KEY (platform, peer)",),
)

PAIRINGS = Table(
    "pairings",
    (
        Column("platform", "TEXT", "NOT NULL"),
        Column("peer", "TEXT", "NOT NULL"),
        # A person's codes have numbers, so that the key itself says how many there can be.
        Column("slot", "INTEGER", "NOT NULL CHECK (slot BETWEEN 0 AND 3)"),
        Column("code_hash", "TEXT", "NOT NULL"),
        Column("chat", "TEXT", "NOT NULL"),
        Column("name", "TEXT", "NOT NULL DEFAULT ''"),
        Column("created_at", "REAL", "NOT NULL"),
        Column("expires_at", "REAL", "NOT NULL"),
        Column("attempts", *_COUNT),
        Column("state", "TEXT", "NOT NULL CHECK (state IN ('pending', 'used', 'wrong'))"),
    ),
    ("PRIMARY KEY (platform, peer, slot)",),
)

JOBS = Table(
    "jobs",
    (
        Column("name", "TEXT", "PRIMARY KEY NOT NULL"),
        Column("schedule", "TEXT", "NOT NULL"),
        Column("zone", "TEXT", "NOT NULL"),
        Column("prompt", "TEXT", "NOT NULL"),
        Column("created_at", "REAL", "NOT NULL"),
        Column("agent", "TEXT", "NOT NULL DEFAULT 'main'"),
        Column("deliver", "TEXT"),
        Column("enabled", "INTEGER", "NOT NULL DEFAULT 1"),
        Column("last_due_at", "REAL"),
    ),
)

TOKENS = Table(
    "tokens",
    (
        Column("key_id", "TEXT", "PRIMARY KEY NOT NULL"),
        Column("name", "TEXT", "NOT NULL UNIQUE"),
        Column("digest", "TEXT", "NOT NULL"),
        Column("level", "TEXT", "NOT NULL CHECK (level IN ('read', 'write', 'admin'))"),
        Column("principal", "TEXT", "NOT NULL"),
        Column("created_at", "REAL", "NOT NULL"),
        Column("expires_at", "REAL"),
        Column("used_at", "REAL"),
    ),
)

LINKS = Table(
    "links",
    (
        Column("platform", "TEXT", "NOT NULL"),
        Column("account", "TEXT", "NOT NULL"),
        Column("run_id", "TEXT", "NOT NULL"),
        Column("state", "TEXT", "NOT NULL CHECK (state IN ('connecting', 'connected', 'failed', 'resting'))"),
        Column("since", "REAL", "NOT NULL"),
        Column("failures", *_COUNT),
        Column("trouble", "TEXT"),
        Column("retry_at", "REAL"),
    ),
    ("PRIMARY KEY (platform, account)",),
)

STATE_META = Table("state_meta", (Column("key", "TEXT", "PRIMARY KEY NOT NULL"), Column("value", "TEXT")))
SEARCH_WORDS = Table("search_words", (Column("word", "TEXT", "PRIMARY KEY NOT NULL"),))
SEARCH_BLOCKS = Table(
    "search_blocks",
    (
        Column("block", "INTEGER", "PRIMARY KEY NOT NULL"),
        Column("last_id", "INTEGER", "NOT NULL"),
        Column("oldest", "REAL", "NOT NULL"),
        Column("newest", "REAL", "NOT NULL"),
        Column("disorder", "REAL", "NOT NULL"),
    ),
)
"""Part of the search index of SQLite: from when to when the messages of a block of ids are."""
VERSION = Table("schema_version", (Column("version", "INTEGER", "NOT NULL"),))

TABLES = (
    *(SESSIONS, MESSAGES, SESSION_TAGS, LANES, RESETS, TRASH),
    *(RUNS, LEASES, TURNS, STEPS, HEARD, USAGE, PROCESSES),
    *(INBOX, OUTBOX, CURSORS, LINKS),
    *(PEOPLE, PAIRINGS, JOBS, TOKENS),
    *(STATE_META, SEARCH_WORDS, VERSION),
)

INDEXES = (
    "CREATE INDEX IF NOT EXISTS idx_sessions_recent ON sessions(archived, kind, last_active_at, id)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_own ON sessions(principal, archived, kind, last_active_at, id)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_parent ON sessions(parent_session_id) WHERE parent_session_id IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_sessions_spawned ON sessions(spawned_by) WHERE spawned_by IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions(started_at, id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_title ON sessions(principal, title) WHERE title IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_sessions_titled ON sessions(title) WHERE title IS NOT NULL",
    (
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_open_lane"
        " ON sessions(lane_key, principal, audience) WHERE ended_at IS NULL"
    ),
    "CREATE INDEX IF NOT EXISTS idx_resets_lane ON resets(lane_key)",
    "CREATE INDEX IF NOT EXISTS idx_resets_to ON resets(to_session)",
    "CREATE INDEX IF NOT EXISTS idx_trash_moment ON trash(trashed_at)",
    "CREATE INDEX IF NOT EXISTS idx_turns_session ON turns(session_id, first_seq)",
    "CREATE INDEX IF NOT EXISTS idx_usage_session ON usage(session_id)",
    "CREATE INDEX IF NOT EXISTS idx_usage_moment ON usage(at)",
    "CREATE INDEX IF NOT EXISTS idx_processes_session ON processes(session_id)",
    "CREATE INDEX IF NOT EXISTS idx_processes_running ON processes(started_at) WHERE state = 'running'",
    "CREATE INDEX IF NOT EXISTS idx_people_owners ON people(platform, peer) WHERE role = 'owner'",
    "CREATE INDEX IF NOT EXISTS idx_inbox_open ON inbox(lane_key, id) WHERE state IN ('waiting', 'running')",
    ("CREATE INDEX IF NOT EXISTS idx_inbox_left_out ON inbox(lane_key) WHERE state = 'cancelled' AND turn_id IS NULL"),
    "CREATE INDEX IF NOT EXISTS idx_inbox_unanswered ON inbox(id) WHERE state IN ('refused', 'dead')",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_outbox_key ON outbox(key)",
    "CREATE INDEX IF NOT EXISTS idx_outbox_dead ON outbox(id) WHERE state = 'dead'",
    "CREATE INDEX IF NOT EXISTS idx_inbox_api ON inbox(message_id) WHERE platform = 'api_server'",
    "CREATE INDEX IF NOT EXISTS idx_inbox_turn ON inbox(turn_id) WHERE turn_id IS NOT NULL",
    (
        "CREATE INDEX IF NOT EXISTS idx_outbox_unsent ON outbox(platform, account, id)"
        " WHERE state IN ('pending', 'sending', 'unknown')"
    ),
    "CREATE INDEX IF NOT EXISTS idx_messages_attachments ON messages(id) WHERE attachments IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_inbox_session ON inbox(session_id) WHERE session_id IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_outbox_session ON outbox(session_id) WHERE session_id IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_outbox_turn ON outbox(turn_id) WHERE turn_id IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_turns_run ON turns(run_id) WHERE state = 'running'",
    "CREATE INDEX IF NOT EXISTS idx_turns_owed ON turns(begun_at) WHERE kind = 'farewell' AND ended_at IS NULL",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_turns_running ON turns(session_id) WHERE state = 'running'",
)

BLOCK_BITS = 8
"""A block of ids are those that differ in so many bits only."""


def filling_blocks(bits: int = BLOCK_BITS) -> str:
    """The statement that notes the blocks of all messages between two ids, both included."""
    return f"""
        INSERT INTO search_blocks (block, last_id, oldest, newest, disorder)
        SELECT block, MAX(id), MIN(timestamp), MAX(timestamp), MAX(newest_so_far - timestamp) FROM (
          SELECT id, id >> {bits} AS block, timestamp,
            MAX(timestamp) OVER (PARTITION BY id >> {bits} ORDER BY id) AS newest_so_far
          FROM messages WHERE id BETWEEN {{first}} AND {{last}}) AS placed
        GROUP BY block
        ON CONFLICT (block) DO UPDATE SET
          last_id = excluded.last_id, oldest = excluded.oldest,
          newest = excluded.newest, disorder = excluded.disorder"""


Migration = Callable[[Definer], None]


def _index_anew(database: Definer) -> None:
    """The search index has marks now: it is filled again, behind the messages that are written."""
    database.run("DROP TABLE IF EXISTS messages_fts")
    database.run("DELETE FROM search_words")
    database.run("DELETE FROM state_meta WHERE key = 'search:indexed_to'")


def _note_earlier_usage(database: Definer) -> None:
    """What was counted before there were entries for it is one entry of its session, as if it were imported."""
    database.run("""
        INSERT INTO usage (
          session_id, at, purpose, model, provider, api_call_count, input_tokens, output_tokens, cache_read_tokens,
          cache_write_tokens, reasoning_tokens, estimated_cost_usd, actual_cost_usd, cost_source, pricing_version)
        SELECT
          s.id, s.last_active_at, 'import', s.model, s.billing_provider, s.api_call_count, s.input_tokens,
          s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.reasoning_tokens, s.estimated_cost_usd,
          s.actual_cost_usd, s.cost_source, s.pricing_version
        FROM sessions s
        WHERE NOT EXISTS (SELECT 1 FROM usage u WHERE u.session_id = s.id) AND (
          s.api_call_count <> 0 OR s.input_tokens <> 0 OR s.output_tokens <> 0 OR s.cache_read_tokens <> 0
          OR s.cache_write_tokens <> 0 OR s.reasoning_tokens <> 0
          OR s.estimated_cost_usd IS NOT NULL OR s.actual_cost_usd IS NOT NULL)""")


def _note_blocks(database: Definer) -> None:
    """The search goes by timestamps, and looks up in which blocks of ids to read."""
    database.run(SEARCH_BLOCKS.sql)
    database.run(filling_blocks().format(first=0, last=2**62))


SHARED_MIGRATIONS: dict[int, Migration] = {5: _note_earlier_usage}
"""Those of the following that every database needs."""

MIGRATIONS: dict[int, Migration] = {3: _index_anew, 11: _note_blocks, **SHARED_MIGRATIONS}
"""Steps that cannot be said as a declaration, by the version they lead to."""


def missing_columns(found: Mapping[str, Collection[str]], tables: Iterable[Table] = TABLES) -> list[tuple[str, Column]]:
    """The simple columns that tables which are there lack, by the columns that were found in each."""
    return [
        (table.name, column)
        for table in tables
        for column in table.columns
        if found.get(table.name) and column.is_simple and column.name not in found[table.name]
    ]


def add_columns(database: Definer, missing: Iterable[tuple[str, Column]], indexes: Iterable[str] = INDEXES) -> None:
    """Add what was missing, and the indexes that went with it."""
    for table, column in missing:
        database.run(f"ALTER TABLE {table} ADD COLUMN {column.sql}")
    for index in indexes:
        database.run(index)


def declare(database: Definer, tables: Iterable[Table] = TABLES, indexes: Iterable[str] = INDEXES) -> None:
    """Create what is missing: tables, columns of tables that are there, indexes."""
    for table in tables:
        existing = database.columns_of(table.name)
        if not existing:
            database.run(table.sql)
            continue
        for column in table.columns:
            if column.name not in existing:
                database.run(f"ALTER TABLE {table.name} ADD COLUMN {column.sql}")
    for index in indexes:
        database.run(index)
