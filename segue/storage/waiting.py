"""Says what is waited for, once it has taken a second: to a listener if there is one, otherwise to the log."""

from collections.abc import Callable

NOTICE_SECONDS = 1.0
A_WRITER = "another process that is writing to the database"
A_READER = "another process that is reading the database"
THE_SERVER = "the database server, which does not answer"

_listeners: list[Callable[[str], object]] = []


def tell_waits_to(listener: Callable[[str], object] | None) -> None:
    """Have sentences about waiting told to a listener, in whichever thread waits; None is the log again."""
    _listeners[:] = [] if listener is None else [listener]


def is_somebody_told() -> bool:
    return bool(_listeners)


def tell_wait(awaited: str) -> None:
    """Say what is waited for."""
    sentence = f"Waiting for {awaited}."
    if not _listeners:
        import logging  # costs milliseconds, and hardly anybody waits

        logging.getLogger(__name__).info(sentence)
    for listener in _listeners:
        listener(sentence)
