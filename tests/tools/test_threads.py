"""What has begun in a thread comes to its end before anybody goes on."""

import asyncio
import threading

import pytest
from waiting import DEADLINE

from segue.tools.threads import in_thread


def test_whoever_is_cancelled_waits_for_the_work_that_has_begun() -> None:
    done: list[str] = []
    has_begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        has_begun.set()
        may_end.wait(DEADLINE)
        done.append("done")
        raise ValueError("which nobody waits for any more")

    async def cancelled() -> None:
        running = asyncio.create_task(in_thread(work))
        await asyncio.to_thread(has_begun.wait, DEADLINE)
        running.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not running.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert done == ["done"]

    asyncio.run(cancelled())


def test_what_goes_wrong_in_a_thread_goes_wrong_here() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(lambda: 1 // 0))
