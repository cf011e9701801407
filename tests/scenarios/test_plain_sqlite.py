"""Our file read by the plain `sqlite3` program: the documented columns are there, and the documented queries answer."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from waiting import DEADLINE

from segue import SessionDB
from segue.core.messages import Spot, draft
from segue.core.scope import OWNER_AT_CONSOLE
from segue.sessions.compressing import compress_session
from segue.storage.schema import SCHEMA_VERSION
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

pytestmark = pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs the sqlite3 program")

SESSIONS = """id source user_id model model_config system_prompt parent_session_id started_at ended_at end_reason
    message_count tool_call_count input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens
    billing_provider billing_base_url billing_mode estimated_cost_usd actual_cost_usd cost_status cost_source
    pricing_version title api_call_count"""
MESSAGES = """id session_id role content tool_call_id tool_calls tool_name timestamp token_count finish_reason reasoning
    reasoning_content reasoning_details codex_reasoning_items codex_message_items"""

ANCESTORS = """
WITH RECURSIVE lineage AS (
    SELECT * FROM sessions WHERE id = ?
    UNION ALL
    SELECT s.* FROM sessions s
    JOIN lineage l ON s.id = l.parent_session_id
)
SELECT id, title, started_at, parent_session_id FROM lineage;
"""
DESCENDANTS = """
WITH RECURSIVE descendants AS (
    SELECT * FROM sessions WHERE id = ?
    UNION ALL
    SELECT s.* FROM sessions s
    JOIN descendants d ON s.parent_session_id = d.id
)
SELECT id, title, started_at FROM descendants;
"""
RECENT = """
SELECT s.*,
    COALESCE(
        (SELECT SUBSTR(m.content, 1, 63)
         FROM messages m
         WHERE m.session_id = s.id AND m.role = 'user' AND m.content IS NOT NULL
         ORDER BY m.timestamp, m.id LIMIT 1),
        ''
    ) AS preview,
    COALESCE(
        (SELECT MAX(m2.timestamp) FROM messages m2 WHERE m2.session_id = s.id),
        s.started_at
    ) AS last_active
FROM sessions s
ORDER BY s.started_at DESC
LIMIT 20;
"""
BY_MODEL = """
SELECT model,
       COUNT(*) as session_count,
       SUM(input_tokens) as total_input,
       SUM(output_tokens) as total_output,
       SUM(estimated_cost_usd) as total_cost
FROM sessions
WHERE model IS NOT NULL
GROUP BY model
ORDER BY total_cost DESC;
"""
HIGHEST = """
SELECT id, title, model, input_tokens + output_tokens AS total_tokens,
       estimated_cost_usd
FROM sessions
ORDER BY total_tokens DESC
LIMIT 10;
"""


@pytest.fixture
def file(home: Path) -> Path:
    path = home / "state.db"
    with SqlStore(SqliteEngine(path)) as store, SessionDB(path) as db:
        db.create_session("root", "cli", model="big", title="my project", started_at=100.0)
        db.append_message(
            "root", "user", [{"type": "text", "text": "look at this"}, {"type": "image_url"}], timestamp=101.0
        )
        db.append_message("root", "assistant", "I see", timestamp=102.0)
        db.update_token_counts("root", 1000, 50, estimated_cost_usd=0.25)
        for parent, child, at in (("root", "second", 200.0), ("second", "third", 300.0)):
            summary = draft("assistant", "what happened so far", at)
            kept = Spot("root", 2)
            store.write(OWNER_AT_CONSOLE, compress_session, parent, child_id=child, summary=summary, kept=kept, now=at)
        db.update_token_counts("third", 10, 5, estimated_cost_usd=0.5)
        db.create_session("other", "telegram", model="small", started_at=50.0)
        db.update_token_counts("other", 5, 5)
    return path


def query(file: Path, sql: str, parameter: str | None = None) -> list[dict[str, Any]]:
    bound = f".parameter set ?1 '\"{parameter}\"'\n" if parameter else ""
    answer = subprocess.run(
        ["sqlite3", "-batch", "-json", str(file)], input=bound + sql, capture_output=True, text=True, timeout=DEADLINE
    )
    assert answer.stderr == ""
    rows: list[dict[str, Any]] = json.loads(answer.stdout or "[]")
    return rows


@pytest.mark.parametrize(("table", "columns"), [("sessions", SESSIONS), ("messages", MESSAGES)])
def test_every_documented_column_exists(file: Path, table: str, columns: str) -> None:
    there = {row["name"] for row in query(file, f"SELECT name FROM pragma_table_xinfo('{table}');")}
    assert set(columns.split()) <= there


def test_the_tables_of_the_store_itself_exist(file: Path) -> None:
    assert query(file, "SELECT count(*) AS n FROM state_meta WHERE key = 'nothing';") == [{"n": 0}]
    assert query(file, "SELECT version FROM schema_version;") == [{"version": SCHEMA_VERSION}]
    assert query(file, "SELECT name FROM sqlite_schema WHERE name = 'messages_fts';") == [{"name": "messages_fts"}]


def test_the_ancestors_of_a_session_are_found(file: Path) -> None:
    assert [row["id"] for row in query(file, ANCESTORS, "third")] == ["third", "second", "root"]


def test_the_descendants_of_a_session_are_found(file: Path) -> None:
    rows = query(file, DESCENDANTS, "root")
    assert [(row["id"], row["title"]) for row in rows] == [
        ("root", "my project"),
        ("second", "my project #2"),
        ("third", "my project #3"),
    ]


def test_recent_sessions_come_with_preview_and_last_activity(file: Path) -> None:
    rows = query(file, RECENT)
    assert [row["id"] for row in rows] == ["third", "second", "root", "other"]
    by_id = {row["id"]: row for row in rows}
    assert by_id["root"]["preview"] == "look at this\n[image]"
    assert by_id["root"]["last_active"] == by_id["root"]["last_active_at"] == 102.0
    assert (by_id["other"]["preview"], by_id["other"]["last_active"]) == ("", 50.0)


def test_tokens_are_summed_by_model(file: Path) -> None:
    rows = query(file, BY_MODEL)
    assert rows[0] == {"model": "big", "session_count": 3, "total_input": 1010, "total_output": 55, "total_cost": 0.75}
    assert rows[1]["total_cost"] is None, "a cost nobody knows is not zero"


def test_the_sessions_with_the_highest_usage_come_first(file: Path) -> None:
    rows = query(file, HIGHEST)
    assert [(row["id"], row["total_tokens"]) for row in rows][:2] == [("root", 1050), ("third", 15)]
