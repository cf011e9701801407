"""The beginning and the end of a stream of bytes, however long it is."""

import codecs
import re

_CODES = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")


class HeadAndTail:
    """Text as it comes in. What is kept never grows beyond two lengths, and what is not kept is counted."""

    def __init__(self, head: int, tail: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._most_head, self._most_tail = head, tail
        self._head = self._tail = ""
        self._length = 0

    def add(self, data: bytes, *, is_last: bool = False) -> None:
        text = self._decoder.decode(data, is_last)
        self._length += len(text)
        room = self._most_head - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-self._most_tail :]

    def text(self) -> str:
        """All of it, or the two ends in whole lines with how much is missing between; without codes for colours."""
        if self._length == len(self._head) + len(self._tail):
            return _CODES.sub("", self._head + self._tail)
        head = self._head[: self._head.rfind("\n") + 1] or self._head
        tail = self._tail[self._tail.find("\n") + 1 :] or self._tail
        left_out = self._length - len(head) - len(tail)
        gap = f"… {left_out:,} characters left out …"
        return _CODES.sub("", "\n".join([head.removesuffix("\n"), gap, tail]))
