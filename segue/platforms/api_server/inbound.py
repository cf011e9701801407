"""What a program says with its token becomes a message."""

from typing import Any

from segue.core.inbound import Inbound
from segue.core.scope import Principal
from segue.core.sources import API_SERVER, SessionSource


def source_of(client: str, conversation: str) -> SessionSource:
    """Where a program speaks: each has conversations of its own."""
    return SessionSource(platform=API_SERVER, chat_id=conversation, user_id=client, user_name=client)


def inbound_of(
    client: str,
    principal: Principal,
    conversation: str,
    message_id: str,
    text: str,
    *,
    parts: list[dict[str, Any]] | None = None,
    agent: str | None = None,
    lane: str | None = None,
    is_verbatim: bool = False,
) -> Inbound:
    """A message as it is put down. With too many before it, it is not taken, and the program calls again."""
    return Inbound(
        source_of(client, conversation),
        message_id,
        text,
        parts=parts,
        is_offered=True,
        agent=agent,
        principal=principal,
        lane=lane,
        is_verbatim=is_verbatim,
    )
