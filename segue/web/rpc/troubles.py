"""What goes wrong, as a number that programs can tell apart and a sentence that people can read.

-32700 no JSON · -32600 no request · -32601 no such method · -32602 wrong parameters · -32603 a mistake of ours
-32001 not found · -32002 not now, because somebody is at work or too much waits · -32003 not allowed
-32004 the store cannot do its work; try again · -32005 not possible like this
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import ValidationError

from segue.core.errors import Ambiguous, InUse, Invalid, NotFound, SegueError, StoreError
from segue.core.text import one_line, shorten
from segue.listening.bodies import Refusal

NO_JSON, NO_REQUEST, NO_METHOD, WRONG_PARAMS, OUR_FAULT = -32700, -32600, -32601, -32602, -32603
NOT_FOUND, NOT_NOW, NOT_ALLOWED, STORE, IMPOSSIBLE = -32001, -32002, -32003, -32004, -32005
STORE_SAYS = "The store cannot do its work at the moment; try again. The log of the gateway says more."
_LONGEST = 500
_BY_STATUS = {400: NO_JSON, 401: NOT_ALLOWED, 403: NOT_ALLOWED, 503: NOT_NOW}


class Trouble(NamedTuple):
    code: int
    sentence: str

    @property
    def row(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.sentence}


class Refused(SegueError):
    """A call that is right in itself and cannot be answered."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def trouble_of(error: Exception, names: Iterable[str] = (), *, is_owners: bool = False) -> Trouble:
    """What a program is told of an error, given the parameters that there are; of our own only that they are ours."""
    told = error.public if isinstance(error, SegueError) and not is_owners else str(error)
    match error:
        case Refused():
            return Trouble(error.code, told)
        case ValidationError():
            return Trouble(WRONG_PARAMS, _wrong(error, names))
        case Refusal():
            return Trouble(_BY_STATUS.get(error.status, NO_REQUEST), str(error))
        case NotFound() | Ambiguous():
            return Trouble(NOT_FOUND, told)
        case InUse():
            return Trouble(NOT_NOW, told)
        case StoreError():
            return Trouble(STORE, STORE_SAYS)
        case Invalid() | SegueError():
            return Trouble(IMPOSSIBLE, told)
    return Trouble(OUR_FAULT, "That was a mistake of Segue's; its log says more.")


def _wrong(error: ValidationError, names: Iterable[str]) -> str:
    """The first thing that is wrong, with its place; never what was given, which may be anything."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "params"
    told = f"{where} is no parameter" if first["type"] == "extra_forbidden" else f"{where}: {_sentence(first['msg'])}"
    return shorten(one_line(f"{told}; it takes {', '.join(names) or 'none'}."), _LONGEST)


def _sentence(message: str) -> str:
    """The words of a validator of ours, without what pydantic puts before them."""
    return message.removeprefix("Value error, ")
