"""Numbers for Prometheus: what the rows say at the moment, and what this process has counted since it began.

Each gateway has a registry of its own. A label says on which platform, in which state or of which kind something is;
none ever holds what people wrote, or who they are.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from segue.agent.turn import Emit
from segue.core.events import Event, Failed, ModelCalled, Reply
from segue.gateway.at_work import Work
from segue.hookspecs import Fact, MessageReceived, SendTried, StoreFailed, TurnEnded
from segue.sessions.figures import Figures

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")
_OTHER = "other"
"""Stands for platforms that this gateway does not know."""


class Link(NamedTuple):
    """A platform, and whether it is connected here."""

    platform: str
    is_up: bool
    is_standby: bool = False
    """True if another gateway is connected, and this one takes over when that one is gone."""


class Counters:
    """What happened in this process, told by facts and by the events of turns."""

    def __init__(self, platforms: Iterable[str]) -> None:
        self._platforms = frozenset(platforms)
        self.registry = CollectorRegistry()
        self._messages = self._counter(
            "segue_messages", "Messages that platforms brought, by what they were told.", "platform", "receipt"
        )
        self._admission = Histogram(
            "segue_admission_seconds",
            "From when a platform brought a message until it was told that it is safe.",
            registry=self.registry,
            buckets=_SECONDS,
        )
        self._turns = self._counter("segue_turns_ended", "Turns that came to their end, by how.", "platform", "state")
        self._sends = self._counter(
            "segue_deliveries", "What platforms were given to send, by what came of it.", "platform", "outcome"
        )
        self._faults = self._counter("segue_store_faults", "What the store could not do, by kind of error.", "kind")
        self._calls = self._counter("segue_model_calls", "Calls of models in turns, by what came of them.", "outcome")
        self._tokens = self._counter("segue_model_tokens", "Tokens that calls of models in turns used.", "kind")

    def hear(self, fact: Fact) -> None:
        """Count a fact."""
        match fact:
            case MessageReceived(platform, receipt, seconds):
                self._messages.labels(self._known(platform), receipt).inc()
                self._admission.observe(seconds)
            case TurnEnded():
                self._turns.labels(self._known(fact.platform), fact.state).inc()
            case SendTried(platform, outcome):
                self._sends.labels(self._known(platform), outcome).inc()
            case StoreFailed(kind):
                self._faults.labels(kind).inc()

    @contextmanager
    def seen(self, _work: Work) -> Iterator[Emit]:
        """Count the calls of models in a turn; one without an answer has failed, or was stopped with its turn."""
        is_asked = False

        def see(event: Event) -> None:
            nonlocal is_asked
            match event:
                case ModelCalled():
                    if is_asked:
                        self._calls.labels("failed").inc()  # and another one is asked in its place
                    is_asked = True
                case Reply(usage=usage):
                    is_asked = False
                    self._calls.labels("answered").inc()
                    for kind in _TOKENS:
                        if number := max(getattr(usage, f"{kind}_tokens"), 0):
                            self._tokens.labels(kind).inc(number)
                case Failed() if is_asked:
                    is_asked = False
                    self._calls.labels("failed").inc()

        try:
            yield see
        finally:
            if is_asked:
                self._calls.labels("stopped").inc()

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self.registry)

    def _known(self, platform: str) -> str:
        return platform if platform in self._platforms else _OTHER


def exposition(counters: Counters, read: Figures | None, links: Iterable[Link]) -> tuple[bytes, str]:
    """The page that Prometheus reads, and its type. Without figures, since the store is out of order, the rest."""
    page = CollectorRegistry()
    page.register(_Rows(read, links))
    return generate_latest(page) + generate_latest(counters.registry), CONTENT_TYPE


class _Rows(Collector):
    """What was read, as numbers that go up and down."""

    def __init__(self, read: Figures | None, links: Iterable[Link]) -> None:
        self._read = read
        self._links = list(links)

    def describe(self) -> Iterable[Metric]:
        return []  # nobody else is on this page

    def collect(self) -> Iterator[Metric]:
        yield _gauge("segue_store_readable", "Whether the store could be read just now.", int(self._read is not None))
        up: dict[str, int] = {}
        standby: dict[str, int] = {}
        for link in self._links:  # of several accounts on a platform, one that is down counts
            up[link.platform] = min(up.get(link.platform, 1), int(link.is_up))
            standby[link.platform] = max(standby.get(link.platform, 0), int(link.is_standby))
        yield _gauges("segue_platform_up", "Whether a platform is connected here.", "platform", up)
        yield _gauges(
            "segue_platform_standby", "Whether another gateway is connected, and this one waits.", "platform", standby
        )
        if (read := self._read) is None:
            return
        yield _gauges("segue_inbox_messages", "Messages that are not answered, by state.", "state", read.inbox)
        yield _gauge(
            "segue_inbox_oldest_waiting_seconds", "For how long a message has waited at most.", read.oldest_waiting
        )
        yield _gauge(
            "segue_inbox_oldest_unattended_seconds",
            "The same of messages whose lane nobody works in; more than a few seconds is a fault.",
            read.oldest_unattended,
        )
        yield _gauges("segue_outbox_letters", "What has not arrived, by state.", "state", read.outbox)
        yield _gauge(
            "segue_outbox_oldest_undelivered_seconds",
            "For how long something has waited to be delivered at most.",
            read.oldest_undelivered,
        )
        yield _gauge("segue_turns_running", "Turns that are at work, in all gateways.", read.turns_running)
        yield _gauges("segue_leases_held", "Leases that are held, by what they are for.", "kind", read.leases)
        yield _gauge("segue_sessions", "Sessions in the store.", read.sessions)
        yield _gauge("segue_gateways_alive", "Gateways of this store that are alive.", read.gateways)


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value=value)


def _gauges(name: str, meaning: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for said, value in values.items():
        family.add_metric([str(said)], value)
    return family
