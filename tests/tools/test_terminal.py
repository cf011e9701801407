"""A command runs, is heard, and leaves nothing behind, however it ends."""

import asyncio
import os
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import DEADLINE, until, wait_until

from segue.ports.tool import ToolFailed
from segue.tools import processes, terminal
from segue.tools.environment import HANDED_ON, environment_for
from segue.tools.head_and_tail import HeadAndTail
from segue.tools.shell import Shell
from segue.tools.terminal import HEAD, TAIL, Terminal

pytestmark = pytest.mark.process

LONG = 1_000
"""Seconds that nothing here may last."""


def run(folder: Path, command: str, environment: Mapping[str, str] | None = None, **arguments: Any) -> str:
    tool = Terminal(folder, os.environ if environment is None else environment)
    return asyncio.run(tool.run({"command": command, **arguments}, "s"))


def pids_in(folder: Path) -> list[int]:
    """What the processes of a test have written down about themselves."""
    return [int(line) for file in folder.glob("pid*") for line in file.read_text().split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def running_of(folder: Path) -> list[int]:
    return [pid for pid in pids_in(folder) if is_running(pid)]


def children() -> Counter[str]:
    """The names of the programs that this process has started and that run."""
    found = Counter[str]()
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = file.read_text().partition(" (")[2].rpartition(") ")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if rest[0] not in "ZX" and int(rest.split()[1]) == os.getpid():
            found[name] += 1
    return found


def time_is_up_when(monkeypatch: pytest.MonkeyPatch, is_so: Callable[[], bool]) -> None:
    """The timeout of a command comes as soon as it has got so far, on whatever machine."""

    async def ended(_shell: Shell, _seconds: float | None = None) -> bool:
        await until(is_so)
        return False

    monkeypatch.setattr(Shell, "ended", ended)


def test_output_errors_and_exit_code_are_told_in_their_order(tmp_path: Path) -> None:
    assert run(tmp_path, "echo one; echo two >&2; echo three; exit 3") == "one\ntwo\nthree\n[exit code 3]"
    assert run(tmp_path, "true") == "(no output)\n[exit code 0]"
    assert run(tmp_path, "kill -9 $$") == "(no output)\n[ended by SIGKILL]"
    assert "command not found" in run(tmp_path, "no-such-command-at-all")


def test_it_is_bash_without_anything_to_read(tmp_path: Path) -> None:
    assert run(tmp_path, "[[ ab == a* ]] && cat && echo $((1 + 1))") == "2\n[exit code 0]"


def test_colours_are_taken_out_and_what_is_no_text_is_replaced(tmp_path: Path) -> None:
    assert run(tmp_path, r"printf '\033[1;31mred\033[0m \033[2Kcaf\xe9 \xe2\x82'") == "red caf� �\n[exit code 0]"


def test_the_working_folder_is_the_one_that_is_meant(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert run(tmp_path, "pwd") == f"{tmp_path}\n[exit code 0]"
    assert run(tmp_path, "pwd", cwd="sub") == f"{tmp_path}/sub\n[exit code 0]"
    assert run(tmp_path, "pwd", cwd="/") == "/\n[exit code 0]"


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    for folder, cwd in ((gone, None), (tmp_path, "gone"), (tmp_path, "x" * 300)):
        with pytest.raises(ToolFailed, match=r"is not there|File name too long"):
            run(folder, "pwd", cwd=cwd)
    gone.mkdir()
    assert "[exit code 0]" in run(gone, "rmdir ../gone; true")
    with pytest.raises(ToolFailed, match="is not there"):
        run(gone, "true")


def test_without_bash_a_sentence_says_so(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match=r"^bash cannot be started in .*: No such file or directory\.$"):
        run(tmp_path, "true", {"PATH": str(tmp_path)})


def test_nothing_secret_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        name: f"secret-{name}"
        for name in (
            *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "SEGUE_TOKEN", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"),
            *("DATABASE_URL", "SSH_AUTH_SOCK", "BASH_ENV", "LC_TOKEN", "TELEGRAM_BOT_TOKEN", "SUDO_ASKPASS"),
        )
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    told = run(tmp_path, "env; set")
    assert "secret-" not in told
    assert "TERM=dumb" in told
    assert f"PATH={os.environ['PATH']}" in told


@given(st.dictionaries(st.sampled_from([*HANDED_ON, "KEY", "LC_KEY", "TERM"]) | st.text(), st.text()))
def test_only_what_is_named_is_handed_on(given: dict[str, str]) -> None:
    made = environment_for(given)
    assert set(made) <= {*HANDED_ON, "TERM"}
    assert made["TERM"] == "dumb"
    assert all(made[name] == given[name] for name in made if name != "TERM")


def test_of_a_flood_the_ends_are_kept_and_the_rest_is_counted(tmp_path: Path) -> None:
    told = run(tmp_path, "seq 1 200000")
    assert told.startswith("1\n2\n3\n")
    assert told.endswith("\n199999\n200000\n[exit code 0]")
    assert len(told) < HEAD + TAIL + 100
    head, _, rest = told.partition("\n… ")
    left_out = int(rest.partition(" characters left out …")[0].replace(",", ""))
    tail = rest.partition("…\n")[2].removesuffix("[exit code 0]")
    assert len(f"{head}\n") + left_out + len(tail) == sum(len(f"{number}\n") for number in range(1, 200_001))


def test_a_flood_without_end_fills_no_memory_and_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def flooded() -> tuple[str, int]:
        said = {"command": "yes | head -c 12000000; touch enough; yes", "timeout": 2}
        running = asyncio.create_task(Terminal(tmp_path, os.environ).run(said, "s"))
        turns = 0
        while not running.done():
            await asyncio.sleep(0)
            turns += 1
        return running.result(), turns

    time_is_up_when(monkeypatch, (tmp_path / "enough").exists)
    tracemalloc.start()
    told, turns = asyncio.run(flooded())
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert told.endswith("\n[stopped after 2 s: the timeout]")
    assert int(told.partition("\n… ")[2].split()[0].replace(",", "")) > 10_000_000
    assert held < 3_000_000
    assert turns > 20


def test_a_command_is_stopped_when_its_time_is_up(tmp_path: Path) -> None:
    for seconds in (1, 8, 64):
        began = time.monotonic()
        told = run(tmp_path, f"echo begun; echo $$ > pid; sleep {LONG}; echo never", timeout=seconds)
        assert time.monotonic() - began >= seconds
        assert told.endswith(f"[stopped after {seconds} s: the timeout]")
        if pids_in(tmp_path):  # otherwise this machine was too busy to begin in time
            break
    assert told == f"begun\n[stopped after {seconds} s: the timeout]"
    assert pids_in(tmp_path) != []
    assert running_of(tmp_path) == []


def test_a_command_may_tidy_up_before_it_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_PATIENCE", DEADLINE)
    monkeypatch.setattr(terminal, "_DRAINING", DEADLINE)
    time_is_up_when(monkeypatch, lambda: pids_in(tmp_path) != [])
    told = run(tmp_path, f"trap 'echo tidied; exit' TERM; echo $$ > pid; sleep {LONG} & wait", timeout=1)
    assert told == "tidied\n[stopped after 1 s: the timeout]"


def test_what_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_PATIENCE", 0.3)
    time_is_up_when(monkeypatch, lambda: pids_in(tmp_path) != [])
    began = time.monotonic()
    told = run(tmp_path, f"trap '' TERM; echo $$ > pid; sleep {LONG}; sleep {LONG}", timeout=1)
    assert told.endswith("[stopped after 1 s: the timeout]")
    assert time.monotonic() - began >= 0.3, "it is asked to end first"
    assert pids_in(tmp_path) != []
    assert running_of(tmp_path) == []


@pytest.mark.parametrize(
    "command",
    [
        f"sleep {LONG} & echo $! > pid",
        f"sleep {LONG} > /dev/null 2>&1 & echo $! > pid",
        f"set -m; sleep {LONG} & echo $! > pid",
        f"timeout {LONG} sleep {LONG} & echo $! > pid",
        f"nohup bash -c 'trap \"\" HUP TERM; echo $$ > pid; sleep {LONG}' & while [ ! -s pid ]; do sleep 0.01; done",
        f"(sleep {LONG} & echo $! > pid)",
        "yes & echo $! > pid",
    ],
)
def test_what_is_left_in_the_background_is_stopped_at_once(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_PATIENCE", 10 * DEADLINE)  # it is not asked to end and waited for
    monkeypatch.setattr(terminal, "_DRAINING", 0.1)
    told = run(tmp_path, command)
    assert told.endswith("[exit code 0]\n[what it left in the background was stopped]")
    assert len(pids_in(tmp_path)) == 1
    assert running_of(tmp_path) == []


def test_what_is_still_being_said_when_bash_ends_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_DRAINING", "_DYING"):
        monkeypatch.setattr(terminal, name, DEADLINE)
    assert run(tmp_path, "(sleep 0.2; echo late) & echo early") == "early\nlate\n[exit code 0]"
    assert run(tmp_path, "echo said > >(sleep 0.2; cat)") == "said\n[exit code 0]"


TREE = f"""
for _ in 1 2 3 4 5; do
  bash -c 'for _ in 1 2 3 4 5 6 7 8 9; do sleep {LONG} & echo $! >> pids; done; echo $$ >> pids; wait' &
done
wait
"""


@pytest.mark.parametrize("way", ["timeout", "cancelled"])
def test_a_tree_of_fifty_processes_is_stopped(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cancelled() -> None:
        running = asyncio.create_task(Terminal(tmp_path, os.environ).run({"command": TREE}, "s"))
        await until(lambda: len(pids_in(tmp_path)) >= 50)
        assert len(running_of(tmp_path)) == 50
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    if way == "timeout":
        time_is_up_when(monkeypatch, lambda: len(pids_in(tmp_path)) >= 50)
        assert "the timeout" in run(tmp_path, TREE, timeout=3)
    else:
        asyncio.run(cancelled())
    assert len(pids_in(tmp_path)) == 50
    assert running_of(tmp_path) == []


@pytest.mark.parametrize("command", [f"sleep {LONG}", f"timeout {LONG} sleep {LONG}", f"trap '' TERM; sleep {LONG}"])
def test_cancelling_leaves_nothing_running(tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_PATIENCE", 10 * DEADLINE)  # it is not asked to end and waited for

    async def cancelled() -> None:
        said = {"command": f"echo $$ > pid; {command} & echo $! > pid2; wait"}
        running = asyncio.create_task(Terminal(tmp_path, os.environ).run(said, "s"))
        await until(lambda: len(pids_in(tmp_path)) >= 2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, DEADLINE)

    run(tmp_path, "true")
    descriptors = len(os.listdir("/proc/self/fd"))
    asyncio.run(cancelled())
    assert running_of(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("turns", range(6))
def test_cancelling_while_it_starts_leaves_nothing_running(tmp_path: Path, turns: int) -> None:
    async def cancelled() -> None:
        said = {"command": f"echo $$ > pid; sleep {LONG}"}
        running = asyncio.create_task(Terminal(tmp_path, os.environ).run(said, "s"))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run(tmp_path, "true")
    before, descriptors = children(), len(os.listdir("/proc/self/fd"))
    asyncio.run(cancelled())
    assert not children() - before
    assert running_of(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_many_commands_run_beside_each_other(tmp_path: Path) -> None:
    """None of them ends before all have begun."""
    waiting = "touch {0}; while [ $(ls | wc -l) -lt 10 ]; do sleep 0.05; done; echo {0}"

    async def together() -> list[str]:
        tool = Terminal(tmp_path, os.environ)
        return await asyncio.gather(*(tool.run({"command": waiting.format(one)}, "s") for one in range(10)))

    assert asyncio.run(together()) == [f"{one}\n[exit code 0]" for one in range(10)]


def test_nothing_is_left_open(tmp_path: Path) -> None:
    run(tmp_path, "true")
    descriptors = len(os.listdir("/proc/self/fd"))
    for command in ("true", f"sleep {LONG} &", "seq 1 100000"):
        run(tmp_path, command)
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_where_processes_cannot_be_listed_the_group_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PROC", tmp_path / "no-proc")
    run(tmp_path, f"sleep {LONG} & echo $! > pid")
    assert pids_in(tmp_path) != []
    wait_until(lambda: running_of(tmp_path) == [])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"command": "ls -l\nrm -rf ~"}, "ls -l ⏎ rm -rf ~"),
        ({"command": "  ls\t\t  -l  "}, "ls -l"),
        ({"command": "ls", "cwd": "my files"}, "cd 'my files' && ls"),
        ({"command": "echo \x1b]; rm -rf ~; \x07"}, "echo \\x1b]; rm -rf ~; \\x07"),
        ({"command": "echo \u202e~ fr- mr"}, "echo \\u202e~ fr- mr"),
        ({"command": "serve", "background": True}, "in the background: serve"),
        ({"command": ["ls"]}, None),
        ({"command": "ls", "background": "yes"}, None),
        ({"command": ""}, None),
        ({}, None),
    ],
)
def test_whoever_is_asked_sees_everything_that_bash_would_read(arguments: dict[str, Any], line: str | None) -> None:
    assert Terminal(Path("/"), {}).risk(arguments) == line


def test_nobody_agrees_to_what_they_could_not_read() -> None:
    command = "begin " + "x" * 15_000 + " ; rm -rf ~ ; " + "y" * 14_000 + " end"
    assert Terminal(Path("/"), {}).risk({"command": command}) == command


@given(st.lists(st.binary(max_size=30)), st.integers(1, 20), st.integers(1, 20))
def test_what_is_kept_of_a_stream_is_its_ends(pieces: list[bytes], head: int, tail: int) -> None:
    kept = HeadAndTail(head, tail)
    for piece in pieces:
        kept.add(piece)
        assert len(kept._head) <= head
        assert len(kept._tail) <= tail
    kept.add(b"", is_last=True)
    whole = b"".join(pieces).decode("utf-8", "replace")
    assert kept._head == whole[:head]
    assert whole.endswith(kept._tail)
    if len(whole) <= head + tail:
        assert kept._head + kept._tail == whole
    else:
        assert len(kept._tail) == tail
        assert "characters left out …" in kept.text()
