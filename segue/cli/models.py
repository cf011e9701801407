"""`segue models`: which models can be asked, and how each is called."""

from typing import Any

import click

from segue import app
from segue.app.known_models import KnownModel, KnownModels, find_models
from segue.cli.options import AS_JSON
from segue.cli.output import Column, note, show_json, table
from segue.config import environment_of_models

_MODELS = [Column("Model"), Column("Also", yields=1), Column("From", yields=2), Column("")]


@click.command()
@AS_JSON
def models(as_json: bool) -> None:
    """Show the models that can be asked: `-m NAME` and `/model NAME` choose one of them.

    They are those of providers whose key is in the environment, of `providers` in config.yaml, and of servers on this
    machine (Ollama, LM Studio). A provider may have more: PROVIDER/MODEL names any of them.
    """
    settings = app.settings()
    found = find_models(settings, environment_of_models())
    entry = settings.agent.entry or None
    if as_json:
        show_json(_as_json(found, entry))
        return
    if found.models:
        table(_MODELS, [_cells(one) for one in found.models])
    if entry:
        note(f"agent.entry is {entry}, which answers in place of them.")
    for sentence in found.troubles:
        note(sentence)


def _cells(one: KnownModel) -> list[str]:
    return [one.name, ", ".join(one.aliases), one.origin, "default" if one.is_default else ""]


def _as_json(found: KnownModels, entry: str | None) -> dict[str, Any]:
    rows = [
        {"name": one.name, "aliases": list(one.aliases), "origin": one.origin, "is_default": one.is_default}
        for one in found.models
    ]
    return {"default": found.default, "entry": entry, "models": rows, "troubles": found.troubles}
