"""A port of this machine that stays ours while nobody listens on it."""

import socket


class HeldPort:
    """A server may come and go on it; the system gives it to nobody else meanwhile, and whoever connects is refused."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # lets a server in beside it
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def close(self) -> None:
        self._socket.close()
