"""A stored transcript as a model provider accepts it: the OpenAI chat format, always valid.

Rows are never changed to please a provider. What is missing is added in the view, what is out of place is moved there,
and what belongs to another provider is left out.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from math import inf
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from segue.core.messages import FAILED, SUMMARY_SEQ, Message, Said, State, called, decode, encode
from segue.core.pruning import shown
from segue.core.text import storable

UNKNOWN_RESULT = "The result of this call is unknown: the conversation was interrupted before it returned."
_REASONING = ("reasoning", "reasoning_content")
_REASONING_JSON = ("reasoning_details", "codex_reasoning_items", "codex_message_items")
_NAME_BREAKERS = str.maketrans("", "", "[]\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
_NAMELESS = "someone"
_reasoning_of = attrgetter(*_REASONING, *_REASONING_JSON)
_NO_REASONING = (None,) * len(_REASONING + _REASONING_JSON)
_CALL_FIELDS = ("id", "type", "function")
_LIVE = str(State.LIVE)
_OURS = frozenset({"role", "content", "tool_calls", "tool_call_id"})

Chat = dict[str, Any]
Told = Message | Said
T = TypeVar("T", Message, Said)


def read_through(own: Sequence[T], kept: Iterable[T]) -> list[T]:
    """A compressed conversation in reading order: the summary, the tail its parents kept, then its own messages."""
    summary = [message for message in own if message.seq == SUMMARY_SEQ]
    rest = [message for message in own if message.seq != SUMMARY_SEQ]
    return summary + [message for message in kept if message.seq != SUMMARY_SEQ] + rest


class Eye(NamedTuple):
    """How a transcript is looked at."""

    provider: str | None = None
    """Reasoning of other providers is left out."""
    shared: bool = False
    """User messages carry their author."""
    marks_failures: bool = False
    """A tool's result says whether it failed, for wire formats that have a place for it."""


_PLAINLY = Eye()


def as_chat(messages: Iterable[Told], eye: Eye = _PLAINLY) -> list[Chat]:
    """The live messages in chat format, every tool call answered before anything else is said."""
    live = [message for message in messages if message.state == _LIVE]
    view = _as_it_stands(live, eye)
    return _put_in_order(live, eye) if view is None else view


def _as_it_stands(live: Sequence[Told], eye: Eye) -> list[Chat] | None:
    """The view of a transcript whose results stand behind their calls, as nearly all do; None of any other."""
    view: list[Chat] = []
    awaited: deque[_Call] = deque()
    for message in live:
        role, content = message.role, message.content
        if role == "tool":
            if not awaited or awaited[0].answers_to != _answer_name(message.tool_call_id):
                return None
            view.append(_result(awaited.popleft().id, message, eye))
            continue
        if awaited:
            return None
        if _is_plain(message, eye.shared):
            view.append({"role": role, "content": content})
            continue
        made = _NO_CALLS if message.tool_calls is None else _calls(message)
        chat = _chat(message, made, eye)
        if role != "assistant" or made or chat["content"]:  # providers refuse one that says nothing
            view.append(chat)
            awaited.extend(made)
    return None if awaited else view


def _is_plain(message: Told, shared: bool) -> bool:
    """Whether a message is nothing but words."""
    if not message.content or message.tool_calls is not None or not message.content_json is message.extra is None:
        return False
    role = message.role
    return (role == "user" and not shared) or (role == "assistant" and _reasoning_of(message) == _NO_REASONING)


def _put_in_order(live: Sequence[Told], eye: Eye) -> list[Chat]:
    """The view of any transcript: late results are moved, stray ones left out, missing ones filled in."""
    calls = [_NO_CALLS if message.tool_calls is None else _calls(message) for message in live]
    results = _Results(live, calls)
    view: list[Chat] = []
    for position, (message, made) in enumerate(zip(live, calls, strict=True)):
        if message.role == "tool":
            continue  # placed behind its call
        chat = _chat(message, made, eye)
        if message.role != "assistant" or made or chat["content"]:
            view.append(chat)
            view += [results.take(call, position, eye) for call in made]
    return view


class _Call(NamedTuple):
    """A tool call as the view shows it."""

    id: str
    answers_to: str | None
    """What its result calls it: the id it came with, or nothing."""
    shown: Chat


_NO_CALLS: list[_Call] = []


class _Results:
    """The tool results of a transcript, each handed out once, to the nearest call before it."""

    def __init__(self, live: Sequence[Told], calls: Sequence[Sequence[_Call]]) -> None:
        self._waiting: dict[str | None, deque[tuple[int, Told]]] = {}
        self._uses: dict[str | None, list[int]] = {}
        for position, (message, made) in enumerate(zip(live, calls, strict=True)):
            if message.role == "tool":
                self._waiting.setdefault(_answer_name(message.tool_call_id), deque()).append((position, message))
            if made:
                for call in made:
                    self._uses.setdefault(call.answers_to, []).append(position)

    def take(self, call: _Call, position: int, eye: Eye) -> Chat:
        waiting = self._waiting.get(call.answers_to, deque())
        while waiting and waiting[0][0] < position:
            waiting.popleft()  # came before its call: nobody can place it
        if not waiting or waiting[0][0] > self._next_use(call.answers_to, position):
            return {"role": "tool", "tool_call_id": call.id, "content": UNKNOWN_RESULT}
        return _result(call.id, waiting.popleft()[1], eye)

    def _next_use(self, name: str | None, position: int) -> float:
        """Where the same id is used again: some providers count calls anew in every message."""
        uses = self._uses[name]
        if len(uses) == 1:
            return inf
        following = bisect_right(uses, position)
        return uses[following] if following < len(uses) else inf


def _calls(message: Told) -> list[_Call]:
    """The calls of an assistant message, each with an id of its own."""
    if message.role != "assistant":
        return []
    calls = message.calls
    if len(calls) == 1 and _is_well_formed(only := calls[0]):  # as nearly all are
        return [_Call(only["id"], storable(only["id"]), only)]
    own = {str(call.get("id")) for call in calls}
    taken: set[str] = set()
    shown = []
    for number, call in enumerate(calls):
        name = str(call.get("id") or "")
        if not name or name in taken:
            name = _spare_name(message.seq, number, own)
        taken.add(name)
        shown.append(_Call(name, _answer_name(call.get("id")), _shown(call, name)))
    return shown


def _spare_name(seq: int, number: int, used: set[str]) -> str:
    name = f"call_{seq}_{number}"
    while name in used:
        name += "_"
    return name


def _answer_name(call_id: Any) -> str | None:
    """An id as columns hold it."""
    return storable(str(call_id)) if call_id not in (None, "") else None


def _shown(call: Chat, name: str) -> Chat:
    """A call as providers take it: a function, its name, and its arguments as a string."""
    kind = call.get("type") or "function"
    if kind != "function":
        return {**call, "id": name}
    function = call.get("function")
    if _is_well_formed(call) and call["id"] == name:
        return call
    said = dict(function) if isinstance(function, dict) else {"arguments": call.get("arguments")}
    arguments = said.get("arguments")
    if not isinstance(arguments, str):
        arguments = "{}" if arguments is None else encode(arguments)
    rest = {field: value for field, value in call.items() if field not in ("name", "arguments")}
    return {**rest, "type": kind, "id": name, "function": {**said, "name": called(call), "arguments": arguments}}


def _is_well_formed(call: Chat) -> bool:
    """Whether a provider can be given a call just as it is."""
    function, name = call.get("function"), call.get("id")
    return (
        len(call) == len(_CALL_FIELDS)
        and call.get("type") == "function"
        and isinstance(name, str)
        and name != ""
        and isinstance(function, dict)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), str)
    )


def _chat(message: Told, calls: Sequence[_Call], eye: Eye) -> Chat:
    content = message.content
    if message.content_json is not None:
        content = message.original
        if not isinstance(content, str | list | None):
            content = encode(content)  # providers take words, or a list of parts
    chat: Chat = {"role": message.role, "content": content}
    if message.extra is not None:
        chat = _extra(message) | chat
    if message.role == "assistant":
        if calls:
            chat["tool_calls"] = [call.shown for call in calls]
        return chat | _reasoning(message, eye.provider) if _reasoning_of(message) != _NO_REASONING else chat
    if content is None:
        chat["content"] = ""
    if eye.shared and message.role == "user" and message.author:
        chat["content"] = _signed(chat["content"], message.author)
    return chat


def _extra(message: Told) -> Chat:
    """Fields that came with the message and have no column of their own."""
    fields = decode(message.extra)
    return {name: value for name, value in fields.items() if name not in _OURS} if isinstance(fields, dict) else {}


def _result(name: str, message: Told, eye: Eye) -> Chat:
    content = message.content if message.content_json is None else message.original
    if message.pruned is not None:
        content = shown(message.content or "", message.pruned)
    chat: Chat = {"role": "tool", "tool_call_id": name, "content": "" if content is None else content}
    if message.extra is not None:
        chat = _extra(message) | chat
    if message.tool_name:
        chat["name"] = message.tool_name
    if eye.marks_failures and message.outcome == FAILED:
        chat["is_error"] = True
    return chat


def _reasoning(message: Told, provider: str | None) -> Chat:
    if provider is not None and message.provider != provider:
        return {}
    plain = {name: getattr(message, name) for name in _REASONING}
    structured = {name: decode(getattr(message, name)) for name in _REASONING_JSON}
    return {name: value for name, value in (plain | structured).items() if value is not None}


def display_author(name: str) -> str:
    """A name as it stands in brackets before what its bearer says: nothing in it can end them or begin a line."""
    return name.translate(_NAME_BREAKERS).strip() or _NAMELESS


def _signed(content: Any, author: str) -> Any:
    name = display_author(author)
    if isinstance(content, str):
        return f"[{name}] {content}"
    return [{"type": "text", "text": f"[{name}]"}, *content] if isinstance(content, list) else content
