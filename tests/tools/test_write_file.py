"""A file is written as a whole or not at all, only where it was said, and never where it decides about us."""

import asyncio
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue import SessionDB
from segue.ports.tool import ToolFailed
from segue.tools.write_file import MOST_BYTES, WriteFile, _differing


def tool_in(folder: Path) -> WriteFile:
    return WriteFile(folder, folder / "home")


def write(folder: Path, path: str | Path, content: str, **arguments: Any) -> str:
    return asyncio.run(tool_in(folder).run({"path": str(path), "content": content, **arguments}, "s"))


def refused(folder: Path, path: str | Path, content: str = "new", **arguments: Any) -> str:
    with pytest.raises(ToolFailed) as told:
        write(folder, path, content, **arguments)
    return str(told.value)


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    assert write(tmp_path, "a.txt", "one\ntwo\n").endswith("a.txt is written: a new file of 2 lines; it has 8 bytes.")
    assert write(tmp_path, "a.txt", "one\n2\n").endswith("1 line of 2 replaced by 1 line; it has 6 bytes.")
    assert (tmp_path / "a.txt").read_text() == "one\n2\n"
    assert write(tmp_path, "a.txt", "") != ""
    assert (tmp_path / "a.txt").read_bytes() == b""
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_passage_is_replaced_that_is_there_once(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\nthree\n")
    write(tmp_path, "a.txt", "2\n2b", replace="two")
    assert file.read_text() == "one\n2\n2b\nthree\n"
    assert "is not in" in refused(tmp_path, "a.txt", replace="four")
    assert "more than once" in refused(tmp_path, "a.txt", replace="2")
    assert "There is no" in refused(tmp_path, "b.txt", replace="x")
    file.write_text("aaa")
    assert "more than once" in refused(tmp_path, "a.txt", replace="aa")
    assert file.read_text() == "aaa"


def test_lines_keep_the_ends_that_they_have(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree \xff\r\n")
    write(tmp_path, "a.txt", "1\n2", replace="one\ntwo")
    assert file.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\nthree \xff\r\n"


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o640])
def test_permissions_are_kept(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "a.sh"
    file.write_text("old")
    file.chmod(mode)
    write(tmp_path, "a.sh", "new")
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_new_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "new")
    (tmp_path / "b.txt").touch()
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "b.txt").stat().st_mode


def test_what_may_not_be_written_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "a.txt").chmod(0o444)
    if os.getuid() == 0:  # to whom nothing is forbidden
        monkeypatch.setattr(os, "access", lambda *_: False)
    assert "may not be written" in refused(tmp_path, "a.txt")


def test_a_link_is_named_and_not_written_through(tmp_path: Path) -> None:
    target = tmp_path / "target.txt"
    target.write_text("old")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert f"is a link to {target}; write to that by its own name" in refused(tmp_path, "link")
    assert "is a link to" in refused(tmp_path, "dangling")
    assert target.read_text() == "old"
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_that_is_really_another_is_said(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    asked = tool_in(tmp_path).risk({"path": "linked/a.txt", "content": "x"})
    assert asked == f"{tmp_path}/linked/a.txt, which really is {tmp_path}/real/a.txt: a new file of 1 line"
    assert f"{tmp_path}/real/a.txt is written" in write(tmp_path, "linked/a.txt", "x")


def test_only_files_are_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert "is a folder" in refused(tmp_path, "folder")
    assert "is a folder" in refused(tmp_path, "folder/..")
    assert "is a folder" in refused(tmp_path, "/")
    assert "is no file" in refused(tmp_path, "pipe")
    assert "There is no folder" in refused(tmp_path, "missing/a.txt")
    assert "There is no folder" in refused(tmp_path, "pipe/a.txt")
    assert "File name too long" in refused(tmp_path, "x" * 300)
    (tmp_path / "loop").symlink_to("loop")
    assert "cannot be written" in refused(tmp_path, "loop/a")


def test_nothing_is_written_into_our_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "memory").mkdir(parents=True)
    (home / "config.yaml").write_text("agent: {approvals: ask}")
    (tmp_path / "inside").symlink_to(home)
    for path in ("home/config.yaml", "home/new", "home/memory/a.md", "inside/config.yaml", "home/memory/../state.db"):
        assert "is in the home of this program" in refused(tmp_path, path)
    assert (home / "config.yaml").read_text() == "agent: {approvals: ask}"
    assert sorted(os.listdir(home)) == ["config.yaml", "memory"]


def test_a_database_that_is_open_is_left_alone(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "other.db") as db:
        db.create_session("s", "cli")
        for name in ("other.db", "other.db-wal"):
            assert "is a database that is in use" in refused(tmp_path, name)
            assert "database" in str(tool_in(tmp_path).risk({"path": name, "content": "x"}))
        assert db.get_session("s") is not None


def test_a_file_too_long_is_replaced_as_a_whole_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    os.truncate(tmp_path / "a", MOST_BYTES + 1)
    assert "too much to replace a passage" in refused(tmp_path, "a", replace="x")
    asked = tool_in(tmp_path).risk({"path": "a", "content": "x\ny"})
    assert asked == f"{tmp_path}/a: all of its 10.0 MB replaced by 2 lines"
    write(tmp_path, "a", "x")
    assert (tmp_path / "a").read_text() == "x"


def test_who_is_asked_sees_the_whole_path_and_how_much_changes(tmp_path: Path) -> None:
    tool = tool_in(tmp_path)
    (tmp_path / "a.txt").write_text("1\n2\n3\n4\n")
    long = tmp_path.joinpath(*["deep" * 30] * 8)
    long.mkdir(parents=True)
    assert tool.risk({"path": "a.txt", "content": "1\nx\ny\nz\n4\n"}) == (
        f"{tmp_path}/a.txt: 2 lines of 4 replaced by 3 lines"
    )
    assert tool.risk({"path": "a.txt", "content": "3!", "replace": "3"}) == (
        f"{tmp_path}/a.txt: 1 line of 4 replaced by 1 line"
    )
    assert tool.risk({"path": str(long / "b"), "content": ""}) == f"{long}/b: a new file of 0 lines"
    assert tool.risk({"path": "a\x1b[2K\u202e", "content": ""}) == f"{tmp_path}/a\\x1b[2K\\u202e: a new file of 0 lines"
    assert tool.risk({"path": "a.txt", "content": 1}) is None
    assert tool.risk({"path": "a.txt"}) is None


def test_somebody_is_asked_even_when_it_would_fail_now(tmp_path: Path) -> None:
    """It may succeed a moment later, when nobody is asked any more."""
    (tmp_path / "a.txt").write_text("")
    asked = tool_in(tmp_path).risk({"path": "a.txt", "content": "x", "replace": "y"})
    assert asked is not None
    assert asked.startswith(f"{tmp_path}/a.txt (nothing will be written as it is now: The passage is not in ")


def test_writing_a_whole_file_may_be_repeated_and_a_passage_not(tmp_path: Path) -> None:
    tool = tool_in(tmp_path)
    assert tool.is_idempotent({"path": "a", "content": "b"})
    assert tool.is_idempotent({"path": "a", "content": "b", "replace": None})
    assert not tool.is_idempotent({"path": "a", "content": "b", "replace": "c"})


def test_who_reads_meanwhile_sees_the_old_or_the_new(tmp_path: Path) -> None:
    texts = ["a" * 300_000, "b" * 300_000]
    file = tmp_path / "a.txt"
    file.write_text(texts[0])
    seen: set[str] = set()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            seen.add(file.read_text())

    looking = threading.Thread(target=look)
    looking.start()
    for number in range(30):
        write(tmp_path, "a.txt", texts[number % 2])
    is_over.set()
    looking.join()
    assert seen <= set(texts)


def test_what_cannot_be_finished_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a.txt").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    assert refused(tmp_path, "a.txt").endswith("a.txt cannot be written: No space left on device.")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


@given(st.lists(st.sampled_from([b"a", b"b"])), st.lists(st.sampled_from([b"a", b"b"])))
def test_what_differs_lies_between_what_is_the_same(before: list[bytes], after: list[bytes]) -> None:
    gone, come = _differing(before, after)
    assert len(before) - gone == len(after) - come
    assert (gone, come) == (0, 0) or before != after
    assert gone >= 0 <= come
