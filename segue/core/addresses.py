"""Where a fetch may go: to what everybody can reach, and never to what only this machine or its network can.

Everything is judged here: how an address is written, and where it leads. Nothing here asks a name server.
An address that is written in a way that people do not write it is refused, wherever it leads: the ways are many
(`2130706433`, `0x7f.1`, `127.1`, `0177.0.0.1`), and nobody who means well needs them.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from segue.core.errors import Invalid, InvalidSettings
from segue.core.text import one_line, shorten

Address = IPv4Address | IPv6Address

SCHEMES = {"http": 80, "https": 443}
PORTS = frozenset({80, 443, 8080, 8443})
LONGEST_URL = 2_000

_NOT_PUBLIC_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # between a provider and its customers; the metadata of a cloud
            "127.0.0.0/8",  # this machine
            "168.63.129.16/32",  # the metadata of a cloud, in the middle of public addresses
            "169.254.0.0/16",  # this link; the metadata of most clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocols; the metadata of a cloud
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays between IPv6 and IPv4
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # measurements
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # many at once
            "240.0.0.0/4",  # reserved, and everybody on a link
        ),
    )
)
_PUBLIC_6 = IPv6Network("2000::/3")
"""What has been given out. All the rest is private, of this link or machine, embeds an IPv4 address, or is unused."""
_NOT_PUBLIC_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocols, among them Teredo, which embeds an IPv4 address
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4, which embeds an IPv4 address
            "3fff::/20",  # documentation
        ),
    )
)
_ISATAP = (0x00005EFE, 0x02005EFE)
"""In the middle of an IPv6 address that ends with an IPv4 address."""

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_CANONICAL = re.compile(r"(0|[1-9]\d{0,2})(\.(0|[1-9]\d{0,2})){3}")
_BRACKETED = re.compile(r"\[[^\[\]]*\](:\d*)?")
_STRANGE = re.compile(r"[\x00-\x20\x7f-\x9f\\\u2028\u2029]")


class Refused(Invalid):
    """Why nothing is fetched from there."""


class Target(NamedTuple):
    """A URL, taken apart once: what is connected to is what was judged."""

    scheme: str
    host: str
    """A name in small ASCII letters, or an address as it is written without brackets."""
    port: int
    path: str
    """With the query."""

    @property
    def authority(self) -> str:
        """As the header Host says it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == SCHEMES[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def is_public(address: Address) -> bool:
    """Whether an address is one that everybody can reach."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    if address.scope_id or address not in _PUBLIC_6 or any(address in network for network in _NOT_PUBLIC_6):
        return False
    return (int(address) >> 32) & 0xFFFFFFFF not in _ISATAP


def target_of(url: str, ports: frozenset[int] | None = PORTS) -> Target:
    """Take a URL apart, or say why nothing is fetched from there. Without ports every port is good."""
    said = url.strip(" ")
    if len(said) > LONGEST_URL:
        raise Refused(f"A URL has at most {LONGEST_URL:,} characters.")
    if _STRANGE.search(said):
        raise Refused(f"{_shown(said)} has a space, a backslash or a control character in it, which no URL has.")
    try:
        parts = urlsplit(said)
        port = parts.port
    except ValueError:
        raise Refused(f"{_shown(said)} is no URL.") from None
    if parts.scheme not in SCHEMES:
        raise Refused(f"{_shown(said)} does not begin with http:// or https://, and nothing else is fetched.")
    if "@" in parts.netloc:
        raise Refused("A name or password before the host is not sent; give the URL without it.")
    host = _host(parts)
    port = SCHEMES[parts.scheme] if port is None else port
    if ports is not None and port not in ports:
        raise Refused(f"Port {port} is not fetched from; only {', '.join(map(str, sorted(ports)))} are.")
    path = parts.path or "/"
    return Target(parts.scheme, host, port, f"{path}?{parts.query}" if parts.query else path)


def redirected(target: Target, location: str, ports: frozenset[int] | None = PORTS) -> Target:
    """Where a redirect leads, judged like any other URL."""
    if _STRANGE.search(location):
        raise Refused(f"A redirect leads to {_shown(location)}, which is no URL.")
    try:
        url = urljoin(target.url, location)
    except ValueError:
        raise Refused(f"A redirect leads to {_shown(location)}, which is no URL.") from None
    return target_of(url, ports)


def literal(host: str) -> Address | None:
    """The address that a host is, if it is one and not a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def is_loopback(address: Address) -> bool:
    """Return whether an address is of this machine; an IPv4-mapped one is what it maps."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def read_networks(said: object, where: str) -> tuple[str, ...]:
    """Return the proxies that the settings of something trust; `where` says whose settings they are."""
    if not isinstance(said, tuple | list) or not all(isinstance(one, str) and is_network(one) for one in said):
        raise InvalidSettings(
            f"{where}.trusted_proxies must be a list of addresses or networks, such as [127.0.0.1, 10.0.0.0/8]."
        )
    return tuple(said)


def is_network(text: str) -> bool:
    """Whether a text is an address or a network."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def canonical(address: Address) -> str:
    """Return the one spelling of an address (RFC 5952); Python's own of an IPv4-mapped one depends on its version."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(address) if mapped is None else f"::ffff:{mapped}"


def refused_addresses(addresses: list[Address]) -> list[Address]:
    """Those of a host's addresses that nothing is fetched from: one is enough to refuse the host."""
    return [address for address in addresses if not is_public(address)]


def _host(parts: SplitResult) -> str:
    said = parts.hostname or ""
    if "[" in parts.netloc or ":" in said:
        found = literal(said)
        is_alone = _BRACKETED.fullmatch(parts.netloc)
        if not is_alone or not isinstance(found, IPv6Address) or found.scope_id:
            raise Refused(f"{_shown(parts.netloc)} is no host.")
        return canonical(found)
    try:
        host = said.encode("idna").decode("ascii").lower() if not said.isascii() else said.lower()
    except UnicodeError:
        raise Refused(f"{_shown(said)} is no host.") from None
    host = host.removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise Refused(f"{_shown(said)} is no host.")
    is_disguised = _NUMBER.fullmatch(labels[-1]) and not (_CANONICAL.fullmatch(host) and literal(host))
    if is_disguised:
        raise Refused(f"{_shown(said)} is an address in disguise; write it as four numbers with dots between them.")
    return host


def _shown(text: str) -> str:
    return repr(shorten(one_line(text), 100))
