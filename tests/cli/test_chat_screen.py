"""What a chat shows: blocks of Markdown as they become certain, tools, failures, the recap and the last line."""

import io
import os
import re

import pytest
from growth import costs
from hypothesis import example, given
from hypothesis import strategies as st

from segue.cli.chatting.blocks import Block, Blocks, Kind
from segue.cli.chatting.farewell import farewell
from segue.cli.chatting.indicator import Indicator
from segue.cli.chatting.lines import duration
from segue.cli.chatting.paper import Paper
from segue.cli.chatting.piping import Pipe
from segue.cli.chatting.recap_panel import recap_line, recap_panel
from segue.cli.chatting.screen import Screen
from segue.cli.chatting.typesetting import Typesetter
from segue.core.events import (
    CarryOn,
    Done,
    Event,
    Failed,
    ModelCalled,
    Note,
    Reasoning,
    Reply,
    Steered,
    Text,
    ToolCall,
    ToolFinished,
    ToolStarted,
)
from segue.core.preferences import Verbosity
from segue.core.recap import Line, Recap, Voice

pytestmark = pytest.mark.on_file

HOSTILE = (
    "\x1b[31mred \x1b]0;owned\x07 \x1b]52;c;b3du\x07 \x1bPq\x1b\\ \x9b31m \x9d0;owned\x9c \x85 \x00 \x07 \x08 \x7f \r"
    " \u202egnp.exe \u2066iso\u2069 \u200f \U000e0041 &#27;[2J &#x9b;31m &#x202e;gnp &#x200f; [a](<\x1b]8;;x\x07>)"
)
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PIECES = (
    *("- ", "1. ", "3) ", "> ", "# ", "```", "````", "~~~", "```py\n", "|", "|-|-|\n", "---", "===", "    ", "  "),
    *("\n", "\n", "\n\n", "\t", "**", "_", "`", "[", "](", ")", "<b>", "&lt;", "\r\n", "\\", "![", "葱", "👩‍👩‍👧"),
    *("word ", "x", "1", "*"),
)
MARKDOWN = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


class Terminal(io.StringIO):
    """A place that says it is one."""

    def isatty(self) -> bool:
        return True


class Watch:
    """A clock that stands still until somebody moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def kinds(text: str) -> list[tuple[Kind, str]]:
    blocks = Blocks()
    found = blocks.add(text)
    return [(block.kind, block.text) for block in [*found, *blocks.finish()]]


# Blocks


@given(st.lists(MARKDOWN))
@example(["```", "py\na", "\n``", "`\nb"])
def test_the_blocks_and_the_rest_are_the_text_at_every_moment(pieces: list[str]) -> None:
    blocks, given_out, text = Blocks(), "", ""
    for piece in pieces:
        text += piece
        given_out += "".join(block.text for block in blocks.add(piece))
        assert given_out + blocks.rest() == text
    given_out += "".join(block.text for block in blocks.finish())
    assert (given_out, blocks.rest()) == (text, "")


@given(MARKDOWN, st.integers(1, 7))
def test_how_a_text_is_cut_up_on_its_way_changes_nothing(text: str, size: int) -> None:
    def laid_out(step: int) -> str:
        blocks, typesetter = Blocks(), Typesetter(plain_paper())
        found = [block for at in range(0, len(text), step) for block in blocks.add(text[at : at + step])]
        return "".join(map(typesetter.set, [*found, *blocks.finish()]))

    assert laid_out(size) == laid_out(max(len(text), 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One\ntwo\n\nThree\n", ["words:One\ntwo\n", "blank:\n", "words:Three\n"]),
        ("One\n- a\n  - b\n- c\n", ["words:One\n", "item:- a\n  - b\n", "item:- c\n"]),
        ("- a\n\n  more\n", ["item:- a\n", "blank:\n", "words:  more\n"]),
        ("In\n1986. A year\n", ["words:In\n1986. A year\n"]),
        ("Title\n---\ntext", ["words:Title\n---\n", "words:text"]),
        ("text\n\n---\n", ["words:text\n", "blank:\n", "words:---\n"]),
        ("# A\ntext\n## B\n", ["words:# A\n", "words:text\n", "words:## B\n"]),
        ("| a |\n|---|\n| b |\n\n", ["words:| a |\n|---|\n| b |\n", "blank:\n"]),
        ("> a\nlazy\n\nb", ["words:> a\nlazy\n", "blank:\n", "words:b"]),
        ("a\n> b\n", ["words:a\n", "words:> b\n"]),
        ("```py\na\n\nb\n```\nc", ["fence:```py\n", "code:a\n\nb\n", "end:```\n", "words:c"]),
        ("````\n```\na\n```\n````\n", ["fence:````\n", "code:```\na\n```\n", "end:````\n"]),
        ("~~~\n```\n~~~~\n", ["fence:~~~\n", "code:```\n", "end:~~~~\n"]),
        ("```a`b\n", ["words:```a`b\n"]),
        (
            "1. a\n   ```\n   x\n   ```\n2. b",
            ["item:1. a\n", "fence:   ```\n", "code:   x\n", "end:   ```\n", "item:2. b"],
        ),
        ("```\nnever closed", ["fence:```\n", "code:never closed", "end:"]),
    ],
)
def test_where_blocks_end(text: str, expected: list[str]) -> None:
    assert [f"{kind}:{words}" for kind, words in kinds(text)] == expected


def test_a_block_is_given_out_as_soon_as_it_is_certain() -> None:
    blocks = Blocks()
    assert blocks.add("A paragraph\nof two lines") == []
    assert blocks.add("\n") == []
    assert [block.text for block in blocks.add("\n")] == ["A paragraph\nof two lines\n", "\n"]
    assert blocks.add("- first\n") == []
    assert [block.text for block in blocks.add("- second\n")] == ["- first\n"]
    assert [block.text for block in blocks.add("# Heading\n")] == ["- second\n", "# Heading\n"]


def test_every_line_of_code_is_given_out_at_once() -> None:
    blocks = Blocks()
    blocks.add("```python\n")
    for number in range(10_000):
        assert blocks.add(f"line {number}") == []
        assert blocks.add("\n") == [Block(Kind.CODE, f"line {number}\n")]
    assert blocks.rest() == ""


def test_the_work_grows_with_the_text_and_not_faster() -> None:
    def add(text: str) -> None:
        blocks = Blocks()
        for character in text:
            blocks.add(character)
        blocks.finish()

    assert costs(add, lambda length: "x" * length, 160_000).is_linear


# Laying out


def plain_paper(columns: int = 80) -> Paper:
    return Paper(lambda: columns, is_terminal=True, has_colour=False)


def laid_out(text: str, columns: int = 80) -> str:
    blocks, typesetter = Blocks(), Typesetter(plain_paper(columns))
    return COLOUR.sub("", "".join(map(typesetter.set, [*blocks.add(text), *blocks.finish()])))


@given(MARKDOWN, st.sampled_from([10, 20, 40, 80]))
def test_any_markdown_can_be_laid_out_at_any_width_and_no_word_of_it_is_lost(text: str, columns: int) -> None:
    shown = laid_out(text, columns)
    assert not DANGEROUS.search(shown)
    if columns == 80:
        assert shown.count("word") >= text.replace("](", "").count("word") - len(re.findall(r"```[^\n]*word", text))


@pytest.mark.parametrize(
    "text",
    [
        "A Vec<String> and <details>hidden</details>",
        "<div>\nblock\n</div>",
        "[1]: https://example.org/docs\nMore about it.",
        "See [the docs][1].\n\n[1]: https://example.org/docs",
        "An image ![of soup](https://example.org/soup.png)",
        "| a | b |\n|---|---|\n| 1 | 2 | 3 |",
        "> " * 50 + "deep",
        "- " * 50 + "deep",
    ],
)
def test_what_rich_would_leave_out_is_shown(text: str) -> None:
    shown = laid_out(text).replace("\n", " ")
    for word in re.findall(r"https?://[\w./]+|\w+", text):
        assert word in shown or word == "3"


def test_the_address_of_a_link_is_seen_and_only_once() -> None:
    assert laid_out("[https://bank.example](https://evil.example)") == "https://bank.example (https://evil.example)\n"
    assert laid_out("<https://bank.example>") == "https://bank.example\n"


def test_lines_end_where_they_were_written_and_distances_are_kept() -> None:
    text = "\n\nRoses\nViolets\n\n\n\n- a\n- b\n\n- c\n1. x\n2. y\n\n# End\n\n"
    assert laid_out(text) == "Roses\nViolets\n\n • a\n • b\n\n • c\n 1 x\n 2 y\n\nEnd\n"


def test_code_is_neither_broken_nor_indented_nor_ended_with_spaces() -> None:
    code = "def soup():\n\treturn '" + "long " * 30 + "'"
    lines = laid_out(f"```python\n{code}\n```", 40).split("\n")
    assert lines == ["── python " + "─" * 30, *code.expandtabs(4).split("\n"), "─" * 40, ""]


def test_code_that_comes_line_by_line_is_coloured_like_code_that_comes_at_once() -> None:
    code = 'x = """one\ntwo def\nthree"""\ndef f() -> None:\n    pass\n'
    paper = Paper(lambda: 80, is_terminal=True, has_colour=True)
    at_once, by_line = Typesetter(paper), Typesetter(paper)
    fence = Block(Kind.FENCE, "```python\n", 0, "python")
    assert at_once.set(fence) == by_line.set(fence)
    lines = code.splitlines(keepends=True)
    assert at_once.set(Block(Kind.CODE, code)) == "".join(by_line.set(Block(Kind.CODE, line)) for line in lines)


def test_a_list_goes_on_after_code_where_it_was() -> None:
    text = "10. a\n    ```\n    x\n    ```\n    more words\n\n    - nested\n"
    rule = "    " + "─" * 36
    assert laid_out(text, 40) == f" 10 a\n{rule}\n    x\n{rule}\n    more words\n\n     • nested\n"


def test_wide_characters_are_counted_as_wide() -> None:
    shown = laid_out("| 葱 | b |\n|---|---|\n| 👩‍👩‍👧 | x |\n| 長い言葉 | y |\n\n" + "葱を切って鍋に入れます" * 8, 40)
    from rich.cells import cell_len

    assert max(map(cell_len, shown.split("\n"))) <= 40
    assert shown.count("葱") == 9


# A turn


def shown(*events: Event, columns: int = 80, verbosity: Verbosity = Verbosity.TOOLS, watch: Watch | None = None) -> str:
    out = Terminal()
    screen = Screen(out, verbosity=verbosity, columns=lambda: columns, clock=watch or Watch())
    screen.begin()
    for event in events:
        screen.show(event)
    return out.getvalue() if os.environ.get("TERM") == "dumb" else COLOUR.sub("", out.getvalue())


LS = ToolCall("1", "terminal", '{"command": "ls -la"}')
TURN = (
    ModelCalled("m", "p"),
    Reasoning("I think.\nTherefore"),
    Text("I look.\n\nNow"),
    Reply("I look.\n\nNow", (LS,)),
    ToolStarted(LS),
    ToolFinished(LS, "one\ntwo\n\nthree\n"),
    Note("Another model."),
    ModelCalled("m", "p"),
    Text("Done"),
    Text(" it."),
    Reply("Done it."),
    Done(),
)


def test_a_turn_as_it_is_seen() -> None:
    assert shown(*TURN) == (
        "\nI look.\n\nNow\n\n⚙ terminal  ls -la\n  ✓ 0.0 s  one (+2 lines)\nℹ Another model.\n\nDone it.\n\n"
    )


def test_thoughts_are_shown_only_when_all_is_wanted_and_tools_not_when_nothing_is() -> None:
    assert shown(*TURN, verbosity=Verbosity.ALL).startswith("\nI think.\nTherefore\n\nI look.")
    assert shown(*TURN, verbosity=Verbosity.OFF) == "\nI look.\n\nNow\n\nℹ Another model.\n\nDone it.\n\n"


def test_what_a_tool_says_is_shown_when_all_is_wanted_and_cut_when_it_is_long() -> None:
    few = shown(ToolStarted(LS), ToolFinished(LS, "one\ntwo\n[exit code 0]"), verbosity=Verbosity.ALL)
    assert few == "\n⚙ terminal  ls -la\n  ✓ 0.0 s  one (+1 line)\n    one\n    two\n"
    many = ToolFinished(LS, "\n".join(f"line {number}" for number in range(50)))
    lines = shown(ToolStarted(LS), many, verbosity=Verbosity.ALL).splitlines()
    assert lines[-2:] == ["    line 19", "    … 30 more lines"]
    assert "line 1\n" not in shown(ToolStarted(LS), many)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Failed("No model; set a key."), "✗ No model; set a key."),
        (Note("two\nlines"), "ℹ two lines"),
        (Steered("and leeks"), "↳ and leeks"),
        (CarryOn("s2"), "→ Going on in session s2."),
        (Done(was_stopped=True), "■ Stopped."),
        (ToolFinished(LS, "There is no such tool.", is_error=True), "✗ terminal There is no such tool."),
        (ToolFinished(LS, "  \n"), "✓ terminal nothing returned"),
        (ToolStarted(ToolCall("2", "search", '{"q": "soup", "n": 3}')), "⚙ search  q=soup, n=3"),
        (ToolStarted(ToolCall("2", "broken", '{"q": ')), '⚙ broken  {"q":'),
        (ToolStarted(ToolCall("2", "none")), "⚙ none"),
    ],
)
def test_what_happens_beside_the_answer_is_a_line(event: Event, line: str) -> None:
    assert shown(event).strip("\n") == line


def test_an_answer_that_was_never_streamed_is_shown_and_one_that_was_is_not_shown_again() -> None:
    assert shown(Reply("All at once."), Done()) == "\nAll at once.\n\n"
    assert shown(Text("In pieces."), Reply("In pieces."), Done()) == "\nIn pieces.\n\n"


def test_what_was_written_before_it_was_stopped_is_seen() -> None:
    assert shown(Text("Half a sen"), Done(was_stopped=True)) == "\nHalf a sen\n\n■ Stopped.\n\n"


def test_a_result_that_does_not_follow_its_tool_is_named_and_timed() -> None:
    watch, out = Watch(), Terminal()
    screen = Screen(out, columns=lambda: 80, clock=watch)
    other = ToolCall("2", "search")
    for event in (ToolStarted(LS), ToolStarted(other), ToolFinished(LS, "x"), ToolFinished(other, "y")):
        screen.show(event)
        watch.now += 61.4
    assert COLOUR.sub("", out.getvalue()).endswith("  ✓ terminal 2 min 3 s  x\n  ✓ search 2 min 3 s  y\n")


def test_long_arguments_and_results_are_cut_to_the_line() -> None:
    call = ToolCall("1", "terminal", '{"command": "' + "葱" * 5_000 + '"}')
    lines = shown(ToolStarted(call), ToolFinished(call, "長い" * 5_000 + "\nmore"), columns=40).strip("\n").split("\n")
    assert lines == ["⚙ terminal  " + "葱" * 13 + "…", "  ✓ 0.0 s  " + "長い" * 4 + "長… (+1 line)"]


def test_no_control_character_of_any_event_reaches_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")  # then every escape would be one of theirs
    call = ToolCall(HOSTILE, HOSTILE, HOSTILE)
    events: list[Event] = [Reasoning(HOSTILE), Text(HOSTILE), Text(f"\n```{HOSTILE}\n{HOSTILE}\n```\n- {HOSTILE}\n")]
    events += [Text(f"| {HOSTILE} |\n|-|\n"), ToolStarted(call), ToolFinished(call, HOSTILE), Note(HOSTILE)]
    events += [Failed(HOSTILE), Steered(HOSTILE), CarryOn(HOSTILE), Text("\x1b"), Text("[31m"), Done()]
    for columns in (20, 40, 80):
        seen = shown(*events, columns=columns, verbosity=Verbosity.ALL)
        assert not DANGEROUS.search(seen), DANGEROUS.search(seen)
    assert not DANGEROUS.search(farewell(HOSTILE, HOSTILE))
    recap = Recap(3, tuple(Line(voice, HOSTILE) for voice in Voice))
    assert not DANGEROUS.search(COLOUR.sub("", plain_paper().render(recap_panel(recap, HOSTILE, HOSTILE))))


def test_without_colours_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    screen = Screen(out, columns=lambda: 80)
    for event in (*TURN, Text("**bold** `code`\n```python\ndef f(): pass\n"), Failed("x")):
        screen.show(event)
    codes = {code for match in COLOUR.findall(out.getvalue()) for code in match[2:-1].split(";")}
    assert codes <= {"0", "1", "2", "3", "4"}


def test_a_dumb_terminal_gets_words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen(out, columns=lambda: 80)
    for event in (*TURN, Text("**bold**\n\n```python\ndef f(): pass\n```\n"), Failed("x"), Done()):
        screen.show(event)
    assert "\x1b" not in out.getvalue()


def test_a_pipe_gets_the_words_as_they_come_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    pipe = Pipe(out)
    pipe.begin()
    sizes = []
    for event in (*TURN, Failed("It went\x1b[31m wrong."), Done(was_stopped=True)):
        pipe.show(event)
        sizes.append(len(out.getvalue()))
    assert out.getvalue() == "I look.\n\nNow\nDone it.\n"
    assert sizes[2] == len("I look.\n\nNow")
    assert capsys.readouterr().err == "Another model.\nIt went wrong.\n"


# Waiting


def test_thoughts_that_are_not_wanted_are_not_seen_while_waiting_either() -> None:
    def waiting(verbosity: Verbosity) -> str:
        screen = Screen(Terminal(), verbosity=verbosity, columns=lambda: 80, clock=Watch())
        screen.begin()
        screen.show(Reasoning("secret thoughts"))
        return screen.waiting_line()[1:]

    assert waiting(Verbosity.TOOLS) == " thinking…"
    assert waiting(Verbosity.ALL) == " secret thoughts"


def test_the_indicator_shows_the_time_only_after_a_while() -> None:
    indicator = Indicator()
    assert indicator.line(0.0, 80) == ""
    indicator.wait("thinking", 10.0)
    assert indicator.line(12.9, 80)[1:] == " thinking…"
    assert indicator.line(14.2, 80)[1:] == " thinking… 4 s"
    assert indicator.line(210.0, 80)[1:] == " thinking… 3 min 20 s"
    indicator.stop()
    assert indicator.line(211.0, 80) == ""


@given(st.text(), st.integers(20, 120))
@example(HOSTILE, 40)
def test_the_indicator_shows_the_last_words_on_one_line(text: str, columns: int) -> None:
    from rich.cells import cell_len

    indicator = Indicator()
    indicator.wait("writing", 0.0)
    indicator.write("beginning " * 50)
    indicator.write(text)
    line = indicator.line(0.0, columns)
    assert not DANGEROUS.search(line)
    assert "\n" not in line
    indicator.write(" words at the end")
    line = indicator.line(0.0, columns)
    assert cell_len(line) < columns
    assert line.endswith("the end")


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.7, "1 min 0 s"), (200, "3 min 20 s")]
)
def test_durations_are_said_as_people_do(seconds: float, said: str) -> None:
    assert duration(seconds) == said


# Coming back, and leaving

RECAP = Recap(
    12,
    (
        Line(Voice.USER, "What goes with leeks?"),
        Line(Voice.ASSISTANT, "Potatoes, and cream.\nSecond line of it."),
        Line(Voice.TOOLS, "[3 tool calls: terminal, web_search]"),
        Line(Voice.USER, "葱のスープはどうですか。" * 3),
    ),
)


def test_the_recap_as_it_is_seen() -> None:
    panel = plain_paper(60).render(recap_panel(RECAP, "20250301_080000_soup", "Soup for Sunday"))
    assert COLOUR.sub("", panel) == (
        "╭─ Soup for Sunday ────────────────────────────────────────╮\n"
        "│                 … 12 earlier messages …                  │\n"
        "│ ● What goes with leeks?                                  │\n"
        "│ ◆ Potatoes, and cream.                                   │\n"
        "│   Second line of it.                                     │\n"
        "│   [3 tool calls: terminal, web_search]                   │\n"
        "│ ● 葱のスープはどうですか。葱のスープはどうですか。葱のス │\n"
        "│   ープはどうですか。                                     │\n"
        "╰─────────────────────────────────── 20250301_080000_soup ─╯\n"
    )


def test_the_signs_of_the_recap_have_their_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLORTERM", raising=False)
    panel = Paper(lambda: 60, is_terminal=True, has_colour=True).render(recap_panel(RECAP, "id", "t"))
    assert "\x1b[38;5;178m●" in panel
    assert "\x1b[32m◆" in panel
    assert "\x1b[2mWhat goes with leeks?" in panel


def test_the_recap_in_one_line() -> None:
    assert recap_line(RECAP, "s1", "Soup").plain == "Resumed Soup (s1): 2 exchanges, 12 earlier messages."
    assert recap_line(Recap(0, RECAP.lines[:1]), "s1").plain == "Resumed s1: 1 exchange."
    assert plain_paper(40).render(recap_line(RECAP, "s1", "Soup " * 20)).count("\n") == 1


def test_a_recap_of_nothing_says_so() -> None:
    assert "Nothing was said yet." in plain_paper(40).render(recap_panel(Recap(0, ()), "s1"))


@pytest.mark.parametrize(
    ("session_id", "title", "line"),
    [
        ("s1", None, "Resume with: segue -r s1"),
        ("s1", "Soup for Sunday", "Resume with: segue -r s1  (Soup for Sunday)"),
        ("of another; kind", None, "Resume with: segue -r 'of another; kind'"),
        ("s1", "two\nlines\x1b[2J", "Resume with: segue -r s1  (two lines)"),
    ],
)
def test_the_last_line_can_be_copied(session_id: str, title: str | None, line: str) -> None:
    assert farewell(session_id, title) == line
