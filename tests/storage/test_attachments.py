"""Files that people send: kept once, whole or not at all, for the owner alone, and gone when nothing needs them."""

import asyncio
import hashlib
import os
import stat
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from segue.core.attachments import Attachment, attachment, attachments_in, place_of, told_of
from segue.core.errors import NotFound, StoreFull
from segue.storage.attachments import ABANDONED_SECONDS, AttachmentFolder

pytestmark = pytest.mark.on_file


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def keep(folder: AttachmentFolder, *parts: bytes, name: str | None = "a.txt", kind: str = "text/plain") -> Attachment:
    return asyncio.run(folder.keep(pieces(*parts), name, kind))


def everything(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


def test_equal_files_are_one_and_lie_under_what_they_say(tmp_path: Path) -> None:
    folder = AttachmentFolder(tmp_path / "home" / "attachments")
    kept = [keep(folder, b"hel", b"lo", name="a"), keep(folder, b"hello", name="../../b")]
    digest = hashlib.sha256(b"hello").hexdigest()
    assert [one.sha256 for one in kept] == [digest] * 2
    assert [one.name for one in kept] == ["a", ".._.._b"]
    assert everything(tmp_path) == [f"home/attachments/{place_of(digest)}"]
    assert folder.path_of(kept[0]).read_bytes() == b"hello"


def test_only_the_owner_can_read_them(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        kept = keep(folder := AttachmentFolder(tmp_path / "home" / "attachments"), b"x")
    finally:
        os.umask(before)
    path = folder.path_of(kept)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(one.stat().st_mode) for one in (path.parent, path.parent.parent)} == {0o700}


@pytest.mark.parametrize(
    ("largest", "most", "reason"),
    [(4, 100, "it is larger than 4e-06 MB"), (100, 8, "there is no room left for attachments")],
)
def test_what_is_too_large_is_told_and_not_kept(tmp_path: Path, largest: int, most: int, reason: str) -> None:
    folder = AttachmentFolder(tmp_path / "attachments", largest, most)
    keep(folder, b"1234")
    kept = keep(folder, b"12", b"345")
    assert (kept.sha256, kept.reason) == (None, reason)
    assert len(everything(tmp_path)) == 1


def test_what_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError("gone")

    folder = AttachmentFolder(tmp_path / "attachments")
    with pytest.raises(ConnectionError, match="gone"):
        asyncio.run(folder.keep(broken(), "a", None))
    assert everything(tmp_path) == []


def test_a_disk_that_takes_nothing_is_the_stores_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreFull, match="No space left"):
        keep(AttachmentFolder(tmp_path / "attachments"), b"x")
    assert everything(tmp_path) == []


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    folder = AttachmentFolder(tmp_path / "attachments")
    kept = keep(folder, b"x")
    path = folder.path_of(kept)
    path.unlink()
    path.symlink_to("/etc/hostname")
    with pytest.raises(NotFound):
        folder.path_of(kept)


@pytest.mark.parametrize("digest", [None, "", "../../etc/passwd", "A" * 64, "a" * 63])
def test_what_is_no_digest_is_nowhere(tmp_path: Path, digest: str | None) -> None:
    with pytest.raises(NotFound):
        AttachmentFolder(tmp_path).path_of(Attachment("a", sha256=digest))


def test_what_nobody_needs_goes_after_a_while_and_not_before(tmp_path: Path) -> None:
    folder = AttachmentFolder(tmp_path / "attachments")
    needed, other = keep(folder, b"needed"), keep(folder, b"other")
    part = tmp_path / "attachments" / "abc.part"
    part.write_bytes(b"half")
    assert needed.sha256 is not None
    assert folder.unneeded({needed.sha256}) == []
    late = time.time() + ABANDONED_SECONDS + 60
    assert folder.unneeded({needed.sha256}, late) == [other.sha256]
    assert not part.exists()
    assert folder.remove([other.sha256 or ""]) == 1
    assert folder.path_of(needed).exists()


@pytest.mark.parametrize(
    ("file", "line"),
    [
        (Attachment("r.pdf", "text/css", 7, "a" * 64), f"[file “r.pdf”, text/css, 7 bytes; attachments/aa/{'a' * 64}]"),
        (attachment("a\nb”]", "TEXT/plain; x=1"), "[file “a b”, text/plain; not kept: it is elsewhere]"),
        (attachment(None, "text/css", reason="it\nis gone"), "[file “file”, text/css; not kept: it is gone]"),
        (attachment("x", "<script>"), "[file “x”, application/octet-stream; not kept: it is elsewhere]"),
    ],
)
def test_a_line_tells_of_a_file_and_ends_where_it_ends(file: Attachment, line: str) -> None:
    assert told_of([file]) == [line]


def test_what_another_hand_wrote_is_read_as_far_as_it_goes() -> None:
    assert (
        attachments_in(None)
        == attachments_in("no JSON")
        == attachments_in("{}")
        == attachments_in('[1, {"x": 2}]')
        == []
    )
    assert attachments_in('[{"name": "a", "more": 1}]') == [Attachment("a")]


def test_what_others_removed_makes_room_again(tmp_path: Path) -> None:
    ours, theirs = (AttachmentFolder(tmp_path / "attachments", 100, 8) for _ in range(2))
    kept = keep(ours, b"12345678")
    assert keep(ours, b"x").reason == "there is no room left for attachments"
    theirs.remove([kept.sha256 or ""])
    assert keep(ours, b"x").sha256 is not None


def test_what_was_kept_again_since_a_moment_stays(tmp_path: Path) -> None:
    folder = AttachmentFolder(tmp_path / "attachments")
    kept, began_at = keep(folder, b"x"), time.time() + 1
    os.utime(folder.path_of(kept), (began_at - 100, began_at - 100))
    assert keep(folder, b"x").sha256 == kept.sha256
    os.utime(folder.path_of(kept), (began_at + 1, began_at + 1))
    assert folder.remove([kept.sha256 or ""], before=began_at) == 0
    os.utime(folder.path_of(kept), (began_at - 1, began_at - 1))
    assert folder.remove([kept.sha256 or ""], before=began_at) == 1


def test_trouble_of_whoever_brings_the_pieces_is_not_the_stores(tmp_path: Path) -> None:
    async def reset() -> AsyncIterator[bytes]:
        yield b"half"
        raise OSError(104, "Connection reset by peer")

    with pytest.raises(OSError, match="reset by peer"):
        asyncio.run(AttachmentFolder(tmp_path / "attachments").keep(reset(), "a", None))
