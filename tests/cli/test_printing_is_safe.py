"""No control character of stored text reaches a terminal, whatever the command and wherever the text was kept."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from homes import NewHome, database_of
from zygote import Zygote

from segue import SessionDB
from segue.core.text import storable

NASTY = (
    *("\x1b[31mred", "\x1b[2J\x1b[H", "\x1b]0;owned\x07", "\x1b]8;;http://evil\x1b\\link", "\x1b]52;c;b3du\x07"),
    *("\x1bPq\x1b\\", "\x1b_Gi=1\x1b\\", "\x1b(0", "\x1bc", "\x1b[?25l", "\x1b]never ends", "\x1b"),
    *("\x9b31m", "\x9d0;owned\x9c", "\x90q\x9c", "\x98x\x9c", "\x85", "\x00", "\x07", "\x08\x08", "\x7f", "\r"),
    *("\x0b\x0c", "\x0e\x0f", "\u202egnp.exe", "\u2066iso\u2069", "\u200e\u200f\u061c", "\U000e0041\U000e007f"),
)
HOSTILE = " ".join(NASTY)
TYPED = HOSTILE.replace("\x00", "")  # no argument of a command can hold it
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def hostile_session(name: str, **fields: object) -> dict[str, object]:
    """A session that says something nasty wherever text can be kept; its id begins with a name that can be typed."""
    call = {"id": HOSTILE, "type": HOSTILE, "function": {"name": HOSTILE, "arguments": HOSTILE}}
    messages = [
        {"role": "system", "content": HOSTILE, "seq": 0},
        {"role": "user", "content": HOSTILE, "author": HOSTILE, "platform_message_id": HOSTILE},
        {"role": "assistant", "content": HOSTILE, "tool_calls": [call], "finish_reason": HOSTILE, "provider": HOSTILE},
        {"role": "tool", "content": HOSTILE, "tool_name": HOSTILE, "tool_call_id": HOSTILE},
        {"role": "assistant", "content": [{"type": "text", "text": HOSTILE}, {"type": HOSTILE}], "state": "undone"},
        {"role": "user", "content": HOSTILE, HOSTILE: HOSTILE, "attachments": [HOSTILE]},
    ]
    texts = ("title", "user_id", "model", "cwd", "end_reason", "agent", "system_prompt", "model_config", "lane_key")
    return {
        **dict.fromkeys(texts, f"{name} {HOSTILE}"),
        "id": f"{name} {HOSTILE}"[:200],
        "source": HOSTILE,
        "kind": "interactive",
        "started_at": 1741166123.0,
        "ended_at": 1741166123.0,
        "tags": [HOSTILE],
        "messages": messages,
        **fields,
    }


def fill(home: Path) -> Path:
    first, second = hostile_session("evil-1"), hostile_session("evil-2")
    child = hostile_session("evil-1b", parent_session_id=first["id"])
    with SessionDB(database_of(home)) as db:
        assert db.import_sessions([first, second, child, {"id": "plain", "source": "cli"}])["added"] == 4
    return home


@pytest.fixture(scope="module")
def bad_place(new_home: NewHome) -> Path:
    """A home full of hostile text, in a folder with a hostile name; only for looking."""
    return fill(new_home("ho\x1b[31mme\u202e"))


class Bytes:
    """Runs commands; what they write is not translated in any way."""

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote

    def run(self, home: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        environment = os.environ | {"SEGUE_HOME": str(home), "PYTHONIOENCODING": "utf-8"}
        return self._zygote.run_bytes(arguments, stdin, environment)

    def written(self, home: Path, *arguments: str, stdin: bytes = b"") -> tuple[str, str]:
        """What a command writes to stdout and stderr."""
        result = self.run(home, *arguments, stdin=stdin)
        return result.stdout.decode(), result.stderr.decode()

    def on_a_terminal(self, home: Path, *arguments: str, **environment: str) -> str:
        """What a command writes to a terminal of 80 columns."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
        variables = {"SEGUE_HOME": str(home), "PYTHONIOENCODING": "utf-8", "TERM": "xterm-256color", "PAGER": "cat"}
        terminal, pieces = Path(os.ttyname(theirs)), list[bytes]()

        def read() -> None:
            with suppress(OSError):  # Linux says so when the other end is closed
                while piece := os.read(ours, 65536):
                    pieces.append(piece)

        reading = threading.Thread(target=read)
        reading.start()
        try:
            done = self._zygote.run_bytes(arguments, terminal, inherited | variables | environment, terminal=terminal)
        finally:
            os.close(theirs)
            reading.join()
            os.close(ours)
        assert done.returncode == 0
        return b"".join(pieces).decode().replace("\r\n", "\n")


@pytest.fixture
def plain(zygote: Zygote) -> Bytes:
    return Bytes(zygote)


@pytest.mark.parametrize(
    "words",
    [
        "sessions list",
        "sessions list --json",
        "sessions show evil-1b",
        "sessions show evil-2 --around 3",
        "sessions show evil-2 --json",
        "sessions show evil",
        "sessions stats",
        "status",
        "status --json",
        "sessions delete evil-1b evil-2 --dry-run",
        "sessions delete evil-2",
        "sessions export -",
        "config path",
        "config check",
    ],
)
def test_no_command_lets_stored_text_steer_the_terminal(plain: Bytes, bad_place: Path, words: str) -> None:
    stdout, stderr = plain.written(bad_place, *words.split())
    assert "Traceback" not in stderr
    assert stdout + stderr != ""
    assert DANGEROUS.findall(stdout) == []
    assert DANGEROUS.findall(stderr) == []


def test_no_change_lets_stored_text_steer_the_terminal(plain: Bytes, tmp_path: Path) -> None:
    """The commands that change something, one after the other on one home."""
    home = fill(tmp_path / "home")
    again = json.dumps(hostile_session("evil-2", model=HOSTILE) | {HOSTILE: 1}).encode()
    taken = json.dumps(hostile_session("evil-3", title=f"evil-2 {HOSTILE}") | {HOSTILE: 1}).encode()
    bad = json.dumps(hostile_session("evil-4", input_tokens=HOSTILE)).encode()
    state = json.dumps({"id": "evil-5", "source": "x", "messages": [{"role": HOSTILE, "state": HOSTILE}]}).encode()
    lines = b"\n".join([again, taken, bad, state, HOSTILE.encode()])
    title = TYPED[:60].split()
    target = str(tmp_path / TYPED.replace("/", "")[:60])
    steps: list[tuple[int, list[str], bytes]] = [
        (1, ["import", "-"], lines),
        (1, ["import", "-", "--json"], lines),
        (0, ["import", "-", "--on-conflict", "copy", "--dry-run"], again),
        (0, ["import", "-", "--on-conflict", "replace"], again),
        (0, ["export", target], b""),
        (0, ["import", target], b""),
        (0, ["rename", "evil-1b", *title], b""),
        (2, ["rename", "plain", *title], b""),
        (2, ["rename", "plain", *TYPED.split()], b""),
        (0, ["rename", "evil-1b", ""], b""),
        (0, ["trash", "empty", "--yes"], b""),
        (0, ["delete", "evil-1b", "evil-2", "--yes"], b""),
        (0, ["trash", "list"], b""),
        (0, ["trash", "list", "--json"], b""),
        (1, ["trash", "restore", "evil"], b""),
        (0, ["trash", "empty", "--dry-run"], b""),
        (0, ["trash", "restore", "evil-1b"], b""),
        (0, ["delete", "evil-1b", "--purge", "--yes"], b""),
    ]
    steering = []
    for code, arguments, stdin in steps:
        result = plain.run(home, "sessions", *arguments, stdin=stdin)
        assert (result.returncode, b"Traceback" in result.stderr, arguments) == (code, False, arguments)
        if found := DANGEROUS.findall((result.stdout + result.stderr).decode()):
            steering.append((arguments, found))
    assert steering == []


@pytest.mark.on_file
@pytest.mark.parametrize(
    "arguments",
    [
        ["sessions", "show", TYPED],
        ["sessions", "list", "--since", TYPED],
        ["sessions", "import", TYPED],
        ["sessions", "export", f"/nowhere/{TYPED}"],
        ["sessions", TYPED],
        ["sessions", "list", f"--{TYPED}"],
        ["sessions", "list", TYPED],
    ],
)
def test_no_error_repeats_what_would_steer_the_terminal(plain: Bytes, bad_place: Path, arguments: list[str]) -> None:
    stdout, stderr = plain.written(bad_place, *arguments)
    assert stdout == ""
    assert stderr != ""
    assert DANGEROUS.findall(stderr) == []


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({HOSTILE.replace("\x00", ""): 1}),
        json.dumps({"session": {"main_key": HOSTILE}}),
        json.dumps({"session": {"reset": {"mode": TYPED}}}),
        "a: !%1B%5B31m x",
        "\x1b[31m: 1",
    ],
)
def test_no_configuration_steers_the_terminal(plain: Bytes, tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    stdout, stderr = plain.written(tmp_path, "config", "check")
    assert stdout == ""
    assert stderr.count("\n") == 1
    assert DANGEROUS.findall(stderr) == []


def test_exported_text_is_harmless_in_a_terminal_and_still_whole(plain: Bytes, bad_place: Path) -> None:
    stdout, _ = plain.written(bad_place, "sessions", "export", "-", "--session-id", "evil-2")
    session = json.loads(stdout)
    assert session["source"] == storable(HOSTILE)
    assert session["messages"][1]["content"] == HOSTILE
    assert session["tags"] == [storable(HOSTILE)]


def test_line_breaks_in_stored_text_fake_no_lines(plain: Bytes, tmp_path: Path) -> None:
    home = tmp_path / "home"
    sessions = [{"id": f"fake-{n}\nTotal sessions: 0", "source": f"cli\nTotal messages: {n}"} for n in (1, 2)]
    with SessionDB(database_of(home)) as db:
        assert db.import_sessions(sessions)["added"] == 2
    lines = {
        "list": (4, 0),
        "stats": (5, 0),
        "show fake": (0, 1),
        "show fake-1": (2, 0),
        "rename fake-1 new": (1, 0),
        "rename fake-2 new": (0, 1),
        "import -": (1, 1),
        "delete fake-1 --yes": (5, 0),
        "trash list": (3, 0),
        "trash restore fake-1": (1, 0),
    }
    changed = json.dumps(sessions[0]).encode()
    written = {words: plain.written(home, "sessions", *words.split(), stdin=changed) for words in lines}
    assert {words: (out.count("\n"), err.count("\n")) for words, (out, err) in written.items()} == lines


# Colour


@pytest.mark.on_file
@pytest.mark.parametrize("words", ["sessions list", "sessions show evil-1b", "sessions show evil-2 --raw"])
def test_on_a_terminal_the_only_codes_are_our_colours(plain: Bytes, bad_place: Path, words: str) -> None:
    shown = plain.on_a_terminal(bad_place, *words.split())
    assert "evil" in shown or "red" in shown
    assert bool(COLOUR.search(shown)) == ("--raw" not in words)
    assert DANGEROUS.findall(COLOUR.sub("", shown)) == []


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("words", "environment"), [("sessions list", {"NO_COLOR": "1"}), ("sessions show evil-2", {"TERM": "dumb"})]
)
def test_a_terminal_that_wants_no_colour_gets_none(
    plain: Bytes, bad_place: Path, words: str, environment: dict[str, str]
) -> None:
    shown = plain.on_a_terminal(bad_place, *words.split(), **environment)
    assert "evil" in shown
    assert "\x1b" not in shown


@pytest.mark.on_file
def test_the_table_fits_the_terminal_it_is_printed_on(plain: Bytes, bad_place: Path) -> None:
    shown = COLOUR.sub("", plain.on_a_terminal(bad_place, "sessions", "list", "--all"))
    assert [line for line in shown.splitlines() if len(line) > 80] == []


@pytest.mark.on_file
def test_on_a_terminal_a_longer_list_says_that_there_is_more(plain: Bytes, bad_place: Path) -> None:
    assert "--limit" in plain.on_a_terminal(bad_place, "sessions", "list", "--limit", "1")
    assert "--limit" not in plain.written(bad_place, "sessions", "list", "--limit", "1")[0]
