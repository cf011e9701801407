"""What a gateway would keep of what an adapter brings: each message once, and how far the platform has been read.

It outlives the adapters that a test connects one after another, as the rows of a gateway outlive its processes.
"""

from collections.abc import Callable

from segue.core.errors import StoreError
from segue.core.inbound import Cursor, Inbound, Receipt
from segue.core.inbox import chat_of
from segue.core.sources import SessionSource
from segue.ports.platform import Intake

Name = tuple[str, str, str, str, str]


class Ledger(Intake):
    """An intake for tests of adapters."""

    def __init__(
        self,
        welcome: Callable[[SessionSource], bool] = lambda _: True,
        words: Callable[[Inbound], str] = lambda inbound: inbound.text,
    ) -> None:
        self.accepted: list[Inbound] = []
        self.brought: list[Inbound] = []
        """Everything, also what was known."""
        self.withdrawn: list[tuple[SessionSource, str]] = []
        self.learned: list[SessionSource] = []
        self.cursors: dict[str, str] = {}
        self.is_connected = False
        self.refusals = 0
        """How many of the next messages cannot be put down."""
        self.before_commit: Callable[[Inbound], None] = lambda _: None
        self._names: set[Name] = set()
        self._welcome = welcome
        self._words = words

    @property
    def texts(self) -> list[str]:
        return [self._words(inbound) for inbound in self.accepted]

    async def receive(self, inbound: Inbound) -> Receipt:
        self.brought.append(inbound)
        if self.refusals:
            self.refusals -= 1
            raise StoreError("The store is away for a moment.")
        self.before_commit(inbound)
        is_new = name_of(inbound) not in self._names
        if is_new:
            self._names.add(name_of(inbound))
            self.accepted.append(inbound)
        if inbound.cursor is not None:
            await self.advance(inbound.cursor)
        return Receipt.ACCEPTED if is_new else Receipt.KNOWN

    async def learn(self, source: SessionSource) -> None:
        self.learned.append(source)

    async def withdraw(self, source: SessionSource, message_id: str) -> None:
        self.withdrawn.append((source, message_id))

    async def cursor(self, name: str) -> str | None:
        return self.cursors.get(name)

    async def advance(self, cursor: Cursor) -> None:
        self.cursors[cursor.name] = cursor.value

    async def is_heard(self, source: SessionSource, *, is_mention: bool) -> bool:
        return (is_mention or source.chat_type == "dm") and self._welcome(source)

    async def is_welcome(self, source: SessionSource) -> bool:
        return self._welcome(source)

    def connected(self) -> None:
        self.is_connected = True


def name_of(inbound: Inbound) -> Name:
    """What a message is known by for ever."""
    source = inbound.source
    return source.platform, source.account or "", chat_of(source), inbound.message_id, inbound.edit
