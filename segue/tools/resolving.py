"""Which addresses a host has, asked once, and whether something may be fetched from them."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import NamedTuple

from segue.core.addresses import PORTS, Address, Refused, Target, canonical, literal, refused_addresses

Resolve = Callable[[str, int], Awaitable[list[Address]]]


async def ask(host: str, port: int) -> list[Address]:
    """The addresses that the name service of this machine gives."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(ip_address(place[0]) for *_, place in found))


class Guard(NamedTuple):
    """Who is asked, and what is refused."""

    resolve: Resolve = ask
    refused: Callable[[list[Address]], list[Address]] = refused_addresses
    ports: frozenset[int] | None = PORTS


async def allowed_addresses(target: Target, guard: Guard) -> list[Address]:
    """The addresses to connect to. Nobody asks a second time: the second answer could be another."""
    written = literal(target.host)
    found = await guard.resolve(target.host, target.port) if written is None else [written]
    if not found:
        raise Refused(f"There is no host {target.host} that can be found; look at how it is spelt.")
    if refused := guard.refused(found):
        raise Refused(
            f"{target.host} is {canonical(refused[0])}, which is not public; only public addresses are fetched from."
        )
    return found
