"""A client of HTTP and WebSockets that keeps no rules: it sends halves, sends without reading, and reads slowly."""

import base64
import os
import socket
import struct
import time
from urllib.parse import urlsplit

from waiting import DEADLINE

STUCK_SECONDS = 3.0
"""A server that takes nothing for so long has stopped to read."""
TEXT, PING, CONTINUATION = 0x1, 0x9, 0x0


class RawClient:
    """One connection."""

    def __init__(self, url: str, *, seconds: float = DEADLINE, receive_buffer: int | None = None) -> None:
        parts = urlsplit(url)
        self._socket = socket.socket()
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(seconds)
        self._socket.connect((parts.hostname or "", parts.port or 80))
        self._received = b""

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> None:
        named = {"Host": "localhost", "Content-Length": str(len(body))} | headers
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items())
        self.send(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)

    def read_head(self) -> str:
        """The status line and the headers of an answer."""
        while b"\r\n\r\n" not in self._received:
            if not (piece := self._socket.recv(65_536)):
                raise ConnectionError(f"closed after {self._received!r}")
            self._received += piece
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        return head.decode("latin-1")

    def read_answer(self) -> tuple[int, bytes]:
        """The status and the body of an answer with a length."""
        head = self.read_head()
        length = next(
            int(line.partition(":")[2]) for line in head.splitlines() if line.lower().startswith("content-length")
        )
        body = bytearray(self._received)
        while len(body) < length:
            if not (piece := self._socket.recv(65_536)):
                raise ConnectionError("closed in the middle of an answer")
            body += piece
        self._received = bytes(body[length:])
        return int(head.split()[1]), bytes(body[:length])

    def upgrade(self, token: str, path: str = "/rpc") -> str:
        """Ask for a WebSocket; the head of the answer."""
        self.send(
            (
                f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
                f"Sec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: Bearer {token}\r\n\r\n"
            ).encode()
        )
        return self.read_head()

    def flood(self, data: bytes, most: int) -> int:
        """Send the same again and again without reading, until nothing is taken any more; how many bytes were."""
        sent, piece = 0, memoryview(data)
        self._socket.settimeout(STUCK_SECONDS)
        try:
            while sent < most:
                sent += self._socket.send(piece[sent % len(data) :])
        except OSError:
            return sent  # nothing is taken, or the server has closed
        return sent

    def is_closed(self, seconds: float = DEADLINE) -> bool:
        """Whether the server closes the connection within some seconds, whatever it still sends."""
        until = time.monotonic() + seconds
        try:
            while (left := until - time.monotonic()) > 0:
                self._socket.settimeout(left)
                if not self._socket.recv(65_536):
                    return True
        except TimeoutError:
            return False
        except OSError:
            return True
        return False

    def close(self) -> None:
        self._socket.close()


def frame(kind: int, payload: bytes = b"", *, is_last: bool = True) -> bytes:
    """A frame as clients send it, with a mask of zeros."""
    first = bytes([(0x80 if is_last else 0) | kind])
    size = len(payload)
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 65_536:
        length = bytes([0x80 | 126]) + struct.pack("!H", size)
    else:
        length = bytes([0x80 | 127]) + struct.pack("!Q", size)
    return first + length + bytes(4) + payload
