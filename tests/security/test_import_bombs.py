"""What is imported was written by somebody: however it is made, it costs little time and memory, and is named."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import DEADLINE

from segue import SessionDB

pytestmark = [pytest.mark.process, pytest.mark.on_file]

MOST_MEMORY = 1_500_000_000  # bytes of address space; a bomb would need many times as much
BEGINNING = '{"id":"bomb","source":"cli"'
MESSAGE = BEGINNING + ',"messages":[{"role":"user","content":'
MILLION = 1_000_000

REFUSED = {
    "depth of lists": (f"{MESSAGE}{'[' * MILLION}", "nested too deeply"),
    "depth of objects": (f'{BEGINNING},"x":{{"a":' + '{"a":' * MILLION, "nested too deeply"),
    "depth that Python still reads": (f"{MESSAGE}{'[' * 900}{']' * 900}}}]}}", "nested too deeply"),
    "huge integer": (f'{BEGINNING},"started_at":{"9" * MILLION}}}', "no JSON"),
    "integer too large to keep": (f'{BEGINNING},"input_tokens":{10**4000}}}', "input_tokens cannot be"),
    "infinite number": (f'{BEGINNING},"started_at":1e999}}', "cannot be inf"),
    "not a number": (f'{BEGINNING},"started_at":NaN}}', "is no number"),
    "duplicate key": (f'{BEGINNING},"id":"other"}}', "repeated key"),
    "duplicate key below": (f'{MESSAGE}"x","role":"system"}}]}}', "repeated key"),
    "half a line": (f'{BEGINNING},"title":"{"x" * MILLION}', "no JSON"),
    "nothing but zeros": ("\0" * MILLION, "no JSON"),
}
"""A line that says `bomb`, and why it is left out."""


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


@pytest.fixture
def bombs(home: Path, tmp_path: Path) -> Iterator[Path]:
    with SessionDB() as db:
        db.create_session("mine", "cli")
    yield tmp_path / "bombs.jsonl"
    with SessionDB() as db:
        assert db.get_session("mine"), "what was there is there"


def bring_in(file: Path | str, stdin: int | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "segue", "sessions", "import", str(file)],
        stdin=stdin,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=DEADLINE,  # a bomb would take hours
        preexec_fn=limited,
    )
    assert len(done.stdout) + len(done.stderr) < 20_000, "what is told of it is short"
    assert "Traceback" not in done.stderr
    return done


def test_bombs_are_named_by_their_lines_and_the_rest_comes_in(bombs: Path) -> None:
    good = [json.dumps({"id": f"good{number}", "source": "cli"}) for number in range(len(REFUSED))]
    pairs = zip((line for line, _ in REFUSED.values()), good, strict=True)
    bombs.write_text("".join(f"{bomb}\n{fine}\n" for bomb, fine in pairs))
    done = bring_in(bombs)
    assert done.returncode == 1
    said = done.stderr.splitlines()
    for number, (name, (_, why)) in enumerate(REFUSED.items()):
        if number < 10:
            [line] = [one for one in said if f"Line {2 * number + 1} " in one]
            assert why in line, name
    assert "and 1 more" in done.stderr
    with SessionDB() as db:
        assert db.get_session("bomb") is None
        assert db.session_count() == len(REFUSED) + 1


def test_a_million_keys_come_in_and_are_not_all_named(bombs: Path) -> None:
    keys = ",".join(f'"k{number}":1' for number in range(MILLION))
    bombs.write_text(f'{BEGINNING},{keys}}}\n{MESSAGE.replace("bomb", "below")}"x",{keys}}}]}}\n')
    done = bring_in(bombs)
    assert done.returncode == 0
    assert "and 999,990 more" in done.stderr
    with SessionDB() as db:
        assert db.get_session("bomb")
        assert db.get_messages("below")[0]["content"] == "x"


def test_a_line_without_end_is_passed_over(bombs: Path) -> None:
    """More of it than there is memory for, from a pipe, so that no file says how long it is."""
    code = "import sys\nfor _ in range(1500): sys.stdout.buffer.write(b'x' * 2**20)\n"
    code += "sys.stdout.buffer.write(b'\\n' + sys.argv[1].encode() + b'\\n')"
    good = json.dumps({"id": "good", "source": "cli"})
    with subprocess.Popen([sys.executable, "-c", code, good], stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        done = bring_in("-", endless.stdout.fileno())
        endless.stdout.close()
    assert done.returncode == 1
    assert "Line 1 was left out" in done.stderr
    with SessionDB() as db:
        assert db.get_session("good")
