"""A line of the table, and what its figures mean beside each other."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

NAMES = ("append", "sustained", "crowd", "length", "list", "cold", "size", "prune", "export", "routing")
"""What can be asked for, in the order of the table."""


class Unit(StrEnum):
    SECONDS = "s"
    PER_SECOND = "/s"
    BYTES = "B"
    TIMES = "×"


class Row(NamedTuple):
    """One line of the table: a figure for each side, by name."""

    name: str
    label: str
    unit: Unit
    values: dict[str, float]
    remarks: Mapping[str, str] = MappingProxyType({})
    is_information: bool = False
    reason: str = ""
    """Whose reasons hold for this row, when they are not those of its name."""

    def cost(self, side: str) -> float:
        """How many times as much as Segue a side needs; of what is done per second, how many times less it does."""
        own, other = self.values["segue"], self.values[side]
        return own / other if self.unit is Unit.PER_SECOND else other / own
