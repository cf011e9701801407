"""The gateway as clients of OpenAI see it: /v1, where an agent is a model and everything that is said lasts."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from segue.core.credentials import Level
from segue.web.guarding import Guard
from segue.web.openai import chat, conversations, items, models, responses
from segue.web.openai.door import Visit, door_of
from segue.web.openai.errors import Wrong
from segue.web.premises import Premises

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def routes(premises: Premises, guard: Guard) -> list[BaseRoute]:
    """Everything under /v1, behind a guard."""
    door = door_of(premises, guard)
    known = [route for part in (chat, responses, conversations, items, models) for route in part.routes(door)]
    return [*known, *(door(method, "/v1/{rest:path}", Level.READ, _nothing) for method in _METHODS)]


async def _nothing(visit: Visit) -> Response:
    request = visit.request
    raise Wrong(f"There is no {request.method} {request.url.path} here.", code="unknown_url", status=404)
