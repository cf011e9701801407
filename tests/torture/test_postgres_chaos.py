"""Many processes on one server whose connections are cut and whose plug is pulled."""

import random
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from fork_server import PIPE, ForkServer
from postgres_server import Server
from torture_rounds import rounds
from waiting import DEADLINE, wait_until

from segue import SessionDB

pytestmark = pytest.mark.torture

CROWD = 8
APPENDS = rounds(50, in_torture=5_000)
"""By each writer at least; all of them go on until there were enough disturbances."""
CONNECTIONS, RESTARTS = rounds(20, in_torture=200), rounds(2, in_torture=20)
CUT = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'segue' AND random() < 0.3"
)

WRITER = """
    import itertools, os, sys
    from segue import SessionDB
    url, name, count, stop = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    with SessionDB(url) as db:
        for number in itertools.count():
            if number >= count and os.path.exists(stop):
                break
            db.append_message("shared" if number % 20 == 0 else name, "user", f"{name}:{number}")
            os.write(1, f"{name}:{number}\\n".encode())
"""


@pytest.fixture
def server() -> Iterator[Server]:
    durable = Server(is_durable=True)
    yield durable
    durable.close()


@pytest.mark.timeout(rounds(900, in_torture=7200))
def test_every_append_that_returned_is_there_once(server: Server, fork_server: ForkServer, tmp_path: Path) -> None:
    url = server.new_database()
    names = [f"writer{number}" for number in range(CROWD)]
    with SessionDB(url) as db:
        for name in ["shared", *names]:
            db.create_session(name, "cli")
    stop = tmp_path / "stop"
    logs = [(tmp_path / name).open("wb") for name in names]
    writers = [
        fork_server.start(textwrap.dedent(WRITER), url, name, APPENDS, stop, stdout=log, stderr=PIPE)
        for name, log in zip(names, logs, strict=True)
    ]

    def sizes() -> list[int]:
        assert all(writer.poll() is None for writer in writers), [writer.communicate() for writer in writers]
        return [(tmp_path / name).stat().st_size for name in names]

    try:
        disturbed = disturb(server, sizes)
        stop.touch()
        complaints = [writer.communicate(rounds(int(DEADLINE), in_torture=3600))[1] for writer in writers]
    finally:
        for writer, log in zip(writers, logs, strict=True):
            writer.kill()
            writer.close()
            log.close()
    print(dict(disturbed))
    assert b"".join(complaints) == b""
    said = [line for name in names for line in (tmp_path / name).read_text().splitlines()]
    kept = Counter[str]()
    with SessionDB(url) as db:
        for name in ["shared", *names]:
            messages = db.get_messages(name)
            kept.update(message["content"] for message in messages)
            assert [message["seq"] for message in messages] == list(range(1, len(messages) + 1))
            session = db.get_session(name)
            assert session is not None
            assert session["message_count"] == len(messages)
    assert kept == Counter(said)
    assert kept.total() >= CROWD * APPENDS


def disturb(server: Server, sizes: Callable[[], list[int]]) -> Counter[str]:
    """Cut connections and pull the plug until both happened often enough.

    Every writer gets something done in between, however slow the machine is; except that now and then one trouble
    follows upon another at once.
    """
    source = random.Random(5)
    disturbed = Counter[str]()
    while disturbed["connections"] < CONNECTIONS or disturbed["restarts"] < RESTARTS:
        if source.random() < 0.8:
            wait_until(partial(_all_grew, sizes, sizes()), "progress of every writer")
            time.sleep(source.uniform(0.0, 0.1))
        if source.random() < 0.15:
            server.restart_at_once()
            disturbed["restarts"] += 1
        else:
            disturbed["connections"] += server.run(CUT)[0][0]
    return disturbed


def _all_grew(sizes: Callable[[], list[int]], before: list[int]) -> bool:
    return all(now > then for now, then in zip(sizes(), before, strict=True))
