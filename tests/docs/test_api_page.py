"""The programs on the page about the API run, against a gateway, as they are shown."""

import asyncio
import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import ROOT, blocks
from wordy_door import WordyDoor, entries, wordy_door

from segue.web.openai.shapes import ChatRequest, ResponseRequest

PAGE = ROOT / "docs" / "api.md"
TOLD = [
    """\
You said: Hello!
You said: What did I say?
You said: Say it slowly.
user Where shall I go?
assistant You said: Where shall I go?
""",
    """\
You said: Hello!
You said: And again.
4 items
""",
]


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WordyDoor]:
    with wordy_door(tmp_path, monkeypatch) as opened:
        yield opened


@pytest.mark.parametrize("number", [0, 1])
def test_a_program_of_the_page_says_what_it_should(door: WordyDoor, number: int) -> None:
    token = door.token()
    program = list(blocks(PAGE, "python"))[number]
    printed = io.StringIO()

    def run() -> None:
        meant = program.replace("http://127.0.0.1:8766", door.url).replace("segue_…", token)
        assert meant != program
        scope: dict[str, object] = {"__name__": "program"}
        with contextlib.redirect_stdout(printed):
            exec(compile(meant, str(PAGE), "exec"), scope)
        if hasattr(client := scope.get("client"), "close"):
            client.close()

    async def work() -> None:
        await asyncio.to_thread(run)

    door.serve(work)
    assert printed.getvalue() == TOLD[number]
    assert all(state == "done" for _, state in entries(door.store))


def test_every_field_that_is_ignored_is_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    ignored = {
        name
        for shape in (ChatRequest, ResponseRequest)
        for name, field in shape.model_fields.items()
        if (field.description or "").startswith("Taken and ignored")
    }
    related = {
        "prompt_cache_options",
        "prompt_cache_retention",
        "access_programs",
        "image",
        "function_call",
        "top_logprobs",
    }
    missing = {name for name in ignored - related if not re.search(rf"`{name}`", page)}
    assert missing == set()
