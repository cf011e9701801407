"""What becomes of a message that arrives while an answer is being written, and which are answered together."""

from typing import Any

import pytest

from segue.core.inbound import Inbound
from segue.core.inbox import Entry, Want, entry_of
from segue.core.queueing import (
    Admission,
    Drop,
    Interrupt,
    MakeRoom,
    QueueMode,
    QueueRules,
    Refuse,
    Steer,
    Wait,
    admit,
    together,
)
from segue.core.sources import SessionSource

CLUB = {"platform": "slack", "chat_id": "club", "chat_type": "group", "user_id": "7"}


@pytest.mark.parametrize(
    ("mode", "drop", "waiting", "want", "is_busy", "admission"),
    [
        ("collect", "summarize", 2, "plain", True, Wait()),
        ("collect", "summarize", 3, "plain", True, MakeRoom(1)),
        ("collect", "old", 5, "plain", True, MakeRoom(3)),
        ("collect", "new", 3, "plain", True, Refuse()),
        ("collect", "summarize", 3, "plain", False, MakeRoom(1)),
        ("collect", "summarize", 3, "queued", True, Refuse()),
        ("steer", "summarize", 2, "plain", True, Steer()),
        ("steer", "summarize", 2, "plain", False, Wait()),
        ("steer", "summarize", 3, "plain", True, MakeRoom(1, is_steering=True)),
        ("steer", "old", 4, "plain", True, MakeRoom(2, is_steering=True)),
        ("steer", "new", 3, "plain", True, Refuse()),
        ("steer", "summarize", 3, "plain", False, MakeRoom(1)),
        ("steer", "summarize", 3, "queued", True, Refuse()),
        ("interrupt", "new", 3, "plain", True, Interrupt()),
        ("interrupt", "summarize", 3, "plain", False, MakeRoom(1)),
        *((mode, "new", 9, "command", True, Wait()) for mode in QueueMode),
    ],
)
def test_what_becomes_of_a_message(
    mode: str, drop: str, waiting: int, want: str, is_busy: bool, admission: Admission
) -> None:
    rules = QueueRules(QueueMode(mode), cap=3, drop=Drop(drop))
    assert admit(rules, waiting, Want(want), is_busy=is_busy) == admission


def said(number: int, person: str = "slack:7", route: dict[str, str] | None = None, **more: Any) -> Entry:
    source = SessionSource.from_dict(CLUB | more)
    goes = None if route is None else SessionSource.from_dict(route)
    entry = entry_of(Inbound(source, str(number), "", route=goes), "lane", person, "", person, float(number))
    return entry._replace(id=number)


@pytest.mark.parametrize(
    ("second", "is_together"),
    [
        pytest.param(said(2), True, id="the same person in the same place"),
        pytest.param(said(2, message_id="2"), True, id="each with the id of its message"),
        pytest.param(said(2, user_name="Bob", chat_name="The Club"), True, id="who was named otherwise before"),
        pytest.param(said(2, person="slack:8", user_id="8"), False, id="somebody else"),
        pytest.param(said(2, thread_id="5"), False, id="in a thread"),
        pytest.param(said(2, chat_id="pub"), False, id="in another chat of the same lane"),
        pytest.param(said(2, account="work"), False, id="to another account"),
        pytest.param(said(2, platform="telegram"), False, id="on another platform"),
        pytest.param(said(2, route={"platform": "slack", "chat_id": "pub"}), False, id="answered elsewhere"),
    ],
)
def test_messages_are_answered_together_that_one_person_said_in_one_place(second: Entry, is_together: bool) -> None:
    first = said(1, message_id="1")
    assert len(together([first, second], QueueMode.COLLECT)) == 1 + is_together


def test_what_goes_to_the_same_chat_is_answered_together_whatever_that_is_called() -> None:
    route = {"platform": "slack", "chat_id": "pub"}
    both = [said(1, route=route), said(2, route=route | {"user_name": "Bob"})]
    assert together(both, QueueMode.COLLECT) == both
    assert together(both, QueueMode.FOLLOWUP) == both[:1]
