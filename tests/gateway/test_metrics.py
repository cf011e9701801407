"""Numbers for Prometheus: what the rows say, what was counted, and that nobody is named in them."""

import re
import time
from pathlib import Path

import pytest
from lane_house import Building, dm
from lane_rows import ALICE, BOB, answered, begin, cut_off, died, hold, live_run, say
from prometheus_client.parser import text_string_to_metric_families
from serving_house import Served, use_obedient_model, write_settings
from waiting import until

from segue.core.errors import StoreFull
from segue.core.events import Failed, ModelCalled, Reply
from segue.core.inbound import Receipt
from segue.core.leases import lane_lease, platform_lease, session_lease
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.usage import Usage
from segue.gateway.at_work import Work
from segue.gateway.metrics import CONTENT_TYPE, Counters, Link, exposition
from segue.gateway.probing import Probe
from segue.hookspecs import Hooks, MessageReceived, SendTried, StoreFailed, TurnEnded
from segue.ports.platform import SendLater, SendRefused
from segue.sessions.figures import Figures, figures
from segue.storage.store import SqlStore
from segue.testing import Stage
from segue.testing.stage import Posted
from segue.upkeep.living import is_gone

NOTHING = Figures({}, 0, 0, {}, 0, 0, {}, 0, 0)
WORK = Work("lane", "session", "turn", "scripted", "main")
RUNNING = {"segue_turns_running", "segue_leases_held", "segue_gateways_alive"}


def read(page: bytes) -> dict[tuple[str, ...], float]:
    """The samples of a page by name and labels, as Prometheus itself would read them."""
    families = text_string_to_metric_families(page.decode())
    return {
        (sample.name, *_values(sample.labels)): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def _values(labels: dict[str, str]) -> list[str]:
    """That of the platform first."""
    return [labels[name] for name in sorted(labels, key=lambda name: name != "platform")]


def seen_in(store: SqlStore, now: float | None = None) -> Figures:
    return store.read(OWNER, figures, time.time() if now is None else now, is_gone)


def test_an_empty_store_has_nothing(store: SqlStore) -> None:
    found = seen_in(store)
    assert set(found.inbox.values()) == set(found.outbox.values()) == {0}
    assert found[1:3] == (0.0, 0.0)
    assert (found.oldest_undelivered, found.turns_running, found.sessions, found.gateways) == (0.0, 0, 0, 0)
    assert found.leases == {"lane": 0, "platform": 0, "session": 0}


def test_the_rows_are_counted(store: SqlStore) -> None:
    gateway, now = live_run(store), time.time()
    hold(store, platform_lease("scripted", ""), gateway)
    answered(store, "hello", at=now - 50)
    died(store, "why?", "carol")
    say(store, "attended", at=now - 900)
    hold(store, lane_lease(ALICE), gateway)
    hold(store, session_lease("any"), gateway)
    found = seen_in(store, now)
    assert found.inbox == {"waiting": 1, "running": 0, "refused": 0, "dead": 1}
    assert found.outbox["pending"] == 2
    assert 40 < found.oldest_undelivered < 60
    assert found.oldest_waiting == pytest.approx(900, abs=1)
    assert found.oldest_unattended == 0.0, "somebody who is alive works there"
    assert found.leases == {"lane": 1, "platform": 1, "session": 1}
    assert (found.sessions, found.gateways, found.turns_running) == (2, 1, 0)


def test_what_nobody_works_on_is_told_apart_from_what_only_waits(store: SqlStore) -> None:
    gateway, now = live_run(store), time.time()
    say(store, "attended", at=now - 900)
    hold(store, lane_lease(ALICE), gateway)
    say(store, "unattended", "bob", at=now - 300)
    assert seen_in(store, now)[1:3] == pytest.approx((900, 300), abs=1)
    store.write(OWNER, lambda tx: tx.leases.change_run(gateway.id, process_started="another life"))
    found = seen_in(store, now)
    assert found.oldest_unattended == pytest.approx(900, abs=1), "whoever had the lane is dead"
    assert (found.leases["lane"], found.gateways) == (0, 0)
    assert BOB != ALICE


def test_a_turn_counts_while_somebody_who_is_alive_runs_it(store: SqlStore) -> None:
    gateway = live_run(store)
    begun = begin(store, say(store, "hello"))
    assert seen_in(store).turns_running == 0, "a turn of the dead is not at work"
    store.write(OWNER, lambda tx: tx.turns.change(begun.situation.turn.id, run_id=gateway.id))
    assert seen_in(store).turns_running == 1
    cut_off(store, "and?", "bob")
    assert seen_in(store).turns_running == 1


def test_clocks_that_disagree_make_nothing_younger_than_now(store: SqlStore) -> None:
    say(store, "from the future", at=time.time() + 60)
    assert seen_in(store)[1:3] == (0.0, 0.0)


@pytest.mark.on_file
def test_facts_are_counted_by_platform_and_outcome() -> None:
    counters = Counters(["scripted"])
    for receipt in Receipt:
        counters.hear(MessageReceived("scripted", receipt, 0.003))
    counters.hear(TurnEnded("lane", "session", "turn", "scripted", "done"))
    counters.hear(SendTried("scripted", "unknown"))
    counters.hear(StoreFailed("StoreFull"))
    found = read(exposition(counters, None, [])[0])
    assert {found["segue_messages_total", "scripted", receipt] for receipt in Receipt} == {1.0}
    assert found["segue_admission_seconds_count",] == 4
    assert found["segue_admission_seconds_bucket", "0.002"] == 0
    assert found["segue_admission_seconds_bucket", "0.005"] == 4
    assert found["segue_turns_ended_total", "scripted", "done"] == 1
    assert found["segue_deliveries_total", "scripted", "unknown"] == 1
    assert found["segue_store_faults_total", "StoreFull"] == 1


@pytest.mark.on_file
def test_calls_of_models_are_counted_with_what_came_of_them() -> None:
    counters = Counters([])
    with counters.seen(WORK) as see:
        see(ModelCalled("a", "one"))
        see(ModelCalled("b", "two"))  # the first one did not answer
        see(Reply("yes", usage=Usage(input_tokens=30, output_tokens=7, reasoning_tokens=2)))
        see(ModelCalled("b", "two"))
        see(Failed("It is too busy."))
        see(Failed("And more."))
        see(ModelCalled("b", "two"))
    found = read(exposition(counters, None, [])[0])
    assert [found["segue_model_calls_total", how] for how in ("answered", "failed", "stopped")] == [1, 2, 1]
    assert [found["segue_model_tokens_total", kind] for kind in ("input", "output", "reasoning")] == [30, 7, 2]


@pytest.mark.on_file
def test_two_gateways_in_a_process_count_apart() -> None:
    one, other = Counters([]), Counters([])
    one.hear(StoreFailed("StoreFull"))
    assert ("segue_store_faults_total", "StoreFull") in read(exposition(one, None, [])[0])
    assert ("segue_store_faults_total", "StoreFull") not in read(exposition(other, None, [])[0])


@pytest.mark.on_file
def test_the_page_is_one_that_prometheus_reads() -> None:
    links = [Link("telegram", True), Link("slack", True), Link("slack", False)]
    page, kind = exposition(Counters([]), NOTHING._replace(inbox={"waiting": 3}, oldest_unattended=1.5), links)
    assert kind == CONTENT_TYPE
    assert kind.startswith("text/plain; version=0.0.4")
    found = read(page)
    assert found["segue_inbox_messages", "waiting"] == 3
    assert found["segue_inbox_oldest_unattended_seconds",] == 1.5
    assert (found["segue_platform_up", "telegram"], found["segue_platform_up", "slack"]) == (1, 0)
    assert found["segue_store_readable",] == 1


@pytest.mark.on_file
def test_a_store_that_is_out_of_order_is_a_figure_too() -> None:
    found = read(exposition(Counters([]), None, [])[0])
    assert found["segue_store_readable",] == 0
    assert not RUNNING & {name for name, *_ in found}


def test_a_gateway_counts_what_it_does(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.gateway.delivery.pause_after", lambda _: 0.05)
    stage, counters = Stage(), Counters(["scripted"])
    tries = iter([SendLater("busy", 0.0), None, SendRefused("gone")])

    def before(_posted: Posted) -> None:
        if error := next(tries, None):
            raise error

    stage.before_post = before
    building = Building(store, stage, hooks=Hooks({}, counters.hear), seen=counters.seen)
    probe, pages = Probe(building.gateway, counters), []

    async def work() -> None:
        name = stage.say(dm(), "hello")
        await building.quiet()
        stage.say(dm(), "hello", message_id=name)  # which it brings once more
        stage.say(dm("bob"), "good morning")
        await building.quiet()
        pages.append(await probe.exposition())

    building.run(work)
    found = read(pages[0][0])
    assert found["segue_messages_total", "scripted", "accepted"] == 2
    assert found["segue_messages_total", "scripted", "known"] == 1
    assert found["segue_turns_ended_total", "scripted", "done"] == 2
    assert found["segue_deliveries_total", "scripted", "later"] == 1
    assert found["segue_deliveries_total", "scripted", "delivered"] == 1
    assert found["segue_deliveries_total", "scripted", "refused"] == 1
    assert found["segue_model_calls_total", "answered"] == 2
    assert (found["segue_sessions",], found["segue_platform_up", "scripted"]) == (2, 1)
    assert found["segue_inbox_oldest_unattended_seconds",] == 0


def test_a_store_that_fails_is_counted_by_kind(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.gateway.connecting.FIRST_PAUSE", 0.05)
    stage, counters = Stage(), Counters(["scripted"])
    building = Building(store, stage, hooks=Hooks({}, counters.hear))

    def full(*_: object, **__: object) -> None:
        raise StoreFull("The disk is full.")

    def faults() -> float:
        return read(exposition(counters, None, [])[0]).get(("segue_store_faults_total", "StoreFull"), 0.0)

    async def work() -> None:
        await until(lambda: building.gateway.connections[0].link.is_up)
        with monkeypatch.context() as patch:
            for name in ("write", "write_at_once", "write_together"):
                patch.setattr(store, name, full)
            stage.say(dm(), "hello")
            await until(faults)
        await building.quiet()

    building.run(work)
    assert faults() >= 1
    assert stage.posted_to("alice") == ["You said: hello"]


@pytest.mark.on_file
def test_no_label_names_anybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_obedient_model(monkeypatch)
    stage = Stage()
    served = Served(write_settings(tmp_path / "home"), {"scripted": stage})
    pages: list[bytes] = []

    async def work() -> None:
        stage.say(dm("mallory"), 'use session_search {"query": "xyzzy"}')
        await served.quiet()
        assert served._serving is not None
        pages.append((await served._serving.probe.exposition())[0])

    served.run(work)
    served.close()
    text = pages[0].decode()
    assert read(pages[0])["segue_turns_ended_total", "scripted", "done"] == 1
    for word in ("mallory", "xyzzy", "agent:main", "obedient", "session_search"):
        assert word not in text
    labels = set(re.findall(r'(\w+)="', text))
    assert labels <= {"platform", "state", "kind", "receipt", "outcome", "le"}
