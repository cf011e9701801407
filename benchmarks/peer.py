"""Peers, each installed by name into a virtual environment of its own, once."""

import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

_LONGEST_INSTALL = 900


class Peer(NamedTuple):
    """What is installed, and the name of its environment."""

    name: str
    package: str
    version: str


HERMES = Peer("hermes", "hermes-agent", "0.19.0")
LLM = Peer("llm", "llm", "0.36")
PACKAGE, VERSION = HERMES.package, HERMES.version


class PeerMissing(Exception):
    """The peer could not be installed."""


def install(folder: Path, peer: Peer = HERMES) -> Path:
    """The Python of the peer's environment, which is made when it is not there."""
    home = folder / peer.name
    python, stamp = home / "bin" / "python", home / "installed.txt"
    wanted = f"{peer.package}=={peer.version}"
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return python
    print(f"Installing {wanted} into {home} (once) …", file=sys.stderr)
    venv.create(home, clear=True, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_INSTALL)
    if done.returncode:
        raise PeerMissing(f"{wanted} could not be installed; --without-peer leaves it out.\n{done.stderr[-2000:]}")
    stamp.write_text(wanted, "utf-8")
    return python
