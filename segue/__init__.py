"""Segue gives AI agents durable conversations."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from segue.core.errors import SegueError as SegueError
    from segue.core.scope import OWNER as OWNER
    from segue.core.scope import Principal as Principal
    from segue.core.sources import SessionSource as SessionSource
    from segue.facade.session_db import SessionDB as SessionDB
    from segue.facade.session_entry import SessionEntry as SessionEntry
    from segue.facade.session_store import SessionStore as SessionStore

__version__ = "0.1.0"

_HOMES = {
    "OWNER": "segue.core.scope",
    "Principal": "segue.core.scope",
    "SegueError": "segue.core.errors",
    "SessionDB": "segue.facade.session_db",
    "SessionEntry": "segue.facade.session_entry",
    "SessionSource": "segue.core.sources",
    "SessionStore": "segue.facade.session_store",
}

__all__ = ["OWNER", "Principal", "SegueError", "SessionDB", "SessionEntry", "SessionSource", "SessionStore"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: most commands need little of it."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'segue' has no attribute {name!r}")
