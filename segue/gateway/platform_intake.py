"""What an adapter is given: where it passes on what it receives, and how the gateway learns that it is connected."""

from collections.abc import Callable

from segue.core.inbound import Cursor, Inbound, Receipt
from segue.core.sources import SessionSource
from segue.gateway.desk import Desk
from segue.ports.platform import Intake, Platform


class PlatformIntake(Intake):
    """Where one platform passes on what it receives."""

    def __init__(self, platform: Platform, desk: Desk, connected: Callable[[], None]) -> None:
        self._platform = platform
        self._desk = desk
        self._connected = connected

    async def receive(self, inbound: Inbound) -> Receipt:
        self._connected()
        return await self._desk.receive(inbound)

    async def learn(self, source: SessionSource) -> None:
        await self._desk.learn(source)

    async def withdraw(self, source: SessionSource, message_id: str) -> None:
        await self._desk.withdraw(source, message_id)

    async def cursor(self, name: str) -> str | None:
        return await self._desk.cursor(self._platform.name, self._platform.account, name)

    async def advance(self, cursor: Cursor) -> None:
        await self._desk.advance(self._platform.name, self._platform.account, cursor)

    async def is_heard(self, source: SessionSource, *, is_mention: bool) -> bool:
        return await self._desk.is_heard(source, is_mention=is_mention)

    async def is_welcome(self, source: SessionSource) -> bool:
        return await self._desk.is_welcome(source)

    def connected(self) -> None:
        self._connected()
