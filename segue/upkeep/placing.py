"""Files of a restored home, put where they belong. Every step can be done again after having been done."""

import shutil
from contextlib import suppress
from pathlib import Path

from segue.upkeep.archive import CONFIG
from segue.upkeep.staging import sync_folder

RESTORED_CONFIG = "config.from-backup.yaml"


def place_files(home: Path, folder: Path) -> None:
    """Put what waits in a folder into the home, and remove the folder."""
    _swap(home / "memory", folder / "memory", folder / "replaced")
    _merge(home / "attachments", folder / "attachments")
    _place_config(home, folder / CONFIG)
    sync_folder(home)
    shutil.rmtree(folder, ignore_errors=True)


def _swap(place: Path, new: Path, old: Path) -> None:
    if not new.exists():
        return  # done before
    if place.exists():
        place.rename(old)
    new.rename(place)


def _merge(place: Path, new: Path) -> None:
    """Attachments are named by what they hold, so that one which is here already is the same."""
    for path in sorted(new.rglob("*")):
        target = place / path.relative_to(new)
        if path.is_dir():
            place.mkdir(mode=0o700, exist_ok=True)
            target.mkdir(mode=0o700, exist_ok=True)
        elif not target.exists():
            path.rename(target)


def _place_config(home: Path, new: Path) -> None:
    """A configuration that is there stays: it may hold secrets, which no backup has."""
    with suppress(FileNotFoundError):
        if not (home / CONFIG).exists():
            new.rename(home / CONFIG)
        elif (home / CONFIG).read_bytes() != new.read_bytes():
            new.rename(home / RESTORED_CONFIG)
