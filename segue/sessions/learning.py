"""What a platform tells of a place though nobody has said anything there."""

from segue.core.origins import is_same_place, renamed
from segue.core.sources import SessionSource, kept_source
from segue.ports.store import Transaction


def learn(tx: Transaction, source: SessionSource) -> int:
    """Every lane of the place knows it from now on, its clock and its session untouched; how many there are."""
    source = kept_source(source)
    known = [(lane.key, lane.origin) for lane in tx.lanes.listed() if lane.origin]
    there = [(key, origin) for key, origin in known if is_same_place(origin, source)]
    for key, origin in there:
        tx.lanes.set_origin(key, renamed(origin, source))
    return len(there)
