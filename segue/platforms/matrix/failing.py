"""What can go wrong between us and a homeserver, in our own words, and what that means for something that is sent.

Trouble
├── Unreachable     nobody was asked
├── Unanswered      somebody may have been asked, and nobody answered
└── Refused         the homeserver says no, and why
    └── LoggedOut   it does not know us any more
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

from segue.core.errors import SegueError
from segue.core.text import one_line, shorten
from segue.ports.platform import SendFailed, SendLater, SendRefused, SendUnknown

_LONGEST_REASON = 200
_BUSY = 429
_BROKEN = 500


class Trouble(SegueError):
    """The homeserver and we do not understand each other at the moment."""


class Unreachable(Trouble):
    """Nothing has left this machine."""


class Unanswered(Trouble):
    """It may have heard us."""


class Refused(Trouble):
    def __init__(self, status: int, code: str, sentence: str, seconds: float | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code
        self.seconds = seconds
        """After which it may be asked again, if it said that."""

    @property
    def is_busy(self) -> bool:
        return self.status == _BUSY or self.code == "M_LIMIT_EXCEEDED"

    @property
    def is_broken(self) -> bool:
        """Whether something of its own is out of order."""
        return self.status >= _BROKEN


class LoggedOut(Refused):
    """The access token is none any more."""


def refusal(status: int, said: object) -> Refused:
    """What an answer that is no good says."""
    told = said if isinstance(said, dict) else {}
    code, reason = str(told.get("errcode") or ""), shorten(one_line(str(told.get("error") or "")), _LONGEST_REASON)
    wait = told.get("retry_after_ms")
    seconds = wait / 1000 if isinstance(wait, int | float) and not isinstance(wait, bool) and wait >= 0 else None
    named = " ".join(filter(None, (str(status), shorten(one_line(code), 60))))
    sentence = f"The homeserver says no ({named}): {reason or 'no reason given'}"
    kind = LoggedOut if code in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN") else Refused
    return kind(status, code, sentence.rstrip(".") + ".", seconds)


@contextmanager
def translated(homeserver: str) -> Iterator[None]:
    """Whatever the network says, in our words."""
    try:
        yield
    except (aiohttp.ClientSSLError, aiohttp.ClientConnectorCertificateError) as error:
        raise Unreachable(f"The certificate of {homeserver} is not to be trusted: {_told(error)}.") from error
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise Unreachable(f"Nobody answers at {homeserver}: {_told(error)}.") from error
    except aiohttp.InvalidURL as error:
        raise Unreachable(f"{homeserver} is no address of a homeserver.") from error
    except (aiohttp.ClientError, ConnectionError) as error:
        raise Unanswered(f"The connection to {homeserver} broke: {_told(error)}.") from error
    except TimeoutError as error:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        raise Unanswered(f"{homeserver} did not answer in time.") from error


@contextmanager
def before_sending() -> Iterator[None]:
    """Nothing has been sent yet, so whatever goes wrong, it can be sent again."""
    try:
        yield
    except Refused as refused:
        if refused.status in (403, 404) or refused.code == "M_FORBIDDEN":
            raise SendRefused(str(refused)) from refused
        raise SendLater(str(refused), refused.seconds) from refused
    except Trouble as trouble:
        raise SendLater(str(trouble)) from trouble


@contextmanager
def while_sending() -> Iterator[None]:
    try:
        yield
    except Unreachable as trouble:
        raise SendLater(str(trouble)) from trouble
    except Refused as refused:
        raise _meant(refused) from refused
    except Trouble as trouble:
        raise SendUnknown(str(trouble)) from trouble


def _meant(refused: Refused) -> SendFailed:
    if refused.is_busy or isinstance(refused, LoggedOut):
        return SendLater(str(refused), refused.seconds)
    return SendUnknown(str(refused)) if refused.is_broken else SendRefused(str(refused))


def _told(error: BaseException) -> str:
    return shorten(one_line(str(error)), _LONGEST_REASON).rstrip(".") or type(error).__name__
