"""The documents are true: their examples run, their commands exist, their links lead somewhere."""

import doctest
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from documents import ROOT, blocks, file_shown_in
from waiting import DEADLINE

from segue import SessionDB, SessionStore
from segue.cli import cli
from segue.storage.schema import TABLES

Run = Callable[..., subprocess.CompletedProcess[str]]

README = ROOT / "README.md"
PYTHON = ROOT / "docs" / "python.md"
SESSIONS = ROOT / "docs" / "sessions.md"
CHAT = ROOT / "docs" / "chat.md"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

LINK = re.compile(r"\[[^\]]+\]\((?P<target>[^)\s]+)\)")
SHELL_SIGNS = frozenset("|&;<>()")
VARYING = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d|\d+\.\d MB|segue_[0-9a-f]{8}_\S+")
HOME = "/home/you/.segue"


class MarkdownParser(doctest.DocTestParser):
    """Finds examples in Markdown, where the end of a block is no output."""

    def parse(self, string: str, name: str = "<string>") -> list[str | doctest.Example]:
        return super().parse(re.sub(r"^```.*$", "", string, flags=re.MULTILINE), name)


def command_lines(document: Path) -> list[str]:
    """Every line that a reader would type: all of a `sh` block, those after a prompt of a `console` block."""
    typed = [line for block in blocks(document, "sh") for line in block.splitlines()]
    shown = [line for block in blocks(document, "console") for line in block.splitlines()]
    return typed + [line.removeprefix("$ ") for line in shown if line.startswith("$ ")]


def segue_calls(line: str) -> Iterator[list[str]]:
    """The arguments of each `segue` in a line, up to the next sign that means something to a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    calling, words = False, list[str]()
    for word in [*lexer, ";"]:
        if word and SHELL_SIGNS.issuperset(word):
            if calling:
                yield words
            calling, words = False, []
        elif calling:
            words.append(word)
        elif word in ("segue", "./scripts/segue"):
            calling = True


def refusal(words: list[str]) -> str | None:
    """Why the command line would not take these arguments; a file that is not there yet is no reason."""
    command: click.Command | None = cli
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        command = command.get_command(click.Context(command), rest.pop(0))
    if command is None:
        return "there is no such command"
    try:
        command.make_context("segue", rest)
    except click.exceptions.Exit:  # --help and --version
        return None
    except click.MissingParameter as error:
        return error.format_message()
    except click.BadParameter as error:
        is_file = error.param is not None and isinstance(error.param.type, click.Path)
        return None if is_file else error.format_message()
    except click.UsageError as error:
        return error.format_message()
    return None


def public_methods(of: type) -> list[str]:
    return [name for name, value in vars(of).items() if callable(value) and not name.startswith("_")]


def sections(document: Path, chapter: str) -> dict[str, str]:
    """The third-level sections of a chapter, by the method each is about."""
    text = document.read_text("utf-8").partition(f"\n## {chapter}\n")[2].partition("\n## ")[0]
    _, *parts = re.split(r"^### `(\w+)`$", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_examples_of_the_python_api_run(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(
        str(PYTHON),
        module_relative=False,
        optionflags=doctest.ELLIPSIS,
        parser=MarkdownParser(),
        encoding="utf-8",
    )
    assert result.attempted > len(public_methods(SessionDB)) + len(public_methods(SessionStore))
    assert result.failed == 0
    assert not home.exists(), "the page promises to touch nothing of the reader's"


@pytest.mark.parametrize("of", [SessionDB, SessionStore])
def test_every_public_method_has_a_section_with_an_example(of: type) -> None:
    found = sections(PYTHON, of.__name__)
    assert sorted(found) == sorted(public_methods(of))
    assert [name for name, text in found.items() if not re.search(rf"^(>>>|\.\.\.) .*\.{name}\(", text, re.M)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_command_that_is_shown_is_accepted(document: Path) -> None:
    calls = [words for line in command_lines(document) for words in segue_calls(line)]
    assert [(words, why) for words in calls if (why := refusal(words))] == []


def test_the_commands_of_the_readme_are_found() -> None:
    assert ["sessions", "rename", "Lisbon", "A", "week", "in", "Lisbon"] in [
        words for line in command_lines(README) for words in segue_calls(line)
    ]


@pytest.mark.parametrize(
    "line",
    [
        "segue nonsense",
        "segue sessions nonsense",
        "segue sessions list --nonsense",
        "segue sessions list --limit many",
        "segue sessions list surplus",
        "segue sessions show",
        "echo hello | segue sessions import",
        "SEGUE_HOME=/somewhere ./scripts/segue status --nonsense > file",
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line: str) -> None:
    assert [refusal(words) for words in segue_calls(line)] not in ([], [None])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_link_to_a_file_points_at_one(document: Path) -> None:
    targets = [link["target"].partition("#")[0] for link in LINK.finditer(document.read_text("utf-8"))]
    near = [target for target in targets if target and "://" not in target]
    assert [target for target in near if not (document.parent / target).exists()] == []


def test_the_readme_links_to_every_document() -> None:
    text = README.read_text("utf-8")
    linked = {(ROOT / link["target"]).resolve() for link in LINK.finditer(text)}
    assert {document for document in DOCUMENTS if document != README} <= linked


def test_the_tour_of_the_readme_prints_what_it_says(
    home: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("first.py").write_text(next(blocks(README, "python")), "utf-8")
    transcript = "".join(blocks(README, "console"))
    told: list[str] = []
    for line in transcript.splitlines():
        if not line.startswith("$ "):
            continue
        program, *words = shlex.split(line.removeprefix("$ "))
        done = run(*words, COLUMNS="120") if program == "segue" else python(*words)
        told += [line, *(done.stdout + done.stderr).replace(str(home), HOME).splitlines()]
    assert [VARYING.sub("…", line) for line in told] == [VARYING.sub("…", line) for line in transcript.splitlines()]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, encoding="utf-8", timeout=DEADLINE
    )


@pytest.mark.parametrize("number", range(len(list(blocks(README, "python")))))
def test_every_program_of_the_readme_runs(home: Path, number: int) -> None:
    done = python("-c", list(blocks(README, "python"))[number])
    assert (done.returncode, done.stderr) == (0, "")


def test_every_table_and_column_is_described() -> None:
    text = SESSIONS.read_text("utf-8")
    for table in TABLES:
        described = text.partition(f"\n### `{table.name}`\n")[2].partition("\n### ")[0]
        assert [column.name for column in table.columns if f"`{column.name}`" not in described] == [], table.name


def test_the_agent_of_the_chat_page_answers(run: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "shouting.py").write_text(file_shown_in(CHAT, "shouting.py"), "utf-8")
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text(file_shown_in(CHAT, "config.yaml"), "utf-8")
    done = run("-q", "good morning", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "You said 2 words. GOOD MORNING\n"), done.stderr
