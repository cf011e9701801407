"""`segue sessions export` and `segue sessions import`: complete, private, never half, and the same again."""

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from homes import NewHome, database_of
from waiting import DEADLINE
from zygote import Zygote

from segue import SessionDB
from segue.core.text import storable

Run = Callable[..., subprocess.CompletedProcess[str]]
HOSTILE = "\x1b[31mred\x1b[0m \x9b1m \u202ebidi\u202c \x00 \x85 \u2028 \U000e0041 語 👩‍👩‍👧"


def conversation(name: str, said: str = "Hello", **fields: object) -> dict[str, Any]:
    return {"id": name, "source": "cli", "messages": [{"role": "user", "content": said}], **fields}


def rich_sessions() -> list[dict[str, Any]]:
    """Sessions with something in every corner."""
    call = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{ "a":  1 }'}}
    picture = [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": HOSTILE, "author": HOSTILE, "timestamp": 1741166123.25},
        {"role": "assistant", "content": None, "tool_calls": [call], "finish_reason": "tool_calls", "token_count": 7},
        {"role": "tool", "content": "x" * 100_000, "tool_call_id": "c1", "tool_name": "terminal"},
        {"role": "user", "content": picture, "attachments": [{"name": "a.png"}], "platform_message_id": "42"},
        {"role": "assistant", "content": "", "reasoning": "Hm.", "reasoning_details": [{"z": 1, "a": 2}]},
        {"role": "user", "content": "Forget it.", "state": "undone", "unheard_of": {"deep": [None, 1.5]}},
        {"role": "user", "content": "Long ago.", "state": "compacted", "seq": 20},
    ]
    whole = {
        "title": "日本語 #2",
        "title_source": "user",
        "user_id": "42",
        "model": "some/model",
        "model_config": '{"temperature": 0.5}',
        "system_prompt": HOSTILE,
        "started_at": 1741166123.123456,
        "ended_at": 1741169999.5,
        "end_reason": "compression",
        "input_tokens": 12,
        "estimated_cost_usd": 0.1,
        "cwd": "/home/somebody",
        "archived": 1,
        "pinned": 1,
        "tags": ["work", HOSTILE],
        "messages": messages,
    }
    return [
        {"id": "20250305_091523_a1b2c3d4", "source": "telegram", **whole},
        conversation("child", parent_session_id="20250305_091523_a1b2c3d4", kept_seq=2, title="日本語 #3"),
        conversation("job", source="cron", lane_key="agent:main:cron:job"),
        conversation(f"foreign/../{HOSTILE}", source="slack"),
        {"id": "empty", "source": "cli"},
    ]


@pytest.fixture(scope="module")
def archive(new_home: NewHome) -> Path:
    """A home with sessions that have something in every corner."""
    home = new_home("archive")
    with SessionDB(database_of(home)) as db:
        sessions = rich_sessions()
        assert db.import_sessions(sessions)["added"] == len(sessions)
    return home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which there is nothing else."""
    made = tmp_path / "exports"
    made.mkdir()
    return made


@pytest.fixture
def careless() -> Iterator[None]:
    """A umask that hides nothing from anybody."""
    before = os.umask(0)
    yield
    os.umask(before)


def with_small_files(home: Path, *arguments: str, most_bytes: int) -> subprocess.CompletedProcess[bytes]:
    """Run a command that cannot write files above a size."""
    environment = os.environ | {"SEGUE_HOME": str(home), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-m", "segue", *arguments],
        capture_output=True,
        env=environment,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)),
        timeout=DEADLINE,
    )


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def everything() -> list[dict[str, Any]]:
    """All that is stored, as an export would have it."""
    with SessionDB() as db:
        return db.export_all()


def imported(run: Run, *lines: object, arguments: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Import lines from stdin; what is no text is written as JSON."""
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return run("sessions", "import", "-", *arguments, stdin=text + "\n")


# Export


@pytest.mark.usefixtures("careless")
def test_an_export_is_complete_and_for_its_owner_alone(run: Run, archive: Path, tmp_path: Path) -> None:
    target = tmp_path / "all.jsonl"
    result = run("sessions", "export", str(target), SEGUE_HOME=str(archive))
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == f"5 sessions written to {target}.\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    sessions = {session["id"]: session for session in lines_of(target)}
    first = sessions["20250305_091523_a1b2c3d4"]
    assert len(sessions) == 5
    assert [message["state"] for message in first["messages"]] == [*["live"] * 5, "undone", "compacted"]
    assert first["messages"][0]["content"] == HOSTILE
    assert first["system_prompt"] == storable(HOSTILE)
    assert set(first["tags"]) == {"work", storable(HOSTILE)}
    assert target.read_bytes().count(b"\n") == 5


def test_a_dash_is_stdout_and_holds_the_same_bytes(run: Run, zygote: Zygote, archive: Path, tmp_path: Path) -> None:
    run("sessions", "export", str(tmp_path / "all.jsonl"), SEGUE_HOME=str(archive))
    environment = os.environ | {"SEGUE_HOME": str(archive), "PYTHONIOENCODING": "utf-8"}
    result = zygote.run_bytes(["sessions", "export", "-"], b"", environment)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout == (tmp_path / "all.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--source", "telegram"], ["20250305_091523_a1b2c3d4"]),
        (["--source", "telegram", "--source", "cron"], ["20250305_091523_a1b2c3d4", "job"]),
        (["--session-id", "child"], ["20250305_091523_a1b2c3d4", "child"]),
        (["--session-id", "child", "--session-id", "job"], ["20250305_091523_a1b2c3d4", "child", "job"]),
        (["--session-id", "20250305_091523_a1b2c3d4"], ["20250305_091523_a1b2c3d4", "child"]),
    ],
)
def test_an_export_can_be_narrowed(run: Run, archive: Path, arguments: list[str], names: list[str]) -> None:
    result = run("sessions", "export", "-", *arguments, SEGUE_HOME=str(archive))
    assert (result.returncode, result.stderr) == (0, "")
    assert [json.loads(line)["id"] for line in result.stdout.split("\n")[:-1]] == names


def test_where_nothing_fits_nothing_is_written(run: Run, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text("from before")
    result = run(
        "sessions", "export", str(tmp_path / "good.jsonl"), "--source", "matrix", "--yes", SEGUE_HOME=str(archive)
    )
    assert (result.returncode, result.stderr) == (1, "segue: No conversation fits; nothing was written.\n")
    assert (tmp_path / "good.jsonl").read_text() == "from before"


def test_a_session_that_is_not_there_makes_no_file(run: Run, archive: Path, folder: Path) -> None:
    arguments = ["--session-id", "child", "--session-id", "nobody"]
    result = run("sessions", "export", str(folder / "some.jsonl"), *arguments, SEGUE_HOME=str(archive))
    assert (result.returncode, result.stdout) == (1, "")
    assert "'nobody'" in result.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.on_file
@pytest.mark.parametrize("target", ["missing/all.jsonl", "folder", "."])
def test_a_target_that_cannot_be_written_is_a_sentence_and_leaves_nothing(
    run: Run, archive: Path, folder: Path, target: str
) -> None:
    (folder / "folder").mkdir()
    result = run("sessions", "export", os.path.join(folder, target), SEGUE_HOME=str(archive))
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert str(folder) in result.stderr
    assert [file.name for file in folder.rglob("*")] == ["folder"]


@pytest.mark.on_file
@pytest.mark.usefixtures("careless")
def test_an_existing_file_is_replaced_at_once_and_becomes_private(run: Run, archive: Path, folder: Path) -> None:
    target = folder / "all.jsonl"
    target.write_text("from before", encoding="utf-8")
    target.chmod(0o644)
    with target.open(encoding="utf-8") as reader:
        refused = run("sessions", "export", str(target), SEGUE_HOME=str(archive))
        assert (refused.returncode, target.read_text()) == (1, "from before")
        assert run("sessions", "export", str(target), "--yes", SEGUE_HOME=str(archive)).returncode == 0
        assert reader.read() == "from before"
    assert len(lines_of(target)) == 5
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(folder.iterdir()) == [target]


@pytest.mark.on_file
def test_when_the_disk_refuses_the_old_file_stays(archive: Path, tmp_path: Path) -> None:
    target = tmp_path / "all.jsonl"
    target.write_text("from before", encoding="utf-8")
    result = with_small_files(archive, "sessions", "export", str(target), "--yes", most_bytes=50_000)
    assert (result.returncode, result.stdout) == (1, b"")
    assert len(result.stderr.splitlines()) == 1
    assert str(target).encode() in result.stderr
    assert target.read_text(encoding="utf-8") == "from before"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.on_file
def test_a_pipe_with_a_name_stays_a_pipe(run: Run, archive: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        run("sessions", "export", str(pipe), "--session-id", "empty", SEGUE_HOME=str(archive))
        assert stat.S_ISFIFO(pipe.stat().st_mode)
    finally:
        os.close(reader)


@pytest.mark.on_file
def test_an_empty_home_exports_no_lines(run: Run, tmp_path: Path) -> None:
    result = run("sessions", "export", str(tmp_path / "all.jsonl"))
    assert (result.returncode, result.stderr) == (0, f"0 sessions written to {tmp_path / 'all.jsonl'}.\n")
    assert (tmp_path / "all.jsonl").read_bytes() == b""


# Import


def test_export_import_export_is_the_same_to_the_byte(run: Run, archive: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    assert run("sessions", "export", str(first), SEGUE_HOME=str(archive)).returncode == 0
    result = run("sessions", "import", str(first))
    assert (result.returncode, result.stdout, result.stderr) == (0, "5 added.\n", "")
    assert run("sessions", "export", str(second)).returncode == 0
    assert second.read_bytes() == first.read_bytes()


def test_importing_twice_changes_nothing(run: Run, archive: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    run("sessions", "export", str(file), SEGUE_HOME=str(archive))
    run("sessions", "import", str(file))
    before = everything()
    result = run("sessions", "import", str(file))
    assert (result.returncode, result.stdout, result.stderr) == (0, "5 unchanged.\n", "")
    assert everything() == before


@pytest.mark.on_file
@pytest.mark.parametrize(
    "line",
    [
        conversation("same", title="  Two   words\u200b "),
        conversation("same", tags=["work", "home", "work"]),
        {
            "id": "same",
            "source": "cli",
            "messages": [{"seq": 2, "role": "user", "content": "b"}, {"seq": 1, "role": "user", "content": "a"}],
        },
        {
            "id": "same",
            "source": "cli",
            "messages": [{"role": "user", "content": "a", "one": 1, "two": 2, "three": 3, "four": 4, "five": 5}],
        },
        conversation("same", unheard_of="kept out"),
    ],
    ids=["untidy title", "untidy tags", "untidy order", "unknown message fields", "unknown session field"],
)
def test_a_line_that_another_hand_wrote_is_one_session_too(run: Run, line: dict[str, Any]) -> None:
    text = json.dumps(line)
    first = run("sessions", "import", "-", stdin=text, PYTHONHASHSEED="1")
    assert (first.returncode, first.stdout) == (0, "1 added.\n")
    second = run("sessions", "import", "-", stdin=text, PYTHONHASHSEED="2")
    assert (second.returncode, second.stdout) == (0, "1 unchanged.\n")


@pytest.mark.on_file
def test_the_report_names_what_had_to_be_adjusted(run: Run) -> None:
    result = imported(run, conversation("a", title="Taken"), conversation("b", title="Taken", unheard_of=1))
    assert (result.returncode, result.stdout) == (0, "2 added.\n")
    title, field = result.stderr.splitlines()
    assert title.startswith("b: ")
    assert "'Taken #2'" in title
    assert "unheard_of" in field


@pytest.mark.on_file
def test_the_report_is_data_for_programs_too(run: Run) -> None:
    result = imported(run, conversation("a"), "nonsense", conversation("a", "Other"), arguments=("--json",))
    assert (result.returncode, result.stderr) == (1, "")
    report = json.loads(result.stdout)
    assert set(report) == {"sessions", "errors", "dry_run"}
    assert report["dry_run"] is False
    assert [one["outcome"] for one in report["sessions"]] == ["added", "skipped"]
    assert set(report["sessions"][0]) == {"session_id", "outcome", "messages", "notes"}
    assert report["sessions"][0]["messages"] == 1
    assert len(report["errors"]) == 1
    assert "2" in str(report["errors"][0])


def test_a_dry_run_changes_nothing(run: Run) -> None:
    imported(run, conversation("here", "As it was"))
    before = everything()
    lines = [conversation("here", "As it would be"), conversation("new"), "nonsense"]
    for policy, outcome in [("skip", "skipped"), ("replace", "replaced"), ("copy", "copied")]:
        result = imported(run, *lines, arguments=("--dry-run", "--on-conflict", policy))
        assert result.returncode == 1
        assert all(part in result.stdout for part in ("1 added", f"1 {outcome}", "1 left out"))
        assert everything() == before
    assert json.loads(run("sessions", "trash", "list", "--json").stdout) == []


def test_a_dry_run_says_what_the_real_one_will_say(run: Run) -> None:
    imported(run, conversation("here", title="Taken"))
    lines = [
        conversation("twice", title="Taken"),
        conversation("twice", title="Taken"),
        conversation("new", title="Fresh"),
        conversation("newer", title="Fresh"),
    ]
    dry = imported(run, *lines, arguments=("--dry-run",))
    wet = imported(run, *lines)
    assert dry.stderr == wet.stderr
    assert wet.stdout in dry.stdout


def test_a_session_whose_title_had_to_change_stays_one_session(run: Run) -> None:
    imported(run, conversation("a", title="Taken"))
    imported(run, conversation("b", title="Taken"))
    before = everything()
    assert imported(run, conversation("b", title="Taken")).returncode == 0
    assert everything() == before


def test_a_conflict_is_skipped_unless_told_otherwise(run: Run) -> None:
    imported(run, conversation("a", "As it was"))
    before = everything()
    result = imported(run, conversation("a", "Other"))
    assert (result.returncode, result.stdout) == (0, "1 skipped; --on-conflict replace or copy takes them in.\n")
    assert result.stderr.startswith("a: ")
    assert everything() == before
    assert imported(run, conversation("a", "Other"), arguments=("--on-conflict", "skip")).stdout.startswith("1 skipped")


def test_a_replaced_session_is_in_the_trash(run: Run) -> None:
    imported(run, conversation("a", "As it was", title="Old"))
    result = imported(run, conversation("a", "Other"), arguments=("--on-conflict", "replace"))
    assert (result.returncode, result.stdout) == (0, "1 replaced.\n")
    (session,) = everything()
    assert session["messages"][0]["content"] == "Other"
    (entry,) = json.loads(run("sessions", "trash", "list", "--json").stdout)
    assert (entry["session_id"], entry["title"]) == ("a", "Old")


def test_a_copied_session_stands_beside_the_one_that_is_here(run: Run) -> None:
    imported(run, conversation("a", "As it was", title="Name"))
    result = imported(run, conversation("a", "Other", title="Name"), arguments=("--on-conflict", "copy"))
    assert (result.returncode, result.stdout) == (0, "1 copied.\n")
    first, second = sorted(everything(), key=lambda session: len(session["id"]))
    assert (first["id"], first["title"], first["messages"][0]["content"]) == ("a", "Name", "As it was")
    assert (second["title"], second["messages"][0]["content"]) == ("Name #2", "Other")


def with_message(**fields: object) -> dict[str, Any]:
    return {"id": "m", "source": "cli", "messages": [{"role": "user", "content": "Hi", **fields}]}


MALFORMED: dict[str, list[str | dict[str, Any]]] = {
    "no JSON object": [
        *("nonsense", "[1, 2]", '"text"', '{"id": "m", "source": "cli"', '{"id": "m", "id": "n", "source": "cli"}'),
        *("[" * 100_000, "\x00\x01\x02", '{"id": "m", "source": "cli", "input_tokens": ' + "9" * 5000 + "}"),
    ],
    "no session": [
        {"source": "cli"},
        {"id": "", "source": "cli"},
        {"id": "m" * 201, "source": "cli"},
        {"id": 7, "source": "cli"},
        {"id": "m"},
        {"id": "m", "source": ["cli"]},
        {"id": "m", "source": "cli", "title": 5},
        {"id": "m", "source": "cli", "tags": "work"},
        {"id": "m", "source": "cli", "tags": [1]},
        {"id": "m", "source": "cli", "messages": {}},
        {"id": "m", "source": "cli", "messages": ["Hi"]},
        {"id": "m", "source": "cli", "input_tokens": 2**63},
        {"id": "m", "source": "cli", "archived": "yes"},
        {"id": "m", "source": "cli", "segue_session": 2},
    ],
    "no message": [
        with_message(seq=-1),
        with_message(seq="1"),
        with_message(state="gone"),
        with_message(timestamp="today"),
        with_message(token_count="many"),
        {"id": "m", "source": "cli", "messages": [{"role": "user", "seq": 1}, {"role": "user", "seq": 1}]},
    ],
    "no role": [with_message(role="nobody"), with_message(role=["user"]), with_message(role=None)],
    "no text": [with_message(author=5), with_message(content=float("nan"))],
    "a list for a state": [with_message(state=["live"])],
    "a list for extra fields": [with_message(extra=[1], unheard_of=2)],
    "a time that is no number": [
        '{"id": "m", "source": "cli", "started_at": NaN}',
        '{"id": "m", "source": "cli", "messages": [{"role": "user", "timestamp": NaN}]}',
    ],
    "a time without end": [
        '{"id": "m", "source": "cli", "started_at": 1e999}',
        '{"id": "m", "source": "cli", "ended_at": -Infinity}',
        '{"id": "m", "source": "cli", "messages": [{"role": "user", "timestamp": 1e999}]}',
    ],
}


@pytest.mark.on_file
@pytest.mark.parametrize("lines", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_line_that_cannot_be_taken_is_named_by_its_number_and_the_rest_goes_in(
    run: Run, lines: list[str | dict[str, Any]]
) -> None:
    result = imported(run, conversation("before"), "", *lines, conversation("after"))
    assert "Traceback" not in result.stderr
    sentences = [sentence for sentence in result.stderr.splitlines() if not sentence.startswith("… and ")]
    numbers = range(3, 3 + min(len(lines), 10))
    assert [sentence.split(" was ")[0] for sentence in sentences] == [f"Line {n}" for n in numbers]
    assert [sentence for sentence in sentences if not sentence.endswith(".") or sentence.endswith("..")] == []
    assert max(map(len, sentences)) < 300
    assert result.returncode == 1
    assert result.stdout == f"2 added, {len(lines)} left out.\n"
    assert {session["id"] for session in everything()} == {"before", "after"}


@pytest.mark.parametrize("moment", [1e300, -1e15])
def test_whatever_time_comes_in_can_be_shown_and_exported(run: Run, moment: float) -> None:
    """Refusing a time that no calendar has is as good as showing it."""
    result = imported(run, conversation("odd", started_at=moment, last_active_at=moment))
    assert "Traceback" not in result.stderr
    for command in (["list"], ["show", "odd"], ["export", "-"]):
        assert "Traceback" not in run("sessions", *command).stderr


@pytest.mark.on_file
def test_a_megabyte_of_garbage_is_one_short_sentence(run: Run) -> None:
    result = imported(run, conversation("before"), "x" * 1_000_000, '{"id":"' + "y" * 1_000_000)
    assert (result.returncode, result.stdout) == (1, "1 added, 2 left out.\n")
    assert [sentence[:7] for sentence in result.stderr.splitlines()] == ["Line 2 ", "Line 3 "]
    assert len(result.stderr) < 600


@pytest.mark.on_file
def test_empty_lines_windows_line_ends_and_a_missing_last_one_are_fine(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    lines = ["\ufeff" + json.dumps(conversation("a")), "", "  \t", json.dumps(conversation("b"))]
    file.write_bytes("\r\n".join(lines).encode())
    result = run("sessions", "import", str(file))
    assert (result.returncode, result.stdout, result.stderr) == (0, "2 added.\n", "")


@pytest.mark.on_file
def test_an_empty_file_has_nothing_to_import(run: Run, tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").touch()
    result = run("sessions", "import", str(tmp_path / "none.jsonl"))
    assert (result.returncode, result.stderr) == (0, "")
    assert "nothing" in result.stdout.lower()


@pytest.mark.on_file
def test_bytes_that_are_no_text_are_left_out(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    file.write_bytes(b'\xff\xfe\x80\n{"id":"a","source":"\xc3\x28"}\n' + json.dumps(conversation("b")).encode())
    result = run("sessions", "import", str(file))
    assert (result.returncode, result.stdout) == (1, "1 added, 2 left out.\n")
    assert [sentence[:7] for sentence in result.stderr.splitlines()] == ["Line 1 ", "Line 2 "]


@pytest.mark.on_file
def test_a_redacted_export_holds_no_secret_and_comes_back_as_sessions(run: Run, home: Path, tmp_path: Path) -> None:
    key = "sk-" + "proj-" + "Ab3" * 16
    call = {"id": "c", "function": {"name": "login", "arguments": json.dumps({"password": "hunter" + "2!x"})}}
    with SessionDB() as db:
        db.create_session("a", title=f"about {key}", system_prompt=f"use {key}")
        db.append_message("a", "user", f"my key is {key}, please keep it")
        db.append_message("a", "assistant", [{"type": "text", "text": key}], tool_calls=[call])
        db.append_message("a", "tool", {"api_key": "Zx9" + "Qw7" * 8}, tool_call_id="c")
    target = tmp_path / "safe.jsonl"
    assert run("sessions", "export", str(target), "--redact").returncode == 0
    text = target.read_text()
    assert [secret for secret in (key, "hunter2!x", "Zx9Qw7") if secret in text] == []
    assert "please keep it" in text
    assert run("sessions", "import", str(target), "--on-conflict", "copy").stdout == "1 copied.\n"
