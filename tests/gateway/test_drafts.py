"""The row of an answer that is being shown: what may be shown, and what becomes of it."""

from collections.abc import Callable

import pytest
from lane_house import Building, HeldModel, dm
from waiting import until

from segue.core.events import Reply
from segue.core.inbox import Entry
from segue.core.leases import Lease, lane_lease
from segue.core.outbox import Letter, What
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sending import Action, SendPolicy
from segue.core.turns import TurnState
from segue.ports.store import Transaction
from segue.sessions.answering import end_answer
from segue.sessions.delivering import Envelope, Posting, begin_sending, envelope_of, post, send_anew
from segue.sessions.drafting import Drafted, Unshown, begin_draft, may_show_more, note_shown, note_unshown
from segue.sessions.turning import Outcome
from segue.storage.store import SqlStore
from segue.testing import Stage
from segue.testing.platform import TRAITS

LANE = "agent:main:scripted:dm:alice"
POSTING = Posting(lambda _platform, _account: TRAITS)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was left there is not waited for in the end."""
    monkeypatch.setattr("segue.gateway.gateway.LEAVING_SECONDS", 0.01)


class Desk:
    """A turn that runs, and what would be shown of it."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        [self.entry] = store.read(OWNER, lambda tx: tx.inbox.listed(("running",)))
        held = store.read(OWNER, lambda tx: tx.leases.find(lane_lease(LANE)))
        assert held is not None
        self.lease = Lease(held.name, held.owner, held.epoch)

    def begin(self, *, has_key: bool = True, posting: Posting = POSTING, chat: str = "alice") -> Drafted | Unshown:
        envelope = self._envelope(self.entry)._replace(source=dm(chat))
        return self.store.write(OWNER, begin_draft, self.lease, posting, envelope, "It▌", 1.0, has_key=has_key)

    def drafted(self) -> Letter:
        begun = self.begin()
        assert isinstance(begun, Drafted)
        return begun.letter

    def complete(self) -> None:
        self.store.write(OWNER, post, POSTING, self._envelope(self.entry), "It is noon.", What.REPLY, 2.0)

    def letter(self, letter_id: int) -> Letter | None:
        return self.store.read(OWNER, lambda tx: tx.outbox.find(letter_id))

    def _envelope(self, entry: Entry) -> Envelope:
        return envelope_of(entry, f"{entry.turn_id}:reply", entry.session_id, entry.turn_id)


def during_a_turn(store: SqlStore, look: Callable[[Desk], None]) -> None:
    """While a model thinks and nothing is delivered."""
    stage, model = Stage(), HeldModel(lambda _: Reply("one two three"))
    building = Building(store, stage, model=model)

    async def work() -> None:
        stage.say(dm(), "what time is it?")
        await until(lambda: store.read(OWNER, lambda tx: tx.inbox.listed(("running",))))
        look(Desk(store))
        model.release()

    building.run(work)


def test_a_beginning_is_noted_once(store: SqlStore) -> None:
    def look(desk: Desk) -> None:
        first, second = desk.begin(), desk.begin()
        assert isinstance(first, Drafted)
        assert isinstance(second, Drafted)
        assert (first.is_new, second.is_new) == (True, False)
        assert first.letter == second.letter

    during_a_turn(store, look)


def test_what_may_be_there_without_a_name_is_not_begun_again_where_nothing_has_a_key(store: SqlStore) -> None:
    def look(desk: Desk) -> None:
        letter = desk.drafted()
        assert desk.begin(has_key=False) is Unshown.EVER
        desk.store.write(OWNER, note_shown, letter.id, "p1")
        assert isinstance(desk.begin(has_key=False), Drafted)

    during_a_turn(store, look)


def test_an_answer_that_began_elsewhere_is_not_begun_here(store: SqlStore) -> None:
    def look(desk: Desk) -> None:
        desk.drafted()
        assert desk.begin(chat="bob") is Unshown.EVER

    during_a_turn(store, look)


def test_what_is_held_back_is_not_begun(store: SqlStore) -> None:
    def look(desk: Desk) -> None:
        assert desk.begin(posting=POSTING._replace(policy=SendPolicy(default=Action.DENY))) is Unshown.EVER

    during_a_turn(store, look)


def test_a_complete_answer_is_not_begun_and_shown_no_more(store: SqlStore) -> None:
    def look(desk: Desk) -> None:
        letter = desk.drafted()
        assert desk.store.read(OWNER, may_show_more, desk.lease, letter.id)
        desk.store.write(OWNER, note_shown, letter.id, "p1")
        desk.complete()
        assert not desk.store.read(OWNER, may_show_more, desk.lease, letter.id)
        assert desk.begin() is Unshown.YET
        completed = desk.letter(letter.id)
        assert completed is not None
        assert (completed.text, completed.state, completed.message_id) == ("It is noon.", "pending", "p1")

    during_a_turn(store, look)


def test_whoever_has_lost_the_lane_shows_no_more(store: SqlStore) -> None:
    def look(desk: Desk) -> None:
        letter = desk.drafted()
        lost = desk.lease._replace(epoch=desk.lease.epoch - 1)
        assert not desk.store.read(OWNER, may_show_more, lost, letter.id)

    during_a_turn(store, look)


def test_what_certainly_is_not_there_is_sent_like_anything_else(store: SqlStore) -> None:
    def look(desk: Desk) -> None:
        letter = desk.drafted()
        desk.store.write(OWNER, note_unshown, desk.lease, letter.id)
        assert desk.letter(letter.id) is None
        again = desk.drafted()
        desk.complete()
        desk.store.write(OWNER, note_unshown, desk.lease, again.id)
        pending = desk.letter(again.id)
        assert pending is not None
        assert (pending.state, pending.is_shown) == ("pending", 0)

    during_a_turn(store, look)


@pytest.mark.parametrize(
    "meanwhile",
    [
        {"state": "delivered", "message_id": "p1", "attempts": 1},
        {"state": "sending", "attempts": 1},
        {"state": "unknown", "attempts": 1},
        {"state": "dead", "attempts": 1},
        {"state": "unknown", "message_id": "p1"},
    ],
    ids=str,
)
def test_what_another_gateway_has_sent_meanwhile_is_not_sent_like_anything_else(
    store: SqlStore, meanwhile: dict[str, str | int]
) -> None:
    def look(desk: Desk) -> None:
        letter = desk.drafted()
        desk.complete()
        desk.store.write(OWNER, lambda tx: tx.outbox.change(letter.id, **meanwhile))
        before = desk.letter(letter.id)
        desk.store.write(OWNER, note_unshown, desk.lease, letter.id)
        assert desk.letter(letter.id) == before
        desk.store.write(OWNER, lambda tx: tx.outbox.remove(letter.id))

    during_a_turn(store, look)


def test_whoever_has_lost_the_lane_does_not_forget_what_its_new_holder_shows(store: SqlStore) -> None:
    def look(desk: Desk) -> None:
        letter = desk.drafted()
        lost = desk.lease._replace(epoch=desk.lease.epoch - 1)
        desk.store.write(OWNER, note_unshown, lost, letter.id)
        assert desk.letter(letter.id) == letter

    during_a_turn(store, look)


def test_what_may_be_there_without_a_name_is_marked_unless_it_has_a_key(store: SqlStore) -> None:
    def look(desk: Desk) -> None:
        letter = desk.drafted()
        desk.complete()

        def marks(tx: Transaction) -> list[int]:
            found = [begin_sending(tx, letter.id, has_key=has_key) for has_key in (True, False)]
            return [leaving.letter.is_repeat for leaving in found if leaving]

        assert desk.store.write(OWNER, marks) == [0, 1]

    during_a_turn(store, look)


def test_what_was_sent_and_could_not_be_noted_may_be_there_twice(store: SqlStore) -> None:
    def look(desk: Desk) -> None:
        desk.complete()
        [letter] = desk.store.read(OWNER, lambda tx: tx.outbox.of_turn(desk.entry.turn_id or ""))

        def twice(tx: Transaction) -> list[int]:
            found = [begin_sending(tx, letter.id, has_key=False) for _ in range(2)]
            return [leaving.letter.is_repeat for leaving in found if leaving]

        assert desk.store.write(OWNER, twice) == [0, 1]

    during_a_turn(store, look)


@pytest.mark.parametrize(
    ("state", "said", "seen"),
    [
        (TurnState.DONE, "It is noon.", "It is noon."),
        (TurnState.DONE, "NO_REPLY", "(no answer)"),
        (TurnState.DONE, "", "(no answer)"),
        (TurnState.STOPPED, "It is **no", "It is **no**\n\n(stopped)"),
        (TurnState.STOPPED, "", "(stopped)"),
        (TurnState.FAILED, "", "It was cut off too often."),
    ],
)
def test_what_was_shown_ends_as_its_turn_does(store: SqlStore, state: TurnState, said: str, seen: str) -> None:
    def look(desk: Desk) -> None:
        letter = desk.drafted()
        desk.store.write(OWNER, note_shown, letter.id, "p1")
        turn = desk.store.read(OWNER, lambda tx: tx.turns.find(letter.turn_id or ""))
        assert turn is not None
        reason = None if state is TurnState.DONE else "It was cut off too often."
        desk.store.write(OWNER, end_answer, Outcome(turn, state, said, 2.0, reason), POSTING)
        [ended] = desk.store.read(OWNER, lambda tx: tx.outbox.of_turn(turn.id))
        assert (ended.text, ended.state) == (seen, "pending")

    during_a_turn(store, look)


def test_what_is_sent_anew_has_another_key(store: SqlStore) -> None:
    def look(desk: Desk) -> None:
        letter = desk.drafted()
        desk.store.write(OWNER, note_shown, letter.id, "p1")
        desk.complete()
        anew = desk.store.write(OWNER, send_anew, letter)
        assert desk.letter(letter.id) == anew._replace(text="It is noon.")
        assert (anew.key, anew.message_id) == (f"{letter.key}:anew", None)

    during_a_turn(store, look)
