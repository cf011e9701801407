"""`segue models`: which models can be asked, and how each is called."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from homes import configure

from segue.agent.choosing import Endpoint
from segue.app.known_models import KnownModel, KnownModels, known_models
from segue.config import Settings, load

pytestmark = pytest.mark.on_file

Run = Callable[..., subprocess.CompletedProcess[str]]
NO_KEYS = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY"), "")
CLOUD = Endpoint("cloud", "openai", "https://models.example.org/v1", "k", "CLOUD_API_KEY", ("large", "small"))
HERE = Endpoint("ollama", "openai", "http://127.0.0.1:11434/v1", models=("qwen3:8b",))


def settings(home: Path, text: str = "") -> Settings:
    configure(home, text)
    return load(home, {})


def names(found: KnownModels) -> list[str]:
    return [one.name + ("*" if one.is_default else "") for one in found.models]


def test_a_server_here_answers_by_itself_when_nothing_else_is_there(home: Path) -> None:
    plain = settings(home)
    assert names(known_models(plain, [CLOUD], [HERE])) == ["cloud/large*", "cloud/small", "ollama/qwen3:8b"]
    assert names(known_models(plain, [], [HERE])) == ["ollama/qwen3:8b*"]
    assert names(known_models(settings(home, "model: ollama/qwen3:8b\n"), [CLOUD], [HERE])) == [
        *("cloud/large", "cloud/small", "ollama/qwen3:8b*")
    ]


def test_aliases_stand_beside_their_model_and_one_that_means_none_is_told(home: Path) -> None:
    said = "model: quick\nmodels: {aliases: {quick: cloud/small, new: cloud/newest, lost: openai/gpt-9}}\n"
    found = known_models(settings(home, said), [CLOUD], [])
    assert found.models == [
        KnownModel("cloud/large", (), is_default=False, origin="CLOUD_API_KEY"),
        KnownModel("cloud/small", ("quick",), is_default=True, origin="CLOUD_API_KEY"),
        KnownModel("cloud/newest", ("new",), is_default=False, origin="CLOUD_API_KEY"),
    ]
    assert found.default == "cloud/small"
    (trouble,) = found.troubles
    assert trouble.startswith("models.aliases.lost: There is no key for openai")


def test_without_any_model_it_is_told_how_to_get_one(home: Path) -> None:
    found = known_models(settings(home), [], [])
    assert (found.models, found.default) == ([], None)
    assert found.troubles[0].startswith("There is no model to ask: set ANTHROPIC_API_KEY")


def test_models_are_listed(run: Run, home: Path) -> None:
    provider = "{kind: openai, base_url: http://127.0.0.1:9/v1, models: [some-model]}"
    configure(home, f"providers: {{mine: {provider}}}\nmodels: {{aliases: {{it: mine/some-model}}}}\n")
    keys = NO_KEYS | {"OPENAI_API_KEY": "a-secret-key"}
    shown = run("models", **keys)
    assert (shown.returncode, shown.stderr) == (0, "")
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert rows[0] == ["Model", "Also", "From"]
    assert ["mine/some-model", "it", "127.0.0.1:9", "default"] in rows
    assert ["openai/gpt-5.5", "OPENAI_API_KEY"] in rows
    told: dict[str, Any] = json.loads(run("models", "--json", **keys).stdout)
    assert (told["default"], told["entry"], told["troubles"]) == ("mine/some-model", None, [])
    assert told["models"][0] == {
        "name": "mine/some-model",
        "aliases": ["it"],
        "origin": "127.0.0.1:9",
        "is_default": True,
    }
    assert "a-secret-key" not in shown.stdout + json.dumps(told)


def test_an_agent_of_ones_own_is_named(run: Run, home: Path) -> None:
    configure(home, "agent: {entry: mine:answer}\n")
    assert "agent.entry is mine:answer, which answers in place of them." in run("models", **NO_KEYS).stderr
    assert json.loads(run("models", "--json", **NO_KEYS).stdout)["entry"] == "mine:answer"


def test_a_model_that_nobody_knows_is_named(run: Run, home: Path) -> None:
    provider = "{kind: openai, base_url: http://127.0.0.1:9/v1, models: [some-model]}"
    configure(home, f"providers: {{mine: {provider}, yours: {provider}}}\n")
    refused = run("-m", "no-such-model", "-q", "hello", **NO_KEYS)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Nobody is known to have a model 'no-such-model'" in refused.stderr
