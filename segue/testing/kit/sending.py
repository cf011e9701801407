"""What is sent arrives, and an adapter never claims to know more about it than it does."""

import asyncio
import hashlib
from collections.abc import Awaitable, Mapping
from contextlib import suppress

from segue.core.chunks import MEASURES
from segue.ports.platform import Platform, Post, SendFailed, SendLater, SendRefused, SendUnknown, Sent
from segue.testing.kit.counterpart import Act, Counterpart, Trouble
from segue.testing.kit.watching import at_work, connected, post, until
from segue.testing.ledger import Ledger

PIECES = ["The first piece.", "The second piece.", "The third piece."]


async def arrives(other: Counterpart) -> None:
    async with at_work(adapter := other.adapter(), ledger := Ledger()):
        await connected(adapter, ledger, other.longest_wait)
        sent = await adapter.send(post(other, "Good news."))
        await _reads(other, ["Good news."])
    assert sent.message_id or not adapter.traits.can_edit, "What is to be edited has to have a name."


async def to_the_limit(other: Counterpart) -> None:
    """A message of exactly the length that the traits say."""
    async with at_work(adapter := other.adapter(), ledger := Ledger()):
        await connected(adapter, ledger, other.longest_wait)
        text = ("word " * adapter.traits.longest)[: adapter.traits.longest - 1] + "."
        assert MEASURES[adapter.traits.units](text) == adapter.traits.longest
        await adapter.send(post(other, text))
        await _reads(other, [text])


async def says_something_else(other: Counterpart) -> None:
    async with at_work(adapter := other.adapter(), ledger := Ledger()):
        await connected(adapter, ledger, other.longest_wait)
        sent = await adapter.send(post(other, "Half of"))
        assert sent.message_id is not None, "What is to be edited has to have a name."
        for text in ("Half of it", "Half of it and the rest.", "Half of it and the rest."):
            await adapter.edit(post(other, text), sent.message_id)
        await _reads(other, ["Half of it and the rest."])


async def cannot_be_edited(other: Counterpart) -> None:
    async with at_work(adapter := other.adapter(), ledger := Ledger()):
        await connected(adapter, ledger, other.longest_wait)
        sent = await adapter.send(post(other, "Soon gone."))
        assert sent.message_id is not None
        await other.delete(sent.message_id)
        failure = await _failure(adapter.edit(post(other, "Still there?"), sent.message_id))
    assert isinstance(failure, SendRefused), f"Of a message that is gone it said: {failure!r}."


async def nowhere(other: Counterpart) -> None:
    async with at_work(adapter := other.adapter(), ledger := Ledger()):
        await connected(adapter, ledger, other.longest_wait)
        failure = await _failure(adapter.send(Post(other.nowhere(), "Is anybody there?", "kit:nowhere:0")))
    assert isinstance(failure, SendRefused), f"Of a chat that there is not it said: {failure!r}."


async def busy(other: Counterpart) -> None:
    """The platform says when it takes something again; nothing is tried before by the adapter itself."""
    async with at_work(adapter := other.adapter(), ledger := Ledger()):
        await connected(adapter, ledger, other.longest_wait)
        other.trouble(Trouble.BUSY)
        failure = await _failure(adapter.send(post(other, "Later.")))
        assert isinstance(failure, SendLater), f"Of a platform that is busy it said: {failure!r}."
        assert failure.seconds is not None, "The platform said how long it is busy, and the adapter did not."
        assert failure.seconds >= other.busy_seconds, f"It is busy for longer than {failure.seconds:g} seconds."
        assert await other.read() == [], "It said that nothing was taken, and something is there."
        await asyncio.sleep(failure.seconds)
        await adapter.send(post(other, "Later."))
        await _reads(other, ["Later."])


async def unreachable(other: Counterpart) -> None:
    async with at_work(adapter := other.adapter(), ledger := Ledger()):
        await connected(adapter, ledger, other.longest_wait)
        other.trouble(Trouble.UNREACHABLE)
        failure = await _failure(adapter.send(post(other, "Hello?")))
        assert isinstance(failure, SendLater | SendUnknown), f"Of a platform that is away it said: {failure!r}."
        await other.come_back()
        await _again(other, adapter, "Hello?")
        await _reads(other, ["Hello?"])


async def broken(other: Counterpart) -> None:
    await _doubtful(other, Trouble.BROKEN, has_arrived=False)


async def lost_before(other: Counterpart) -> None:
    await _doubtful(other, Trouble.LOST_BEFORE, has_arrived=False)


async def lost_after(other: Counterpart) -> None:
    await _doubtful(other, Trouble.LOST_AFTER, has_arrived=True)


async def killed_between_pieces(other: Counterpart) -> None:
    """A reply of three pieces; whoever sends it dies when the second is there and nobody has noted it."""
    ledger = Ledger()
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        for number in range(2):
            await adapter.send(post(other, PIECES[number], f"kit:reply:{number}"))
    ledger.is_connected = False
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        for number in range(1, 3):
            await adapter.send(post(other, PIECES[number], f"kit:reply:{number}"))
        there = PIECES if adapter.traits.has_key else [*PIECES[:2], *PIECES[1:]]
        await _reads(other, there)


async def with_file(other: Counterpart) -> None:
    content = b"\x00 any bytes \xff" * 1000
    async with at_work(adapter := other.adapter(), ledger := Ledger()):
        await connected(adapter, ledger, other.longest_wait)
        file = await other.keep("report.bin", content)
        await adapter.send(post(other, "as promised", "kit:file:0")._replace(file=file))
        await until(lambda: _has_files(other), other.longest_wait, "the file never came")
    assert [hashlib.sha256(one).hexdigest() for one in await other.files()] == [file.sha256], "It is another file."


async def _has_files(other: Counterpart) -> bool:
    return bool(await other.files())


async def _doubtful(other: Counterpart, trouble: Trouble, *, has_arrived: bool) -> None:
    """What an adapter says of a message is true: taken for lost it is not there, taken for sent it is."""
    async with at_work(adapter := other.adapter(), ledger := Ledger()):
        await connected(adapter, ledger, other.longest_wait)
        other.trouble(trouble)
        failure = await _failure(adapter.send(post(other, "Perhaps.")))
        assert isinstance(failure, SendLater | SendUnknown), f"Of a message that is {trouble} it said: {failure!r}."
        if isinstance(failure, SendLater):
            assert not has_arrived, "It said that nothing was taken, and the platform has it."
        await _again(other, adapter, "Perhaps.")
        is_there_twice = has_arrived and not adapter.traits.has_key
        await _reads(other, ["Perhaps."] * (2 if is_there_twice else 1))


async def _again(other: Counterpart, adapter: Platform, text: str) -> Sent:
    """Send the same once more, until the platform is back."""
    async with asyncio.timeout(other.longest_wait):
        while True:
            with suppress(SendLater, SendUnknown):
                return await adapter.send(post(other, text))
            await asyncio.sleep(0.1)


async def _failure(sending: Awaitable[object]) -> SendFailed | None:
    """What sending something raised."""
    try:
        await sending
    except SendFailed as error:
        return error
    return None


async def _reads(other: Counterpart, texts: list[str]) -> None:
    """People read just that."""

    async def is_so() -> bool:
        return len(await other.read()) >= len(texts)

    await until(is_so, other.longest_wait, "it never arrived")
    assert await other.read() == texts, f"There stands {await other.read()!r}."


CASES: Mapping[str, Act] = {
    "sent": arrives,
    "sent to the limit": to_the_limit,
    "edited after sending": says_something_else,
    "gone before editing": cannot_be_edited,
    "sent nowhere": nowhere,
    "busy": busy,
    "unreachable": unreachable,
    "broken": broken,
    "lost before sending": lost_before,
    "lost after sending": lost_after,
    "killed between pieces": killed_between_pieces,
    "sent with file": with_file,
}
