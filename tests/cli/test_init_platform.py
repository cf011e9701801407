"""`segue init` with a platform: asked in a terminal, and told by an option where nobody can be asked."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from terminal import Terminal

from segue.app.manifests import Manifest, Question, asking_manifests
from segue.cli.initialising import section

pytestmark = pytest.mark.on_file

Run = Callable[..., subprocess.CompletedProcess[str]]
TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0"


@pytest.fixture
def terminal(home: Path, tmp_path: Path) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    opened = Terminal(tmp_path, f"SEGUE_HOME={home}")
    yield opened
    opened.close()


def test_a_platform_is_asked_for_and_what_is_secret_is_not_shown(terminal: Terminal, home: Path) -> None:
    terminal.send(shlex.join([sys.executable, "-m", "segue", "init"]))
    terminal.until("Be reached on a platform, too?", "telegram")
    terminal.send("telegram")
    terminal.until("The token of your bot")
    terminal.send("no token")
    terminal.until("That cannot be right")
    terminal.send(TOKEN)
    terminal.until("Your own id on Telegram")
    terminal.send("@alice")
    terminal.wait(lambda screen: screen.count("That cannot be right") == 2)
    terminal.send("4711")
    screen = terminal.until("Next: `segue config check`, then `segue gateway run`.")
    assert TOKEN not in screen
    assert "but for what connects Telegram" in screen.replace("\n", "")
    said = yaml.safe_load((home / "config.yaml").read_text("utf-8"))
    assert said == {"platforms": {"telegram": {"token": TOKEN}}, "owners": ["telegram:4711"]}
    assert (home / "config.yaml").stat().st_mode & 0o777 == 0o600


def test_nobody_need_be_reached_anywhere(terminal: Terminal, home: Path) -> None:
    terminal.send(shlex.join([sys.executable, "-m", "segue", "init"]))
    terminal.until("Be reached on a platform, too?")
    terminal.press("Enter")
    terminal.until("Next: `segue` to talk")
    assert yaml.safe_load((home / "config.yaml").read_text("utf-8")) is None


def test_who_breaks_off_is_asked_again(terminal: Terminal, home: Path) -> None:
    for _ in range(2):
        terminal.send("clear; " + shlex.join([sys.executable, "-m", "segue", "init"]))
        terminal.until("Be reached on a platform, too?", without="Interrupted.")
        terminal.send("telegram")
        terminal.until("The token of your bot")
        terminal.press("C-c")
        terminal.until("Interrupted.")
    assert not (home / "config.yaml").exists()


def test_an_owner_who_is_nobody_there_is_named(run: Run, home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text("owners: ['telegram:@alice', 'telegram:4711', 'matrix:alice', 'irc:x']\n")
    done = run("config", "check")
    assert done.returncode == 1
    assert "owners names 'telegram:@alice', which is nobody's id there" in done.stderr
    assert "'matrix:alice'" in done.stderr
    assert "4711" not in done.stderr
    assert "irc" not in done.stderr


def test_where_nobody_can_be_asked_the_environment_is_named(run: Run, home: Path) -> None:
    done = run("init", "--platform", "telegram")
    assert done.returncode == 0, done.stderr
    assert "needs the environment variable TELEGRAM_BOT_TOKEN, which is not set" in done.stderr
    assert "segue pairing approve CODE --owner" in done.stdout
    text = (home / "config.yaml").read_text("utf-8")
    assert text.endswith("platforms:\n  telegram:\n    token: ${TELEGRAM_BOT_TOKEN}\n")
    assert run("config", "check", TELEGRAM_BOT_TOKEN=TOKEN).returncode == 0


def test_into_a_file_that_is_there_nothing_is_written(run: Run, home: Path) -> None:
    assert run("init").returncode == 0
    before = (home / "config.yaml").read_bytes()
    done = run("init", "--platform", "telegram")
    assert "Add this to" in done.stdout
    assert "    token: ${TELEGRAM_BOT_TOKEN}\n" in done.stdout
    assert (home / "config.yaml").read_bytes() == before


def test_a_platform_that_there_is_not_is_refused_before_anything_is_made(run: Run, home: Path) -> None:
    done = run("init", "--platform", "pigeon")
    assert done.returncode == 2
    assert "--platform takes " in done.stderr
    assert "telegram" in done.stderr
    assert not home.exists()


@pytest.mark.parametrize("answer", ["plain", 'with "quotes"', "${HOME}", "a: b # c", "line\nbreak", "'", "\\"])
def test_whatever_is_answered_stands_in_the_file_as_it_is(answer: str) -> None:
    manifest = Manifest("signal", "Signal", "signal", (Question("key", "Key?", "KEY"),))
    said = yaml.safe_load("\n".join(section(manifest, {"key": answer}, 'you"')))
    assert said["platforms"]["signal"]["key"].replace("$${", "${") == answer
    assert said["owners"] == ['signal:you"']


def test_every_question_has_an_answer_in_the_settings() -> None:
    assert {one.name for one in asking_manifests()} >= {"telegram"}
    for one in asking_manifests():
        assert one.you
        assert all(ask.variable.isupper() and ask.question for ask in one.asks)
