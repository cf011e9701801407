"""An answer as it is sent. A long one is spelled by another hand, so that nobody else waits for it."""

import json
from functools import partial
from typing import Any

from segue.web.premises import Premises

_LONG = frozenset({"messages", "session"})
"""What the results have that can be long."""


async def spelled(premises: Premises, answer: Any) -> bytes:
    result = answer.get("result") if isinstance(answer, dict) else None
    if isinstance(result, dict) and _LONG & result.keys():
        return await premises.beside(partial(_bytes, answer))
    return _bytes(answer)


def _bytes(answer: Any) -> bytes:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
