"""Output above a line that somebody types into: the line is taken away, the output written, and the line drawn again.

The terminal stays as it is meanwhile, so no key is lost, however much is written.
"""

from typing import TextIO

from prompt_toolkit.application import get_app_or_none


class Above:
    """Writes whole lines."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, lines: str) -> None:
        app = get_app_or_none()
        if app is not None and app.is_running:
            app.renderer.erase()
            app.invalidate()
        self._out.write(lines)
        self._out.flush()
