"""What a person sees of a turn: the answer as it is written, and in a line each what else happens."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TextIO

from rich.console import RenderableType
from rich.text import Text as Line

from segue.cli.chatting.blocks import Block, Blocks
from segue.cli.chatting.indicator import Indicator
from segue.cli.chatting.lines import marked_line, output_lines, result_line, tool_line
from segue.cli.chatting.paper import Paper
from segue.cli.chatting.typesetting import Typesetter
from segue.cli.output import terminal_columns
from segue.config import wants_colour
from segue.core.events import (
    CarryOn,
    Compressed,
    Done,
    Event,
    Failed,
    ModelCalled,
    Note,
    Reasoning,
    Reply,
    Steered,
    Text,
    ToolFinished,
    ToolStarted,
)
from segue.core.preferences import Verbosity
from segue.core.text import one_line, printable

Write = Callable[[str], None]


class Part(StrEnum):
    """What the lines at the bottom of the screen are; an empty line stands between two parts."""

    ANSWER = "answer"
    REASONING = "reasoning"
    WORK = "work"


class Screen:
    """A terminal, block by block."""

    def __init__(
        self,
        out: TextIO,
        *,
        verbosity: Verbosity = Verbosity.TOOLS,
        columns: Callable[[], int] = terminal_columns,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.verbosity = verbosity
        self._out = out
        self._write: Write = self._write_out
        self._clock = clock
        self._paper = Paper(columns, is_terminal=out.isatty(), has_colour=wants_colour())
        self._indicator = Indicator()
        self._blocks = Blocks()
        self._typesetter = Typesetter(self._paper)
        self._thought: list[str] = []
        self._part: Part | None = None
        self._has_streamed = False
        self._running: dict[str, float] = {}
        self._last_call: str | None = None

    def begin(self) -> None:
        """A turn begins."""
        self._part, self._has_streamed, self._last_call = None, False, None
        self._running.clear()
        self._indicator.wait("thinking", self._clock())

    def show(self, event: Event) -> None:
        match event:
            case Text(text):
                self._show_answer(text)
            case Reasoning(text):
                self._show_reasoning(text)
            case ModelCalled():
                self._pause()
                self._has_streamed = False
                self._indicator.wait("thinking", self._clock())
            case Reply():
                self._finish_reply(event)
            case ToolStarted():
                self._show_start(event)
            case ToolFinished():
                self._show_result(event)
            case Steered(text):
                self._tell("↳", "bold yellow", text)
            case Compressed():
                self.show(Note(event.sentence))
            case Note(text):
                self._tell("ℹ", "blue", text)
            case Failed(sentence):
                self._tell("✗", "bold red", sentence)
            case CarryOn(session_id):
                self._tell("→", "blue", f"Going on in session {session_id}.")
            case Done():
                self._finish(event)

    def say(self, text: str) -> None:
        """Show lines that are no part of a turn, such as the answer to a command."""
        self._pause()
        self._write(self._paper.render(Line(printable(text))))

    def echo(self, text: str) -> None:
        """Show what a person said while the agent worked, before it has been heard."""
        self._turn_to(Part.WORK)
        self.put(Line(f"· {one_line(text)}", style="dim"))

    def put(self, what: RenderableType) -> None:
        """Show something that rich lays out."""
        self._write(self._paper.render(what))

    def waiting_line(self) -> str:
        """What to show below everything else at this moment; empty when nothing is waited for."""
        return self._indicator.line(self._clock(), self._paper.columns)

    @contextmanager
    def writing_through(self, write: Write) -> Iterator[None]:
        """Let somebody else write for a while, who knows what stands below."""
        self._write = write
        try:
            yield
        finally:
            self._write = self._write_out

    # The answer and the thoughts before it

    def _show_answer(self, text: str) -> None:
        self._has_streamed = True
        self._end_reasoning()
        blocks = self._blocks.add(text)
        self._print_blocks(blocks)
        if blocks:
            self._indicator.wait("writing", self._clock())
        self._indicator.write(text.rpartition("\n")[2] if blocks else text)

    def _print_blocks(self, blocks: list[Block]) -> None:
        lines = "".join(map(self._typesetter.set, blocks))
        if lines:
            self._turn_to(Part.ANSWER)
            self._write(lines)

    def _show_reasoning(self, text: str) -> None:
        if not self.verbosity.has_reasoning:
            return
        self._indicator.write(text)
        self._end_answer()
        before, newline, rest = text.rpartition("\n")
        if newline:
            self._print_thought("".join([*self._thought, before]))
            self._thought.clear()
        self._thought.append(rest)

    def _print_thought(self, text: str) -> None:
        if text.strip():
            self._turn_to(Part.REASONING)
            self._write(self._paper.render(Line(printable(text).strip("\n"), style="dim italic")))

    def _end_reasoning(self) -> None:
        if self._thought:
            self._print_thought("".join(self._thought))
            self._thought.clear()
            self._indicator.wait("writing", self._clock())

    def _end_answer(self) -> None:
        self._print_blocks(self._blocks.finish())
        self._typesetter = Typesetter(self._paper)

    def _finish_reply(self, reply: Reply) -> None:
        if reply.text and not self._has_streamed:
            self._show_answer(reply.text)
        self._has_streamed = False
        self._pause()

    # Beside the answer

    def _show_start(self, event: ToolStarted) -> None:
        self._pause()
        self._running[event.call.id] = self._clock()
        self._indicator.wait(one_line(event.call.name) or "working", self._clock())
        if self.verbosity.has_tools:
            self._turn_to(Part.WORK)
            self.put(tool_line(event.call, self._paper.width))
            self._last_call = event.call.id

    def _show_result(self, event: ToolFinished) -> None:
        self._pause()
        begun = self._running.pop(event.call.id, None)
        self._indicator.wait("thinking", self._clock())
        if self.verbosity.has_tools:
            self._turn_to(Part.WORK)
            seconds = None if begun is None else self._clock() - begun
            is_named = self._last_call != event.call.id or begun is None
            self.put(result_line(event, seconds, self._paper.width, is_named=is_named))
            if self.verbosity.has_output:
                for line in output_lines(event, self._paper.width):
                    self.put(line)
            self._last_call = None

    def _tell(self, mark: str, style: str, text: str) -> None:
        self._pause()
        self._turn_to(Part.WORK)
        self.put(marked_line(mark, style, text))
        self._last_call = None

    def _finish(self, done: Done) -> None:
        self._pause()
        if done.was_stopped:
            self._tell("■", "yellow", "Stopped.")
        self._indicator.stop()
        if self._part is not None:
            self._write("\n")
        self._part = None

    def _pause(self) -> None:
        """Whatever was being written is complete as it is."""
        self._end_reasoning()
        self._end_answer()

    def _turn_to(self, part: Part) -> None:
        if self._part is not part:
            self._write("\n")
        self._part = part

    def _write_out(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
