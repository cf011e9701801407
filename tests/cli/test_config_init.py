"""`segue config` and `segue init`: what is in force, what is wrong with it, and a home for its owner alone."""

import json
import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.on_file

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def careless() -> Iterator[None]:
    """A umask that hides nothing from anybody."""
    before = os.umask(0)
    yield
    os.umask(before)


def write_config(home: Path, text: str) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.yaml").write_text(text, encoding="utf-8")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def one_sentence(result: subprocess.CompletedProcess[str]) -> str:
    """What a command said no with."""
    assert result.returncode != 0
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.endswith((".\n", "?\n"))
    return result.stderr


# segue config


def test_the_settings_in_force_are_shown_with_their_defaults(run: Run, home: Path) -> None:
    write_config(home, "session:\n  reset:\n    mode: idle\n    idle_minutes: 5\nowners: ['telegram:7']\n")
    values = json.loads(run("config", "show", "--json").stdout)
    assert values["session"]["reset"]["mode"] == "idle"
    assert values["session"]["reset"]["idle_minutes"] == 5
    assert values["session"]["dm_scope"] == "per-channel-peer"
    assert values["retention"]["trash_days"] == 7
    assert values["owners"] == ["telegram:7"]


def test_what_is_shown_could_stand_in_the_file(run: Run, home: Path) -> None:
    write_config(home, "session: {reset: {mode: daily}, identity_links: {alice: ['telegram:7', 'discord:8']}}\n")
    shown = run("config", "show")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert yaml.safe_load(shown.stdout) == json.loads(run("config", "show", "--json").stdout)
    write_config(home, shown.stdout)
    assert run("config", "show").stdout == shown.stdout


@pytest.mark.parametrize("text", [None, "database: sqlite\n", "database: nonsense\n", "not: [yaml\n"])
def test_the_path_is_said_even_when_the_file_is_missing_or_wrong(run: Run, home: Path, text: str | None) -> None:
    if text is not None:
        write_config(home, text)
    result = run("config", "path")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{home}/config.yaml\n", "")


def test_without_a_file_the_defaults_are_in_order(run: Run, home: Path) -> None:
    result = run("config", "check")
    assert (result.returncode, result.stderr) == (0, "")
    assert "defaults" in result.stdout
    assert not home.exists()


def test_a_good_file_is_in_order(run: Run, home: Path) -> None:
    write_config(home, "retention: {trash_days: '${DAYS:-3}'}\n")
    result = run("config", "check")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{home}/config.yaml is in order.\n"


def test_what_can_be_read_and_cannot_work_is_named(run: Run, home: Path) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.yaml").write_text("model: groq/some-model\nagent: {entry: 'no_such_module:answer'}\n")
    result = run("config", "check")
    assert result.returncode == 1
    said = result.stderr.splitlines()
    assert said[0].startswith(
        "agent.entry is no_such_module:answer, and there is no module no_such_module: put it into"
    )
    assert said[1].startswith("model is groq/some-model: There is no key for groq, so")
    assert said[2].endswith("can be read, but 2 things in it cannot work.")


def test_names_of_other_programs_are_reported(run: Run, home: Path) -> None:
    write_config(
        home,
        "session_reset: {mode: idle}\n"
        "platforms: {telegram: {session_reset: {mode: none}}}\n"
        "session: {dmScope: main, resetByType: {group: {idleMinutes: 9}}}\n",
    )
    result = run("config", "check")
    assert result.returncode == 0
    said = result.stdout + result.stderr
    for alias, name in [
        ("session_reset", "session.reset"),
        ("platforms.telegram.session_reset", "session.reset_by_platform.telegram"),
        ("session.dmScope", "session.dm_scope"),
        ("session.resetByType", "session.reset_by_type"),
    ]:
        assert f"{alias} is read as {name}." in said
    assert json.loads(run("config", "show", "--json").stdout)["session"]["dm_scope"] == "main"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("session: {reset: {mode: sometimes}}", ["session.reset.mode", "'sometimes'", "none, idle, daily or both"]),
        ("session: {reset: {at_hour: 24}}", ["session.reset.at_hour", "24", "0", "23"]),
        ("retention: {trash_days: soon}", ["retention.trash_days", "'soon'"]),
        ("group_sessions_per_user: maybe", ["group_sessions_per_user", "'maybe'", "true"]),
        ("owners: [alice]", ["owners[0]", "'alice'", "platform:id"]),
        ("database: mysql://u:hunter2@h/d", ["database", "sqlite"]),
        ("sesion: {}", ["sesion", "session"]),
        ("session: {reset: {hour: 4}}", ["session.reset.hour", "at_hour"]),
        ("session_reset: {mode: sometimes}", ["session_reset.mode", "'sometimes'", "daily"]),
        ("database: ${SURELY_NOT_SET}", ["database", "SURELY_NOT_SET"]),
        ("a: [", ["config.yaml", "line 1"]),
    ],
)
def test_what_is_wrong_is_one_sentence_with_key_value_and_what_is_allowed(
    run: Run, home: Path, text: str, parts: list[str]
) -> None:
    write_config(home, text)
    sentence = one_sentence(run("config", "check"))
    assert [part for part in parts if part not in sentence] == []
    assert "hunter2" not in sentence


@pytest.mark.parametrize("command", ["config show", "sessions list", "status", "init"])
def test_no_command_goes_on_with_settings_it_cannot_read(run: Run, home: Path, command: str) -> None:
    write_config(home, "session: {reset: {mode: sometimes}}")
    assert "session.reset.mode" in one_sentence(run(*command.split()))
    assert [file.name for file in home.iterdir()] == ["config.yaml"]


def test_it_is_told_where_everybody_may_speak(run: Run, home: Path) -> None:
    write_config(home, "access: {telegram: {dm: open, groups: ['*']}, matrix: {groups: ['!a']}}\n")
    told = run("config", "check").stdout
    assert "access.telegram.dm is open" in told
    assert 'access.telegram.groups has "*"' in told
    assert "access.matrix" not in told


# segue init


@pytest.mark.usefixtures("careless")
def test_a_home_is_made_for_its_owner_alone_and_once(run: Run, home: Path) -> None:
    result = run("init")
    assert (result.returncode, result.stderr) == (0, "")
    assert str(home) in result.stdout
    assert mode(home) == 0o700
    assert {file.name: oct(mode(file)) for file in home.iterdir()} == {"config.yaml": "0o600", "state.db": "0o600"}
    text = (home / "config.yaml").read_bytes()
    assert all(line.startswith(b"#") or not line.strip() for line in text.splitlines())
    assert run("config", "check").returncode == 0
    result = run("init")
    assert (result.returncode, result.stderr) == (0, "")
    assert (home / "config.yaml").read_bytes() == text


@pytest.mark.usefixtures("careless")
def test_everything_works_without_init_and_is_as_private(run: Run, home: Path) -> None:
    assert run("sessions", "import", "-", stdin='{"id":"a","source":"cli"}').returncode == 0
    assert mode(home) == 0o700
    assert {oct(mode(file)) for file in home.iterdir()} == {"0o600"}


def test_a_token_for_programs_is_made_once_and_shown_once(run: Run, home: Path) -> None:
    first = run("init").stdout
    token = re.search(r"segue_[0-9a-f]{8}_[0-9a-f]{64}", first)
    assert token is not None
    assert "segue_" not in run("init").stdout
    kept = json.loads(run("tokens", "list", "--json").stdout)
    assert [(one["name"], one["scope"], one["principal"]) for one in kept] == [("me", "write", "owner")]
    expires = run("tokens", "list").stdout.splitlines()[-1].split()[-1]
    assert expires == "never"
    run("tokens", "revoke", "me")
    run("tokens", "add", "other")
    assert "segue_" not in run("init").stdout


def test_a_changed_configuration_is_left_alone(run: Run, home: Path) -> None:
    write_config(home, "retention: {trash_days: 3}\n")
    result = run("init")
    assert result.returncode == 0
    assert (home / "config.yaml").read_text(encoding="utf-8") == "retention: {trash_days: 3}\n"
    assert "left alone" in result.stdout
    assert (home / "state.db").exists()


def test_a_home_that_others_could_read_is_closed_to_them(run: Run, home: Path) -> None:
    home.mkdir(mode=0o755)
    assert run("init").returncode == 0
    assert mode(home) == 0o700


@pytest.mark.parametrize("command", ["init", "sessions list"])
@pytest.mark.parametrize("filled", [False, True], ids=["empty", "in use"])
def test_a_home_behind_a_symbolic_link_is_refused(run: Run, home: Path, command: str, filled: bool) -> None:
    real = home.with_name("real")
    real.mkdir(mode=0o700)
    if filled:
        assert run("init", SEGUE_HOME=str(real)).returncode == 0
    before = sorted(real.iterdir())
    home.symlink_to(real)
    sentence = one_sentence(run(*command.split()))
    assert str(home) in sentence
    assert "symbolic link" in sentence
    assert sorted(real.iterdir()) == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("command", ["init", "sessions list"])
def test_a_home_of_somebody_else_is_refused(run: Run, home: Path, command: str) -> None:
    home.mkdir(mode=0o700)
    os.chown(home, 12345, 12345)
    sentence = one_sentence(run(*command.split()))
    assert str(home) in sentence
    assert "another user" in sentence
    assert list(home.iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_home_that_went_to_somebody_else_is_not_read_either(run: Run, home: Path) -> None:
    run("init")
    os.chown(home, 12345, 12345)
    assert "another user" in one_sentence(run("sessions", "list"))


def test_a_home_that_is_a_file_is_refused(run: Run, home: Path) -> None:
    home.write_text("mine", encoding="utf-8")
    assert str(home) in one_sentence(run("init"))
    assert home.read_text(encoding="utf-8") == "mine"
