"""How a call under /v1 is taken: who makes it, what it says, and what they are told when it cannot be answered."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from segue.core.credentials import Credential, Level
from segue.core.scope import Scope
from segue.listening.bodies import read_body
from segue.listening.calls import body_of
from segue.web.guarding import Guard, NotLetIn
from segue.web.openai.errors import Wrong, trouble_of
from segue.web.premises import Premises

KEY, LONGEST_KEY = "idempotency-key", 255

S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Visit:
    """A call that was let in."""

    premises: Premises
    guard: Guard
    credential: Credential
    request: Request

    @property
    def scope(self) -> Scope:
        return self.credential.scope

    async def body(self, shape: type[S]) -> S:
        """What it says, in the shape that it must have."""
        said = read_body(await body_of(self.request) or b"{}")
        if not isinstance(said, dict):
            raise Wrong("The body must be a JSON object.", code="invalid_value")
        return shape.model_validate(said)

    @property
    def key(self) -> str | None:
        """The same when the same is asked again."""
        key = self.request.headers.get(KEY)
        if key is not None and not 0 < len(key) <= LONGEST_KEY:
            raise Wrong(f"An idempotency key has 1 to {LONGEST_KEY} characters.", code="invalid_value")
        return key

    async def check(self) -> None:
        """Nobody is told anything whose token was taken back meanwhile."""
        if not await self.guard.is_still_good(self.credential):
            raise NotLetIn

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])


Work = Callable[[Visit], Awaitable[Response]]


def behind(premises: Premises, guard: Guard, level: Level, work: Work) -> Callable[[Request], Awaitable[Response]]:
    """What answers a call, for those whom a guard lets in."""

    async def answer(request: Request) -> Response:
        try:
            credential = await guard.let_in(request, level)
            return await work(Visit(premises, guard, credential, request))
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits is told
            return trouble_of(error).answer

    return answer


def told(shape: BaseModel) -> JSONResponse:
    return JSONResponse(shape.model_dump(mode="json"))
