"""What is told while a turn is at work says which turn it was, and how it ended is told once."""

import json
import logging
from collections.abc import Iterator

import pytest
from lane_house import Building, dm

from segue.cli.log_lines import JsonFormatter
from segue.core.events import Reply
from segue.gateway.at_work import find_work
from segue.hookspecs import Fact, Hooks, TurnEnded
from segue.ports.model import Request
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, Stage

_log = logging.getLogger("somebody.else")


class Lines(logging.Handler):
    """What a log would hold."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.told: list[dict[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(json.loads(self.format(record)))


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def answer(request: Request) -> Reply:
    said = str(request.conversation[-1]["content"])
    _log.warning("asked: %s", said)
    if said == "fail":
        raise RuntimeError("no idea")
    return Reply("Yes.")


@pytest.mark.on_file
def test_lines_of_a_turn_say_which_one_it_is(store: SqlStore, lines: Lines) -> None:
    stage, ended = Stage(), list[TurnEnded]()

    def hear(fact: Fact) -> None:
        if isinstance(fact, TurnEnded):
            ended.append(fact)

    building = Building(store, stage, model=ScriptedModel(answer), hooks=Hooks({}, hear))

    async def work() -> None:
        for text in ("well", "fail"):
            stage.say(dm(), text)
            stage.say(dm("bob"), text)
            await building.quiet()
        assert find_work() is None

    building.run(work)
    assert sorted(fact.state for fact in ended) == ["done", "done", "failed", "failed"]
    named = {fact.turn_id: (fact.lane_key, fact.session_id) for fact in ended}
    assert len(named) == 4
    of_turns = [line for line in lines.told if "turn_id" in line]
    loggers = {"somebody.else", "segue.gateway.answering", "segue.gateway.turn_log"}
    assert {line["logger"] for line in of_turns} <= loggers
    assert all(named[line["turn_id"]] == (line["lane_key"], line["session_id"]) for line in of_turns)
    assert {line["message"] for line in of_turns if line["logger"] == "segue.gateway.answering"} == {
        "The agent raised an error; its sender was told that the answer failed",
    }
    assert sum(line["logger"] == "somebody.else" for line in of_turns) == 4
