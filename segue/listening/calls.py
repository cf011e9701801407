"""A call: who makes it, by which name we were called, and its body. What is not right is refused in one sentence."""

import asyncio
from collections.abc import Collection

from starlette.requests import ClientDisconnect, HTTPConnection, Request

from segue.listening.bodies import MOST_BYTES, Refusal

READING_SECONDS = 10.0
OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LONGEST_ADDRESS = 64


def caller(call: HTTPConnection) -> str:
    """The address of whoever calls: the one that a trusted proxy tells, or that of the connection."""
    return call.client.host[:_LONGEST_ADDRESS] if call.client else ""


def check_name(call: HTTPConnection, names: Collection[str], setting: str) -> None:
    """Nobody is led here by a name that is not ours, as a page in a browser is by one that changes its address."""
    if _without_port(call.headers.get("host", "")) not in names:
        raise Refusal(403, f"This is not called so; {setting} says which names it has.")


async def body_of(request: Request) -> bytes:
    """The body as it was sent, if it is not too long and does not take too long."""
    body = bytearray()
    try:
        async with asyncio.timeout(READING_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MOST_BYTES:
                    raise Refusal(413, f"The body is longer than {MOST_BYTES} bytes.")
    except TimeoutError:
        raise Refusal(408, f"The body did not come within {READING_SECONDS:g} seconds.") from None
    except ClientDisconnect:
        raise Refusal(400, "The body broke off.") from None
    return bytes(body)


def _without_port(host: str) -> str:
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()
