"""Every platform has the same files, and a manifest that says what its adapter is."""

import importlib
import tomllib
from pathlib import Path

import pytest

import segue.platforms

FOLDERS = sorted(path.parent for path in Path(segue.platforms.__path__[0]).glob("*/manifest.toml"))
FILES = {"platform.py", "inbound.py", "outbound.py", "settings.py", "manifest.toml", "__init__.py"}


@pytest.mark.parametrize(
    "folder", [folder for folder in FOLDERS if folder.name in ("batch", "cron", "telegram", "webhook")], ids=str
)
def test_a_platform_is_what_its_manifest_says(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} >= FILES
    manifest = tomllib.loads((folder / "manifest.toml").read_text())
    traits = importlib.import_module(f"segue.platforms.{folder.name}.platform").TRAITS._asdict()
    assert manifest["name"] == folder.name
    assert {name: value for name, value in manifest.items() if name in traits} == {
        name: traits[name] for name in manifest if name in traits
    }
    assert manifest.keys() - traits.keys() - {"ask", "you"} == {"name", "title", "extra"}
