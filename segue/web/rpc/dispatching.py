"""From a request to its answer, as JSON-RPC 2.0 has it: one or several, with an answer or without."""

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from math import isfinite
from typing import Any

from segue.core.errors import SegueError, StoreError
from segue.core.text import one_line, shorten, storable
from segue.listening.bodies import Refusal
from segue.web.budgets import MAX_ANSWER, Reservation
from segue.web.rpc.method import Caller, Method
from segue.web.rpc.troubles import (
    NO_METHOD,
    NO_REQUEST,
    NOT_ALLOWED,
    NOT_NOW,
    WRONG_PARAMS,
    Refused,
    Trouble,
    trouble_of,
)

MOST_TOGETHER = 50
LEAST_LEFT = 64 * 1024
"""Bytes that have to be left for another long answer to a batch; short ones are always given."""
TOO_LONG = Trouble(NOT_NOW, f"The answer is longer than {MAX_ANSWER} bytes; ask for less.")
USED_UP = Trouble(NOT_NOW, f"The answers before used up the {MAX_ANSWER} bytes of a batch; ask for this by itself.")
_KEYS = frozenset({"jsonrpc", "method", "params", "id"})
_NAME = 100

_log = logging.getLogger(__name__)

Answer = dict[str, Any]


@asynccontextmanager
async def answering(caller: Caller, methods: Mapping[str, Method[Any]], said: Any) -> AsyncIterator[bytes | None]:
    """Yield what is answered to a request or to several, as it is sent; None when no answer is wanted.

    The room that a long answer takes is held until the block is left, which is when it has been sent.
    """
    many = said if isinstance(said, list) else [said]
    if not 0 < len(many) <= MOST_TOGETHER:
        sentence = f"Between 1 and {MOST_TOGETHER} requests can be made together."
        yield spell(failed(None, Trouble(NO_REQUEST, sentence)))
        return
    async with AsyncExitStack() as stack:
        premises, holder = caller.premises, caller.credential.key_id
        room: Reservation | None = None
        if any(_is_long(methods, one) for one in many):
            try:
                room = await stack.enter_async_context(premises.answers.reserve(holder))
            except Refusal as refusal:
                yield spell(failed(id_of(said), trouble_of(refusal)))
                return
        texts: list[bytes] = []
        left = MAX_ANSWER
        for one in many:
            if (text := await _spelled(caller, methods, one, left)) is not None:
                texts.append(text)
                left -= len(text)
        if room is not None:
            await premises.answers.shrink(holder, room, MAX_ANSWER - left)
        if not texts:
            yield None
        else:
            yield b"[" + b",".join(texts) + b"]" if isinstance(said, list) else texts[0]


async def _spelled(caller: Caller, methods: Mapping[str, Method[Any]], one: Any, left: int) -> bytes | None:
    """The answer to one request as it is sent, when so many bytes are left for it."""
    if left < LEAST_LEFT and _is_long(methods, one):
        return spell(failed(id_of(one), USED_UP)) if _wants_answer(one) else None
    answer = await _one(caller, methods, one)
    if answer is None:
        return None
    text = await caller.premises.beside(partial(spell, answer)) if _is_long(methods, one) else spell(answer)
    return text if len(text) <= max(left, LEAST_LEFT) else spell(failed(id_of(one), TOO_LONG))


def spell(answer: Answer) -> bytes:
    """An answer as it is sent."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def _is_long(methods: Mapping[str, Method[Any]], said: Any) -> bool:
    called = said.get("method") if isinstance(said, dict) else None
    method = methods.get(called) if isinstance(called, str) else None
    return method is not None and method.is_long


def failed(request_id: Any, trouble: Trouble) -> Answer:
    return {"jsonrpc": "2.0", "error": trouble.row, "id": request_id}


async def _one(caller: Caller, methods: Mapping[str, Method[Any]], said: Any) -> Answer | None:
    request_id = id_of(said)
    try:
        name, params = _request(said)
        result = await _found(caller, methods, name).call(caller, params)
    except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits is told
        trouble = trouble_of(error, _names(methods, said), is_owners=caller.scope.sees_all)
        if isinstance(error, StoreError):
            _log.warning("A call of %s was not answered: %s", _shown(said), error)
        elif not isinstance(error, SegueError | ValueError | Refusal):
            _log.exception("A call of %s failed.", _shown(said))
        return failed(request_id, trouble) if _wants_answer(said) else None
    return {"jsonrpc": "2.0", "result": result, "id": request_id} if _wants_answer(said) else None


def _found(caller: Caller, methods: Mapping[str, Method[Any]], name: str) -> Method[Any]:
    method = methods.get(name)
    if method is None:
        known = ", ".join(methods)
        raise Refused(NO_METHOD, f"There is no method {shorten(one_line(name), _NAME)!r}; there are {known}.")
    if not caller.credential.allows(method.level):
        held = caller.credential
        raise Refused(NOT_ALLOWED, f"The token {held.name} may {held.level}; {name} needs {method.level}.")
    return method


def _names(methods: Mapping[str, Method[Any]], said: Any) -> list[str]:
    """The parameters of the method that is called."""
    called = said.get("method") if isinstance(said, dict) else None
    method = methods.get(called) if isinstance(called, str) else None
    return list(method.params.model_fields) if method else []


def _request(said: Any) -> tuple[str, Any]:
    if not isinstance(said, dict) or said.get("jsonrpc") != "2.0" or not isinstance(said.get("method"), str):
        raise Refused(NO_REQUEST, 'A request is {"jsonrpc": "2.0", "method": NAME, "params": {…}, "id": …}.')
    if unknown := sorted(map(str, said.keys() - _KEYS)):
        raise Refused(NO_REQUEST, f"A request has no field {shorten(one_line(unknown[0]), _NAME)!r}.")
    params = said.get("params", {})
    if not isinstance(params, dict):
        raise Refused(WRONG_PARAMS, "params must be an object: parameters have names.")
    if "id" in said and not _is_id(said["id"]):
        raise Refused(NO_REQUEST, "id must be a text, a number or null.")
    return said["method"], params


def _wants_answer(said: Any) -> bool:
    """A request without an id is told and not asked; what is no request at all is always answered."""
    is_request = isinstance(said, dict) and said.get("jsonrpc") == "2.0" and isinstance(said.get("method"), str)
    return not is_request or "id" in said


def id_of(said: Any) -> Any:
    given = said.get("id") if isinstance(said, dict) else None
    return given if _is_id(given) else None


def _is_id(given: Any) -> bool:
    if isinstance(given, str):
        return given == storable(given)
    return given is None or (isinstance(given, int | float) and not isinstance(given, bool) and isfinite(given))


def _shown(said: Any) -> str:
    return shorten(one_line(str(said.get("method"))), _NAME) if isinstance(said, dict) else "nothing"
