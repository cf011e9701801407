"""The platform on the page works: it is installed and connected as the page says, and does as every adapter does."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import ROOT, blocks, file_shown_in
from fork_server import ForkServer
from page_reader import Reader
from waiting import DEADLINE

from segue.core.errors import InvalidSettings
from segue.ports.platform import Arriving, Equipment, Intake, Platform, SendFailed, Traits, Units
from segue.testing.kit import CASES

PAGE = ROOT / "docs" / "platforms" / "write-your-own.md"
PACKAGE = "segue-parlour"
FILES = ("parlour.py", "pyproject.toml", "segue_parlour.py", "test_parlour.py")
OTHER_SETTINGS = "gateway: {port: 0}\nqueue: {debounce: 0}\n"
NUMBER = re.compile(r"\d{10,}")
PYTEST = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"

needs_tools = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("openssl")), reason="curl or openssl is not installed"
)


def package_in(folder: Path) -> Path:
    """The files of the page, where its reader puts them."""
    package = folder / PACKAGE
    package.mkdir()
    for name in FILES:
        (package / name).write_text(file_shown_in(PAGE, name), "utf-8")
    return package


def typed() -> list[str]:
    """The lines of the page that need no network, block by block."""
    return [block for block in blocks(PAGE, "sh") if " pip " not in block and "pytest" not in block]


def dialogue() -> list[tuple[str, str]]:
    """What is typed after a prompt, and what is said to that."""
    parts = re.split(r"^\$ (.*)\n", "".join(blocks(PAGE, "console")), flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture(scope="module")
def programs() -> Iterator[ForkServer]:
    running = ForkServer("pytest", "_pytest.assertion.rewrite", "httpx2", "starlette.applications", "uvicorn")
    yield running
    running.close()


def kit(programs: ForkServer, package: Path, *chosen: str) -> "subprocess.CompletedProcess[str]":
    warnings = (
        "-W",
        "error",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    )  # of what is loaded before pytest runs
    arguments = ("-q", "-p", "no:cacheprovider", *warnings, *chosen, PACKAGE)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return programs.run(PYTEST, *arguments, cwd=package.parent, env=environment, timeout=DEADLINE)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path, "8790", file_shown_in(PAGE, "config.yaml") + OTHER_SETTINGS)
    reader.install(package_in(tmp_path))
    yield reader
    reader.stop()


@needs_tools
def test_whoever_follows_the_page_is_answered_in_their_chat(reader: Reader) -> None:
    (block,) = typed()
    log = reader.begin(block)
    for line, answer in dialogue():
        said = reader.say(line, until=answer.splitlines()[-1] if "segue:" in answer else "")
        assert NUMBER.sub("…", said) == NUMBER.sub("…", answer), log.read_text()
    assert reader.say("segue status --json", until='"platform":"parlour","account":"","state":"connected"')


@needs_tools
def test_what_is_said_while_no_gateway_runs_is_answered_by_the_next_one(reader: Reader) -> None:
    (block,) = typed()
    *_, chat, gateway = block.strip().splitlines()
    (say, _), (read, answer) = dialogue()
    token = "export PARLOUR_TOKEN=0123456789abcdef\n"
    reader.begin(token + chat)
    reader.say(say)
    reader.begin(token + gateway)
    assert reader.say(read, until=answer.splitlines()[-1]) == answer


def test_a_token_that_is_wrong_is_told_in_a_sentence(reader: Reader) -> None:
    (block,) = typed()
    *_, chat, gateway = block.strip().splitlines()
    reader.begin(f"export PARLOUR_TOKEN=0123456789abcdef\n{chat}")
    log = reader.begin(f"export PARLOUR_TOKEN=another-one\n{gateway}")
    reader.say("cat log", until="parlour is not connected: Parlour does not know the token")
    assert "another-one" not in log.read_text()


def test_the_adapter_of_the_page_passes_the_kit(programs: ForkServer, tmp_path: Path) -> None:
    done = kit(programs, package_in(tmp_path))
    cannot = len(re.findall(r'^        "[a-z ]+": "', file_shown_in(PAGE, "test_parlour.py"), re.MULTILINE))
    assert done.returncode == 0, done.stdout
    assert f"{len(CASES) - cannot} passed" in done.stdout


@pytest.mark.parametrize(
    ("written", "wrong", "case"),
    [
        ('raise SendUnknown("The connection', 'raise SendLater("The connection', "lost-after-sending"),
        ('"key": post.key', '"key": ""', "killed-between-pieces"),
        ('event["version"] == 1', 'event["version"]', "edited"),
        ('message_id=event["id"]', 'message_id=str(event["number"])', "redelivered-as-new"),
        ('float(answer.headers.get("Retry-After", 1))', "None", "busy"),
        ("await intake.withdraw(source_of(event)", "(source_of(event)", "deleted"),
        ("intake.connected()", "intake", "sent"),
        (' if is_sound(event) else "odd"', "", "odd-event"),
        (" and await intake.is_heard(said.source, is_mention=said.is_mention)", "", "file-of-nobody"),
    ],
)
def test_an_adapter_with_a_mistake_does_not_pass(
    programs: ForkServer, tmp_path: Path, written: str, wrong: str, case: str
) -> None:
    adapter = package_in(tmp_path) / "segue_parlour.py"
    text = adapter.read_text("utf-8")
    assert text.count(written) == 1
    adapter.write_text(text.replace(written, wrong), "utf-8")
    counterpart = adapter.with_name("test_parlour.py")
    counterpart.write_text(counterpart.read_text("utf-8").replace("1.0, 20.0", "1.0, 2.0"), "utf-8")
    done = kit(programs, adapter.parent, "-k", f"every_adapter_does[{case}]")
    assert "1 failed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"token": "x"}, "platforms.parlour.url is missing"),
        ({"url": "http://localhost", "token": ""}, "platforms.parlour.token is missing"),
        ({"url": "http://localhost", "token": "x", "colour": 1}, "platforms.parlour has the unknown key 'colour'"),
    ],
)
def test_its_settings_are_read_strictly_and_tell_no_secret(own: dict[str, object], says: str) -> None:
    names: dict[str, object] = {"__name__": "segue_parlour"}
    exec(compile(file_shown_in(PAGE, "segue_parlour.py"), str(PAGE), "exec"), names)
    read_settings = names["read_settings"]
    assert callable(read_settings)
    assert "s3cret" not in repr(read_settings({"url": "http://localhost", "token": "s3cret"}))
    with pytest.raises(InvalidSettings, match=re.escape(says)):
        read_settings(own)


def test_the_page_tells_of_the_whole_port() -> None:
    rows = "\n".join(line.partition("| ")[2] for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `"))
    methods = [name for port in (Platform, Intake) for name in vars(port) if not name.startswith("_")]
    failures = [
        failure.__name__ for failure in SendFailed.__subclasses__() if failure.__module__ == "segue.ports.platform"
    ]
    assert [name for name in methods if not re.search(rf"^`(await )?{name}\(", rows, re.MULTILINE)] == []
    assert [name for name in failures if f"`{name}(" not in rows] == []
    assert [name for name in (*Traits._fields, *Equipment._fields) if f"`{name}`" not in rows] == []
    assert [one for one in (*Arriving, *Units) if f"`{one}`" not in rows] == []
