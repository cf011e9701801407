"""A gateway that is asked over the wire, here or elsewhere. Only what Python brings along is needed for that.

Whoever may write to the home of a gateway may ask it everything: for the time of a question there is a token for that.
Elsewhere a token is needed, which is never an argument, because arguments can be seen by others.
"""

import http.client
import json
import os
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from segue import app, config
from segue.core.credentials import BEHIND, CHANCE, Level, made
from segue.core.errors import Invalid, NotFound, SegueError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import one_line
from segue.ports.store import Transaction
from segue.sessions.tokens import give_token, take_token_back
from segue.sessions.watching import addresses, living_gateways
from segue.upkeep.living import is_gone

SECONDS = 130.0
CONSOLE = "console"
"""What a terminal is called that asks the gateway of its home."""
LIFETIME = 300.0
"""Seconds for which a token of our own is good at most."""
MOST_TOKEN = 1_000
_OPENING_SECONDS = 3.0
_NO_GATEWAY = "No gateway of this home runs; `segue gateway run` starts one."


class Asked(Protocol):
    """A gateway that can be asked."""

    @property
    def name(self) -> str:
        """Where it is, for people."""

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """What it answers; what it says no to is an error of ours."""


class RemoteFailed(SegueError):
    """A gateway said no."""


class Unanswered(SegueError):
    """Nobody is there to say anything."""


class Here(Asked):
    """The gateway of this home. It may open its door only now, because there is a token."""

    name = "this home"

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        if not app.has_store(app.settings()):  # where a token would be put down
            raise NotFound(_NO_GATEWAY)
        with _own_token() as token:
            until = time.monotonic() + _OPENING_SECONDS
            while True:
                try:
                    return Remote(_address_here(), token).ask(method, params)
                except Unanswered:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.2)


class Remote(Asked):
    """A gateway somewhere."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise Invalid(
                "--url takes the whole address of a gateway, such as https://segue.example.org or http://127.0.0.1:8766."
            )
        self._parts = parts
        self._token = token

    @property
    def name(self) -> str:
        """Where it is, for people."""
        return f"{self._parts.hostname}" + (f":{self._parts.port}" if self._parts.port else "")

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """What it answers; what it says no to is an error of ours."""
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        try:
            status, said = self._post(json.dumps(request).encode())
        except ConnectionRefusedError as error:
            raise Unanswered(f"No gateway answers at {self.name}: {_told(error)}.") from None
        except (OSError, http.client.HTTPException) as error:
            raise RemoteFailed(
                f"No answer came from {self.name}, so nobody knows what was done: {_told(error)}."
            ) from None
        return _result(status, said, self.name)

    def _post(self, body: bytes) -> tuple[int, bytes]:
        connection = self._connection()
        try:
            path = self._parts.path.rstrip("/")
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
            connection.request("POST", path if path.endswith("/rpc") else f"{path}/rpc", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=SECONDS, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=SECONDS)


def remote_at(url: str | None, token_file: Path | None) -> Asked:
    """The gateway at an address, with the token for it."""
    if url is None:
        raise Invalid("--token-file goes with --url; the gateway of this home needs no token of yours.")
    token = _token_in(token_file) if token_file else config.token_of_environment()
    if not token:
        raise Invalid("A gateway elsewhere wants a token: put it into SEGUE_TOKEN, or into a file for --token-file.")
    return Remote(url, token)


def _address_here() -> str:
    with app.open_for_reading() as store:
        found = store.read(OWNER_AT_CONSOLE, _address)
    if found is None:
        raise Unanswered("The gateway of this home has not opened its door to programs; its log says why.")
    return found


def _address(tx: Transaction) -> str | None:
    """Where a gateway of this home has opened its door: whoever else listens there is shown no token."""
    runs = living_gateways(tx, is_gone)
    if not runs:
        raise NotFound(_NO_GATEWAY)
    known = addresses(tx)
    return next((known[run.id] for run in runs if run.id in known), None)


@contextmanager
def _own_token() -> Iterator[str]:
    now = time.time()
    mark = f"{BEHIND}{os.urandom(4).hex()}"
    credential, token = made(CONSOLE, os.urandom(CHANCE), now, mark=mark, level=Level.ADMIN, expires_at=now + LIFETIME)
    with app.open_store() as store:
        store.write(OWNER_AT_CONSOLE, give_token, credential)
        try:
            yield token
        finally:
            store.write(OWNER_AT_CONSOLE, take_token_back, credential.name)


def _token_in(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(MOST_TOKEN).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"The token in {file} cannot be read: {_told(error)}.") from None


def _result(status: int, said: bytes, name: str) -> Any:
    try:
        answer = json.loads(said)
        if "result" in answer:
            return answer["result"]
        sentence = str(answer["error"]["message"])
    except (ValueError, KeyError, TypeError):
        raise RemoteFailed(f"What answers at {name} is no gateway of Segue (HTTP {status}).") from None
    if status == HTTPStatus.UNAUTHORIZED:
        sentence = f"The token is not accepted at {name}: it is wrong, revoked, or for another gateway."
    raise RemoteFailed(one_line(sentence))


def _told(error: Exception) -> str:
    return one_line(str(getattr(error, "strerror", None) or error)) or type(error).__name__
