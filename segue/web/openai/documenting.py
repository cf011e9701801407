"""What can be called under /v1, for the OpenAPI document: made from the shapes that calls are checked with."""

import re
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from segue.web.openai import shapes
from segue.web.openai.catalogue import OPERATIONS, Operation

Schema = dict[str, Any]

_PARAMETER = re.compile(r"{(\w+)}")
_REFUSALS = ("400", "401", "403", "404", "408", "409", "413", "422", "429", "500", "503")
_STREAM: Schema = {"text/event-stream": {"schema": {}}}


SHAPES: frozenset[type[BaseModel]] = frozenset(
    {shape for one in OPERATIONS for shape in (one.takes, one.tells) if shape is not None} | {shapes.Failure}
)


def paths(reference: Callable[[type[BaseModel]], Schema]) -> Schema:
    """Every path, with references to shapes that stand elsewhere in the document."""
    found: Schema = {}
    for one in OPERATIONS:
        found.setdefault(one.path, {})[one.method.lower()] = _operation(one, reference)
    return found


def _operation(one: Operation, reference: Callable[[type[BaseModel]], Schema]) -> Schema:
    about = " ".join((one.work.__doc__ or "").split())
    schema = reference(one.tells) if one.tells else {"type": "object"}
    content: Schema = {"application/json": {"schema": schema}} | (_STREAM if one.can_stream else {})
    failure = {"application/json": {"schema": reference(shapes.Failure)}}
    told: Schema = {
        "summary": about,
        "description": f"Needs a token with the scope {one.level}.",
        "operationId": f"{one.work.__module__.rpartition('.')[2]}_{one.work.__name__.strip('_')}",
        "parameters": _parameters(one),
        "responses": {"200": {"description": "What is answered.", "content": content}}
        | {status: {"description": "It was not answered.", "content": failure} for status in _REFUSALS},
    }
    if one.takes is not None:
        taken = {"application/json": {"schema": reference(one.takes)}}
        is_needed = any(field.is_required() for field in one.takes.model_fields.values())
        told["requestBody"] = {"required": is_needed, "content": taken}
    return told


def _parameters(one: Operation) -> list[Schema]:
    path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(one.path)
    ]
    text = {"type": "string", "minLength": 1, "maxLength": 200}
    return [
        *path,
        *({"in": "query"} | parameter for parameter in one.query),
        *({"name": name, "in": "header", "schema": text} for name in one.headers),
    ]
