"""What can stand in JSON where something else is expected; whoever writes to a platform chooses it."""

from typing import Any


def nested(levels: int) -> Any:
    """A list in a list in a list."""
    deep: Any = "x"
    for _ in range(levels):
        deep = [deep]
    return deep


ODD: list[Any] = [
    None,
    True,
    7,
    -1,
    10**30,
    "",
    "half \ud800",
    "nothing \x00",
    "x" * 300,
    "..",
    [],
    [7, None, [], {}],
    {},
    {"": 7, "k": [], "id": {}},
    nested(200),
]
