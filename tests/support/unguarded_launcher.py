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
            socket.MOST_AT_ONCE = _HUGE
            socket.MAX_REQUEST_BYTES = _HUGE
            _read_from_whoever_does_not_read()
        case "pings":
            _read_from_whoever_does_not_read()
        case "fragments":
            connections.MAX_FRAGMENTS = _HUGE
        case "room":  # for connections, and the time for a request to arrive
            connections.REQUEST_TIMEOUT = 10**6
            setattr(connections.HttpServerConnection, "evict", lambda _self: None)  # noqa: B010 - it is no ordinary method
        case "answers":
            for module in (budgets, dispatching, sessions):
                setattr(module, "MAX_ANSWER", _HUGE)  # noqa: B010 - each has its own
        case _:
            raise ValueError(guard)


if __name__ == "__main__":
    _without(os.environ["UNGUARDED"])
    main()
