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
from segue.web.rpc.documenting import with_reference

PAGE = Path(__file__).parents[2] / "docs" / "rpc.md"


def test_every_method_is_on_the_page_with_its_scope_and_its_parameters() -> None:
    page = PAGE.read_text("utf-8")
    assert with_reference(page) == page, "run python scripts/rpc_docs.py"
    told = re.findall(r"^\| \[`([a-z.]+)`\]\(#[a-z]+\) \| (read|write|admin) \|", page, re.MULTILINE)
    assert dict(told) == {name: str(method.level) for name, method in METHODS.items()}
    for name, method in METHODS.items():
        section = page.partition(f"### {name}\n")[2].partition("###")[0]
        assert re.findall(r"^\| `([a-z_]+)` \|", section, re.MULTILINE) == list(method.params.model_fields), name


def test_every_parameter_says_what_it_is_for() -> None:
    for name, method in METHODS.items():
        for parameter, field in method.params.model_json_schema().get("properties", {}).items():
            assert field.get("description"), (name, parameter)


def test_the_script_notices_a_page_that_is_out_of_date() -> None:
    old = PAGE.read_text("utf-8").replace("| `wait_seconds` |", "| `wait` |", 1)
    assert with_reference(old) != old
    with pytest.raises(ValueError, match="no place for the reference"):
        with_reference("# A page")


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
