"""Where the order of ids and the order of time disagree, kept in blocks of ids, and messages read in the order of time.

As a rule messages are stored in the order of their timestamps, and the newest ones have the highest ids. What is
imported may be of any age. So that the newest messages are still found without reading the timestamps of all, every
block of ids has its oldest and newest timestamp, and the most by which a message in it is older than one before it.
"""

import json
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from functools import partial
from math import inf
from operator import attrgetter
from typing import NamedTuple

from segue.core.matching import Found
from segue.storage.schema import BLOCK_BITS
from segue.storage.search_index import index_errors
from segue.storage.sql import Executor, Parameters, Row
from segue.storage.time_order import Key, Loaded, key_of

CHUNK = 201
"""Messages that are loaded at first, so that one question to the index tells whether there are more than are ranked."""
FEW_MORE = 64  # when the order of the last ones is not certain yet
MANY = 8000
"""Ids that are asked for at once where the order of ids says nothing about age."""
_NEARLY = 60.0  # seconds by which blocks may overlap and still be read one after the other
_BLOCKS_AT_ONCE = 8
_ROUNDING = 1e-3  # seconds

Propose = Callable[[int, int, int], list[int]]
"""The first ids between two others, both included, and at most so many."""
Read = Callable[[list[int]], list[Found]]


class Span(NamedTuple):
    """From when to when messages are wanted: what is not of this time is left out before its text is read."""

    since: float
    until: float


ALWAYS = Span(-inf, inf)


class Block(NamedTuple):
    """What is left of a block of ids."""

    low: int
    high: int
    bound: Key


class BlockSource:
    """Messages between two ids. The ids are followed as long as they are in the order of time, then single blocks."""

    def __init__(
        self,
        executor: Executor,
        propose: Propose,
        read: Read,
        low: int,
        high: int,
        *,
        span: Span = ALWAYS,
        newest_first: bool,
    ) -> None:
        self._db = executor
        self._propose = propose
        self._read = read
        self._span = span
        self._newest_first = newest_first
        self._size = CHUNK
        self._groups = 0
        self._has_asked = False
        self._range: Block | None = Block(low, high, (inf, 0)) if low <= high else None
        self._blocks: list[Block] = []  # the first one last

    @property
    def bound(self) -> Key | None:
        if self._range is not None:
            return self._range.bound
        return self._blocks[-1].bound if self._blocks else None

    def load(self) -> list[Loaded]:
        if self._range is not None:
            return self._load_range(self._range)
        return self._load_blocks()

    def _load_range(self, whole: Block) -> list[Loaded]:
        size, self._size = self._size, CHUNK
        ids = self._propose(whole.low, whole.high, size)
        self._range = None
        rest = self._beyond(whole, ids[-1]) if len(ids) == size else None
        if rest is not None and (bounds := self._bound_at(ids[-1], rest)) is not None:
            exact, near = bounds
            far = self._bound_of_blocks(ids[-1], rest)
            if max(near, far)[0] > exact[0] + _NEARLY:
                self._blocks = self._split(whole)
                return []
            self._range = rest._replace(bound=max(near, far))
            self._size = FEW_MORE if size == CHUNK and max(near, far) > exact else CHUNK
        return [Loaded(self._key(one.timestamp, one.id), one.id, one) for one in self._read(ids)]

    def _load_blocks(self) -> list[Loaded]:
        """The next blocks; a little more than may be needed, as every question to the database costs something."""
        if not self._has_asked and self._groups >= _BLOCKS_AT_ONCE:
            self._ask_once()
        size, ids = self._size, list[int]()
        for _ in range(_BLOCKS_AT_ONCE):
            if self._blocks and len(ids) < size:
                ids += self._ids_of_next(size)
        self._size = FEW_MORE if size == CHUNK <= len(ids) else CHUNK
        return self._without_words(ids)

    def _ids_of_next(self, size: int) -> list[int]:
        """Of the next block, together with those that follow it in both orders."""
        group = [self._blocks.pop()]
        while self._blocks and self._is_next(group[-1], self._blocks[-1]):
            group.append(self._blocks.pop())
        ids = self._propose(min(group[0].low, group[-1].low), max(group[0].high, group[-1].high), size)
        self._groups += 1
        if len(ids) == size:
            last = next(at for at, block in enumerate(group) if block.low <= ids[-1] <= block.high)
            self._blocks += reversed(group[last + 1 :])
            if (rest := self._rest_of(group[last], ids[-1])) is not None:
                insort(self._blocks, rest, key=_BOUND)
        return ids

    def _is_next(self, block: Block, other: Block) -> bool:
        """Whether nothing lies between them, not even what was loaded of the other one."""
        return other.high + 1 == block.low if self._newest_first else block.high + 1 == other.low

    def _rest_of(self, block: Block, end: int) -> Block | None:
        """What of a block was not loaded, when its beginning was."""
        rest = self._beyond(block, end)
        bounds = None if rest is None else self._bound_at(end, rest)
        return None if rest is None or bounds is None else rest._replace(bound=min(rest.bound, bounds[1]))

    def _beyond(self, block: Block, end: int) -> Block | None:
        rest = block._replace(high=min(block.high, end - 1))
        if not self._newest_first:
            rest = block._replace(low=max(block.low, end + 1))
        return rest if rest.low <= rest.high else None

    def _ask_once(self) -> None:
        """Ask for all ids that are left if there are not too many: looking into many single blocks costs more."""
        self._has_asked = True
        low, high = min(block.low for block in self._blocks), max(block.high for block in self._blocks)
        ids = self._propose(low, high, MANY)
        if len(ids) < MANY:
            self._propose = partial(_between, sorted(ids), self._newest_first)

    def _split(self, whole: Block) -> list[Block]:
        """The blocks, each with what its own timestamps say of it."""
        first, last = whole.low >> BLOCK_BITS, whole.high >> BLOCK_BITS
        sql = "SELECT block, oldest, newest FROM search_blocks WHERE block BETWEEN :first AND :last"
        blocks = []
        for number, oldest, newest in self._rows(sql, {"first": first, "last": last}):
            low = max(whole.low, number << BLOCK_BITS)
            high = min(whole.high, ((number + 1) << BLOCK_BITS) - 1)
            blocks.append(Block(low, high, (newest, high) if self._newest_first else (-oldest, -low)))
        return sorted(blocks, key=_BOUND)

    def _bound_at(self, end: int, rest: Block) -> tuple[Key, Key] | None:
        """How far the next messages can come before the end of what was loaded: if their block is in order, and if not.

        None when there are no more messages.
        """
        low, high, order = (rest.low, end, "DESC") if self._newest_first else (end, rest.high, "ASC")
        sql = f"""
            SELECT m.timestamp, b.disorder FROM messages m LEFT JOIN search_blocks b ON b.block = m.id >> {BLOCK_BITS}
            WHERE m.id BETWEEN :low AND :high ORDER BY m.id {order} LIMIT 1"""
        rows = self._rows(sql, {"low": low, "high": high})
        if not rows:
            return None
        timestamp, disorder = rows[0]
        slack = inf if disorder is None else disorder + _ROUNDING if disorder else 0.0
        first, number = self._key(timestamp, end)
        return (first, number - 1), (first + slack, number - 1)

    def _bound_of_blocks(self, end: int, rest: Block) -> Key:
        """How far the messages of the blocks behind that one can."""
        block = end >> BLOCK_BITS
        low, high, of_all = rest.low >> BLOCK_BITS, block - 1, "MAX(newest)"
        if not self._newest_first:
            low, high, of_all = block + 1, rest.high >> BLOCK_BITS, "MIN(oldest)"
        sql = f"SELECT {of_all} FROM search_blocks WHERE block BETWEEN :low AND :high"
        found = self._rows(sql, {"low": low, "high": high})[0][0]
        if found is None:
            return -inf, 0
        first, number = self._key(found, end)
        return first, number - 1

    def _rows(self, sql: str, parameters: Parameters) -> list[Row]:
        with index_errors():
            return self._db.rows(sql, parameters)

    def _without_words(self, ids: list[int]) -> list[Loaded]:
        """Only when messages were said. The statement is the same for any number of them, and compiled once."""
        sql = """
            SELECT timestamp, id FROM messages
            WHERE id IN (SELECT value FROM json_each(:ids)) AND timestamp >= :since AND timestamp < :until"""
        rows = self._db.rows(sql, self._span._asdict() | {"ids": json.dumps(ids)})
        if self._newest_first:
            return [Loaded((timestamp, number), number) for timestamp, number in rows]
        return [Loaded((-timestamp, -number), number) for timestamp, number in rows]

    def _key(self, timestamp: float, message_id: int) -> Key:
        return key_of(timestamp, message_id, newest_first=self._newest_first)


def _between(ids: list[int], newest_first: bool, low: int, high: int, size: int) -> list[int]:
    found = ids[bisect_left(ids, low) : bisect_right(ids, high)]
    return found[-size:][::-1] if newest_first else found[:size]


_BOUND: Callable[[Block], Key] = attrgetter("bound")
