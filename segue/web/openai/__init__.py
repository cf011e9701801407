"""The gateway as clients of OpenAI see it: /v1, where an agent is a model and everything that is said lasts."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from segue.web.guarding import Guard
from segue.web.openai.catalogue import OPERATIONS
from segue.web.openai.door import behind
from segue.web.premises import Premises

BEGINNING = "/v1/"

Answer = Callable[[Request], Awaitable[Response]]


def routes(premises: Premises, guard: Guard) -> list[BaseRoute]:
    """Everything under /v1, behind a guard."""
    paths: dict[str, dict[str, Answer]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method] = behind(premises, guard, one.level, one.work)
    return [_route(path, answers) for path, answers in paths.items()]


def is_ours(request: Request) -> bool:
    """Whether whoever calls expects to be told of errors as OpenAI tells of them."""
    return request.url.path.startswith(BEGINNING)


def _route(path: str, answers: dict[str, Answer]) -> Route:
    async def answer(request: Request) -> Response:
        return await answers["GET" if request.method == "HEAD" else request.method](request)

    return Route(path, answer, methods=list(answers))
