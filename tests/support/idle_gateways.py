"""How much memory gateways need that have nothing to do."""

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gateway_process import House
from waiting import wait_until

_PAGE = 4096
_STEADY = 100
"""Looks in a row at which all are to have as much as at the last one: nothing is loaded any more."""

Ask = Callable[..., subprocess.CompletedProcess[str]]


def idle_megabytes(folder: Path, ask: Ask, kinds: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Of gateways whose platforms are connected, all at once, in millions of bytes that each really has."""
    houses = {name: House(folder / name, platforms, gateway={"port": 0}) for name, platforms in kinds.items()}
    try:
        begun = {name: house.begin() for name, house in houses.items()}
        for name, house in houses.items():
            _wait(house, ask, set(kinds[name]))
        return _settled({name: process.pid for name, process in begun.items()})
    finally:
        for house in houses.values():
            house.close()


def _wait(house: House, ask: Ask, names: set[str]) -> None:
    """Until all of these are connected."""

    def are_connected() -> bool:
        time.sleep(0.1)  # each look is a process, which would keep the gateways from their work
        found = json.loads(ask("status", "--json", SEGUE_HOME=str(house.home)).stdout)["gateway"]["platforms"]
        up = {one["platform"] for one in found if one["state"] == "connected"}
        return bool(up) and names <= up

    wait_until(are_connected, f"{names} connected in {house.folder}")


def _settled(pids: Mapping[str, int]) -> dict[str, float]:
    looks: list[dict[str, int]] = []

    def are_steady() -> bool:
        looks.append({name: int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for name, pid in pids.items()})
        return len(looks) > _STEADY and all(one == looks[-1] for one in looks[-_STEADY:])

    wait_until(are_steady, "gateways that need no more memory")
    return {name: pages * _PAGE / 1_000_000 for name, pages in looks[-1].items()}
