"""What people say arrives: all of it, once, in order, whatever happens on the way."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping

from segue.core.inbound import Inbound
from segue.testing.kit.counterpart import Act, Counterpart
from segue.testing.kit.watching import at_work, connected, heard, until
from segue.testing.ledger import Ledger

_SKEWED = {"early": 1.0, "late": 4_102_444_800.0}


async def in_order(other: Counterpart) -> None:
    ledger, texts = Ledger(words=other.words), [f"message {number}" for number in range(10)]
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        for text in texts:
            await other.say(text)
        await heard(ledger, texts, other)
    assert ledger.texts == texts, f"They came as {ledger.texts}."
    assert len({one.message_id for one in ledger.accepted}) == len(texts), "Two messages have one name."


async def _brought_again(other: Counterpart, *, as_new: bool) -> None:
    ledger = Ledger(words=other.words)
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        name = await other.say("once")
        await heard(ledger, ["once"], other)
        await other.bring_again(name, as_new=as_new)
        await other.say("then")
        await heard(ledger, ["then"], other)
    assert ledger.texts == ["once", "then"], f"It was taken for another message: {ledger.texts}."


async def redelivered(other: Counterpart) -> None:
    await _brought_again(other, as_new=False)


async def redelivered_as_new(other: Counterpart) -> None:
    await _brought_again(other, as_new=True)


async def out_of_order(other: Counterpart) -> None:
    ledger, texts = Ledger(words=other.words), ["first", "second", "third"]
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        await other.bring_out_of_order(texts)
        await heard(ledger, texts, other)
    assert sorted(ledger.texts) == sorted(texts), f"They came as {ledger.texts}."


async def edited(other: Counterpart) -> None:
    ledger, versions = Ledger(words=other.words), ["teh word", "the wrod", "the word"]
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        name = await other.say(versions[0])
        await heard(ledger, versions[:1], other)
        for number, text in enumerate(versions[1:], start=2):
            await other.edit(name, text)
            await heard(ledger, versions[:number], other)
    assert ledger.texts == versions, f"They came as {ledger.texts}."
    assert len({one.message_id for one in ledger.accepted}) == 1, "An edited message has another name."
    assert len({one.edit for one in ledger.accepted}) == len(versions), "Two versions have one name."


async def deleted(other: Counterpart) -> None:
    ledger = Ledger(words=other.words)
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        name = await other.say("never mind")
        await heard(ledger, ["never mind"], other)
        await other.delete(name)
        await until(lambda: bool(ledger.withdrawn), other.longest_wait, "nobody heard that it was deleted")
    assert [one for _, one in ledger.withdrawn] == [ledger.accepted[0].message_id], "Another one was withdrawn."


async def not_put_down(other: Counterpart) -> None:
    """What could not be stored was not confirmed: it is brought again, and nothing behind it is lost."""
    ledger, texts = Ledger(words=other.words), [f"message {number}" for number in range(5)]
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        ledger.refusals = 2
        await other.say_many(texts)
        await heard(ledger, texts, other)
    assert sorted(ledger.texts) == texts, f"They came as {ledger.texts}."


async def killed_on_the_way(other: Counterpart) -> None:
    """An adapter dies between any two messages; the next one goes on where the rows say."""
    ledger, texts = Ledger(words=other.words), [f"message {number}" for number in range(12)]
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
    await other.say_many(texts)
    for enough in (3, 7, len(texts)):
        async with at_work(other.adapter(), ledger):
            await _has(ledger, enough, other)
    assert ledger.texts == texts, f"They came as {ledger.texts}."


async def backlog(other: Counterpart) -> None:
    """What people wrote while nobody was connected is not dropped, however much it is."""
    ledger, texts = Ledger(words=other.words), [f"message {number}" for number in range(other.backlog)]
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
    await other.say_many(texts)
    async with at_work(other.adapter(), ledger):
        await heard(ledger, texts, other)
    assert ledger.texts == texts, f"{len(ledger.accepted)} of {len(texts)} came, or not in their order."


async def reconnected(other: Counterpart) -> None:
    """The platform goes away and comes back while people write."""
    ledger, texts = Ledger(words=other.words), ["before", "meanwhile", "still meanwhile", "after"]
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        await other.say(texts[0])
        await heard(ledger, texts[:1], other)
        await other.go_away()
        await other.say_many(texts[1:3])
        await other.come_back()
        await heard(ledger, texts[:3], other)
        await other.say(texts[3])
        await heard(ledger, texts, other)
    assert ledger.texts == texts, f"They came as {ledger.texts}."


async def forged(other: Counterpart) -> None:
    ledger = Ledger(words=other.words)
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        await other.bring_forged("let me in")
        await other.say("the real one")
        await heard(ledger, ["the real one"], other)
    assert ledger.texts == ["the real one"], f"Somebody without the secret was heard: {ledger.texts}."


async def garbled(other: Counterpart) -> None:
    await _survived(other, lambda: other.bring_garbled("garbled"))


async def oversize(other: Counterpart) -> None:
    await _survived(other, other.bring_huge)


async def odd(other: Counterpart) -> None:
    """What makes no sense is left aside, or taken as far as it does; it never stands before all others for ever."""
    await _survived(other, other.bring_odd, most=None)


async def skewed(other: Counterpart) -> None:
    """Whatever the clock of others says, what they say now is heard now, or told to be too old."""
    ledger = Ledger(words=other.words)
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        for text, moment in _SKEWED.items():
            await other.bring_dated(text, moment)
        await other.say("now")
        await heard(ledger, ["now"], other)
    assert ledger.texts in (["now"], [*_SKEWED, "now"]), f"They came as {ledger.texts}."


async def with_file(other: Counterpart) -> None:
    """A file is kept under what it says, and its message tells of it."""
    ledger, content = Ledger(words=other.words), b"\x00 any bytes \xff" * 1000
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        await other.send_file("../report.bin", content, "see this")
        await until(lambda: bool(ledger.accepted), other.longest_wait, "the message with the file never came")
    (said,) = ledger.accepted
    assert ledger.texts == ["see this"], f"What stands below the file came as {said.text!r}."
    _check_file(said, content)


async def file_of_nobody(other: Counterpart) -> None:
    """A file of somebody who is not heard is not fetched: nobody else fills the disk."""
    ledger = Ledger(welcome=lambda _: False, words=other.words)
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        await other.send_file("report.bin", b"any bytes", "see this")
        await until(lambda: bool(ledger.accepted), other.longest_wait, "the message with the file never came")
    (said,) = ledger.accepted
    assert [file.sha256 for file in said.files if file.sha256] == [], "It was kept though its sender is not heard."


async def _has(ledger: Ledger, enough: int, other: Counterpart) -> None:
    await until(lambda: len(ledger.accepted) >= enough, other.longest_wait, "the rest never came")


def _check_file(said: Inbound, content: bytes) -> None:
    (file,) = said.files
    assert (file.sha256, file.size) == (hashlib.sha256(content).hexdigest(), len(content)), f"It came as {file}."
    assert "/" not in file.name, "A name is no path."


async def _survived(other: Counterpart, bring: Callable[[], Awaitable[None]], most: int | None = 2) -> None:
    """Something odd comes, and is taken or is not; what comes behind it is."""
    ledger = Ledger(words=other.words)
    async with at_work(adapter := other.adapter(), ledger):
        await connected(adapter, ledger, other.longest_wait)
        await bring()
        await other.say("and on it goes")
        await heard(ledger, ["and on it goes"], other)
    assert most is None or len(ledger.accepted) <= most, f"They came as {ledger.texts}."


CASES: Mapping[str, Act] = {
    "in order": in_order,
    "redelivered": redelivered,
    "redelivered as new": redelivered_as_new,
    "out of order": out_of_order,
    "edited": edited,
    "deleted": deleted,
    "not put down": not_put_down,
    "killed on the way": killed_on_the_way,
    "backlog": backlog,
    "reconnected": reconnected,
    "forged": forged,
    "garbled": garbled,
    "oversize": oversize,
    "odd event": odd,
    "skewed clock": skewed,
    "with file": with_file,
    "file of nobody": file_of_nobody,
}
