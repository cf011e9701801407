"""`/v1/models`: the agents that can be asked, as clients of OpenAI name models."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from segue.core.credentials import Level
from segue.web.openai.door import Door, Visit, told
from segue.web.openai.saying import agent_named, agents_of
from segue.web.openai.shapes import Model, Models

PATH = "/v1/models"


def routes(door: Door) -> list[BaseRoute]:
    return [door("GET", PATH, Level.READ, list_), door("GET", PATH + "/{model}", Level.READ, retrieve)]


async def list_(visit: Visit) -> Response:
    """Every agent."""
    return told(Models(data=[Model(id=name) for name in agents_of(visit.premises)]))


async def retrieve(visit: Visit) -> Response:
    """One agent."""
    name = visit.path("model")
    agent_named(visit.premises, name)
    return told(Model(id=name))
