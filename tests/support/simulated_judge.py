"""What must be true of every history, whatever happened in it: asked of the rows, and of what the platform saw."""

from collections import Counter
from collections.abc import Iterator

from simulated_world import World

from segue.core.inbox import OPEN, Entry, InboxState, Want
from segue.core.messages import Message, calls_in
from segue.core.outbox import MARK, Letter, OutboxState, What
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Session
from segue.ports.store import Transaction
from segue.testing.stage import Posted

LONGEST_STOP = 2.0
_ENTRIES = ("waiting", "running", "done", "cancelled", "refused", "dead")


def complaints(world: World) -> list[str]:
    """Everything that is wrong, a sentence each."""
    return world.store.read(OWNER, lambda tx: list(_Judge(tx, world).complaints()))


SIGHTS = (
    *("done", "cancelled", "refused", "dead", "carried on", "sent again", "taken over", "killed", "held up", "ended"),
    *("in trouble", "brought again"),
)
"""What has to be seen in a few hundred histories, or they prove nothing."""


def sights(world: World) -> set[str]:
    """What happened in a history."""
    rows = world.engine.rows(
        """
        SELECT state FROM inbox UNION SELECT 'carried on' FROM turns WHERE attempt > 1
        UNION SELECT 'sent again' FROM outbox WHERE is_repeat
        UNION SELECT 'taken over' FROM leases WHERE epoch > 1 AND owner <> 'life-1'"""
    )
    again = {"brought again"} if len(world.stage.said) < world.brought else set()
    return {str(row[0]) for row in rows} | world.mishaps | again


class _Judge:
    def __init__(self, tx: Transaction, world: World) -> None:
        self._tx = tx
        self._world = world
        self._entries: list[Entry] = tx.inbox.listed(_ENTRIES)
        self._letters: list[Letter] = tx.outbox.listed(list(OutboxState))
        self._sessions: list[Session] = list(tx.sessions.in_order())
        self._messages: list[Message] = sorted(
            (row for one in self._sessions for row in tx.messages.of(one.id, every_state=True)), key=lambda row: row.id
        )
        self._posted: list[Posted] = world.stage.posted

    def complaints(self) -> Iterator[str]:
        yield from self._world.loop.troubles
        yield from self._accepted_once()
        yield from self._ended()
        yield from self._stopped_soon()
        yield from self._answered_once()
        yield from self._in_order()
        yield from self._delivered()
        yield from self._delivered_in_order()
        yield from self._one_session()
        yield from self._tools_used_once()

    def _accepted_once(self) -> Iterator[str]:
        """What was said and confirmed is there, under its name, once."""
        there = Counter((entry.message_id, entry.edit) for entry in self._entries)
        for update in self._world.stage.said:
            if there[update["message_id"], update["edit"]] != 1:
                yield f"{update['text']!r} was accepted {there[update['message_id'], update['edit']]} times."

    def _ended(self) -> Iterator[str]:
        """Everything has come to one end, and stays there."""
        yield from (f"{entry.text!r} is still {entry.state}." for entry in self._entries if entry.state in OPEN)
        for name, number, old, new in self._world.engine.rows("SELECT * FROM moved"):
            yield f"{name} {number} was {old}, and then {new}."
        for number, state in self._world.engine.rows("SELECT id, state FROM turns WHERE state = 'running'"):
            yield f"The turn {number} is still {state}."
        if self._world.is_stuck:
            yield "Something is stuck."

    def _stopped_soon(self) -> Iterator[str]:
        """Who asks for it need not wait, as long as there is a process that hears it."""
        asked = {f"It was stopped by message {entry.id}.": entry for entry in self._entries}
        ends = self._world.engine.rows("SELECT reason, ended_at FROM turns WHERE state = 'stopped'")
        for reason, ended_at in ends if not self._world.plan.mishaps else ():
            if reason in asked and ended_at - asked[reason].admitted_at > LONGEST_STOP:
                yield f"It took {ended_at - asked[reason].admitted_at:.1f} seconds to stop for {asked[reason].text!r}."

    def _answered_once(self) -> Iterator[str]:
        """By one turn in our record; what was not done was not answered by more."""
        said = Counter(_name(row.content) for row in self._messages if row.role == "user")
        told = Counter(name for row in self._messages if row.role == "assistant" for name in _named(row.content))
        for entry in self._entries:
            name = _name(entry.text)
            if entry.want == Want.COMMAND:
                continue
            if said[name] > 1 or told[name] > 1:
                yield f"{name} was stored {said[name]} times and answered {told[name]} times."
            if entry.state == InboxState.DONE and (said[name], told[name]) != (1, 1):
                yield f"{name} is done, was stored {said[name]} times and answered {told[name]} times."
            if entry.state == InboxState.REFUSED and said[name]:
                yield f"{name} was refused, and stored."

    def _in_order(self) -> Iterator[str]:
        """Within a lane, in the order in which it was accepted; what an agent is to hear at once may be earlier."""
        steered = {_name(words.text) for words in self._world.plan.words if words.text.startswith("/steer")}
        numbers = {(entry.message_id, _name(entry.text)): entry for entry in self._entries}
        last: dict[tuple[str, str], int] = {}
        for row in self._messages:
            entry = numbers.get((row.platform_message_id or "", _name(row.content)))
            if row.role != "user" or entry is None or _name(entry.text) in steered:
                continue
            line = (entry.lane_key, entry.want)
            if entry.id < last.get(line, 0):
                yield f"{_name(entry.text)} was answered after {last[line]}, which came later."
            last[line] = entry.id

    def _delivered(self) -> Iterator[str]:
        """At least once, and no more than that where there is a key; what may be there twice is marked elsewhere."""
        keys = Counter(posted.key for posted in self._posted)
        plain = Counter(posted.key for posted in self._posted if not posted.text.startswith(MARK))
        for letter in self._letters:
            if letter.state not in (OutboxState.DELIVERED, OutboxState.DEAD, OutboxState.SUPPRESSED):
                yield f"{letter.text!r} is still {letter.state}."
            if letter.state == OutboxState.DELIVERED and not keys[letter.key]:
                yield f"{letter.text!r} never arrived."
            if plain[letter.key] > 1 and _has_room(letter, self._world.plan.longest):
                yield f"{letter.text!r} arrived {plain[letter.key]} times, and nothing says so."
        plainly = {posted.key: posted for posted in self._posted if not posted.text.startswith(MARK)}
        answered = Counter(name for posted in plainly.values() for name in _words(posted.text))
        known = {name for posted in self._posted for name in _words(posted.text)}
        replies = {name for letter in self._letters if letter.what == What.REPLY for name in _words(letter.text)}
        sent = [letter for letter in self._letters if letter.state == OutboxState.DELIVERED]
        arrived = {name for letter in sent for name in _words(letter.text)}
        for entry in self._entries:
            name = _name(entry.text)
            if entry.want == Want.COMMAND or entry.state != InboxState.DONE:
                continue
            if name not in replies:
                yield f"{name} is done, and nothing was written to its sender."
            if name in arrived - known:
                yield f"{name} is done, and its sender does not know."
            if answered[name] > 1:
                yield f"{name} was answered {answered[name]} times on the platform."

    def _places(self) -> dict[str, int]:
        """Where each piece stands in line: from when it was begun if people saw that, else from when it was whole."""
        rows = self._world.engine.rows(
            "SELECT id, min(number), max(CASE WHEN is_whole THEN number END) FROM written GROUP BY id"
        )
        begun, whole = {row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows}
        return {one.key: (begun if one.is_shown else whole)[one.id] or 0 for one in self._letters}

    def _delivered_in_order(self) -> Iterator[str]:
        ids = self._places()
        last: dict[str, int] = {}
        seen: set[str] = set()
        for posted in self._posted:
            chat, number = str(posted.route["chat_id"]), ids.get(posted.key, 0)
            if posted.key in seen or not number:
                continue
            seen.add(posted.key)
            if number < last.get(chat, 0):
                yield f"{posted.text!r} arrived after what was written later."
            last[chat] = max(number, last.get(chat, 0))

    def _one_session(self) -> Iterator[str]:
        there = Counter(one.lane_key for one in self._sessions if one.ended_at is None and one.lane_key)
        yield from (f"{key} has {number} open sessions." for key, number in there.items() if number > 1)
        for lane in self._tx.lanes.listed():
            session = self._tx.sessions.find(lane.session_id or "")
            if session is None or session.ended_at is not None or session.lane_key != lane.key:
                yield f"{lane.key} has no session of its own that is open."

    def _tools_used_once(self) -> Iterator[str]:
        calls = Counter((row.session_id, call["id"]) for row in self._messages for call in calls_in(row.tool_calls))
        results = Counter((row.session_id, row.tool_call_id) for row in self._messages if row.tool_call_id)
        yield from (f"{name} was asked for {times} times." for (_, name), times in calls.items() if times > 1)
        yield from (f"{name} has {times} results." for (_, name), times in results.items() if times > 1)
        used = Counter(self._world.used)
        yield from (f"A tool was used {times} times for {name}." for name, times in used.items() if times > 1)


def _name(content: object) -> str:
    """Of what was said: its first word, whatever was to be done with it."""
    words = str(content or "").split()
    if words and words[0] in ("/steer", "/queue", "/new"):
        words = words[1:]
    return words[0] if words else ""


def _named(content: object) -> list[str]:
    """The messages that an answer names."""
    text = str(content or "")
    return text.split()[1:] if text.startswith("re:") else []


def _words(text: str) -> list[str]:
    """The names in a piece of an answer."""
    words = text.removeprefix(MARK).split()
    return [word for word in words if word[0] in "abc" and word[1:2].isdigit()]


def _has_room(letter: Letter, longest: int) -> bool:
    return len(MARK + letter.text) <= longest
