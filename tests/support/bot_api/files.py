"""The files of a world, and how a message shows them."""

import hashlib
from dataclasses import dataclass
from typing import Any

from bot_api.records import Upload
from bot_api.refusals import bad

MOST_TO_FETCH = 20_000_000
_MIME_TYPES = {
    "photo": "image/jpeg",
    "audio": "audio/mpeg",
    "voice": "audio/ogg",
    "video": "video/mp4",
    "video_note": "video/mp4",
    "animation": "video/mp4",
    "sticker": "image/webp",
}
_FRAME = {"width": 640, "height": 480}
_DETAILS: dict[str, dict[str, Any]] = {
    "document": {},
    "audio": {"duration": 3},
    "voice": {"duration": 3},
    "video": {"duration": 3, **_FRAME},
    "animation": {"duration": 3, **_FRAME},
    "video_note": {"duration": 3, "length": 240},
    "sticker": {"type": "regular", "is_animated": False, "is_video": False, **_FRAME},
}
_NAMELESS = {"voice", "video_note", "sticker"}


@dataclass
class File:
    file_id: str
    content: bytes
    file_name: str
    mime_type: str
    size: int
    """As it is told, which need not be true."""
    path: str

    @property
    def shown(self) -> dict[str, Any]:
        return {"file_id": self.file_id, "file_unique_id": f"u{self.file_id}", "file_size": self.size}

    @property
    def upload(self) -> Upload:
        return Upload(self.file_name, self.mime_type, len(self.content), hashlib.sha256(self.content).hexdigest())


class Files:
    def __init__(self) -> None:
        self._by_id: dict[str, File] = {}

    def add(self, content: bytes, file_name: str = "", mime_type: str = "", size: int | None = None) -> File:
        number = len(self._by_id) + 1
        extension = file_name.rpartition(".")[2] or "bin"
        path = f"files/file_{number}.{extension if extension.isalnum() else 'bin'}"
        size = len(content) if size is None else size
        file = File(f"AgADBQAD{number:08}", content, file_name, mime_type, size, path)
        self._by_id[file.file_id] = file
        return file

    def get(self, file_id: str) -> File:
        if file_id not in self._by_id:
            raise bad("wrong file identifier/HTTP URL specified")
        return self._by_id[file_id]

    def at(self, path: str) -> File | None:
        return next((file for file in self._by_id.values() if file.path == path), None)

    def told(self, file_id: str) -> dict[str, Any]:
        """What is answered to getFile."""
        if file_id not in self._by_id:
            raise bad("invalid file_id")
        file = self._by_id[file_id]
        if file.size > MOST_TO_FETCH:
            raise bad("file is too big")
        return file.shown | {"file_path": file.path}

    def shown_as(self, kind: str, file: File) -> dict[str, Any]:
        """The part of a message that shows the file."""
        if kind == "photo":
            small = self.add(file.content[:100], "small.jpg", "image/jpeg")
            return {"photo": [small.shown | {"width": 90, "height": 67}, file.shown | _FRAME]}
        named = {} if kind in _NAMELESS or not file.file_name else {"file_name": file.file_name}
        mime_type = file.mime_type or _MIME_TYPES.get(kind, "application/octet-stream")
        typed = {} if kind in ("video_note", "sticker") else {"mime_type": mime_type}
        shown = {kind: file.shown | named | typed | _DETAILS[kind]}
        return shown | ({"document": file.shown | named | typed} if kind == "animation" else {})
