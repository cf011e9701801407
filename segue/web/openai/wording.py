"""Items and chat messages become rows, and rows become items. Whatever is given comes back as it was given.

A row says to a model what it would say in a chat. The item that it came from is kept beside that, marked as belonging
to no provider, so that no model is shown it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from segue.core.messages import SUMMARY_SEQ, Draft, Message, Spot, decode, draft, text_of
from segue.core.sources import API_SERVER
from segue.web.openai.errors import Wrong

Item = dict[str, Any]

_TEXTS = {"text", "input_text", "output_text", "summary_text", "refusal"}
_PREFIXES = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_ITEM = re.compile(r"[a-z]+_(?P<session>.+)_(?P<seq>[0-9]{1,16})")
_WITH_STATUS = frozenset({"message", "function_call", "function_call_output"})


class Given(NamedTuple):
    """Something that a program says: as a chat has it, and the item that it was, if it was one."""

    role: str
    content: Any = None
    calls: Sequence[Mapping[str, Any]] = ()
    call_id: str | None = None
    name: str | None = None
    item: Item | None = None

    @property
    def mark(self) -> list[Any]:
        """What makes it the same as another, however it was written."""
        return [self.role, self.content or "", list(self.calls), self.call_id]

    @property
    def text(self) -> str:
        return text_of(self.content) or ""


def given_message(said: Mapping[str, Any], where: str) -> Given:
    """A message of a chat."""
    calls = said.get("tool_calls") or ()
    content = _chat_content(said.get("content"), where)
    return Given(_ROLES.get(said["role"], "tool"), content, calls, said.get("tool_call_id"), said.get("name"))


def given_item(item: Mapping[str, Any], where: str) -> Given:
    """An item; a message may do without its type."""
    kind = item.get("type") or ("message" if "role" in item else None)
    if not isinstance(kind, str):
        raise Wrong(f"'{where}' needs a type.", f"{where}.type", "invalid_value")
    match kind:
        case "message":
            return _message(item, where)
        case "function_call":
            said = {"name": _text(item, "name", where), "arguments": _text(item, "arguments", where)}
            call = {"id": _text(item, "call_id", where), "type": "function", "function": said}
            return Given("assistant", calls=(call,), item=_shown(item, kind))
        case "function_call_output":
            output = item.get("output")
            content = _chat_content(output if isinstance(output, str | list) else "", f"{where}.output")
            return Given("tool", content, call_id=_text(item, "call_id", where), item=_shown(item, kind))
        case "item_reference":
            raise Wrong("Items are given whole, not by reference.", where, "unsupported_parameter")
    return Given("assistant", item=_shown(item, kind))


def draft_of(given: Given, now: float) -> Draft:
    """A row that says it."""
    kept: dict[str, Any] = {}
    if given.item is not None:
        is_thought = given.item["type"] == "reasoning"
        kept = {"codex_reasoning_items" if is_thought else "codex_message_items": [given.item]}
    return draft(
        given.role,
        given.content,
        now,
        tool_calls=list(given.calls) or None,
        tool_call_id=given.call_id,
        tool_name=given.name if given.role == "tool" else None,
        provider=API_SERVER,
        **kept,
    )


def item_of(message: Message) -> Item | None:
    """What a row is as an item; nothing of what the agent does with tools of its own, and of summaries."""
    if message.seq == SUMMARY_SEQ:
        return None
    if kept := _kept(message):
        return {**kept, "id": item_id(kept["type"], message)}
    content = message.original
    if message.role == "tool" or not content:
        return None
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    shown = [_item_part(part, message.role) for part in parts if isinstance(part, dict)]
    return {
        "id": item_id("message", message),
        "type": "message",
        "role": message.role,
        "status": "completed",
        "content": shown,
    }


def item_id(kind: str, message: Message) -> str:
    return f"{_PREFIXES.get(kind, 'item')}_{message.session_id}_{message.seq}"


def spot_of(named: str) -> Spot | None:
    """Where the item is that an id names."""
    found = _ITEM.fullmatch(named)
    return Spot(found["session"], int(found["seq"])) if found else None


def _kept(message: Message) -> Item | None:
    if message.provider != API_SERVER:
        return None
    for column in (message.codex_message_items, message.codex_reasoning_items):
        kept = decode(column)
        if isinstance(kept, list) and kept and isinstance(kept[0], dict):
            return kept[0]
    return None


def _message(item: Mapping[str, Any], where: str) -> Given:
    role = item.get("role")
    if role not in _ROLES:
        raise Wrong(f"'{where}.role' must be one of {', '.join(_ROLES)}.", f"{where}.role", "invalid_value")
    content = item.get("content")
    if not isinstance(content, str | list):
        raise Wrong(f"'{where}.content' must be a text or a list.", f"{where}.content", "invalid_value")
    kind = "output_text" if role == "assistant" else "input_text"
    part = {"type": kind, "text": content, **({"annotations": []} if role == "assistant" else {})}
    shown = _shown(item, "message") | {"content": [part] if isinstance(content, str) else content}
    return Given(_ROLES[role], _chat_content(content, f"{where}.content"), item=shown)


def _shown(item: Mapping[str, Any], kind: str) -> Item:
    """An item as it comes back; its id is ours."""
    status = {"status": "completed"} if kind in _WITH_STATUS else {}
    kept = {name: value for name, value in item.items() if name != "id" and not (name == "status" and value is None)}
    return {"type": kind} | status | kept


def _chat_content(content: Any, where: str) -> Any:
    """The content as a chat has it: words alone when it is nothing else."""
    if content is None or isinstance(content, str):
        return content
    parts = [_chat_part(part, f"{where}[{number}]") for number, part in enumerate(content)]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _chat_part(part: Any, where: str) -> Item:
    match part:
        case {"type": kind, "text": str(text)} if kind in _TEXTS:
            return {"type": "text", "text": text}
        case {"type": "refusal", "refusal": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": str(url)}:
            detail = {"detail": part["detail"]} if isinstance(part.get("detail"), str) else {}
            return {"type": "image_url", "image_url": {"url": url, **detail}}
        case {"type": "input_file"}:
            return {"type": "file", "file": {name: value for name, value in part.items() if name != "type"}}
        case {"type": "image_url" | "file" | "input_audio"}:
            return dict(part)
    raise Wrong(f"'{where}' is no part that is understood here.", where, "invalid_value")


def _item_part(part: Mapping[str, Any], role: str) -> Item:
    """A part of a chat as items have it."""
    match part:
        case {"type": "text", "text": str(text)} if role == "assistant":
            return {"type": "output_text", "text": text, "annotations": []}
        case {"type": "text", "text": str(text)}:
            return {"type": "input_text", "text": text}
        case {"type": "image_url", "image_url": {"url": str(url)} as image}:
            return {"type": "input_image", "image_url": url, "detail": image.get("detail", "auto"), "file_id": None}
        case {"type": "file", "file": dict(file)}:
            return {"type": "input_file", **file}
    return dict(part)


def _text(item: Mapping[str, Any], name: str, where: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise Wrong(f"'{where}.{name}' must be a text.", f"{where}.{name}", "invalid_value")
    return value
