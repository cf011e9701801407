"""Who we are to a homeserver: logged in once by the password, and then the same device for ever."""

import logging
from typing import Any

from segue.platforms.matrix.asking import Line
from segue.platforms.matrix.client import Client
from segue.platforms.matrix.events import mapping
from segue.platforms.matrix.failing import LoggedOut, Refused, Trouble
from segue.platforms.matrix.keyring import Device, Keyring
from segue.platforms.matrix.settings import MatrixSettings

_FORBIDDEN = ("M_FORBIDDEN", "M_USER_DEACTIVATED", "M_INVALID_USERNAME", "M_UNKNOWN")

_log = logging.getLogger(__name__)


async def logged_in(settings: MatrixSettings, keyring: Keyring) -> Device:
    """The device that we are; where nobody has logged in yet, or not any more, after logging in."""
    if settings.access_token is not None:
        return await _named(settings, settings.access_token)
    known = keyring.find_device(settings.homeserver, settings.user)
    if known is not None and known.access_token:
        return known
    device = await _log_in(settings, known.device_id if known else None)
    keyring.keep_device(settings.homeserver, device)
    _log.info("Logged in as %s on the device %s.", device.user_id, device.device_id)
    return device


def logged_out(settings: MatrixSettings, keyring: Keyring) -> Trouble:
    """The homeserver does not know our token any more; what is to be done about that."""
    known = keyring.find_device(settings.homeserver, settings.user)
    if settings.access_token is not None or known is None:
        return Trouble(
            "The homeserver does not know platforms.matrix.access_token; make a new one, or set a password instead."
        )
    keyring.keep_device(settings.homeserver, known._replace(access_token=None))
    return Trouble("The homeserver has ended our login; we log in again as the same device.")


async def is_keyed(line: Line, client: Client) -> bool:
    """Whether others are told the keys of our device, or will be, and not keys that somebody else has."""
    assert client.olm is not None
    asked = {"device_keys": {client.user_id: [client.device_id]}}
    said = await line.ask("POST", "v3", "keys", "query", body=asked)
    ours = mapping(mapping(mapping(said.get("device_keys")).get(client.user_id)).get(client.device_id))
    keys = mapping(ours.get("keys"))
    if not keys:
        client.olm.account.shared = False  # they were never told, or the device was removed in the meantime
    return not keys or keys.get(f"ed25519:{client.device_id}") == client.olm.account.identity_keys["ed25519"]


async def opened(settings: MatrixSettings, keyring: Keyring, line: Line, device: Device) -> Client:
    """What keeps our rooms and keys."""
    client = Client(line, device, keyring, encryption=settings.encryption)
    try:
        if client.olm is None or await is_keyed(line, client):
            return client
    except BaseException:
        client.shut()
        raise
    client.shut()
    if settings.access_token is None:
        keyring.forget_device()
        raise Trouble(
            f"The keys of the device {device.device_id} are not in {keyring.folder}; we log in as a new device."
        )
    _log.warning("Encrypted rooms cannot be read: the keys of the access token's device are elsewhere.")
    return Client(line, device, keyring, encryption=False)


async def _log_in(settings: MatrixSettings, device_id: str | None) -> Device:
    said: dict[str, Any] = {
        "type": "m.login.password",
        "identifier": {"type": "m.id.user", "user": settings.user},
        "password": settings.password,
        "initial_device_display_name": settings.device_name,
    }
    line = Line(settings.homeserver)
    try:
        found = await line.ask("POST", "v3", "login", body=said | ({"device_id": device_id} if device_id else {}))
    except Refused as refused:
        if refused.status in (400, 401, 403) and refused.code in _FORBIDDEN:
            raise Trouble(
                f"The homeserver does not let {settings.user} in: check platforms.matrix.user and"
                " platforms.matrix.password, and begin anew with `segue gateway restart`."
            ) from None
        raise
    finally:
        await line.close()
    return _checked(settings, found, found.get("access_token"))


async def _named(settings: MatrixSettings, token: str) -> Device:
    """The device that an access token belongs to."""
    line = Line(settings.homeserver, token)
    try:
        found = await line.ask("GET", "v3", "account", "whoami")
    except LoggedOut:
        raise Trouble(
            "The homeserver does not know platforms.matrix.access_token; make a new one, or set a password instead."
        ) from None
    finally:
        await line.close()
    return _checked(settings, found, token)


def _checked(settings: MatrixSettings, found: dict[str, Any], token: object) -> Device:
    user_id, device_id = found.get("user_id"), found.get("device_id")
    if user_id != settings.user:
        raise Trouble(f"The homeserver calls us {user_id!s}; platforms.matrix.user has to be that.")
    if not isinstance(device_id, str) or not isinstance(token, str):
        raise Trouble("The homeserver gave us no device; platforms.matrix needs a login that has one.")
    return Device(settings.user, device_id, token)
