"""A program's question outlives the gateway: killed in the middle of an answer, it is answered once all the same."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway_process import House, kill
from openai import APIConnectionError, OpenAI

pytestmark = [pytest.mark.process, pytest.mark.torture, pytest.mark.on_file]

_ADDRESS = re.compile(r"Programs call (http://\S+), with a token")
KEY, ASKED = "Idempotency-Key", "wait 4"
_TOKEN = re.compile(r"segue_[0-9a-f]{8}_[0-9a-f]{64}")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path, gateway={"port": 0})
    yield made
    made.close()


def address(house: House, life: int) -> str:
    """Where the gateway listens in one of its lives."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        found = _ADDRESS.findall(house.log.read_text()) if house.log.exists() else []
        if len(found) >= life:
            return str(found[life - 1])
        time.sleep(0.05)
    raise AssertionError(house.log.read_text())


def made_token(house: House) -> str:
    said = house.ask("tokens", "add", "laptop", "--scope", "write")
    found = _TOKEN.search(said.stdout)
    assert found is not None, (said.stdout, said.stderr)
    return found[0]


def cut_off(house: House, token: str, key: str) -> str:
    """Ask, and kill the gateway when the answer has begun; the name of the response."""
    life = house.begin()
    with OpenAI(api_key=token, base_url=f"{address(house, 1)}/v1", max_retries=0, timeout=40) as client:
        stream = client.responses.create(model="main", input=ASKED, stream=True, extra_headers={KEY: key})
        created, *_ = (next(stream) for _ in range(2))
        assert created.type == "response.created"
        while next(stream).type != "response.output_text.delta":
            pass
        kill(life)
        with pytest.raises(APIConnectionError):
            list(stream)
    return created.response.id


def questions(house: House) -> list[int]:
    """How much was said in each conversation."""
    rows = json.loads(house.ask("sessions", "list", "--json").stdout)
    return [row["message_count"] for row in rows]


@pytest.mark.parametrize("is_streamed", [False, True], ids=["fetched", "retried as a stream"])
def test_a_gateway_that_is_killed_answers_once(house: House, is_streamed: bool) -> None:
    token = made_token(house)
    name = cut_off(house, token, "k1")
    house.begin()
    with OpenAI(api_key=token, base_url=f"{address(house, 2)}/v1", max_retries=0, timeout=40) as client:
        if is_streamed:
            *_, last = client.responses.create(model="main", input=ASKED, stream=True, extra_headers={KEY: "k1"})
            assert last.type == "response.completed"
            assert (last.response.id, "You said: wait 4" in last.response.output_text) == (name, True)
        assert over(client, name) == "You said: wait 4"
        follow = client.responses.create(input="and?", previous_response_id=name)
        assert follow.output_text == "You said: and?"
    assert questions(house) == [4]  # a question, its answer, and what followed


def test_without_the_key_it_would_be_asked_twice(house: House) -> None:
    """The control: what holds the two calls together is the key alone."""
    token = made_token(house)
    name = cut_off(house, token, "k1")
    house.begin()
    with OpenAI(api_key=token, base_url=f"{address(house, 2)}/v1", max_retries=0, timeout=40) as client:
        other = client.responses.create(model="main", input=ASKED, extra_headers={KEY: "k2"})
        assert other.id != name
        over(client, name)
    assert questions(house) == [2, 2]


def over(client: OpenAI, name: str) -> str:
    deadline = time.monotonic() + 40
    while (found := client.responses.retrieve(name)).status in ("queued", "in_progress"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert found.status == "completed"
    return found.output_text
