"""The page about the gateway's door says what is there, and its example works."""

import asyncio
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from open_door import OpenDoor
from serving_house import use_obedient_model, write_settings
from waiting import DEADLINE, until

from segue.web.rpc.catalogue import METHODS

PAGE = Path(__file__).parents[2] / "docs" / "rpc.md"


def test_every_method_is_on_the_page_with_its_scope() -> None:
    told = re.findall(r"^\| `([a-z.]+)` \| (read|write|admin) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert dict(told) == {name: str(method.level) for name, method in METHODS.items()}


def test_every_parameter_that_the_page_names_is_there() -> None:
    for name, said in re.findall(r"^\| `([a-z.]+)` \| (?:read|write|admin) \|(.*)\|$", PAGE.read_text("utf-8"), re.M):
        for word in re.findall(r"`([a-z_]+)`", said):
            assert word in METHODS[name].params.model_fields, (name, word)


def test_the_program_on_the_page_follows_a_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_obedient_model(monkeypatch)
    door = OpenDoor(write_settings(tmp_path / "home", gateway={"port": 0}))
    token = door.token()
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[0]
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, str(PAGE), "exec"), names)

    told: list[str] = []

    def printed() -> str:
        told.append(capsys.readouterr().out)
        return "".join(told)

    async def work() -> None:
        following = asyncio.create_task(names["follow"](door.url.replace("http", "ws") + "/rpc", token))
        assert door.premises is not None
        await until(partial(getattr, door.premises.onlookers, "_by_lane"))
        await door.ask(token, "chat.send", conversation="desk", text="good morning", wait_seconds=DEADLINE)
        await until(lambda: "You said: good morning" in printed())
        following.cancel()
        await asyncio.wait({following})

    door.serve(work)
    door.close()
    assert printed().splitlines()[-2:] == ["user good morning", "assistant You said: good morning"]
