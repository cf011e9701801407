"""A batch, run in front of whoever looks on: with a bar on a terminal, and in silence for programs."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from segue.app.batching import Batch, BatchRun, Show
from segue.app.batching import Progress as Standing
from segue.cli.log_lines import LineFormatter
from segue.config import Settings
from segue.core.text import one_line
from segue.storage.store import SqlStore

Tell = Callable[[str], None]
_LEAVING = "What is being answered comes to its end first; Ctrl-C once more, and that is left for the next time."
_SILENT = ("segue.gateway.connecting",)
"""Nothing arrives from a batch, so it does not matter to anybody which process has its platform."""


class _Beside(logging.Handler):
    """What goes wrong is told above the bar."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell
        self.setFormatter(LineFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(self.format(record))


def answer_all(settings: Settings, store: SqlStore, batch: Batch, *, is_quiet: bool) -> bool:
    """Run a batch to its end; whether somebody stopped it."""
    with _shown(batch.name, len(batch.lines), is_quiet=is_quiet) as (show, tell):
        return asyncio.run(_live(BatchRun(settings, store, batch, show), tell))


async def _live(running: BatchRun, tell: Tell) -> bool:
    stop, hurry, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()

    def interrupt() -> None:
        if stop.is_set():
            hurry.set()
        else:
            stop.set()
            tell(_LEAVING)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    await running.run(stop, hurry)
    return stop.is_set()


@contextmanager
def _shown(name: str, length: int, *, is_quiet: bool) -> Iterator[tuple[Show, Tell]]:
    """What shows how far it is, and what tells something beside that."""
    for silent in _SILENT:
        logging.getLogger(silent).setLevel(logging.CRITICAL)
    if is_quiet or not sys.stderr.isatty():
        logging.basicConfig(handlers=[logging.NullHandler()])
        yield _nothing, _nothing
        return
    console = Console(stderr=True, highlight=False)

    def tell(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    logging.basicConfig(handlers=[_Beside(tell)])
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[more]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(one_line(name), total=length, more="")

        def show(now: Standing) -> None:
            failed = f"{now.failed} failed" if now.failed else ""
            bar.update(task, completed=now.done + now.failed, more=failed)

        yield show, tell


def _nothing(_: object) -> None: ...
