"""What can go wrong, as a tree. Every message is one sentence that says what is the case and what to do about it.

SegueError
├── NotFound            SessionNotFound (SessionTrashed) · MessageNotFound · LaneNotFound
├── Ambiguous           a prefix or a name that fits several sessions (AmbiguousLane: or several lanes)
├── Invalid             TitleTooLong · TitleTaken · InvalidKey · InvalidSource · InvalidMessage · InvalidSession
│                       InvalidSettings · WrongState
├── InUse               somebody else is at work there (OpenElsewhere: who is named; LeaseLost: and took over from us)
├── FileFault           a file could not be written, for a reason that has nothing to do with its name
├── ModelError          NoModel · BadKey · UnknownModel · RateLimited · ContextOverflow
│                       ModelUnavailable (Unreachable) · StreamBroken
└── StoreError          the store cannot do its work
    ├── StoreBusy (StoreConflict, StoreTaken)                   others are at it: try again
    ├── StoreFull · StoreReadOnly · StoreFault                  try again when the cause is gone
    ├── StoreCorrupt · StoreForked · StoreClosed                this handle is finished
    ├── IndexDamaged                                            only searching suffers, until it is made anew
    └── HomeRefused · ForeignDatabase (NoDatabase) · SchemaTooNew · SchemaTooOld      refused before anything is touched
"""

import errno
from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar, TypeVar

C = TypeVar("C", bound=StrEnum)

INTERNAL_FAULT = "The answer failed because of a fault on our side. Try again later, or tell the owner."
"""What people who are not owners read of an error whose own words may name hosts, paths or providers."""


class SegueError(Exception):
    """Anything Segue says no to. However it is shown, no secret that somebody typed or stored is shown with it."""

    public_text: ClassVar[str | None] = None
    """The message for people who are not owners, where the error's own may name hosts, paths or providers."""

    def __init__(self, *arguments: object, in_chat: str = "") -> None:
        super().__init__(*arguments)
        self._in_chat = in_chat

    @property
    def public(self) -> str:
        """Return the message that anybody may read."""
        return self.public_text or self.in_chat

    @property
    def in_chat(self) -> str:
        """Return the message for owners on platforms, who have no terminal: it names no command of one."""
        from segue.core.redaction import redact

        return redact(self._in_chat) or str(self)

    def __str__(self) -> str:
        from segue.core.redaction import redact  # its rules take time to load, and most commands never fail

        return redact(super().__str__())


class NotFound(SegueError, LookupError):
    """What was asked for is not there, or not visible to whoever asked."""


class SessionNotFound(NotFound):
    def __init__(self, wanted: str, near: Sequence[str] = ()) -> None:
        meant = " or ".join(map(repr, near))
        hint, chat_hint = "`segue sessions list` shows what is there.", "/sessions lists what is there."
        if meant:
            hint = chat_hint = f"did you mean {meant}?"
        super().__init__(
            f"No session has the id or title {wanted!r}; {hint}",
            in_chat=f"No conversation has the id or title {wanted!r}; {chat_hint}",
        )
        self.wanted = wanted


class SessionTrashed(SessionNotFound):
    def __init__(self, wanted: str) -> None:
        NotFound.__init__(
            self,
            f"{wanted!r} is in the trash; `segue sessions trash restore` brings it back.",
            in_chat=f"{wanted!r} is in the trash, from which it can be restored at the terminal.",
        )
        self.wanted = wanted


class MessageNotFound(NotFound):
    """The session has no such message."""


class LaneNotFound(NotFound):
    def __init__(self, key: str) -> None:
        super().__init__(f"There is no lane {key!r}.")


class Ambiguous(SegueError, LookupError):
    """Several sessions fit; the sentence lists them."""

    def __init__(self, wanted: str, candidates: Sequence[str]) -> None:
        shown = ", ".join(candidates[:5]) + (f" and {len(candidates) - 5} more" if len(candidates) > 5 else "")
        listed = "\n".join(candidates[:5])
        super().__init__(
            f"{wanted!r} fits {len(candidates)} sessions: {shown}. Give more of the id.",
            in_chat=f"{wanted!r} fits {len(candidates)} conversations. Give more of the id.\n{listed}",
        )
        self.candidates = tuple(candidates)


class AmbiguousLane(Ambiguous):
    def __init__(self, wanted: str, candidates: Sequence[str]) -> None:
        shown = ", ".join(candidates[:5]) + (f" and {len(candidates) - 5} more" if len(candidates) > 5 else "")
        SegueError.__init__(self, f"{wanted!r} is in {len(candidates)} lanes: {shown}. Give more of the key.")
        self.candidates = tuple(candidates)


class Invalid(SegueError, ValueError):
    """The input cannot be taken as it is; nothing was changed."""


class TitleTooLong(Invalid):
    def __init__(self, length: int, most: int) -> None:
        super().__init__(f"The title has {length} characters; at most {most} are allowed.")


class TitleTaken(Invalid):
    ELSEWHERE = "of yours elsewhere"
    """In place of the id of a session that cannot be seen where somebody asks."""

    def __init__(self, title: str, holder: str, state: str) -> None:
        identifier = "" if holder == self.ELSEWHERE else f"\n{holder}"
        super().__init__(
            f"The title {title!r} belongs to session {holder} ({state}).",
            in_chat=f"The title {title!r} belongs to another conversation of yours ({state}).{identifier}",
        )
        self.holder = holder


class InvalidKey(Invalid):
    """A lane key that no lane could have."""


class InvalidSource(Invalid):
    """A message origin that names no place."""


class InvalidMessage(Invalid):
    """A message that cannot be stored and given back as it was."""


class InvalidSession(Invalid):
    """A session that cannot be created or taken in like this."""


class WrongState(Invalid):
    """What is named is there, and is in no state in which that can be done to it."""


class InvalidSettings(Invalid):
    """The configuration says something it cannot mean."""

    public_text = "The configuration has an error, which only the owner can correct."


def choice(choices: type[C], said: str, noun: str) -> C:
    """The choice that somebody named, or an error that lists them."""
    try:
        return choices(said)
    except ValueError:
        raise Invalid(f"{said!r} is not {noun}: use {', '.join(choices)}.") from None


class InUse(SegueError):
    """Somebody else is at work there, and nobody may interfere."""


class OpenElsewhere(InUse):
    """Another process has the session open; the message names it."""

    public_text = "This conversation is open elsewhere. Go on there, or close it."


class FileFault(SegueError):
    """A file could not be written to its end: the disk is full or failed."""


def unwritten(file: object, error: OSError) -> SegueError:
    """Return the error for a file that could not be written: a fault of the disk, or a name that cannot be used."""
    kind = FileFault if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO) else Invalid
    return kind(f"{file} could not be written: {error.strerror}.")


class LeaseLost(InUse):
    """Somebody else has taken over what we were working on; nothing more of ours is stored there."""


class ModelError(SegueError):
    """A model did not answer; what to do about it is in the sentence."""

    public_text: ClassVar[str | None] = "The model did not answer this message. Send it in other words, or try later."


class NoModel(ModelError):
    """There is none to ask."""

    public_text = "No model is available, and only the owner can change that."


class BadKey(ModelError):
    """The provider does not accept the key."""

    public_text = "The model is not available, and only the owner can change that."


class UnknownModel(ModelError):
    """The provider has no such model."""

    public_text = "That model is not available."


class RateLimited(ModelError):
    """Too many questions, or no more money; later ones may be answered."""

    public_text = "The model takes no more requests at the moment. Try again later."

    def __init__(self, sentence: str, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class ContextOverflow(ModelError):
    """The conversation is longer than the model can read."""

    public_text = "This message is too long for the model. Send it in smaller pieces."


class ModelUnavailable(ModelError):
    """It cannot be reached, or is too busy; the same question may be answered in a moment."""

    public_text = "The model is not available at the moment. Try again later."


class Unreachable(ModelUnavailable):
    """Nobody listens where it should be."""


class StreamBroken(ModelError):
    """The answer broke off, or makes no sense."""

    public_text = "The model broke the answer off. Try again."


class StoreError(SegueError):
    """The store cannot do its work."""

    public_text = "The database is not available at the moment. Try again later."


class StoreBusy(StoreError):
    """Others held the store for longer than our patience."""


class StoreConflict(StoreBusy):
    """Somebody else changed the same rows first; the same work, done again at once, may succeed."""


class StoreTaken(StoreConflict):
    """What must be the only one of its kind is there already, perhaps only since a moment ago."""


class StoreFull(StoreError):
    """The disk is full; nothing of this write was kept."""


class StoreReadOnly(StoreError):
    """The store was opened for reading, or its disk allows nothing else."""


class StoreFault(StoreError):
    """The operating system failed a read or a write."""


class StoreReplaced(StoreFault):
    """The database file, or its log, was replaced or removed while it was open."""


class StoreCorrupt(StoreError):
    """The database file is damaged; writing has stopped."""


class IndexDamaged(StoreError):
    def __init__(self) -> None:
        super().__init__("The search index is damaged; it is made anew from the messages, which are whole.")


class StoreForked(StoreError):
    def __init__(self) -> None:
        super().__init__("This store was opened before the process forked; open a new one in the child process.")


class StoreClosed(StoreError):
    def __init__(self) -> None:
        super().__init__("This store is closed.")


class HomeRefused(StoreError):
    """The home folder or the database path is not ours to use."""


class ForeignDatabase(StoreError):
    """The file is no database, or another program's."""


class NoDatabase(ForeignDatabase):
    """The file is no database at all: nobody's, or what is left of one."""


class SchemaTooNew(StoreError):
    """A newer Segue wrote this database."""


class SchemaTooOld(StoreError):
    """The database must be brought up to date first, which reading alone cannot do."""


def is_storage_fault(error: BaseException) -> bool:
    """Return whether the store itself failed, so that the same work may succeed once it works again."""
    faults = (StoreBusy, StoreFull, StoreReadOnly, StoreFault, StoreCorrupt, StoreClosed)
    return isinstance(error, faults) and not isinstance(error, StoreTaken)
