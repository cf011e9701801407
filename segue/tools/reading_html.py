"""HTML pages are read by a process of their own, so that a page which takes long to read keeps nobody else waiting."""

import asyncio
import sys
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from segue.ports.tool import ToolFailed

WORKERS = 4
"""Pages that are read at once."""
TIMEOUT = 15.0
"""Seconds after which a page is given up, also on a machine that has no time for it."""
_ROOT = str(Path(__file__).parents[2])
_PROGRAM = "import sys; sys.path += sys.argv[1:]; from segue.tools.html_worker import main; main()"

_places: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


async def read_html(html: str, base: str) -> str:
    """Return the readable text of a page."""
    library = _library()
    if library is None:
        raise ToolFailed("What pages are read with is not installed: run pip install 'segue[web]'.")
    async with _place():
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _PROGRAM, _ROOT, library),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            env={},  # it needs no secret
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(TIMEOUT):
                text, _ = await worker.communicate(f"{base}\n{html}".encode("utf-8", "replace"))
        except TimeoutError:
            raise ToolFailed("The page is made in a way that takes too long to read.") from None
        finally:
            with suppress(ProcessLookupError):
                worker.kill()
            await worker.wait()
    if worker.returncode:
        raise ToolFailed("The page is made in a way that takes too much time or memory to read.")
    return text.decode("utf-8", "replace")


def _place() -> asyncio.Semaphore:
    """The places for workers of this event loop."""
    loop = asyncio.get_running_loop()
    for other in [one for one in _places if one.is_closed()]:
        del _places[other]
    return _places.setdefault(loop, asyncio.Semaphore(WORKERS))


@lru_cache
def _library() -> str | None:
    """The folder in which the parser is installed, which is looked up without loading it."""
    found = find_spec("selectolax")
    return str(Path(found.origin).parents[1]) if found and found.origin else None
