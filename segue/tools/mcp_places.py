"""Where MCP servers are, and that one is not there, or not any more."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from segue.core.errors import SegueError


class Lost(SegueError):
    """Why there is no connection with a server, or none any longer, in a sentence."""


class Unsent(SegueError):
    """That a call has not reached its server, so that it can be made again."""


class Program(NamedTuple):
    """A server that is started and spoken to over its input and output."""

    command: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]


class Website(NamedTuple):
    """A server that is asked over HTTP."""

    url: str
    headers: Mapping[str, str]
