"""`segue tokens`: which programs may call the gateway, and what they may do."""

import os
import time
from datetime import UTC, datetime

import click

from segue import app
from segue.cli.completing import complete_token
from segue.cli.groups import CommandGroup, DestructiveCommand
from segue.cli.options import AS_JSON
from segue.cli.output import Column, note, say, show_json, table
from segue.core.credentials import CHANCE, Credential, Level, made
from segue.core.moments import DAY, ago
from segue.core.scope import OWNER, OWNER_AT_CONSOLE
from segue.sessions.tokens import give_token, take_token_back

_TOKENS = [
    *(Column("Name", 1), Column("Scope"), Column("For"), Column("Made", yields=2)),
    *(Column("Last used", yields=1), Column("Expires", yields=3)),
]
_MOST_DAYS = 36_500


@click.group(cls=CommandGroup)
def tokens() -> None:
    """Which programs may call the gateway, and what they may do."""


@tokens.command()
@click.argument("name")
@click.option(
    "--scope",
    "level",
    type=click.Choice([level.value for level in Level]),
    default=Level.READ.value,
    show_default=True,
    help="What it may do: read; write, which is also to talk; or admin, which is also to remove.",
)
@click.option("--principal", default=OWNER, show_default=True, help="Whose conversations it sees: owner, or a person.")
@click.option("--days", type=click.FloatRange(0, _MOST_DAYS, min_open=True), help="For how long it is good.")
@AS_JSON
def add(name: str, level: str, principal: str, days: float | None, as_json: bool) -> None:
    """Make a token called NAME. It is shown once: only its digest is kept."""
    now = time.time()
    until = None if days is None else now + days * DAY
    credential, token = made(name, os.urandom(CHANCE), now, level=Level(level), principal=principal, expires_at=until)
    with app.open_store() as store:
        store.write(OWNER_AT_CONSOLE, give_token, credential)
    if as_json:
        show_json(_plain(credential) | {"token": token})
        return
    note("This token is shown once. Keep it where only its program can read it, and give it as SEGUE_TOKEN.")
    say(token)


@tokens.command("list")
@AS_JSON
def list_(as_json: bool) -> None:
    """Show the tokens that there are; never their secrets."""
    now = time.time()
    with app.open_for_reading() as store:
        found = store.read(OWNER_AT_CONSOLE, lambda tx: tx.tokens.listed())
    if as_json:
        show_json([_plain(one) for one in found])
    elif found:
        table(_TOKENS, [_cells(one, now) for one in found])
    else:
        note("There are no tokens, so nobody can call the gateway; `segue tokens add NAME` makes one.")


@tokens.command(cls=DestructiveCommand)
@click.argument("name", shell_complete=complete_token)
@AS_JSON
def revoke(name: str, as_json: bool) -> None:
    """Take a token back. Whoever has it is not let in any more, at once."""
    with app.open_store() as store:
        store.write(OWNER_AT_CONSOLE, take_token_back, name)
    if as_json:
        show_json({"name": name, "revoked": True})
        return
    say(f"The token {name} is good for nothing any more.")


def _cells(one: Credential, now: float) -> list[str]:
    used = "never" if one.used_at is None else ago(one.used_at, now)
    return [one.name, one.level, one.principal, ago(one.created_at, now), used, _end(one, now)]


def _end(one: Credential, now: float) -> str:
    if one.expires_at is None:
        return "never"
    return datetime.fromtimestamp(one.expires_at, UTC).astimezone().strftime("%Y-%m-%d %H:%M") + (
        "" if one.is_good(now) else ", over"
    )


def _plain(one: Credential) -> dict[str, object]:
    told = {name: value for name, value in one._asdict().items() if name not in ("digest", "level")}
    return told | {"scope": one.level}
