"""Which part of a long conversation is summarised, and which stays word for word.

A conversation is cut only where nothing is left open: before something that a person says or an agent answers, and
never between a call and its result. Of what stays, there are at most so many turns and so many tokens.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from segue.core.messages import SUMMARY_SEQ, Said, called
from segue.core.pruning import KEPT_TURNS, NOTHING_LEFT, Cut, Pruning, cut_of
from segue.core.sizes import tokens_in, tokens_of, tokens_of_all
from segue.core.text import shorten

_LONGEST_TOLD = 4_000
"""Characters of one message in what a summary is made of; a long one keeps its beginning and its end."""
_LONGEST_CALL = 500
_NAMES = {"user": "Person", "assistant": "Agent", "tool": "Tool result", "system": "System"}
_LONGEST_REQUEST = 2_000


class Need(NamedTuple):
    """For what a conversation has to be made shorter."""

    window: int
    """Tokens that the model can read."""
    rest: int
    """Tokens of what it is told beside the conversation."""
    is_urgent: bool = False
    """Whether the model has refused it already."""


class Plan(NamedTuple):
    """Where a conversation is cut: what comes before is summarised, the rest stays."""

    summary: str
    """The one that it begins with already."""
    told: list[Said]
    kept: list[Said]


def turns_kept_on_request(view: Sequence[Said], protect_last_n: int) -> int:
    """How many of the last turns `/compress` keeps word for word: a quarter, at least one and at most `protect_last_n`.

    Somebody who asks for it wants a conversation to become shorter that may not be long yet.
    """
    turns = sum(message.role == "user" and message.seq != SUMMARY_SEQ for message in view)
    return max(min(turns // 4, protect_last_n), 1)


def plan(view: Sequence[Said], most_tokens: int, most_turns: int = KEPT_TURNS) -> Plan | None:
    """The cut that keeps as much as allowed; nothing when there is nothing to be summarised."""
    summary = _taken_apart(view[0].content or "")[0] if view and view[0].seq == SUMMARY_SEQ else ""
    said = [message for message in view if message.seq != SUMMARY_SEQ]
    places = list(_places(said))
    at = _cut(said, places, most_tokens, most_turns)
    return Plan(summary, said[:at], said[at:]) if at else None


def beginning(view: Sequence[Said], most_tokens: int) -> list[Said]:
    """As much of a conversation as fits, from its first word on and without leaving anything open."""
    left = most_tokens - tokens_of_all(view)
    if left >= 0:
        return list(view)
    sizes = _sizes_from(view)
    end = next((at for at in reversed(list(_places(view))) if sizes[at] + left >= 0), 0)
    return list(view[:end])


def _places(said: Sequence[Said]) -> Iterator[int]:
    """Where nothing is left open. A call that never got a result keeps nothing open: nobody waits for it any more."""
    last = {message.tool_call_id or "": at for at, message in enumerate(said) if message.role == "tool"}
    awaited: set[str] = set()
    for at, message in enumerate(said):
        if message.role == "tool":
            awaited.discard(message.tool_call_id or "")
            continue
        if not awaited:
            yield at
        awaited |= {name for call in message.calls if last.get(name := str(call.get("id") or ""), -1) > at}


def _cut(said: Sequence[Said], places: Sequence[int], most_tokens: int, most_turns: int) -> int:
    sizes = _sizes_from(said)
    turns = [at for at in places if said[at].role == "user"]
    allowed = turns[-most_turns:]
    fitting = next((at for at in allowed if sizes[at] <= most_tokens), None)
    if fitting is not None:
        return fitting
    last = turns[-1] if turns else 0
    # Not even the last turn fits: it is cut between two steps, and what was asked is told in the summary.
    return next((at for at in places if at > last and sizes[at] <= most_tokens), places[-1] if places else 0)


def _sizes_from(said: Sequence[Said]) -> list[int]:
    """How many tokens there are from each message on."""
    sizes = [0] * (len(said) + 1)
    for at in range(len(said) - 1, -1, -1):
        sizes[at] = sizes[at + 1] + tokens_of(said[at])
    return sizes


# What a summary is made of


def chunks(told: Sequence[Said], most_tokens: int) -> list[str]:
    """The words of messages in pieces of at most so many tokens."""
    pieces: list[str] = []
    current: list[str] = []
    used = 0
    for line in (part for message in told for part in _parts(_line(message), most_tokens)):
        size = tokens_in(line)
        if current and used + size > most_tokens:
            pieces.append("\n".join(current))
            current, used = [], 0
        current.append(line)
        used += size
    return [*pieces, "\n".join(current)] if current else pieces


def _line(message: Said) -> str:
    words = [_middle_out(message.content or "", _LONGEST_TOLD)] if message.content else []
    words += [
        f"[calls {called(call)} {_middle_out(str((call.get('function') or {}).get('arguments') or ''), _LONGEST_CALL)}]"
        for call in message.calls
    ]
    return f"{_NAMES.get(message.role, message.role)}: {' '.join(words)}" if words else ""


def _parts(line: str, most_tokens: int) -> Iterator[str]:
    """A line in pieces that fit, should it be longer than anything may be."""
    most = max(most_tokens * 3 // 4 - 1, 1)  # characters, none of which is more than a token and a third
    for at in range(0, len(line), most):
        yield line[at : at + most]


def _middle_out(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} […] {text[-half:]}"


# What goes on from a summary


_HEAD = (
    "[This conversation is a continuation. What was said earlier is summarised here; session_search finds every word of"
    " it.]"
)
_ASKED = "What the person asked last, and you are still working on:"


def continued(summary: str, view: Sequence[Said], kept: Sequence[Said]) -> str:
    """What stands at the beginning of the conversation that goes on."""
    asked = _last_request(view)
    if asked is None or any(message.role == "user" for message in kept):
        return f"{_HEAD}\n\n{summary}"
    return f"{_HEAD}\n\n{summary}\n\n{_ASKED}\n{asked}"


def _taken_apart(beginning: str) -> tuple[str, str | None]:
    """The summary that a conversation begins with, and what was asked last if that is told there."""
    summary, is_asked, asked = beginning.removeprefix(_HEAD).strip().rpartition(f"\n\n{_ASKED}\n")
    return (summary, asked) if is_asked else (asked, None)


def _last_request(view: Sequence[Said]) -> str | None:
    words = [message.content for message in view if message.role == "user" and message.seq != SUMMARY_SEQ]
    if words:
        return shorten(words[-1] or "", _LONGEST_REQUEST)
    return _taken_apart(view[0].content or "")[1] if view and view[0].seq == SUMMARY_SEQ else None


# Old tool results


class Pruned(NamedTuple):
    """A result, by its place in the view, and what is left of it."""

    at: int
    cut: Cut


def prunable(view: Sequence[Said], window: int, rules: Pruning) -> list[Pruned]:
    """Which results are cut down now; what was cut before stays as it is."""
    answers = [at for at, message in enumerate(view) if message.role == "assistant"]
    first_kept = answers[-rules.keep_last] if len(answers) >= rules.keep_last > 0 else 0
    old = [at for at in range(first_kept) if view[at].role == "tool"]
    share = sum(tokens_of(view[at]) for at in old) / max(window, 1)
    if share < rules.soft or sum(len(view[at].content or "") for at in old) < rules.min_chars:
        return []
    cut = NOTHING_LEFT if share >= rules.hard else Cut(rules.head, rules.tail)
    return [Pruned(at, cut) for at in old if _is_cut_by(view[at], cut, rules.max_chars)]


def _is_cut_by(message: Said, cut: Cut, max_chars: int) -> bool:
    before = cut_of(message.pruned)
    left = len(message.content or "") if before is None else before.head + before.tail
    return left > (max_chars if before is None else cut.head + cut.tail) and left > cut.head + cut.tail


def squeezed(kept: Sequence[Said], most_tokens: int) -> list[Pruned]:
    """What has to go of results that stay, when they alone are more than may stay: the longest first.

    What was cut down before is only ever cut down further.
    """
    sizes = {at: tokens_of(message) for at, message in enumerate(kept)}
    too_many = sum(sizes.values()) - most_tokens
    cuts: list[Pruned] = []
    for at in sorted((at for at in sizes if kept[at].role == "tool"), key=lambda at: -sizes[at]):
        if too_many <= 0:
            break
        left = max((sizes[at] - too_many) * 3 // 4, 200)
        half = min(left, len(kept[at].content or "")) // 2
        cut = Cut(half, half)
        saved = sizes[at] - tokens_of(kept[at]._replace(pruned=cut.noted))
        if saved > 0:
            cuts.append(Pruned(at, cut))
            too_many -= saved
    return cuts
