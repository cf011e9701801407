"""Runs the homeserver for as long as whoever started it lives: a test that is killed leaves nothing behind."""

import os
import runpy
import threading


def _end_with_the_starter() -> None:
    os.read(0, 1)  # which ends when the other side of our input does
    os._exit(0)


threading.Thread(target=_end_with_the_starter, daemon=True).start()
runpy.run_module("synapse.app.homeserver", run_name="__main__", alter_sys=True)
