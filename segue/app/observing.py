"""Who looks on while a gateway works: counters always, and traces where the settings say where to send them."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from segue.agent.turn import Emit
from segue.config import Settings
from segue.config.telemetry_settings import TelemetrySettings
from segue.core.errors import Invalid
from segue.core.events import Event
from segue.gateway.at_work import Work
from segue.gateway.metrics import Counters

if TYPE_CHECKING:
    from segue.gateway.spans import Spans


class Observing:
    """Everybody who looks on at turns."""

    def __init__(self, settings: Settings, platforms: Iterable[str]) -> None:
        self.counters = Counters(platforms)
        self._spans = _spans(settings.telemetry)

    @contextmanager
    def seen(self, work: Work) -> Iterator[Emit]:
        looking = [self.counters.seen] if self._spans is None else [self.counters.seen, self._spans.seen]
        with ExitStack() as stack:
            eyes = [stack.enter_context(look(work)) for look in looking]

            def see(event: Event) -> None:
                for eye in eyes:
                    eye(event)

            yield see

    async def close(self) -> None:
        if self._spans is not None:
            await self._spans.close()


def _spans(said: TelemetrySettings) -> "Spans | None":
    if not said.address:
        return None
    try:
        from segue.gateway.spans import Spans  # slow to load, and few trace
    except ImportError:
        raise Invalid("telemetry.endpoint needs OpenTelemetry: run pip install 'segue[telemetry]'.") from None
    return Spans(said.address, said.headers, said.service_name)
