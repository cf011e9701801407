"""The tool `write_file`: a text put in the place of a file, or of one passage of it, as a whole or not at all.

A link is never written through, and nothing in our own home is written: what decides about an agent is not its own.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from segue.core.errors import StoreError
from segue.core.text import count, size
from segue.ports.tool import ToolFailed, ToolSpec
from segue.tools.arguments import checked
from segue.tools.paths import path_in, shown
from segue.tools.threads import in_thread
from segue.tools.visible import on_one_line

MOST_CHARACTERS = 1_000_000
MOST_BYTES = 10_000_000
"""Of a file in which a passage is replaced."""


class Change(NamedTuple):
    """What would become of a file."""

    path: Path
    """Where it really is."""
    before: bytes | None
    """Nothing if there is no file yet; too long a file is not read."""
    after: bytes
    status: os.stat_result | None = None
    """Of the file that is there."""


class WriteFile:
    """Writes what the user of this machine may write, outside the home of this program."""

    spec = ToolSpec(
        "write_file",
        "Write a text file: all of it, or one passage of it with replace. The folder must be there.",
        {
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "The file: relative to the working folder, absolute, or with ~.",
                    "minLength": 1,
                    "maxLength": 4_096,
                },
                "content": {
                    "type": "string",
                    "description": "The whole new text, or what stands in the place of the passage.",
                    "maxLength": MOST_CHARACTERS,
                },
                "replace": {
                    "type": "string",
                    "description": "A passage that is in the file exactly once, as it stands there.",
                    "minLength": 1,
                    "maxLength": MOST_CHARACTERS,
                },
            },
            "required": ["path", "content"],
            "additionalProperties": False,
        },
    )

    def __init__(self, cwd: Path, home: Path) -> None:
        self._cwd = cwd
        self._home = home

    def is_idempotent(self, arguments: dict[str, Any]) -> bool:
        return arguments.get("replace") is None

    def risk(self, arguments: dict[str, Any]) -> str | None:
        """A question even where writing would fail now: the file may be another one by the time it is written."""
        try:
            given = checked(self.spec, arguments)
            path = path_in(self._cwd, given["path"])
        except ToolFailed:
            return None  # and nothing will be written
        named = on_one_line(str(path))
        try:
            change = self._change(path, given["content"], given["replace"])
        except ToolFailed as error:
            return f"{named} (nothing will be written as it is now: {error})"
        real = "" if change.path == path else f", which really is {on_one_line(str(change.path))}"
        return f"{named}{real}: {_described(change)}"

    async def run(self, arguments: dict[str, Any], session_id: str) -> str:  # noqa: ARG002 - the same in every session
        given = checked(self.spec, arguments)
        path = path_in(self._cwd, given["path"])
        return await in_thread(self._write, path, given["content"], given["replace"])

    def _write(self, path: Path, content: str, passage: str | None) -> str:
        change = self._change(path, content, passage)
        try:
            _put(change)
        except OSError as error:
            raise ToolFailed(f"{shown(path)} cannot be written: {error.strerror}.") from None
        except StoreError:
            raise _is_database(path) from None
        return f"{shown(change.path)} is written: {_described(change)}; it has {size(len(change.after))}."

    def _change(self, path: Path, content: str, passage: str | None) -> Change:
        """What writing would do, found out without touching anything."""
        try:
            real = path.parent.resolve(strict=True) / path.name
            self._refuse_home(path, real)
            status = _status(path, real)
            if status is None:
                if passage is not None:
                    raise ToolFailed(f"There is no {shown(path)} to replace a passage in; leave replace out.")
                return Change(real, None, content.encode())
            before = _read(path, real, status.st_size, is_whole=passage is not None)
        except (FileNotFoundError, NotADirectoryError):
            raise ToolFailed(f"There is no folder {shown(path.parent)}; make it in the terminal first.") from None
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or "its links go in circles"
            raise ToolFailed(f"{shown(path)} cannot be written: {reason}.") from None
        except StoreError:
            raise _is_database(path) from None
        after = content.encode() if passage is None else _replaced(path, before, passage, content)
        return Change(real, before, after, status)

    def _refuse_home(self, path: Path, real: Path) -> None:
        if any(_is_same(folder, self._home) for folder in real.parents):
            raise ToolFailed(
                f"{shown(path)} is in the home of this program, where nothing is written;"
                " notes are written with memory, and settings by the user."
            )


def _is_same(folder: Path, home: Path) -> bool:
    """Whether both are one folder, by whatever names."""
    try:
        return folder.samefile(home)
    except OSError:
        return folder == home


def _is_database(path: Path) -> ToolFailed:
    return ToolFailed(f"{shown(path)} is a database that is in use, and is not written to.")


def _status(path: Path, real: Path) -> os.stat_result | None:
    """What is there; nothing but a file that may be written is good."""
    if path.name in ("", ".."):
        raise ToolFailed(f"{shown(path)} is a folder; name a file in it.")
    try:
        status = real.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        target = shown(os.path.realpath(real))
        raise ToolFailed(f"{shown(path)} is a link to {target}; write to that by its own name if it is meant.")
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "no file"
        raise ToolFailed(f"{shown(path)} is {what}, and only files are written.")
    if not os.access(real, os.W_OK):
        raise ToolFailed(f"{shown(path)} may not be written: its permissions say so.")
    return status


def _read(path: Path, real: Path, length: int, *, is_whole: bool) -> bytes:
    if length > MOST_BYTES:
        if is_whole:
            raise ToolFailed(f"{shown(path)} has {size(length)}, too much to replace a passage; use the terminal.")
        return b""
    descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read(MOST_BYTES)


def _replaced(path: Path, before: bytes, passage: str, content: str) -> bytes:
    old, new = passage.encode(), content.encode()
    if b"\r\n" in before and b"\r" not in old:  # lines are told without the sign that ends them here
        old, new = old.replace(b"\n", b"\r\n"), new.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    at = before.find(old)
    if at < 0:
        raise ToolFailed(f"The passage is not in {shown(path)}; read the file, and give it as it stands there.")
    if before.find(old, at + 1) >= 0:
        raise ToolFailed(f"The passage is in {shown(path)} more than once; give more of what stands around it.")
    return before[:at] + new + before[at + len(old) :]


def _described(change: Change) -> str:
    if change.status is None or change.before is None:
        return f"a new file of {count(_lines(change.after), 'line')}"
    if change.status.st_size > MOST_BYTES:
        return f"all of its {size(change.status.st_size)} replaced by {count(_lines(change.after), 'line')}"
    if change.before == change.after:
        return "no line changes"
    gone, come = _differing(change.before.splitlines(), change.after.splitlines())
    return f"{count(gone, 'line')} of {_lines(change.before):,} replaced by {count(come, 'line')}"


def _lines(text: bytes) -> int:
    return len(text.splitlines())


def _differing(before: list[bytes], after: list[bytes]) -> tuple[int, int]:
    """How many lines lie between the first and the last that differ."""
    shorter = min(len(before), len(after))
    start = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    rest = shorter - start
    end = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    return len(before) - start - end, len(after) - start - end


def _put(change: Change) -> None:
    """Write beside the file, and take its place when everything is on the disk."""
    part = change.path.with_name(f".{os.urandom(8).hex()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(part, flags, 0o666 if change.status is None else 0o600), "wb") as stream:
            stream.write(change.after)
            stream.flush()
            if change.status is not None:
                _make_alike(stream.fileno(), change.status)
            os.fsync(stream.fileno())
        part.replace(change.path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    _settle(change.path.parent)


def _make_alike(file: int, status: os.stat_result) -> None:
    """The same owner, as far as that is ours to say, and the same permissions."""
    with suppress(PermissionError):
        os.fchown(file, status.st_uid, status.st_gid)
    os.fchmod(file, stat.S_IMODE(status.st_mode) & 0o777)


def _settle(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
