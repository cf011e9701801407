"""Whatever goes wrong, no secret that was typed or stored is in the sentence about it, or in what is written down."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from secret_shapes import SHAPES, Shape
from waiting import DEADLINE

from segue import SessionDB
from segue.core.errors import Ambiguous, Invalid, SegueError, SessionNotFound, TitleTaken

pytestmark = pytest.mark.on_file
Run = Callable[..., subprocess.CompletedProcess[str]]

CRASH = """
import sys
from segue.cli import cli, main
@cli.command("crash")
def crash():
    secrets = TEXT
    raise RuntimeError(secrets)
sys.argv = ["segue", "crash"]
main()
"""


def together(shapes: list[Shape]) -> str:
    return "\n".join(f"{shape.before}{shape.secret}{shape.after}" for shape in shapes)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_no_error_says_a_secret(shape: Shape) -> None:
    text = f"{shape.before}{shape.secret}{shape.after}"
    for error in (
        SessionNotFound(text),
        Ambiguous(text, [text]),
        TitleTaken(text, "s1", "open"),
        Invalid(f"its title cannot be {text!r}"),
        SegueError(text),
    ):
        assert shape.secret not in str(error)
        assert shape.secret not in f"{error}"


def test_ids_and_paths_in_errors_stay_readable() -> None:
    sentence = "20250305_091523_a1b2c3d4 in /home/you/.segue/state.db was not found; try `segue sessions list`."
    assert str(SegueError(sentence)) == sentence


def test_no_command_line_says_a_secret_back(home: Path, run: Run) -> None:
    SessionDB().close()
    for shape in SHAPES[::6]:
        text = f"{shape.before}{shape.secret}{shape.after}".lstrip("-")
        for arguments in (["show", text], ["rename", text, "x"], ["list", "--kind", text], ["list", f"--{text}"]):
            done = run("sessions", *arguments)
            assert done.returncode != 0
            assert shape.secret not in done.stdout + done.stderr, arguments


def test_an_import_that_fails_says_no_secret(home: Path, run: Run, tmp_path: Path) -> None:
    lines = [{"id": "s", "source": "cli", "archived": f"{shape.before}{shape.secret}{shape.after}"} for shape in SHAPES]
    file = tmp_path / "bad.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    done = run("sessions", "import", str(file), "--json")
    assert done.returncode == 1
    errors = json.loads(done.stdout)["errors"]
    assert len(errors) == len(SHAPES)
    assert not [shape.name for shape, error in zip(SHAPES, errors, strict=True) if shape.secret in error]


def test_a_mistake_of_our_own_is_a_sentence_and_a_private_file_without_secrets(home: Path) -> None:
    script = CRASH.replace("TEXT", repr(together(SHAPES)))
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=os.environ | {"SEGUE_HOME": str(home)},
    )
    assert done.returncode == 70
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr
    (file,) = (home / "logs").iterdir()
    assert str(file) in done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    written = file.read_text()
    assert "RuntimeError" in written
    assert "Traceback" in written
    assert not [shape.name for shape in SHAPES if shape.secret in written + done.stderr]


def test_where_nothing_can_be_written_it_is_told_on_the_spot(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", CRASH.replace("TEXT", "'oh'")],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=os.environ | {"SEGUE_HOME": str(tmp_path / "file" / "home")},
    )
    assert done.returncode == 70
    assert "RuntimeError: oh" in done.stderr
