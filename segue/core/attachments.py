"""Attachments that are kept: files named by the SHA-256 of their content, so that equal ones are one.

A message's `attachments` is a list; an item that has a `sha256` is kept, any other only tells of something elsewhere.
"""

import re

from segue.core.messages import decode

_DIGEST = re.compile(r"[0-9a-f]{64}")


def kept_in(attachments: str) -> list[str]:
    """The digests of the files that a message's attachments need."""
    items = decode(attachments)
    found = [item.get("sha256") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [digest for digest in found if isinstance(digest, str) and _DIGEST.fullmatch(digest)]


def place_of(digest: str) -> str:
    """Where the file lies in the folder of attachments."""
    return f"{digest[:2]}/{digest}"
