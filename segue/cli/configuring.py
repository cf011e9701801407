"""`segue config`: what is in force, and what is wrong with it."""

from collections.abc import Iterator
from typing import Any

import click

from segue import app
from segue.cli.groups import CommandGroup
from segue.cli.options import AS_JSON
from segue.cli.output import note, say, show_json
from segue.config import config_file, documenting, environment_of_models, notes_from_environment
from segue.core.spelling import dumps
from segue.core.text import count


@click.group(cls=CommandGroup)
def config() -> None:
    """Show and check the settings."""


@config.command()
@AS_JSON
def show(as_json: bool) -> None:
    """Print the settings in force, defaults included."""
    values = documenting.shown(app.settings())
    if as_json:
        show_json(values)
        return
    for line in _yaml(values):
        say(line)


@config.command()
def path() -> None:
    """Print where the configuration file is, or would be."""
    say(str(config_file()))


@config.command()
def check() -> None:
    """Say whether the configuration can be read and can work, and which other names it uses."""
    settings = app.settings()
    for sentence in notes_from_environment():
        say(sentence)
    from segue.app.checking import troubles  # slow to load, and only this command needs it

    if wrong := troubles(settings, environment_of_models()):
        for sentence in wrong:
            note(sentence)
        things = count(len(wrong), "thing")
        raise click.ClickException(f"{settings.config_path} can be read, but {things} in it cannot work.")
    found = settings.config_path if settings.config_path.exists() else "No configuration file: the defaults"
    say(f"{found} {'is in order' if settings.config_path.exists() else 'are in force'}.")


def _yaml(values: dict[str, Any], indent: str = "") -> Iterator[str]:
    """The settings as they could stand in config.yaml: nested names, and values in JSON, which YAML reads."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            yield from _yaml(value, indent + "  ")
        else:
            yield f"{indent}{name}: {dumps(value)}"
