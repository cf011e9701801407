"""Where conversations may be kept."""

_SCHEMES = ("postgresql://", "postgres://")


def is_address(place: str) -> bool:
    """Whether a place is a database on a server, and not a file."""
    return place.startswith(_SCHEMES)
