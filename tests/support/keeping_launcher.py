"""A program that runs commands with the terminal, for a test to kill:

    python keeping_launcher.py '{"folder": …, "commands": […], "home": …, "session": …, "way": …, "processes": …}'

home: what runs in the background is a row there. way: `fork` leaves a child behind that holds every descriptor open;
`unwatched` tells the keeper nothing, which is the control; `close` ends well, once so many processes have written down
their number.
"""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from waiting import until

from segue.core.scope import OWNER_AT_CONSOLE
from segue.sessions.leasing import begin_run
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore
from segue.tools import background as background_module
from segue.tools.background import Background
from segue.tools.keepers import Keeper
from segue.tools.terminal import Terminal
from segue.upkeep.living import this_run


async def main(wanted: dict[str, Any]) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may have wanted them to outlive a terminal
    if wanted.get("way") == "unwatched":
        setattr(Keeper, "watch", lambda *_: None)  # noqa: B010 - as a test does it
    commands, folder = wanted["commands"], Path(wanted["folder"])
    if "home" not in wanted:
        if wanted.get("way") == "fork":
            await Terminal(folder, os.environ).run({"command": "true"}, "s")
            _leave_a_child(folder)
        await asyncio.gather(*(Terminal(folder, os.environ).run({"command": one}, "s") for one in commands))
        return
    home = Path(wanted["home"])
    with SqlStore(SqliteEngine(home / "state.db")) as store:
        run = this_run("a test")
        store.write(OWNER_AT_CONSOLE, begin_run, run)
        background = Background(store, OWNER_AT_CONSOLE, run.id, home / "logs" / "processes")
        terminal = Terminal(folder, os.environ, background)
        for command in commands:
            told = await terminal.run({"command": command, "background": True}, wanted["session"])
            print(told.split()[1], flush=True)
        if wanted.get("way") == "fork":
            _leave_a_child(folder)
        if wanted.get("way") == "close":
            setattr(background_module, "_PATIENCE", 0.3)  # noqa: B010 - as a test does it
            pids = folder / "pids"
            await until(lambda: pids.exists() and len(pids.read_text().split()) >= wanted["processes"])
            await background.close()
            return
        await asyncio.sleep(1_000)


def _leave_a_child(folder: Path) -> None:
    if os.fork() == 0:
        (folder / "holder").write_text(str(os.getpid()))
        time.sleep(1_000)
        os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
