"""`segue gateway unit systemd | launchd`: what lets a machine run a gateway from its start on, by its own paths."""

import sys
from collections.abc import Callable
from pathlib import Path

import click

from segue import app
from segue.cli.output import say
from segue.cli.unit_files import Place, launchd_unit, systemd_unit
from segue.config import environment_of_tools
from segue.core.errors import Invalid

_UNCALLED = set("\"'\\")
"""What systemd takes in the path of no program."""
_UNITS: dict[str, Callable[[Place], str]] = {"systemd": systemd_unit, "launchd": launchd_unit}


@click.command()
@click.argument("kind", type=click.Choice(list(_UNITS)))
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Where the agent works, and may write beside the home; this folder if not said.",
)
def unit(kind: str, folder: Path) -> None:
    """Print what lets systemd or launchd run a gateway of this home."""
    settings = app.settings()
    place = Place(
        program=(sys.executable, "-m", "segue"),
        home=settings.home.absolute(),
        folder=folder.absolute(),
        path=environment_of_tools().get("PATH", ""),
        drain_seconds=settings.agent.drain_timeout,
    )
    for one in (*place.program, str(place.home), str(place.folder), place.path):
        if not one.isprintable() or (one is place.program[0] and set(one) & _UNCALLED):
            raise Invalid(f"{one!r} cannot stand in a unit; choose a path without such characters.")
    for line in _UNITS[kind](place).splitlines():
        say(line)
