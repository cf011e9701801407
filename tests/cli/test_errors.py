"""What the command line says no with: one sentence on stderr, nothing on stdout, a code that is not zero."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from homes import NewHome, database_of
from waiting import DEADLINE

from segue import SessionDB, __version__
from segue.cli import cli

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def pair(new_home: NewHome) -> Path:
    """A home with two conversations whose ids begin alike."""
    home = new_home("pair")
    with SessionDB(database_of(home)) as db:
        db.create_session("20250305_091523_a1b2c3d4", title="my project")
        db.create_session("20250305_104500_deadbeef", title="Résumé 語")
    return home


def one_sentence(result: subprocess.CompletedProcess[str]) -> str:
    """What a command said no with."""
    assert result.returncode != 0
    assert result.stdout == ""
    assert result.stderr.endswith((".\n", "?\n"))
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["sessions", "show", "nobody"], "'nobody'"),
        (["sessions", "show", "2025"], "20250305_104500_deadbeef"),
        (["sessions", "show", "\udcff"], "No session"),
        (["sessions", "rename", "nobody", "new"], "'nobody'"),
        (["sessions", "delete", "nobody", "--yes"], "'nobody'"),
        (["sessions", "delete", "2025", "--purge", "--yes"], "20250305_091523_a1b2c3d4"),
        (["sessions", "trash", "restore", "nobody"], "'nobody'"),
        (["sessions", "export", "-", "--session-id", "nobody"], "'nobody'"),
        (["lanes", "show", "nowhere"], "'nowhere'"),
        (["inbox", "show", "5"], "5"),
    ],
)
def test_what_cannot_be_done_has_the_code_1(run: Run, pair: Path, arguments: list[str], part: str) -> None:
    result = run(*arguments, SEGUE_HOME=str(pair))
    assert part in one_sentence(result)
    assert result.returncode == 1


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["sessions", "rename", "20250305_0", "Résumé", "語"], "20250305_104500_deadbeef"),
        (["sessions", "rename", "20250305_0", "x" * 101], "at most 100"),
        (["sessions", "export", "/nowhere/at/all.jsonl"], "/nowhere/at/all.jsonl"),
        (["sessions", "export", "/"], "/"),
        (["sessions", "export", ""], ""),
        (["sessions", "export", "-", "--source", "cli", "--session-id", "x"], "--source and --session-id"),
        (["sessions", "import", "/nowhere/at/all.jsonl"], "/nowhere/at/all.jsonl"),
        (["sessions", "list", "--active", "-5"], "--active"),
        (["sessions", "prune", "--older-than", "-5"], "--older-than"),
        (["sessions", "list", "--token-file", "/nowhere"], "--token-file"),
        (["lanes", "list", "--active", "nan"], "--active"),
        (["backup", "/"], "folder"),
        (["restore", "/nowhere/at/all.zip"], "/nowhere/at/all.zip"),
        (["batch", "run", "/nowhere/at/all.jsonl"], "/nowhere/at/all.jsonl"),
        (["cron", "add", "tea", "never", "Is there tea?"], "never"),
        (["db", "migrate", "--to", "mysql"], "postgresql://"),
        (["init", "--platform", "pigeon"], "pigeon"),
        (["insights", "--html", "page.html", "--json"], "--html and --json"),
        (["gateway", "call", "status", "--params", "{"], "--params"),
        (["pairing", "approve", "WRONG"], "code"),
        (["tokens", "add", "x" * 101], "name"),
        (["-q", " "], "empty"),
    ],
)
def test_what_cannot_be_taken_in_has_the_code_2(run: Run, pair: Path, arguments: list[str], part: str) -> None:
    result = run(*arguments, SEGUE_HOME=str(pair))
    assert part in one_sentence(result)
    assert result.returncode == 2


@pytest.mark.on_file
def test_settings_that_cannot_be_read_have_the_code_2(run: Run, home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text("modle: gpt\n", encoding="utf-8")
    for arguments in (["config", "check"], ["sessions", "list"], ["-q", "hello"]):
        result = run(*arguments)
        assert "did you mean model" in one_sentence(result)
        assert result.returncode == 2


@pytest.mark.on_file
def test_a_disk_that_is_full_has_the_code_1(run: Run, pair: Path) -> None:
    full = run("sessions", "export", "/dev/full", SEGUE_HOME=str(pair))
    assert "No space left" in one_sentence(full)
    assert full.returncode == 1


@pytest.mark.on_file
@pytest.mark.on_file
@pytest.mark.parametrize("yes", [[], ["--yes"]])
@pytest.mark.parametrize("command", [["sessions", "export"], ["backup"], ["insights", "--html"]])
def test_a_name_that_no_file_can_have_has_the_code_2(
    run: Run, pair: Path, tmp_path: Path, command: list[str], yes: list[str]
) -> None:
    (tmp_path / "circle.html").symlink_to(tmp_path / "circle.html")
    for name in (tmp_path / f"{'a' * 300}.html", tmp_path / "circle.html" / "page.html"):
        result = run(*command, str(name), *yes, SEGUE_HOME=str(pair))
        assert result.returncode == 2, result.stderr
        assert f"{name} could not be written: " in one_sentence(result)


@pytest.mark.on_file
def test_a_backup_is_not_written_to_stdout(run: Run, pair: Path) -> None:
    result = run("backup", "-", SEGUE_HOME=str(pair))
    assert result.returncode == 2
    assert "not an ordinary file" in one_sentence(result)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["nonsense"], "nonsense"),
        (["sessions", "nonsense"], "nonsense"),
        (["sessions", "list", "--nonsense"], "--nonsense"),
        (["sessions", "list", "--limit", "0"], "--limit"),
        (["sessions", "list", "--kind", "odd"], "automation"),
        (["sessions", "list", "--since", "tomorrow"], "'tomorrow' is no date"),
        (["sessions", "search", "tea", "--since", "2025-13-01"], "'2025-13-01' is no date"),
        (["sessions", "list", "extra"], "extra"),
        (["sessions", "show"], "ID"),
        (["sessions", "delete"], "ID"),
        (["sessions", "import", "-", "--on-conflict", "odd"], "replace"),
        (["-r", "", "-q", "hello"], "is empty"),
        (["-c", " ", "-q", "hello"], "is empty"),
        (["--branch", "-q", "hello"], "-c or -r"),
        (["-r", "--json", "-q", "hello"], "-r ID"),
        (["-c", "-r", "-q", "hello"], "one of them"),
    ],
)
def test_what_is_no_command_has_the_code_2(run: Run, pair: Path, arguments: list[str], part: str) -> None:
    result = run(*arguments, SEGUE_HOME=str(pair))
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    assert part in result.stderr


@pytest.mark.on_file
@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["sessions", "list", "--limit", "0"], ["sessions", "list", "--nonsense"]]
)
def test_what_is_no_command_is_said_in_one_sentence_after_the_usage(run: Run, pair: Path, arguments: list[str]) -> None:
    usage, sentence = run(*arguments, SEGUE_HOME=str(pair)).stderr.splitlines()
    assert usage.startswith("Usage: ")
    assert sentence.startswith("segue: ")
    assert arguments[-1] in sentence
    assert sentence.endswith((".", "?"))


@pytest.mark.on_file
def test_a_file_that_is_not_there_is_said_in_one_sentence(run: Run, pair: Path, tmp_path: Path) -> None:
    assert f"{tmp_path}/none.jsonl" in one_sentence(run("sessions", "import", f"{tmp_path}/none.jsonl"))
    assert str(tmp_path) in one_sentence(run("sessions", "import", str(tmp_path)))


@pytest.mark.parametrize(
    "arguments",
    [
        ["sessions", "list", "--limit", "99999999999999999999"],
        ["sessions", "list", "--active", "nan"],
        ["sessions", "list", "--active", "1e308"],
        ["sessions", "list", "--since", "0001-01-01"],
        ["sessions", "list", "--source", "\udcff"],
        ["sessions", "list", "--tag", "\udcff", "--agent", "\udcff"],
        ["sessions", "show", "my project", "--around", "99999999999999999999"],
        ["sessions", "trash", "empty", "--older-than", "nan", "--dry-run"],
        ["sessions", "trash", "restore", "\udcff"],
        ["sessions", "export", "-", "--source", "\udcff"],
        ["sessions", "export", "/nowhere/\udcff"],
        ["sessions", "import", "/nowhere/\udcff"],
    ],
)
def test_nothing_that_can_be_typed_ends_in_a_traceback(run: Run, pair: Path, arguments: list[str]) -> None:
    assert "Traceback" not in run(*arguments, SEGUE_HOME=str(pair)).stderr


@pytest.mark.on_file
@pytest.mark.parametrize("minutes", ["-5", "nan"])
def test_a_span_that_no_clock_knows_is_an_error(run: Run, pair: Path, minutes: str) -> None:
    result = run("sessions", "list", f"--active={minutes}", SEGUE_HOME=str(pair))
    assert result.returncode != 0
    assert "--active" in result.stderr


@pytest.mark.on_file
def test_a_file_that_is_no_database_is_left_alone(run: Run, home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "state.db").write_text("Dear diary, this is no database at all. " * 100, encoding="utf-8")
    for command in (["list"], ["import", "-"]):
        assert str(home / "state.db") in one_sentence(run("sessions", *command, stdin=""))
    assert (home / "state.db").read_text(encoding="utf-8").startswith("Dear diary")


@pytest.mark.on_file
def test_another_program_s_database_is_left_alone(run: Run, home: Path) -> None:
    home.mkdir(mode=0o700)
    with sqlite3.connect(home / "state.db") as theirs:
        theirs.execute("CREATE TABLE sessions (id TEXT)")
    theirs.close()
    before = (home / "state.db").read_bytes()
    for command in (["list"], ["stats"]):
        assert "another program" in one_sentence(run("sessions", *command))
    assert (home / "state.db").read_bytes() == before


@pytest.mark.on_file
def test_a_reader_that_stops_early_is_no_error_to_hear_about(pair: Path) -> None:
    environment = os.environ | {"SEGUE_HOME": str(pair), "PYTHONIOENCODING": "utf-8"}
    for command in (["sessions", "list"], ["sessions", "export", "-"], ["sessions", "show", "my project"]):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            arguments = [sys.executable, "-m", "segue", *command]
            stopped = subprocess.run(
                arguments, stdout=writing, stderr=subprocess.PIPE, env=environment, timeout=DEADLINE
            )
        finally:
            os.close(writing)
        assert stopped.stderr == b""


@pytest.mark.on_file
@pytest.mark.parametrize("command", [["list"], ["show", "Résumé 語"], ["list", "--json"]])
def test_a_terminal_that_knows_few_characters_is_no_reason_to_fail(pair: Path, command: list[str]) -> None:
    environment = os.environ | {"SEGUE_HOME": str(pair), "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    arguments = [sys.executable, "-m", "segue", "sessions", *command]
    result = subprocess.run(arguments, capture_output=True, env=environment, timeout=DEADLINE)
    assert b"Traceback" not in result.stderr
    assert result.returncode == 0
    assert b"20250305_104500_deadbeef" in result.stdout


@pytest.mark.on_file
@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_said(run: Run, option: str) -> None:
    result = run(option)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"segue {__version__}\n", "")


# Help

OPTIONS = {
    "": "--version --help",
    "config": "--help",
    "config check": "--help",
    "config path": "--help",
    "config show": "--json --help",
    "init": "--help",
    "sessions": "--help",
    "sessions delete": "--purge --yes --dry-run --help",
    "sessions export": "--source --session-id --help",
    "sessions import": "--on-conflict --dry-run --json --help",
    "sessions list": "--source --limit --active --since --archived --kind --tag --agent --all --json --help",
    "sessions rename": "--help",
    "sessions show": "--around --raw --json --help",
    "sessions stats": "--json --help",
    "sessions trash": "--help",
    "sessions trash empty": "--older-than --yes --dry-run --help",
    "sessions trash list": "--json --help",
    "sessions trash restore": "--help",
    "status": "--json --help",
}


def commands(at: click.Command, context: click.Context, path: str = "") -> Iterator[tuple[str, click.Command, str]]:
    """Every command with the words that call it and its help."""
    yield path, at, at.get_help(context)
    if isinstance(at, click.Group):
        for name in at.list_commands(context):
            below = at.get_command(context, name)
            assert below is not None
            inner = click.Context(below, parent=context, info_name=name)
            yield from commands(below, inner, f"{path} {name}".strip())


COMMANDS = {path: (command, text) for path, command, text in commands(cli, click.Context(cli, info_name="segue"))}


def test_every_command_has_the_options_it_should() -> None:
    found = {path: {name for one in command.params for name in one.opts} for path, (command, _) in COMMANDS.items()}
    missing = {path: set(options.split()) - {"--help"} - found.get(path, set()) for path, options in OPTIONS.items()}
    assert {path: options for path, options in missing.items() if options} == {}


@pytest.mark.parametrize("path", COMMANDS)
def test_help_mentions_every_option_and_says_what_it_does(path: str) -> None:
    command, text = COMMANDS[path]
    assert command.help
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.name
            assert all(name in text for name in option.opts)
        else:
            assert option.make_metavar(click.Context(command)) in text


@pytest.mark.on_file
@pytest.mark.parametrize("path", ["", "sessions list", "sessions trash empty"])
def test_help_is_printed_on_stdout(run: Run, path: str) -> None:
    for option in ("--help", "-h"):
        result = run(*path.split(), option)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith("Usage: ")
        assert all(name in result.stdout for name in OPTIONS[path].split())


@pytest.mark.on_file
def test_a_group_lists_its_commands_with_a_line_about_each(run: Run) -> None:
    shown = run("sessions", "--help").stdout
    for name in ("list", "show", "rename", "delete", "trash", "export", "import", "stats"):
        assert any(line.split()[:1] in ([name], [f"{name},"]) and line.endswith(".") for line in shown.splitlines())


@pytest.mark.on_file
def test_help_needs_no_home(run: Run, home: Path) -> None:
    home.write_text("no folder", encoding="utf-8")
    assert run("sessions", "list", "--help").returncode == 0
    assert run("--version").returncode == 0
