"""What is typed in a chat: at a real terminal, through a pipe, and key by key."""

import asyncio
import io
import json
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from prompt_toolkit.application import Application, get_app_or_none
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.formatted_text import fragment_list_to_text, to_formatted_text
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.layout import FormattedTextControl
from prompt_toolkit.output import DummyOutput
from terminal import PATIENCE, Terminal

from segue.cli.chatting import agreement_line, interrupts, past
from segue.cli.chatting.asking import Agreement
from segue.cli.chatting.editor import Terminal as Place
from segue.cli.chatting.line_prompt import LinePrompt
from segue.cli.chatting.offers import Offer, Offers
from segue.cli.chatting.past import LONGEST_ENTRY, MOST_ENTRIES, Past
from segue.cli.chatting.pastes import Pastes
from segue.cli.chatting.screen import Screen
from segue.cli.chatting.terminal_prompt import TerminalPrompt
from segue.core.events import Text

pytestmark = pytest.mark.on_file

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parents[1] / "support" / "scripted_chat.py"
OFFERS = Offers(
    (Offer("/resume", "Go on"), Offer("/retry"), Offer("/quit")),
    {
        "/resume": lambda typed: [
            one for one in (Offer("s1", "Soup"), Offer("Soup", "s1")) if one.value.startswith(typed)
        ]
    },
)


def paste(text: str) -> str:
    return f"\x1b[200~{text}\x1b[201~"


class Typist:
    """Somebody who looks before typing."""

    def __init__(self, pipe: PipeInput) -> None:
        self._pipe = pipe

    async def see(self, what: Callable[[Application[Any]], bool]) -> None:
        while (app := get_app_or_none()) is None or not app.is_running or not what(app):
            await asyncio.sleep(0.002)

    async def see_line(self, text: str) -> None:
        await self.see(lambda app: app.layout.has_focus(DEFAULT_BUFFER) and app.current_buffer.text == text)

    async def see_menu(self) -> None:
        await self.see(lambda app: bool((menu := app.current_buffer.complete_state) and menu.completions))

    async def see_question(self) -> None:
        """One that can be answered."""
        await self.see(lambda app: "[y]es" in _words(app))

    def press(self, keys: str) -> None:
        self._pipe.send_text(keys)


def _words(app: Application[Any]) -> str:
    control = app.layout.current_control
    return fragment_list_to_text(to_formatted_text(control.text)) if isinstance(control, FormattedTextControl) else ""


async def _leave_alone(_typist: Typist) -> None:
    """Nothing more is typed."""


def typed(
    folder: Path,
    keys: str,
    work: Callable[[TerminalPrompt], Awaitable[T]],
    then: Callable[[Typist], Awaitable[None]] = _leave_alone,
) -> T:
    """What a prompt makes of keys, and of what somebody types then."""

    async def run(pipe: PipeInput) -> T:
        prompt = TerminalPrompt(folder / "typed", OFFERS, str, terminal=Place(pipe, DummyOutput()), out=io.StringIO())
        made, _ = await asyncio.wait_for(asyncio.gather(work(prompt), then(Typist(pipe))), PATIENCE)
        return made

    with create_pipe_input() as pipe:
        sending = threading.Thread(target=pipe.send_text, args=[keys], daemon=True)  # a pipe holds only so much
        sending.start()
        try:
            return asyncio.run(run(pipe))
        finally:
            sending.join(PATIENCE)


def asked(folder: Path, keys: str) -> str | None:
    return typed(folder, keys, TerminalPrompt.ask)


# Key by key


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("hello\r", "hello"),
        ("one\x1b\rtwo\r", "one\ntwo"),
        ("one\ntwo\r", "one\ntwo"),
        ("\r  \rhello\r", "  hello"),
        (paste("one\r\ntwo\n") + "three\r", "one\ntwo\nthree"),
        (paste("a\x1b[31mb\x07\x00\x9b2J\u202ec\td") + "\r", "abc\td"),
        ("wrong\x03right\r", "right"),
        ("\x03hello\r", "hello"),
        ("\x03\x03", None),
        ("\x03x\x03\x03hello\r", "hello"),
        ("\x04", None),
        ("葱👩‍👩‍👧\r", "葱👩‍👩‍👧"),
    ],
)
def test_what_keys_become(tmp_path: Path, keys: str, message: str | None) -> None:
    assert asked(tmp_path, keys) == message


def test_a_long_paste_is_out_of_the_way_and_sent_whole(tmp_path: Path) -> None:
    first, second = "x" * 3_000, "\n".join(["[paste 1: 1 line, 3.0 kB]"] * 50)
    message = asked(tmp_path, f"See {paste(first)} and {paste(second)}!\r")
    assert message == f"See {first} and {second}!"


def test_a_paste_stands_in_the_line_as_a_few_words() -> None:
    pastes = Pastes()
    assert pastes.take("short") == "short"
    sign = pastes.take("line\n" * 500)
    assert sign == "[paste 1: 501 lines, 2.5 kB]"
    assert pastes.unfold(f"a {sign} b") == "a " + "line\n" * 500 + " b"
    pastes.forget()
    assert pastes.unfold(sign) == sign


@pytest.mark.parametrize("text", ["x" * 1_000_000, "word and word\n" * 70_000, "\x1b[31m葱\n" * 150_000])
def test_a_megabyte_can_be_pasted(tmp_path: Path, text: str) -> None:
    assert asked(tmp_path, paste(text) + "\r") == text.replace("\x1b[31m", "")


def test_commands_and_their_arguments_are_offered() -> None:
    def offered(line: str) -> list[str]:
        return [offer.value for offer in OFFERS.for_line(line)[1]]

    assert offered("/re") == ["/resume", "/retry"]
    assert offered("/resume ") == ["s1", "Soup"]
    assert offered("/resume So") == ["Soup"]
    assert offered("/retry s") == []
    assert offered("re") == []
    assert offered("/re\n/re") == []


@pytest.mark.parametrize(("keys", "line"), [("/q", "/quit"), ("/resume So", "/resume Soup")])
def test_tab_completes(tmp_path: Path, keys: str, line: str) -> None:
    async def then(typist: Typist) -> None:
        await typist.see_menu()
        typist.press("\t")
        await typist.see_line(line)
        typist.press("\r")

    assert typed(tmp_path, keys, TerminalPrompt.ask, then) == line


@pytest.fixture
def is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key answers a question as soon as it is asked."""
    monkeypatch.setattr(agreement_line, "HESITATION", 0.0)


@pytest.mark.usefixtures("is_read_at_once")
@pytest.mark.parametrize(
    ("keys", "agreement"),
    [
        *[("y", "yes"), ("a", "all"), ("n", "no"), ("\x1b", "no"), ("\x03", "stop")],
        *[(paste("y") + "a", "all"), ("\ra", "all"), ("xa", "all")],
    ],
)
def test_one_key_agrees_and_any_other_does_nothing(tmp_path: Path, keys: str, agreement: str) -> None:
    async def then(typist: Typist) -> None:
        await typist.see_question()
        typist.press(keys)

    assert typed(tmp_path, "", lambda prompt: prompt.agree("Sure?", seconds=PATIENCE), then) == Agreement(agreement)


def test_what_was_typed_before_the_question_was_read_agrees_to_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreement_line, "HESITATION", PATIENCE)
    assert typed(tmp_path, "yay", lambda prompt: prompt.agree("Sure?", seconds=0.1)) is Agreement.NOBODY
    assert typed(tmp_path, "yay\x03", lambda prompt: prompt.agree("Sure?", seconds=PATIENCE)) is Agreement.STOP


def test_a_line_typed_while_the_agent_works_is_heard_and_half_a_line_is_kept(tmp_path: Path) -> None:
    heard: list[str] = []
    is_typed, is_over = asyncio.Event(), asyncio.Event()

    async def work(prompt: TerminalPrompt) -> str | None:
        screen = Screen(io.StringIO())
        async with prompt.listening(screen, lambda: None, heard.append):
            while not is_typed.is_set():
                screen.show(Text("Something.\n\n"))
                await asyncio.sleep(0.01)
        is_over.set()
        return await prompt.ask()

    async def then(typist: Typist) -> None:
        await typist.see_line("and ")
        is_typed.set()
        await is_over.wait()
        typist.press("cream\r")

    assert typed(tmp_path, "\x04more leeks\rand ", work, then) == "and cream"
    assert heard == ["more leeks"]


@pytest.mark.usefixtures("is_read_at_once")
def test_ctrl_c_stops_the_turn_and_a_question_that_waits(tmp_path: Path) -> None:
    answers: list[Agreement] = []
    is_asked_again = asyncio.Event()

    async def work(prompt: TerminalPrompt) -> str | None:
        async def turn() -> None:
            answers.append(await prompt.agree("Sure?", seconds=PATIENCE))
            await asyncio.Event().wait()

        working = asyncio.create_task(turn())
        async with prompt.listening(Screen(io.StringIO()), lambda: void(working.cancel()), print):
            await asyncio.wait({working})
        again = asyncio.create_task(turn())
        async with prompt.listening(Screen(io.StringIO()), lambda: None, print):
            await is_asked_again.wait()
            again.cancel()
            await asyncio.wait({again})
        return await prompt.ask()

    async def then(typist: Typist) -> None:
        await typist.see_question()
        typist.press("\x03")
        await typist.see_line("")
        typist.press("\x03")
        await typist.see_question()
        is_asked_again.set()
        await typist.see_line("")
        typist.press("still here\r")

    assert typed(tmp_path, "", work, then) == "still here"
    assert answers == [Agreement.STOP]


def void(_value: object) -> None:
    """For a callback that returns nothing."""


# The past


def test_what_was_typed_is_found_again_by_the_next_chat_and_nobody_else(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        assert asked(tmp_path, "one\x1b\rtwo\r") == "one\ntwo"
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "typed").stat().st_mode) == 0o600
    assert typed(tmp_path, "", TerminalPrompt.ask, up_and_enter) == "one\ntwo"
    assert (tmp_path / "typed").read_text() == '"one\\ntwo"\n'


async def up_and_enter(typist: Typist) -> None:
    await typist.see(lambda app: bool(app.current_buffer.history.get_strings()))
    typist.press("\x1b[A")
    await typist.see_line("one\ntwo")
    typist.press("\r")


def test_the_past_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "typed"
    file.write_text("".join(f'"line {number}"\n' for number in range(MOST_ENTRIES)) + "half a l")
    kept = Past(file)
    assert next(iter(kept.load_history_strings())) == f"line {MOST_ENTRIES - 1}"
    for number in range(3):
        kept.store_string(f"new {number}")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) <= MOST_ENTRIES
    assert lines[-2:] == ["new 1", "new 2"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["typed"]


def test_a_file_that_grew_too_large_is_shortened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "LARGEST_FILE", 10_000)
    kept = Past(tmp_path / "typed")
    for number in range(300):
        kept.store_string(f"{number} " + "x" * 90)
    assert (tmp_path / "typed").stat().st_size <= 10_100
    assert next(iter(Past(tmp_path / "typed").load_history_strings())).startswith("299 ")


def test_what_is_too_long_or_repeated_is_not_kept(tmp_path: Path) -> None:
    kept = Past(tmp_path / "typed")
    for line in ("a", "a", "葱" * (LONGEST_ENTRY // 3), "b" * (LONGEST_ENTRY - 3), " ", "\ud800"):
        kept.append_string(line)
    assert [json.loads(line)[:3] for line in (tmp_path / "typed").read_text().splitlines()] == ["a", "bbb", "\ufffd"]


def test_a_past_that_cannot_be_written_lasts_as_long_as_the_chat(tmp_path: Path) -> None:
    kept = Past(tmp_path / "nowhere" / "typed")
    kept.append_string("hello")
    assert kept.get_strings() == ["hello"]
    assert kept.trouble is not None
    assert "cannot be kept" in kept.trouble


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "typed").symlink_to(tmp_path / "precious")
    kept = Past(tmp_path / "typed")
    kept.append_string("hello")
    assert (tmp_path / "precious").read_text() == "precious"
    assert kept.trouble


# Without a terminal


def test_lines_come_through_a_pipe(tmp_path: Path) -> None:
    async def lines(descriptor: int) -> list[str | None]:
        prompt = LinePrompt(descriptor)
        return [await prompt.ask() for _ in range(4)] + [str(await prompt.agree("Sure?"))]

    reading, writing = os.pipe()
    os.write(writing, "one\n\n  \ntwo \x1b[31m葱\r\nlast".encode())
    os.close(writing)
    assert asyncio.run(lines(reading)) == ["one", "two 葱", "last", None, "no"]
    os.close(reading)


def test_a_question_at_a_poor_terminal_expires_and_its_line_is_not_lost() -> None:
    async def work(reading: int, writing: int) -> list[object]:
        out = io.StringIO()
        prompt = LinePrompt(reading, out)
        first = await prompt.agree("Sure?\x1b[2J", seconds=0.1)
        os.write(writing, b"all\nhello\n")
        return [first, await prompt.agree("Sure?", seconds=PATIENCE), await prompt.ask(), "\x1b" in out.getvalue()]

    writing, reading = os.openpty()
    assert asyncio.run(work(reading, writing)) == [Agreement.NOBODY, Agreement.ALL, "hello", False]
    os.close(reading)
    os.close(writing)


def test_what_comes_through_a_pipe_agrees_to_nothing_and_stays_a_message() -> None:
    async def work(reading: int) -> list[object]:
        prompt = LinePrompt(reading, io.StringIO())  # as in `printf … | segue` at a terminal
        return [await prompt.agree("Sure?", seconds=PATIENCE), await prompt.ask()]

    reading, writing = os.pipe()
    os.write(writing, b"yes\n")
    assert asyncio.run(work(reading)) == [Agreement.NO, "yes"]
    os.close(reading)
    os.close(writing)


def test_an_interrupt_calls_and_afterwards_does_what_it_did_before() -> None:
    async def work() -> None:
        called = asyncio.Event()
        before = signal.getsignal(signal.SIGINT)
        with interrupts.calling(called.set):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.wait_for(called.wait(), PATIENCE)
        assert signal.getsignal(signal.SIGINT) is before

    asyncio.run(work())


def chat(folder: Path, said: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, input=said, capture_output=True, text=True, timeout=PATIENCE, env=environment)


def test_a_chat_through_a_pipe_is_the_answers_and_nothing_else(tmp_path: Path) -> None:
    done = chat(tmp_path, "hello\nfail\nagree\n/quit\nnever read\n")
    assert done.stdout == (
        "5 characters, 1 lines\nThe answer was no.\nResume with: segue -r 20250301_080000_soup  (Soup for Sunday)\n"
    )
    assert done.stderr == "There is no model to ask; set OPENAI_API_KEY.\n"
    assert done.returncode == 0
    assert not (tmp_path / "typed").exists()


def test_the_command_line_does_not_load_what_only_a_chat_needs() -> None:
    code = (
        "import sys, segue.cli, segue.cli.chatting.here\n"
        "print([name for name in ('prompt_toolkit', 'rich.markdown', 'pygments') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "[]\n"


# In a real terminal


Open = Callable[..., Terminal]
CHAT = shlex.join([sys.executable, str(SCRIPT), "."])
BELOW = "Soup for Sunday · some-model"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Open]:
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    opened: list[Terminal] = []

    def start(width: int, *variables: str) -> Terminal:
        opened.append(Terminal(tmp_path, f"PYTHONPATH={ROOT}", *variables, width=width, height=50))
        (tmp_path / "chat.sh").write_text(f"stty -a > before; {CHAT}; stty -a > after; cmp before after && echo same")
        opened[-1].type("clear; . ./chat.sh\n")
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_a_whole_chat_is_seen_as_it_should_be(terminal: Open) -> None:
    at = terminal(40)
    at.until(f"●\n{BELOW}")
    at.type("full")
    at.press("Enter")
    screen = at.until("That is all.", BELOW, without="⠋")
    assert screen.endswith("\n".join(_AT_40_COLUMNS))
    at.press("C-d")
    assert "Traceback" not in at.until("Resume with:", "same")


_AT_40_COLUMNS = [
    "⚙ terminal  ls -la /home/person/kitchen…",
    "  ✓ 0.1 s  leek-1 leek-2 lee… (+2 lines)",
    "⚙ web_search  query=leek soup, limit=3",
    "  ✗ 0.0 s  The server did not answer wi…",
    "ℹ The first model is busy. Going on with",
    "another.",
    "",
    "Leek soup",
    "",
    "Here is what I found, with bold words,",
    "code and a link",
    "(https://example.org/soup).",
    "",
    " 1 Wash the leeks:",
    "   ── bash ─────────────────────────────",
    '   for leek in *.leek; do wash "$leek";',
    "done",
    "   ─────────────────────────────────────",
    " 2 Cut them.",
    "   葱を切って、鍋に入れます。とても簡単",
    "   な料理ですから、心配はいりません。",
    "    • thin rings 👩‍👩‍👧",
    "    • or not 🇵🇹",
    " 3 Boil",
    "",
    " Ingredient   Amount  Where",
    " ──────────────────────────────────────",
    " Leeks 葱          3  market",
    " Potatoes 🥔   500 g  cellar, behind",
    "                      the old boxes",
    "",
    "── python ──────────────────────────────",
    "def soup(leeks: int) -> str:",
    '    """Make soup.',
    "",
    '    It takes an hour."""',
    '    return f"{leeks} leeks, and a line t',
    "hat is so long that it does not fit into",
    ' any ordinary terminal at all"',
    "────────────────────────────────────────",
    "",
    "▌ Soup is the answer.",
    "",
    "That is all.",
    "",
    "●",
    BELOW,
]


def test_typing_while_output_streams_loses_no_key_and_ctrl_c_stops(terminal: Open) -> None:
    at = terminal(80)
    at.until(f"●\n{BELOW}")
    at.type("slow")
    at.press("Enter")
    at.until_said("Line 9 of many.")
    words = "please use the leeks from the garden"
    for letter in words:
        at.type(letter)
    at.until(f"● {words}\n{BELOW}")
    at.press("Enter")
    at.until_said(f"· {words}\n↳ {words}\n")
    at.type("not sent")
    at.until("● not sent")
    at.press("C-c")
    screen = at.until("■ Stopped.", f"● not sent\n{BELOW}", without="writing…")
    assert [line for line in screen.splitlines() if line.startswith("●")][-1] == "● not sent"
    assert screen.count("not sent") == 1
    at.press("C-c")
    at.until(f"●\n{BELOW}")
    at.press("C-c")
    at.until("Press Ctrl-C again to leave.")
    at.press("C-c")
    screen = at.until("Resume with: segue -r 20250301_080000_soup  (Soup for Sunday)", "same")
    numbers = [int(line.split()[1]) for line in screen.splitlines() if line.startswith("Line ")]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))


def test_what_waits_leaves_nothing_behind(terminal: Open) -> None:
    at = terminal(80)
    at.until(f"●\n{BELOW}")
    at.type("silent")
    at.press("Enter")
    at.until("thinking…\n")
    at.press("C-c")
    assert at.until("Stopped.", BELOW) == f"● silent\n\n■ Stopped.\n\n●\n{BELOW}"


def test_a_question_takes_the_place_of_the_line_and_one_key_answers_it(terminal: Open) -> None:
    at = terminal(80)
    at.until(f"●\n{BELOW}")
    at.type("agree")
    at.press("Enter")
    at.until("The agent wants to run:\n  rm -rf soup\nAllow? [y]es  [n]o  [a]ll commands of this conversation")
    at.type("a")
    at.until("rm -rf soup\nAllow? all\n\nThe answer was all.\n\n●", BELOW)


def test_a_question_offers_every_answer_on_a_narrow_terminal(terminal: Open) -> None:
    at = terminal(40)
    at.until("●\n")
    at.type("agree")
    at.press("Enter")
    at.until("Allow? [y]es  [n]o  ", " s\n[a]ll commands of this conversation")
    at.type("n")
    at.until("Allow? no\n\nThe answer was no.")


def test_a_pasted_megabyte_is_one_message(terminal: Open, tmp_path: Path) -> None:
    (tmp_path / "large").write_text("a line that somebody copied\n" * 36_000)
    at = terminal(80)
    at.until(f"●\n{BELOW}")
    at.paste(tmp_path / "large")
    at.until("● [paste 1: 36,001 lines, 1.0 MB]")
    at.press("Enter")
    at.until("1008000 characters, 36001 lines")


def test_a_dumb_terminal_reads_lines(terminal: Open) -> None:
    at = terminal(80, "TERM=dumb")
    at.until("chat.sh\n>")
    at.type("hello\n")
    at.until("> hello\n\n5 characters, 1 lines\n\n>")
    at.type("agree\n")
    at.until("[y]es, [n]o, [a]ll commands of this conversation?")
    at.type("y\n")
    at.until("The answer was yes.")
    at.type("slow\n")
    at.until_said("Line 3 of many.")
    at.press("C-c")
    at.until("■ Stopped.")
    at.press("C-d")
    at.until("Resume with:", "same")
