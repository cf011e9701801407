"""A chat whose answers are written down here: `python scripted_chat.py FOLDER` in a terminal or a pipe."""

import asyncio
import itertools
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from segue.cli.chatting.asking import Prompt
from segue.cli.chatting.farewell import farewell
from segue.cli.chatting.here import keyboard_here, prompt_here, screen_here
from segue.cli.chatting.offers import Offer, Offers
from segue.cli.chatting.piping import Pipe
from segue.cli.chatting.screen import Screen
from segue.core.events import (
    Done,
    Event,
    Failed,
    ModelCalled,
    Note,
    Reasoning,
    Reply,
    Steered,
    Text,
    ToolCall,
    ToolFinished,
    ToolStarted,
)
from segue.core.preferences import Verbosity

ANSWER = """\
# Leek soup

Here is what I found, with **bold** words, `code` and a [link](https://example.org/soup).

1. Wash the leeks:
   ```bash
   for leek in *.leek; do wash "$leek"; done
   ```
2. Cut them. 葱を切って、鍋に入れます。とても簡単な料理ですから、心配はいりません。
   - thin rings 👩‍👩‍👧
   - or not 🇵🇹
3. Boil

| Ingredient | Amount | Where |
|---|---:|---|
| Leeks 葱 | 3 | market |
| Potatoes 🥔 | 500 g | cellar, behind the old boxes |

```python
def soup(leeks: int) -> str:
    \"\"\"Make soup.

    It takes an hour.\"\"\"
    return f"{leeks} leeks, and a line that is so long that it does not fit into any ordinary terminal at all"
```

> Soup is the answer.

That is all.
"""
COMMANDS = (Offer("/quit", "Leave"), Offer("/resume", "Go on with another conversation"), Offer("/retry", "Ask again"))
SESSIONS = (Offer("20250301_080000_soup", "Soup for Sunday"), Offer("Soup for Sunday", "20250301_080000_soup"))


async def full() -> AsyncIterator[Event]:
    yield ModelCalled("model", "provider")
    yield Reasoning("The person wants soup.\nI should look for leeks first.")
    yield Text("I will look at what there is.")
    call = ToolCall("1", "terminal", '{"command": "ls -la /home/person/kitchen/vegetables | grep --color=never leek"}')
    yield Reply("I will look at what there is.", (call,))
    yield ToolStarted(call)
    await asyncio.sleep(0.05)
    yield ToolFinished(call, "leek-1 leek-2 leek-3\npotatoes\nbutter\n")
    search = ToolCall("2", "web_search", '{"query": "leek soup", "limit": 3}')
    yield ToolStarted(search)
    yield ToolFinished(search, "The server did not answer within 10 seconds.", is_error=True)
    yield Note("The first model is busy. Going on with another.")
    yield ModelCalled("another", "provider")
    for at in range(0, len(ANSWER), 7):
        yield Text(ANSWER[at : at + 7])
        await asyncio.sleep(0.002)
    yield Reply(ANSWER)
    yield Done()


async def slow(heard: list[str]) -> AsyncIterator[Event]:
    yield ModelCalled("model", "provider")
    for number in itertools.count():  # until somebody stops it
        yield Text(f"Line {number} of many.\n\n")
        await asyncio.sleep(0.02)
        while heard:
            yield Steered(heard.pop(0))


async def silent() -> AsyncIterator[Event]:
    yield ModelCalled("model", "provider")
    await asyncio.Event().wait()
    yield Done()


async def failing() -> AsyncIterator[Event]:
    yield Failed("There is no model to ask; set OPENAI_API_KEY.")
    yield Done()


async def agreeing(prompt: Prompt) -> AsyncIterator[Event]:
    answer = await prompt.agree("The agent wants to run:\n  rm -rf soup")
    yield Text(f"The answer was {answer}.")
    yield Done()


async def echoing(said: str) -> AsyncIterator[Event]:
    yield Text(f"{len(said)} characters, {said.count(chr(10)) + 1} lines")
    yield Done()


async def turn(said: str, prompt: Prompt, screen: Screen | Pipe) -> None:
    heard: list[str] = []
    events = {"full": full, "slow": lambda: slow(heard), "silent": silent, "fail": failing}.get(
        said, lambda: agreeing(prompt) if said == "agree" else echoing(said)
    )()

    async def run() -> None:
        async for event in events:
            screen.show(event)

    screen.begin()
    working = asyncio.create_task(run())
    async with prompt.listening(screen, lambda: _stop(working), heard.append):
        await asyncio.wait({working})
        if working.cancelled():
            screen.show(Done(was_stopped=True))


def _stop(working: "asyncio.Task[None]") -> None:
    working.cancel()


async def chat(folder: Path, typed: str) -> None:
    offers = Offers(COMMANDS, {"/resume": lambda typed: [one for one in SESSIONS if one.value.startswith(typed)]})
    prompt = prompt_here(folder / "typed", offers, lambda: "Soup for Sunday · some-model", typed)
    screen = screen_here()
    if isinstance(screen, Screen):
        screen.verbosity = Verbosity(sys.argv[2] if len(sys.argv) > 2 else "tools")
    while (said := await prompt.ask()) not in (None, "/quit"):
        assert said is not None
        started = time.monotonic()
        await turn(said, prompt, screen)
        if said == "time":
            screen.say(f"{time.monotonic() - started:.2f}")
        if said == "pause":
            screen.say("Nobody asks for a line.")
            while not (folder / "go").exists():
                await asyncio.sleep(0.01)
    screen.say(farewell("20250301_080000_soup", "Soup for Sunday"))


if __name__ == "__main__":
    with keyboard_here() as already:
        asyncio.run(chat(Path(sys.argv[1]), already))
