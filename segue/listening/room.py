"""Which connections a server keeps when it has no room for all of them. Nothing here does I/O.

A connection is proven once a request on it has shown a good token or a good signature. A proven one is never closed for
another; each holder of a token has a share of the room. All others live in a room of their own. Once half of that is
taken, an address that holds too many loses its oldest one; when it is full, the address that holds the most does.
"""

import resource
from collections.abc import Collection
from ipaddress import ip_address, ip_network
from typing import NamedTuple, Protocol

RESERVED_FILES = 192
"""Descriptors that connections never use: the store, platforms, models, tools, and accepting itself."""
_FILES_IF_UNLIMITED = 4096


class Limits(NamedTuple):
    """How many connections there may be at once."""

    unproven: int = 256
    per_address: int = 64
    """Of those that are not proven, from one address that is not a trusted proxy, once half of their room is taken."""
    proven: int = 512
    per_holder: int = 128

    def within(self, files: int) -> "Limits":
        """The same limits, lowered until a process that may open so many files can hold them."""
        free = max(files - RESERVED_FILES, 32)
        if self.unproven + self.proven <= free:
            return self
        unproven, proven = min(self.unproven, free // 3), min(self.proven, free - free // 3)
        return Limits(unproven, min(self.per_address, unproven), proven, min(self.per_holder, max(proven // 2, 1)))


def files_allowed() -> int:
    """How many files this process may have open at once."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _FILES_IF_UNLIMITED if soft == resource.RLIM_INFINITY else soft


class Connection(Protocol):
    """What the room closes."""

    def evict(self) -> None:
        """Close at once, whatever is still to be sent."""


class Room:
    """The connections of one server."""

    def __init__(self, limits: Limits, proxies: Collection[str] = ()) -> None:
        self.limits = limits
        self._proxies = [ip_network(one, strict=False) for one in proxies]
        self._unproven: dict[str, dict[Connection, None]] = {}
        self._proven: dict[str, set[Connection]] = {}
        self._places: dict[Connection, tuple[str, str | None]] = {}
        """The address of each connection, and who holds the token that it showed."""
        self._waiting = 0
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._places)

    def enter(self, connection: Connection, address: str) -> None:
        """Keep a new connection, and close another one if there are too many."""
        self._places[connection] = (address, None)
        self._add_unproven(connection, address)

    def leave(self, connection: Connection) -> None:
        """Forget a connection that was closed."""
        if connection in self._places:
            self._remove(connection)
            del self._places[connection]

    def prove(self, connection: Connection, holder: str) -> bool:
        """Note who holds the token that a connection has shown. False if they have too many connections already."""
        place = self._places.get(connection)
        if place is None or place[1] == holder:
            return True
        held = self._proven.get(holder, ())
        if len(held) >= self.limits.per_holder or self._count_proven() >= self.limits.proven:
            return False
        self._remove(connection)
        self._proven.setdefault(holder, set()).add(connection)
        self._places[connection] = (place[0], holder)
        return True

    def doubt(self, connection: Connection) -> None:
        """Count a connection as not proven: the last token that it showed is not good."""
        address, holder = self._places.get(connection, ("", None))
        if holder is not None:
            self._remove(connection)
            self._places[connection] = (address, None)
            self._add_unproven(connection, address)

    def _count_proven(self) -> int:
        return len(self._places) - self._waiting

    def _add_unproven(self, connection: Connection, address: str) -> None:
        self._unproven.setdefault(address, {})[connection] = None
        self._waiting += 1
        is_scarce = self._waiting > self.limits.unproven // 2
        if is_scarce and len(self._unproven[address]) > self.limits.per_address and not self._is_proxy(address):
            self._evict_oldest(address)
        elif self._waiting > self.limits.unproven:
            self._evict_oldest(max(self._unproven, key=lambda one: len(self._unproven[one])))

    def _evict_oldest(self, address: str) -> None:
        oldest = next(iter(self._unproven[address]))
        self.leave(oldest)
        self.evicted += 1
        oldest.evict()

    def _remove(self, connection: Connection) -> None:
        address, holder = self._places[connection]
        if holder is None:
            self._waiting -= 1
            of_address = self._unproven[address]
            del of_address[connection]
            if not of_address:
                del self._unproven[address]
        else:
            held = self._proven[holder]
            held.discard(connection)
            if not held:
                del self._proven[holder]

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies:
            return False
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._proxies)
