"""A page, fetched: each redirect is judged anew, and what is connected to is the very address that was judged.

No client stands between, so nothing is remembered from one request to the next: no cookies, no passwords, no proxies
from the environment.
"""

import ssl
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import NamedTuple

import httpx2

from segue.core.addresses import Address, Target, canonical, redirected, target_of
from segue.core.text import one_line, shorten
from segue.ports.tool import ToolFailed
from segue.tools.resolving import Guard, allowed_addresses
from segue.tools.threads import in_thread

MOST_BYTES = 2_000_000
MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_TIMES = {"connect": 5.0, "read": 15.0, "write": 5.0, "pool": 5.0}  # seconds
_ASKING = {
    "User-Agent": "segue",
    "Accept": "text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.8, */*;q=0.1",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}
_READABLE = ("json", "xml", "javascript", "ecmascript", "yaml", "toml", "x-ndjson", "graphql", "sql", "x-sh", "rtf")


class Page(NamedTuple):
    """What was answered."""

    url: str
    """After all redirects."""
    kind: str
    """The content type without its parameters, in small letters."""
    charset: str
    body: bytes
    is_whole: bool


async def fetch(url: str, guard: Guard, trust: ssl.SSLContext | None = None) -> Page:
    """Get what is at a URL. What is refused raises Refused; what cannot be got, ToolFailed."""
    target = target_of(url, guard.ports)
    for _ in range(MOST_REDIRECTS + 1):
        addresses = await allowed_addresses(target, guard)
        async with _answer(target, addresses, trust) as response:
            location = response.headers.get("location")
            if response.status_code not in _REDIRECTS or not location:
                return await _page(target, response)
        target = redirected(target, location, guard.ports)
    raise ToolFailed(f"{shorten(url, 200)} leads from one address to the next, more than {MOST_REDIRECTS} times.")


@asynccontextmanager
async def _answer(
    target: Target, addresses: list[Address], trust: ssl.SSLContext | None
) -> AsyncIterator[httpx2.Response]:
    """What a host says, as it begins to say it; its addresses are tried one after the other."""
    if target.scheme == "https":
        trust = trust or await in_thread(_trust)
    async with httpx2.AsyncHTTPTransport(verify=trust or False, trust_env=False) as transport:
        try:
            response = await _first(transport, target, addresses)
            try:
                yield response
            finally:
                await response.aclose()
        except httpx2.TransportError as error:
            reason = one_line(str(error)) or type(error).__name__
            raise ToolFailed(f"{target.authority} cannot be fetched from: {shorten(reason, 200)}.") from None


async def _first(transport: httpx2.AsyncHTTPTransport, target: Target, addresses: list[Address]) -> httpx2.Response:
    for address in addresses[:-1]:
        try:
            return await transport.handle_async_request(_request(target, address))
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            continue
    return await transport.handle_async_request(_request(target, addresses[-1]))


def _request(target: Target, address: Address) -> httpx2.Request:
    """Goes to an address, and asks it, by header and certificate, for the host that was named."""
    place = f"[{canonical(address)}]" if address.version == 6 else canonical(address)
    return httpx2.Request(
        "GET",
        f"{target.scheme}://{place}:{target.port}{target.path}",
        headers={"Host": target.authority, **_ASKING},
        extensions={"sni_hostname": target.host, "timeout": _TIMES},
    )


@lru_cache
def _trust() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)


async def _page(target: Target, response: httpx2.Response) -> Page:
    if not 200 <= response.status_code < 300:
        raise ToolFailed(
            f"{target.authority} answered {response.status_code} {response.reason_phrase}.".replace(" .", ".")
        )
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind and not kind.startswith("text/") and not kind.removeprefix("application/").endswith(_READABLE):
        raise ToolFailed(f"{target.url} is {shorten(one_line(kind), 100)}, and only text is read.")
    body, is_whole = await _body(response)
    if b"\0" in body and not kind:
        raise ToolFailed(f"{target.url} is no text, and only text is read.")
    return Page(target.url, kind, response.charset_encoding or "utf-8", body, is_whole)


async def _body(response: httpx2.Response) -> tuple[bytes, bool]:
    """As many bytes as there is room for, and whether those are all. What was packed is unpacked no further."""
    body, is_whole = bytearray(), True
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > MOST_BYTES:
            is_whole = False
            break
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("gzip", "x-gzip", "deflate"):
        unpacking = zlib.decompressobj(wbits=47)
        try:
            body = bytearray(unpacking.decompress(bytes(body), MOST_BYTES + 1))
        except zlib.error:
            raise ToolFailed("The answer is packed in a way that cannot be read.") from None
        is_whole = unpacking.eof and len(body) <= MOST_BYTES
    elif encoding not in ("identity", ""):
        raise ToolFailed(f"The answer is packed with {shorten(one_line(encoding), 40)}, which was not asked for.")
    return bytes(body[:MOST_BYTES]), is_whole
