"""A file is read as far as it is wanted, and nothing is opened that is no file."""

import asyncio
import io
import os
import socket
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.ports.tool import ToolFailed
from segue.tools.lines import LONGEST_LINE, MOST_CHARACTERS, LineReader
from segue.tools.read_file import ReadFile


def read(folder: Path, path: str | Path, **arguments: Any) -> str:
    return asyncio.run(ReadFile(folder).run({"path": str(path), **arguments}, "s"))


def refused(folder: Path, path: str | Path, **arguments: Any) -> str:
    with pytest.raises(ToolFailed) as told:
        read(folder, path, **arguments)
    return str(told.value)


def test_lines_are_numbered_and_the_end_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n\nfour")
    assert read(tmp_path, "a.txt") == "     1\tone\n     2\ttwo\n     3\t\n     4\tfour\n[The end.]"


def test_a_long_file_is_read_in_parts_that_fit_together(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 501)))
    assert read(tmp_path, "a.txt").splitlines()[-1] == "[The file goes on: first_line=201 reads on.]"
    part = read(tmp_path, "a.txt", first_line=201, lines=300).splitlines()
    assert (part[0], part[-2], part[-1]) == ("   201\tline 201", "   500\tline 500", "[The end.]")
    assert read(tmp_path, "a.txt", first_line=500, lines=1) == "   500\tline 500\n[The end.]"
    assert refused(tmp_path, "a.txt", first_line=501).endswith("a.txt has only 500 lines; begin with one of them.")


def test_no_more_is_told_than_there_is_room_for(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(("x" * 1_000 + "\n") * 100)
    told = read(tmp_path, "a.txt")
    assert len(told) < MOST_CHARACTERS + 100
    following = int(told.rpartition("first_line=")[2].split()[0])
    assert f"{following - 1:>6}\t" in told
    assert read(tmp_path, "a.txt", first_line=following).startswith(f"{following:>6}\txxx")


def test_a_very_long_line_is_cut_and_the_next_one_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("é" * 3_000_000 + "\nnext\n" + "y" * LONGEST_LINE + "\n")
    first, second, third, end = read(tmp_path, "a.txt").splitlines()
    assert first == "     1\t" + "é" * LONGEST_LINE + "… [the line goes on]"
    assert (second, third, end) == ("     2\tnext", "     3\t" + "y" * LONGEST_LINE, "[The end.]")


def test_a_huge_line_does_not_hide_what_stands_before_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("short\n")
    os.truncate(tmp_path / "a.txt", 6 + (1 << 30))
    with (tmp_path / "a.txt").open("rb") as stream:
        assert LineReader(stream).excerpt(1, 1).lines == ["     1\tshort"]


def test_only_as_much_of_a_huge_file_is_read_as_is_needed(tmp_path: Path) -> None:
    huge = tmp_path / "huge.txt"
    huge.write_text("line\n" * 4_000)
    os.truncate(huge, 1 << 40)
    tracemalloc.start()
    assert read(tmp_path, huge, first_line=3_990, lines=5).count("\tline") == 5
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 2_000_000


@given(st.lists(st.sampled_from([b"", b"a", b"bb" * 9]), max_size=20), st.booleans(), st.integers(1, 25))
def test_a_line_has_its_number_wherever_it_stands(lines: list[bytes], is_ended: bool, first: int) -> None:
    data = b"\n".join(lines) + b"\n" * is_ended
    expected = [f"{at:>6}\t{line}" for at, line in enumerate(data.decode().splitlines(), 1)]
    reader = LineReader(io.BufferedReader(io.BytesIO(data), buffer_size=8))
    found = reader.excerpt(first, 3)
    assert found.lines == expected[first - 1 : first + 2]
    assert found.has_more == (len(expected) > first + 2)
    if not found.lines:
        assert reader.passed == len(expected)


def test_lines_are_counted_only_so_far_into_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("four\n" * 1_000)
    with (tmp_path / "a.txt").open("rb") as stream, pytest.raises(ToolFailed, match=r"100 bytes .*line 21 is there"):
        LineReader(stream, 100).excerpt(1, 200)
    few_at_once = io.BufferedReader(io.BytesIO(b"four\n" * 1_000), 50)
    with pytest.raises(ToolFailed, match=r"100 bytes .* is there"):
        LineReader(few_at_once, 100).excerpt(500, 1)


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 \xff\n" + b"x" * 9_000 + b"\n\0")
    told = read(tmp_path, "a.txt")
    assert told.startswith("     1\tcaf� �\n")
    assert "\0" not in told


def test_a_binary_file_is_named_with_its_size(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\x7fELF\0" * 300)
    assert "is a binary file of 1.5 kB" in refused(tmp_path, "a.bin")


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    assert read(tmp_path, "a.txt") == "[The file is empty.]"
    assert "only" not in read(tmp_path, "a.txt", first_line=5)


def test_a_folder_is_listed(tmp_path: Path) -> None:
    for name in ("b", "a\nb", "z.md"):
        (tmp_path / name).touch()
    (tmp_path / "sub").mkdir()
    heading, *names = read(tmp_path, ".").splitlines()
    assert heading.endswith("is a folder of 4 names.]")
    assert names == ["'a\\nb'", "b", "sub/", "z.md"]


def test_a_crowded_folder_is_listed_in_part(tmp_path: Path) -> None:
    for number in range(520):
        (tmp_path / f"f{number:03}").touch()
    told = read(tmp_path, tmp_path).splitlines()
    assert (told[1], told[-2], told[-1]) == ("f000", "f499", "[20 more are not shown.]")


def test_a_name_that_is_nearly_right_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "README.md").touch()
    assert refused(tmp_path, "docs/Readme.md").endswith(f"perhaps {tmp_path}/docs/README.md is meant.")
    assert refused(tmp_path, "dosc/README.md").endswith(f"perhaps {tmp_path}/docs is meant.")
    assert refused(tmp_path, "nothing/like/it") == f"There is no {tmp_path}/nothing/like/it."
    assert refused(tmp_path, "docs/README.md/x").startswith("There is no ")
    assert refused(tmp_path, "x" * 300).endswith("cannot be read: File name too long.")


def test_pipes_sockets_and_devices_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        assert "is a socket, and only files are read" in refused(tmp_path, "s")
    assert "is a pipe, and only files are read" in refused(tmp_path, "pipe")
    assert "is a pipe, and only files are read" in refused(tmp_path, "link")
    assert "is a device, and only files are read" in refused(tmp_path, "/dev/zero")


def test_home_links_and_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").write_text("here")
    (tmp_path / "link").symlink_to("a.txt")
    (tmp_path / "loop").symlink_to("loop")
    assert "here" in read(Path("/"), "~/a.txt")
    assert "here" in read(Path("/"), "~/link")
    assert "cannot be read" in refused(tmp_path, "loop")
    assert "a home that nobody has" in refused(tmp_path, "~nobody-of-that-name/x")


def test_the_database_that_is_open_is_not_opened_a_second_time(home: Path, db: object, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home / "state.db")
    for path in (home / "state.db", tmp_path / "link"):
        assert "is a database that is in use" in refused(tmp_path, path)
