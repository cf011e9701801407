"""`segue init`: a home with everything in it that is needed to begin, and a platform if one is wanted."""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

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


@click.command()
@click.option("--platform", metavar="NAME", help="A platform to be reached on, such as telegram; none asks about none.")
def init(platform: str | None) -> None:
    """Make the home folder, a commented config.yaml, the database and a token. What is there already is left alone."""
    wanted = _wanted(platform)
    settings = app.settings()
    app.open_store().close()
    target = settings.config_path
    is_new = _write_new(target)
    if is_new:
        say(f"Wrote {target}; every setting in it is a comment until you change it.")
    else:
        say(f"{target} is there already and was left alone.")
    say(f"Conversations are kept in {settings.database_place}.")
    if token := _first_token():
        say("Programs call the gateway with a token; this one may read and write, and is shown once:")
        say(f"  {token}")
    if is_new and wanted is None and platform is None and sys.stdin.isatty():
        wanted = _chosen()
    if wanted is not None:
        _connect(wanted, target, is_new=is_new)
    else:
        say("Next: `segue` to talk, `segue gateway run` for programs and platforms, or `from segue import SessionDB`.")


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
    question = f"Be reached on a platform, too? {', '.join(f'{one.name} ({one.title})' for one in known.values())}"
    name: str = click.prompt(printable(question), type=click.Choice([*known, _NONE]), default=_NONE, show_choices=False)
    return known.get(name)


def _connect(manifest: Manifest, target: Path, *, is_new: bool) -> None:
    """Write down what connects a platform, or show what would, and say what comes next."""
    is_asked = is_new and sys.stdin.isatty()
    answers = {ask.key: _answer(ask) if is_asked else None for ask in manifest.asks}
    you: str = click.prompt(printable(manifest.you), default="", show_default=False).strip() if is_asked else ""
    lines = section(manifest, answers, you)
    if is_new:
        descriptor = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)  # which we have just made
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write("\n" + "\n".join(lines) + "\n")
        say(f"{manifest.title} is in {target} now.")
        _check(manifest)
    else:
        say(f"Add this to {target}:")
        for line in lines:
            say(line)
    said = "" if you else f", and write to your agent; the code that it answers with lets you in: {_LETTING_IN}"
    say(f"Next: `segue gateway run`{said}.")


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
    asked = f"{ask.question} (empty: it comes from {ask.variable})"
    said: str = click.prompt(printable(asked), default="", show_default=False, hide_input=ask.secret)
    return said.strip() or None


def _check(manifest: Manifest) -> None:
    """Whether it could be connected; what is wrong is told, and mended later."""
    from segue.app.connecting import check_platform  # slow to load, and only this needs it

    try:
        check_platform(app.settings(), manifest.name)
    except SegueError as error:
        note(str(error))


def _write_new(target: Path) -> bool:
    """Write the template unless there is a file; whether there was none."""
    try:
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(documenting.template())
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
