"""What a model reads of the result of an MCP tool."""

import json

from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from segue.core.text import cut, printable, storable

MOST_CHARACTERS = 50_000


def told(result: CallToolResult) -> str:
    """What a model reads of a result."""
    parts = [_in_words(block) for block in result.content]
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    text = printable(storable("\n".join(parts)))
    if len(text) > MOST_CHARACTERS:
        shown = cut(text, MOST_CHARACTERS)
        return f"{shown}\n[{len(text) - len(shown):,} characters more are not shown.]"
    return text or "(no text)"


def _in_words(block: ContentBlock) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(mime_type=kind):
            return f"[An image, {kind}, which cannot be shown here.]"
        case AudioContent(mime_type=kind):
            return f"[A sound, {kind}, which cannot be played here.]"
        case ResourceLink(uri=uri):
            return f"[A link to {uri}]"
        case EmbeddedResource(resource=TextResourceContents(text=text)):
            return text
        case EmbeddedResource(resource=resource):
            return f"[A file, {resource.mime_type or 'of an unknown kind'}, which cannot be shown here.]"
