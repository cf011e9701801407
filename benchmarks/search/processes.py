"""Those who are searched: a process for each, in its own environment, with a store in a folder of its own."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.keeping import FILES, Keeper
from benchmarks.peer import HERMES, LLM, Peer
from benchmarks.search.asking import Asked
from benchmarks.sides import Conversation

_ROOT = Path(__file__).resolve().parents[2]
_LONGEST_FILL = 3600.0  # seconds; a million messages take a peer half of it


class Side(NamedTuple):
    """One of those who are compared."""

    name: str
    title: str
    python: Path
    target: str
    """The module and the class that `worker.py` drives."""
    filters: frozenset[str]
    """By what a search can be narrowed."""
    keeper: Keeper = FILES


SEGUE, POSTGRES = OURS = ("segue", "postgres")
"""The product, on SQLite and on PostgreSQL."""
_SEGUE = Side(SEGUE, "Segue", Path(sys.executable), "benchmarks.search.segue_side:Side", frozenset({"source", "since"}))
WORDS_ALONE = _SEGUE._replace(name="words", title="BM25 alone", target="benchmarks.search.segue_side:WordsAlone")


def own_sides(server: Keeper) -> list[Side]:
    return [_SEGUE, _SEGUE._replace(name=POSTGRES, title="Segue on PostgreSQL", keeper=server)]


def peer_side(peer: Peer, python: Path) -> Side:
    filters = {HERMES: frozenset({"source"}), LLM: frozenset({"since"})}
    title, target = f"{peer.package} {peer.version}", f"benchmarks.search.{peer.name}_side:Side"
    return Side(peer.name, title, python, target, filters[peer])


class Found(NamedTuple):
    """The answer to one search."""

    spent: int
    sessions: list[str]
    trouble: str


class Process(Conversation):
    """A worker that has a store open."""

    def __init__(self, side: Side, folder: Path) -> None:
        self.side = side
        self.home = folder / side.name
        side.keeper.make(self.home)
        command = [str(side.python), "-m", "benchmarks.search.worker", side.target, str(self.home)]
        more = {"PYTHONPATH": str(_ROOT), "LLM_USER_PATH": str(self.home)}
        super().__init__(side.title, command, self.home, more, _LONGEST_FILL)

    def search(self, asked: Asked) -> Found:
        return Found(**self.ask("search", **asked._asdict()))


@contextmanager
def opened(sides: Sequence[Side], folder: Path) -> Iterator[list[Process]]:
    with ExitStack() as running:
        processes = []
        for side in sides:
            processes.append(Process(side, folder))
            running.callback(processes[-1].end)
        yield processes
