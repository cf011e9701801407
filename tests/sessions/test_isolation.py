"""Nobody is told anything of what is not theirs to see, whichever way they ask."""

import io
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from examples import examples
from health_checks import SHARED_STORE
from hypothesis import given
from hypothesis import strategies as st
from waiting import DEADLINE

from segue.core.background import Process, ProcessState
from segue.core.credentials import Credential
from segue.core.errors import SegueError
from segue.core.ids import LaneKey
from segue.core.inbound import Inbound
from segue.core.inbox import OPEN, Entry, InboxState, entry_of
from segue.core.jobs import Job
from segue.core.lifecycle import Lane
from segue.core.markdown import Markdown
from segue.core.messages import draft
from segue.core.outbox import OutboxState, What
from segue.core.pairing import PairedPerson, Pairing
from segue.core.policy import ResetReason
from segue.core.query import Word, parse
from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.core.sources import SessionSource
from segue.core.turns import Heard, Step, StepKind, StepState, Turn, TurnState
from segue.core.usage import Billing, Usage
from segue.ports import store as ports
from segue.ports.store import Filter, Narrowing, ResetRow, Transaction
from segue.sessions import discarding, exporting, finding, insights, listing, reading, recalling, searching
from segue.sessions.delivering import Posting, envelope_of, post
from segue.sessions.recording import add_usage, append_message
from segue.storage.store import SqlStore

NOW = 1_700_000_000.0
ROOM, HALL = Audience("room"), Audience("hall")
PEOPLE = ["owner", "telegram:1", "telegram:2", ROOM]
PLACES = ["", ROOM, HALL]
SCOPES = [
    OWNER_AT_CONSOLE,
    Scope(Principal("owner"), ROOM),
    *(Scope(Principal(person)) for person in PEOPLE[1:]),
    *(Scope(Principal(person), place) for person in PEOPLE[1:3] for place in (ROOM, HALL)),
]
EVERY = Filter(archived=None, tips_only=False)
MARKER = re.compile(r"zq\d\d")


def may_see(scope: Scope, principal: str, audience: str) -> bool:
    """Said a second time, in other words than the store's."""
    if scope.principal == "owner" and scope.audience == "console":
        return True
    if scope.audience == "":
        return principal == scope.principal
    return audience == scope.audience and principal in (scope.principal, scope.audience)


Numbers = tuple[Sequence[int], Sequence[int]]
"""Those of everything in the inbox and in the outbox."""


class Asker:
    """Somebody who asks for everything, knowing every name."""

    def __init__(self, tx: Transaction, names: list[str], numbers: Numbers = ((), ())) -> None:
        self.tx = tx
        self.received, self.sent = numbers
        newest = tx.search.state().last_id
        self.ids = [f"{name}-id" for name in names]
        self.titles = [f"{name}-title" for name in names]
        self.lanes = [f"{name}-lane" for name in names]
        self.turns = [f"{name}-turn" for name in names]
        self.processes = [f"{name}-process" for name in names]
        self.runs = [f"{name}-run" for name in names]
        self.entries = [_entry(name, *PLACES[:1], *PEOPLE[:1]) for name in names]
        self.people = [f"{name}-peer" for name in names]
        self.tokens = [f"{name}-token" for name in names]
        self.jobs = [f"{name}-job" for name in names]
        self.words = [f"{name}w" for name in names]
        self.numbers = range(newest - 3 * len(names), newest + 1)

    def each(self, work: Callable[[Any], Any], over: Any) -> Iterator[Any]:
        for one in over:
            with suppress(SegueError, KeyError):
                found = work(one)
                yield list(found) if isinstance(found, Iterator) else found


def every_table(asker: Asker) -> dict[str, Any]:
    """What each reading method of each table says."""
    tx, each = asker.tx, asker.each
    return {
        "Sessions.find": each(tx.sessions.find, asker.ids),
        "Sessions.with_prefix": each(lambda prefix: tx.sessions.with_prefix(prefix, 50), ["", "z", *asker.ids]),
        "Sessions.titled": each(tx.sessions.titled, asker.titles),
        "Sessions.titles": tx.sessions.titles(),
        "Sessions.open_in_lane": each(
            lambda key: [tx.sessions.open_in_lane(key, *them) for them in itertools.product(PEOPLE, PLACES)],
            asker.lanes,
        ),
        "Sessions.children": each(lambda one: tx.sessions.children([one]), asker.ids),
        "Sessions.spawned_by": each(lambda one: tx.sessions.spawned_by([one]), asker.ids),
        "Sessions.listed": tx.sessions.listed(EVERY, None, 0),
        "Sessions.count": tx.sessions.count(EVERY),
        "Sessions.by_source": tx.sessions.by_source(),
        "Sessions.talk_by": [tx.sessions.talk_by(column, EVERY) for column in ("model", "source")],
        "Sessions.longest": tx.sessions.longest(EVERY),
        "Sessions.in_order": list(tx.sessions.in_order()),
        "Sessions.tags": tx.sessions.tags(asker.ids),
        "Messages.of": each(lambda one: tx.messages.of(one, every_state=True), asker.ids),
        "Messages.said": each(tx.messages.said, asker.ids),
        "Messages.last": each(lambda one: tx.messages.last(one, 9, every_state=True), asker.ids),
        "Messages.find": each(tx.messages.find, asker.numbers),
        "Messages.find_seq": each(lambda one: tx.messages.find_seq(one, 1), asker.ids),
        "Messages.last_user_seqs": each(tx.messages.last_user_seqs, asker.ids),
        "Messages.count": [tx.messages.count(), *each(tx.messages.count, asker.ids)],
        "Messages.per_slot_since": list(tx.messages.per_slot_since(0.0)),
        "Messages.calls_since": list(tx.messages.calls_since(0.0)),
        "Lanes.find": each(tx.lanes.find, asker.lanes),
        "Lanes.find_by_session": each(tx.lanes.find_by_session, asker.ids),
        "Lanes.listed": tx.lanes.listed(),
        "Lanes.unfinalised": tx.lanes.unfinalised(),
        "Lanes.resets": each(tx.lanes.resets, asker.lanes),
        "Lanes.reset_into": each(tx.lanes.reset_into, asker.ids),
        "Inbox.find": each(tx.inbox.find, asker.received),
        "Inbox.named": each(tx.inbox.named, asker.entries),
        "Inbox.of_message": each(
            lambda one: tx.inbox.of_message(one.platform, one.account, one.chat, one.message_id), asker.entries
        ),
        "Inbox.from_program": each(lambda one: tx.inbox.from_program(one.message_id), asker.entries),
        "Inbox.all_from": each(lambda one: tx.inbox.all_from(one.platform, one.account, one.chat), asker.entries),
        "Inbox.chats": tx.inbox.chats("telegram"),
        "Inbox.last_from": each(lambda one: tx.inbox.last_from(one.platform, one.account, one.chat), asker.entries),
        "Inbox.waiting": each(tx.inbox.waiting, asker.lanes),
        "Inbox.open_in": each(tx.inbox.open_in, asker.lanes),
        "Inbox.running": each(tx.inbox.running, asker.lanes),
        "Inbox.standing": each(tx.inbox.standing, asker.lanes),
        "Inbox.left_out": each(lambda key: tx.inbox.left_out(key, ""), asker.lanes),
        "Inbox.of_turn": each(tx.inbox.of_turn, asker.turns),
        "Inbox.listed": tx.inbox.listed(list(InboxState)),
        "Inbox.latest": tx.inbox.latest(list(InboxState), 99),
        "Inbox.count": tx.inbox.count(list(InboxState)),
        "Inbox.queues": tx.inbox.queues(OPEN),
        "Inbox.open_lanes": tx.inbox.open_lanes(),
        "Outbox.find": each(tx.outbox.find, asker.sent),
        "Outbox.unsent": tx.outbox.unsent("telegram", ""),
        "Outbox.is_awaited": each(
            lambda entry: tx.outbox.is_awaited("telegram", "", entry.chat) and entry.chat, asker.entries
        ),
        "Outbox.keyed": tx.outbox.keyed([f"{one.text[:4]}:0" for one in asker.entries]),
        "Outbox.of_turn": each(tx.outbox.of_turn, asker.turns),
        "Outbox.listed": tx.outbox.listed(list(OutboxState)),
        "Outbox.latest": tx.outbox.latest(list(OutboxState), 99),
        "Outbox.count": tx.outbox.count(list(OutboxState)),
        "Turns.find": each(tx.turns.find, asker.turns),
        "Turns.running_of": each(tx.turns.running_of, asker.runs),
        "Turns.farewells_of": each(tx.turns.farewells_of, asker.runs),
        "Turns.next_after": each(lambda one: tx.turns.next_after(Turn("", one, "", "", 1, 0, NOW)), asker.ids),
        "Turns.latest": each(lambda one: tx.turns.latest(one, "answer"), asker.ids),
        "Turns.owed": tx.turns.owed(),
        "Turns.heard_in": each(tx.turns.heard_in, asker.ids),
        "Turns.running_in": each(tx.turns.running_in, asker.ids),
        "Turns.steps": each(tx.turns.steps, asker.turns),
        "Ledger.of": each(tx.ledger.of, asker.ids),
        "Processes.of": each(tx.processes.of, asker.ids),
        "Processes.running": tx.processes.running(),
        "Processes.find": each(tx.processes.find, asker.processes),
        "People.find": each(lambda peer: tx.people.find("telegram", peer), asker.people),
        "People.listed": tx.people.listed(),
        "People.owners": tx.people.owners(),
        "People.pairings": tx.people.pairings(),
        "Tokens.find": each(tx.tokens.find, asker.tokens),
        "Tokens.listed": tx.tokens.listed(),
        "Jobs.find": each(tx.jobs.find, asker.jobs),
        "Jobs.listed": tx.jobs.listed(),
        "Ledger.total": tx.ledger.total(ports.Entries()),
        "Ledger.spending_by": [
            *(tx.ledger.spending_by(column, ports.Entries()) for column in ("model", "source", "purpose")),
            *each(lambda one: tx.ledger.spending_by("model", ports.Entries(session_ids=(one,))), asker.ids),
        ],
        "Ledger.per_slot": list(tx.ledger.per_slot(ports.Entries())),
        "Ledger.prices": tx.ledger.prices(ports.Entries()),
        "Trash.listed": tx.trash.listed(),
        "Trash.older_than": tx.trash.older_than(NOW + 9),
        "Trash.oldest": tx.trash.oldest(),
        "Trash.payload": each(tx.trash.payload, tx.trash.listed()),
        "Meta.get": each(tx.meta.get, ["note"]),
        "Meta.beginning": each(lambda first: [(key, tx.meta.get(key)) for key in tx.meta.beginning(first)], ["", "no"]),
        "Meta.drawer": each(lambda scope: tx.meta.drawer(scope).get("note"), SCOPES),
        "Search.unindexed": tx.search.unindexed(99),
        "Search.walk": each(
            lambda word: list(tx.search.walk(Word(word), Narrowing(), in_tools=True, time_left=lambda: DEADLINE)),
            [*asker.words, "common"],
        ),
    }


NO_READS = {
    "Sessions": "insert change record recount add_usage delete tag untag",
    "Messages": "append insert mark prune",
    "Lanes": "insert change set_origin delete add_reset",
    "Turns": "insert change begin_step end_step hear forget_heard",
    "Ledger": "add settle",
    "Processes": "insert change",
    "People": "put remove put_pairing use_pairing forget_pairings forget_expired",
    "Jobs": "add change remove",
    "Tokens": "add used remove forget_expired",
    "Inbox": "add change erase move_cursor",
    "Outbox": "add change remove erase doubt_sending",
    "Leases": "take hold release release_all now add_run change_run put_link forget_runs forget_expired",
    "Trash": "put remove",
    "Meta": "set remove",
    "Search": "count_waiting waiting take_in begin_again",  # all messages, for the index and nobody else
}
TELL_NOTHING = {
    "Sessions": "holder_of titles_of",  # a principal's titles, in whatever room, so that each is theirs once
    "Inbox": "cursor",  # how far a platform was read, which the program asks for itself
    # asked by the program itself; nobody said any of it
    "Leases": "find find_run unexpired open_runs crashes links",
    "Search": "frequency state is_whole",  # numbers; that they tell nothing is asked of whole answers elsewhere
}


def every_use(asker: Asker) -> dict[str, Any]:
    """What each use case says that people and programs read through."""
    tx, each = asker.tx, asker.each
    words = ["common", "", "zq", "~zq0", "zq*", "comm", "title:zq", "NOT xyz", "in:tools zq*", *asker.words]
    wishes = [searching.Wish(limit=99, sort=sort) for sort in searching.Sort]

    def secondly() -> float:
        return DEADLINE

    def document(work: Callable[..., int], *args: Any) -> str:
        sink = io.StringIO()
        work(tx, sink.write, *args)
        return sink.getvalue()

    return {
        "find_id": each(lambda one: finding.find_id(tx, one), [*asker.ids, *asker.titles, "zq"]),
        "find_titled": each(lambda one: finding.find_titled(tx, one), asker.titles),
        "find_parts": each(lambda one: finding.find_parts(tx, one), asker.ids),
        "find_conversation": each(lambda one: finding.find_conversation(tx, one), asker.ids),
        "list": listing.list_rows(tx, EVERY, 99),
        "stats": listing.stats(tx),
        "insights": insights.insights(tx, 0.0),
        "transcript": each(lambda one: reading.transcript_of(tx, one), asker.ids),
        "excerpt": each(lambda one: reading.excerpt_of(tx, one, 1), asker.ids),
        "conversation": each(lambda one: reading.conversation(tx, one), asker.ids),
        "export": each(lambda one: exporting.export_session(tx, one), asker.ids),
        "export all": document(exporting.export_lines),
        "document": document(exporting.export_document, Markdown(), str),
        "prunable": discarding.find_prunable(tx, NOW + 9),
        "trash": each(lambda one: discarding.find_trashed(tx, one), asker.ids),
        "search": [searching.search(tx, parse(word), wish, NOW, UTC, secondly) for word in words for wish in wishes],
        "recall": each(lambda word: recalling.recall(tx, parse(word), NOW, UTC, secondly, limit=99), words),
    }


def told(said: Any) -> set[str]:
    """The markers in an answer; a question's own words do not count as told."""
    if isinstance(said, searching.Answer):
        return told([(hit.found, hit.snippet) for hit in said.hits])
    if isinstance(said, recalling.Recall):
        return told(said.recollections)
    if isinstance(said, Iterator | list) and not isinstance(said, str):
        return set().union(*map(told, said))
    return set(MARKER.findall(repr(said)))


def _entry(name: str, audience: str, principal: str) -> Entry:
    inbound = Inbound(SessionSource(platform="telegram", chat_id=f"{name}-chat"), f"{name}-message", f"{name}w")
    return entry_of(inbound, f"{name}-lane", principal, audience, principal, NOW)


def furnish(tx: Transaction, owners: list[tuple[str, str]]) -> None:
    at = datetime.fromtimestamp(NOW, UTC)
    for number, (principal, audience) in enumerate(owners):
        name = f"zq{number:02}"
        has_parent = number % 4 != 0 and owners[number - 1] == (principal, audience)
        parent = f"zq{number - 1:02}-id" if has_parent else None
        session = Session(
            f"{name}-id", "cli", started_at=NOW, principal=principal, audience=audience, title=f"{name}-title",
            model=f"{name}-model", lane_key=f"{name}-lane", parent_session_id=parent, spawned_by=parent,
        )  # fmt: skip
        assert tx.sessions.insert(session)
        tx.sessions.tag(session.id, [f"{name}-tag"])
        call = {"id": "1", "type": "function", "function": {"name": f"{name}tool", "arguments": "{}"}}
        append_message(tx, session.id, draft("user", f"{name}w common", NOW))
        append_message(tx, session.id, draft("assistant", f"{name}w common", NOW, tool_calls=[call]))
        append_message(tx, session.id, draft("tool", f"{name}w common output", NOW, tool_call_id="1"))
        billing = Billing(f"{name}-model", cost_source=f"{name}-prices")
        add_usage(tx, session.id, Usage(1, api_call_count=1, estimated_cost_usd=1.0), billing, NOW)
        tx.turns.insert(Turn(f"{name}-turn", session.id, f"{name}-run", TurnState.RUNNING, 1, 1, NOW))
        tx.turns.begin_step(Step(f"{name}-turn", 1, StepKind.TOOL, f"{name}tool", "1", 0, StepState.BEGUN, NOW))
        tx.turns.hear(Heard(f"{name}-turn", 1, f"{name}w", NOW))
        process = Process(f"{name}-process", session.id, "run", f"{name}w", "/", 1, ProcessState.RUNNING, NOW)
        tx.processes.insert(process)
        received = _entry(name, audience, principal)
        entry_id = tx.inbox.add(received)
        assert entry_id is not None
        tx.inbox.change([received._replace(id=entry_id)], turn_id=f"{name}-turn")
        program = SessionSource(platform="api_server", chat_id=f"{name}-chat", user_id="x")
        asked = Inbound(program, f"{name}-message", f"{name}w")
        tx.inbox.add(entry_of(asked, f"{name}-lane", principal, audience, principal, NOW))
        envelope = envelope_of(received._replace(id=entry_id), name, session.id, f"{name}-turn")
        post(tx, Posting(lambda _platform, _account: None), envelope, f"{name}w", What.REPLY, NOW)
        tx.people.put(PairedPerson("telegram", f"{name}-peer", "person", f"{name}w", NOW, "console"))
        tx.people.put_pairing(
            Pairing("telegram", f"{name}-peer", 1, "", f"{name}-chat", f"{name}w", NOW, NOW + 9, 0, "pending")
        )
        tx.tokens.add(Credential(f"{name}-token", f"{name}w", "", "read", "owner", NOW))
        tx.jobs.add(Job(f"{name}-job", "0 7 * * *", "UTC", f"{name}w", NOW))
        key = LaneKey(f"{name}-lane")
        tx.lanes.insert(Lane(key, None, at, principal=principal, audience=audience, created_at=at, updated_at=at))
        tx.lanes.add_reset(ResetRow(key, at, ResetReason.ASKED, name, None, session.id, True))
        if number % 4 == 3:
            discarding.discard_session(tx, session.id, NOW)


def test_every_method_that_reads_is_asked(store: SqlStore) -> None:
    asked = store.read(OWNER_AT_CONSOLE, lambda tx: set(every_table(Asker(tx, []))))
    tables = (
        ports.Sessions,
        ports.Messages,
        ports.Lanes,
        ports.Turns,
        ports.Ledger,
        ports.Processes,
        ports.People,
        ports.Jobs,
        ports.Tokens,
        ports.Inbox,
        ports.Outbox,
        ports.Leases,
        ports.Trash,
        ports.Meta,
        ports.Search,
    )
    for table in tables:
        known = {name for name in vars(table) if not name.startswith("_")}
        left_out = {*NO_READS.get(table.__name__, "").split(), *TELL_NOTHING.get(table.__name__, "").split()}
        assert {f"{table.__name__}.{name}" for name in known - left_out} <= asked


OWNERS = st.lists(st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PLACES)), min_size=2, max_size=9)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@given(owners=OWNERS, is_indexed=st.booleans())
@examples(12, in_torture=200, suppress_health_check=SHARED_STORE)
def test_nobody_is_told_of_what_is_not_theirs(store: SqlStore, owners: list[tuple[str, str]], is_indexed: bool) -> None:
    check_what_is_told(store, owners, is_indexed=is_indexed)


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
@given(owners=OWNERS)
@examples(4, in_torture=40, suppress_health_check=SHARED_STORE)
def test_a_server_tells_nobody_of_what_is_not_theirs(store: SqlStore, owners: list[tuple[str, str]]) -> None:
    check_what_is_told(store, owners, is_indexed=False)


def check_what_is_told(store: SqlStore, owners: list[tuple[str, str]], *, is_indexed: bool) -> None:
    empty(store)
    store.write(OWNER_AT_CONSOLE, furnish, owners)
    for scope in SCOPES:
        store.write(scope, note, "".join(own(scope, owners)))
    if is_indexed:
        store.index_all()
    names = [f"zq{number:02}" for number in range(len(owners))]
    numbers = numbers_in(store)
    for scope in SCOPES:
        seen = own(scope, owners)
        for verb, markers in store.read(scope, answers, names, numbers).items():
            assert markers <= seen, f"{verb} tells {scope} of {markers - seen}"


def test_whoever_may_see_it_is_told(store: SqlStore) -> None:
    """The control: the same questions do find what may be seen."""
    store.write(OWNER_AT_CONSOLE, furnish, [("telegram:1", ""), ("telegram:2", ""), ("telegram:1", ROOM)])
    names = ["zq00", "zq01", "zq02"]
    found = store.read(Scope(Principal("telegram:1")), answers, names, numbers_in(store))
    for verb in (
        "Inbox.find",
        "Outbox.find",
        "Sessions.listed",
        "Messages.of",
        "Messages.find",
        "Search.walk",
        "search",
        "recall",
        "export all",
        "Ledger.of",
        "Ledger.prices",
    ):
        assert found[verb] >= {"zq00", "zq02"}, verb
    silent = {verb for verb, markers in found.items() if not markers}
    assert silent <= {
        "Sessions.count", "Sessions.by_source", "Messages.count", "Messages.per_slot_since", "Trash.oldest", "stats",
        "Messages.last_user_seqs", "Sessions.spawned_by", "Trash.listed", "Trash.older_than", "Trash.payload", "trash",
        "Sessions.children", "prunable", "Messages.said", "Ledger.total", "Ledger.per_slot",
        "Inbox.left_out", "Inbox.running", "Inbox.standing", "Inbox.count", "Outbox.count",
        "Turns.owed", "People.find", "People.listed", "People.owners", "People.pairings", "Jobs.find", "Jobs.listed",
        "Turns.farewells_of", "Tokens.find", "Tokens.listed", "Meta.get", "Meta.beginning", "Meta.drawer",
        "Search.unindexed",
    }  # fmt: skip
    owner = store.read(OWNER_AT_CONSOLE, answers, names, numbers_in(store))
    for verb in (
        "People.find",
        "People.listed",
        "People.pairings",
        "Jobs.find",
        "Jobs.listed",
        "Tokens.find",
        "Tokens.listed",
    ):  # which nobody else is told of
        assert owner[verb] == {"zq00", "zq01", "zq02"}


def note(tx: Transaction, text: str) -> None:
    tx.meta.set("note", text)


def own(scope: Scope, owners: list[tuple[str, str]]) -> set[str]:
    return {f"zq{number:02}" for number, them in enumerate(owners) if may_see(scope, *them)}


def numbers_in(store: SqlStore) -> Numbers:
    def work(tx: Transaction) -> Numbers:
        received, sent = tx.inbox.latest(list(InboxState), 99), tx.outbox.latest(list(OutboxState), 99)
        return [one.id for one in received], [one.id for one in sent]

    return store.read(OWNER_AT_CONSOLE, work)


def answers(tx: Transaction, names: list[str], numbers: Numbers) -> dict[str, set[str]]:
    asker = Asker(tx, names, numbers)
    return {verb: told(said) for verb, said in (every_table(asker) | every_use(asker)).items()}


def empty(store: SqlStore) -> None:
    def work(tx: Transaction) -> None:
        for lane in tx.lanes.listed():
            tx.lanes.delete(lane.key)
        tx.sessions.delete([session.id for session in tx.sessions.listed(EVERY, None, 0)])
        tx.trash.remove(tx.trash.listed())
        for person in tx.people.listed():
            tx.people.remove(person.platform, person.peer)
            tx.people.forget_pairings(person.platform, person.peer)
        for token in tx.tokens.listed():
            tx.tokens.remove(token.name)
        for job in tx.jobs.listed():
            tx.jobs.remove(job.name)

    store.write(OWNER_AT_CONSOLE, work)
    with store._engine.writing(9.0, OWNER_AT_CONSOLE) as executor:
        for table in ("inbox", "outbox"):  # whose rows nobody deletes
            executor.run(f"DELETE FROM {table}", {})
