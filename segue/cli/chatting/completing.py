"""What can be completed while somebody types: commands, and conversations to go on with."""

from typing import TYPE_CHECKING

from segue.cli.chatting.offers import Offer, Offers
from segue.core.commands import COMMANDS

if TYPE_CHECKING:  # slow to load
    from segue.ports.store import Store

_OFFERED = 20


class Completing:
    """Offers commands at once, and conversations as soon as there is a store to look in."""

    def __init__(self) -> None:
        self.store: Store | None = None
        commands = tuple(Offer(f"/{spec.name}", spec.help) for spec in COMMANDS)
        self.offers = Offers(commands, {"/resume": self._conversations})

    def _conversations(self, typed: str) -> list[Offer]:
        """Called in another thread, which the store does not mind."""
        if self.store is None:
            return []
        from segue.core.scope import OWNER_AT_CONSOLE
        from segue.ports.store import Filter
        from segue.sessions.listing import list_sessions

        found = self.store.read(OWNER_AT_CONSOLE, list_sessions, Filter(beginning=typed), _OFFERED)
        return [Offer(one.title or one.id, one.first_line) for one in found]
