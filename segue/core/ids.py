"""How things are named. An id is only ever looked up; it is never a path and its parts are never trusted."""

import re
from datetime import datetime
from typing import NewType

SessionId = NewType("SessionId", str)
LaneKey = NewType("LaneKey", str)

LONGEST_ID = 200

_UNSAFE = re.compile("[:%\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def session_id(now: datetime, token: str) -> SessionId:
    """`20250305_091523_a1b2c3d4`: local time, so that ids read like a diary, and eight hexadecimal digits of chance."""
    return SessionId(f"{now:%Y%m%d_%H%M%S}_{token}")


def encode_segment(segment: str) -> str:
    """The segment without anything that separates segments or that a database cannot hold; reversible."""
    return _UNSAFE.sub(lambda m: "".join(f"%{byte:02X}" for byte in m[0].encode("utf-8", "surrogatepass")), segment)
