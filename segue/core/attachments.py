"""Attachments that are kept: files named by the SHA-256 of their content, so that equal ones are one.

A message's `attachments` is a list; an item that has a `sha256` is kept, any other only tells of something elsewhere,
and of why it was not kept.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeGuard

from segue.core.messages import decode
from segue.core.text import one_line, shorten, size, storable

MOST_FILES = 10
"""Of one message. What comes beyond is told, and not kept."""
_LONGEST_NAME, _LONGEST_REASON = 200, 200
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KIND = re.compile(r"[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}")
_UNKNOWN_KIND = "application/octet-stream"
_UNQUOTABLE = str.maketrans("", "", "“”[]")


class Attachment(NamedTuple):
    """A file that somebody sent, or is sent."""

    name: str
    """As whoever sent it called it. It is no path, and nothing is ever stored under it."""
    kind: str = _UNKNOWN_KIND
    """A media type, such as image/jpeg."""
    size: int | None = None
    sha256: str | None = None
    reason: str | None = None
    """Why it is not kept."""

    def as_item(self) -> dict[str, Any]:
        """As it stands in a message's `attachments`."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def attachment(
    name: str | None,
    kind: str | None,
    length: int | None = None,
    sha256: str | None = None,
    reason: str | None = None,
) -> Attachment:
    """A file as others tell of it, in words that can be shown."""
    told = shorten(one_line(storable(name or "")).replace("/", "_").replace("\\", "_"), _LONGEST_NAME) or "file"
    of_kind = (kind or "").partition(";")[0].strip().lower()
    why = shorten(one_line(storable(reason)), _LONGEST_REASON) if reason else None
    return Attachment(told, of_kind if _KIND.fullmatch(of_kind) else _UNKNOWN_KIND, length, sha256, why)


def attachments_in(stored: str | None) -> list[Attachment]:
    """Those that stand in a message."""
    items = decode(stored) if stored else None
    known = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [
        Attachment(**{name: item[name] for name in Attachment._fields if name in item})
        for item in known
        if "name" in item
    ]


def told_of(files: Sequence[Attachment]) -> list[str]:
    """A line for each file, for whoever reads the message: what it is, and where it is kept."""
    return [_line(file) for file in files]


def _line(file: Attachment) -> str:
    facts = [f"“{file.name.translate(_UNQUOTABLE)}”", file.kind, *([] if file.size is None else [size(file.size)])]
    why = (file.reason or "it is elsewhere").translate(_UNQUOTABLE)
    place = f"attachments/{place_of(file.sha256)}" if file.sha256 else f"not kept: {why}"
    return f"[file {', '.join(facts)}; {place}]"


def kept_in(attachments: str) -> list[str]:
    """The digests of the files that a message's attachments need."""
    items = decode(attachments)
    found = [item.get("sha256") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [digest for digest in found if is_digest(digest)]


def is_digest(said: Any) -> TypeGuard[str]:
    return isinstance(said, str) and _DIGEST.fullmatch(said) is not None


def place_of(digest: str) -> str:
    """Where the file lies in the folder of attachments."""
    return f"{digest[:2]}/{digest}"
