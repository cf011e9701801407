"""A gateway at work, seen by somebody else on its machine: its files, its log, and its processes under /proc."""

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest
from gateway_process import House
from lane_house import dm
from waiting import DEADLINE, until

from segue.testing import Stage
from segue.testing.remote import Backstage

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc"),
]

KEY = "sk-" + "proj-" + "Qx7" * 16
HOOK_SECRET = "a hook's own zqsecret"
SERVER_SECRET = "zqsecret of a server"
SECRETS = (KEY, HOOK_SECRET, SERVER_SECRET)
SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"


class Seen(NamedTuple):
    """What is left of one life of a gateway."""

    house: House
    commands: dict[int, str]
    """The command line of the gateway and of each process that it started."""
    environments: dict[int, str]
    gateway: int
    answers: list[httpx2.Response]
    said: str


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("seen")
    before = os.umask(0)
    house = House(folder)
    try:
        yield asyncio.run(asyncio.wait_for(_life(house), 4 * DEADLINE))
    finally:
        house.close()
        os.umask(before)


async def _life(house: House) -> Seen:
    file = house.home / "config.yaml"
    settings = json.loads(file.read_text())
    settings["platforms"]["webhook"] = {"port": 0, "hooks": {"github": {"secret": HOOK_SECRET}}}
    server = {"command": [sys.executable, str(SERVER), "stdio"], "env": {"MINE": SERVER_SECRET}}
    settings["mcp"] = {"servers": {"my": server}}
    file.write_text(json.dumps(settings))
    house._environment |= {"OPENAI_API_KEY": KEY, "SOME_TOKEN": KEY}
    stage = Stage()
    async with Backstage(stage, house.socket):
        gateway = house.begin()
        for number, line in enumerate(
            [
                'use memory {"action": "write", "name": "leeks", "text": "They are green."}',
                'use terminal {"command": "sleep 1000", "background": true}',
                'use my_environment {"name": "MINE"}',
                "the last thing that is said",
            ]
        ):
            stage.say(dm("owner"), line)
            await _until(lambda wanted=number: len(stage.posted_to("owner")) > wanted, house)  # type: ignore[misc]
        answers = await _call(_port(house))
        numbers = _family(gateway.pid)
        commands = {number: _read(number, "cmdline") for number in numbers}
        environments = {number: _read(number, "environ") for number in numbers}
        for arguments in (
            ["sessions", "export", "all.jsonl"],
            ["sessions", "export", "all.html"],
            ["backup", "all.zip"],
            ["doctor"],
        ):
            done = house.ask(*arguments)
            assert done.returncode == 0, done.stdout + done.stderr
        gateway.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(gateway.wait, DEADLINE) == 0, house.log.read_text()
    said = " ".join(stage.posted_to("owner"))
    return Seen(house, commands, environments, gateway.pid, answers, said)


async def _until(is_so: Callable[[], object], house: House) -> None:
    try:
        await until(is_so)
    except TimeoutError:
        raise AssertionError(house.log.read_text()) from None


def _port(house: House) -> int:
    [line] = [line for line in house.log.read_text().splitlines() if "/hooks/NAME" in line]
    return int(line.rpartition("/hooks/")[0].rpartition(":")[2])


async def _call(port: int) -> list[httpx2.Response]:
    """As somebody who puts the secret where it does not belong."""
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        headers: list[dict[str, str]] = [
            {},
            {"Authorization": f"Bearer {HOOK_SECRET}"},
            {"Cookie": f"token={HOOK_SECRET}"},
            {"X-Hub-Signature-256": HOOK_SECRET},
        ]
        asked = [
            await client.post("/hooks/github", params={"token": HOOK_SECRET}, headers=one, content=b"{}")
            for one in headers
        ]
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        asked.append(
            await client.get("/hooks/github", headers=upgrade | {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="})
        )
    return asked


def _family(first: int) -> list[int]:
    """A process and all that came of it."""
    parents: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(file.parent.name)] = int(file.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
    found = [first]
    for one in found:
        found += [number for number, parent in parents.items() if parent == one]
    return found


def _read(process: int, what: str) -> str:
    try:
        return Path(f"/proc/{process}/{what}").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def test_everything_that_it_wrote_is_its_owners_alone_whatever_the_umask(seen: Seen) -> None:
    paths = [seen.house.home, *seen.house.home.rglob("*"), *seen.house.folder.glob("all.*")]
    names = {path.name for path in paths}
    assert {"state.db", "leeks.md", "all.jsonl", "all.html", "all.zip"} <= names
    assert any("process" in part for path in paths for part in path.parts), "what ran in the background left a file"
    found = {str(path): stat.S_IMODE(path.lstat().st_mode) for path in paths if path.name != "config.yaml"}
    assert {name: oct(mode) for name, mode in found.items() if mode & 0o077} == {}


def test_no_command_line_has_a_secret(seen: Seen) -> None:
    assert len(seen.commands) >= 5, "the gateway, a keeper or two, what it keeps, and a server"
    assert any("sleep" in command for command in seen.commands.values())
    assert {command for command in seen.commands.values() if any(one in command for one in SECRETS)} == set()


def test_no_process_that_it_started_knows_its_secrets(seen: Seen) -> None:
    assert KEY in seen.environments[seen.gateway], "the gateway itself does"
    others = {number: said for number, said in seen.environments.items() if number != seen.gateway}
    assert [said for said in others.values() if KEY in said or HOOK_SECRET in said] == []
    told = [number for number, said in others.items() if SERVER_SECRET in said]
    assert all(str(SERVER) in seen.commands[number] for number in told), "its own is told to the server alone"
    assert told


def test_its_log_has_no_secret(seen: Seen) -> None:
    log = seen.house.log.read_text()
    assert "was not signed with its secret" in log
    assert [one for one in SECRETS if one in log] == []
    assert "token=" not in log, "no address that was called is in it"


def test_a_secret_in_an_address_or_a_cookie_or_a_header_opens_nothing_and_is_not_said_back(seen: Seen) -> None:
    assert [answer.status_code for answer in seen.answers] == [401] * 4 + [405]
    assert not [answer for answer in seen.answers if HOOK_SECRET in answer.text + str(answer.headers)]


def test_what_was_done_there_was_done(seen: Seen) -> None:
    """So that the tests above look at something."""
    assert "The note leeks is kept" in seen.said
    assert SERVER_SECRET in seen.said, "a tool that is asked for it says what only its server knows"
