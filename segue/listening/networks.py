"""Networks of proxies, as settings name them."""

from segue.core.addresses import is_network
from segue.core.errors import InvalidSettings


def read_networks(said: object, where: str) -> tuple[str, ...]:
    """Return the proxies that a setting names; `where` says whose setting it is."""
    if not isinstance(said, tuple | list) or not all(isinstance(one, str) and is_network(one) for one in said):
        raise InvalidSettings(
            f"{where}.trusted_proxies must be a list of addresses or networks, such as [127.0.0.1, 10.0.0.0/8]."
        )
    return tuple(said)
