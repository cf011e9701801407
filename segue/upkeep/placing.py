"""Files of a restored home, put where they belong. Every step can be done again after having been done."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from segue.core.errors import Invalid
from segue.upkeep.archive import CONFIG, FOLDERS
from segue.upkeep.staging import is_staging, sync_folder

RESTORED_CONFIG = "config.from-backup.yaml"


def check_places(home: Path) -> None:
    """Refuse a home in which files could not simply be renamed into place."""
    for name in FOLDERS:
        place = home / name
        if place.is_symlink() or (place.exists() and place.stat().st_dev != home.stat().st_dev):
            raise Invalid(f"{place} is a link or another disk, so that nothing can be restored; move it away first.")


def place_files(home: Path, name: str) -> None:
    """Put what waits in a folder of the home into place, and remove the folder."""
    folder = home / name
    if not is_staging(folder):
        return  # done before, but for the note that it was to be done
    _swap(home / "memory", folder / "memory", folder / "replaced")
    _merge(home / "attachments", folder / "attachments")
    _place_config(home, folder / CONFIG)
    sync_folder(home)
    shutil.rmtree(folder)


def _swap(place: Path, new: Path, old: Path) -> None:
    if not new.exists():
        return  # done before
    if place.exists():
        place.rename(old)
    new.rename(place)


def _merge(place: Path, new: Path) -> None:
    """Attachments are named by what they hold, so that one which is here already is the same."""
    place.mkdir(mode=0o700, exist_ok=True)
    for path in sorted(new.rglob("*")):
        target = place / path.relative_to(new)
        if path.is_dir():
            target.mkdir(mode=0o700, exist_ok=True)
        elif not target.exists():
            path.rename(target)


def _place_config(home: Path, new: Path) -> None:
    """A configuration that is there stays: it may hold secrets, which no backup has."""
    with suppress(FileNotFoundError):
        if not os.path.lexists(home / CONFIG):
            new.rename(home / CONFIG)
        elif (home / CONFIG).read_bytes() != new.read_bytes():
            new.rename(home / RESTORED_CONFIG)
