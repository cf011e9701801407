"""`segue` with a model that answers at once and says what that used: python counting_launcher.py gateway run"""

from collections.abc import AsyncGenerator

from segue.app import crew
from segue.cli import main
from segue.core.events import Reply, Text
from segue.core.naming import TITLE_INSTRUCTIONS
from segue.core.usage import Billing, Usage
from segue.ports.model import Request


class Counting:
    """Stands where a model of a provider would."""

    name, provider = "counting", "test"

    def __init__(self, *_: object, **__: object) -> None: ...

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        is_title = request.system == TITLE_INSTRUCTIONS
        text = "A talk" if is_title else f"You said: {request.conversation[-1]['content']}"
        yield Reply(text, usage=Usage(7, 3, api_call_count=1), billing=Billing(model=self.name))

    async def aclose(self) -> None: ...


if __name__ == "__main__":
    setattr(crew, "ProviderModel", Counting)  # noqa: B010 - as a test does it
    setattr(crew, "warm_up", len)  # noqa: B010
    main()
