"""What belongs to our device, in a folder of its own: who we are to the homeserver, and the keys of the device.

A device and its keys belong together. Nobody else can read the folder, and what is written there is written whole.
"""

import json
import os
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from segue.core.errors import StoreError
from segue.platforms.matrix.failing import Trouble

KEYS = "keys.db"
_DEVICE, _PICKLE_KEY, _WAITING = "device.json", "pickle.key", "waiting.json"


class Device(NamedTuple):
    """Who we are to the homeserver."""

    user_id: str
    device_id: str
    access_token: str | None
    """None when we have to log in again."""

    def __repr__(self) -> str:
        return f"Device({self.user_id!r}, {self.device_id!r})"  # never the token


class Keyring:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self) -> None:
        """Make the folder, and the file of the keys, so that they are nobody else's from the beginning."""
        try:
            for folder in (self.folder.parent, self.folder):
                folder.mkdir(mode=0o700, exist_ok=True)
            self.folder.chmod(0o700)
            os.close(os.open(self.folder / KEYS, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
        except OSError as error:
            raise StoreError(f"Nothing can be kept in {self.folder}: {error.strerror}.") from error

    def find_device(self, homeserver: str, user_id: str) -> Device | None:
        """The device that we have been there."""
        said = self._read(_DEVICE)
        if not isinstance(said, dict) or (said.get("homeserver"), said.get("user_id")) != (homeserver, user_id):
            return None
        return Device(user_id, str(said["device_id"]), said.get("access_token"))

    def keep_device(self, homeserver: str, device: Device) -> None:
        self._write(_DEVICE, {"homeserver": homeserver, **device._asdict()})

    def forget_device(self) -> None:
        """The next login makes another."""
        (self.folder / _DEVICE).unlink(missing_ok=True)

    def pickle_key(self) -> str:
        """What the keys of the device are encrypted with; made once."""
        said = self._read(_PICKLE_KEY)
        if not isinstance(said, str):
            said = secrets.token_hex(32)
            self._write(_PICKLE_KEY, said)
        return said

    def waiting(self) -> list[dict[str, Any]]:
        """Messages whose keys have not come yet."""
        said = self._read(_WAITING)
        return [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []

    def keep_waiting(self, messages: list[dict[str, Any]]) -> None:
        self._write(_WAITING, messages)

    def _read(self, name: str) -> Any:
        path = self.folder / name
        try:
            return json.loads(path.read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise Trouble(
                f"{path} cannot be read; put it back from a backup, or move the folder away to begin as a new device."
            ) from error

    def _write(self, name: str, value: object) -> None:
        """On the disk, and whole, when this returns."""
        part = self.folder / f"{name}.{secrets.token_hex(4)}.part"
        try:
            descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w") as file:
                json.dump(value, file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.folder / name)
            _onto_disk(self.folder)
        except OSError as error:
            raise StoreError(f"Nothing can be kept in {self.folder}: {error.strerror}.") from error
        finally:
            part.unlink(missing_ok=True)


def _onto_disk(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
