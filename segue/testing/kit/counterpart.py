"""The other side of an adapter: what its platform does, and what people do there.

Everything happens in one chat with one person unless a method says otherwise. A counterpart is used for one case and
then closed; whatever it starts has an end then.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import ClassVar

from segue.core.attachments import Attachment
from segue.core.inbound import Inbound
from segue.core.sources import SessionSource
from segue.ports.platform import Platform


class Trouble(StrEnum):
    """What can become of something that is sent."""

    BUSY = "busy"
    """Not taken; the platform says for how long it takes nothing: `Counterpart.busy_seconds`."""
    BROKEN = "broken"
    """The platform answers that something of its own is out of order."""
    UNREACHABLE = "unreachable"
    """Nobody listens there until `come_back`; it comes once, whatever `times` says."""
    LOST_BEFORE = "lost before"
    """The connection breaks, or nobody answers, before the platform has it."""
    LOST_AFTER = "lost after"
    """The platform has it, and the answer is lost."""


class CannotHappen(AssertionError):
    """A case wants something that the counterpart does not do, and does not name among what it cannot."""


class Counterpart(ABC):
    """To be inherited from. What is not abstract need not be there where the platform cannot do it."""

    cannot: ClassVar[Mapping[str, str]]
    """The names of cases that cannot happen on this platform, each with the reason."""
    busy_seconds: float
    longest_wait: float = 120.0
    """Seconds after which what has not arrived never will. Only a case that fails waits for so long, so it is longer
    than anything takes on the slowest machine that is busy with other things."""
    backlog: int = 500
    """How many messages wait while nobody is connected: several times what the platform hands out at once."""

    @abstractmethod
    def adapter(self) -> Platform:
        """A new adapter for the same account, as after a restart of the gateway."""

    @abstractmethod
    def route(self) -> SessionSource:
        """The chat, as an answer finds it."""

    def nowhere(self) -> SessionSource:
        """A chat that does not exist, or that we may not write to."""
        raise CannotHappen("nowhere")

    def words(self, inbound: Inbound) -> str:
        """What was said, of what was passed on; where more is told than that."""
        return inbound.text

    async def keep(self, name: str, content: bytes) -> Attachment:
        """Put a file where the adapter's files are kept."""
        raise CannotHappen("keep")

    @abstractmethod
    async def close(self) -> None: ...

    # What people do

    @abstractmethod
    async def say(self, text: str) -> str:
        """Say something; what the platform calls it."""

    @abstractmethod
    async def say_many(self, texts: list[str]) -> None:
        """Say one after another, quickly."""

    async def edit(self, message_id: str, text: str) -> None:
        raise CannotHappen("edit")

    async def delete(self, message_id: str) -> None:
        raise CannotHappen("delete")

    async def send_file(self, name: str, content: bytes, text: str = "") -> str:
        raise CannotHappen("send_file")

    async def read(self) -> list[str]:
        """What people can read in the chat that we have written, in order; each as it stands now."""
        raise CannotHappen("read")

    async def files(self) -> list[bytes]:
        """What we have sent as files."""
        raise CannotHappen("files")

    # What the platform does

    async def bring_again(self, message_id: str, *, as_new: bool) -> None:
        """Bring a message once more, under the number of its first delivery or a new one."""
        raise CannotHappen("bring_again")

    async def bring_out_of_order(self, texts: list[str]) -> None:
        """Bring messages in another order than the one in which they were said, and all of them."""
        raise CannotHappen("bring_out_of_order")

    async def bring_dated(self, text: str, moment: float) -> None:
        """Bring a message that claims to be from another time."""
        raise CannotHappen("bring_dated")

    async def bring_garbled(self, text: str) -> None:
        """Bring a message whose bytes are no text in part: with bad UTF-8, or with half of a surrogate pair."""
        raise CannotHappen("bring_garbled")

    async def bring_huge(self) -> None:
        """Bring something larger than is taken."""
        raise CannotHappen("bring_huge")

    async def bring_odd(self) -> None:
        """Bring whatever can come there whose insides make no sense, as many kinds of it as there are.

        Wrong types everywhere, a file whose key is a number, ids with half of a surrogate pair, lists in lists.
        """
        raise CannotHappen("bring_odd")

    async def bring_forged(self, text: str) -> None:
        """Bring a message as somebody would who does not know the secret."""
        raise CannotHappen("bring_forged")

    def trouble(self, trouble: Trouble, times: int = 1) -> None:
        """What becomes of the next things that are sent."""
        raise CannotHappen("trouble")

    async def go_away(self) -> None:
        """Nobody can reach the platform any more, and whoever was connected is not; people go on writing."""
        raise CannotHappen("go_away")

    async def come_back(self) -> None:
        raise CannotHappen("come_back")


Act = Callable[[Counterpart], Awaitable[None]]
"""What happens in a case; raises `AssertionError` when the adapter does not do what every adapter does."""
