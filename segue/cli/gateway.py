"""`segue gateway run | status | stop | restart | call | unit`: what connects platforms with conversations."""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from segue import app
from segue.cli.lazy import LazyGroup
from segue.cli.options import AS_JSON, REMOTE
from segue.cli.output import note, say, show_json
from segue.config import Settings
from segue.core.errors import InUse, Invalid, NotFound, SegueError
from segue.core.json_text import parse_json
from segue.core.leases import GATEWAY, Run
from segue.core.lifecycle import Interruption
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sources import ALWAYS_CONNECTED
from segue.core.text import one_line
from segue.ports.platform import Platform
from segue.ports.store import Transaction
from segue.sessions.leasing import living_runs, refuse_second
from segue.sessions.watching import living_gateways, note_left_out, watch
from segue.storage.store import SqlStore
from segue.upkeep.living import is_gone, this_run

if TYPE_CHECKING:
    from segue.cli.remote import Asked

_STOPPING_SECONDS = 45.0
_HINDRANCE = "gateway:hindrance"
"""Where a gateway notes why it does not begin anew."""


_UNIT = ("segue.cli.units", "unit", "Print what lets systemd or launchd run a gateway.")


@click.group(cls=LazyGroup, commands_in={"unit": _UNIT})
def gateway() -> None:
    """Connect platforms with your conversations."""


@gateway.command()
def run() -> None:
    """Run until stopped: Ctrl-C, `segue gateway stop`, or a signal."""
    settings = app.settings()
    from segue.app.connecting import cast_of  # slow to load, and only this command needs them
    from segue.cli.log_places import begin_log

    begin_log(settings.logging, settings.home)
    if file := settings.logging.path_in(settings.home):
        note(f"What the gateway does is told in {file}.")
    with app.open_store(chosen=settings) as store:
        if not settings.is_on_server:
            store.read(OWNER_AT_CONSOLE, refuse_second, this_run(GATEWAY), is_gone)
        platforms, missing = cast_of(settings, store)
        for name, sentence in missing.items():
            logging.error("%s is left out: %s", name, sentence)
        if not any(said.enabled for name, said in settings.platforms.items() if name not in ALWAYS_CONNECTED):
            logging.warning(
                "Only jobs and programs are heard here: name a platform under `platforms` in config.yaml to be reached"
                " there."
            )
        is_again = asyncio.run(_live(settings, store, platforms, missing))
    if is_again:
        os.execv(sys.executable, [sys.executable, "-m", "segue", *sys.argv[1:]])  # noqa: S606 - ourselves


async def _live(settings: Settings, store: SqlStore, platforms: Sequence[Platform], missing: Mapping[str, str]) -> bool:
    """One life; whether another one is wanted."""
    from segue.app.serving import Serving, settle_in
    from segue.web.listening import listen
    from segue.web.premises import Premises

    stop, is_again = asyncio.Event(), False

    def restart() -> None:
        nonlocal is_again
        try:
            _check_settings(missing)
        except SegueError as error:
            logging.error("The gateway does not begin anew, and goes on as it is: %s", error)  # noqa: TRY400
            store.write(OWNER_AT_CONSOLE, _note_hindrance, str(error))
            return
        is_again = True
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, restart)
    run = this_run(GATEWAY)
    store.write(OWNER_AT_CONSOLE, note_left_out, run.id, missing)
    serving = Serving(settings, store, run, platforms, restart)
    serving.begin()
    settle_in()
    premises = Premises(settings, store, serving)
    listening = asyncio.create_task(listen(premises))
    logging.info("Gateway started as process %d (run %s)", run.pid, run.id)
    logging.info("Connecting to %s.", ", ".join(platform.name for platform in platforms))
    try:
        await serving.gateway.run(stop, lambda: Interruption.RESTART_DRAIN if is_again else Interruption.SHUTDOWN_DRAIN)
    finally:
        listening.cancel()
        await asyncio.wait({listening})
        premises.close()
        await serving.close()
        if (began := serving.gateway.stopping_at) is not None:
            logging.info("Gateway stopped after %.1f s", time.monotonic() - began)
    return is_again


@gateway.command()
@AS_JSON
def status(as_json: bool) -> None:
    """Whether a gateway runs, since when, and where."""
    with app.open_for_reading() as store:
        runs = store.read(OWNER_AT_CONSOLE, living_gateways, is_gone)
    if as_json:
        show_json([run._asdict() for run in runs])
        return
    if not runs:
        say("No gateway is running; `segue gateway run` starts one.")
    for one in runs:
        minutes = (time.time() - one.began_at) / 60
        say(f"A gateway runs as process {one.pid} on {one_line(one.host)}, for {minutes:,.0f} min.")


@gateway.command()
def stop() -> None:
    """Ask the gateway of this home to end; answers that are being written come to their end first."""
    _signal(signal.SIGTERM)


@gateway.command()
def restart() -> None:
    """Let the gateway of this home begin anew, if its settings let it."""
    app.settings()  # which must be readable; whether they can work is judged by the gateway, in its own environment
    _signal(signal.SIGHUP)


def _check_settings(missing: Collection[str]) -> None:
    """Whether a gateway could begin with the settings as they are now; what is left out already may stay so."""
    from segue.app.connecting import check_platform  # slow to load

    settings = app.settings()
    for name in (name for name, said in settings.platforms.items() if said.enabled and name not in missing):
        check_platform(settings, name)


@gateway.command()
@click.argument("method")
@click.option("--params", default="{}", metavar="JSON", help="What the method is given, as a JSON object.")
@REMOTE
def call(method: str, params: str, there: "Asked | None") -> None:
    """Ask a gateway METHOD, such as sessions.list; what it answers is JSON.

    The gateway of this home is asked, or the one at --url, with the token that SEGUE_TOKEN or a file holds.
    """
    try:
        given = parse_json(params)
    except ValueError:
        raise Invalid("--params takes a JSON object, such as '{\"limit\": 5}'.") from None
    from segue.cli.remote import Here  # slow to load, and only this command needs it

    show_json((there or Here()).ask(method, given))


def _signal(number: signal.Signals) -> None:
    with app.open_for_reading() as store:
        runs = store.read(OWNER_AT_CONSOLE, living_runs, GATEWAY, is_gone)  # also one that hangs
        here = [one for one in runs if one.host == os.uname().nodename]
        if not here:
            raise NotFound("No gateway of this home runs on this machine.")
        if number is signal.SIGHUP:
            _forget_hindrance()
        for one in here:
            os.kill(one.pid, number)
        if number is signal.SIGTERM:
            _wait_for_end(here)
            say("The gateway has ended.")
        else:
            _wait_for_another(store, here)
            say("The gateway has begun anew.")
            for name, sentence in store.read(OWNER_AT_CONSOLE, watch, is_gone).left_out.items():
                note(f"{name} is left out: {sentence}")


def _wait_for_another(store: SqlStore, runs: list[Run]) -> None:
    """Answers that are being written come to their end first, which may take a while."""
    known, until = {one.id for one in runs}, time.monotonic() + _STOPPING_SECONDS
    while {one.id for one in store.read(OWNER_AT_CONSOLE, living_gateways, is_gone)} <= known:
        if told := store.read(OWNER_AT_CONSOLE, lambda tx: tx.meta.get(_HINDRANCE)):
            raise InUse(
                f"The gateway goes on as it is, and does not begin anew, because where it runs this is so: {told}"
            )
        if time.monotonic() > until or all(is_gone(one) for one in runs):
            raise InUse("The gateway has not begun anew; its log says why.")
        time.sleep(0.1)


def _note_hindrance(tx: Transaction, told: str) -> None:
    tx.meta.set(_HINDRANCE, told)


def _forget_hindrance() -> None:
    with app.open_store() as store:
        store.write(OWNER_AT_CONSOLE, lambda tx: tx.meta.remove(_HINDRANCE))


def _wait_for_end(runs: list[Run]) -> None:
    until = time.monotonic() + _STOPPING_SECONDS
    while any(not is_gone(one) for one in runs):
        if time.monotonic() > until:
            raise InUse(f"The gateway, process {runs[0].pid}, does not end; it may be waiting for an answer.")
        time.sleep(0.1)
