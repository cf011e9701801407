"""A method: what it is called, who may call it, what it is given and what it tells. Nothing more is taken or told."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from segue.core.credentials import Credential, Level
from segue.core.scope import Scope
from segue.web.premises import Premises


class Closed(BaseModel):
    """A shape that is all that is taken or told."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Nothing(Closed):
    """No parameters."""


P = TypeVar("P", bound=Closed)

Id = Annotated[str, Field(min_length=1, max_length=600, description="The id of a session.")]
Key = Annotated[str, Field(min_length=1, max_length=4000, description="The key of a lane.")]
Text = Annotated[str, Field(max_length=1_000_000)]
Names = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=100)]
Count = Annotated[int, Field(ge=1, le=1000, description="How many at most.")]
Offset = Annotated[int, Field(ge=0, le=10**9, description="How many of the first to leave out.")]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and what stands behind the door."""

    credential: Credential
    premises: Premises
    order: asyncio.Lock = field(default_factory=asyncio.Lock)
    """What is said over one connection is put down in the order in which it was sent."""

    @property
    def scope(self) -> Scope:
        return self.credential.scope


@dataclass(frozen=True, slots=True)
class Method(Generic[P]):
    name: str
    level: Level
    params: type[P]
    result: type[Closed]
    run: Callable[[Caller, P], Awaitable[Closed]]
    is_long: bool = False
    """Whether its answer can be so long that room is reserved for it."""

    @property
    def about(self) -> str:
        """What it does, as its function says."""
        return (self.run.__doc__ or "").strip()

    async def call(self, caller: Caller, given: Any) -> dict[str, Any]:
        """Do it; raises pydantic's error when what is given has another shape."""
        answer = await self.run(caller, self.params.model_validate(given))
        return answer.model_dump(mode="json", by_alias=True)
