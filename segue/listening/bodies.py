"""What a call says, read as JSON, and why a call is not taken. Nothing here listens."""

from typing import Any

from segue.core.json_text import TooDeep, parse_json

MOST_BYTES = 1_048_576
DEEPEST = 64


class Refusal(Exception):
    """A call that is not taken, with its HTTP status."""

    def __init__(self, status: int, sentence: str, seconds: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.seconds = seconds
        """After which it may be made again."""

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.seconds is None else {"Retry-After": str(self.seconds)}


def read_body(body: bytes) -> Any:
    """What a body says, as JSON."""
    try:
        return parse_json(body.decode("utf-8"), DEEPEST, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise Refusal(400, "The body is not UTF-8.") from None
    except TooDeep:
        raise Refusal(400, f"The body is nested more than {DEEPEST} levels deep.") from None
    except ValueError:
        raise Refusal(400, "The body is not JSON.") from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)
