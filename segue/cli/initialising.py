"""`segue init`: a home with everything in it that is needed to begin, and a platform if one is wanted."""

import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import click

from segue import app
from segue.app.manifests import Manifest, Question, asking_manifests
from segue.cli.output import note, say
from segue.config import documenting
from segue.core.credentials import CHANCE, Level, made
from segue.core.errors import Invalid, SegueError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.spelling import dumps
from segue.core.text import printable
from segue.ports.store import Transaction
from segue.sessions.tokens import give_token

_FIRST = "me"
_NONE = "none"
_LETTING_IN = "`segue pairing approve CODE --owner`"


class Wish(NamedTuple):
    """A platform that is wanted, and what was said of it."""

    manifest: Manifest
    lines: list[str]
    """Of config.yaml."""
    is_known: bool = False
    """Whether it was said who the owner is there."""


@click.command()
@click.option("--platform", metavar="NAME", help="A platform to be reached on, such as telegram; none asks about none.")
def init(platform: str | None) -> None:
    """Make the home folder, a commented config.yaml, the database and a token. What is there already is left alone."""
    manifest, settings = _wanted(platform), app.settings()
    target = settings.config_path
    is_asked = sys.stdin.isatty() and not target.exists()
    if is_asked and platform is None:
        manifest = _chosen()
    wish = _asked(manifest, is_asked=is_asked) if manifest is not None else None
    app.open_store().close()
    is_new = _write_new(target, wish)
    if is_new:
        say(f"Wrote {target}; every setting in it is a comment until you change it{_but(wish)}.")
    else:
        say(f"{target} is there already and was left alone.")
    say(f"Conversations are kept in {settings.database_place}.")
    if token := _first_token():
        say("Programs call the gateway with a token; this one may read and write, and is shown once:")
        say(f"  {token}")
    if wish is not None:
        _say_next(wish, target, is_new=is_new)
    else:
        say("Next: `segue` to talk, `segue gateway run` for programs and platforms, or `from segue import SessionDB`.")


def _but(wish: Wish | None) -> str:
    return "" if wish is None else f", but for what connects {wish.manifest.title}, at its end; only you can read it"


def _wanted(name: str | None) -> Manifest | None:
    if name in (None, _NONE):
        return None
    known = {one.name: one for one in asking_manifests()}
    if name not in known:
        raise Invalid(f"--platform takes {', '.join(known)} or {_NONE}, and not {name!r}.")
    return known[name]


def _chosen() -> Manifest | None:
    """Ask whether there is somewhere else to be reached."""
    known = {one.name: one for one in asking_manifests()}
    question = f"Be reached on a platform, too? {', '.join(known)} or {_NONE}"
    name: str = click.prompt(printable(question), type=click.Choice([*known, _NONE]), default=_NONE, show_choices=False)
    return known.get(name)


def _asked(manifest: Manifest, *, is_asked: bool) -> Wish:
    """What connects a platform; where nobody can be asked, the environment is named."""
    if not is_asked:
        return Wish(manifest, section(manifest, dict.fromkeys((ask.key for ask in manifest.asks), None), ""))
    answers = {ask.key: _answer(ask) for ask in manifest.asks}
    you = _prompted(manifest.you, manifest.you_like)
    return Wish(manifest, section(manifest, answers, you), is_known=bool(you))


def _say_next(wish: Wish, target: Path, *, is_new: bool) -> None:
    """Say what comes next; into a file that was there nothing is written."""
    if is_new:
        _check(wish.manifest)
    else:
        say(f"Add this to {target}, below `platforms:` if that stands there already:")
        for line in wish.lines:
            say(line)
    greeting = f", and write to your agent; the code that it answers with lets you in: {_LETTING_IN}"
    said = "" if wish.is_known else greeting
    say(f"Next: `segue config check`, then `segue gateway run`{said}.")


def section(manifest: Manifest, answers: Mapping[str, str | None], you: str) -> list[str]:
    """The lines of config.yaml; what was not answered comes from the environment."""
    lines = ["platforms:", f"  {manifest.name}:"]
    for ask in manifest.asks:
        answer = answers[ask.key]
        lines.append(f"    {ask.key}: {f'${{{ask.variable}}}' if answer is None else _literal(answer)}")
    return [*lines, *([f"owners: [{_literal(f'{manifest.name}:{you}')}]"] if you else [])]


def _literal(answer: str) -> str:
    return dumps(answer.replace("${", "$${"))


def _answer(ask: Question) -> str | None:
    """What somebody says; nothing when it is to come from the environment."""
    return _prompted(f"{ask.question} (empty: it comes from {ask.variable})", ask.like, is_secret=ask.secret) or None


def _prompted(question: str, like: str, *, is_secret: bool = False) -> str:
    """What somebody types, until it can be right; nothing always can."""
    while True:
        said: str = click.prompt(printable(question), default="", show_default=False, hide_input=is_secret).strip()
        if not said or not like or re.fullmatch(like, said):
            return said
        note("That cannot be right; try again, or leave it empty.")


def _check(manifest: Manifest) -> None:
    """Whether it could be connected; what is wrong is told, and mended later."""
    from segue.app.connecting import check_platform  # slow to load, and only this needs it

    try:
        check_platform(app.settings(), manifest.name)
    except SegueError as error:
        note(str(error))


def _write_new(target: Path, wish: Wish | None) -> bool:
    """Write the template, and what is wanted, unless there is a file; whether there was none."""
    try:
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return False
    wanted = "" if wish is None else "\n" + "\n".join(wish.lines) + "\n"
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(documenting.template() + wanted)
    return True


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
