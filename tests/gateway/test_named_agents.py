"""Agents with a name: each has its own words, model, tools and notes, and answers where it is bound."""

from pathlib import Path

import pytest
from lane_house import dm
from obedient_model import Obedient
from serving_house import Served, use_obedient_model, write_settings

from segue.app.crew import Crew
from segue.ports.agent import Agent
from segue.ports.model import Request
from segue.testing import Stage

AGENTS = {
    "work": {"prompt": "You are at work.", "model": "openai/fast", "bindings": ["scripted:alice"]},
    "quiet": {"tools": ["session_search", "memory"], "memory": False, "bindings": ["scripted:bob"]},
}
WRITE_DOWN = 'use memory {"action": "write", "name": "tea", "text": "green"}'


def first_asked(person: str) -> Request:
    return next(one for one in Obedient.asked if f'"{person}"' in one.system)


def test_an_agent_with_a_name_has_words_tools_and_notes_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_obedient_model(monkeypatch)
    chosen: list[str | None] = []
    agent_for = Crew.agent_for

    async def noted(self: Crew, *terms: object) -> Agent:
        chosen.append(getattr(terms[0], "model", None))
        return await agent_for(self, *terms)  # type: ignore[arg-type]

    monkeypatch.setattr(Crew, "agent_for", noted)
    stage, home = Stage(), tmp_path / "home"
    served = Served(write_settings(home, agents=AGENTS), {"scripted": stage})

    async def work() -> None:
        for person in ("alice", "bob", "carol"):
            stage.say(dm(person), WRITE_DOWN)
            await served.quiet()

    served.run(work)
    served.close()
    at_work, quiet, usual = map(first_asked, ("Alice", "Bob", "Carol"))
    assert "You are at work." in at_work.system
    assert "You are at work." not in quiet.system + usual.system
    assert [tool.name for tool in quiet.tools] == ["session_search"]
    assert "memory" in {tool.name for tool in usual.tools}
    assert chosen == ["openai/fast", None, None]
    memory = home / "memory"
    assert sorted(note.relative_to(memory).parts[0] for note in memory.rglob("tea.md")) == ["agents", "people"]


def test_a_command_tells_of_the_agent_that_answers_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_obedient_model(monkeypatch)
    stage = Stage()
    served = Served(write_settings(tmp_path / "home", agents=AGENTS), {"scripted": stage})

    async def work() -> None:
        for person in ("alice", "bob"):
            for line in ("/status", "hello", "/status", "/context detail"):
                stage.say(dm(person), line)
                await served.quiet()

    served.run(work)
    served.close()
    models = {person: {text.splitlines()[0] for text in stage.posted_to(person)[::2]} for person in ("alice", "bob")}
    assert models == {"alice": {"Model       fast"}, "bob": {"Model       obedient"}}
    alice, bob = stage.posted_to("alice")[-1], stage.posted_to("bob")[-1]
    assert ("memory" in alice, "memory" in bob) == (True, False)
