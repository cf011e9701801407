"""The settings of batches: there are none. What a batch needs is said when it is run."""

from collections.abc import Mapping
from typing import NamedTuple

from segue.core.errors import InvalidSettings


class BatchSettings(NamedTuple):
    """Nothing to choose."""


def read_settings(own: Mapping[str, object]) -> BatchSettings:
    """The settings as they were written; whatever is there means something that batches do not know."""
    if own:
        raise InvalidSettings(
            f"platforms.batch has the unknown key {sorted(own)[0]!r}: it knows none, and `segue batch run` takes"
            " options."
        )
    return BatchSettings()
