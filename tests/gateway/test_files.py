"""Files in a conversation: what people send is kept and told of, and an owner's agent can send some itself."""

import hashlib
import json
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from lane_house import dm
from obedient_model import Obedient
from serving_house import Served, use_obedient_model, write_settings
from waiting import until

from segue.app.connecting import files_of
from segue.core.attachments import Attachment, place_of
from segue.core.errors import Invalid, LeaseLost
from segue.core.inbound import Inbound, Quote
from segue.core.leases import lane_lease
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.ports.store import Transaction
from segue.sessions.attaching import files_needed
from segue.sessions.delivering import Posting
from segue.sessions.enclosing import enclose
from segue.storage.attachments import ABANDONED_SECONDS
from segue.testing import Stage
from segue.testing.platform import TRAITS

Run = Callable[..., subprocess.CompletedProcess[str]]
YOU = SessionSource(platform="scripted", chat_id="owner", user_id="owner", user_name="You")


async def one_piece(content: bytes) -> AsyncIterator[bytes]:
    yield content


class House:
    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        use_obedient_model(monkeypatch)
        self.home, self.stage = write_settings(home), Stage()
        self.served = Served(self.home, {"scripted": self.stage})
        self.files = files_of(self.served.settings)

    async def keep(self, content: bytes, name: str) -> Attachment:
        return await self.files.keep(one_piece(content), name, "text/plain")

    def place(self, content: bytes) -> Path:
        return self.home / "attachments" / place_of(hashlib.sha256(content).hexdigest())

    def lists(self) -> list[str]:
        return self.served.store.read(OWNER, lambda tx: list(tx.health.files()))


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    return House(tmp_path / "home", monkeypatch)


def test_what_was_sent_along_and_pointed_at_is_told_and_kept_with_the_message(house: House, run: Run) -> None:
    async def work() -> None:
        file = await house.keep(b"the plan", "plan.txt")
        quote = Quote("Al]ice", "Where is\nthe “plan”?")
        await house.served.receive(Inbound(YOU, "m1", "here", files=(file,), quote=quote))
        await house.served.quiet()

    house.served.run(work)
    digest = hashlib.sha256(b"the plan").hexdigest()
    assert str(Obedient.asked[0].conversation[-1]["content"]) == (
        "[in answer to Alice: “Where is the plan?”]\nhere\n"
        f"[file “plan.txt”, text/plain, 8 bytes; attachments/{place_of(digest)}]"
    )
    (listed,) = set(house.lists())
    assert json.loads(listed) == [{"name": "plan.txt", "kind": "text/plain", "size": 8, "sha256": digest}]
    house.served.close()


def test_a_command_is_a_command_whatever_it_points_at(house: House) -> None:
    async def work() -> None:
        await house.served.receive(Inbound(YOU, "m1", "/status", quote=Quote("Bob", "/new")))
        await house.served.quiet()

    house.served.run(work)
    assert not Obedient.asked
    assert "obedient" in house.stage.posted_to("owner")[0]
    house.served.close()


def test_an_owner_is_sent_a_file_once_and_before_the_answer(house: House, tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_bytes(b"all is well")
    wish = f'use send_file {{"path": "{tmp_path}/report.txt", "text": "as you wished"}}'

    async def work() -> None:
        house.stage.say(YOU, wish)
        await house.served.quiet()

    house.served.run(work)
    first, second = house.stage.posted
    assert (first.text, first.file) == (
        "as you wished",
        {
            "name": "report.txt",
            "kind": "text/plain",
            "size": 11,
            "sha256": hashlib.sha256(b"all is well").hexdigest(),
        },
    )
    assert second.text.startswith("The tool said: ")
    assert "is on its way" in second.text
    assert house.place(b"all is well").read_bytes() == b"all is well"
    house.served.close()


@pytest.mark.parametrize("name", ["config.yaml", "state.db", "../home/config.yaml"])
def test_nothing_of_our_own_is_sent(house: House, name: str) -> None:
    async def work() -> None:
        house.stage.say(YOU, f'use send_file {{"path": "{house.home}/{name}"}}')
        await house.served.quiet()

    house.served.run(work)
    (answer,) = house.stage.posted
    assert "is Segue's own, and is not sent" in answer.text
    house.served.close()


@pytest.mark.parametrize(
    "source",
    [dm("stranger"), SessionSource(platform="scripted", chat_id="room", chat_type="group", user_id="owner")],
    ids=["somebody else", "an owner in a group"],
)
def test_nobody_else_gets_files_of_the_machine(house: House, source: SessionSource) -> None:
    async def work() -> None:
        house.stage.say(source, "hello")
        await house.served.quiet()

    house.served.run(work)
    assert "send_file" not in {tool.name for tool in Obedient.asked[0].tools}
    house.served.close()


def test_a_purge_takes_the_files_along_that_nothing_else_needs(house: House, run: Run) -> None:
    async def work() -> None:
        both, one = await house.keep(b"both", "both"), await house.keep(b"one", "one")
        await house.served.receive(Inbound(YOU, "m1", "hello", files=(both, one)))
        await house.served.receive(Inbound(dm("bob"), "m1", "hello", files=(both,)))
        await house.served.quiet()

    house.served.run(work)
    sessions = house.served.store.read(
        OWNER, lambda tx: [lane.session_id for lane in tx.lanes.listed() if "owner" in lane.key]
    )
    house.served.close()
    assert house.place(b"one").exists()
    done = run("sessions", "delete", sessions[0] or "", "--yes", SEGUE_HOME=str(house.home))
    assert done.returncode == 0, done.stderr
    assert house.place(b"one").exists()
    done = run("sessions", "delete", sessions[0] or "", "--purge", "--yes", SEGUE_HOME=str(house.home))
    assert done.returncode == 0, done.stderr
    assert "1 attachment removed." in done.stdout
    assert (house.place(b"one").exists(), house.place(b"both").exists()) == (False, True)


def test_a_message_that_was_deleted_before_its_answer_is_not_answered(house: House, tmp_path: Path) -> None:
    """The first one is being answered, the second waits and is taken back."""
    may_end = tmp_path / "may-end"
    first = f"wait until {may_end}"

    async def work() -> None:
        await house.served.receive(Inbound(YOU, "m1", first))
        await until(lambda: Obedient.asked)
        await house.served.receive(Inbound(YOU, "m2", "never mind"))
        await house.served.withdraw(YOU, "m2")
        await house.served.withdraw(YOU, "m1")
        may_end.touch()
        await house.served.quiet()

    house.served.run(work)
    assert house.stage.posted_to("owner") == [f"You said: {first}"]
    house.served.close()


def test_the_file_of_a_message_that_was_heard_in_the_middle_of_an_answer_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(tmp_path / "home", monkeypatch)
    begun, may_end = tmp_path / "begun", tmp_path / "may-end"
    tool = f'use terminal {{"command": "touch {begun}; until [ -e {may_end} ]; do sleep 0.02; done", "timeout": 500}}'

    async def work() -> None:
        house.stage.say(YOU, tool)
        await until(begun.exists)
        file = await house.keep(b"in the middle", "late.txt")
        await house.served.receive(Inbound(YOU, "m9", "/steer look at this", files=(file,)))
        may_end.touch()
        await house.served.quiet()

    house.served.run(work)
    kept = house.served.store.read(OWNER, lambda tx: [one for one in tx.health.attachments() if "late.txt" in one[2]])
    assert len(kept) == 1
    late = time.time() + 2 * ABANDONED_SECONDS
    assert house.files.unneeded(house.served.store.read(OWNER, files_needed), late) == []
    house.served.close()


def take_lane(tx: Transaction) -> None:
    tx.leases.take(lane_lease(tx.lanes.listed()[0].key), "another run", "owner", 3600.0)


def test_only_who_answers_and_sends_there_can_enclose_a_file(house: House, tmp_path: Path) -> None:
    """A gateway that has lost the lane, or does not have the platform, sends nothing."""
    refused: list[str] = []
    may_end = tmp_path / "may-end"

    async def work() -> None:
        house.stage.say(YOU, f"wait until {may_end}")
        await until(lambda: Obedient.asked)
        file, store = await house.keep(b"x", "x.txt"), house.served.store
        posting = Posting(lambda _platform, _account: TRAITS)
        session = store.read(OWNER, lambda tx: next(lane.session_id for lane in tx.lanes.listed()))
        for error in (LeaseLost, Invalid):
            with pytest.raises(error) as caught:
                store.write(OWNER, enclose, posting, "another run", session or "", file, "", 1.0)
            refused.append(str(caught.value))
            store.write(OWNER, take_lane)
        may_end.touch()

    house.served.run(work)
    assert refused == [
        "Another process answers here now; the file was not sent.",
        "scripted is connected elsewhere, where the file is not; try again later.",
    ]
    assert all(posted.file is None for posted in house.stage.posted)
    house.served.close()
