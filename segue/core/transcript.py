"""A stored transcript as a model provider accepts it: the OpenAI chat format, always valid.

Rows are never changed to please a provider. What is missing is added in the view, what is out of place is moved there,
and what belongs to another provider is left out.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, NamedTuple

from segue.core.messages import SUMMARY_SEQ, Message, decode, encode

UNKNOWN_RESULT = "The result of this call is unknown: the conversation was interrupted before it returned."
_REASONING = ("reasoning", "reasoning_content")
_REASONING_JSON = ("reasoning_details", "codex_reasoning_items", "codex_message_items")
_NAME_BREAKERS = str.maketrans("", "", "[]\r\n")

Chat = dict[str, Any]


def read_through(own: Sequence[Message], kept: Iterable[Message]) -> list[Message]:
    """A compressed conversation in reading order: the summary, the tail its parents kept, then its own messages."""
    summary = [message for message in own if message.seq == SUMMARY_SEQ]
    tail = [message for message in kept if message.seq != SUMMARY_SEQ]
    return [*summary, *tail, *(message for message in own if message.seq != SUMMARY_SEQ)]


def as_chat(messages: Iterable[Message], *, provider: str | None = None, shared: bool = False) -> list[Chat]:
    """The live messages in chat format, every tool call answered before anything else is said.

    With a `provider`, reasoning of other providers is left out. In a `shared` lane user messages carry their author.
    """
    live = [message for message in messages if message.is_live]
    results = _Results(live)
    view: list[Chat] = []
    for position, message in enumerate(live):
        if message.role == "tool":
            continue  # placed behind its call
        chat = _chat(message, provider, shared)
        if _says_something(chat):
            view.append(chat)
            view += [results.take(call, position) for call in _named(message)]
    return view


class _Results:
    """The tool results of a transcript, each handed out once, to the nearest call before it."""

    def __init__(self, live: Sequence[Message]) -> None:
        self._waiting: dict[str | None, deque[tuple[int, Message]]] = {}
        self._calls: dict[str, list[int]] = {}
        for position, message in enumerate(live):
            if message.role == "tool":
                self._waiting.setdefault(message.tool_call_id, deque()).append((position, message))
            for call in message.calls:
                self._calls.setdefault(str(call.get("id")), []).append(position)

    def take(self, call: "_Call", position: int) -> Chat:
        waiting = self._waiting.get(call.id if call.has_own_id else None, deque())
        while waiting and waiting[0][0] < position:
            waiting.popleft()  # came before its call: nobody can place it
        if not waiting or waiting[0][0] > self._next_call(call.id, position):
            return {"role": "tool", "tool_call_id": call.id, "content": UNKNOWN_RESULT}
        return _result(call.id, waiting.popleft()[1])

    def _next_call(self, name: str, position: int) -> float:
        """Where the same id is used again: some providers count calls anew in every message."""
        uses = self._calls.get(name, [])
        following = bisect_right(uses, position)
        return uses[following] if following < len(uses) else inf


class _Call(NamedTuple):
    id: str
    has_own_id: bool


def _named(message: Message) -> list[_Call]:
    """The calls of a message with the ids they have in the view."""
    if message.role != "assistant":
        return []
    return [
        _Call(str(call["id"]), True) if call.get("id") else _Call(f"call_{message.seq}_{number}", False)
        for number, call in enumerate(message.calls)
    ]


def _chat(message: Message, provider: str | None, shared: bool) -> Chat:
    content = message.original
    extra = decode(message.extra)
    chat: Chat = dict(extra) if isinstance(extra, dict) else {}
    chat |= {"role": message.role, "content": content}
    if message.role == "assistant":
        if names := _named(message):
            chat["tool_calls"] = [_call(call, name.id) for call, name in zip(message.calls, names, strict=True)]
        chat |= _reasoning(message, provider)
    elif content is None:
        chat["content"] = ""
    if message.role == "user" and shared and message.author:
        chat["content"] = _signed(chat["content"], message.author)
    return chat


def _says_something(chat: Chat) -> bool:
    return chat["role"] != "assistant" or bool(chat["content"]) or "tool_calls" in chat


def _call(call: Chat, name: str) -> Chat:
    view = {"type": "function", **call, "id": name}
    function = call.get("function")
    if isinstance(function, dict) and not isinstance(function.get("arguments"), str):
        arguments = function.get("arguments")
        view["function"] = {**function, "arguments": "{}" if arguments is None else encode(arguments)}
    return view


def _result(name: str, message: Message) -> Chat:
    extra = decode(message.extra)
    chat: Chat = dict(extra) if isinstance(extra, dict) else {}
    content = message.original
    chat |= {"role": "tool", "tool_call_id": name, "content": "" if content is None else content}
    if message.tool_name:
        chat["name"] = message.tool_name
    return chat


def _reasoning(message: Message, provider: str | None) -> Chat:
    if provider is not None and message.provider != provider:
        return {}
    plain = {name: getattr(message, name) for name in _REASONING}
    structured = {name: decode(getattr(message, name)) for name in _REASONING_JSON}
    return {name: value for name, value in (plain | structured).items() if value is not None}


def _signed(content: Any, author: str) -> Any:
    name = author.translate(_NAME_BREAKERS).strip()
    if isinstance(content, str):
        return f"[{name}] {content}"
    return [{"type": "text", "text": f"[{name}]"}, *content] if isinstance(content, list) else content
