"""The places at which work may be cut off: a test names one, and stops the program there.

Each stands just before or just after something that lasts. Nothing happens at any of them unless a test has said so.
"""

from collections.abc import Callable
from enum import StrEnum


class Point(StrEnum):
    BEFORE_TURN_OPENS = "before_turn_opens"
    AFTER_TURN_OPENS = "after_turn_opens"
    BEFORE_MODEL_BEGINS = "before_model_begins"
    AFTER_MODEL_BEGINS = "after_model_begins"
    BEFORE_REPLY_IS_STORED = "before_reply_is_stored"
    AFTER_REPLY_IS_STORED = "after_reply_is_stored"
    BEFORE_TOOL_BEGINS = "before_tool_begins"
    AFTER_TOOL_BEGINS = "after_tool_begins"
    BEFORE_RESULT_IS_STORED = "before_result_is_stored"
    AFTER_RESULT_IS_STORED = "after_result_is_stored"
    BEFORE_TURN_ENDS = "before_turn_ends"
    AFTER_TURN_ENDS = "after_turn_ends"
    AFTER_FLUSH_BEGINS = "after_flush_begins"
    BEFORE_SUMMARY = "before_summary"
    BEFORE_COMPRESSION = "before_compression"
    AFTER_COMPRESSION = "after_compression"
    BEFORE_ACCEPT = "before_accept"
    AFTER_ACCEPT = "after_accept"
    BEFORE_ANSWER_BEGINS = "before_answer_begins"
    AFTER_ANSWER_BEGINS = "after_answer_begins"
    BEFORE_SENDING = "before_sending"
    AFTER_SENDING_BEGINS = "after_sending_begins"
    AFTER_SENT = "after_sent"
    AFTER_DELIVERED = "after_delivered"
    AFTER_FAREWELL_BEGINS = "after_farewell_begins"
    BEFORE_FAREWELL_ENDS = "before_farewell_ends"
    BEFORE_DRAFT = "before_draft"
    AFTER_DRAFT = "after_draft"
    AFTER_SHOWN = "after_shown"
    AFTER_SHOWN_IS_NOTED = "after_shown_is_noted"
    AFTER_SHOWN_MORE = "after_shown_more"


COMPRESSING = frozenset(
    {Point.AFTER_FLUSH_BEGINS, Point.BEFORE_SUMMARY, Point.BEFORE_COMPRESSION, Point.AFTER_COMPRESSION}
)
"""Those of a turn whose conversation has become too long."""

REMEMBERING = frozenset({Point.AFTER_FAREWELL_BEGINS, Point.BEFORE_FAREWELL_ENDS})
"""Those of a session whose time is over."""

SHOWING = frozenset(
    {
        *(Point.BEFORE_DRAFT, Point.AFTER_DRAFT, Point.AFTER_SHOWN, Point.AFTER_SHOWN_IS_NOTED),
        Point.AFTER_SHOWN_MORE,
    }
)
"""Those of an answer that is shown while it is written."""

ON_A_PLATFORM = SHOWING | frozenset(
    {
        *(Point.BEFORE_ACCEPT, Point.AFTER_ACCEPT, Point.BEFORE_ANSWER_BEGINS, Point.AFTER_ANSWER_BEGINS),
        *(Point.BEFORE_SENDING, Point.AFTER_SENDING_BEGINS, Point.AFTER_SENT, Point.AFTER_DELIVERED),
    }
)
"""Those of a gateway."""


def _nothing(point: Point) -> None: ...


_act: Callable[[Point], None] = _nothing


def arm(act: Callable[[Point], None]) -> None:
    """Let something happen whenever a point is reached."""
    global _act
    _act = act


def reached(point: Point) -> None:
    _act(point)
