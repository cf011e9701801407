"""A model server that counts what it is sent, refuses what is too long, and writes everything down: on both wires."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

Body = dict[str, Any]


class Asked(NamedTuple):
    """One request, as the server saw it."""

    body: Body
    tokens: int
    system: str
    last: str
    """The words of its last message."""


class Said(NamedTuple):
    """One answer: words, or a tool that is wanted."""

    text: str = ""
    tool: str | None = None
    arguments: str = "{}"


class CountingServer:
    """Counts a token for every four characters of the conversation, the instructions and the tools."""

    def __init__(self, window: int, answer: Callable[[Asked], Said]) -> None:
        self.journal: list[Asked] = []
        self.refused = 0
        self._window = window
        self._answer = answer

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._attend, "127.0.0.1", 0, limit=2**24)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        self._server.close()

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                lengths = [int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
                if not lengths:  # a question about models, which has no body
                    writer.write(_http(404, b"{}"))
                    continue
                body = json.loads(await reader.readexactly(lengths[0]))
                writer.write(self._reply(body, is_anthropic=b"/messages" in head.split(b"\r\n")[0]))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    def _reply(self, body: Body, *, is_anthropic: bool) -> bytes:
        asked = _asked(body, is_anthropic)
        self.journal.append(asked)
        if asked.tokens > self._window:
            self.refused += 1
            words = f"prompt is too long: {asked.tokens} tokens > {self._window} maximum context length"
            kind = "invalid_request_error"
            return _http(400, json.dumps({"type": "error", "error": {"type": kind, "message": words}}).encode())
        said = self._answer(asked)
        events = _anthropic(said, asked.tokens) if is_anthropic else _openai(said, asked.tokens)
        return _http(200, b"".join(events), "text/event-stream")


def _asked(body: Body, is_anthropic: bool) -> Asked:
    messages = body["messages"]
    system = body.get("system") if is_anthropic else next((m["content"] for m in messages if m["role"] == "system"), "")
    told = [messages, body.get("tools") or [], system if is_anthropic else ""]
    return Asked(body, len(json.dumps(told, ensure_ascii=False)) // 4, _words(system), _words(messages[-1]["content"]))


def _words(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or part.get("content") or "") for part in content)
    return str(content or "")


def _http(status: int, body: bytes, kind: str = "application/json") -> bytes:
    return b"HTTP/1.1 %d Whatever\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        status,
        kind.encode(),
        len(body),
        body,
    )


def _openai(said: Said, tokens: int) -> list[bytes]:
    def chunk(delta: Body, finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return b"data: " + json.dumps({**head, "choices": [choice], **more}).encode() + b"\n\n"

    deltas = [chunk({"role": "assistant", "content": said.text})]
    if said.tool:
        function = {"name": said.tool, "arguments": said.arguments}
        deltas.append(
            chunk({"tool_calls": [{"index": 0, "id": f"call_{tokens}", "type": "function", "function": function}]})
        )
    usage = {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}
    return [*deltas, chunk({}, "tool_calls" if said.tool else "stop", usage=usage), b"data: [DONE]\n\n"]


def _anthropic(said: Said, tokens: int) -> list[bytes]:
    def event(kind: str, **more: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()

    def block(number: int, begins: Body, delta: Body) -> list[bytes]:
        return [
            event("content_block_start", index=number, content_block=begins),
            event("content_block_delta", index=number, delta=delta),
            event("content_block_stop", index=number),
        ]

    head: Body = {"id": "1", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None}
    usage = {"input_tokens": tokens, "output_tokens": 1}
    blocks = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": said.text or "Let me see."})
    if said.tool:
        wanted = {"type": "tool_use", "id": f"toolu_{tokens}", "name": said.tool, "input": {}}
        blocks += block(1, wanted, {"type": "input_json_delta", "partial_json": said.arguments})
    stop = {"stop_reason": "tool_use" if said.tool else "end_turn", "stop_sequence": None}
    return [
        event("message_start", message={**head, "stop_sequence": None, "usage": usage}),
        *blocks,
        event("message_delta", delta=stop, usage={"output_tokens": 20}),
        event("message_stop"),
    ]
