"""`segue config` and `segue init`."""

import os
import time
from collections.abc import Iterator
from typing import Any

import click

from segue import app
from segue.cli.options import AS_JSON
from segue.cli.output import note, say, show_json
from segue.config import config_file, documenting, environment_of_models, notes_from_environment
from segue.core.credentials import CHANCE, Level, made
from segue.core.errors import InvalidSettings
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.spelling import dumps
from segue.core.text import count
from segue.ports.store import Transaction
from segue.sessions.tokens import give_token

_FIRST = "me"


@click.group()
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
        raise InvalidSettings(
            f"{settings.config_path} can be read, but {count(len(wrong), 'thing')} in it cannot work."
        )
    found = settings.config_path if settings.config_path.exists() else "No configuration file: the defaults"
    say(f"{found} {'is in order' if settings.config_path.exists() else 'are in force'}.")


@click.command()
def init() -> None:
    """Make the home folder, a commented config.yaml, the database and a token. What is there already is left alone."""
    settings = app.settings()
    app.open_store().close()
    target = settings.config_path
    try:
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        say(f"{target} is there already and was left alone.")
    else:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(documenting.template())
        say(f"Wrote {target}; every setting in it is a comment until you change it.")
    say(f"Conversations are kept in {settings.database_place}.")
    if token := _first_token():
        say("Programs call the gateway with a token; this one may read and write, and is shown once:")
        say(f"  {token}")
    say("Next: `segue` to talk, `segue gateway run` for programs and platforms, or `from segue import SessionDB`.")


def _first_token() -> str | None:
    """A token for the owner's own programs, if nobody has been given one yet."""
    credential, token = made(_FIRST, os.urandom(CHANCE), time.time(), level=Level.WRITE)

    def give(tx: Transaction) -> bool:
        if tx.tokens.listed():
            return False
        give_token(tx, credential)
        return True

    with app.open_store() as store:
        return token if store.write(OWNER_AT_CONSOLE, give) else None


def _yaml(values: dict[str, Any], indent: str = "") -> Iterator[str]:
    """The settings as they could stand in config.yaml: nested names, and values in JSON, which YAML reads."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            yield from _yaml(value, indent + "  ")
        else:
            yield f"{indent}{name}: {dumps(value)}"
