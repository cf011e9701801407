"""A web server on this machine that answers as a test wants it, and remembers what it was asked."""

import gzip
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit


class Asked(NamedTuple):
    path: str
    headers: dict[str, str]


class WebServer:
    """`/to?u=URL` redirects there; `/pages` are what a test puts into them."""

    def __init__(self, *, certificate: Path | None = None) -> None:
        self.asked: list[Asked] = []
        self.names: list[str | None] = []
        """What the clients of a secure server wanted to reach."""
        self.pages: dict[str, tuple[bytes, dict[str, str]]] = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server._answer(self)

            def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            context.sni_callback = lambda _socket, name, _context: self.names.append(name)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def put(self, path: str, body: str | bytes, kind: str = "text/html; charset=utf-8", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = body.encode() if isinstance(body, str) else body
        self.pages[path] = (content, named | ({"Content-Type": kind} if kind else {}))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(Asked(request.path, dict(request.headers.items())))
        parts = urlsplit(request.path)
        match parts.path:
            case "/to":
                request.send_response(302)
                request.send_header("Location", parse_qs(parts.query)["u"][0].encode().decode("latin-1"))
                request.send_header("Set-Cookie", "secret=1")
                request.end_headers()
            case "/endless":
                self._begin(request, {"Content-Type": "text/plain"})
                while True:
                    request.wfile.write(b"x" * 65_536)
            case "/slow":
                self._begin(request, {"Content-Type": "text/plain"})
                while True:
                    request.wfile.write(b"x")
                    request.wfile.flush()
                    time.sleep(0.05)
            case "/bomb":
                packed = gzip.compress(b"x" * 50_000_000)
                self._begin(request, {"Content-Type": "text/plain", "Content-Encoding": "gzip"})
                request.wfile.write(packed)
            case path if path in self.pages:
                body, headers = self.pages[path]
                self._begin(request, headers | {"Content-Length": str(len(body))})
                request.wfile.write(body)
            case _:
                request.send_error(404)

    def _begin(self, request: BaseHTTPRequestHandler, headers: dict[str, str]) -> None:
        request.send_response(200)
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
