"""The tool `read_file`: the text of a file with the numbers of its lines, or the names in a folder.

Only regular files are opened: a pipe would wait for somebody, and a device may do something when it is read.
"""

import io
import os
import stat
from itertools import islice
from pathlib import Path
from typing import Any

from segue.core.errors import StoreError
from segue.core.text import count, size, storable
from segue.ports.tool import ToolFailed, ToolSpec
from segue.tools.arguments import checked
from segue.tools.lines import READ_AT_ONCE, LineReader, Stream
from segue.tools.paths import near_names, path_in, shown
from segue.tools.threads import in_thread

_MOST_LINES = 2_000
_MOST_NAMES = 500
_LOOKED_AT = 8_192  # bytes that tell whether a file is text
_MOST_ENTRIES = 100_000

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class ReadFile:
    """Reads what the user of this machine may read."""

    spec = ToolSpec(
        "read_file",
        "Read a text file, with line numbers, or list a folder. Long files are read in parts.",
        {
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "The file or folder: relative to the working folder, absolute, or with ~.",
                    "minLength": 1,
                    "maxLength": 4_096,
                },
                "first_line": {
                    "type": "integer",
                    "description": "The line to begin with.",
                    "minimum": 1,
                    "maximum": 1_000_000_000,
                    "default": 1,
                },
                "lines": {
                    "type": "integer",
                    "description": "How many lines.",
                    "minimum": 1,
                    "maximum": _MOST_LINES,
                    "default": 200,
                },
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    )

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd

    def is_idempotent(self, _arguments: dict[str, Any]) -> bool:
        return True

    def risk(self, arguments: dict[str, Any]) -> str | None:  # noqa: ARG002 - nothing that is read is changed
        return None

    async def run(self, arguments: dict[str, Any], session_id: str) -> str:  # noqa: ARG002 - the same in every session
        given = checked(self.spec, arguments)
        path = path_in(self._cwd, given["path"])
        return storable(await in_thread(_read, path, given["first_line"], given["lines"]))


def _read(path: Path, first: int, lines: int) -> str:
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
        if kind == stat.S_IFDIR:
            return _listed(path)
        _refuse_unless_regular(path, kind)
        # A database of ours is recognised by its name, so it is opened by the name that it really has.
        descriptor = os.open(path.resolve(), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with io.BufferedReader(io.FileIO(descriptor), READ_AT_ONCE) as stream:
            status = os.fstat(stream.fileno())
            _refuse_unless_regular(path, stat.S_IFMT(status.st_mode))
            return _numbered(stream, path, status.st_size, first, lines)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolFailed(_missing(path)) from None
    except OSError as error:
        raise ToolFailed(f"{shown(path)} cannot be read: {error.strerror or 'it gives nothing now'}.") from None
    except StoreError:
        raise ToolFailed(f"{shown(path)} is a database that is in use; search it with session_search.") from None


def _refuse_unless_regular(path: Path, kind: int) -> None:
    if kind != stat.S_IFREG:
        raise ToolFailed(f"{shown(path)} is {_KINDS.get(kind, 'something special')}, and only files are read.")


def _numbered(stream: Stream, path: Path, length: int, first: int, lines: int) -> str:
    if b"\0" in stream.peek(_LOOKED_AT)[:_LOOKED_AT]:
        raise ToolFailed(f"{shown(path)} is a binary file of {size(length)}; use the terminal to look into it.")
    reader = LineReader(stream)
    found = reader.excerpt(first, lines)
    if found.lines:
        told = f"[The file goes on: first_line={found.following} reads on.]" if found.has_more else "[The end.]"
        return "\n".join([*found.lines, told])
    if reader.passed:
        raise ToolFailed(f"{shown(path)} has only {count(reader.passed, 'line')}; begin with one of them.")
    return "[The file is empty.]"


def _listed(path: Path) -> str:
    with os.scandir(path) as entries:
        names = sorted(_name(entry) for entry in islice(entries, _MOST_ENTRIES))
    left_out = len(names) - _MOST_NAMES
    told = [f"[{left_out:,} more are not shown.]"] if left_out > 0 else []
    return "\n".join([f"[{shown(path)} is a folder of {count(len(names), 'name')}.]", *names[:_MOST_NAMES], *told])


def _name(entry: os.DirEntry[str]) -> str:
    return shown(entry.name) + ("/" if entry.is_dir() else "")


def _missing(path: Path) -> str:
    near = " or ".join(shown(name) for name in near_names(path))
    return f"There is no {shown(path)}" + (f"; perhaps {near} is meant." if near else ".")
