"""`segue` without one of the guards against clients that exhaust it, for tests that such a guard makes the difference.

The environment variable UNGUARDED names it.
"""

import os

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from segue.cli import main
from segue.listening import connections
from segue.web import budgets, socket
from segue.web.rpc import dispatching, sessions

_HUGE = 10**12


def _read_from_whoever_does_not_read() -> None:
    ours, theirs = connections.WebSocketServerConnection, WebSocketsSansIOProtocol
    for name in ("pause_writing", "resume_writing", "receive"):
        setattr(ours, name, getattr(theirs, name))


def _without(guard: str) -> None:
    match guard:
        case "back-pressure":
            socket.MOST_AT_ONCE = _HUGE  # type: ignore[misc]
            socket.MAX_REQUEST_BYTES = _HUGE  # type: ignore[misc]
            _read_from_whoever_does_not_read()
        case "pings":
            _read_from_whoever_does_not_read()
        case "fragments":
            connections.MAX_FRAGMENTS = _HUGE  # type: ignore[misc]
        case "room":  # for connections, and the time for a request to arrive
            connections.REQUEST_TIMEOUT = 10**6  # type: ignore[misc]
            connections.HttpServerConnection.evict = lambda _self: None  # type: ignore[method-assign]
        case "answers":
            for module in (budgets, dispatching, sessions):
                module.MAX_ANSWER = _HUGE  # type: ignore[attr-defined]
        case _:
            raise ValueError(guard)


if __name__ == "__main__":
    _without(os.environ["UNGUARDED"])
    main()
