"""How the cost of a function grows with its input, measured in processor time on the machine at hand.

A verdict compares two costs of the same machine, so it does not depend on how fast or how busy the machine is: four
times the input costs four times as much where the work is linear, and sixteen times as much where it is quadratic.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

FACTOR = 4
LINEAR = 9.0
"""Far above what linear work grows by when the input does by `FACTOR`, and far below what quadratic work does."""
_ATTEMPTS = 5

T = TypeVar("T")


class Costs(NamedTuple):
    """Seconds that a small input and one of `FACTOR` times its size cost."""

    small: float
    large: float

    @property
    def is_linear(self) -> bool:
        return self.large < self.small * LINEAR


def costs(act: Callable[[T], object], make: Callable[[int], T], size: int) -> Costs:
    """The least of several measurements of `size` units and of fewer; one is enough when the growth is linear."""
    small, large = make(size // FACTOR), make(size)
    least = Costs(math.inf, math.inf)
    for _ in range(_ATTEMPTS):
        least = Costs(min(least.small, seconds(act, small)), min(least.large, seconds(act, large)))
        if least.is_linear:
            break
    return least


def seconds(act: Callable[[T], object], given: T) -> float:
    """Processor time that this process needed."""
    began = time.process_time()
    act(given)
    return time.process_time() - began
