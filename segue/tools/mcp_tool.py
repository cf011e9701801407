"""A tool of an MCP server as our agent has it. What a server says of its tools is cleaned, and never trusted to fit."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, NamedTuple

from segue.core.text import printable, shorten, storable
from segue.ports.tool import ToolFailed, ToolSpec
from segue.tools.visible import on_one_line

Call = Callable[[str, dict[str, Any]], Awaitable[str]]

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 2_000
LONGEST_SCHEMA = 30_000
MOST_TOOLS = 100
"""Of one server."""
_UNSAFE = re.compile("[^A-Za-z0-9_-]")
_MARK = 8  # characters that tell two names apart


class Offer(NamedTuple):
    """A tool as its server describes it."""

    name: str
    description: str
    schema: dict[str, Any]
    is_read_only: bool = False
    is_idempotent: bool = False


class McpTool:
    """Does what the server does with the arguments that the model says."""

    def __init__(self, server: str, offer: Offer, name: str, call: Call) -> None:
        self.spec = ToolSpec(name, _described(server, offer.description), offer.schema)
        self._server = server
        self._offer = offer
        self._call = call

    @property
    def sameness(self) -> str:
        """All that is known of it, the same when a server only says it in another order."""
        return json.dumps([self.spec.name, self._offer], sort_keys=True)

    def is_idempotent(self, arguments: dict[str, Any]) -> bool:  # noqa: ARG002 - a server says it of all
        return self._offer.is_read_only or self._offer.is_idempotent

    def risk(self, arguments: dict[str, Any]) -> str | None:
        if self._offer.is_read_only:
            return None
        return on_one_line(f"{self._server}: {self._offer.name} {_written(arguments)}")

    async def run(self, arguments: dict[str, Any], session_id: str) -> str:  # noqa: ARG002 - the same in every session
        if storable(_written(arguments)) != _written(arguments):
            raise ToolFailed(f"The arguments of {self.spec.name} have half a character in them, which no text has.")
        return await self._call(self._offer.name, arguments)


def usable(offers: Iterable[Offer]) -> tuple[list[Offer], list[str]]:
    """What can be offered to a model, in the order of names, and the names of what cannot."""
    by_name: dict[str, Offer] = {}
    for offer in offers:
        by_name.setdefault(offer.name, offer)
    there = sorted(by_name.values())
    good = [offer for offer in there if offer.name and _is_schema(offer.schema)][:MOST_TOOLS]
    kept = {offer.name for offer in good}
    return good, [offer.name for offer in there if offer.name not in kept]


def named(server: str, tools: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """Under which name a model knows each tool: the same whenever the server has the same tools."""
    names: dict[str, str] = {}
    used = set(taken)
    for tool in tools:
        whole = f"{server}_{_UNSAFE.sub('_', tool)}"
        name = whole[:LONGEST_NAME]
        if name in used or name != whole:
            mark = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
            name = f"{whole[: LONGEST_NAME - _MARK - 1]}_{mark}"
        used.add(name)
        names[tool] = name
    return names


def _is_schema(schema: dict[str, Any]) -> bool:
    """Whether it is what every provider accepts: one of an object, of a size that leaves room for a conversation."""
    text = _written(schema)
    return (
        schema.get("type") == "object"
        and isinstance(schema.get("properties", {}), dict)
        and isinstance(schema.get("required", []), list)
        and len(text) <= LONGEST_SCHEMA
        and storable(text) == text
    )


def _described(server: str, description: str) -> str:
    said = shorten(printable(storable(description)).strip(), LONGEST_DESCRIPTION)
    return f"{said or 'No description.'} (MCP server {server})"


def _written(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
