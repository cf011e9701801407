"""Where a turn stands: its session, and the right to it. Both change when the conversation is compressed."""

from dataclasses import dataclass

from segue.core.leases import Lease
from segue.core.turns import Turn


@dataclass(slots=True)
class Footing:
    lease: Lease
    turn: Turn
