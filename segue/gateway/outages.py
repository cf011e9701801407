"""One line of the log when the database fails, and one when it works again, however many wait for it."""

import logging
import time
from collections.abc import Callable

from segue.agent.door import Access
from segue.core.errors import StoreClosed, StoreError, is_storage_fault
from segue.core.text import one_line

_log = logging.getLogger(__name__)


class OutageLog:
    """Knows whether the database works, as far as the last calls tell."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failing: dict[Access, float] = {}
        """When a call of each kind failed last."""
        self._since = 0.0

    def notice(self, access: Access, error: StoreError | None, began: float) -> None:
        """Take note of whether a call failed. One that began before the last failure tells nothing new."""
        if error is None:
            self._worked(access, began)
        elif is_outage(error):
            if not self._failing:
                self._since = self._clock()
                _log.warning("Database unavailable, retrying until it is back: %s", one_line(str(error)))
            self._failing[access] = self._clock()

    def _worked(self, access: Access, began: float) -> None:
        if access not in self._failing or began < self._failing[access]:
            return
        del self._failing[access]
        if not self._failing:
            _log.info("Database available again after %.1f s", self._clock() - self._since)


def is_outage(error: BaseException) -> bool:
    """Return whether the database itself failed, in contrast to refusing one call or having been closed by us."""
    return is_storage_fault(error) and not isinstance(error, StoreClosed)


def log_store_error(log: logging.Logger, what: str, error: StoreError) -> None:
    """Log what a failing database keeps from being done: at `debug` during an outage, which has a line of its own."""
    level = logging.DEBUG if is_outage(error) else logging.WARNING
    log.log(level, "%s: %s", what, one_line(str(error)))
