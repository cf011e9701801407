"""How things are named. An id is only ever looked up; it is never a path and its parts are never trusted."""

from datetime import datetime
from typing import NewType

SessionId = NewType("SessionId", str)
LaneKey = NewType("LaneKey", str)

LONGEST_ID = 200


def session_id(now: datetime, token: str) -> SessionId:
    """`20250305_091523_a1b2c3d4`: local time, so that ids read like a diary, and eight hexadecimal digits of chance."""
    return SessionId(f"{now:%Y%m%d_%H%M%S}_{token}")
