"""What is installed beside us: named to the byte, from nowhere in particular, and all that is asked for."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "requirements").glob("*.txt"))
PINNED = re.compile(r"(?P<name>[a-z0-9][a-z0-9.-]*)==(?P<version>[0-9][\w.!+]*)(?P<when> ; [^\\]+)?")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


class Pin(NamedTuple):
    name: str
    version: str
    when: str


def read(text: str) -> dict[Pin, list[str]]:
    """Each pin with its hashes; what is neither raises an error."""
    found: dict[Pin, list[str]] = {}
    for line in text.replace("\\\n", "\n").splitlines():
        said = line.strip()
        if said.startswith("--hash"):
            assert HASH.fullmatch(said), said
            found[list(found)[-1]].append(said)
        elif said:
            pinned = PINNED.fullmatch(said)
            assert pinned, said
            found[Pin(pinned["name"], pinned["version"], (pinned["when"] or "").strip())] = []
    return found


def asked_for() -> tuple[set[str], set[str]]:
    """Everything that pyproject.toml names: needed, optional and for the tests, and apart from it the counterparts."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    counterparts = project["dependency-groups"].pop("counterparts")
    groups = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    return names(one for group in groups for one in group) - {"segue"}, names(counterparts)


def names(wanted: Iterable[object]) -> set[str]:
    texts = [one for one in wanted if isinstance(one, str)]
    return {re.split(r"[\[<>=!~ ;]", one)[0].lower().replace("_", "-") for one in texts}


def pinned_in(file: str) -> set[str]:
    return {pin.name for pin in read((ROOT / "requirements" / file).read_text())}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_requirement_is_one_version_with_its_hashes_and_no_address(file: Path) -> None:
    pins = read(file.read_text())
    assert len(pins) > 20
    assert [pin.name for pin, hashes in pins.items() if not hashes] == []
    assert "://" not in file.read_text()


def test_what_runs_is_what_is_tested() -> None:
    runs, develops = (set(read((ROOT / "requirements" / name).read_text())) for name in ("run.txt", "dev.txt"))
    assert {(pin.name, pin.version) for pin in runs} <= {(pin.name, pin.version) for pin in develops}


def test_everything_that_is_asked_for_is_pinned() -> None:
    of_ours, of_counterparts = asked_for()
    assert of_ours - pinned_in("dev.txt") == set()
    assert of_counterparts - pinned_in("counterparts.txt") == set()
    assert "apsw" in of_ours
    assert "aiogram" in of_counterparts


@pytest.mark.parametrize(
    "loose",
    [
        "apsw>=3\n",
        "apsw\n",
        "apsw @ git+ssh://example.org/apsw\n",
        "--index-url https://example.org\n",
        "-e .\n",
        "apsw==3.54.1.0 \\\n    --hash=md5:0123\n",
    ],
)
def test_a_loose_requirement_would_be_seen(loose: str) -> None:
    with pytest.raises(AssertionError):
        read(loose)


@pytest.mark.parametrize("script", ["venv", "counterparts"])
def test_installing_insists_on_the_hashes(script: str) -> None:
    installer = (ROOT / "scripts" / script).read_text()
    assert "--require-hashes" in installer
