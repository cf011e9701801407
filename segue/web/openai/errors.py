"""What goes wrong, in the shape that clients of OpenAI raise as exceptions of their own."""

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import ValidationError
from starlette.responses import JSONResponse

from segue.core.errors import InUse, NotFound, SegueError, StoreError
from segue.core.text import one_line, shorten
from segue.listening.bodies import Refusal
from segue.sessions.calling import SpokenOtherwise

_log = logging.getLogger(__name__)

INVALID, SERVER = "invalid_request_error", "server_error"
_LONGEST = 500
_TRY_AGAIN, _ONCE = {"Retry-After": "5"}, {"x-should-retry": "false"}
_BY_STATUS = {
    401: (INVALID, "invalid_api_key"),
    403: ("permission_error", "insufficient_permissions"),
    413: (INVALID, "request_too_large"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    503: (SERVER, "overloaded"),
}


class Wrong(Exception):
    """A call that cannot be answered, and which of its fields is why."""

    def __init__(self, sentence: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(sentence)
        self.param = param
        self.code = code
        self.status = status


class Trouble(NamedTuple):
    status: int
    message: str
    type: str = INVALID
    param: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = MappingProxyType({})

    @property
    def row(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}

    @property
    def answer(self) -> JSONResponse:
        return JSONResponse(self.row, self.status, self.headers)


def trouble_of(error: Exception) -> Trouble:
    """What a program is told of an error; of our own mistakes only that they are ours. The log says more.

    Whoever stands behind the program reads it as well, so it is what anybody may read.
    """
    told = error.public if isinstance(error, SegueError) else str(error)
    match error:
        case Wrong():
            kind = SERVER if error.status >= 500 else INVALID
            return Trouble(error.status, str(error), kind, error.param, error.code)
        case Refusal():
            kind, code = _BY_STATUS.get(error.status, (INVALID, None))
            return Trouble(error.status, str(error), kind, None, code, error.headers)
        case ValidationError():
            return _misshapen(error)
        case NotFound():
            return Trouble(404, told, code="not_found")
        case InUse():
            return Trouble(409, told, code="conversation_locked", headers=_TRY_AGAIN)
        case StoreError():
            _log.warning("A call was not answered: %s", one_line(str(error)))
            return Trouble(503, "The store is busy; try again.", SERVER, code="overloaded", headers=_TRY_AGAIN)
        case SpokenOtherwise():
            return Trouble(422, told, code="idempotency_key_reused")
        case SegueError():
            return Trouble(400, told)
    _log.error("A call failed.", exc_info=error)
    return Trouble(500, "That was a mistake of Segue's; its log says more.", SERVER, headers=_ONCE)


def failed(sentence: str) -> Trouble:
    """An answer that did not come about. Asked again by itself the same would happen, so clients are told not to."""
    return Trouble(500, sentence, SERVER, code="answer_failed", headers=_ONCE)


def cancelled(sentence: str) -> Trouble:
    """An answer that was stopped; nor is it wanted again."""
    return Trouble(409, sentence, code="cancelled", headers=_ONCE)


def unfinished() -> Trouble:
    return Trouble(409, "The answer is being written; try again.", code="in_progress", headers=_TRY_AGAIN)


def _misshapen(error: ValidationError) -> Trouble:
    """The first thing that is wrong, with its place; never what was given, which may be anything."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = shorten(one_line(".".join(str(part) for part in first["loc"])), _LONGEST)
    match first["type"]:
        case "extra_forbidden":
            return Trouble(400, f"Unknown parameter: '{where}'.", param=where, code="unknown_parameter")
        case "missing":
            sentence = f"Missing required parameter: '{where}'."
            return Trouble(400, sentence, param=where, code="missing_required_parameter")
    said = shorten(one_line(first["msg"]), _LONGEST)
    return Trouble(400, f"Invalid '{where}': {said}.", param=where or None, code="invalid_value")
