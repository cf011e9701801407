"""Conversations of another machine, as its gateway tells of them."""

import time
from collections.abc import Iterator
from typing import Any

from segue.cli.output import note, show_json, table
from segue.cli.remote import Asked
from segue.cli.tables import session_table
from segue.core.errors import MessageNotFound
from segue.core.messages import Message, encode, text_of
from segue.core.sessions import Session, listed_from
from segue.ports.store import Filter
from segue.sessions.reading import Part

AROUND = 5
_PAGE = 1000


def show_listed(gateway: Asked, wanted: Filter, limit: int, *, as_json: bool) -> None:
    """`segue sessions list` of another machine."""
    params = {
        "sources": list(wanted.sources),
        "kind": wanted.kinds[0] if len(wanted.kinds) == 1 else None,
        "archived": bool(wanted.archived),
        "every": not wanted.tips_only,
        "tag": wanted.tag,
        "agent": wanted.agent,
        "active_since": wanted.active_since,
        "limit": min(limit, _PAGE),
    }
    answer = gateway.ask("sessions.list", {name: value for name, value in params.items() if value not in (None, [])})
    if as_json:
        show_json(answer["sessions"])
    elif answer["sessions"]:
        table(*session_table([listed_from(row) for row in answer["sessions"]], time.time()))
        if answer["has_more"]:
            note(f"… and more; --limit {limit * 2} shows more of them.")
    else:
        note(f"No conversation fits at {gateway.name}.")


def exported(gateway: Asked, session_id: str) -> dict[str, Any]:
    """A session whole, as an export has it."""
    asked = {"id": session_id, "raw": True}
    page = gateway.ask("sessions.export", asked | {"after": -1})
    found: dict[str, Any] = page["session"]
    while page["next"] is not None:
        page = gateway.ask("sessions.export", asked | {"after": page["next"]})
        found["messages"] += page["session"]["messages"]
    return found


def part_ids(gateway: Asked, wanted: str) -> list[str]:
    """The sessions of a conversation, from its beginning."""
    found: list[str] = gateway.ask("sessions.get", {"id": wanted})["parts"]
    return found


def conversation(gateway: Asked, wanted: str) -> dict[str, Any]:
    """A conversation as an export has it: its newest part, with those before it under `earlier`."""
    *earlier, tip = (exported(gateway, one) for one in part_ids(gateway, wanted))
    return tip | {"earlier": earlier}


def every_session(gateway: Asked, sources: tuple[str, ...]) -> Iterator[str]:
    """The ids of everything that is there, page by page."""
    offset = 0
    while True:
        params = {"every": True, "sources": list(sources), "limit": _PAGE, "offset": offset}
        answer = gateway.ask("sessions.list", params)
        yield from (row["id"] for row in answer["sessions"])
        offset += len(answer["sessions"])
        if not answer["has_more"]:
            return


def parts_of(gateway: Asked, wanted: str, around: int | None) -> list[Part]:
    """A conversation from its beginning, or what stands around one of its messages."""
    found = gateway.ask("sessions.get", {"id": wanted})
    ids = found["parts"] if around is None else [found["session"]["id"]]
    parts = [_part(exported(gateway, one)) for one in ids]
    if around is None:
        return [part._replace(messages=[one for one in part.messages if one.is_live]) for part in parts]
    near = [one for one in parts[0].messages if abs(one.seq - around) <= AROUND]
    if not any(one.seq == around for one in near):
        raise MessageNotFound(f"Session {ids[0]} has no message {around}.")
    return [parts[0]._replace(messages=near)]


def _part(data: dict[str, Any]) -> Part:
    session = Session(**{name: data[name] for name in Session._fields if name in data})
    return Part(session, [_message(session.id, one) for one in data["messages"]])


def _message(session_id: str, data: dict[str, Any]) -> Message:
    content, calls = data.get("content"), data.get("tool_calls")
    known = {name: data.get(name) for name in ("tool_call_id", "tool_name", "finish_reason", "author")}
    blank: dict[str, Any] = dict.fromkeys(Message._fields)
    said = blank | known | {"id": 0, "session_id": session_id, "seq": data["seq"], "state": data["state"]}
    said |= {"role": data["role"], "timestamp": data["timestamp"], "content": text_of(content)}
    return Message(**said | {"tool_calls": None if calls is None else encode(calls)})
