"""How often something may happen: a bucket that fills with time, and from which everything that happens takes."""

from typing import NamedTuple


class Rate(NamedTuple):
    burst: int
    """How often at once."""
    seconds: float
    """After how long once more."""


class Bucket(NamedTuple):
    left: float
    at: float


STRANGERS = Rate(burst=3, seconds=60.0)
"""How often somebody whom nobody let in is listened to at all."""


def take(bucket: Bucket | None, rate: Rate, now: float) -> tuple[Bucket, bool]:
    """What is left in the bucket, and whether it may happen; a clock that steps back changes nothing."""
    if bucket is None:
        bucket = Bucket(float(rate.burst), now)
    filled = min(rate.burst, bucket.left + max(0.0, now - bucket.at) / rate.seconds)
    if filled < 1:
        return Bucket(filled, now), False
    return Bucket(filled - 1, now), True


def is_full(bucket: Bucket, rate: Rate, now: float) -> bool:
    """Whether the bucket is as if it had never been used, and can be forgotten."""
    return bucket.left + max(0.0, now - bucket.at) / rate.seconds >= rate.burst
