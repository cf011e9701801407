"""The OpenAPI document: made from the methods themselves, so that it says what they take and tell."""

from functools import cache
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from segue import __version__
from segue.web.openai import documenting as openai
from segue.web.rpc.catalogue import METHODS
from segue.web.rpc.dispatching import MOST_TOGETHER
from segue.web.rpc.method import Method

_REF = "#/components/schemas/{model}"
_ABOUT = (
    "Conversations of AI agents, as JSON-RPC 2.0: POST /rpc, or a WebSocket at the same address, which is also told"
    " what happens in conversations. Under /v1 the same agents answer clients of OpenAI."
)
_ID = {"type": ["string", "number", "null"]}


@cache
def document() -> dict[str, Any]:
    models: set[type[BaseModel]] = {model for method in METHODS.values() for model in (method.params, method.result)}
    models |= openai.SHAPES
    ordered = sorted(models, key=lambda one: f"{one.__module__}.{one.__qualname__}")
    wanted: list[tuple[type[BaseModel], Literal["validation"]]] = [(model, "validation") for model in ordered]
    names, schemas = models_json_schema(wanted, ref_template=_REF)
    references = {model: names[model, "validation"] for model in models}
    requests = [_request(method, references[method.params]) for method in METHODS.values()]
    answers = [_answer(references[method.result]) for method in METHODS.values()]
    own = {"Request": {"oneOf": requests}, "Answer": {"anyOf": [*answers, _ref("Error")]}, "Error": _error()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Segue", "version": __version__, "description": _ABOUT},
        "security": [{"token": []}],
        "paths": {
            "/rpc": _rpc(),
            "/health": _health(),
            "/ready": _ready(),
            "/metrics": _metrics(),
            "/openapi.json": _itself(),
            **openai.paths(lambda shape: references[shape]),
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas.get("$defs", {}) | own,
        },
    }


def _request(method: Method[Any], params: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "title": method.name,
        "description": f"{method.about} Needs a token with the scope {method.level}.",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "method": {"const": method.name},
            "params": params,
            "id": _ID,
        },
        "required": ["jsonrpc", "method", "params", "id"],
        "additionalProperties": False,
    }


def _answer(result: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"jsonrpc": {"const": "2.0"}, "result": result, "id": _ID},
        "required": ["jsonrpc", "result", "id"],
        "additionalProperties": False,
    }


def _error() -> dict[str, Any]:
    trouble = {
        "type": "object",
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
        "required": ["code", "message"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"jsonrpc": {"const": "2.0"}, "error": trouble, "id": _ID},
        "required": ["jsonrpc", "error", "id"],
        "additionalProperties": False,
    }


def _rpc() -> dict[str, Any]:
    refused = ("400", "401", "403", "408", "413", "429")
    return {
        "post": {
            "summary": "Ask something; several requests can stand in a list, and so do their answers then.",
            "operationId": "rpc",
            "requestBody": {"required": True, "content": {"application/json": {"schema": _ref("Request")}}},
            "responses": {
                "200": _json("What is answered.", _one_or_several("Answer")),
                "204": {"description": "Nothing was asked for."},
                **{status: _json("It was not taken.", _ref("Error")) for status in refused},
                "503": _json("The store does not answer.", _ref("Error")),
            },
        }
    }


def _one_or_several(name: str) -> dict[str, Any]:
    several = {"type": "array", "items": _ref(name), "minItems": 1, "maxItems": MOST_TOGETHER}
    return {"anyOf": [_ref(name), several]}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": _REF.format(model=name)}


def _health() -> dict[str, Any]:
    alive = {
        "type": "object",
        "properties": {"status": {"const": "alive"}, "seconds": {"type": "number"}},
        "required": ["status", "seconds"],
    }
    return {
        "get": {
            "summary": "Whether the gateway answers.",
            "operationId": "health",
            "security": [],
            "responses": {"200": _json("It does.", alive), "403": _json("It was not taken.", _plain())},
        }
    }


def _ready() -> dict[str, Any]:
    sentences = {"type": "array", "items": {"type": "string"}}
    ready = {
        "type": "object",
        "properties": {"status": {"enum": ["ready", "not ready"]}, "reasons": sentences, "notes": sentences},
        "required": ["status"],
    }
    refused = {status: _json("It was not taken.", _plain()) for status in ("401", "403", "429")}
    return {
        "get": {
            "summary": "Whether the gateway should be given work; with a token, also why not.",
            "operationId": "ready",
            "security": [{}, {"token": []}],
            "responses": {"200": _json("It should.", ready), "503": _json("It should not.", ready), **refused},
        }
    }


def _metrics() -> dict[str, Any]:
    refused = {status: _json("It was not taken.", _plain()) for status in ("401", "403", "429")}
    figures = {"description": "The figures.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    return {
        "get": {
            "summary": "Figures for Prometheus.",
            "operationId": "metrics",
            "responses": {"200": figures, **refused},
        }
    }


def _itself() -> dict[str, Any]:
    refused = {status: _json("It was not taken.", _plain()) for status in ("401", "403", "429")}
    return {
        "get": {
            "summary": "This document.",
            "operationId": "openapi",
            "responses": {"200": _json("The document.", {"type": "object"}), **refused},
        }
    }


def _plain() -> dict[str, Any]:
    return {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


def _json(about: str, schema: Any) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}
