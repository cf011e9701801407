"""What a person typed before, in a file that only they can read: a line of JSON for each."""

import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from prompt_toolkit.auto_suggest import AutoSuggest, Suggestion
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from segue.core.text import storable

MOST_ENTRIES = 10_000
LONGEST_ENTRY = 100_000
"""Bytes; what is longer was hardly typed, and is not kept."""
LARGEST_FILE = 10_000_000
_KEPT = 9_000  # of a file that has become too large, so that it is not written anew for each line


class Past(History):
    """The newest entries of a file. When it cannot be written they last as long as the chat, and `trouble` says why."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.trouble: str | None = None
        self._file = file
        self._entries = 0

    def load_history_strings(self) -> Iterable[str]:
        entries = self._read()
        self._entries = len(entries)
        return reversed(entries[-MOST_ENTRIES:])

    def append_string(self, string: str) -> None:
        """Keep a line, unless it is too long; what was typed twice in a row is kept once."""
        is_short = len(string) <= LONGEST_ENTRY and len(_written(string)) <= LONGEST_ENTRY
        if string.strip() and is_short and string != next(reversed(self.get_strings()), None):
            super().append_string(string)

    def store_string(self, string: str) -> None:
        try:
            with os.fdopen(self._opened(), "ab") as file:
                file.write(_written(string))
                size = file.tell()
            self._entries += 1
            if self._entries > MOST_ENTRIES or size > LARGEST_FILE:
                self._shorten()
        except OSError as error:
            self.trouble = f"What you type cannot be kept in {self._file}: {error.strerror}."

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._file, flags, 0o600)
        os.fchmod(descriptor, 0o600)
        return descriptor

    def _read(self) -> list[str]:
        try:
            with self._file.open("rb") as file:
                file.seek(max(os.fstat(file.fileno()).st_size - LARGEST_FILE, 0))
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            self.trouble = f"What you typed before cannot be read from {self._file}: {error.strerror}."
            return []
        return [entry for line in lines if line and (entry := _entry(line)) is not None]

    def forget(self, said: Collection[str]) -> int:
        """Remove the entries that are one of these texts; how many there were."""
        entries = self._read()
        left = [entry for entry in entries if entry not in said]
        if len(left) < len(entries):
            self._replace([_written(entry) for entry in left])
        return len(entries) - len(left)

    def _shorten(self) -> None:
        entries = self._read()
        kept, size = [], 0
        for entry in reversed(entries[-_KEPT:]):
            kept.append(_written(entry))
            size += len(kept[-1])
            if size > LARGEST_FILE // 2:
                break
        self._replace(kept[::-1])

    def _replace(self, lines: list[bytes]) -> None:
        """By way of a second file, so that there is always a whole one."""
        shorter = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        shorter.unlink(missing_ok=True)  # of a process that had our number and died, or of a disk that was full
        with os.fdopen(os.open(shorter, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.writelines(lines)
        shorter.replace(self._file)
        self._entries = len(lines)


def _written(entry: str) -> bytes:
    return json.dumps(storable(entry), ensure_ascii=False).encode() + b"\n"


def _entry(line: bytes) -> str | None:
    try:
        said = json.loads(line)
    except ValueError:
        return None  # half a line: a disk was full, or the file was read from the middle
    return said if isinstance(said, str) else None


class FromThePast(AutoSuggest):
    """Suggests how an earlier line went on that began like this one."""

    def get_suggestion(self, buffer: Buffer, document: Document) -> Suggestion | None:
        typed = document.text
        if not typed.strip() or "\n" in typed or len(typed) > 500:
            return None
        for entry in reversed(buffer.history.get_strings()):
            if entry.startswith(typed) and len(entry) > len(typed):
                return Suggestion(entry[len(typed) :].split("\n", 1)[0][:500])
        return None
