"""Traces of turns: one span for each, with one below it for each call of a model and of a tool.

The names are those of OpenTelemetry's conventions for generative AI. Nothing that anybody said is in them. Spans are
sent by a thread of their own; when nobody takes them they are dropped, and no turn waits for that or hears of it.
"""

import asyncio
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.util.types import AttributeValue

from segue.agent.turn import Emit
from segue.core.events import Done, Event, Failed, ModelCalled, Reply, ToolFinished, ToolStarted
from segue.gateway.at_work import Work

SENDING_SECONDS = 10.0
"""For which a collector is waited for, in the background."""
LEAVING_SECONDS = 2.0
"""For what is left when a gateway ends."""
_ERROR = "error.type"

_log = logging.getLogger(__name__)


class Spans:
    """Sends what it sees to a collector."""

    def __init__(self, address: str, headers: Mapping[str, str], service_name: str, pause: float = 5.0) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # that nobody takes spans is told below, once
        exporter = _Told(OTLPSpanExporter(address, headers=dict(headers), timeout=SENDING_SECONDS))
        named = Resource.create({"service.name": service_name})
        self._provider = TracerProvider(resource=named, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=pause * 1000))
        self._tracer = self._provider.get_tracer("segue")

    @contextmanager
    def seen(self, work: Work) -> Iterator[Emit]:
        """A turn, from its beginning to its end."""
        turn = _TurnSpans(self._tracer, work)
        try:
            yield turn.see
        except BaseException as error:
            turn.end(type(error).__qualname__)
            raise
        else:
            turn.end()

    async def close(self) -> None:
        """Send what is left, if that takes no longer than a moment."""
        closing = threading.Thread(target=self._provider.shutdown, name="segue-spans", daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, LEAVING_SECONDS)


class _TurnSpans:
    """The spans of one turn: that of the turn, and those of what is just being done in it."""

    def __init__(self, tracer: Tracer, work: Work) -> None:
        self._tracer = tracer
        self._session_id = work.session_id
        self._turn = self._begin(
            "invoke_agent",
            work.agent,
            SpanKind.INTERNAL,
            {"gen_ai.agent.name": work.agent, "segue.turn.id": work.turn_id, "segue.platform": work.platform},
            Context(),
        )
        self._below = set_span_in_context(self._turn, Context())
        self._model: Span | None = None
        self._tools: dict[str, Span] = {}
        self._used = (0, 0)

    def see(self, event: Event) -> None:
        match event:
            case ModelCalled(model, provider):
                self._end_model("unanswered")  # another one is asked in its place
                asked = {"gen_ai.request.model": model, "gen_ai.provider.name": provider}
                self._model = self._begin("chat", model, SpanKind.CLIENT, asked, self._below)
            case Reply():
                self._answered(event)
            case ToolStarted(call):
                about = {"gen_ai.tool.name": call.name, "gen_ai.tool.call.id": call.id}
                self._tools[call.id] = self._begin("execute_tool", call.name, SpanKind.INTERNAL, about, self._below)
            case ToolFinished(call):
                if span := self._tools.pop(call.id, None):
                    _end(span, "tool_error" if event.is_error else None)
            case Failed():
                self._end_model("unanswered")
                _fail(self._turn, "failed")
            case Done(was_stopped):
                self._turn.set_attribute("segue.turn.was_stopped", was_stopped)

    def end(self, error: str | None = None) -> None:
        """Whatever is still being done has come to its end with the turn."""
        for span in self._tools.values():
            _end(span, "cut_off")
        self._end_model("cut_off")
        _end(self._turn, error)

    def _answered(self, reply: Reply) -> None:
        said, wrote = reply.usage.input_tokens, reply.usage.output_tokens
        self._used = (self._used[0] + said, self._used[1] + wrote)
        _use(self._turn, *self._used)
        if self._model is not None:
            _use(self._model, said, wrote)
            self._model.set_attribute("gen_ai.response.finish_reasons", [reply.finish_reason])
            if reply.model:
                self._model.set_attribute("gen_ai.response.model", reply.model)
        self._end_model(None)

    def _end_model(self, error: str | None) -> None:
        if self._model is not None:
            _end(self._model, error)
            self._model = None

    def _begin(
        self, operation: str, name: str, kind: SpanKind, about: Mapping[str, AttributeValue], above: Context
    ) -> Span:
        common = {"gen_ai.operation.name": operation, "gen_ai.conversation.id": self._session_id}
        return self._tracer.start_span(f"{operation} {name}", above, kind, {**common, **about})


def _use(span: Span, said: int, wrote: int) -> None:
    span.set_attributes({"gen_ai.usage.input_tokens": said, "gen_ai.usage.output_tokens": wrote})


def _fail(span: Span, error: str) -> None:
    span.set_attribute(_ERROR, error)
    span.set_status(Status(StatusCode.ERROR))


def _end(span: Span, error: str | None) -> None:
    if error is not None:
        _fail(span, error)
    span.end()


class _Told(SpanExporter):
    """Says in the log when spans are not taken any more, and when they are again: once each."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._is_well = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        is_well = result is SpanExportResult.SUCCESS
        if self._is_well and not is_well:
            _log.warning("Traces are not taken where telemetry.endpoint says; they are dropped until they are.")
        elif is_well and not self._is_well:
            _log.info("Traces are taken again.")
        self._is_well = is_well
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
