"""What installed packages bring: found by their metadata, used by owners, and left out when broken."""

from pathlib import Path

import pytest

from segue.app.entry import load_entry
from segue.app.others import tools_of_others
from segue.core.errors import Invalid

BROUGHT = """
from segue.ports.tool import ToolSpec

class Dice:
    spec = ToolSpec("dice", "Throws a die.", {"type": "object", "properties": {}})
    def is_idempotent(self, arguments): return False
    def risk(self, arguments): return None
    async def run(self, arguments, session_id): return "4"

def broken(): raise OSError("no dice")
def nothing(): return object()
def answer(messages): return "yes"
"""
NAMES = """
[segue.tools]
dice = brought_dice:Dice
broken = brought_dice:broken
nothing = brought_dice:nothing
[segue.agents]
yes-man = brought_dice:answer
"""


@pytest.fixture
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package beside us, as if it were installed."""
    (tmp_path / "brought_dice.py").write_text(BROUGHT)
    metadata = tmp_path / "brought_dice-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-dice\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(NAMES)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("_package")
def test_a_tool_of_others_is_found_and_a_broken_one_told() -> None:
    told: list[str] = []
    assert [tool.spec.name for tool in tools_of_others(told.append)] == ["dice"]
    assert len(told) == 2
    assert told[0] == "The tool broken of an installed package cannot be used: no dice."


@pytest.mark.usefixtures("_package")
def test_an_agent_of_others_answers_by_its_name(tmp_path: Path) -> None:
    assert load_entry("yes-man", tmp_path)([]) == "yes"
    with pytest.raises(Invalid, match="no package that is installed here has an agent of that name"):
        load_entry("no-man", tmp_path)
