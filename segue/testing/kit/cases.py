"""The cases, by name, and how one is run."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from segue.testing.kit import arriving, sending
from segue.testing.kit.counterpart import Act, Counterpart

LONGEST = 540.0
"""Seconds that a case may take; no case that passes comes near it."""


class Case(NamedTuple):
    name: str
    act: Act

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    async def run(self, counterpart: Counterpart) -> None:
        """Raises `AssertionError` with a sentence when the adapter does not do what every adapter does."""
        try:
            async with asyncio.timeout(LONGEST):
                await self.act(counterpart)
        finally:
            await counterpart.close()


CASES: Sequence[Case] = [Case(name, act) for name, act in {**arriving.CASES, **sending.CASES}.items()]


def cases_for(cannot: Mapping[str, str]) -> list[Case]:
    """Those that can happen; a reason for a case that there is not is a mistake."""
    if unknown := set(cannot) - {case.name for case in CASES}:
        raise ValueError(f"There is no case {min(unknown)!r}.")
    return [case for case in CASES if case.name not in cannot]
