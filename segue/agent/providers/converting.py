"""Conversations in our chat format as the libraries take them, and their answers as ours.

What is sent is a function of the conversation alone, message by message: a conversation that has grown begins with the
very bytes that it began with before, whoever sends it.

Beside its text, reasoning has a place, and signatures that a provider wants to see again. They are kept in
`reasoning_details`, a list of notes that only this file reads.
"""

import base64
import binascii
import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from segue.agent.choosing import Endpoint
from segue.agent.providers.pieces import joined
from segue.agent.providers.pricing import billing_of, cost_of, usage_of
from segue.core.errors import StreamBroken
from segue.core.events import Chat, Reply, ToolCall
from segue.core.messages import called, text_of
from segue.core.prices import UNKNOWN_TERMS, Terms

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]+);base64,")
MAX_REQUESTED_CALLS = 500
"""Of tools, in one answer."""
_FINISHES = {"stop": "stop", "length": "length", "content_filter": "content_filter", "error": "error"}
_IDS = {
    "anthropic": re.compile(r"[A-Za-z0-9_-]{1,40}"),
    "openai": re.compile(r"[A-Za-z0-9_-]{1,40}"),
    "mistral": re.compile(r"[A-Za-z0-9]{9}"),
}
"""Names of calls that a provider takes, for those that do not take every name."""
_TAGGED = "content"
"""Where the libraries say that reasoning came from when it stood between tags in the answer itself."""


class Voice(NamedTuple):
    """To whom a conversation is told."""

    kind: str
    provider: str


# There


def model_messages(conversation: Sequence[Chat], voice: Voice) -> tuple[list[ModelMessage], str | None]:
    """A conversation as the libraries take it, and the field that its reasoning goes back in, if it has any."""
    messages: list[ModelMessage] = []
    for role, chats in groupby(conversation, key=lambda chat: chat.get("role")):
        if role == "tool":
            messages.append(ModelRequest([_result(chat, voice) for chat in chats]))
        elif role == "assistant":
            messages += [ModelResponse(_answer(chat, voice), provider_name=voice.provider) for chat in chats]
        else:
            messages += [ModelRequest([UserPromptPart(_prompt(chat))]) for chat in chats]
    return messages, _field(messages)


def _field(messages: Sequence[ModelMessage]) -> str | None:
    parts = (part for message in messages for part in message.parts)
    return next((part.id for part in parts if isinstance(part, ThinkingPart) and part.id), None)


def _prompt(chat: Chat) -> str | list[UserContent]:
    content = chat.get("content")
    if chat.get("role") == "system":  # within a conversation, not every provider has a place for it
        return f"<system>\n{text_of(content) or ''}\n</system>"
    if isinstance(content, list) and any(_image(part) for part in content):
        return [_image(part) or text_of(part) or "" for part in content]
    return text_of(content) or ""


def _image(part: Any) -> UserContent | None:
    """A picture, from where it lies or in itself; None when it is neither, or of a kind that few can see."""
    said = part.get("image_url") if isinstance(part, dict) else None
    url = said.get("url") if isinstance(said, dict) else said
    if not isinstance(url, str):
        return None
    if url.startswith(("https://", "http://")):
        return ImageUrl(url)
    head = _DATA_URL.match(url)
    if head is None or head[1] not in _IMAGES:
        return None
    try:
        return BinaryContent(base64.b64decode(url[head.end() :], validate=True), media_type=head[1])
    except binascii.Error:
        return None


def _result(chat: Chat, voice: Voice) -> ToolReturnPart:
    is_error = chat.get("is_error") is True and voice.kind == "anthropic"  # the other has no place for it
    return ToolReturnPart(
        str(chat.get("name") or "tool"),
        text_of(chat.get("content")) or "",
        _fitting(str(chat.get("tool_call_id") or ""), voice),
        outcome="failed" if is_error else "success",
    )


def _answer(chat: Chat, voice: Voice) -> list[ModelResponsePart]:
    """The parts of an answer in the order in which they were said."""
    notes = _notes(chat)
    text = text_of(chat.get("content")) or ""
    calls = [call for call in chat.get("tool_calls") or [] if isinstance(call, dict)]
    parts: list[ModelResponsePart] = []
    chars, made = 0, 0
    for at_char, at_call, thought in _thoughts(chat, notes, voice):
        if at_char > chars and voice.kind == "anthropic":  # the other has one text for all of it
            parts += _text(text[chars:at_char])
            chars = at_char
        parts += [_call(call, notes, voice) for call in calls[made:at_call]]
        made = max(made, at_call)
        parts.append(thought)
    rest = _text(text[chars:])
    left = [_call(call, notes, voice) for call in calls[made:]]
    return parts + rest + left


def _text(text: str) -> list[ModelResponsePart]:
    return [TextPart(text)] if text.strip() else []


def _thoughts(chat: Chat, notes: Sequence[Chat], voice: Voice) -> Iterator[tuple[int, int, ThinkingPart]]:
    """Reasoning that its provider wants to see again, each piece with its place."""
    written = [note for note in notes if note.get("type") == "thinking"]
    if not written and voice.kind == "openai":
        written = [
            {"text": chat[field], "id": field} for field in ("reasoning_content", "reasoning") if chat.get(field)
        ][:1]
    for note in written:
        text, field, signature = (_string(note.get(name)) for name in ("text", "id", "signature"))
        if signature or (voice.kind == "openai" and field and field != _TAGGED):
            chars, made = _place(note.get("at"))
            yield chars, made, ThinkingPart(text or "", id=field, signature=signature, provider_name=voice.provider)


def _place(at: Any) -> tuple[int, int]:
    is_place = isinstance(at, list) and len(at) == 2 and all(isinstance(one, int) for one in at)
    return (at[0], at[1]) if is_place else (0, 0)


def _call(call: Chat, notes: Sequence[Chat], voice: Voice) -> ToolCallPart:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    name = str(call.get("id") or "")
    kept = next((note.get("details") for note in notes if note.get("type") == "call" and note.get("id") == name), None)
    details = kept if isinstance(kept, dict) else None
    return ToolCallPart(
        called(call),
        _sendable(name, called(call), arguments if isinstance(arguments, str) else "{}", voice),
        _fitting(name, voice),
        provider_name=voice.provider if details else None,
        provider_details=details,
    )


def _sendable(call_id: str, name: str, written: str, voice: Voice) -> str:
    """The arguments as the model wrote them; what is no object is quoted where the wire format wants one."""
    is_object = voice.kind != "anthropic" or ToolCall(call_id, name, written).parsed() is not None
    return written if is_object else json.dumps({"INVALID_JSON": written})


def _notes(chat: Chat) -> list[Chat]:
    notes = chat.get("reasoning_details")
    return [note for note in notes if isinstance(note, dict)] if isinstance(notes, list) else []


def _fitting(name: str, voice: Voice) -> str:
    """The name of a call as a provider takes it, the same for a call and its result."""
    pattern = _IDS.get(voice.provider)
    if name and (pattern is None or pattern.fullmatch(name)):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
    return digest[:9] if voice.provider == "mistral" else f"call_{digest[:24]}"


# And back


def reply_from(
    response: ModelResponse, endpoint: Endpoint, name: str, context_window: int | None, terms: Terms = UNKNOWN_TERMS
) -> Reply:
    """All that a model said, as ours."""
    calls, notes = _calls(response)
    text = joined("".join(part.content for part in response.parts if isinstance(part, TextPart)))
    thoughts = [part.content for part in response.parts if isinstance(part, ThinkingPart) and part.content]
    reasoning = joined("\n\n".join(thoughts)) or None
    notes = _thinking(response.parts) + notes
    details: Chat = {"reasoning_content": reasoning, "reasoning_details": notes or None}
    cost = cost_of(response, endpoint, name, terms)
    return Reply(
        text=text or _refusal(response),
        calls=tuple(calls),
        model=name,
        provider=endpoint.provider,
        finish_reason=_finish(response, bool(calls)),
        reasoning=reasoning,
        details={column: value for column, value in details.items() if value is not None},
        usage=usage_of(response)._replace(estimated_cost_usd=cost.usd),
        billing=billing_of(endpoint, name, cost),
        context_window=terms.window or context_window,
    )


def _calls(response: ModelResponse) -> tuple[list[ToolCall], list[Chat]]:
    """The calls, each with a name of its own, and what must go back with them."""
    calls: list[ToolCall] = []
    notes: list[Chat] = []
    taken: set[str] = set()
    for part in response.parts:
        if not isinstance(part, ToolCallPart):
            continue
        name = part.tool_call_id
        if not name or name in taken:
            name = f"call_{uuid.uuid4().hex[:24]}"
        taken.add(name)
        if len(calls) >= MAX_REQUESTED_CALLS:
            raise StreamBroken(f"The model wants more than {MAX_REQUESTED_CALLS} tools at once.")
        calls.append(ToolCall(joined(name), joined(part.tool_name), _arguments(part)))
        if part.provider_details:
            notes.append({"type": "call", "id": joined(name), "details": part.provider_details})
    return calls, notes


def _arguments(part: ToolCallPart) -> str:
    if isinstance(part.args, str):
        return joined(part.args) or "{}"
    return json.dumps(part.args or {}, ensure_ascii=False, separators=(",", ":"))


def _thinking(parts: Sequence[ModelResponsePart]) -> list[Chat]:
    """What reasoning must have beside it to be sent back: where it stood, and what it was signed with."""
    notes: list[Chat] = []
    chars, made = 0, 0
    for part in parts:
        if isinstance(part, TextPart):
            chars += len(joined(part.content))
        elif isinstance(part, ToolCallPart):
            made += 1
        elif isinstance(part, ThinkingPart):
            note = {"type": "thinking", "text": joined(part.content), "id": part.id, "signature": part.signature}
            notes.append({name: value for name, value in note.items() if value} | {"at": [chars, made]})
    return notes


def _finish(response: ModelResponse, has_calls: bool) -> str:
    finish = _FINISHES.get(response.finish_reason or "", "stop")
    return "tool_calls" if has_calls and finish == "stop" else finish


def _refusal(response: ModelResponse) -> str:
    said = (response.provider_details or {}).get("refusal")
    return joined(said) if isinstance(said, str) else ""


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
