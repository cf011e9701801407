"""`/v1/models`: the agents that can be asked, as clients of OpenAI name models."""

from starlette.responses import Response

from segue.web.openai.door import Visit, told
from segue.web.openai.saying import agent_named, agents_of
from segue.web.openai.shapes import Model, Models

PATH = "/v1/models"


async def list_(visit: Visit) -> Response:
    """Every agent."""
    return told(Models(data=[Model(id=name) for name in agents_of(visit.premises)]))


async def retrieve(visit: Visit) -> Response:
    """One agent."""
    name = visit.path("model")
    agent_named(visit.premises, name)
    return told(Model(id=name))
