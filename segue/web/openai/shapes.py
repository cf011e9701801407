"""What is taken and told under /v1. A field that is in no shape is an error that names it.

Fields that clients of OpenAI send by habit, and that an agent with a model, tools and a memory of its own has no use
for, are taken and ignored. Those that would change what the answer must look like are refused when they ask for it.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from segue.web.openai.errors import Wrong

MOST_ITEMS = 20
MOST_LISTED = 100
_NO_TOOLS = "The agent has tools of its own and cannot call yours: leave this out."
_ONLY_TEXT = "The agent answers in words alone: leave this out."

Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]], Field(max_length=16)
]
Items = Annotated[list[dict[str, Any]], Field(max_length=MOST_ITEMS)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Ignored = Annotated[Any, Field(default=None, description="Taken and ignored.")]


_EMPTY: dict[str, Any] = {"maxItems": 0}


class Closed(BaseModel):
    """A shape that is all that is taken or told."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Asked(Closed):
    """What both ways of asking have in common."""

    stream: bool | None = False
    tools: list[Any] | None = Field(
        None, description="Must be empty: the agent has tools of its own.", json_schema_extra=_EMPTY
    )
    metadata: Ignored
    moderation: Ignored
    parallel_tool_calls: Ignored
    prompt_cache_key: Ignored
    prompt_cache_options: Ignored
    prompt_cache_retention: Ignored
    reasoning: Ignored
    safety_identifier: Ignored
    service_tier: Ignored
    store: Annotated[Any, Field(default=None, description="Taken and ignored: everything is stored.")]
    temperature: Ignored
    tool_choice: Ignored
    top_logprobs: Ignored
    top_p: Ignored
    user: Ignored


class StreamOptions(Closed):
    include_usage: bool | None = False
    include_obfuscation: Ignored


class ChatMessage(Closed):
    """A message; what clients send back of an answer beside its words is ignored."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    annotations: Ignored
    audio: Ignored
    function_call: Ignored
    reasoning: Ignored
    reasoning_content: Ignored
    refusal: Ignored


class ChatRequest(Asked):
    model: Name
    messages: list[ChatMessage] = Field(min_length=1)
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    logprobs: Literal[False] | None = None
    functions: list[Any] | None = Field(None, description="Must be empty.", json_schema_extra=_EMPTY)
    response_format: dict[str, Any] | None = Field(None, description='Only {"type": "text"}.')
    modalities: list[str] | None = Field(None, description='Only ["text"].')
    stop: str | list[str] | None = Field(
        None, description="Must be empty.", json_schema_extra=_EMPTY | {"maxLength": 0}
    )
    audio: None = None
    web_search_options: None = None
    frequency_penalty: Ignored
    function_call: Ignored
    logit_bias: Ignored
    max_completion_tokens: Ignored
    max_tokens: Ignored
    prediction: Ignored
    presence_penalty: Ignored
    reasoning_effort: Ignored
    seed: Ignored
    verbosity: Ignored

    def check(self) -> None:
        """Raise when something is asked for that the answer will not have."""
        refuse(self.tools, "tools", _NO_TOOLS)
        refuse(self.functions, "functions", _NO_TOOLS)
        refuse(self.stop, "stop", "The agent ends where it ends: leave this out.")
        refuse(self.response_format not in (None, {"type": "text"}), "response_format", _ONLY_TEXT)
        refuse(self.modalities not in (None, ["text"]), "modalities", _ONLY_TEXT)


class ConversationName(Closed):
    id: Name


class ResponseRequest(Asked):
    model: Name | None = Field(None, description="Who answers; else who answered before, or main.")
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    conversation: Name | ConversationName | None = None
    previous_response_id: Name | None = None
    background: bool | None = False
    stream_options: StreamOptions | None = None
    text: dict[str, Any] | None = Field(None, description='Its format must be {"type": "text"}.')
    prompt: None = None
    access_programs: Ignored
    context_management: Ignored
    image: Ignored
    include: Ignored
    max_output_tokens: Ignored
    max_tool_calls: Ignored
    truncation: Ignored

    def check(self) -> None:
        """Raise when something is asked for that the answer will not have."""
        refuse(self.tools, "tools", _NO_TOOLS)
        refuse((self.text or {}).get("format") not in (None, {"type": "text"}), "text.format", _ONLY_TEXT)
        if self.conversation is not None and self.previous_response_id is not None:
            sentence = "Give a conversation or a previous_response_id, not both."
            raise Wrong(sentence, "previous_response_id", "mutually_exclusive_parameters")

    @property
    def conversation_id(self) -> str | None:
        return self.conversation.id if isinstance(self.conversation, ConversationName) else self.conversation


class NewConversation(Closed):
    items: Items | None = None
    metadata: Metadata | None = None


class ConversationChange(Closed):
    metadata: Metadata | None


class NewItems(Closed):
    items: Items


# What is told


class Model(Closed):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "segue"


class Models(Closed):
    object: Literal["list"] = "list"
    data: list[Model]


class Conversation(Closed):
    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: dict[str, str]


class DeletedConversation(Closed):
    id: str
    object: Literal["conversation.deleted"] = "conversation.deleted"
    deleted: Literal[True] = True


class ItemList(Closed):
    object: Literal["list"] = "list"
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


class TokenDetails(Closed):
    cached_tokens: int = 0


class ReasoningDetails(Closed):
    reasoning_tokens: int = 0


class ChatUsage(Closed):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: TokenDetails
    completion_tokens_details: ReasoningDetails


class ResponseUsage(Closed):
    input_tokens: int
    input_tokens_details: TokenDetails
    output_tokens: int
    output_tokens_details: ReasoningDetails
    total_tokens: int


class ChatAnswer(Closed):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class Choice(Closed):
    index: Literal[0] = 0
    message: ChatAnswer
    finish_reason: Literal["stop"] = "stop"
    logprobs: None = None


class ChatCompletion(Closed):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage


class OutputText(Closed):
    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[Any] = []
    logprobs: list[Any] = []


class OutputMessage(Closed):
    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed", "incomplete"]
    content: list[OutputText]


class ResponseFault(Closed):
    code: str
    message: str


Status = Literal["queued", "in_progress", "completed", "failed", "cancelled"]


class Response(Closed):
    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None
    status: Status
    background: bool
    error: ResponseFault | None
    incomplete_details: None = None
    instructions: None = None
    max_output_tokens: None = None
    metadata: dict[str, str] = {}
    model: str
    output: list[OutputMessage]
    parallel_tool_calls: bool = False
    conversation: ConversationName | None
    previous_response_id: str | None
    store: Literal[True] = True
    temperature: None = None
    text: dict[str, Any] = {"format": {"type": "text"}}
    tool_choice: Literal["auto"] = "auto"
    tools: list[Any] = []
    top_p: None = None
    truncation: Literal["disabled"] = "disabled"
    usage: ResponseUsage | None
    user: None = None


class Fault(Closed):
    message: str
    type: str
    param: str | None
    code: str | None


class Failure(Closed):
    error: Fault


def refuse(is_there: Any, param: str, sentence: str) -> None:
    if is_there:
        raise Wrong(sentence, param, "unsupported_parameter")
