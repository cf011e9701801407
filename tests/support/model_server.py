"""A scripted model server: answers by script over the wire formats of the providers, and keeps a journal."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from counterparts import node
from waiting import DEADLINE

_INSTALLER = Path(__file__).parents[2] / "scripts" / "model-server"
_LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")


class ModelServer:
    """A running server on a port of its own."""

    def __init__(self, folder: Path, fixtures: Sequence[dict[str, Any]]) -> None:
        script = folder / "fixtures.json"
        script.write_text(json.dumps({"fixtures": list(fixtures)}), encoding="utf-8")
        self._process = subprocess.Popen(
            [node(), _program(), "--port", "0", "--chunk-size", "8", "--fixtures", str(script), "--validate-on-load"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
        )
        self.url = f"http://127.0.0.1:{self._port()}"

    def journal(self) -> list[dict[str, Any]]:
        """Every request so far, the oldest first."""
        with urlopen(f"{self.url}/__aimock/journal", timeout=DEADLINE) as answer:
            entries: list[dict[str, Any]] = json.load(answer)
        return entries

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=DEADLINE)

    def _port(self) -> int:
        said = []
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said.append(line)
            if found := _LISTENING.search(line):
                return int(found[1])
        self.close()
        raise AssertionError(f"The model server did not start: {''.join(said)}")


def _program() -> str:
    node()  # which installs it, or says why not
    installed = subprocess.run([str(_INSTALLER)], capture_output=True, text=True, timeout=DEADLINE)
    assert installed.returncode == 0, installed.stderr
    return installed.stdout.strip()
