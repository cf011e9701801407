"""Programs ask a gateway while a crowd talks to it: how long they wait for lists and searches.

    just bench-rpc --sessions 25000 --rate 100 --seconds 60

The gateway is the real one with its door open, in a process of its own with the crowd; every message is durable and
answered. The program that asks is another process, over HTTP on this machine, one question after another.
"""

import argparse
import asyncio
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.corpus import Corpus
from benchmarks.load import Crowd, _evenly, _memory, _row, _settings, _show
from segue import SessionDB, app
from segue.app.serving import Serving, settle_in
from segue.config import Settings
from segue.core.credentials import CHANCE, made
from segue.core.leases import GATEWAY
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.sessions.tokens import give_token
from segue.sessions.watching import addresses
from segue.storage.store import SqlStore
from segue.upkeep.living import this_run
from segue.web.listening import listen
from segue.web.premises import Premises

MESSAGES = 8
LANES = 1000
_WORDS = ("server", "deploy error", "database query", "zarxen", "ver*", "~ploy", "部署", "session NOT log")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--sessions", type=int, default=25_000)
    arguments.add_argument("--rate", type=float, default=100.0, help="messages per second meanwhile")
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("--ask", metavar="URL", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.ask:
        _ask(given.ask, os.environ["SEGUE_TOKEN"], given.seconds)
        return
    with tempfile.TemporaryDirectory() as folder:
        settings = _settings(Path(folder))
        _fill(settings, given.sessions)
        with app.open_store(chosen=settings) as store:
            asyncio.run(_serve(settings, store, given.rate, given.seconds))


def _fill(settings: Settings, sessions: int) -> None:
    began = time.perf_counter()
    with SessionDB(settings.database_path) as db:
        report = db.import_sessions(Corpus(1, time.time() - 86_400 * 365).sessions(sessions, MESSAGES, is_short=True))
    assert not report["errors"], report["errors"][0]
    _row(f"{sessions} sessions made in", f"{time.perf_counter() - began:.0f} s")


async def _serve(settings: Settings, store: SqlStore, rate: float, seconds: float) -> None:
    credential, token = made("bench", os.urandom(CHANCE), time.time())
    store.write(OWNER, give_token, credential)
    stop, crowd = asyncio.Event(), Crowd(LANES)
    serving = Serving(settings, store, this_run(GATEWAY), [crowd], stop.set)
    serving.begin()
    settle_in()
    living = asyncio.create_task(serving.gateway.run(stop))
    premises = Premises(settings, store, serving)
    listening = asyncio.create_task(listen(premises))
    await crowd.intake
    url = await _address(store, serving.gateway.presence.run.id)
    for name, speed in (("nobody talks", 0.0), (f"{rate:g} messages a second", rate)):
        print(f"{name}")
        asking = asyncio.create_task(_asked(url, token, seconds if speed else min(seconds, 15)))
        if speed:
            await _evenly(crowd, speed, seconds)
        await asking
    _row("answers out of order or twice", f"{len(crowd.mistakes)}")
    _row("memory", f"{_memory():.0f} MB")
    listening.cancel()
    await asyncio.wait({listening})
    stop.set()
    await living
    premises.close()
    await serving.close()


async def _address(store: SqlStore, run_id: str) -> str:
    while not (found := store.read(OWNER, addresses).get(run_id)):
        await asyncio.sleep(0.05)
    return found


async def _asked(url: str, token: str, seconds: float) -> None:
    command = [sys.executable, "-m", "benchmarks.rpc", "--ask", url, "--seconds", str(seconds)]
    process = await asyncio.create_subprocess_exec(*command, env=os.environ | {"SEGUE_TOKEN": token})
    if await process.wait():
        raise subprocess.CalledProcessError(process.returncode or 1, command)


def _ask(url: str, token: str, seconds: float) -> None:
    """In a process of its own: ask for lists and for words in turn."""
    parts = urlsplit(url)
    chance = random.Random(1)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    times: dict[str, list[float]] = {"sessions.list": [], "sessions.search": []}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for method, params in (
            ("sessions.list", {"limit": 20, "offset": chance.choice((0, 0, 20, 200))}),
            ("sessions.search", {"query": chance.choice(_WORDS), "limit": 20}),
        ):
            said = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": 1})
            began = time.perf_counter()
            line.request("POST", "/rpc", said, {"Authorization": f"Bearer {token}"})
            answer = json.loads(line.getresponse().read())
            times[method].append(time.perf_counter() - began)
            assert "result" in answer, answer
            time.sleep(0.02)
    for method, spans in times.items():
        _row(f"{method} asked", f"{len(spans)} times")
        _show(method, spans)


if __name__ == "__main__":
    main()
