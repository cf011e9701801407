"""Who answers, when the settings name models, servers on this machine, or somebody's own agent."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segue.agent.choosing import Endpoint
from segue.agent.offline import OfflineAgent
from segue.app import crew as crew_module
from segue.app.checking import troubles
from segue.app.crew import OFFLINE, Crew
from segue.app.entry import load_entry
from segue.config import settings_from
from segue.core.errors import Invalid, UnknownModel
from segue.core.preferences import Preferences

OPENAI = {"OPENAI_API_KEY": "sk-nothing-to-hide"}


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> list[Endpoint]:
    """The servers on this machine."""
    there: list[Endpoint] = []
    monkeypatch.setattr(crew_module, "local_endpoints", lambda: there)
    monkeypatch.setattr(crew_module, "warm_up", len)
    return there


@pytest.fixture
def module(tmp_path: Path) -> Iterator[str]:
    name = "an_agent_of_a_test"
    (tmp_path / f"{name}.py").write_text("def answer(conversation):\n    return 'yes'\nnumber = 3\n")
    yield name
    sys.modules.pop(name, None)
    if str(tmp_path) in sys.path:
        sys.path.remove(str(tmp_path))


def crew_of(home: Path, raw: dict[str, Any], environ: dict[str, str], told: list[str] | None = None) -> Crew:
    tell = (told if told is not None else []).append
    crew = Crew(settings_from(raw, home, {}), environ, tell)
    crew._looking.join()
    return crew


def ready(crew: Crew, wanted: Preferences = Preferences()) -> object:  # noqa: B008 - it never changes
    return asyncio.run(crew.agent_for(wanted, [], OfflineAgent.__new__(OfflineAgent)))


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize(
    ("raw", "environ", "sentence"),
    [
        ({"model": "gpt-9"}, {}, "In config.yaml, model is gpt-9: Nobody can be asked for the model 'gpt-9': set "),
        ({"model": "groq/x"}, OPENAI, "There is no key for groq, so 'groq/x' cannot be asked: set GROQ_API_KEY."),
        (
            {"model": "ollama/llama"},
            OPENAI,
            "There is no ollama at http://127.0.0.1:11434/v1 to ask for 'ollama/llama'",
        ),
    ],
)
def test_a_name_that_means_no_model_is_in_the_error(
    tmp_path: Path, raw: dict[str, Any], environ: dict[str, str], sentence: str
) -> None:
    with pytest.raises(UnknownModel) as raised:
        ready(crew_of(tmp_path, raw, environ))
    assert sentence in str(raised.value)


@pytest.mark.usefixtures("local")
def test_without_a_key_and_without_a_name_it_is_offline(tmp_path: Path) -> None:
    crew = crew_of(tmp_path, {}, {})
    calls: list[str] = []
    crew.when_known(lambda: calls.append(crew.named(Preferences())))
    assert calls == [OFFLINE]
    with pytest.raises(UnknownModel, match="'gpt-9'"):
        crew.resolve("gpt-9")


@pytest.mark.usefixtures("local")
def test_a_fallback_that_cannot_be_asked_is_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    crew = crew_of(tmp_path, {"models": {"fallback": ["groq/x", "openai/gpt-5.5"]}}, OPENAI, told)
    ready(crew)
    ready(crew)
    assert [sentence.partition(":")[0] for sentence in told] == ["models.fallback names groq/x, which is left out"]


@pytest.mark.parametrize(
    "raw",
    [
        {"model": "ollama/llama3"},
        {"models": {"aliases": {"mine": "ollama/llama3"}}},
        {"models": {"fallback": ["ollama/llama3"]}},
        {},
    ],
)
def test_a_server_on_this_machine_is_looked_for_when_it_is_named(
    tmp_path: Path, local: list[Endpoint], raw: dict[str, Any]
) -> None:
    local.append(Endpoint("ollama", "openai", "http://127.0.0.1:11434/v1", models=("llama3",)))
    crew = crew_of(tmp_path, raw, OPENAI)
    assert crew.resolve("mine" if "aliases" in raw.get("models", {}) else "ollama/llama3") == "ollama/llama3"


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize("word", ["mine", "small-model", "granite-4", "MINE"])
def test_new_recognises_a_configured_provider_and_its_models(tmp_path: Path, word: str) -> None:
    mine = {"base_url": "https://models.example.org/v1", "models": ["some-model", "small-model"]}
    raw = {"providers": {"mine": mine}, "models": {"aliases": {"tiny": "mine/granite-4-tiny"}}}
    crew = crew_of(tmp_path, raw, OPENAI)
    assert crew.meant(word) == word
    assert crew.resolve(word).startswith("mine/")
    assert crew.meant("please") is None


def test_an_agent_of_ones_own_is_found_in_the_home(tmp_path: Path, module: str) -> None:
    assert load_entry(f"{module}:answer", tmp_path)([]) == "yes"
    with pytest.raises(Invalid, match="no function"):
        load_entry(f"{module}:number", tmp_path)
    with pytest.raises(Invalid, match="has no attribute 'other'"):
        load_entry(f"{module}:other", tmp_path)


def test_what_cannot_work_is_named_with_its_place(tmp_path: Path) -> None:
    raw = {
        "model": "fast",
        "models": {"aliases": {"fast": "groq/x", "here": "ollama/llama3"}, "fallback": ["gpt-5.5", "xai/y"]},
        "agent": {"entry": "no_such_module_of_a_test:answer"},
    }
    found = troubles(settings_from(raw, tmp_path, {}), OPENAI)
    assert [sentence.partition(":")[0] for sentence in found[1:]] == [
        "model is fast",
        "models.aliases.fast is groq/x",
        "models.fallback[1] is xai/y",
    ]
    assert f"there is no module no_such_module_of_a_test: put it into {tmp_path}" in found[0]
    assert troubles(settings_from({}, tmp_path, {}), {}) == []


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize("name", ["gpt-5-nano", "openai/gpt-5-nano"])
def test_what_the_model_that_summarises_can_read_is_known_by_either_name(tmp_path: Path, name: str) -> None:
    raw = {"auxiliary": {"model": "openai/gpt-5-nano"}, "models": {"windows": {name: 4_096}}}
    found = asyncio.run(crew_of(tmp_path, raw, OPENAI).auxiliary(Preferences()))
    assert found is not None
    assert found[1] == 4_096
