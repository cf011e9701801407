"""What the page about Matrix says is so: its settings are taken, its files are there, and its sentences are said."""

import asyncio
import re
from pathlib import Path
from typing import Any

import yaml
from documents import ROOT, blocks
from matrix_house import MatrixHouse
from synapse_server import Synapse

from segue import config
from segue.platforms.matrix import settings
from segue.platforms.matrix.outbound import LONGEST
from segue.platforms.matrix.settings import read_settings
from segue.testing.ledger import Ledger

PAGE = ROOT / "docs" / "platforms" / "matrix.md"
VARIABLES = {
    "MATRIX_HOMESERVER": "https://matrix.example.org",
    "MATRIX_USER": "@segue:example.org",
    "MATRIX_PASSWORD": "its password",
}


def shown() -> list[dict[str, Any]]:
    return [yaml.safe_load(block) for block in blocks(PAGE, "yaml")]


def test_the_settings_of_the_page_are_taken(tmp_path: Path) -> None:
    found = shown()
    assert len(found) == 3
    for number, block in enumerate(found):
        home = tmp_path / str(number)
        home.mkdir(mode=0o700)
        (home / "config.yaml").write_text(yaml.safe_dump(block))
        (home / "config.yaml").chmod(0o600)
        own = config.load(home, VARIABLES).platforms["matrix"].own
        assert read_settings(own).user == VARIABLES["MATRIX_USER"]


def test_every_key_is_described() -> None:
    text = PAGE.read_text("utf-8")
    assert [key for key in sorted(settings._KEYS) if f"| `{key}` |" not in text] == []
    assert f"up to {LONGEST:,} bytes" in text


def test_the_troubles_are_called_as_they_are() -> None:
    sources = " ".join(file.read_text("utf-8") for file in (ROOT / "segue" / "platforms" / "matrix").glob("*.py"))
    said = re.sub(r'"\s+f?"|\{[^{}]*\}', lambda found: "…" if found[0].startswith("{") else "", sources)
    table = PAGE.read_text("utf-8").partition("| what it says |")[2].splitlines()[2:]
    sentences = [line.split(" | ")[0].removeprefix("| ") for line in table if line.startswith("| ")]
    assert len(sentences) == 8
    assert [one for one in sentences if one not in said] == []


def test_the_files_of_the_page_are_those_that_there_are(synapse: Synapse, tmp_path: Path) -> None:
    house = MatrixHouse(tmp_path, synapse.url, synapse.register("segue"))

    async def work() -> None:
        async with house.at_work(Ledger()):
            pass

    asyncio.run(work())
    (listing,) = blocks(PAGE, "console")
    assert listing.splitlines()[1:] == sorted(path.name for path in house.keys.iterdir())
