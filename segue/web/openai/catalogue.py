"""Everything that can be called under /v1: how, by whom, what is taken and what is told."""

from typing import Any, NamedTuple

from pydantic import BaseModel

from segue.core.credentials import Level
from segue.web.openai import chat, conversations, items, models, responses, shapes
from segue.web.openai.door import Work


class Operation(NamedTuple):
    """One way to call."""

    method: str
    path: str
    level: Level
    work: Work
    takes: type[BaseModel] | None
    tells: type[BaseModel] | None
    query: tuple[dict[str, Any], ...] = ()
    headers: tuple[str, ...] = ()
    can_stream: bool = False


_KEY = "Idempotency-Key"
_PAGING = (
    {"name": "limit", "schema": {"type": "integer", "minimum": 1, "maximum": shapes.MOST_LISTED}},
    {"name": "order", "schema": {"enum": ["asc", "desc"]}},
    {"name": "after", "schema": {"type": "string"}, "description": "The id of an item."},
    {"name": "include", "schema": {}, "description": "Taken and ignored."},
)
_STREAMED = ({"name": "stream", "schema": {"type": "boolean"}, "description": "Tell it from its beginning."},)
_CONVERSATION, _ITEMS = conversations.ONE, conversations.ONE + "/items"
_RESPONSE = responses.PATH + "/{response_id}"

OPERATIONS = (
    Operation(
        *("POST", chat.PATH, Level.WRITE, chat.create, shapes.ChatRequest, shapes.ChatCompletion),
        headers=(_KEY, "X-Segue-Conversation", "X-Session-Id"),
        can_stream=True,
    ),
    Operation("GET", chat.PATH + "/{completion_id}", Level.READ, chat.retrieve, None, shapes.ChatCompletion),
    Operation(
        *("POST", responses.PATH, Level.WRITE, responses.create, shapes.ResponseRequest, shapes.Response),
        headers=(_KEY,),
        can_stream=True,
    ),
    Operation(
        *("GET", _RESPONSE, Level.READ, responses.retrieve, None, shapes.Response), query=_STREAMED, can_stream=True
    ),
    Operation("POST", _RESPONSE + "/cancel", Level.WRITE, responses.cancel, None, shapes.Response),
    Operation("GET", _RESPONSE + "/input_items", Level.READ, responses.input_items, None, shapes.ItemList),
    Operation(
        *("POST", conversations.PATH, Level.WRITE, conversations.create, shapes.NewConversation, shapes.Conversation),
        headers=(_KEY,),
    ),
    Operation("GET", _CONVERSATION, Level.READ, conversations.retrieve, None, shapes.Conversation),
    Operation("POST", _CONVERSATION, Level.WRITE, conversations.update, shapes.ConversationChange, shapes.Conversation),
    Operation("DELETE", _CONVERSATION, Level.ADMIN, conversations.delete, None, shapes.DeletedConversation),
    Operation("POST", _ITEMS, Level.WRITE, items.create, shapes.NewItems, shapes.ItemList, headers=(_KEY,)),
    Operation("GET", _ITEMS, Level.READ, items.list_, None, shapes.ItemList, query=_PAGING),
    Operation("GET", _ITEMS + "/{item_id}", Level.READ, items.retrieve, None, None),
    Operation("DELETE", _ITEMS + "/{item_id}", Level.WRITE, items.delete, None, shapes.Conversation),
    Operation("GET", models.PATH, Level.READ, models.list_, None, shapes.Models),
    Operation("GET", models.PATH + "/{model}", Level.READ, models.retrieve, None, shapes.Model),
)
