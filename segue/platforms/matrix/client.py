"""The rooms that we are in, and the keys of our device: what nio's client keeps for us.

It is given the state of rooms and what others tell our device, and nothing else of what a homeserver says: a message
that its schemas do not know must neither be lost nor stop what comes behind it. Where it would lose a key, it is
helped.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from nio import (  # type: ignore[import-untyped]
    Api,
    AsyncClient,
    AsyncClientConfig,
    EncryptionError,
    ErrorResponse,
    KeysUploadResponse,
    LocalProtocolError,
    MatrixRoom,
    MegolmEvent,
    SyncResponse,
    ToDeviceEvent,
)
from nio import Event as NioEvent
from nio.store import SqliteStore  # type: ignore[import-untyped]

from segue.platforms.matrix.asking import SECONDS, Line, said_by
from segue.platforms.matrix.events import ENCRYPTED, Event, content_of, text_of
from segue.platforms.matrix.failing import LoggedOut, Refused, Trouble, refusal, translated
from segue.platforms.matrix.inbound import Room
from segue.platforms.matrix.keyring import KEYS, Device, Keyring

_MEGOLM = "m.megolm.v1.aes-sha2"
_WORST_ANSWER = 400
_log = logging.getLogger(__name__)

for _name in ("nio", "peewee"):  # their lines hold tokens, keys, and what people say
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


class Client(AsyncClient):  # type: ignore[misc]
    def __init__(self, line: Line, device: Device, keyring: Keyring, *, encryption: bool) -> None:
        config = AsyncClientConfig(
            max_limit_exceeded=0,  # whoever asks is told, and decides when to ask again
            max_timeouts=0,
            request_timeout=SECONDS,
            store=SqliteStore,
            store_name=KEYS,
            encryption_enabled=encryption,
            pickle_key=keyring.pickle_key() if encryption else "",
        )
        super().__init__(line.homeserver, device.user_id, device.device_id, str(keyring.folder), config)
        self.client_session = line.session
        self.restore_login(device.user_id, device.device_id, device.access_token or "")
        self._sharing: dict[str, asyncio.Lock] = {}

    def shut(self) -> None:
        """Close the file of the keys."""
        if self.store is not None:
            self.store.database.close()

    # Rooms

    def room(self, room_id: str) -> Room:
        """What is known of a room."""
        found = self.rooms.get(room_id)
        if found is None:
            return Room(room_id)
        names = {user.user_id: user.display_name for user in found.users.values() if user.display_name}
        return Room(room_id, found.display_name or None, _members(found), names, found.join_rule == "invite")

    async def hear(self, said: Mapping[str, Any]) -> None:
        """Take what a homeserver tells of rooms and of keys."""
        self.next_batch = ""  # or what is read again would be passed over
        told = {
            name: said[name] for name in ("to_device", "device_lists", "device_one_time_keys_count") if name in said
        }
        rooms = said.get("rooms", {})
        joined = {room_id: _state_of(one) for room_id, one in rooms.get("join", {}).items()}
        await self.receive_response(_parsed({**told, "next_batch": "read", "rooms": {"join": joined}}))
        for room_id, one in rooms.get("join", {}).items():
            if one.get("timeline", {}).get("limited"):
                self._doubt_members(room_id)
        for room_id in rooms.get("leave", {}):
            self.rooms.pop(room_id, None)

    def _doubt_members(self, room_id: str) -> None:
        """Whoever came or went while nobody looked is asked for before something is encrypted for them."""
        self.rooms[room_id].members_synced = False
        if self.olm:
            self.invalidate_outbound_session(room_id)

    # Reading

    def is_keyed(self, room_id: str, event: Event) -> bool:
        """Whether there is a key to an encrypted message."""
        sealed = self._sealed(room_id, event)
        return sealed is not None and self._sender_key(room_id, sealed.source) is not None

    def _sender_key(self, room_id: str, event: Event) -> str | None:
        """Which device's key opens a message; who wrote it need not say so."""
        assert self.olm is not None
        content = content_of(event)
        said, session = text_of(content.get("sender_key")), text_of(content.get("session_id"))
        known = {
            key: sessions for key, sessions in self.olm.inbound_group_store[room_id].items() if session in sessions
        }
        return said if said in known else next(iter(known), None) if said is None else None

    def opened(self, room_id: str, event: Event) -> Event | None:
        """A message as it was written; None when it cannot be decrypted."""
        if event.get("type") != ENCRYPTED:
            return event
        if (sealed := self._sealed(room_id, event)) is None:
            return None
        try:
            found = self.decrypt_event(sealed).source
        except (EncryptionError, LocalProtocolError):
            return None
        except Exception:  # noqa: BLE001 - whoever wrote it chose its bytes, and nothing of it stops the others
            _log.warning("A message in %s is no message that can be decrypted.", room_id)
            return None
        kept = {name: event[name] for name in ("event_id", "sender", "origin_server_ts", "unsigned") if name in event}
        return {**found, **kept}

    async def ask_for_key(self, room_id: str, event: Event) -> None:
        """Ask our other devices, and the one that wrote it."""
        if (sealed := self._sealed(room_id, event)) is None or sealed.session_id in self.outgoing_key_requests:
            return
        theirs = sealed.as_key_request(sealed.sender, self.device_id, sealed.session_id, sealed.device_id)
        with translated(self.homeserver):
            _checked(await self.request_room_key(sealed))
            _checked(await self.to_device(theirs))

    def _sealed(self, room_id: str, event: Event) -> MegolmEvent | None:
        """A message that could be decrypted, as nio wants it."""
        content = content_of(event)
        if self.olm is None or content.get("algorithm") != _MEGOLM:
            return None
        named = {"sender_key": self._sender_key(room_id, event) or "unknown", "device_id": "unknown"}
        try:
            found = MegolmEvent.from_dict({**event, "room_id": room_id, "content": {**named, **content}})
        except (KeyError, TypeError, AttributeError):
            return None
        return found if isinstance(found, MegolmEvent) else None

    # Keys

    async def tend(self) -> None:
        """Do what has to be done about keys; what a homeserver refuses is tried again the next time."""
        if self.olm is None:
            return
        try:
            with translated(self.homeserver):
                await self._tend()
        except LoggedOut:
            raise
        except Refused as refused:
            _log.warning("The keys of our device are not in order: %s", refused)

    async def _tend(self) -> None:
        if self.should_upload_keys:
            _checked(await self.keys_upload())
        if self.should_query_keys:
            _checked(await self.keys_query())
        if self.should_claim_keys:
            _checked(await self.keys_claim(self.get_users_for_key_claiming()))
        for message in list(self.outgoing_to_device_messages):
            _checked(await self.to_device(message))

    async def be_ready(self, room_id: str) -> None:
        """Everybody in a room can read what is encrypted there next."""
        async with self._sharing.setdefault(room_id, asyncio.Lock()):
            with translated(self.homeserver):
                await self._share(room_id)

    async def _share(self, room_id: str) -> None:
        assert self.olm is not None
        room = self.rooms[room_id]
        if not room.members_synced:
            _checked(await self.joined_members(room_id))
        if self.should_query_keys:
            _checked(await self.keys_query())
        if not self.olm.should_share_group_session(room_id):
            return
        if missing := self.get_missing_sessions(room_id):
            _checked(await self.keys_claim(missing))
        try:
            shared = await self.share_group_session(room_id, ignore_unverified_devices=True)
        finally:
            self.sharing_session.pop(room_id, None)  # or it would be waited for, for ever
        if left_out := self._listeners(room_id) - shared.users_shared_with:
            self.olm.outbound_group_sessions.pop(room_id, None)
            raise Trouble(f"The key of the room did not reach {len(left_out)} devices; it is tried again.")

    def _listeners(self, room_id: str) -> set[tuple[str, str]]:
        """The devices that can be given a key."""
        assert self.olm is not None
        devices = (one for user in self.rooms[room_id].users for one in self.device_store.active_user_devices(user))
        return {
            (device.user_id, device.id)
            for device in devices
            if device.id != self.device_id
            and not self.olm.is_device_blacklisted(device)
            and self.olm.session_store.get(device.curve25519)
        }

    # Where nio would lose a key, or take a no for a yes

    async def send(self, *args: Any, **kwargs: Any) -> Any:
        """As nio does it, but whatever is refused is raised, and never read as an answer."""
        answer = await super().send(*args, **kwargs)
        if answer.status >= _WORST_ANSWER:
            async with answer:
                raise refusal(answer.status, await said_by(answer))
        return answer

    async def keys_upload(self) -> Any:
        """As nio does it, but what others will use is on the disk before they can."""
        assert self.olm is not None
        keys = self.olm.share_keys()
        self.olm.save_account()
        method, path, data = Api.keys_upload(self.access_token, keys)
        return await self._send(KeysUploadResponse, method, path, data)

    async def _handle_to_device(self, response: SyncResponse) -> None:
        """What is known of a message and the key that it brings are stored together, or neither is."""
        with self.store.database.atomic() if self.store else nullcontext():
            await super()._handle_to_device(response)

    def _handle_decrypt_to_device(self, to_device_event: Any) -> Any:
        """Anybody can tell our device anything; what cannot be read stops nothing."""
        try:
            return super()._handle_decrypt_to_device(to_device_event)
        except Exception:  # noqa: BLE001 - whoever wrote it chose its bytes
            _log.warning("What somebody told our device cannot be read.")
            return None

    def _handle_olm_events(self, response: SyncResponse) -> None:
        super()._handle_olm_events(response)
        if response.device_key_count.signed_curve25519 == 0 and self.olm:
            self.olm.uploaded_key_count = 0  # nio takes none for unknown, and would never make new ones


def _members(room: MatrixRoom) -> int:
    """How many are inside or invited, as the homeserver counts them: not all of them are told of by name."""
    counted = room.summary
    if counted is None or counted.joined_member_count is None:
        return 0
    return int(counted.joined_member_count) + int(counted.invited_member_count or 0)


def _checked(answer: Any) -> Any:
    """An answer that nio could read."""
    if isinstance(answer, ErrorResponse):
        raise Trouble("The homeserver says something about keys that cannot be understood; it is asked again.")
    return answer


def _state_of(room: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a room as it is now, with what changed it in the meantime."""
    timeline = room.get("timeline", {}).get("events", [])
    before = [*room.get("state", {}).get("events", []), *room.get("state_after", {}).get("events", [])]
    changes = [one for one in timeline if isinstance(one, dict) and "state_key" in one]
    return {"state": {"events": [*before, *changes]}, "summary": room.get("summary", {})}


def _parsed(said: dict[str, Any]) -> SyncResponse:
    """As nio reads it; where it cannot, without what it cannot read."""
    if (found := _read(said)) is not None:
        return found
    _log.warning("Something that a room says of itself, or somebody to our device, cannot be read, and is left out.")
    for room in said["rooms"]["join"].values():
        room["state"]["events"] = _readable(NioEvent, room["state"]["events"])
    said["to_device"] = {"events": _readable(ToDeviceEvent, said.get("to_device", {}).get("events", []))}
    if (found := _read(said)) is None:
        raise Trouble("The homeserver says something that cannot be understood; it is asked again.")
    return found


def _read(said: dict[str, Any]) -> SyncResponse | None:
    try:
        found = SyncResponse.from_dict(said)
    except Exception:  # noqa: BLE001 - what is in it is written by anybody
        return None
    return found if isinstance(found, SyncResponse) else None


def _readable(kind: Any, events: Sequence[Any]) -> list[Any]:
    def can_be_read(event: Any) -> bool:
        try:
            kind.parse_event(event)
        except Exception:  # noqa: BLE001 - as above
            return False
        return isinstance(event, dict)

    return [event for event in events if can_be_read(event)]
