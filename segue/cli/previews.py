"""Things that are shown before something is done to them, and told when it is done."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from segue.cli.output import Column, note, say, show_json, table
from segue.core.text import count

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Preview(Generic[T]):
    """How things of a kind are shown: as a table to people, under their name to programs."""

    noun: str
    columns: list[Column]
    cells: Callable[[T, float], list[str]]
    row: Callable[[T], dict[str, Any]]

    def table(self, things: Sequence[T]) -> None:
        now = time.time()
        table(self.columns, [self.cells(one, now) for one in things])

    def is_shown(self, things: Sequence[T], heading: str, *, dry_run: bool, as_json: bool) -> bool:
        """Show what would be changed; whether to go on."""
        if as_json:
            if dry_run or not things:
                self._json(things, dry_run=dry_run)
                return False
            return True
        if not things:
            note(f"There are no such {self.noun}s.")
            return False
        say(heading, bold=True)
        self.table(things)
        if dry_run:
            say("Nothing was changed.")
        return not dry_run

    def tell(self, things: Sequence[T], one: str, many: str, *, as_json: bool) -> None:
        """Say what was done."""
        if as_json:
            self._json(things, dry_run=False)
        else:
            say(f"{count(len(things), self.noun)} {one if len(things) == 1 else many}.")

    def them(self, things: Sequence[T]) -> str:
        return "it" if len(things) == 1 else f"these {len(things):,} {self.noun}s"

    def _json(self, things: Sequence[T], *, dry_run: bool) -> None:
        show_json({f"{self.noun}s": [self.row(one) for one in things], "dry_run": dry_run})
