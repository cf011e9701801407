"""Many processes on one server whose connections are cut and whose plug is pulled."""

import random
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from postgres_server import Server
from torture_rounds import rounds

from segue import SessionDB

pytestmark = pytest.mark.torture

CROWD, APPENDS = 8, 500
CUT = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'segue' AND random() < 0.3"
)

WRITER = """
    import os, sys
    from segue import SessionDB
    url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with SessionDB(url) as db:
        db.set_meta(name, "is there")
        for number in range(count):
            db.append_message("shared" if number % 20 == 0 else name, "user", f"{name}:{number}")
            os.write(1, f"{name}:{number}\\n".encode())
"""


@pytest.fixture
def server() -> Iterator[Server]:
    durable = Server(is_durable=True)
    yield durable
    durable.close()


@pytest.mark.timeout(300)
def test_every_append_that_returned_is_there_once(server: Server) -> None:
    url = server.new_database()
    names = [f"writer{number}" for number in range(CROWD)]
    with SessionDB(url) as db:
        for name in ["shared", *names]:
            db.create_session(name, "cli")
    command = [sys.executable, "-c", textwrap.dedent(WRITER), url]
    appends = rounds(APPENDS, in_torture=APPENDS * 10)
    writers = [
        subprocess.Popen([*command, name, str(appends)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name in names
    ]
    wait_for(url, names)
    done = threading.Event()
    disturbed = Counter[str]()
    disturber = threading.Thread(target=disturb, args=(server, done, disturbed))
    disturber.start()
    try:
        told = [writer.communicate(timeout=240) for writer in writers]
    finally:
        done.set()
        disturber.join()
        for writer in writers:
            writer.kill()
    assert "".join(complaints for _, complaints in told) == ""
    assert disturbed["connections"] >= 20
    assert disturbed["restarts"] >= 2
    kept = Counter[str]()
    with SessionDB(url) as db:
        for name in ["shared", *names]:
            messages = db.get_messages(name)
            kept.update(message["content"] for message in messages)
            assert [message["seq"] for message in messages] == list(range(1, len(messages) + 1))
            session = db.get_session(name)
            assert session is not None
            assert session["message_count"] == len(messages)
    assert kept == Counter(line for said, _ in told for line in said.splitlines())
    assert kept.total() == CROWD * appends


def wait_for(url: str, names: list[str]) -> None:
    """Until every writer is there: who comes to a server that is down is told so at once."""
    end = time.monotonic() + 60
    with SessionDB(url) as db:
        while not all(db.get_meta(name) for name in names):
            assert time.monotonic() < end
            time.sleep(0.05)


def disturb(server: Server, done: threading.Event, disturbed: Counter[str]) -> None:
    source = random.Random(5)
    while not done.wait(source.uniform(0.05, 0.25)):
        if source.random() < 0.15:
            server.restart_at_once()
            disturbed["restarts"] += 1
        else:
            disturbed["connections"] += server.run(CUT)[0][0]
