"""A model server that plays bytes exactly as they are written down, for what no real one should ever send."""

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from waiting import DEADLINE

STREAM = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


class Play(NamedTuple):
    """One answer: pieces of bytes, written one after the other."""

    pieces: Sequence[bytes]
    is_chunked: bool = False
    """Whether the end can be told from a cut."""
    cuts: bool = False
    """Whether the connection is cut in place of ending."""
    is_endless: bool = False
    """Whether it falls silent at the end and waits until the other side has left."""
    head: str = STREAM


class RawModelServer:
    """Plays its answers in order, one a connection, and the last of them for ever; keeps what it was asked."""

    def __init__(self, *plays: Play) -> None:
        self._plays = list(plays)
        self.asked: list[bytes] = []
        self._is_open = True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def play(self, *plays: Play) -> None:
        self._plays = list(plays)

    def close(self) -> None:
        self._is_open = False
        with socket.create_connection(self._listener.getsockname()):
            pass  # wakes the one that waits for connections
        self._thread.join(DEADLINE)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if not self._is_open:
                connection.close()
                return
            threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(DEADLINE)
            with suppress(OSError):  # whoever asked has gone
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        body = _read(connection)
        if body is None:
            return
        self.asked.append(body)
        play = self._plays.pop(0) if len(self._plays) > 1 else self._plays[0]
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        framing = "Transfer-Encoding: chunked\r\n" if play.is_chunked else ""
        connection.sendall(f"{play.head}{framing}Connection: close\r\n\r\n".encode())
        for piece in play.pieces:
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if play.is_chunked else piece)
        if play.is_endless:
            connection.recv(1)
            return
        if play.is_chunked and not play.cuts:
            connection.sendall(b"0\r\n\r\n")
        if play.cuts:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, not an end


def _read(connection: socket.socket) -> bytes | None:
    """The body of a request; None when somebody only knocked, or asked for something that has none."""
    said = b""
    while b"\r\n\r\n" not in said:
        more = connection.recv(65536)
        if not more:
            return None
        said += more
    head, _, body = said.partition(b"\r\n\r\n")
    lengths = [int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    if not lengths:
        connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return None
    while len(body) < lengths[0]:
        more = connection.recv(65536)
        if not more:
            return None
        body += more
    return body
