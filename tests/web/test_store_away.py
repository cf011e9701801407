"""Who looks after a gateway is answered in time, also while its database answers nobody."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from open_door import OpenDoor
from postgres_server import Server
from serving_house import use_obedient_model, write_settings
from waiting import DEADLINE, until

from segue.core.credentials import Level
from segue.gateway import probing
from segue.gateway.readiness import STORE_DOWN
from segue.web import front

NEVER_USED = f"segue_{'0' * 8}_{'0' * 64}"


@pytest.fixture
def server(postgres_server: Server) -> Server:
    return postgres_server


@pytest.fixture
def door(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenDoor]:
    use_obedient_model(monkeypatch)
    monkeypatch.setattr(probing, "FRESH_SECONDS", 0.0)
    opened = OpenDoor(write_settings(tmp_path / "home", database=server.new_database(), gateway={"port": 0}))
    yield opened
    opened.close()


async def get(door: OpenDoor, path: str, token: str | None = None) -> httpx2.Response:
    shown = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(timeout=DEADLINE, verify=False) as client:
        return await client.get(f"{door.url}{path}", headers=shown)


def test_probes_are_answered_while_the_database_answers_nobody(door: OpenDoor, server: Server) -> None:
    """Each answer comes before the server goes on, so it waits for something else."""
    token, person = door.token("owner", Level.READ), door.token("alice", Level.READ, "telegram:1")

    async def is_ready() -> bool:
        ready = await get(door, "/ready", token)
        return ready.status_code == 200 and ready.json().get("notes") == []  # then everything is connected

    async def work() -> None:
        await until(is_ready)
        assert (await get(door, "/metrics", person)).status_code == 403
        with server.frozen():
            for shown in (None, NEVER_USED, person):
                ready = await get(door, "/ready", shown)
                assert (ready.status_code, ready.json()) == (503, {"status": "not ready", "error": STORE_DOWN})
            known = (await get(door, "/ready", token)).json()
            assert (known["error"], known["notes"]) == (STORE_DOWN, [])
            assert "It has not answered for" in known["reasons"][0]
            for shown in (None, NEVER_USED):
                figures = await get(door, "/metrics", shown)
                assert (figures.status_code, figures.json()) == (503, {"error": STORE_DOWN})
            assert (await get(door, "/metrics", person)).status_code == 403
            figures = await get(door, "/metrics", token)
            assert figures.status_code == 200
            assert "segue_store_readable 0.0" in figures.text
        await until(is_ready)
        assert "segue_store_readable 1.0" in (await get(door, "/metrics", token)).text
        assert (await get(door, "/metrics")).status_code == 401

    door.serve(work)


def test_a_token_that_was_taken_back_is_forgotten_with_it(door: OpenDoor, server: Server) -> None:
    token = door.token("owner", Level.READ)

    async def work() -> None:
        assert (await get(door, "/metrics", token)).status_code == 200
        door.revoke("owner")
        assert (await get(door, "/metrics", token)).status_code == 401
        with server.frozen():
            assert (await get(door, "/metrics", token)).status_code == 503

    door.serve(work)


def test_what_they_wait_for_adds_up_to_less_than_two_seconds() -> None:
    assert probing.PATIENCE < front.ANSWER_SECONDS < 2.0
