"""What an examination finds: what is wrong, what to do about it, and how it can be mended."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from segue.config import Settings
from segue.storage.engines import engine_at
from segue.storage.store import SqlStore


class Severity(StrEnum):
    PROBLEM = "problem"
    ADVICE = "advice"
    """Worth knowing, and no fault."""


class Finding(NamedTuple):
    says: str
    remedy: str
    mend: Callable[[], str] | None = None
    """Puts it right, and says what was done."""
    severity: Severity = Severity.PROBLEM


class Patient(NamedTuple):
    """A home to be examined."""

    settings: Settings
    now: float
    trouble: str | None = None
    """What is wrong with the configuration, when the settings are the defaults for want of better."""

    @property
    def home(self) -> Path:
        return self.settings.home

    @property
    def database(self) -> Path:
        """The file, where there is one."""
        return self.settings.database_path

    @property
    def is_on_server(self) -> bool:
        return self.settings.is_on_server

    def opened(self, *, read_only: bool = False) -> SqlStore:
        """The store, wherever it is."""
        return SqlStore(engine_at(self.settings.database_at, read_only=read_only))


Check = Callable[[Patient], list[Finding]]


def advice(says: str, remedy: str) -> Finding:
    return Finding(says, remedy, severity=Severity.ADVICE)
