"""What happens beside the answer, each in one line that fits the terminal."""

import json
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from segue.cli.output import cut
from segue.core.events import ToolCall, ToolFinished
from segue.core.text import count, one_line

MOST_LINES = 20
"""Of what a tool says, for whoever wants to see it."""
_WENT_WELL = "[exit code 0]"
_FEW_CHARACTERS = 2_000  # of arguments and output; no terminal shows more on a line


def tool_line(call: ToolCall, columns: int) -> Text:
    """A tool and what it is given: `⚙ terminal  ls -la`."""
    name = one_line(call.name)
    return _fitted([("⚙ ", "cyan"), (name, "cyan"), (f"  {_arguments(call)}", "dim")], columns)


def result_line(result: ToolFinished, seconds: float | None, columns: int, *, is_named: bool) -> Text:
    """How it went: a mark, the time it took, the first line of what it returned, and how many more there are."""
    lines = _lines(result)
    first = one_line(lines[0][:_FEW_CHARACTERS]) if lines else "nothing returned"
    more = f" (+{count(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
    indent = "" if seconds is None else "  "  # below the call, if it was made
    pieces = [(f"{indent}✗ ", "bold red") if result.is_error else (f"{indent}✓ ", "green")]
    if is_named:
        pieces.append((f"{one_line(result.call.name)} ", "cyan"))
    if seconds is not None:
        pieces.append((f"{duration(seconds)}  ", "dim"))
    return _fitted([*pieces, (first, "" if result.is_error else "dim")], columns, end=more)


def output_lines(result: ToolFinished, columns: int) -> list[Text]:
    """What a tool returned, each line cut to fit, and how many more there are; nothing when one line was all."""
    lines = _lines(result)
    if len(lines) < 2:
        return []
    shown = [_fitted([("    ", ""), (one_line(line[:_FEW_CHARACTERS]), "dim")], columns) for line in lines[:MOST_LINES]]
    left = len(lines) - MOST_LINES
    return [*shown, Text(f"    … {count(left, 'more line')}", "dim")] if left > 0 else shown


def _lines(result: ToolFinished) -> list[str]:
    """Those with something on them; that a command went well is said by the mark."""
    lines = [line for line in result.output.strip().split("\n", 1_000) if line.strip()]
    return lines[:-1] if len(lines) > 1 and lines[-1] == _WENT_WELL else lines


def marked_line(mark: str, style: str, text: str) -> Text:
    """A sentence behind its mark; as many lines as it needs."""
    return Text.assemble((f"{mark} ", style), one_line(text))


def duration(seconds: float) -> str:
    """As people say it: `0.4 s`, `12 s`, `3 min 20 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _arguments(call: ToolCall) -> str:
    said = call.parsed()
    if said is None:
        return one_line(call.arguments[:_FEW_CHARACTERS])
    if len(said) == 1:
        return one_line(_value(next(iter(said.values()))))
    return one_line(", ".join(f"{name}={_value(value)}" for name, value in said.items())[:_FEW_CHARACTERS])


def _value(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:_FEW_CHARACTERS]


def _fitted(pieces: list[tuple[str, str]], columns: int, end: str = "") -> Text:
    """The pieces on one line, the last of them shortened; what comes after it is left out before it is cut away."""
    *first, (last, style) = pieces
    start = Text.assemble(*first, no_wrap=True, overflow="ellipsis")
    room = columns - start.cell_len
    end = end if room - cell_len(end) >= min(cell_len(last), 8) else ""
    return start.append(cut(last, max(room - cell_len(end), 1)), style).append(end, "dim")
