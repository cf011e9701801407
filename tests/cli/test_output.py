"""The way out, piece by piece: widths, cuts, tables, and conversations as lines of text."""

import io
import json
import re
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torture_rounds import rounds

from segue.cli.output import Column, confirm, cut, note, pages, progress, say, show_json, style, table
from segue.cli.render import transcript
from segue.cli.tables import session_table, trash_cells
from segue.core.errors import SegueError
from segue.core.messages import Message
from segue.core.policy import ResetReason
from segue.core.sessions import Listed, Session
from segue.ports.store import ResetRow, TrashEntry
from segue.sessions.reading import Part

FAMILY = "👩‍👩‍👧"
HOSTILE = "\x1b[31mred\x1b[0m\x9b1m\x1b]0;owned\x07\u202e\U000e0041\x00\x85\r"
DANGEROUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\ud800-\udfff]"
)
NOW = 1741166123.0
PIECES = (*"ab語한🙂éש م\u0301", FAMILY, "👋🏽", "❤️", "🇩🇪", "\t", "\n", "\x1b[1m", " ")
worldly = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


def cells(text: str) -> int:
    """How many cells of a terminal a line takes, counted without the library that the program uses."""
    text = re.sub("\u200d.|[\U0001f3fb-\U0001f3ff]", "", text)  # drawn as one with the character before
    text = re.sub(".\ufe0f", "語", text)  # drawn as a picture
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 40 columns."""
    monkeypatch.setenv("COLUMNS", "40")


# Cutting


@pytest.mark.parametrize(
    ("text", "most", "left"),
    [
        ("", 5, ""),
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("two words", 5, "two…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("a日本語", 4, "a日…"),
        (FAMILY * 3, 6, FAMILY * 3),
        (FAMILY * 3, 5, FAMILY * 2 + "…"),
        (FAMILY * 3, 4, FAMILY + "…"),
        ("👋🏽👋🏽", 3, "👋🏽…"),
        ("🇩🇪🇫🇷", 3, "🇩🇪…"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("שלום", 3, "של…"),
        ("anything", 1, "…"),
    ],
)
def test_a_text_is_cut_to_cells_and_never_inside_a_cluster(text: str, most: int, left: str) -> None:
    assert cut(text, most) == left


@pytest.mark.torture
@given(worldly, st.integers(1, 50))
@settings(max_examples=rounds(60, in_torture=300))
def test_what_is_cut_fits_and_is_a_beginning(text: str, most: int) -> None:
    line = " ".join(text.replace("\x1b[1m", "").split())
    shown = cut(line, most)
    assert cells(shown) <= most
    assert shown == line or (shown.endswith("…") and line.startswith(shown[:-1]))


# Tables


def shown_table(capsys: pytest.CaptureFixture[str], columns: list[Column], rows: list[list[str]]) -> list[str]:
    table(columns, rows)
    return capsys.readouterr().out.splitlines()


@pytest.mark.usefixtures("narrow")
def test_columns_with_a_weight_share_what_the_others_leave(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [Column("Name", 1), Column("Text", 1), Column("ID")]
    lines = shown_table(capsys, columns, [["n" * 50, "t" * 50, "0123456789"], ["short", "", "x"]])
    assert lines[0] == f"{'Name':13}  {'Text':13}  ID"
    assert lines[1] == "─" * 40
    assert lines[2] == f"{'n' * 12}…  {'t' * 12}…  0123456789"
    assert lines[3] == f"{'short':13}  {'':13}  x"


@pytest.mark.usefixtures("narrow")
def test_a_narrow_column_leaves_its_share_to_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown_table(capsys, [Column("A", 1), Column("B", 1)], [["tiny", "b" * 60]])
    assert lines[2] == f"tiny  {'b' * 33}…"


@pytest.mark.usefixtures("narrow")
def test_a_table_is_no_wider_than_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown_table(capsys, [Column("Name", 1), Column("ID")], [["ab", "1"]]) == ["Name  ID", "────────", "ab    1"]


@pytest.mark.usefixtures("narrow")
def test_the_number_of_a_title_survives_a_narrow_column(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["my project with a rather long name #7", "語" * 30 + " #12", "no number here, only words #", "a b c #7"]
    lines = shown_table(
        capsys, [Column("Title", 1), Column("ID")], [[name, "20250305_091523_a1b2c3d4"] for name in names]
    )
    cells_of_titles = [line.removesuffix("20250305_091523_a1b2c3d4").rstrip() for line in lines[2:]]
    assert cells_of_titles == ["my project… #7", "語語語語… #12", "no number her…", "a b c #7"]


@pytest.mark.usefixtures("narrow")
def test_what_a_hidden_column_says_stands_where_the_other_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [Column("Title", 2), Column("Preview", 3, yields=2, fills="Title"), Column("ID")]
    table(columns, [["Lisbon", "Which week?", "1" * 25], ["—", "Which hotel?", "2" * 25], ["—", "", "3" * 25]])
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [line.rsplit(maxsplit=1)[0] for line in lines] == ["Lisbon", "Which hotel?", "—"]


def test_a_pipe_is_not_cut(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever terminal shows the errors: whoever reads is another program."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    columns = [Column("Title", 2), Column("Preview", 3, yields=2), Column("Src", yields=1), Column("ID")]
    row = ["t" * 100, "p" * 200, "s" * 60, "agent:main:imported:" + "i" * 180]
    assert shown_table(capsys, columns, [row])[2].split() == row


@pytest.mark.usefixtures("narrow")
def test_lines_of_a_cell_are_joined_and_nothing_in_it_steers(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown_table(capsys, [Column("Name", 1)], [[f"one\n\ntwo\tthree {HOSTILE}"]])
    assert lines[2:] == ["one two three red"]


@pytest.mark.usefixtures("narrow")
def test_wide_characters_keep_the_columns_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["語" * 30, "a" + "語" * 30, FAMILY * 20, "❤️" * 20, "plain", "e\u0301" * 30, "שלום"]
    lines = shown_table(capsys, [Column("Name", 1), Column("ID")], [[name, "END"] for name in names])
    assert {cells(line[: line.index("END")]) for line in lines[2:]} == {37}


@pytest.mark.torture
@given(
    st.lists(st.tuples(worldly, worldly, worldly, worldly), max_size=5),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.integers(20, 120),
)
@settings(max_examples=rounds(40, in_torture=200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([("x" * 100, "y" * 100, "2025-03-05", "20250305_091523_a1b2c3d4")], [2, 3, 0, 0], 40)
@example([("x", "y", "z", "i" * 300)], [2, 3, 0, 0], 80)
def test_no_table_is_ever_wider_than_the_terminal(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    rows: list[tuple[str, ...]],
    weights: list[int],
    columns: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    named = [Column(name, weight) for name, weight in zip(("Name", "語", "When", "ID"), weights, strict=True)]
    lines = shown_table(capsys, named, [list(row) for row in rows])
    assert len(lines) == 2 + len(rows)
    assert [line for line in lines if cells(line) > columns] == []


# Printing


def test_what_is_said_and_noted_steers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"said {HOSTILE}")
    note(f"noted {HOSTILE}")
    pages(iter(["paged"]))
    said, noted = capsys.readouterr()
    assert not DANGEROUS.search(said + noted)
    assert said.startswith("said red")
    assert said.endswith("paged\n")
    assert noted.startswith("noted red")


def test_json_says_the_same_without_a_character_that_steers(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({HOSTILE: ["語", HOSTILE, None, 1.5]})
    shown = capsys.readouterr().out
    assert not DANGEROUS.search(shown)
    assert "語" in shown
    assert json.loads(shown) == {HOSTILE: ["語", HOSTILE, None, 1.5]}


def test_nothing_is_coloured_where_nobody_sees_it() -> None:
    assert style("text", bold=True, dim=True, fg="red") == "text"


def test_progress_is_silent_where_nobody_sees_it(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Working", 3) as advance:
        advance(1)
        advance(2)
    assert capsys.readouterr() == ("", "")


def test_yes_needs_no_question_and_nobody_means_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    confirm("Go ahead?", yes=True)
    with pytest.raises(SegueError, match="--yes"):
        confirm("Go ahead?", yes=False)


# Conversations


def listed(**fields: Any) -> Listed:
    session = Session("20250305_091523_a1b2c3d4", "cli", last_active_at=NOW)
    return Listed(**{name: getattr(session, name) for name in Listed._fields} | fields)


def test_a_row_says_title_beginning_time_source_and_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    named = listed(title="Name", first_line="one\ntwo " + "x" * 99)
    columns, rows = session_table([named, listed(title=None)], NOW + 7200)
    assert [column.name for column in columns] == ["Title", "Preview", "Last Active", "ID"]
    assert rows[0] == ["Name", "one two " + "x" * 51 + "…", "2h ago", "20250305_091523_a1b2c3d4"]
    assert rows[1][0] == "—"
    columns, rows = session_table([listed(title=None)], NOW + 7200)
    assert [column.name for column in columns] == ["Preview", "Last Active", "Src", "ID"]
    assert rows[0][2] == "cli"


@pytest.mark.parametrize(
    ("title", "line", "name"), [("Name", "beginning", "Name"), (None, "beginning", "beginning"), (None, "", "—")]
)
def test_what_is_in_the_trash_is_known_by_title_or_beginning(title: str | None, line: str, name: str) -> None:
    fields: dict[str, Any] = dict.fromkeys(TrashEntry._fields)
    fields |= {"session_id": "s", "title": title, "first_line": line, "message_count": 3, "trashed_at": NOW}
    assert trash_cells(TrashEntry(**fields), NOW + 100) == [name, "3", "1m ago", "s"]


def message(seq: int, role: str, content: str | None, **fields: Any) -> Message:
    empty: dict[str, Any] = dict.fromkeys(Message._fields)
    given = {"id": seq, "session_id": "s", "seq": seq, "state": "live", "role": role, "content": content}
    return Message(**empty | given | {"timestamp": NOW} | fields)


def lines_of(*rows: Message, reset: ResetRow | None = None) -> list[str]:
    return list(transcript([Part(Session("s", "cli", title="Name", started_at=NOW), list(rows), reset)]))


def test_a_transcript_names_speaker_and_number_of_every_message() -> None:
    lines = lines_of(
        message(1, "user", "Hi"),
        message(2, "user", "Hello", author="Alice"),
        message(3, "assistant", "Yes?"),
        message(4, "system", "Be kind."),
        message(5, "tool", "done", tool_name="terminal"),
        message(6, "tool", "done"),
        message(0, "system", "Before."),
        message(7, "user", "Oops", state="undone"),
    )
    headings = [line for line in lines if " #" in line]
    speakers = ["● You", "● Alice", "◆ Assistant", "■ System", "⚙ terminal", "⚙ tool", "■ Summary of what came before"]
    assert [heading.split("  #")[0] for heading in headings] == [*speakers, "● You"]
    assert [heading.split("  #")[1].split(" ")[0] for heading in headings] == list("12345607")
    assert headings[-1].endswith("undone")
    assert lines[0] == "Name"


@pytest.mark.parametrize(
    ("lines", "last"), [(12, "12"), (13, "… 1 more line; --raw shows all"), (40, "… 28 more lines; --raw shows all")]
)
def test_long_tool_output_is_folded(monkeypatch: pytest.MonkeyPatch, lines: int, last: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    output = "\n".join(map(str, range(1, lines + 1)))
    assert lines_of(message(1, "tool", output))[-1].split("\n")[-1] == last


def test_tool_calls_are_one_line_each() -> None:
    calls = '[{"function":{"name":"terminal","arguments":"{\\n \\"a\\": 1}"}},{"function":{}},{}]'
    shown = lines_of(message(1, "assistant", None, tool_calls=calls))[-3:]
    assert [line.rstrip() for line in shown] == ['→ terminal { "a": 1}', "→ ?", "→ ?"]


def test_a_reset_is_a_rule_that_says_why_and_what_was_before() -> None:
    row = ResetRow("lane", datetime.fromtimestamp(NOW, UTC), ResetReason.IDLE, "owner", "before-1", "s", True)
    rule = lines_of(message(1, "user", "Hi"), reset=row)[2].strip()
    assert rule.startswith("── ")
    assert "after a long silence" in rule
    assert "before-1" in rule


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_no_part_of_a_transcript_steers_a_terminal(role: str) -> None:
    calls = '[{"function":{"name":"\\u001b[31m","arguments":"\\u009b1m\\u202e"}}]'
    hostile = message(1, role, HOSTILE, author=HOSTILE, tool_name=HOSTILE, tool_calls=calls)
    session = Session(HOSTILE, HOSTILE, title=HOSTILE, end_reason=HOSTILE, ended_at=NOW)
    shown: Iterator[str] = transcript([Part(session, [hostile], None), Part(session, [hostile], None)], around=1)
    assert not DANGEROUS.search("\n".join(shown))
