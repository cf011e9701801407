"""The log of a gateway: a record is a line, whatever others put into it."""

import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gateway_process import LAUNCHER, SUPPORT
from secret_shapes import SHAPES
from serving_house import write_settings
from waiting import DEADLINE, wait_until

from segue.cli.log_lines import LineFormatter
from segue.core.text import printable

pytestmark = pytest.mark.on_file

HOSTILE = "Forbidden: \x1b]0;owned\x07\x1b[2Jchat\u202e \ud83d\r\n2026-01-01 00:00:00,000 INFO All is well."
RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ ")
PLATFORM = f"""
from segue.ports.platform import Arriving, Traits

class Rude:
    name, account, traits = "rude", "", Traits(Arriving.NON_REPLAY, longest=100)

    async def run(self, intake):
        raise ConnectionError({HOSTILE!r})

def connect(own):
    return Rude()
"""


def break_off() -> None:
    raise ConnectionError(HOSTILE)


def formatted(error: Exception | None = None, *, stack: str | None = None) -> list[str]:
    information = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("segue", logging.WARNING, __file__, 1, "It says: %s", (HOSTILE,), information)
    record.stack_info = stack
    text = LineFormatter().format(record)
    assert printable(text) == text
    return text.split("\n")


def test_a_record_is_one_line() -> None:
    [line] = formatted()
    assert RECORD.match(line)
    assert line.endswith(" WARNING It says: Forbidden: chat \ufffd 2026-01-01 00:00:00,000 INFO All is well.")


def test_a_traceback_stays_readable_and_none_of_its_lines_passes_for_a_record() -> None:
    with pytest.raises(ConnectionError) as raised:
        break_off()
    first, *below = formatted(raised.value, stack="Stack:\n  here")
    assert RECORD.match(first)
    assert below[0] == "    Traceback (most recent call last):"
    assert "      raise ConnectionError(HOSTILE)" in [line[2:] for line in below]
    assert below[-2:] == ["    Stack:", "      here"]
    assert all(line.startswith("    ") for line in below)


def test_no_shape_of_secret_is_in_a_record_or_a_traceback() -> None:
    for shape in SHAPES:
        said = f"Refused for {shape.before}{shape.secret}{shape.after} today"
        record = logging.LogRecord("segue", logging.WARNING, __file__, 1, "It says: %s", (said,), None)
        record.stack_info = said
        assert shape.secret not in LineFormatter().format(record), shape.name


def test_what_another_formatter_left_is_not_printed() -> None:
    record = logging.LogRecord("segue", logging.WARNING, __file__, 1, "Trouble.", (), None)
    record.exc_text = HOSTILE
    assert LineFormatter().format(record).endswith(" WARNING Trouble.")


def test_the_log_of_a_gateway_has_only_records(tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    (installed / "rude-1.dist-info").mkdir(parents=True)
    (installed / "rude-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: rude\nVersion: 1\n")
    (installed / "rude-1.dist-info" / "entry_points.txt").write_text("[segue.platforms]\nrude = rude:connect\n")
    (installed / "rude.py").write_text(PLATFORM)
    home = write_settings(tmp_path / "home", platforms={"rude": {}})
    path = os.pathsep.join([str(installed), str(SUPPORT), *sys.path])
    environment = os.environ | {"SEGUE_HOME": str(home), "OPENAI_API_KEY": "x", "PYTHONPATH": path}
    log = tmp_path / "log"
    with log.open("w") as file:
        command = [sys.executable, str(LAUNCHER), "gateway", "run"]
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stderr=file)
    try:
        wait_until(lambda: "rude is not connected" in log.read_text())
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE)
    finally:
        process.kill()
        process.wait()
    said = log.read_text()
    assert printable(said) == said
    assert all(RECORD.match(line) for line in said.splitlines())
