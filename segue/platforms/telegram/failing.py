"""What went wrong on the way to Telegram or back, in our words. Whatever others call it ends here."""

import httpx
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, RetryAfter, TelegramError

from segue.core.errors import SegueError
from segue.ports.platform import SendFailed, SendLater, SendRefused, SendUnknown

WRONG_TOKEN = (
    "Telegram does not know the token in platforms.telegram.token: get one from @BotFather, write it there, and begin"  # noqa: S105
    " anew with `segue gateway restart`."
)
ANOTHER = (
    "Another program asks Telegram for what this bot is told: stop it, or give one of the two a bot of its own;"
    " until then each would hear half of it."
)
ELSEWHERE = (
    "Another program has told Telegram to call elsewhere, or not at all: stop it, or give one of the two a bot of its"
    " own."
)
NOT_MODIFIED = "message is not modified"
_TOO_LARGE = "Request Entity Too Large"
_NEVER_LEFT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)


class TelegramFailed(SegueError):
    """Telegram cannot be heard at the moment."""


def of_listening(error: TelegramError) -> TelegramFailed:
    """Why nothing can be heard."""
    if isinstance(error, InvalidToken):
        return TelegramFailed(WRONG_TOKEN)
    if isinstance(error, Conflict):
        return TelegramFailed(ANOTHER)
    if isinstance(error, RetryAfter):
        return TelegramFailed(f"Telegram was asked too often, and wants to be left alone for {seconds_of(error):g} s.")
    if isinstance(error, BadRequest | Forbidden | ChatMigrated):
        return TelegramFailed(f"Telegram refuses: {told(error)}.")
    return TelegramFailed(f"Telegram cannot be reached: {reason_of(error)}; it is tried again.")


def of_sending(error: TelegramError) -> SendFailed:
    """Which of three kinds a failure is."""
    if isinstance(error, RetryAfter):
        seconds = seconds_of(error)
        return SendLater(f"Telegram takes nothing more there for {seconds:g} s.", seconds)
    if isinstance(error, InvalidToken):
        return SendLater(WRONG_TOKEN)  # which mends when its owner writes the right one
    if isinstance(error, BadRequest | Forbidden | ChatMigrated) or _TOO_LARGE in error.message:
        return SendRefused(f"Telegram refuses: {told(error)}.")
    if isinstance(error.__cause__, _NEVER_LEFT):
        return SendLater(f"Telegram cannot be reached: {reason_of(error)}.")
    return SendUnknown(f"Telegram did not say whether it took it: {reason_of(error)}.")


def is_about(error: TelegramError, words: str) -> bool:
    return words.casefold() in error.message.casefold()


def told(error: TelegramError) -> str:
    """What Telegram says of it."""
    return error.message.removeprefix("Bad Request: ").removeprefix("Forbidden: ").strip().rstrip(".")


def seconds_of(error: RetryAfter) -> float:
    wait = error.retry_after
    return float(wait if isinstance(wait, int) else wait.total_seconds())


def reason_of(error: TelegramError) -> str:
    """What happened, without a name that only programmers know."""
    cause = error.__cause__
    if isinstance(cause, httpx.ConnectError):
        return f"nobody answers ({cause})" if str(cause) else "nobody answers"
    if isinstance(cause, httpx.TimeoutException):
        return "it did not answer in time"
    if isinstance(cause, httpx.HTTPError):
        return "the connection broke"
    return told(error) or "it makes no sense"
