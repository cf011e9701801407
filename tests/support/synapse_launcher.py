"""Runs the homeserver for as long as whoever started it lives: a test that is killed leaves nothing behind.

It leaves it to the system when its data reach the disk: it may be killed, but nobody pulls a plug here.
"""

import os
import runpy
import threading
from importlib import import_module
from typing import Any


def _end_with_the_starter() -> None:
    os.read(0, 1)  # which ends when the other side of our input does
    os._exit(0)


def _hurry() -> None:
    engine: Any = import_module("synapse.storage.engines.sqlite").Sqlite3Engine
    connected = engine.on_new_connection

    def on_new_connection(self: Any, connection: Any) -> None:
        connected(self, connection)
        connection.execute("PRAGMA synchronous = OFF")

    engine.on_new_connection = on_new_connection


threading.Thread(target=_end_with_the_starter, daemon=True).start()
_hurry()
runpy.run_module("synapse.app.homeserver", run_name="__main__", alter_sys=True)
