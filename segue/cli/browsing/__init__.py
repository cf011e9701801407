"""`segue sessions browse`: a full-screen picker. Textual is an extra, imported only when this command runs."""

import shlex
import sys
from importlib.util import find_spec

import click

from segue import app
from segue.cli.output import note, say
from segue.core.errors import Invalid, SegueError, StoreReadOnly
from segue.storage.store import SqlStore


class BrowseMissing(SegueError):
    def __init__(self) -> None:
        super().__init__("browse needs Textual; install it with `pip install 'segue[browse]'`.")


@click.command()
def browse() -> None:
    """Look through conversations on a full screen: filter, preview, rename, tag, archive, delete, export."""
    _check_terminal()
    if find_spec("textual") is None:
        raise BrowseMissing
    from segue.cli.browsing.browser import Browser

    store, can_write = _opened()
    with store:
        browser = Browser(store, can_write=can_write)
        session_id = browser.run()
    if browser.return_code:
        sys.exit(browser.return_code)
    if session_id is not None:
        chosen(session_id)


def chosen(session_id: str) -> None:
    """What Enter does, once the browser has left the screen."""
    say(session_id)
    note(f"segue sessions show {shlex.quote(session_id)}")


def _opened() -> tuple[SqlStore, bool]:
    """The store of the home folder, and whether it can be written."""
    try:
        return app.open_store(), True
    except StoreReadOnly:
        return app.open_store(read_only=True), False


def _check_terminal() -> None:
    """All three: keys are read from the first, and Textual draws on the last."""
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise Invalid("browse needs a terminal; use `segue sessions list`.")
