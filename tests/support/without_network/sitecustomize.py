"""On the path of the tests and of every Python that they start: nothing leaves this machine.

Only `sys` is imported, so that what a program has loaded is what it loads by itself.
"""

import sys

_HERE = ("127.", "::ffff:127.", "::ffff:7f")
_ALSO_HERE = ("", "::", "::1", "0.0.0.0", "localhost")
_ASKING = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")


class LeftTheMachine(RuntimeError):
    """A test, or a program that it started, wanted to reach another machine. No product catches this."""


class NobodyToAsk(OSError):
    """A name that only another machine knows; as it is on a machine without a network."""


def refuse_others(event: str, arguments: tuple[object, ...]) -> None:
    """What is no address of this machine is neither connected to nor asked for."""
    if event in ("socket.connect", "socket.sendto"):
        place = arguments[1]
        if isinstance(place, tuple) and not _is_here(str(place[0])):
            raise LeftTheMachine(f"{event} {place[0]}: tests talk to this machine alone")
    elif event in _ASKING and not _is_answered_here(arguments[0]):
        raise NobodyToAsk(f"{event} {arguments[0]!r}: tests ask for the names of this machine alone")


def _is_here(host: str) -> bool:
    return host.lower() in _ALSO_HERE or host.lower().startswith(_HERE)


def _is_answered_here(host: object) -> bool:
    """Numbers are understood without anybody else, and so is our own name."""
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")
    return _is_here(name.rstrip(".")) or not name.rstrip(".").rpartition(".")[2].isalpha()


sys.addaudithook(refuse_others)
