"""How everything stands, as data for programs: the same at the command line and over the wire."""

from collections.abc import Sequence
from typing import Any

from segue.core.leases import Run
from segue.core.links import LinkRow
from segue.core.sessions import Kind
from segue.facade.lane_rows import run_row
from segue.ports.store import Filter, Transaction
from segue.sessions import listing
from segue.sessions.leasing import IsGone
from segue.sessions.watching import Watch, watch

_RECENT = 5


def standing(tx: Transaction, is_gone: IsGone) -> dict[str, Any]:
    """How much there is, whether a gateway does its work, and the latest conversations."""
    found = listing.stats(tx)
    counted = {
        "sessions": found.sessions,
        "messages": found.messages,
        "lanes": len(tx.lanes.listed()),
        "trash": len(tx.trash.listed()),
        "sources": {one.source: {"sessions": one.sessions, "messages": one.messages} for one in found.sources},
    }
    recent = listing.list_rows(tx, Filter(kinds=(Kind.INTERACTIVE,)), _RECENT)
    return counted | _watched(watch(tx, is_gone)) | {"recent": recent}


def _watched(watched: Watch) -> dict[str, Any]:
    unattended = {
        "unattended": sum(queue.waiting for queue in watched.unattended),
        "unattended_seconds": watched.left_waiting,
    }
    return {
        "gateway": {
            "up": watched.is_up,
            "runs": [run_row(run) for run in watched.gateways],
            "platforms": [_platform(one, watched.gateways) for one in watched.platforms],
            "left_out": dict(watched.left_out),
        },
        "inbox": watched.inbox | unattended,
        "outbox": watched.outbox | {"undelivered": watched.undelivered},
    }


def _platform(link: LinkRow, gateways: Sequence[Run]) -> dict[str, Any]:
    """Return how a platform is connected, and by which gateway."""
    holder = next((run for run in gateways if run.id == link.run_id), None)
    shown = {name: value for name, value in link._asdict().items() if name != "run_id"}
    return shown | {"pid": holder and holder.pid, "host": holder and holder.host}
