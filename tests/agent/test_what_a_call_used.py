"""What a provider says a call used ends in the columns that others document, with what it cost."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from raw_model_server import Play, RawModelServer
from waiting import DEADLINE

from segue import SessionDB, app
from segue.app.chatting import OpenChat
from segue.config import settings_from
from segue.core.events import Done, Event, ToolCall


def openai() -> list[bytes]:
    def data(said: Any) -> bytes:
        return f"data: {said if isinstance(said, str) else json.dumps(said)}\n\n".encode()

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    usage = {
        "prompt_tokens": 1_000,
        "completion_tokens": 300,
        "total_tokens": 1_300,
        "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 200},
    }
    pieces = [chunk({"role": "assistant", "reasoning_content": "Hm."}), chunk({"content": "Yes."}), chunk({}, "stop")]
    return [*map(data, pieces), data({**chunk({}), "choices": [], "usage": usage}), data("[DONE]")]


def anthropic() -> list[bytes]:
    def event(kind: str, **more: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()

    used = {
        "input_tokens": 100,
        "output_tokens": 1,
        "cache_read_input_tokens": 600,
        "cache_creation_input_tokens": 300,
    }
    message: dict[str, Any] = {"id": "1", "type": "message", "role": "assistant", "content": [], "model": "m"}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": used}
    return [
        event("message_start", message=message),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Yes."}),
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 300}),
        event("message_stop"),
    ]


async def nobody(_call: ToolCall, _risk: str) -> bool:
    return False


async def talk(home: Path, kind: str, url: str) -> str:
    raw = {
        "model": "here/m",
        "models": {"prices": {"m": {"input": 2.0, "output": 8.0, "cache_read": 0.5, "cache_write": 4.0}}},
        "providers": {"here": {"kind": kind, "base_url": url, "api_key": "x"}},
    }
    settings = settings_from(raw, home, {})
    events: list[Event] = []
    with app.open_store(chosen=settings) as store:
        opened = OpenChat(settings, store, home, nobody, print)
        await opened.begin()
        await opened.chat.say("Is it so?", events.append)
        session_id = str(opened.chat.session_id)
        await opened.close()
    assert events[-1] == Done()
    return session_id


@pytest.mark.parametrize(
    ("kind", "pieces", "counted", "dollars"),
    [
        ("openai", openai(), (1_000, 300, 600, 0, 200), (400 * 2 + 600 * 0.5 + 300 * 8) / 1e6),
        ("anthropic", anthropic(), (1_000, 300, 600, 300, 0), (100 * 2 + 600 * 0.5 + 300 * 4 + 300 * 8) / 1e6),
    ],
)
def test_every_count_and_its_cost_is_kept(
    tmp_path: Path, kind: str, pieces: list[bytes], counted: tuple[int, ...], dollars: float
) -> None:
    server = RawModelServer(Play(pieces))
    try:
        url = server.url + ("/v1" if kind == "openai" else "")
        session_id = asyncio.run(asyncio.wait_for(talk(tmp_path / "home", kind, url), DEADLINE))
    finally:
        server.close()
    with SessionDB(tmp_path / "home" / "state.db") as db:
        session = db.get_session(session_id)
    assert session is not None
    times = session["api_call_count"]
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    assert tuple(session[name] / times for name in names) == counted
    assert session["estimated_cost_usd"] / times == pytest.approx(dollars)
    for name in (
        "billing_provider",
        "billing_base_url",
        "billing_mode",
        "cost_status",
        "cost_source",
    ):
        assert session[name], name
