"""The store: two methods that run a unit of work in one transaction, and the tables a transaction gives access to.

A transaction is opened under a scope, and every table it offers shows only what that scope may see.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from segue.core.insights import Conversation, Group, PriceTable, Slot, Spending
from segue.core.lineage import Link
from segue.core.messages import LARGEST_SEQ, Draft, Message, Said
from segue.core.policy import ResetReason
from segue.core.scope import Scope
from segue.core.sessions import Listed, Session
from segue.core.usage import Billing, Spent, Usage

if TYPE_CHECKING:  # slow to load, and only some commands need them
    from segue.core.background import Process
    from segue.core.credentials import Credential
    from segue.core.inbox import Entry
    from segue.core.jobs import Job
    from segue.core.leases import HeldLease, Lease, Run
    from segue.core.lifecycle import Lane
    from segue.core.links import LinkRow
    from segue.core.matching import Found
    from segue.core.outbox import Letter
    from segue.core.pairing import PairedPerson, Pairing
    from segue.core.query import Node, Term
    from segue.core.sources import SessionSource
    from segue.core.turns import Heard, Step, Turn

P = ParamSpec("P")
T = TypeVar("T")


class Filter(NamedTuple):
    """Which sessions to list; what is not said does not narrow."""

    sources: tuple[str, ...] = ()
    exclude_sources: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    archived: bool | None = False
    tips_only: bool = True
    tag: str | None = None
    agent: str | None = None
    active_since: float | None = None
    inactive_since: float | None = None
    ended: bool | None = None
    pinned: bool | None = None
    min_messages: int = 0
    beginning: str = ""
    """Of the id or of the title."""


class Entries(NamedTuple):
    """Which entries about model calls are wanted; what is not said does not narrow."""

    since: float | None = None
    sources: tuple[str, ...] = ()
    session_ids: tuple[str, ...] | None = None


class SourceCount(NamedTuple):
    source: str
    sessions: int
    messages: int


class TrashEntry(NamedTuple):
    """A session in the trash. Parts with the same `conversation` and moment were deleted, and come back, together."""

    id: int
    session_id: str
    conversation: str
    title: str | None
    first_line: str
    source: str
    principal: str
    audience: str
    message_count: int
    trashed_at: float


class ResetRow(NamedTuple):
    """That a lane got a new session: who asked or which rule, from which session to which."""

    lane_key: str
    at: datetime
    reason: ResetReason
    who: str
    from_session: str | None
    to_session: str
    had_activity: bool


class Orphans(NamedTuple):
    """Messages whose session is gone."""

    session_id: str
    messages: int
    first_at: float
    last_at: float


class Miscount(NamedTuple):
    """A session, and what its counters should say."""

    session_id: str
    message_count: int
    tool_call_count: int


class Titled(NamedTuple):
    """A session that has a title."""

    id: str
    title: str
    principal: str


class Sessions(Protocol):
    def find(self, session_id: str) -> Session | None: ...
    def insert(self, session: Session) -> bool:
        """Store a new session; False when the id is taken, whoever may see that session."""

    def change(self, session_id: str, **columns: Any) -> bool:
        """Set columns of one session; False when it is not there."""

    def record(self, session_id: str, *, messages: int, tool_calls: int, at: float, first_line: str) -> bool:
        """Keep the counters in step with a message that is being added."""

    def recount(self, session_id: str) -> None:
        """Make counters and preview say what is live."""

    def add_usage(self, session_id: str, usage: Usage, billing: Billing, *, absolute: bool) -> bool: ...
    def delete(self, session_ids: Collection[str]) -> int: ...
    def with_prefix(self, prefix: str, limit: int) -> list[str]: ...
    def titled(self, title: str) -> list[Listed]: ...
    def titles(self) -> list[Titled]:
        """Every title, the session that was active last first."""

    def holder_of(self, principal: str, title: str) -> Listed | None:
        """Whose a principal's title is, in whatever room: a title is theirs once."""

    def titles_of(self, principal: str, beginning: str, limit: int) -> list[str]:
        """A principal's titles that begin so, in whatever room, the longest and last first."""

    def open_in_lane(self, key: str, principal: str, audience: str) -> Session | None: ...
    def children(self, session_ids: Collection[str]) -> list[Link]: ...
    def spawned_by(self, session_ids: Collection[str]) -> list[str]: ...
    def listed(self, wanted: Filter, limit: int | None, offset: int) -> list[Listed]: ...
    def count(self, wanted: Filter) -> int: ...
    def by_source(self) -> list[SourceCount]: ...
    def talk_by(self, column: str, wanted: Filter) -> list[Group]:
        """How much was said, for each value of `model` or `source`."""

    def longest(self, wanted: Filter) -> Conversation | None:
        """The conversation with the most messages, all its parts together."""

    def in_order(self, sources: Collection[str] = ()) -> Iterator[Session]:
        """Every session, oldest first, read in small steps."""

    def tags(self, session_ids: Collection[str]) -> dict[str, list[str]]: ...
    def tag(self, session_id: str, tags: Iterable[str]) -> None: ...
    def untag(self, session_id: str, tags: Iterable[str]) -> None: ...


class Messages(Protocol):
    def append(self, session_id: str, message: Draft) -> tuple[int, int]:
        """Add at the end; the new row's id and seq."""

    def insert(self, session_id: str, seq: int, state: str, message: Draft) -> int:
        """Add at a given place, as imports and summaries do."""

    def of(
        self, session_id: str, *, every_state: bool = False, after: int = -1, limit: int | None = None, offset: int = 0
    ) -> list[Message]: ...
    def said(self, session_id: str, after: int = -1) -> list[Said]:
        """The live messages as a model is told of them."""

    def last(self, session_id: str, limit: int, *, every_state: bool = False) -> list[Message]:
        """The last messages, in reading order; costs the same however long the session is."""

    def find(self, message_id: int) -> Message | None: ...
    def find_seq(self, session_id: str, seq: int) -> Message | None: ...
    def last_user_seqs(self, session_id: str, limit: int | None = None) -> list[int]:
        """Where people said something, the newest first; a note about left-out messages is not theirs."""

    def mark(self, session_id: str, first_seq: int, old: str, new: str, last_seq: int = LARGEST_SEQ) -> int:
        """Change the state of every message from `first_seq` on, or up to another, that is in state `old`."""

    def prune(self, session_id: str, seq: int, noted: str) -> bool:
        """Note how much of a tool's result a model is still shown."""

    def count(self, session_id: str | None = None) -> int: ...
    def per_slot_since(self, moment: float, sources: Collection[str] = ()) -> Iterator[tuple[int, int]]:
        """How many live messages there were in each `SLOT` of time since a moment, counted from 1970 on."""

    def calls_since(self, moment: float, sources: Collection[str] = ()) -> Iterator[str]:
        """The tool calls of each live message since a moment that has any, as they are stored."""


class Lanes(Protocol):
    def find(self, key: str) -> "Lane | None": ...
    def find_by_session(self, session_id: str) -> "Lane | None": ...
    def insert(self, lane: "Lane") -> None: ...
    def change(self, lane: "Lane") -> bool:
        """Write a lane back; False when somebody changed it since it was read."""

    def set_origin(self, key: str, origin: "SessionSource") -> None:
        """What is known of its place; nobody who is changing the lane is disturbed."""

    def delete(self, key: str) -> bool: ...
    def listed(self, active_since: datetime | None = None, limit: int | None = None) -> "list[Lane]":
        """The most recently used first."""

    def unfinalised(self) -> "list[Lane]":
        """Those with a session that is not finalised, who has been silent for longest first."""

    def add_reset(self, row: ResetRow) -> None: ...
    def resets(self, key: str) -> list[ResetRow]: ...
    def reset_into(self, session_id: str) -> ResetRow | None:
        """The reset that a session began with."""


class Turns(Protocol):
    """Turns and their steps."""

    def find(self, turn_id: str) -> "Turn | None": ...
    def running_of(self, run_id: str) -> "list[Turn]":
        """The turns that a process has not brought to their end."""

    def farewells_of(self, run_id: str) -> "list[Turn]":
        """The farewells that a process has begun and not brought to their end."""

    def next_after(self, turn: "Turn") -> "Turn | None":
        """The turn that follows another one in its session."""

    def running_in(self, session_id: str) -> "Turn | None":
        """The turn of a session that has not come to its end."""

    def latest(self, session_id: str, kind: str) -> "Turn | None":
        """The last turn of a kind that a session had; one without an end comes before all others."""

    def owed(self) -> "list[Turn]":
        """Farewells that have not come to their end, the oldest first."""

    def insert(self, turn: "Turn") -> None:
        """Store a new turn. One runs in a session at a time."""

    def change(self, turn_id: str, **columns: Any) -> bool: ...
    def steps(self, turn_id: str) -> "list[Step]": ...
    def begin_step(self, step: "Step") -> None: ...
    def end_step(self, turn_id: str, number: int, state: str, at: float) -> bool: ...
    def hear(self, line: "Heard") -> None: ...
    def heard_in(self, session_id: str) -> "list[Heard]":
        """What was said in turns of a session and not heard, in the order in which it was said."""

    def forget_heard(self, line: "Heard") -> bool: ...


class Ledger(Protocol):
    """What models have used, call by call."""

    def add(self, *entries: Spent) -> None: ...
    def settle(self, session_id: str) -> None:
        """Note of every entry without an actual cost that it is in the bill for all of them."""

    def of(self, session_id: str) -> list[Spent]:
        """In the order in which it was used."""

    def total(self, wanted: Entries) -> Spending: ...
    def spending_by(self, column: str, wanted: Entries) -> list[Group]:
        """What was used, for each `model`, `source` or `purpose`; the most tokens first."""

    def per_slot(self, wanted: Entries) -> Iterator[Slot]: ...
    def prices(self, wanted: Entries) -> list[PriceTable]:
        """Where the prices of estimates come from; what most calls were estimated with first."""


class Processes(Protocol):
    """What runs in the background for sessions."""

    def find(self, process_id: str) -> "Process | None": ...
    def insert(self, process: "Process") -> None: ...
    def change(self, process_id: str, **columns: Any) -> bool: ...
    def of(self, session_id: str) -> "list[Process]": ...
    def running(self) -> "list[Process]": ...


class Standing(NamedTuple):
    """How many messages of a lane wait, and how many are being answered."""

    waiting: int
    running: int


class Queue(NamedTuple):
    """A lane with unfinished messages: how many there are, and when the oldest was accepted."""

    lane_key: str
    waiting: int
    oldest_at: float


class ChatCount(NamedTuple):
    """What came from a chat: how much is in each state, and when the first and the last of it came."""

    account: str
    chat: str
    states: dict[str, int]
    first_at: float
    last_at: float


class Inbox(Protocol):
    """Messages that were accepted, and how far platforms have been read."""

    def add(self, entry: "Entry") -> int | None:
        """Put a message down; its number, or nothing when it was accepted before."""

    def find(self, entry_id: int) -> "Entry | None": ...
    def named(self, entry: "Entry") -> "list[Entry]":
        """Every version of the same message."""

    def of_message(self, platform: str, account: str, chat: str, message_id: str) -> "list[Entry]":
        """Every version of a message, by its name."""

    def from_program(self, message_id: str) -> "list[Entry]":
        """What programs said under a name, the first first."""

    def last_from(self, platform: str, account: str, chat: str) -> "Entry | None":
        """What came last from a chat, of what was not erased."""

    def all_from(self, platform: str, account: str, chat: str) -> "list[Entry]":
        """Everything that ever came from a chat, in order; where that can be much, it is too much."""

    def chats(self, platform: str) -> list[ChatCount]:
        """Every chat of a platform, with how much of what came from there is in each state; who spoke last first."""

    def waiting(self, lane_key: str, limit: int | None = None) -> "list[Entry]":
        """In the order in which they were accepted."""

    def running(self, lane_key: str) -> "list[Entry]": ...
    def open_in(self, lane_key: str) -> "list[Entry]":
        """What waits in a lane and what is being answered there, in order."""

    def standing(self, lane_key: str) -> Standing: ...
    def left_out(self, lane_key: str, reason: str) -> "list[Entry]":
        """What was cancelled for a reason, and no turn was told of."""

    def of_turn(self, turn_id: str) -> "list[Entry]": ...
    def listed(self, states: Collection[str], limit: int | None = None) -> "list[Entry]": ...
    def latest(self, states: Collection[str], limit: int, lane_key: str | None = None) -> "list[Entry]":
        """The last ones of all lanes or of one, in the order in which they were accepted."""

    def count(self, states: Collection[str]) -> dict[str, int]:
        """How many there are in each state; a state that nothing is in is left out."""

    def queues(self, states: Collection[str]) -> list[Queue]:
        """Return the lanes that have messages in these states; the one with the oldest message comes first."""

    def open_lanes(self) -> list[str]:
        """Every lane in which something waits or runs; who has waited longest first."""

    def change(self, entries: "Sequence[Entry]", **columns: Any) -> int: ...
    def erase(self, session_ids: Collection[str]) -> int:
        """Remove the words of what belongs to sessions; that it was accepted stays known."""

    def cursor(self, platform: str, account: str, name: str) -> str | None: ...
    def move_cursor(self, platform: str, account: str, name: str, value: str) -> None: ...


class Outbox(Protocol):
    """What is to be sent."""

    def add(self, letter: "Letter") -> bool:
        """Put something down to be sent; False when that was done before, under the same key."""

    def find(self, letter_id: int) -> "Letter | None": ...
    def unsent(self, platform: str, account: str, known: Collection[int] = ()) -> "list[Letter]":
        """What has not certainly arrived, in order, without what is known already."""

    def is_awaited(self, platform: str, account: str, chat: str) -> bool:
        """Whether something for a chat has not certainly arrived."""

    def of_turn(self, turn_id: str) -> "list[Letter]": ...
    def keyed(self, keys: Collection[str]) -> "list[Letter]":
        """Those with one of these keys."""

    def listed(self, states: Collection[str], limit: int | None = None) -> "list[Letter]": ...
    def latest(self, states: Collection[str], limit: int, lane_key: str | None = None) -> "list[Letter]":
        """The last ones of all lanes or of one, in the order in which they were decided."""

    def count(self, states: Collection[str]) -> dict[str, int]:
        """How many there are in each state; a state that nothing is in is left out."""

    def change(self, letter_id: int, **columns: Any) -> bool: ...
    def remove(self, letter_id: int) -> bool: ...
    def erase(self, session_ids: Collection[str]) -> int:
        """Remove what was sent in sessions."""

    def doubt_sending(self, platform: str, account: str) -> int:
        """Nobody is sending any more: what was on its way may have arrived."""


class People(Protocol):
    """Who was let in, and who asks to be. Only for those who see everything."""

    def find(self, platform: str, peer: str) -> "PairedPerson | None": ...
    def listed(self) -> "list[PairedPerson]":
        """In the order in which they were let in."""

    def owners(self) -> "list[PairedPerson]":
        """Those among them who may do everything."""

    def put(self, person: "PairedPerson") -> None:
        """Let somebody in, or be something else than before."""

    def remove(self, platform: str, peer: str) -> bool: ...
    def pairings(self) -> "list[Pairing]":
        """Every code and every count of wrong ones, the oldest first."""

    def put_pairing(self, pairing: "Pairing") -> None:
        """Fill one of a person's slots, whatever was in it."""

    def use_pairing(self, pairing: "Pairing") -> bool:
        """Use a code up; False when somebody else did so first."""

    def forget_pairings(self, platform: str, peer: str) -> int: ...
    def forget_expired(self, now: float) -> int: ...


class Jobs(Protocol):
    """What runs at its moments. Only for those who see everything."""

    def find(self, name: str) -> "Job | None": ...
    def listed(self) -> "list[Job]":
        """By name."""

    def add(self, job: "Job") -> bool:
        """Put a job down; False when there is one of that name."""

    def change(self, name: str, **columns: Any) -> bool: ...
    def remove(self, name: str) -> bool: ...


class Tokens(Protocol):
    """Tokens of programs. Only for those who see everything."""

    def find(self, key_id: str) -> "Credential | None": ...
    def listed(self) -> "list[Credential]":
        """The oldest first."""

    def add(self, credential: "Credential") -> bool:
        """Keep a new token; False when there is one of that name."""

    def used(self, key_id: str, at: float) -> None: ...
    def remove(self, name: str) -> bool: ...
    def forget_expired(self, now: float) -> int: ...


class Leases(Protocol):
    """Who works on what, by the clock of the database."""

    def find(self, name: str) -> "HeldLease | None": ...
    def unexpired(self, beginning: str) -> "list[HeldLease]":
        """Those whose name begins so and whose time has not run out."""

    def take(self, name: str, owner: str, principal: str, seconds: float) -> "Lease":
        """Take a lease from whoever has it."""

    def hold(self, lease: "Lease", seconds: float) -> bool:
        """Keep a lease for a while longer; False when somebody else has it. Whoever else takes it meanwhile waits."""

    def release(self, lease: "Lease") -> None: ...
    def release_all(self, owner: str) -> None:
        """Let go of everything that a run held which is no more."""

    def now(self) -> float: ...
    def find_run(self, run_id: str) -> "Run | None": ...
    def open_runs(self) -> "list[Run]": ...
    def crashes(self, program: str, since: float) -> list[float]:
        """Return the times since then at which a run of this program was found to have crashed."""

    def add_run(self, run: "Run") -> None: ...
    def change_run(self, run_id: str, **columns: Any) -> bool: ...
    def links(self) -> "list[LinkRow]":
        """How each platform is connected, or was when somebody last tried."""

    def put_link(self, link: "LinkRow") -> None: ...
    def forget_runs(self, before: float, most: int) -> int:
        """Remove runs that ended before a moment; how many."""

    def forget_expired(self, before: float, most: int) -> int:
        """Remove leases that ran out before a moment and whose run is over; how many."""


class Trash(Protocol):
    def put(self, entry: TrashEntry, payload: str) -> TrashEntry:
        """Keep a session; the entry with its number."""

    def listed(self) -> list[TrashEntry]:
        """Everything, the latest first."""

    def older_than(self, moment: float) -> list[TrashEntry]: ...
    def oldest(self) -> float | None:
        """When the first of what is there was deleted."""

    def payload(self, entry: TrashEntry) -> str: ...
    def remove(self, entries: Collection[TrashEntry]) -> int: ...


class Meta(Protocol):
    def get(self, key: str) -> str | None: ...
    def set(self, key: str, value: str) -> None: ...
    def remove(self, key: str) -> None: ...
    def beginning(self, first: str) -> list[str]:
        """The keys that begin so, in order."""

    def drawer(self, scope: Scope) -> "Meta":
        """Somebody else's, for whoever sees everything; for everybody else it is their own."""


FEW_SESSIONS = 500
"""As many can be named in one question to the index."""


class Narrowing(NamedTuple):
    """What of the store is searched; what is not said does not narrow."""

    sources: tuple[str, ...] = ()
    exclude_sources: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    session_prefix: str = ""
    tag: str | None = None
    exclude_sessions: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    exclude_kinds: tuple[str, ...] = ()


class Chunk(NamedTuple):
    """Messages in the order of their timestamps."""

    found: "list[Found]"
    """Those that may be meant and may be seen."""
    certain_to: int
    """Up to this id they are meant for certain, so that nobody has to look at their words again."""
    is_cut: bool = False
    """Whether time ran out, so that these are only the best at hand."""


class IndexState(NamedTuple):
    """How much can be found through the index; the rest is looked through."""

    indexed_to: int
    last_id: int
    is_well: bool
    is_remaking: bool = False
    """Whether it was begun again and has not caught up yet."""


class Waiting(NamedTuple):
    """Messages behind the last one that the index has, up to another; prepared as only the index knows."""

    after: int
    upto: int
    is_last: bool
    prepared: object


class Search(Protocol):
    """Messages by their words."""

    def walk(
        self,
        tree: "Node | None",
        narrowing: Narrowing,
        *,
        in_tools: bool,
        time_left: Callable[[], float],
        newest_first: bool = True,
        uses_index: bool = True,
    ) -> "Iterator[Chunk]":
        """Every message that may be meant, in the order of their timestamps, a chunk at a time."""

    def unindexed(self, most: int) -> "list[Found]":
        """The newest of the messages that the index does not have yet."""

    def frequency(self, term: "Term", *, in_tools: bool, most: int) -> int:
        """In how many messages a term is, of those that may be seen and as far as it matters."""

    def state(self) -> IndexState: ...
    def is_whole(self) -> bool:
        """Whether the index fits together and holds every message it took in; reads all of it."""

    def count_waiting(self, most: int) -> int:
        """How many characters the next messages have that are to be taken in."""

    def waiting(self, most: int) -> Waiting:
        """The next messages that the index does not have, made ready for it."""

    def take_in(self, waiting: Waiting) -> None:
        """Take them into the index, unless somebody else has."""

    def begin_again(self) -> None:
        """An empty index, to be filled from the first message on."""


class Health(Protocol):
    """What no single table can say: whether the rows fit together. Only for those who see everything."""

    def orphans(self) -> list[Orphans]: ...
    def stray_tags(self) -> int: ...
    def remove_stray_tags(self) -> int: ...
    def miscounts(self) -> list[Miscount]: ...
    def unnoted(self) -> list[str]:
        """Sessions whose sums of tokens and costs are not those of their entries."""

    def attachments(self) -> Iterator[tuple[str, int, str]]:
        """Session, seq and attachments of every message that has some."""

    def files(self, session_ids: Collection[str] | None = None) -> Iterator[str]:
        """Every list of attachments that something needs, said or waiting; or all those of some sessions."""


class Transaction(Protocol):
    """One unit of work, all of it or nothing."""

    @property
    def scope(self) -> Scope: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def messages(self) -> Messages: ...
    @property
    def lanes(self) -> Lanes: ...
    @property
    def turns(self) -> Turns: ...
    @property
    def processes(self) -> Processes: ...
    @property
    def people(self) -> People: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def trash(self) -> Trash: ...
    @property
    def meta(self) -> Meta: ...
    @property
    def health(self) -> Health: ...
    @property
    def search(self) -> Search: ...


class Store(Protocol):
    @property
    def is_near(self) -> bool:
        """Whether this process writes and reads what there is by itself, which takes no time as a rule."""

    def write(
        self, scope: Scope, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `work` in one transaction. It may run again after a lost race, so it must only touch the database."""

    def read(
        self, scope: Scope, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `work` on one snapshot of the database, beside any writer."""

    def write_together(self, scope: Scope, works: "Sequence[Callable[[Transaction], T]]") -> list[T | Exception]:
        """Run several units of work in one transaction: each is done wholly or not at all, whatever the others do."""

    def write_at_once(self, scope: Scope, works: "Sequence[Callable[[Transaction], T]]") -> list[T | Exception]:
        """As many of several units of work as a moment allows, in one commit; none if anybody has to be waited for.

        What came of the first ones. What is left is for `write_together`, also if something went wrong.
        """

    def index_a_little(self) -> bool:
        """Take a few of the messages that were written at once into the search index, if many wait; whether to go on.

        Whoever else writes need not think of it.
        """

    def begin_index_again(self) -> None:
        """Let the search index be made anew, behind what is written from now on; not if it is held or cannot be."""
