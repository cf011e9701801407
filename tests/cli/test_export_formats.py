"""`segue sessions export --format md|html`: documents for people, without secrets unless asked; and what is said."""

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import pytest
from homes import NewHome, database_of
from secret_shapes import SHAPES
from waiting import DEADLINE

from segue import SessionDB

Run = Callable[..., subprocess.CompletedProcess[str]]
KEY = "ghp_" + "A1b2C3d4" * 5


class Long(NamedTuple):
    """A conversation of messages of half a megabyte, and bytes of memory."""

    messages: int
    program: int
    """What a program takes at least that exports a short conversation."""
    limit: int


LONG = {"sqlite": Long(80, 20_000_000, 60_000_000), "postgres": Long(120, 30_000_000, 90_000_000)}


class Words(HTMLParser):
    """The text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def careless() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def trips(home: Path) -> None:
    """A conversation of two parts with a tool, an undone message, reasoning and one secret; and one of a platform."""
    call = {"id": "c1", "function": {"name": "weather", "arguments": '{"city": "Lisbon"}'}}
    with SessionDB() as db:
        db.create_session("first", title="A week in Lisbon", started_at=1741162523.0)
        db.append_message("first", "user", f"Use {KEY} for <b>Lisbon</b>", timestamp=1741162524.0)
        db.append_message("first", "assistant", "Looking.", tool_calls=[call], reasoning="secretly thinking")
        db.append_message("first", "tool", "21 degrees", tool_name="weather", tool_call_id="c1")
        db.end_session("first", "compression")
        db.create_session("second", parent_session_id="first", title="A week in Lisbon #2", started_at=1741169999.0)
        db.append_message("second", "user", "And the hotel?")
        db.append_message("second", "assistant", "Booked.")
        db.append_message("second", "user", "Take it back")
        undone = db.get_messages("second")[-1]["id"]
        db.rewind_to_message("second", undone)
        db.create_session("third", source="telegram", started_at=1741170000.0)
        db.append_message("third", "user", "שלום \x1b[31m\u202eevil")


@pytest.mark.usefixtures("careless", "trips")
@pytest.mark.parametrize(
    "arguments", [["all.md"], ["all.html"], ["notes.txt", "--format", "md"], ["x.md", "--format", "html"]]
)
def test_a_document_is_private_complete_and_redacted(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    name, *options = arguments
    result = run("sessions", "export", str(tmp_path / name), *options)
    assert (result.returncode, result.stdout) == (0, "")
    assert (
        result.stderr
        == f"2 conversations written to {tmp_path / name}.\n1 thing that looks like a secret was replaced.\n"
    )
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    text = (tmp_path / name).read_text("utf-8")
    is_page = text.startswith("<!DOCTYPE html>")
    assert is_page == ("html" in arguments[-1])
    words = Words(text).text if is_page else text
    assert KEY not in text
    for part in (
        "[redacted: GitHub token]",
        "weather",
        "21 degrees",
        "compressed, and continued as second",
        "Booked.",
        "שלום",
    ):
        assert part in words
    for part in ("Take it back", "secretly thinking", "\x1b", "\u202e", "<b>Lisbon"):
        assert part not in text
    assert words.index("Looking.") < words.index("21 degrees") < words.index("And the hotel?")


@pytest.mark.on_file
@pytest.mark.parametrize("name", ["all.csv", "all.JSON", "all.jsonl.gz", "conversations 2025.txt"])
def test_a_suffix_that_export_does_not_write_is_refused(run: Run, trips: None, tmp_path: Path, name: str) -> None:
    result = run("sessions", "export", str(tmp_path / name))
    assert result.returncode
    assert "export writes .jsonl, .md and .html" in result.stderr
    assert not (tmp_path / name).exists()
    assert run("sessions", "export", str(tmp_path / name), "--format", "jsonl").returncode == 0
    assert (tmp_path / name).read_text("utf-8").startswith('{"segue_session":1,')


@pytest.mark.on_file
@pytest.mark.parametrize("name", ["all", "all.ndjson", "all.JSONL", "all-2025.03.05"])
def test_json_lines_are_written_where_no_suffix_says_otherwise(
    run: Run, trips: None, tmp_path: Path, name: str
) -> None:
    assert run("sessions", "export", str(tmp_path / name)).returncode == 0
    assert (tmp_path / name).read_text("utf-8").startswith('{"segue_session":1,')


@pytest.mark.usefixtures("trips")
def test_a_document_can_be_narrowed_and_written_to_stdout(run: Run) -> None:
    result = run("sessions", "export", "-", "--format", "md", "--source", "telegram")
    assert result.stdout.startswith("# שלום evil\n")
    assert result.stderr == "Nothing in it looks like a secret.\n"
    for named in ("first", "second", "A week in Lisbon"):
        result = run("sessions", "export", "-", "--format", "html", "--session-id", named, "--session-id", "second")
        assert result.stdout.count("<section") == 1
        assert result.stdout.count("<article") == 5
        assert "<nav>" not in result.stdout


@pytest.mark.on_file
@pytest.mark.usefixtures("trips")
def test_raw_leaves_secrets_in_and_says_so(run: Run) -> None:
    result = run("sessions", "export", "-", "--format", "html", "--raw")
    assert KEY in result.stdout
    assert result.stderr == "1 thing in it looks like a secret; without --raw, md and html leave it out.\n"


@pytest.mark.usefixtures("trips")
def test_json_lines_are_complete_and_say_what_they_hold(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "all.jsonl"
    result = run("sessions", "export", str(target))
    found = target.read_text("utf-8").count(KEY)
    assert found == 3  # in the message, and in the beginning that both parts show
    assert (
        result.stderr
        == f"3 sessions written to {target}.\n3 things in it look like secrets; --redact leaves them out.\n"
    )
    result = run("sessions", "export", str(target), "--redact", "--yes")
    assert KEY not in target.read_text("utf-8")
    assert result.stderr == f"3 sessions written to {target}.\n3 things that look like secrets were replaced.\n"


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["all.md", "--redact", "--raw"], "do not go together"),
        (["all.jsonl", "--raw"], "--raw is for md and html"),
        (["all.html", "--format", "jsonl", "--raw"], "--raw is for md and html"),
        (["all.md", "--source", "cli", "--session-id", "x"], "do not go together"),
        (["all.md", "--format", "pdf"], "pdf"),
    ],
)
def test_what_contradicts_itself_is_refused_in_a_sentence(
    run: Run, tmp_path: Path, arguments: list[str], word: str
) -> None:
    result = run("sessions", "export", str(tmp_path / arguments[0]), *arguments[1:])
    assert result.returncode != 0
    assert word in result.stderr.splitlines()[-1]
    assert [one.name for one in tmp_path.iterdir() if one.name != "home"] == []


@pytest.mark.on_file
def test_an_empty_home_is_an_empty_document(run: Run) -> None:
    assert run("sessions", "export", "-", "--format", "md").stdout.strip() == "# 0 conversations"
    assert "<h1>0 conversations</h1>" in run("sessions", "export", "-", "--format", "html").stdout


@pytest.mark.on_file
def test_no_shape_of_secret_leaves_unless_asked(run: Run, home: Path) -> None:
    with SessionDB() as db:
        for number, shape in enumerate(SHAPES):
            whole = f"{shape.before}{shape.secret}{shape.after}"
            call = {
                "function": {"name": "run", "arguments": json.dumps({"command": f"echo '{whole}'"}, ensure_ascii=False)}
            }
            name = db.create_session(f"s{number}")
            db.append_message(name, "user", f"Please take {whole} and go")
            db.append_message(name, "assistant", None, tool_calls=[call])
            db.append_message(name, "tool", f"line\n  {whole}\nline", tool_name="run")
    for arguments in (["--format", "md"], ["--format", "html"], ["--redact"]):
        result = run("sessions", "export", "-", *arguments)
        assert result.returncode == 0
        assert [shape.name for shape in SHAPES if shape.secret in result.stdout] == []
        replaced = int(result.stderr.split()[0])
        assert replaced >= 3 * len(SHAPES)
    plain = run("sessions", "export", "-")
    assert [shape.name for shape in SHAPES if shape.secret not in plain.stdout] == []
    assert int(plain.stderr.split()[0]) == replaced


@pytest.fixture(scope="module")
def long_home(new_home: NewHome, database: str) -> Path:
    """A home with one conversation."""
    home = new_home("long")
    with SessionDB(database_of(home)) as db:
        session = db.create_session("long")
        for number in range(LONG[database].messages):
            db.append_message(session, "tool", f"{number} words " * 60_000, tool_name="run")
    return home


@pytest.mark.parametrize("name", ["all.md", "all.jsonl"])
def test_a_conversation_is_never_in_memory_whole(long_home: Path, database: str, tmp_path: Path, name: str) -> None:
    check_memory(long_home, tmp_path / name, LONG[database])


@pytest.mark.on_file
def test_a_conversation_is_never_in_memory_whole_for_a_page(long_home: Path, tmp_path: Path) -> None:
    check_memory(long_home, tmp_path / "all.html", LONG["sqlite"])


def check_memory(home: Path, target: Path, long: Long) -> None:
    """Export with room for the program and some messages, but not for the program and the whole conversation."""
    done = subprocess.run(
        [sys.executable, "-m", "segue", "sessions", "export", str(target)],
        capture_output=True,
        text=True,
        env=os.environ | {"SEGUE_HOME": str(home)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (long.limit, long.limit)),
        timeout=4 * DEADLINE,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert long.limit < target.stat().st_size + long.program
