"""`segue sessions stats` and `segue status`: how much there is, and where."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from homes import NewHome, database_of

from segue import SessionDB
from segue.config import masked

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def office(new_home: NewHome) -> Path:
    """A home with seven sessions of three platforms, and one in the trash."""
    home = new_home("office")
    with SessionDB(database_of(home)) as db:
        for number, source in enumerate(["telegram"] * 4 + ["cli", "cli", "cron", "discord"]):
            name = db.create_session(f"session-{number}", source, started_at=1741166123.0 + number)
            for _ in range(2 if source == "telegram" else 1):
                db.append_message(name, "user", f"Hello from {source}", timestamp=1741166123.0 + number)
        db.delete_session("session-7")
    return home


def test_stats_count_everything_and_each_platform(run: Run, office: Path) -> None:
    result = run("sessions", "stats", SEGUE_HOME=str(office))
    assert (result.returncode, result.stderr) == (0, "")
    *lines, size = result.stdout.splitlines()
    assert lines == [
        "Total sessions: 7",
        "Total messages: 11",
        "  telegram: 4 sessions, 8 messages",
        "  cli: 2 sessions, 2 messages",
        "  cron: 1 session, 1 message",
    ]
    assert size.startswith("Database size: ")
    assert size.endswith(" MB")


def test_stats_are_data_for_programs_too(run: Run, office: Path) -> None:
    found = json.loads(run("sessions", "stats", "--json", SEGUE_HOME=str(office)).stdout)
    assert found.pop("database_bytes") > 4096
    assert found == {
        "sessions": 7,
        "messages": 11,
        "sources": {
            "telegram": {"sessions": 4, "messages": 8},
            "cli": {"sessions": 2, "messages": 2},
            "cron": {"sessions": 1, "messages": 1},
        },
    }


def test_an_empty_home_counts_nothing(run: Run) -> None:
    result = run("sessions", "stats")
    assert result.returncode == 0
    assert result.stdout.splitlines()[:2] == ["Total sessions: 0", "Total messages: 0"]
    assert len(result.stdout.splitlines()) == 3
    found = json.loads(run("sessions", "stats", "--json").stdout)
    assert (found["sessions"], found["messages"], found["sources"]) == (0, 0, {})


def test_after_an_undo_the_stats_say_what_is_live(run: Run, db: SessionDB) -> None:
    name = db.create_session()
    db.append_message(name, "user", "stays")
    undone = db.append_message(name, "user", "goes")
    db.rewind_to_message(name, undone)
    assert json.loads(run("sessions", "stats", "--json").stdout)["messages"] == 1


def test_status_says_where_things_are_and_how_much_there_is(run: Run, office: Path) -> None:
    result = run("status", SEGUE_HOME=str(office), COLUMNS="80")
    assert (result.returncode, result.stderr) == (0, "")
    assert f"Home      {office}\n" in result.stdout
    assert f"{masked(str(database_of(office)))}, " in result.stdout.replace("\n          ", "")
    assert ("segue init" in result.stdout) is not (office / "config.yaml").exists()
    assert "7 sessions, 11 messages, 0 lanes, 1 in the trash\n" in result.stdout


def test_status_shows_the_five_latest_conversations(run: Run, office: Path) -> None:
    shown = run("status", SEGUE_HOME=str(office), COLUMNS="80").stdout.splitlines()
    table = shown[shown.index("") + 1 :]
    assert table[0].split() == ["Preview", "Last", "Active", "Src", "ID"]
    assert [line.split()[-1] for line in table[2:]] == [f"session-{n}" for n in (5, 4, 3, 2, 1)]
    assert max(map(len, table)) <= 80


def test_status_is_data_for_programs_too(run: Run, office: Path) -> None:
    facts = json.loads(run("status", "--json", SEGUE_HOME=str(office)).stdout)
    assert set(facts) == {
        *("home", "config", "model", "database", "database_bytes", "notices", "recent", "sources"),
        *("sessions", "messages", "lanes", "trash", "gateway", "inbox", "outbox"),
    }
    assert facts["gateway"] == {"up": False, "runs": [], "platforms": [], "left_out": {}}
    assert (facts["home"], facts["database"]) == (str(office), masked(str(database_of(office))))
    assert (facts["config"] is not None) is (office / "config.yaml").exists()
    assert (facts["sessions"], facts["messages"], facts["lanes"], facts["trash"]) == (7, 11, 0, 1)
    assert [row["id"] for row in facts["recent"]] == [f"session-{n}" for n in (5, 4, 3, 2, 1)]


def test_status_of_a_fresh_home_has_no_table(run: Run, home: Path) -> None:
    result = run("status")
    assert (result.returncode, result.stderr) == (0, "")
    assert "0 sessions, 0 messages" in result.stdout
    assert "Last Active" not in result.stdout
    assert str(home) in result.stdout


def test_status_names_the_configuration_once_there_is_one(run: Run, home: Path) -> None:
    run("init")
    assert f"{home}/config.yaml" in run("status").stdout
    assert json.loads(run("status", "--json").stdout)["config"] == f"{home}/config.yaml"


@pytest.mark.parametrize(
    ("settings", "environ", "expected"),
    [
        ("", {}, None),
        ("", {"OPENAI_API_KEY": "x"}, "openai/gpt-5.5"),
        ("model: gpt-5.4-mini", {"OPENAI_API_KEY": "x"}, "openai/gpt-5.4-mini"),
        ("model: ollama/small", {}, "ollama/small"),
        ("agent: {entry: 'mine:answer'}", {}, "mine:answer"),
    ],
)
def test_status_names_the_model_that_answers(
    run: Run, home: Path, settings: str, environ: dict[str, str], expected: str | None
) -> None:
    run("init")
    (home / "config.yaml").write_text(settings)
    shown = run("status", **environ).stdout
    assert json.loads(run("status", "--json", **environ).stdout)["model"] == expected
    assert f"Model     {expected or 'none by key or settings'}" in shown


def test_status_says_that_a_model_is_not_available(run: Run, home: Path) -> None:
    run("init")
    (home / "config.yaml").write_text("model: anthropic/claude-sonnet-5-5")
    assert "Model     anthropic/claude-sonnet-5-5, which is not available: " in run("status").stdout
