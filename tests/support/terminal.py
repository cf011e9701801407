"""A real terminal for the tests: a shell in tmux that nobody else uses."""

import os
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

PATIENCE = 30.0
READY = "ready> "


class Terminal:
    def __init__(self, folder: Path, *variables: str, width: int = 140, height: int = 40) -> None:
        self._socket = f"segue-{uuid.uuid4().hex}"
        shell = ["env", "-u", "COLUMNS", f"PS1={READY}", "NO_COLOR=", "LC_ALL=C.UTF-8", *variables, "sh"]
        size = ["-x", str(width), "-y", str(height)]
        self._tmux("-f", os.devnull, "new-session", "-d", *size, "-c", str(folder), *shell)
        self.until(READY.strip())

    def close(self) -> None:
        socket = Path(self.says("socket_path"))
        self._tmux("kill-server")
        socket.unlink(missing_ok=True)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def send(self, text: str) -> None:
        """Type a line, and send it."""
        self.type(text)
        self.press("Enter")

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def paste(self, file: Path) -> None:
        self._tmux("load-buffer", str(file), ";", "paste-buffer", "-p")

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def says(self, variable: str) -> str:
        return self._tmux("display-message", "-p", f"#{{{variable}}}").strip()

    def screen(self, *options: str) -> str:
        return self._tmux("capture-pane", "-p", *options).rstrip("\n")

    def until(self, *texts: str, without: str = "\0") -> str:
        def is_there(screen: str) -> bool:
            return all(text in screen for text in texts) and without not in screen

        return self.wait(is_there)

    def wait(self, condition: Callable[[str], bool]) -> str:
        end = time.monotonic() + PATIENCE
        while not condition(screen := self.screen()):
            assert time.monotonic() < end, f"it never came to this:\n{screen}"
            time.sleep(0.02)
        return screen

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._socket, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
