"""What platforms tell of places reaches their lanes, and disturbs nobody there."""

from typing import Any

from lane_house import Building, dm

from segue.core.lifecycle import Lane
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.storage.store import SqlStore
from segue.testing import Stage


def in_group(person: str, **more: Any) -> SessionSource:
    return SessionSource(platform="scripted", chat_id="g1", chat_type="group", user_id=person, **more)


def lanes_of(store: SqlStore) -> dict[str, Lane]:
    return {lane.key: lane for lane in store.read(OWNER, lambda tx: tx.lanes.listed())}


def test_a_place_gets_a_new_name_and_nothing_else_happens(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        for person in ("alice", "bob"):
            stage.say(in_group(person, chat_name="Family"), "hello")
        stage.say(dm("carol"), "hello")
        await building.quiet()
        before, posted = lanes_of(store), len(stage.posted)
        await building.gateway.desk.learn(in_group("", chat_name="Family and friends", subject="Trip", space="Home"))
        await building.quiet()
        after = lanes_of(store)
        assert len(stage.posted) == posted
        for key, lane in before.items():
            assert after[key]._replace(origin=None) == lane._replace(origin=None)
        renamed = {key: lane.origin for key, lane in after.items() if lane.origin != before[key].origin}
        assert sorted(renamed) == [f"agent:main:scripted:group:g1:{person}" for person in ("alice", "bob")]
        assert {(one.chat_name, one.subject, one.space) for one in renamed.values() if one} == {
            ("Family and friends", "Trip", "Home")
        }
        assert {one.user_id for one in renamed.values() if one} == {"alice", "bob"}

    building.run(work)


def test_a_name_stays_when_the_next_message_does_not_say_it(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        stage.say(in_group("alice", chat_name="Family", label="Ours", space="Home"), "hello")
        stage.say(in_group("alice"), "and again")
        await building.quiet()

    building.run(work)
    (lane,) = lanes_of(store).values()
    assert lane.origin == in_group("alice", chat_name="Family", label="Ours", space="Home")
