"""`segue sessions show`: a conversation found by what somebody typed, and read from its beginning."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from homes import NewHome, database_of
from zygote import Zygote

from segue import SessionDB, SessionSource, SessionStore
from segue.config import Settings

Run = Callable[..., subprocess.CompletedProcess[str]]

PROJECT = "20250305_091523_a1b2c3d4"
STORY, STORY_2 = "20250306_100000_00000001", "20250306_110000_00000002"
LONG = "20250401_080000_0000000f"
EXACT = "exact-words"
WORDS = "  tab\tthen\r\ntwo\rlines \x1b[31mred\x1b[0m \x9b1m \u202ebidi\u202c \x07 語 👩‍👩‍👧  \n\n"


def said(role: str, content: str, **fields: object) -> dict[str, object]:
    return {"role": role, "content": content, "timestamp": 1741166123.0, **fields}


@pytest.fixture(scope="module")
def library(new_home: NewHome) -> Path:
    """A home with a conversation of every sort."""
    home = new_home("library")
    call = {"id": "1", "type": "function", "function": {"name": "terminal", "arguments": '{"command":"make"}'}}
    sessions: list[dict[str, object]] = [
        {
            "id": PROJECT,
            "source": "cli",
            "title": "my project",
            "tags": ["work"],
            "messages": [
                said("user", "Why does the build fail?", author="Alice"),
                said("assistant", "Let me look.", tool_calls=[call]),
                said("tool", "\n".join(f"line {n}" for n in range(1, 31)), tool_name="terminal", tool_call_id="1"),
                said("assistant", "A file is missing."),
                said("user", "Never mind.", state="undone"),
            ],
        },
        {"id": "20250305_104500_deadbeef", "source": "cli", "messages": [said("user", "Another one")]},
        {
            "id": STORY,
            "source": "cli",
            "title": "story",
            "ended_at": 1741166200.0,
            "end_reason": "compression",
            "messages": [said("user", "Once upon a time")],
        },
        {
            "id": STORY_2,
            "source": "cli",
            "title": "story #2",
            "parent_session_id": STORY,
            "messages": [said("system", "It began long ago.", seq=0), said("user", "And then?")],
        },
        {"id": LONG, "source": "cli", "messages": [said("user", f"Message {n}.") for n in range(1, 31)]},
        {"id": EXACT, "source": "cli", "messages": [said("user", WORDS)]},
    ]
    with SessionDB(database_of(home)) as db:
        assert db.import_sessions(sessions)["added"] == len(sessions)
    return home


def one_sentence(result: subprocess.CompletedProcess[str]) -> str:
    """What a command said no with."""
    assert result.returncode != 0
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.endswith((".\n", "?\n"))
    return result.stderr


@pytest.mark.parametrize("wanted", [PROJECT, "20250305_0915", "my project", " my   project "])
def test_a_conversation_is_found_by_id_by_beginning_and_by_title(run: Run, library: Path, wanted: str) -> None:
    result = run("sessions", "show", wanted, SEGUE_HOME=str(library))
    assert (result.returncode, result.stderr) == (0, "")
    heading, facts, *_ = result.stdout.splitlines()
    assert heading == "my project"
    assert facts.startswith(f"{PROJECT} · cli · ")
    assert "4 messages" in facts


@pytest.mark.on_file
def test_the_transcript_says_who_said_what_in_order(run: Run, library: Path) -> None:
    shown = run("sessions", "show", PROJECT, SEGUE_HOME=str(library), COLUMNS="100").stdout
    wanted = [
        *("Alice", "#1", "Why does the build fail?", "Assistant", "#2", "Let me look.", "terminal", '"command":"make"'),
        *("terminal", "#3", "line 1\n", "line 12\n", "18 more lines", "#4", "A file is missing."),
    ]
    assert re.search(".*".join(map(re.escape, wanted)), shown, re.DOTALL)
    assert "line 13" not in shown
    assert "Never mind." not in shown
    in_a_pipe = run("sessions", "show", PROJECT, SEGUE_HOME=str(library), COLUMNS="").stdout
    assert "line 30\n" in in_a_pipe
    assert "more line" not in in_a_pipe


def test_a_beginning_that_fits_several_lists_them(run: Run, library: Path) -> None:
    sentence = one_sentence(run("sessions", "show", "20250305", SEGUE_HOME=str(library)))
    assert "'20250305'" in sentence
    assert PROJECT in sentence
    assert "20250305_104500_deadbeef" in sentence
    assert LONG not in sentence


@pytest.mark.on_file
@pytest.mark.parametrize("wanted", ["nobody", "", "my projec", "%", "../../etc/passwd"])
def test_what_is_not_there_is_said_in_a_sentence(run: Run, library: Path, wanted: str) -> None:
    assert repr(wanted) in one_sentence(run("sessions", "show", wanted, SEGUE_HOME=str(library)))


@pytest.mark.parametrize("wanted", ["story", "story #2", STORY_2])
def test_a_compressed_conversation_is_one_text_with_its_seams_marked(run: Run, library: Path, wanted: str) -> None:
    shown = run("sessions", "show", wanted, SEGUE_HOME=str(library)).stdout
    assert shown.startswith("story #2\n")
    order = ["Once upon a time", f"compressed, and continued as {STORY_2}", "It began long ago.", "And then?"]
    assert re.search(".*".join(map(re.escape, order)), shown, re.DOTALL)


def test_an_earlier_part_says_where_the_conversation_goes_on(run: Run, library: Path) -> None:
    shown = run("sessions", "show", STORY, SEGUE_HOME=str(library)).stdout
    assert "Once upon a time" in shown
    assert STORY_2 in shown


def test_a_reset_is_marked_with_the_session_before_it(run: Run, home: Path) -> None:
    with SessionStore(database_of(home), Settings(home)) as store:
        source = SessionSource(platform="telegram", chat_id="5", user_id="5")
        before = store.get_or_create_session(source)
        store.append_to_transcript(before.session_id, {"role": "user", "content": "Good night"})
        after = store.reset_session(before.session_key)
        store.append_to_transcript(after.session_id, {"role": "user", "content": "Good morning"})
    shown = run("sessions", "show", after.session_id).stdout
    mark = next(line for line in shown.splitlines() if line.startswith("──"))
    assert "begun anew on request" in mark
    assert before.session_id in mark
    assert shown.index(mark) < shown.rindex("Good morning")
    assert "Good night" not in shown


@pytest.mark.on_file
@pytest.mark.parametrize(("around", "first", "last"), [(15, 10, 20), (2, 1, 7), (29, 24, 30)])
def test_only_the_messages_around_one_are_shown(run: Run, library: Path, around: int, first: int, last: int) -> None:
    shown = run("sessions", "show", LONG, "--around", str(around), SEGUE_HOME=str(library)).stdout
    numbers = [int(number) for number in re.findall(r"#(\d+) ", shown)]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert set(range(first, last + 1)) <= set(numbers)
    assert len(numbers) <= 11
    marked = [line for line in shown.splitlines() if line.startswith("▶")]
    assert len(marked) == 1
    assert f"#{around} " in marked[0]
    assert f"Message {around}." in shown


@pytest.mark.on_file
def test_an_undone_message_can_still_be_read_and_is_marked(run: Run, library: Path) -> None:
    shown = run("sessions", "show", PROJECT, "--around", "5", SEGUE_HOME=str(library)).stdout
    assert "Never mind." in shown
    assert "undone" in next(line for line in shown.splitlines() if line.startswith("▶"))


@pytest.mark.parametrize(
    ("reason", "note"),
    [("stopped", " · stopped"), ("error", " · cut off by an error"), ("length", " · cut off at the length limit")],
)
def test_an_answer_that_did_not_come_to_its_end_is_marked(run: Run, db: SessionDB, reason: str, note: str) -> None:
    session = db.create_session("cut")
    db.append_message(session, "user", "Tell me a story", finish_reason=reason)
    db.append_message(session, "assistant", "Once upon", finish_reason=reason)
    db.append_message(session, "assistant", "The end.", finish_reason="stop")
    shown = run("sessions", "show", session).stdout.splitlines()
    assert [line.endswith(note) for line in shown if re.search(r"  #\d", line)] == [False, True, False]
    for form in ("md", "html"):
        text = run("sessions", "export", "-", "--format", form, "--session-id", session).stdout
        assert text.count(note.removeprefix(" · ")) == 1, form


@pytest.mark.on_file
@pytest.mark.parametrize("around", ["31", "-1", "99999999999999999999"])
def test_a_message_that_is_not_there_is_an_error(run: Run, library: Path, around: str) -> None:
    assert around in one_sentence(run("sessions", "show", LONG, f"--around={around}", SEGUE_HOME=str(library)))


@pytest.mark.parametrize("typed", ["MY PROJECT", "My project"])
def test_a_title_is_found_in_upper_and_lower_case(run: Run, library: Path, typed: str) -> None:
    shown = run("sessions", "show", typed, SEGUE_HOME=str(library))
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("my project\n")


def test_a_title_that_is_nearly_right_is_suggested(run: Run, library: Path) -> None:
    sentence = one_sentence(run("sessions", "show", "my", "projcet", SEGUE_HOME=str(library)))
    assert sentence == "segue: No session has the id or title 'my projcet'; did you mean 'my project'?\n"


InAPipe = Callable[..., bytes]


@pytest.fixture
def in_a_pipe(zygote: Zygote) -> InAPipe:
    """What another program reads, byte for byte."""

    def read(home: Path, *arguments: str) -> bytes:
        done = zygote.run_bytes(arguments, b"", os.environ | {"SEGUE_HOME": str(home), "PYTHONIOENCODING": "utf-8"})
        assert done.returncode == 0
        return done.stdout

    return read


@pytest.mark.on_file
def test_raw_words_are_exact_in_a_pipe(in_a_pipe: InAPipe, library: Path) -> None:
    assert in_a_pipe(library, "sessions", "show", EXACT, "--raw") == WORDS.encode() + b"\n"


@pytest.mark.on_file
def test_raw_words_have_no_decoration_and_nothing_left_out(run: Run, library: Path) -> None:
    shown = run("sessions", "show", PROJECT, "--raw", SEGUE_HOME=str(library)).stdout
    output = "\n".join(f"line {n}" for n in range(1, 31))
    assert shown == f"Why does the build fail?\nLet me look.\n{output}\nA file is missing.\n"


@pytest.mark.parametrize(
    ("wanted", "parts"),
    [
        (PROJECT, [PROJECT]),
        (EXACT, [EXACT]),
        *((name, [STORY, STORY_2]) for name in ("story", "story #2", STORY, STORY_2)),
    ],
)
def test_json_holds_every_part_as_the_line_of_an_export(
    in_a_pipe: InAPipe, library: Path, wanted: str, parts: list[str]
) -> None:
    shown = json.loads(in_a_pipe(library, "sessions", "show", wanted, "--json"))
    exported = in_a_pipe(library, "sessions", "export", "-", "--session-id", wanted)
    assert [*shown.pop("earlier"), shown] == [json.loads(line) for line in exported.splitlines()]
    assert [json.loads(line)["id"] for line in exported.splitlines()] == parts


@pytest.mark.on_file
@pytest.mark.parametrize(
    "calls",
    [
        [{"function": None}],
        [{"function": "text"}],
        [{"function": {"name": None, "arguments": {"a": [1]}}}],
        ["no object"],
        {"name": "no list"},
        "no list",
    ],
)
def test_tool_calls_of_any_shape_can_be_shown(run: Run, db: SessionDB, calls: object) -> None:
    name = db.create_session("odd")
    db.append_message(name, "assistant", "Calling.", tool_calls=calls)
    result = run("sessions", "show", name)
    assert (result.returncode, result.stderr) == (0, "")
    assert "Calling." in result.stdout
