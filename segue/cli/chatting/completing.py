"""What can be completed while somebody types: commands, and conversations to go on with."""

from segue.cli.chatting.offers import Offer, Offers
from segue.core.commands import COMMANDS
from segue.core.scope import OWNER_AT_CONSOLE
from segue.ports.store import Filter, Store
from segue.sessions.listing import list_sessions

_OFFERED = 20


def offers_from(store: Store) -> Offers:
    def conversations(typed: str) -> list[Offer]:
        """Called in another thread, which the store does not mind."""
        wanted = Filter(beginning=typed)
        found = store.read(OWNER_AT_CONSOLE, list_sessions, wanted, _OFFERED)
        return [Offer(one.title or one.id, one.first_line) for one in found]

    commands = tuple(Offer(f"/{spec.name}", spec.help) for spec in COMMANDS)
    return Offers(commands, {"/resume": conversations})
