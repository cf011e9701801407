"""How much memory a gateway needs that has nothing to do."""

import json
import time
from pathlib import Path
from typing import Any

from gateway_process import House

_PAGE = 4096
_SETTLED = 3.0
"""Seconds after which nothing is loaded any more."""


def idle_megabytes(folder: Path, platforms: dict[str, Any]) -> float:
    """Of a gateway whose platforms are connected, in millions of bytes that it really has."""
    folder.mkdir(parents=True)
    house = House(folder, platforms, gateway={"port": 0})
    process = house.begin()
    try:
        _wait(house, set(platforms))
        time.sleep(_SETTLED)
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    finally:
        house.close()
    return pages * _PAGE / 1_000_000


def _wait(house: House, names: set[str], seconds: float = 60.0) -> None:
    """Until all of these are connected."""
    until = time.monotonic() + seconds
    while True:
        found = json.loads(house.ask("status", "--json").stdout)["gateway"]["platforms"]
        up = {one["platform"] for one in found if one["state"] == "connected"}
        if up and names <= up:
            return
        assert time.monotonic() < until, f"{names - up} were not connected: {found}\n{house.log.read_text()}"
        time.sleep(0.2)
