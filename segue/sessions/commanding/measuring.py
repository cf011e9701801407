"""`/context`: what the model is told, part by part, and how large each is."""

from collections import Counter
from collections.abc import Sequence

from segue.core.errors import Invalid
from segue.core.messages import SUMMARY_SEQ, Said, called
from segue.core.prompts import files_in
from segue.core.pruning import shown
from segue.core.text import count, one_line, shorten
from segue.ports.store import Transaction
from segue.sessions.commanding.acts import Answer, Situation, session_of
from segue.sessions.commanding.wording import table
from segue.sessions.reading import view_of

_CHARACTERS_OF_A_TOKEN = 4
_BIGGEST = 10
_PREVIEW = 40
_FORMS = ("list", "detail")
_VOICES = {"user": "You", "assistant": "Answers", "tool": "Tool results", "system": "System messages"}
_OTHERS = "Others"
_WORDS = (
    *("content", "tool_calls", "reasoning", "reasoning_content"),
    *("reasoning_details", "codex_reasoning_items", "codex_message_items"),
)


def context(tx: Transaction, argument: str, situation: Situation) -> Answer:
    form = argument.lower() or "list"
    if form not in _FORMS:
        raise Invalid(f"/context takes {' or '.join(_FORMS)}.")
    session = session_of(tx, situation)
    prompt = (session.system_prompt if session else None) or situation.system_prompt
    view = view_of(tx, session.id) if session else []
    files = [(f"File {file.name}", len(file.text)) for file in files_in(prompt)]
    told = _overview(len(prompt), files, situation.parts, view)
    if form == "detail":
        told += _listed("Files of the folder", files) + _listed("Tools", situation.parts) + _biggest(view)
    return Answer(told)


def _overview(
    prompt: int, files: Sequence[tuple[str, int]], parts: Sequence[tuple[str, int]], view: Sequence[Said]
) -> str:
    sizes = Counter[str]()
    for message in view:
        sizes["Summary" if message.seq == SUMMARY_SEQ else _VOICES.get(message.role, _OTHERS)] += size_of(message)
    tools = sum(size for _, size in parts)
    injected = sum(size for _, size in files)
    named = [("System prompt", prompt - injected), *files, (f"Tools ({len(parts)})", tools)]
    named += [(name, sizes[name]) for name in ("Summary", *_VOICES.values(), _OTHERS) if name in sizes]
    total = sum(size for _, size in named)
    rows = [(name, measured(size)) for name, size in named]
    return table([*rows, ("Together", f"{measured(total)}, {count(len(view), 'message')}")])


def _listed(heading: str, parts: Sequence[tuple[str, int]]) -> str:
    if not parts:
        return ""
    rows = [(one_line(name), measured(size)) for name, size in sorted(parts, key=lambda part: -part[1])]
    return f"\n\n{heading}\n" + table(rows)


def _biggest(view: Sequence[Said]) -> str:
    if not view:
        return ""
    biggest = sorted(view, key=size_of, reverse=True)[:_BIGGEST]
    rows = [
        (f"#{message.seq} {message.role}", f"{measured(size_of(message))}: {_preview(message)}") for message in biggest
    ]
    return "\n\nLargest messages\n" + table(rows)


def _preview(message: Said) -> str:
    words = one_line((message.content or "")[: _PREVIEW * 4]) or ", ".join(map(called, message.calls))
    return shorten(one_line(words), _PREVIEW) or "(no words)"


def size_of(message: Said) -> int:
    """How many characters of a message a model is told, more or less."""
    values = [getattr(message, name) for name in _WORDS]
    if message.pruned is not None:
        values[0] = shown(message.content or "", message.pruned)
    elif message.content_json is not None:
        values[0] = message.content_json
    return sum(len(value) for value in values if value)


def measured(characters: int) -> str:
    tokens = -(-characters // _CHARACTERS_OF_A_TOKEN)
    return f"{characters:,} characters, about {count(tokens, 'token')}"
