"""The log of a gateway: no secret is in it and nothing that steers a terminal, in whatever form and place."""

import contextvars
import json
import logging
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway_process import House
from gateway_there import gateway_at
from secret_shapes import BASE64, URL_SAFE, drawn, key
from waiting import DEADLINE, wait_until

from segue.cli.log_lines import JsonFormatter, LineFormatter
from segue.cli.log_places import begin_log
from segue.config import settings_from
from segue.config.log_settings import LogFormat, LogLevel, LogSettings
from segue.core.errors import Invalid, InvalidSettings
from segue.core.text import printable
from segue.gateway.at_work import Work, at_work, find_work

pytestmark = pytest.mark.on_file

KEY = key("Anthropic key", "sk-ant-", URL_SAFE, 40).secret
WITHIN = drawn("a private key", BASE64, 48)
PEM = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{WITHIN}\n-----END RSA {'PRIVATE'} KEY-----"
HOSTILE = f"\x1b[2Jkey {KEY}\u202e\r\n\x9b31m{PEM}\x00"
WORK = Work("agent:main:scripted:dm:alice", "20260101_000000_abcdef01", "turn-1", "scripted", "main")


@pytest.fixture
def log() -> Iterator[None]:
    """Whatever logging was before, it is again."""
    root, hook = logging.getLogger(), threading.excepthook
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("segue").setLevel(logging.NOTSET)
    logging.captureWarnings(False)
    threading.excepthook = hook


def fail(text: str = KEY) -> None:
    raise ConnectionError(text)


def failed(text: str) -> logging.LogRecord:
    try:
        fail(text)
    except ConnectionError:
        information = sys.exc_info()
    return logging.LogRecord("segue.x", logging.ERROR, __file__, 1, "It says: %s", (text,), information)


@pytest.mark.parametrize("formatter", [LineFormatter(), JsonFormatter()])
def test_no_line_holds_a_secret_or_steers_a_terminal(formatter: logging.Formatter) -> None:
    line = formatter.format(failed(HOSTILE))
    assert printable(line) == line
    assert KEY not in line
    assert WITHIN not in line
    assert line.count("[redacted: Anthropic key]") == 2, "in the words and in the traceback"


def test_a_json_line_says_when_who_what_and_for_which_turn() -> None:
    record = failed("gone")
    plain: dict[str, Any] = json.loads(JsonFormatter().format(record))
    assert set(plain) == {"time", "level", "logger", "message", "exception"}
    assert (plain["level"], plain["logger"], plain["message"]) == ("error", "segue.x", "It says: gone")
    assert plain["time"].endswith("Z")
    assert plain["exception"].endswith("ConnectionError: gone")
    with at_work(WORK):
        line = JsonFormatter().format(record)
    told = json.loads(line)
    assert "\n" not in line
    assert (told["lane_key"], told["session_id"], told["turn_id"]) == WORK[:3]


def test_what_outlives_a_turn_is_nobodys() -> None:
    found = []
    with at_work(WORK):
        kept = contextvars.copy_context()
        found.append(find_work())
    found.append(kept.run(find_work))
    assert found == [WORK, None]


def test_a_sentence_that_is_filled_in_wrongly_is_still_told() -> None:
    record = logging.LogRecord("segue", logging.ERROR, __file__, 1, "%d of %d", ("one",), None)
    assert "%d of %d (and TypeError in place of what belongs there)" in LineFormatter().format(record)


def test_a_file_is_only_its_owners_and_is_opened_again_after_rotation(tmp_path: Path, log: None) -> None:
    file = tmp_path / "gateway.log"
    file.touch(0o644)
    begin_log(LogSettings(file="gateway.log"), tmp_path)
    logging.getLogger("segue.a").info("first")
    file.rename(tmp_path / "gateway.log.1")
    logging.getLogger("segue.a").info("second")
    assert (tmp_path / "gateway.log.1").read_text().endswith(" INFO first\n")
    assert file.read_text().endswith(" INFO second\n")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_file_that_cannot_be_made_again_breaks_nobody(
    tmp_path: Path, log: None, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    begin_log(LogSettings(file="logs/gateway.log"), tmp_path)
    folder.rename(tmp_path / "moved")
    logging.getLogger("segue.a").error("lost %s", KEY)
    told = capsys.readouterr().err
    assert "A line of segue.a could not be written to the log: FileNotFoundError" in told
    assert "lost" not in told
    folder.mkdir()
    logging.getLogger("segue.a").error("found")
    assert (folder / "gateway.log").read_text().endswith("found\n")


def test_libraries_warnings_and_threads_use_the_same_door(
    tmp_path: Path, log: None, capsys: pytest.CaptureFixture[str]
) -> None:
    own = logging.StreamHandler(sys.stderr)
    logging.getLogger("uvicorn.error").addHandler(own)
    begin_log(LogSettings(format=LogFormat.JSON, file="log"), tmp_path)
    logging.getLogger("uvicorn.error").error("key %s", KEY)
    logging.getLogger("httpx").info("POST https://api.example.org/?api_key=%s", KEY)
    logging.getLogger("httpx").warning("retry")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(f"old {KEY}", stacklevel=1)
    thread = threading.Thread(target=fail, name="some thread")
    thread.start()
    thread.join()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["logger"] for line in lines] == ["uvicorn.error", "httpx", "py.warnings", "segue.cli.log_places"]
    assert lines[-1]["message"] == "The thread some thread came to an end by an error."
    assert KEY not in (tmp_path / "log").read_text()
    assert capsys.readouterr().err == ""


def test_less_is_told_when_less_is_wanted(tmp_path: Path, log: None) -> None:
    begin_log(LogSettings(level=LogLevel.ERROR, file="log"), tmp_path)
    logging.getLogger("segue").warning("not this")
    logging.getLogger("segue").error("this")
    assert [line.rsplit(" ", 1)[1] for line in (tmp_path / "log").read_text().splitlines()] == ["this"]


def test_debug_shows_our_steps_and_of_libraries_no_more_than_info(tmp_path: Path, log: None) -> None:
    begin_log(LogSettings(level=LogLevel.DEBUG, file="log"), tmp_path)
    for name in ("segue.a", "some_library", "httpx"):
        logging.getLogger(name).debug("debug of %s", name)
        logging.getLogger(name).info("info of %s", name)
    told = [line.split(" ", 3)[3] for line in (tmp_path / "log").read_text().splitlines()]
    assert told == ["debug of segue.a", "info of segue.a", "info of some_library", "info of httpx"]
    begin_log(LogSettings(file="log"), tmp_path)
    logging.getLogger("segue.a").debug("not this")
    logging.getLogger("httpx").info("nor this")
    assert "this" not in (tmp_path / "log").read_text()


def test_a_place_that_cannot_be_written_is_said_at_once(tmp_path: Path, log: None) -> None:
    with pytest.raises(Invalid, match=r"logging\.file is .* cannot be written: No such file or directory"):
        begin_log(LogSettings(file="nowhere/log"), tmp_path)


@pytest.mark.parametrize(
    "said", [{"level": "loud"}, {"format": "xml"}, {"file": "logs/"}, {"file": "a\nb"}, {"colour": True}]
)
def test_settings_that_mean_nothing_are_refused(said: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings):
        settings_from({"logging": said}, tmp_path, {})


def test_a_path_is_in_the_home_unless_it_says_otherwise(tmp_path: Path) -> None:
    assert LogSettings().path_in(tmp_path) is None
    assert LogSettings(file="a/b.log").path_in(tmp_path) == tmp_path / "a" / "b.log"
    assert LogSettings(file="/var/log/segue.log").path_in(tmp_path) == Path("/var/log/segue.log")


def test_a_gateway_tells_what_it_does_where_and_as_the_settings_say(tmp_path: Path) -> None:
    house = House(tmp_path, logging={"format": "json", "file": "gateway.log"})
    file = house.home / "gateway.log"
    gateway = house.begin()
    try:
        wait_until(lambda: file.exists() and "Connecting to scripted" in file.read_text())
        gateway.send_signal(signal.SIGTERM)
        assert gateway.wait(DEADLINE) == 0
    finally:
        house.close()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {"time", "level", "logger", "message"} <= set.intersection(*(set(line) for line in lines))
    assert file.stat().st_mode & 0o777 == 0o600
    assert house.log.read_text() == f"What the gateway does is told in {file}.\n", "nothing else is told elsewhere"


def test_a_gateway_says_when_it_began_and_when_it_had_stopped(tmp_path: Path) -> None:
    with gateway_at(tmp_path / "home") as there:
        assert re.search(rf"Gateway started as process {there.process.pid} \(run \S+\)\n", there.log)
        assert "Gateway stop" not in there.log
    assert re.search(
        r"Gateway stopping \(\S+\): no turn is running\n(.*\n)*.*Gateway stopped after \d+\.\d s\n", there.log
    )
