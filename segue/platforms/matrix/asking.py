"""Requests to a homeserver and its answers; whatever goes wrong is a `Trouble`."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlencode

from aiohttp import ClientResponse, ClientSession, ClientTimeout

from segue.core.json_text import parse_json
from segue.platforms.matrix.failing import Refused, Unanswered, refusal, translated

SECONDS = 30.0
"""For an answer that is not waited for on purpose."""
CONNECT_SECONDS = 10.0
_GOOD = range(200, 300)
_CLIENT = "/_matrix/client/"


class Line:
    """A connection to one homeserver, by one login or none yet."""

    def __init__(self, homeserver: str, token: str | None = None) -> None:
        self.homeserver = homeserver
        self._token = token
        self.session = ClientSession(timeout=ClientTimeout(total=SECONDS, sock_connect=CONNECT_SECONDS))

    async def close(self) -> None:
        await self.session.close()

    async def ask(
        self,
        method: str,
        *path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        seconds: float = SECONDS,
    ) -> dict[str, Any]:
        """What the homeserver answers. The path begins with the version of what is asked."""
        data = None if body is None else json.dumps(body).encode()
        async with self.answering(method, place(*path, query=query), data, seconds) as answer:
            said = await said_by(answer)
        if not isinstance(said, dict):
            raise Unanswered(f"What answers at {self.homeserver} is no homeserver.")
        return said

    @asynccontextmanager
    async def answering(
        self,
        method: str,
        path: str,
        data: Any = None,
        seconds: float | None = SECONDS,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[ClientResponse]:
        """An answer that is good, to be read; also what goes wrong while it is read is told."""
        sent = {"Content-Type": "application/json", **(headers or {})}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        timeout = ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS, sock_read=SECONDS if not seconds else None)
        with translated(self.homeserver):
            async with self.session.request(
                method, self.homeserver + path, data=data, headers=sent, timeout=timeout, allow_redirects=False
            ) as answer:  # what is said to a homeserver is for no other
                if answer.status not in _GOOD:
                    raise refusal(answer.status, await said_by(answer))
                yield answer


def place(*path: str, query: Mapping[str, str] | None = None, base: str = _CLIENT) -> str:
    """A path of a homeserver, in which every part is quoted. Raises `Refused` for what can be no part of one."""
    if any(part in ("", ".", "..") or not part.isprintable() for part in path):
        raise Refused(404, "M_NOT_FOUND", "Nothing on a homeserver can be called that.")
    quoted = "/".join(quote(part, safe="") for part in path)
    return f"{base}{quoted}{f'?{urlencode(query)}' if query else ''}"


async def said_by(answer: ClientResponse) -> Any:
    """What an answer says; None when that is no JSON."""
    try:
        return parse_json(await answer.read())
    except ValueError:
        return None
