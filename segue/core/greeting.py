"""The short greeting after a bare `/new` or `/reset`: what the model is asked, and who is greeted."""

from collections.abc import Sequence

from segue.core.events import Chat
from segue.core.preferences import Preferences
from segue.core.sending import Override
from segue.core.sources import API_SERVER, UNATTENDED

GREETING_ENTRY = "[greeting]"
"""The text of an inbox entry that is answered with a greeting, in place of the command that it was."""
_REQUEST = (
    "[The person does not see this. They have begun a new conversation and have said nothing in it yet. Greet them in"
    " one or two short sentences and ask what they would like to do. This is about your first message alone, which"
    " needs no tools.]"
)


def is_greeted(platform: str, preferences: Preferences, *, is_person: bool) -> bool:
    """Return whether whoever begins a conversation there is greeted: a person who would see it."""
    return is_person and platform not in (*UNATTENDED, API_SERVER) and preferences.send != Override.OFF


def with_greeting_request(conversation: Sequence[Chat]) -> list[Chat]:
    """Put the request to greet before a conversation in which the agent speaks first.

    The request is stored nowhere: search, lists and titles know only what was said. A conversation that begins with an
    answer is refused by some providers, so it stays in front of every later request as well.
    """
    if conversation and conversation[0].get("role") != "assistant":
        return list(conversation)
    return [{"role": "system", "content": _REQUEST}, *conversation]
