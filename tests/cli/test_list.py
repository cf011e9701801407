"""`segue sessions list`: which conversations are shown, in which columns, and never wider than the terminal."""

import json
import os
import re
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from homes import NewHome, database_of
from waiting import DEADLINE

from segue import SessionDB

Run = Callable[..., subprocess.CompletedProcess[str]]
DAY = 24 * 60
KEYS = {
    *("id", "title", "title_source", "first_line", "source", "kind", "agent", "model", "principal", "tags"),
    *("started_at", "ended_at", "end_reason", "last_active_at", "message_count", "tool_call_count"),
    *("input_tokens", "output_tokens", "total_tokens", "estimated_cost_usd", "context_tokens", "context_window"),
    *("archived", "pinned", "preview", "parent_session_id", "spawned_by", "lane_key", "cwd"),
}
LONG_SOURCE = "a-platform-with-a-rather-long-name"
TITLES = (
    "日本語のタイトルはとても長いですよね" * 3,
    "한국어 제목과 中文标题 mixed with Latin letters and more of them",
    "👩‍👩‍👧 family 👋🏽 waves ❤️ hearts 🇩🇪 flags 1️⃣ keys 👩‍👩‍👧 again",
    "مرحبا بالعالم كيف حالك اليوم وماذا تفعل",
    "שלום עולם",
    "e\u0301a\u0308o\u0302" * 20,
    "x" * 100,
    "short",
)


def conversation(
    now: float, name: str, minutes_ago: float, said: str = "Hello there", **fields: object
) -> dict[str, object]:
    at = now - 60 * minutes_ago
    messages = [
        {"role": "user", "content": said, "timestamp": at},
        {"role": "assistant", "content": "At once.", "timestamp": at},
    ]
    return {"id": name, "source": "cli", "started_at": at, "messages": messages, **fields}


def filled(home: Path, *sessions: dict[str, object]) -> Path:
    with SessionDB(database_of(home)) as db:
        assert db.import_sessions(sessions)["added"] == len(sessions)
    return home


@pytest.fixture(scope="module")
def now() -> float:
    """The moment when the homes are made, which may be long after this file was loaded."""
    return time.time()


@pytest.fixture(scope="module")
def varied(new_home: NewHome, now: float) -> Path:
    """A home with something for every filter."""
    return filled(
        new_home("varied"),
        conversation(now, "plan", 3.5 * DAY, source="discord", title="Plan of the house", agent="scout"),
        conversation(now, "chat", 5, title="Alpha", tags=["work", "home"]),
        conversation(now, "job", 10, source="cron"),
        conversation(now, "errand", 20, source="subagent", spawned_by="chat"),
        conversation(
            now, "note", 130, "Remember\n\n  the \t milk. " + "More of it. " * 9, source="telegram", tags=["work"]
        ),
        conversation(now, "story", 200, title="Story", ended_at=now, end_reason="compression"),
        conversation(now, "story-2", 100, title="Story #2", parent_session_id="story"),
        conversation(now, "old", 40 * DAY, archived=1),
    )


@pytest.fixture(scope="module")
def many(new_home: NewHome, now: float) -> Path:
    """A home with 25 conversations, none of them named; the first one was active last."""
    sessions = [conversation(now, f"20250305_0915{n:02}_a1b2c3d4", n) for n in range(25)]
    return filled(new_home("many"), *sessions)


@pytest.fixture(scope="module")
def worldly(new_home: NewHome, now: float) -> Path:
    """A home whose conversations are named in many scripts, one of them under another program's long id."""
    sessions = [
        conversation(now, f"20250305_0915{n:02}_a1b2c3d4", n, f"{title} {title}", title=title)
        for n, title in enumerate(TITLES)
    ]
    foreign = conversation(now, "agent:main:imported:" + "from-another-program-" * 6, 90, source=LONG_SOURCE)
    return filled(new_home("worldly"), *sessions, foreign)


def cells(text: str) -> int:
    """How many cells of a terminal a line takes, counted without the library that the program uses."""
    text = re.sub("\u200d.|[\U0001f3fb-\U0001f3ff]", "", text)  # drawn as one with the character before
    text = re.sub(".\ufe0f", "語", text)  # drawn as a picture
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def days_ago(now: float, days: int) -> str:
    return datetime.fromtimestamp(now - days * 86400).astimezone().date().isoformat()


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("", "chat story-2 note plan"),
        ("--limit 2", "chat story-2"),
        ("--source telegram", "note"),
        ("--source telegram --source discord", "note plan"),
        ("--active 60", "chat"),
        ("--active 125", "chat story-2"),
        ("--since {two_days_ago}", "chat story-2 note"),
        ("--since {ten_days_ago}T12:30", "chat story-2 note plan"),
        ("--since {ten_days_ago} --active 60", "chat"),
        ("--since 3h", "chat story-2 note"),
        ("--after 120m", "chat story-2"),
        ("--after 7d", "chat story-2 note plan"),
        ("-n 2 --since 1w", "chat story-2"),
        ("--archived", "old"),
        ("--kind automation", "job"),
        ("--kind subagent", "errand"),
        ("--tag work", "chat note"),
        ("--tag wor", ""),
        ("--agent scout", "plan"),
        ("--all", "chat job errand story-2 note story plan old"),
        ("--all --kind automation", "job"),
        ("--all --source cli", "chat story-2 story old"),
        ("--all --archived", "old"),
    ],
)
def test_each_filter_narrows_what_is_listed_newest_first(
    run: Run, varied: Path, now: float, arguments: str, names: str
) -> None:
    words = arguments.format(two_days_ago=days_ago(now, 2), ten_days_ago=days_ago(now, 10)).split()
    result = run("sessions", "list", *words, "--json", SEGUE_HOME=str(varied))
    assert (result.returncode, result.stderr) == (0, "")
    assert [row["id"] for row in json.loads(result.stdout)] == names.split()


def test_options_alone_are_those_of_the_list(run: Run, varied: Path) -> None:
    for words, names in (
        ("--json", "chat story-2 note plan"),
        ("--active 60 --json", "chat"),
        ("--limit 1 --json", "chat"),
    ):
        result = run("sessions", *words.split(), SEGUE_HOME=str(varied))
        assert (result.returncode, result.stderr) == (0, "")
        assert [row["id"] for row in json.loads(result.stdout)] == names.split()
    assert "Commands" in run("sessions", "--help", SEGUE_HOME=str(varied)).stdout


def test_the_json_rows_have_stable_keys_and_tags(run: Run, varied: Path, now: float) -> None:
    rows = json.loads(run("sessions", "list", "--json", SEGUE_HOME=str(varied)).stdout)
    assert [set(row) for row in rows] == [KEYS] * 4
    assert [row["tags"] for row in rows] == [["home", "work"], [], ["work"], []]
    chat = rows[0]
    assert (chat["title"], chat["first_line"], chat["source"]) == ("Alpha", "Hello there", "cli")
    assert (chat["message_count"], chat["kind"], chat["agent"], chat["archived"]) == (2, "interactive", "main", False)
    assert {type(row[name]) for row in rows for name in ("archived", "pinned")} == {bool}
    assert [row["preview"] for row in rows[:2]] == ["Hello there", "Hello there"]
    assert rows[2]["preview"] == "Remember the milk. More of it. More of it. More of it. More…"
    assert chat["last_active_at"] == now - 300


@pytest.mark.on_file
def test_named_conversations_are_shown_with_title_preview_last_activity_and_id(run: Run, varied: Path) -> None:
    result = run("sessions", "list", SEGUE_HOME=str(varied), COLUMNS="120")
    assert result.stderr == ""
    header, rule, chat, story, note, plan = result.stdout.splitlines()
    assert re.split("  +", header) == ["Title", "Preview", "Last Active", "ID"]
    assert set(rule) == {"─"}
    assert re.split("  +", chat)[:2] == ["Alpha", "Hello there"]
    assert re.split("  +", story)[0] == "Story #2"
    assert re.split("  +", note)[0] == "—"
    assert re.split("  +", note)[2:] == ["2h ago", "note"]
    assert re.split("  +", plan) == ["Plan of the house", "Hello there", "3d ago", "plan"]


@pytest.mark.on_file
def test_the_preview_is_the_first_message_on_one_line_of_60_characters(run: Run, varied: Path) -> None:
    result = run("sessions", "list", "--source", "telegram", SEGUE_HOME=str(varied), COLUMNS="200")
    preview = re.split("  +", result.stdout.splitlines()[-1])[0]
    assert preview == "Remember the milk. More of it. More of it. More of it. More…"
    assert len(preview) == 60


@pytest.mark.on_file
def test_in_a_pipe_titles_previews_and_ids_are_whole(run: Run, worldly: Path, varied: Path) -> None:
    shown = run("sessions", "list", SEGUE_HOME=str(worldly), COLUMNS="").stdout
    assert "agent:main:imported:" + "from-another-program-" * 6 in shown
    assert "x" * 100 in shown
    note = run("sessions", "list", "--source", "telegram", SEGUE_HOME=str(varied), COLUMNS="").stdout
    assert "Remember the milk. " + "More of it. " * 8 + "More of it." in note


@pytest.mark.on_file
def test_without_a_single_title_the_source_is_shown_instead(run: Run, many: Path) -> None:
    lines = run("sessions", "list", SEGUE_HOME=str(many)).stdout.splitlines()
    assert re.split("  +", lines[0]) == ["Preview", "Last Active", "Src", "ID"]
    assert re.fullmatch(r"Hello there +\d+m ago +cli +20250305_091519_a1b2c3d4", lines[-1])


@pytest.mark.on_file
def test_twenty_are_shown_unless_more_are_asked_for(run: Run, many: Path) -> None:
    shown = run("sessions", "list", SEGUE_HOME=str(many)).stdout.splitlines()[2:]
    assert [line.split()[-1] for line in shown] == [f"20250305_0915{n:02}_a1b2c3d4" for n in range(20)]
    assert len(run("sessions", "list", "--limit", "24", SEGUE_HOME=str(many)).stdout.splitlines()) == 2 + 24


def test_an_empty_home_is_no_error(run: Run, home: Path) -> None:
    result = run("sessions", "list")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", f"No conversations yet in {home}.\n")
    result = run("sessions", "list", "--json")
    assert (result.returncode, result.stdout, result.stderr) == (0, "[]\n", "")


@pytest.mark.on_file
def test_a_filter_that_fits_nothing_is_said_on_stderr(run: Run, varied: Path) -> None:
    result = run("sessions", "list", "--tag", "nothing", SEGUE_HOME=str(varied))
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.startswith("No conversation")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        ["list", "--source"],
        ["search", "hello", "--source"],
        ["search", "hello", "--exclude-source"],
        ["prune", "--source"],
        ["export", "-", "--source"],
        ["insights", "--source"],
    ],
)
def test_a_platform_that_nobody_knows_is_bad_input(run: Run, varied: Path, command: list[str]) -> None:
    """One that is installed, that the settings name or that a session is from is known, whatever is found."""
    words = command if command[0] == "insights" else ["sessions", *command]
    for name, meant in (("telegrm", "did you mean telegram?"), ("discrd", "did you mean discord?")):
        refused = run(*words, name, SEGUE_HOME=str(varied))
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr == f"segue: There is no platform '{name}'; {meant}\n"
    assert "known are" in run(*words, "☃", SEGUE_HOME=str(varied)).stderr
    assert "There is no platform" not in run(*words, "discord", "--source", "matrix", SEGUE_HOME=str(varied)).stderr


@pytest.mark.on_file
@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_the_table_is_never_wider_than_the_terminal(run: Run, worldly: Path, columns: int) -> None:
    result = run("sessions", "list", SEGUE_HOME=str(worldly), COLUMNS=str(columns))
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert len(lines) == 3 + len(TITLES)
    assert [line for line in lines if cells(line) > columns] == []


@pytest.mark.on_file
def test_neither_a_long_source_nor_a_long_id_makes_the_table_wider(run: Run, worldly: Path) -> None:
    shown = run("sessions", "list", "--source", LONG_SOURCE, SEGUE_HOME=str(worldly), COLUMNS="80").stdout
    assert [len(line) > 80 for line in shown.splitlines()] == [False, False, False]


@pytest.mark.on_file
@pytest.mark.parametrize("columns", [60, 80])
def test_ids_of_the_usual_shape_can_be_copied_from_the_table(run: Run, many: Path, columns: int) -> None:
    shown = run("sessions", "list", "--limit", "3", SEGUE_HOME=str(many), COLUMNS=str(columns)).stdout
    assert re.findall(r"\b2025\w+$", shown, re.MULTILINE) == [f"20250305_0915{n:02}_a1b2c3d4" for n in range(3)]


@pytest.mark.on_file
def test_the_columns_stand_below_each_other_in_every_script(run: Run, worldly: Path) -> None:
    shown = run("sessions", "list", "--source", "cli", SEGUE_HOME=str(worldly), COLUMNS="100").stdout.splitlines()
    starts = {cells(line[: line.index("2025")]) for line in shown[2:]}
    assert starts == {cells(shown[0][: shown[0].index("ID")])}


@pytest.mark.on_file
def test_listing_imports_only_what_it_needs(many: Path) -> None:
    script = """
import sys
from segue.cli import main
sys.argv = ["segue", "sessions", "list", "--limit", "1"]
try:
    main()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""
    environment = os.environ | {"SEGUE_HOME": str(many), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, timeout=DEADLINE)
    assert "20250305_091500_a1b2c3d4" in result.stdout
    heavy = {"yaml", "rich.console", "rich.table", "asyncio", "sqlite3", "segue.facade", "segue.cli.moving"}
    assert heavy & set(result.stderr.split()) == set()
    assert "apsw" in result.stderr.split()
