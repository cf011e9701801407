"""The settings of Matrix, as the adapter reads them: which homeserver, who we are there, and how that is proved."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from segue.core.addresses import is_loopback, literal
from segue.core.errors import InvalidSettings

_KEYS = frozenset({"homeserver", "user", "password", "access_token", "device_name", "encryption"})
_USER = re.compile(r"@[^\s:@]{1,200}:[A-Za-z0-9.\-\[\]:]{1,230}")
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class MatrixSettings:
    homeserver: str
    """Where its clients speak to it; without a slash at the end."""
    user: str
    password: str | None = field(default=None, repr=False)
    access_token: str | None = field(default=None, repr=False)
    device_name: str = "Segue"
    encryption: bool = True

    @property
    def localpart(self) -> str:
        return localpart_of(self.user)


def localpart_of(user_id: str) -> str:
    return user_id.removeprefix("@").partition(":")[0]


def read_settings(own: Mapping[str, object]) -> MatrixSettings:
    """The settings as they were written, or one sentence that says what is wrong."""
    if unknown := sorted(map(str, set(own) - _KEYS)):
        raise InvalidSettings(
            f"platforms.matrix has the unknown key {unknown[0]!r}: it knows {', '.join(sorted(_KEYS))}."
        )
    password, token = _secret(own, "password"), _secret(own, "access_token")
    if (password is None) == (token is None):
        raise InvalidSettings("platforms.matrix needs either a password or an access_token, and not both.")
    encryption = own.get("encryption", True)
    if not isinstance(encryption, bool):
        raise InvalidSettings("platforms.matrix.encryption must be true or false.")
    return MatrixSettings(
        _homeserver(own.get("homeserver")), _user(own.get("user")), password, token, _device_name(own), encryption
    )


def _homeserver(said: object) -> str:
    if not isinstance(said, str) or not said.strip():
        raise InvalidSettings("platforms.matrix.homeserver must be an address, such as https://matrix.example.org.")
    try:
        place = urlsplit(said.strip())
        _ = place.port
    except ValueError:
        raise InvalidSettings("platforms.matrix.homeserver is no address; write https://matrix.example.org.") from None
    if not place.hostname or place.username or place.query or place.fragment or place.scheme not in ("http", "https"):
        raise InvalidSettings("platforms.matrix.homeserver must be an address, such as https://matrix.example.org.")
    if place.scheme == "http" and not _is_here(place.hostname):
        raise InvalidSettings(
            "platforms.matrix.homeserver must begin with https://, because the password goes there; http:// is for a"
            " homeserver on this machine."
        )
    return said.strip().rstrip("/")


def _is_here(host: str) -> bool:
    address = literal(host)
    return host == "localhost" if address is None else is_loopback(address)


def _user(said: object) -> str:
    if not isinstance(said, str) or not _USER.fullmatch(said):
        raise InvalidSettings("platforms.matrix.user must be a whole Matrix id, such as '@segue:example.org'.")
    return said


def _secret(own: Mapping[str, object], key: str) -> str | None:
    said = own.get(key)
    if said is None or said == "":
        return None
    if not isinstance(said, str):
        raise InvalidSettings(f"platforms.matrix.{key} must be a text; put it in quotation marks.")
    return said


def _device_name(own: Mapping[str, object]) -> str:
    said = own.get("device_name", "Segue")
    if not isinstance(said, str) or not 0 < len(said.strip()) <= _LONGEST_NAME:
        raise InvalidSettings(f"platforms.matrix.device_name must be a text of at most {_LONGEST_NAME} characters.")
    return said.strip()
