"""A program's question outlives the gateway: killed in the middle of an answer, it is answered once all the same."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from gateway_process import SUPPORT, House, kill
from openai import APIConnectionError, OpenAI
from torture_rounds import rounds
from waiting import DEADLINE, wait_until

pytestmark = [pytest.mark.process, pytest.mark.torture, pytest.mark.on_file]

_ADDRESS = re.compile(r"Programs call (http://\S+), with a token")
KEY = "Idempotency-Key"
_TOKEN = re.compile(r"segue_[0-9a-f]{8}_[0-9a-f]{64}")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path, gateway={"port": 0})
    yield made
    made.close()


def address(house: House, life: int) -> str:
    """Where the gateway listens in one of its lives."""

    def found() -> list[str]:
        return _ADDRESS.findall(house.log.read_text()) if house.log.exists() else []

    wait_until(lambda: len(found()) >= life, "an address in the log")
    return found()[life - 1]


def asked(house: House) -> str:
    """Something that is answered when a file is there, which it is in the second life."""
    return f"wait until {house.folder / 'go'}"


def made_token(house: House) -> str:
    said = house.ask("tokens", "add", "laptop", "--scope", "write")
    found = _TOKEN.search(said.stdout)
    assert found is not None, (said.stdout, said.stderr)
    return found[0]


def cut_off(house: House, token: str, key: str) -> str:
    """Ask, and kill the gateway when the answer has begun; the name of the response."""
    life = house.begin()
    with OpenAI(api_key=token, base_url=f"{address(house, 1)}/v1", max_retries=0, timeout=DEADLINE) as client:
        stream = client.responses.create(model="main", input=asked(house), stream=True, extra_headers={KEY: key})
        created, *_ = (next(stream) for _ in range(2))
        assert created.type == "response.created"
        while next(stream).type != "response.output_text.delta":
            pass
        kill(life)
        with pytest.raises(APIConnectionError):
            list(stream)
    (house.folder / "go").touch()
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
    with OpenAI(api_key=token, base_url=f"{address(house, 2)}/v1", max_retries=0, timeout=DEADLINE) as client:
        if is_streamed:
            *_, last = client.responses.create(model="main", input=asked(house), stream=True, extra_headers={KEY: "k1"})
            assert last.type == "response.completed"
            assert (last.response.id, f"You said: {asked(house)}" in last.response.output_text) == (name, True)
        assert over(client, name) == f"You said: {asked(house)}"
        follow = client.responses.create(input="and?", previous_response_id=name)
        assert follow.output_text == "You said: and?"
    assert questions(house) == [4]  # a question, its answer, and what followed


def test_without_the_key_it_would_be_asked_twice(house: House) -> None:
    """The control: what holds the two calls together is the key alone."""
    token = made_token(house)
    name = cut_off(house, token, "k1")
    house.begin()
    with OpenAI(api_key=token, base_url=f"{address(house, 2)}/v1", max_retries=0, timeout=DEADLINE) as client:
        other = client.responses.create(model="main", input=asked(house), extra_headers={KEY: "k2"})
        assert other.id != name
        over(client, name)
    assert questions(house) == [2, 2]


def test_after_a_crash_loop_every_call_with_a_key_has_one_outcome(house: House, tmp_path: Path) -> None:
    """Nothing is continued before a minute without such a loop; under torture that minute is waited for."""
    token, keys, names = made_token(house), ("k1", "k2", "k3"), {}
    life = house.begin()
    with OpenAI(api_key=token, base_url=f"{address(house, 1)}/v1", max_retries=0, timeout=DEADLINE) as client:
        for key in keys:
            asked_for = client.responses.create(
                model="main", input=f"{asked(house)} {key}", background=True, extra_headers={KEY: key}
            )
            names[key] = asked_for.id
        for name in names.values():
            wait_until(partial(is_in_progress, client, name))
    kill(life)
    for number in (2, 3, 4):
        life = house.begin()
        wait_until(partial(has_settled, house, number), "a gateway that has settled the crash before it")
        kill(life)
    (house.folder / "go").touch()
    later = tmp_path / "later"
    later.write_text(str(rounds(120, in_torture=0)))
    house.begin(launcher=SUPPORT / "late_launcher.py", SEGUE_TEST_LATER=str(later))
    with OpenAI(api_key=token, base_url=f"{address(house, 5)}/v1", max_retries=0, timeout=2 * DEADLINE) as client:
        for key, name in names.items():
            again = client.responses.create(model="main", input=f"{asked(house)} {key}", extra_headers={KEY: key})
            assert (again.id, again.status) == (name, "completed")
    assert questions(house) == [2, 2, 2]


def has_settled(house: House, life: int) -> bool:
    """True if so many lives have begun to serve; each settles the crash before it first."""
    return house.log.read_text().count("api_server is connected") >= life


def is_in_progress(client: OpenAI, name: str) -> bool:
    return client.responses.retrieve(name).status == "in_progress"


def over(client: OpenAI, name: str) -> str:
    wait_until(lambda: client.responses.retrieve(name).status not in ("queued", "in_progress"))
    found = client.responses.retrieve(name)
    assert found.status == "completed"
    return found.output_text
