"""A real terminal for the tests: a shell in tmux that nobody else uses."""

import os
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from waiting import DEADLINE

PATIENCE = DEADLINE
POLL_INTERVAL = 0.04
"""Seconds between two looks at the screen: each look is a process."""
READY = "ready> "
KEPT_LINES = 100_000


class Terminal:
    def __init__(self, folder: Path, *variables: str, width: int = 140, height: int = 40) -> None:
        self._socket = f"segue-{uuid.uuid4().hex}"
        shell = ["env", "-u", "COLUMNS", "-u", "LINES", f"PS1={READY}", "NO_COLOR=", "LC_ALL=C.UTF-8", *variables, "sh"]
        size = ["-x", str(width), "-y", str(height)]
        keep = ["set-option", "-g", "history-limit", str(KEPT_LINES)]
        self._tmux("-f", os.devnull, *keep, ";", "new-session", "-d", *size, "-c", str(folder), *shell)
        self.until(READY.strip())

    def close(self) -> None:
        socket = Path(self.says("socket_path"))
        self._tmux("kill-server")
        socket.unlink(missing_ok=True)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def send(self, text: str) -> None:
        """Type a line, and send it."""
        self._tmux("send-keys", "-l", text, ";", "send-keys", "Enter")

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def paste(self, file: Path) -> None:
        self._tmux("load-buffer", str(file), ";", "paste-buffer", "-p")

    def close_window(self) -> None:
        """Close the window that everything runs in, as a person does with a mouse, and open another."""
        self._tmux("respawn-pane", "-k", ";", "clear-history")
        self.until(READY.strip())

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def says(self, variable: str) -> str:
        return self._tmux("display-message", "-p", f"#{{{variable}}}").strip()

    def screen(self, *options: str) -> str:
        return self._tmux("capture-pane", "-p", *options).rstrip("\n")

    def scrolled(self) -> str:
        """The screen, and everything that has left it at its top."""
        return self.screen("-S", "-")

    def until(self, *texts: str, without: str = "\0") -> str:
        def is_there(screen: str) -> bool:
            return all(text in screen for text in texts) and without not in screen

        return self.wait(is_there)

    def until_said(self, *texts: str) -> str:
        """Wait until something was on the screen, which may have left it since."""
        return self.wait(lambda seen: all(text in seen for text in texts), self.scrolled)

    def wait(self, condition: Callable[[str], bool], look: Callable[[], str] | None = None) -> str:
        end = time.monotonic() + PATIENCE
        while not condition(screen := (look or self.screen)()):
            assert time.monotonic() < end, f"it never came to this:\n{screen}"
            time.sleep(POLL_INTERVAL)
        return screen

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._socket, *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout
