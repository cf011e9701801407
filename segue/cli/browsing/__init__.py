"""A full-screen list of conversations to choose from. Textual is an extra, imported only when it is shown."""

import sys
from importlib.util import find_spec

from segue import app
from segue.cli.output import note
from segue.core.errors import Invalid, SegueError, StoreReadOnly
from segue.storage.store import SqlStore


class BrowseMissing(SegueError):
    def __init__(self) -> None:
        super().__init__("The list to choose from needs Textual; install it with `pip install 'segue[browse]'`.")


def pick(without_terminal: str) -> tuple[str | None, bool]:
    """The conversation that somebody chose, if they did, and whether this home can be written.

    All three streams have to be a terminal, or else the error says so: keys are read from the first, and Textual draws
    on the last.
    """
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise Invalid(without_terminal)
    if find_spec("textual") is None:
        raise BrowseMissing
    settings = app.settings()
    if not app.has_store(settings):
        note(f"No conversations yet in {settings.home}.")
        return None, False
    from segue.cli.browsing.browser import Browser

    store, can_write = _opened()
    with store:
        browser = Browser(store, can_write=can_write)
        picked = browser.run()
    if browser.return_code:
        sys.exit(browser.return_code)
    return picked, can_write


def _opened() -> tuple[SqlStore, bool]:
    """The store of the home folder, and whether it can be written."""
    try:
        return app.open_store(), True
    except StoreReadOnly:
        return app.open_store(read_only=True), False
