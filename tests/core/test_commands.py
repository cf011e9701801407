"""Which messages are commands, and which only look like them."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.commands import COMMANDS, Command, Spec, Takes, Unknown, Where, find_spec, known, parse

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"
NAMES = [name for spec in known() for name in (spec.name, *spec.aliases)]
ANYTHING = st.text() | st.text("/@newtilsp \n\r\t#1")


def examples() -> list[str]:
    blocks = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [line.removeprefix("› ") for block in blocks for line in block.splitlines() if line.startswith("› ")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/new", Command("new")),
        ("/NEW", Command("new")),
        ("  /new \n", Command("new")),
        ("/new hello", Command("new", "hello")),
        ("/new  two spaces\n\nand lines\n", Command("new", " two spaces\n\nand lines\n")),
        ("/new\nhello", Command("new", "hello")),
        ("/new\r\nhello", Command("new", "hello")),
        ("/title A week in Lisbon", Command("title", "A week in Lisbon")),
        ("/title   ", Command("title")),
        ("/undo", Command("undo")),
        ("/undo  3 ", Command("undo", "3")),
        ("/think high", Command("think", "high")),
        ("/quit", Command("quit")),
        ("/exit", Command("quit")),
        ("/Exit\n", Command("quit")),
        # what only looks like one
        ("", None),
        ("hello", None),
        ("say /new", None),
        ("/", None),
        ("/ new", None),
        ("//new", None),
        ("/etc/hosts", None),
        ("/new/folder", None),
        ("/new, please", None),
        ("/foo-bar", None),
        ("/été", None),
        ("/stop the music", None),
        ("/status\nof the launch", None),
        ("/think about it", None),
        ("/undo the last change", None),
        ("/quit now", None),
        # nearly one
        ("/titel x", Unknown("titel", "title")),
        ("/RESUMÉ", None),
        ("/Sesions", Unknown("sesions", "sessions")),
        ("/exot", Unknown("exot", "exit")),
        ("/qqqq", Unknown("qqqq", None)),
        (" /titel x", None),
        ("/" + "a" * 33, None),
    ],
)
def test_a_command_is_the_whole_message(text: str, expected: Command | Unknown | None) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "bot", "expected"),
    [
        ("/title@mybot x", "mybot", Command("title", "x")),
        ("/title@MyBot x", "mybot", Command("title", "x")),
        ("/title@mybot", "@mybot", Command("title")),
        ("@mybot /title x", "mybot", Command("title", "x")),
        (" @MyBot:  /title x", "mybot", Command("title", "x")),
        ("@mybot, /titel x", "mybot", Unknown("titel", "title")),
        ("/title@another x", "mybot", None),
        ("@another /title x", "mybot", None),
        ("/title@mybot x", "", None),
        ("@ /title x", "", None),
        ("@mybot hello", "mybot", None),
        ("@mybot/title", "mybot", None),
        ("/title @mybot", "mybot", Command("title", "@mybot")),
    ],
)
def test_a_mention_of_us_is_removed(text: str, bot: str, expected: Command | Unknown | None) -> None:
    assert parse(text, bot=bot) == expected


def test_what_belongs_to_the_terminal_is_known_there_alone() -> None:
    assert parse("/quit", in_terminal=True) == Command("quit")
    assert isinstance(parse("/quit", in_terminal=False), Unknown)
    assert parse("/exi", in_terminal=False) != Unknown("exi", "exit")
    assert {spec.name for spec in known()} - {spec.name for spec in known(in_terminal=False)} == {"quit"}


@given(ANYTHING, st.sampled_from(["", "mybot", "@", "ti"]), st.booleans())
def test_any_text_is_something(text: str, bot: str, in_terminal: bool) -> None:
    found = parse(text, bot=bot, in_terminal=in_terminal)
    if isinstance(found, Command):
        assert parse(str(found), in_terminal=in_terminal) == found


@given(st.sampled_from(NAMES), ANYTHING, st.sampled_from([" ", "\n", "\t", "\r\n"]))
def test_a_command_that_is_printed_is_the_same_command(name: str, rest: str, gap: str) -> None:
    spec = find_spec(name)
    assert spec is not None
    found = parse(f"/{name.upper()}{gap}{rest}")
    if not rest.strip():
        assert found == Command(spec.name)
    elif spec.takes is Takes.TEXT:
        assert found == Command(spec.name, rest)
    elif spec.takes is Takes.WORD and len(rest.split()) == 1:
        assert found == Command(spec.name, rest.strip())
    else:
        assert found is None
    assert found is None or parse(str(found)) == found


def test_no_two_commands_have_a_name_in_common() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert all(re.fullmatch("[a-z]+", name) for name in NAMES)


@pytest.mark.parametrize("spec", COMMANDS, ids=lambda spec: spec.name)
def test_the_example_of_a_command_is_that_command(spec: Spec) -> None:
    found = parse(spec.example, in_terminal=spec.where is not Where.PLATFORMS)
    assert isinstance(found, Command)
    assert found.name == spec.name
    elsewhere = parse(spec.example, in_terminal=spec.where is Where.PLATFORMS)
    assert isinstance(elsewhere, Command) == (spec.where is Where.EVERYWHERE)


def _parsed(example: str) -> Command | Unknown | None:
    here, there = parse(example), parse(example, in_terminal=False)
    return here if isinstance(here, Command) else there


def test_the_page_has_a_section_and_an_example_of_every_command() -> None:
    text = PAGE.read_text("utf-8")
    assert re.findall(r"^### `/(\w+)", text, re.MULTILINE) == [spec.name for spec in COMMANDS]
    assert all(f"`{spec.shown}`" in text for spec in COMMANDS)
    assert all(f"`/{alias}`" in text for spec in COMMANDS for alias in spec.aliases)
    tried = [_parsed(example) for example in examples()]
    assert [one for one in tried if not isinstance(one, Command)] == []
    assert {one.name for one in tried if one} == {spec.name for spec in COMMANDS}
