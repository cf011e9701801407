"""Traces of turns, as a real collector receives them; and that one which is down is nobody's trouble."""

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from lane_house import dm
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from serving_house import Served, use_obedient_model, write_settings
from waiting import DEADLINE

from segue.agent.naming import Namer
from segue.gateway import spans as sending
from segue.gateway.at_work import Work
from segue.gateway.spans import Spans
from segue.testing import Stage

pytestmark = pytest.mark.on_file

SECRET = "the words that nobody else may read"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left when a gateway ends is sent, however long that takes."""
    monkeypatch.setattr(sending, "LEAVING_SECONDS", DEADLINE)


class Collector:
    """Takes OTLP over HTTP on loopback."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/v1/traces":
                    collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                    collector.bodies.append(body)
                    collector.requests.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - as the class has it

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(DEADLINE)


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def attributes(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value") or "string_value") for one in span.attributes}


def serve(home: Path, *said: str) -> Stage:
    """Let the owner say things, one after another, in a gateway of its own."""
    stage = Stage()
    served = Served(home, {"scripted": stage})

    async def work() -> None:
        for text in said:
            stage.say(dm("owner"), text)
            await served.quiet()

    try:
        served.run(work)
    finally:
        served.close()
    return stage


def test_a_turn_is_a_span_with_its_calls_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collector: Collector
) -> None:
    use_obedient_model(monkeypatch)
    telemetry = {"endpoint": collector.address, "headers": {"Authorization": "Bearer abc"}, "service_name": "mine"}
    home = write_settings(tmp_path / "home", telemetry=telemetry)
    serve(home, f'use terminal {{"command": "echo {SECRET}"}}')
    spans = {span.name: span for span in collector.spans()}
    assert sorted(spans) == ["chat obedient", "execute_tool terminal", "invoke_agent main"]
    turn, model, tool = spans["invoke_agent main"], spans["chat obedient"], spans["execute_tool terminal"]
    assert {span.trace_id for span in collector.spans()} == {turn.trace_id}
    assert {model.parent_span_id, tool.parent_span_id} == {turn.span_id}
    assert not turn.parent_span_id
    assert sum(span.name == "chat obedient" for span in collector.spans()) == 2
    said = attributes(turn)
    assert said["gen_ai.operation.name"] == "invoke_agent"
    assert (said["gen_ai.agent.name"], said["segue.platform"]) == ("main", "scripted")
    assert said["gen_ai.conversation.id"] == attributes(tool)["gen_ai.conversation.id"]
    assert "error.type" not in said
    asked = attributes(model)
    assert (asked["gen_ai.operation.name"], asked["gen_ai.request.model"]) == ("chat", "obedient")
    assert asked["gen_ai.provider.name"] == "test"
    assert {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"} <= asked.keys()
    assert attributes(tool)["gen_ai.tool.name"] == "terminal"
    assert (turn.kind, model.kind) == (Span.SPAN_KIND_INTERNAL, Span.SPAN_KIND_CLIENT)
    assert turn.start_time_unix_nano <= tool.start_time_unix_nano <= tool.end_time_unix_nano
    assert tool.end_time_unix_nano <= turn.end_time_unix_nano
    assert not any(SECRET.encode() in body for body in collector.bodies), "no contents of messages"
    [resource] = {one.resource.SerializeToString() for request in collector.requests for one in request.resource_spans}
    assert b"mine" in resource
    assert {headers["authorization"] for headers in collector.headers} == {"Bearer abc"}


def test_what_fails_says_so_in_its_span(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collector: Collector) -> None:
    use_obedient_model(monkeypatch)
    monkeypatch.setattr(Namer.__init__, "__defaults__", (0.1,))  # a title is asked of the model that waits
    telemetry = {"endpoint": collector.address + "/v1/traces"}
    serve(write_settings(tmp_path / "home", telemetry=telemetry), "use read_file {}")
    serve(write_settings(tmp_path / "hasty", telemetry=telemetry, agent={"turn_timeout": 1}), "wait 3600")
    spans = collector.spans()
    [tool] = [span for span in spans if span.name == "execute_tool read_file"]
    assert attributes(tool)["error.type"] == "tool_error"
    cut_off = [span for span in spans if attributes(span).get("error.type") == "cut_off"]
    assert [span.name for span in cut_off] == ["chat obedient"]
    assert {span.status.code for span in [tool, *cut_off]} == {Status.STATUS_CODE_ERROR}
    assert [attributes(span).get("segue.turn.was_stopped") for span in spans if span.name == "invoke_agent main"] == [
        False,
        True,
    ]


def test_a_collector_that_hangs_or_is_gone_delays_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hangs for ever: whoever waited for it would never come to an end."""
    monkeypatch.setattr(sending, "SENDING_SECONDS", 3600.0)
    monkeypatch.setattr(sending, "LEAVING_SECONDS", 0.1)
    use_obedient_model(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # which takes connections and never answers
        for name, port in (("hanging", silent.getsockname()[1]), ("gone", 9)):
            endpoint = f"http://127.0.0.1:{port}"
            home = write_settings(tmp_path / name, telemetry={"endpoint": endpoint})
            stage = serve(home, "hello", "again")
            assert stage.posted_to("owner") == ["You said: hello", "You said: again"]


def test_without_an_endpoint_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    home = write_settings(tmp_path / "home")
    script = f"""
import sys
from pathlib import Path
from segue import config
from segue.app.observing import Observing
from segue.app.serving import Serving
Observing(config.load(Path({str(home)!r}), {{}}), ["scripted"])
assert not [name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))]
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=DEADLINE)


def test_a_gateway_ends_although_its_last_spans_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are waited for, and not as long as a collector may take."""
    monkeypatch.setattr(sending, "SENDING_SECONDS", 3600.0)
    monkeypatch.setattr(sending, "LEAVING_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        spans = Spans(f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces", {}, "segue")
        with spans.seen(Work("lane", "session", "turn", "scripted", "main")):
            pass
        began = time.monotonic()
        asyncio.run(spans.close())
        assert time.monotonic() - began > 0.4
