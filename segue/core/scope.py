"""Who asks, and who will see the answer. Every read of the store is made under a scope."""

from typing import NamedTuple, NewType

Principal = NewType("Principal", str)
"""`owner`, a person as `platform:id`, a linked person as `person:name`, or a room by its key."""

Audience = NewType("Audience", str)

OWNER = Principal("owner")
CONSOLE = Audience("console")
"""The owner's own terminal: nobody else looks on."""
PRIVATE = Audience("")
"""A direct conversation: only the principal sees the answer."""


class Scope(NamedTuple):
    """What may be read: everything at the owner's terminal, one's own in private, the room's own in a room."""

    principal: Principal
    audience: Audience = PRIVATE

    @property
    def sees_all(self) -> bool:
        return self.principal == OWNER and self.audience == CONSOLE

    @property
    def is_owner_alone(self) -> bool:
        """True if only the owner reads the answer, who alone may read details of errors."""
        return self.principal == OWNER and self.room is None

    @property
    def room(self) -> Audience | None:
        """The room that looks on, when one does. A hook is one, too: others write what it says."""
        return None if self.audience in (CONSOLE, PRIVATE) else self.audience


OWNER_AT_CONSOLE = Scope(OWNER, CONSOLE)


def scope_for(principal: Principal) -> Scope:
    """The scope of somebody who asks where nobody else looks on."""
    return OWNER_AT_CONSOLE if principal == OWNER else Scope(principal)
