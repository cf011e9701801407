"""A session's record: every column, and the words people are told about it."""

import pytest

from segue.core.sessions import Kind, Listed, Session, as_row, kind_of, standing

DOCUMENTED_COLUMNS = (
    *("id", "source", "user_id", "model", "model_config", "system_prompt", "parent_session_id", "started_at"),
    "ended_at",
    *("end_reason", "message_count", "tool_call_count", "input_tokens", "output_tokens", "cache_read_tokens"),
    *("cache_write_tokens", "reasoning_tokens", "billing_provider", "billing_base_url", "billing_mode"),
    *("estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source", "pricing_version", "title"),
    "api_call_count",
    *("kind", "agent", "start_reason", "lane_key", "principal", "last_active_at", "first_line", "archived", "pinned"),
    *("cwd", "branched_from", "reset_from", "spawned_by", "title_source", "context_tokens", "context_window"),
)


@pytest.mark.parametrize("column", DOCUMENTED_COLUMNS)
def test_a_session_has_the_documented_column(column: str) -> None:
    assert column in Session._fields
    assert column in as_row(Session("s", "cli"))


def test_a_list_shows_only_what_a_session_has() -> None:
    assert set(Listed._fields) <= set(Session._fields)
    assert not {"system_prompt", "model_config"} & set(Listed._fields)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("cli", Kind.INTERACTIVE),
        ("telegram", Kind.INTERACTIVE),
        ("api_server", Kind.INTERACTIVE),
        ("acp", Kind.INTERACTIVE),
        ("third_party", Kind.INTERACTIVE),
        ("cron", Kind.AUTOMATION),
        ("batch", Kind.AUTOMATION),
        ("hook", Kind.AUTOMATION),
        ("webhook", Kind.AUTOMATION),
        ("subagent", Kind.SUBAGENT),
    ],
)
def test_the_kind_of_a_session_from(source: str, kind: Kind) -> None:
    assert kind_of(source) is kind


@pytest.mark.parametrize(
    ("session", "is_open", "words"),
    [
        (Session("s", "cli"), True, "open"),
        (Session("s", "cli", ended_at=0.0, end_reason="idle"), False, "ended: idle"),
        (Session("s", "cli", ended_at=5.0), False, "ended: no reason given"),
        (Session("s", "cli", archived=1), True, "archived"),
        (Session("s", "cli", ended_at=5.0, end_reason="idle", archived=1), False, "archived"),
    ],
)
def test_how_a_session_stands(session: Session, is_open: bool, words: str) -> None:
    assert session.is_open is is_open
    assert standing(session) == words
