"""How the server says no: with the codes and the words of the real one."""

from typing import Any


class Refused(Exception):
    """A call that is not carried out."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    def answer(self) -> dict[str, Any]:
        said: dict[str, Any] = {"ok": False, "error_code": self.code, "description": self.description}
        return said | ({"parameters": self.parameters} if self.parameters else {})


def bad(reason: str, **parameters: int) -> Refused:
    return Refused(400, f"Bad Request: {reason}", **parameters)


def too_many(seconds: int) -> Refused:
    return Refused(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)


def conflict(reason: str) -> Refused:
    return Refused(409, f"Conflict: {reason}")
