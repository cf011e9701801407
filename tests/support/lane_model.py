"""What a gateway should be: lists and dictionaries, written from what it promises and not from how it does it."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from segue.core.sources import SessionSource

IDLE, FRESHNESS, MAX_BLAME, CRASH_SPAN = 1800.0, 3600.0, Fraction(3), 60.0
MODES = ("collect", "followup", "interrupt")
PLAIN, QUEUED, COMMAND = "plain", "queued", "command"
ROOM = "agent:main:scripted:group:room"
THREAD = f"{ROOM}:topic:t1"
_NOTE = "left out: "


class Seat(NamedTuple):
    """Somebody somewhere: where their words go, and what they may see there."""

    source: SessionSource
    lane: str
    person: str
    principal: str
    audience: str

    def __repr__(self) -> str:
        return f"<{self.person} in {self.lane}>"

    @property
    def chat(self) -> str:
        return self.source.chat_id


def seats_of(name: str) -> list[Seat]:
    """A person in direct messages, in a group where everybody has a lane, and in a thread that all share."""
    person = f"scripted:{name}"

    def source(chat_type: str, chat_id: str, parent: str | None = None) -> SessionSource:
        where = SessionSource(platform="scripted", chat_type=chat_type, chat_id=chat_id, parent_chat_id=parent)
        return replace(where, user_id=name, user_name=name.title())

    return [
        Seat(source("dm", name), f"agent:main:scripted:dm:{name}", person, person, ""),
        Seat(source("group", "room"), f"{ROOM}:{name}", person, person, ROOM),
        Seat(source("thread", "t1", "room"), THREAD, person, THREAD, THREAD),
    ]


SEATS = [*seats_of("alice"), *seats_of("bob")]
LANES = list(dict.fromkeys(seat.lane for seat in SEATS))


@dataclass
class Line:
    """A message of a transcript."""

    role: str
    text: str
    is_live: bool = True
    calls: int = 0


@dataclass
class Talk:
    """A session."""

    id: str
    lane: str
    principal: str
    audience: str
    lines: list[Line] = field(default_factory=list)
    is_open: bool = True
    title: str | None = None
    mode: str | None = None
    parent: "Talk | None" = None
    kept: list[Line] = field(default_factory=list)
    """Lines of earlier parts that a compression left as they were."""
    turns: list[int] = field(default_factory=list)

    @property
    def live(self) -> list[Line]:
        return [line for line in self.lines if line.is_live]

    @property
    def view(self) -> list[Line]:
        """What was said, without the summary."""
        own = self.lines[1:] if self.parent else self.lines
        return [line for line in [*self.kept, *own] if line.is_live]


@dataclass
class Mail:
    """A message that was accepted."""

    number: int
    seat: Seat
    name: tuple[str, str, str]
    text: str
    want: str
    at: float
    state: str = "waiting"
    is_left_out: bool = False
    """Whether the next turn is told of it in short."""
    cancelled_by: int | None = None


@dataclass
class Task:
    """A turn that has not come to its end."""

    talk: Talk
    mails: list[Mail]
    begun_at: float
    attempt: int = 1
    blame: Fraction = Fraction(0)
    is_cut_off: bool = False
    """Whether nobody is at work on it; what comes meanwhile ends nothing."""


@dataclass
class Spot:
    """A lane."""

    talk: Talk | None
    spoken_at: float
    phase: str = "active"
    since: float = 0.0


class Sent(NamedTuple):
    """Something in the outbox; no text where any will do."""

    lane: str
    what: str
    text: str | None = None


class Rules(NamedTuple):
    mode: str
    drop: str
    cap: int
    stop_suspends: bool


class Model:
    """All lanes of a gateway, and what was said, cancelled, answered and sent in them."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.talks: dict[str, Talk] = {}
        self.mails: list[Mail] = []
        self.lanes: dict[str, Spot] = {}
        self.tasks: dict[str, Task] = {}
        self.crashed_at: list[float] = []
        self.sent: list[Sent] = []
        self.accepted: set[tuple[str, str, str]] = set()
        self.told_over_cap: set[tuple[str, Seat, str]] = set()
        self.turns = 0

    # What is there

    def waiting(self, lane: str) -> list[Mail]:
        return [mail for mail in self.mails if mail.seat.lane == lane and mail.state == "waiting"]

    def talk_in(self, lane: str) -> Talk | None:
        return self.lanes[lane].talk if lane in self.lanes else None

    def mode_in(self, lane: str) -> str:
        talk = self.talk_in(lane)
        return (talk.mode if talk else None) or self.rules.mode

    def seen_by(self, principal: str, audience: str) -> list[Talk]:
        """In private all that is one's own, in a room only what was said there."""
        own = [talk for talk in self.talks.values() if talk.principal == principal]
        return [talk for talk in own if not audience or talk.audience == audience]

    def tip_of(self, talk: Talk) -> Talk:
        child = next((one for one in self.talks.values() if one.parent is talk), None)
        return self.tip_of(child) if child else talk

    def holder_of(self, principal: str, title: str) -> Talk | None:
        return next((one for one in self.talks.values() if (one.principal, one.title) == (principal, title)), None)

    # A message arrives

    def arrive(self, seat: Seat, message_id: str, edit: str, text: str, now: float) -> Mail | None:
        """Accepted once, under a name of its own; the turn that runs may end for it."""
        name = (seat.chat, message_id, edit)
        if name in self.accepted:
            return None
        self.accepted.add(name)
        want, text = _read(text)
        mail = Mail(len(self.mails) + 1, seat, name, text, want, now)
        before = self.waiting(seat.lane)
        self.mails.append(mail)
        earlier = [one for one in before if one.name[:2] == name[:2]] if edit else []
        self._cancel(earlier)
        before = [one for one in before if one not in earlier]
        is_clearing = want == COMMAND and text.split()[0] in ("/new", "/reset", "/stop", "/resume")
        is_ending = is_clearing or self._is_interrupting(mail)
        if is_clearing:
            self._cancel([one for one in before if one.want != COMMAND or _is_asking(one)], mail.number)
        elif is_ending:
            self._cancel([one for one in before if one.want == PLAIN])
        elif want != COMMAND and not earlier:
            self._fit(mail, before)
        task = self.tasks.get(seat.lane)
        if is_ending and task and not task.is_cut_off:
            self.stop(seat.lane)
        return mail

    def _is_interrupting(self, mail: Mail) -> bool:
        lane = mail.seat.lane
        return mail.want == PLAIN and lane in self.tasks and self.mode_in(lane) == "interrupt"

    def _fit(self, mail: Mail, before: list[Mail]) -> None:
        if len(before) < self.rules.cap:
            return
        if self.rules.drop == "new" or mail.want == QUEUED:
            mail.state = "refused"
            self._tell_over_cap(mail.seat, "refused")
            return
        dropped = [one for one in before if one.want == PLAIN][: len(before) - self.rules.cap + 1]
        self._cancel(dropped)
        for one in dropped:
            one.is_left_out = self.rules.drop == "summarize"
            self._tell_over_cap(one.seat, "dropped")

    def _tell_over_cap(self, seat: Seat, what: str) -> None:
        """Once to everybody until the next turn begins."""
        task = self.tasks.get(seat.lane)
        talk = task.talk if task else self.talk_in(seat.lane)
        since = "" if talk is None else str(talk.turns[-1]) if talk.turns else talk.id
        burst = (since, seat, what)
        if burst not in self.told_over_cap:
            self.told_over_cap.add(burst)
            self.sent.append(Sent(seat.lane, "notice"))

    def _cancel(self, mails: list[Mail], by: int | None = None) -> None:
        for mail in mails:
            mail.state, mail.cancelled_by = "cancelled", by

    # The next thing in a lane

    def due(self, lane: str) -> str | None:
        if lane in self.tasks:
            return "cut off"
        waiting = self.waiting(lane)
        if not waiting:
            return None
        return "command" if waiting[0].want == COMMAND else "answer"

    def begin(self, lane: str, fresh: str, now: float) -> None:
        first, *rest = self.waiting(lane)
        mails = [first]
        if first.want == PLAIN and self.mode_in(lane) != "followup":
            for mail in rest:
                if mail.want != PLAIN or mail.seat != first.seat:
                    break
                mails.append(mail)
        talk = self._open(first, fresh)
        left_out = [mail for mail in self.mails if mail.seat.lane == lane and mail.is_left_out]
        if left_out:
            talk.lines.append(Line("user", _in_short([mail.text for mail in left_out])))
        for mail in left_out:
            mail.is_left_out = False
        for mail in mails:
            talk.lines.append(Line("user", mail.text))
            mail.state = "running"
        self.turns += 1
        talk.turns.append(self.turns)
        self.tasks[lane] = Task(talk, mails, now)

    def take_up(self, lane: str, now: float) -> bool:
        """A turn that was cut off: whether it goes on."""
        task, spot = self.tasks[lane], self.lanes[lane]
        if task.blame >= MAX_BLAME:
            self._end(lane, "dead")
            spot.phase, spot.since = "suspended", now
            self.sent.append(Sent(lane, "notice"))
            return False
        if now - task.begun_at > FRESHNESS:
            self._end(lane, "dead")
            self.sent.append(Sent(lane, "notice"))
            return False
        task.attempt, task.is_cut_off = task.attempt + 1, False
        return True

    def _open(self, mail: Mail, fresh: str) -> Talk:
        """The session of a message, by the moment at which it was accepted."""
        lane, now = mail.seat.lane, mail.at
        spot = self.lanes.setdefault(lane, Spot(None, now))
        old, is_old = spot.talk, now - spot.spoken_at > IDLE
        is_resumed = spot.phase == "interrupted" and now - spot.since <= FRESHNESS
        spot.spoken_at = now
        if old and spot.phase != "suspended" and (is_resumed or not is_old):
            return old
        if old and old.live:
            self.sent.append(Sent(lane, "notice"))
        return self._start(mail.seat, fresh)

    def _start(self, seat: Seat, fresh: str) -> Talk:
        spot = self.lanes[seat.lane]
        old = spot.talk
        if old:
            old.is_open = False
        talk = Talk(fresh, seat.lane, seat.principal, seat.audience, mode=old.mode if old else None)
        self.talks[fresh] = talk
        spot.talk, spot.phase = talk, "active"
        return talk

    # A turn goes on and ends

    def say_between(self, lane: str, said: str, result: str) -> None:
        self.tasks[lane].talk.lines += [Line("assistant", said, calls=1), Line("tool", result)]

    def answer(self, lane: str, text: str) -> None:
        self.tasks[lane].talk.lines.append(Line("assistant", text))
        self._end(lane, "done")
        self.sent.append(Sent(lane, "reply", text))
        if self.lanes[lane].phase == "interrupted":
            self.lanes[lane].phase = "active"

    def fail(self, lane: str, reason: str) -> None:
        self._end(lane, "dead")
        self.sent.append(Sent(lane, "notice", reason))

    def stop(self, lane: str) -> None:
        self._end(lane, "cancelled")

    def _end(self, lane: str, state: str) -> None:
        for mail in self.tasks.pop(lane).mails:
            mail.state = state

    def crash(self, now: float) -> None:
        """Exactly the lanes in which a turn ran are interrupted, and those turns share the blame."""
        ran = [task for task in self.tasks.values() if not task.is_cut_off]
        is_loop = sum(at >= now - CRASH_SPAN for at in self.crashed_at) >= 2
        self.crashed_at.append(now)
        for task in ran:
            task.blame += Fraction(0 if is_loop else 1, len(ran))
        for lane, task in self.tasks.items():
            if not task.is_cut_off and self.lanes[lane].phase != "suspended":
                self.lanes[lane].phase, self.lanes[lane].since = "interrupted", now
            task.is_cut_off = True

    def compress(self, lane: str, fresh: str, summary: str, kept: int) -> None:
        spot = self.lanes[lane]
        old = spot.talk
        assert old is not None
        old.is_open = False
        child = Talk(fresh, lane, old.principal, old.audience, [Line("user", summary)], mode=old.mode, parent=old)
        child.title = self._next_title(old.principal, old.title) if old.title else None
        child.kept = _from(old, old.view[-kept]) if kept else []
        self.talks[fresh] = child
        spot.talk = child
        if lane in self.tasks:
            self.tasks[lane].talk = child
            child.turns.append(old.turns.pop())

    def _next_title(self, principal: str, title: str) -> str:
        base, _, number = title.partition(" #")
        titles = [talk.title for talk in self.talks.values() if talk.principal == principal and talk.title]
        numbers = [int(one.partition(" #")[2]) for one in titles if one.startswith(f"{base} #")]
        return f"{base} #{max([int(number or 1), *numbers]) + 1}"

    # Commands

    def carry_out(self, mail: Mail, fresh: str, now: float) -> None:
        """Done once, and told."""
        name, _, argument = mail.text.partition(" ")
        mail.state = "done"
        is_told = getattr(self, f"_{name.removeprefix('/').replace('reset', 'new')}")(mail, argument, fresh, now)
        is_cancelling = any(one.cancelled_by == mail.number for one in self.mails)
        if is_told or is_cancelling:
            self.sent.append(Sent(mail.seat.lane, "answer"))

    def _stop(self, mail: Mail, _argument: str, _fresh: str, now: float) -> bool:
        spot = self.lanes.get(mail.seat.lane)
        if self.rules.stop_suspends and spot:
            spot.phase, spot.since = "suspended", now
        return True

    def _new(self, mail: Mail, argument: str, fresh: str, now: float) -> bool:
        spot = self.lanes.get(mail.seat.lane)
        had_session = spot is not None and spot.talk is not None
        if spot is not None:
            self._start(mail.seat, fresh)
            spot.spoken_at = now
        if argument:
            mail.state, mail.want, mail.text = "waiting", QUEUED, argument
        return had_session or not argument

    def _title(self, mail: Mail, title: str, fresh: str, _now: float) -> bool:
        talk, holder = self.talk_in(mail.seat.lane), self.holder_of(mail.seat.principal, title)
        if holder and holder is not talk:
            if talk is None or holder not in _ancestors(talk):
                return True
            holder.title = None
        self._session(mail, fresh).title = title
        return True

    def _queue(self, mail: Mail, mode: str, fresh: str, _now: float) -> bool:
        self._session(mail, fresh).mode = None if mode == "default" else mode
        return True

    def _session(self, mail: Mail, fresh: str) -> Talk:
        return self.talk_in(mail.seat.lane) or self._open(mail, fresh)

    def _undo(self, mail: Mail, argument: str, _fresh: str, _now: float) -> bool:
        talk = self.talk_in(mail.seat.lane)
        said = _said(talk)
        if talk and said:
            _silence(talk, said[-min(int(argument or 1), len(said))])
        return True

    def _retry(self, mail: Mail, _argument: str, _fresh: str, _now: float) -> bool:
        talk = self.talk_in(mail.seat.lane)
        said = _said(talk)
        if talk and said:
            mail.state, mail.want, mail.text = "waiting", QUEUED, said[-1].text
            _silence(talk, said[-1])
        return True

    def _resume(self, mail: Mail, wanted: str, _fresh: str, now: float) -> bool:
        """One's own, as far as it can be seen here, unless an answer is being written there."""
        seat = mail.seat
        seen = self.seen_by(seat.principal, seat.audience)
        named = next((talk for talk in seen if talk.id == wanted), None)
        named = named or next((talk for talk in seen if talk.title == wanted), None)
        target = self.tip_of(named) if named else None
        if target is not None and not any(task.talk is target for task in self.tasks.values()):
            self._switch(seat, target, now)
        return True

    def _switch(self, seat: Seat, target: Talk, now: float) -> None:
        """The session leaves the lane that it was in, and all its parts belong here now."""
        for spot in self.lanes.values():
            if spot.talk is target:
                spot.talk = None
        spot = self.lanes.setdefault(seat.lane, Spot(None, now))
        if spot.talk:
            spot.talk.is_open = False
        spot.talk, spot.phase, spot.spoken_at = target, "active", now
        target.is_open, target.lane = True, seat.lane
        for part in [*_ancestors(target), target]:
            part.principal, part.audience = seat.principal, seat.audience


def _read(text: str) -> tuple[str, str]:
    name, _, argument = text.partition(" ")
    if name == "/queue" and argument not in (*MODES, "default"):
        return QUEUED, argument
    return (COMMAND if name.startswith("/") else PLAIN), text


def _is_asking(mail: Mail) -> bool:
    """Whether a command ends in an answer."""
    name, _, argument = mail.text.partition(" ")
    return name == "/retry" or (name == "/new" and bool(argument))


def _in_short(texts: list[str]) -> str:
    """The last ten of what nobody answers any more."""
    more = [f"and {len(texts) - 10} before them"] if len(texts) > 10 else []
    return f"{_NOTE}{', '.join([*more, *texts[-10:]])}"


def _said(talk: Talk | None) -> list[Line]:
    """What people said; a note about what was left out is not."""
    lines = talk.view if talk else []
    return [line for line in lines if line.role == "user" and not line.text.startswith(_NOTE)]


def _ancestors(talk: Talk) -> list[Talk]:
    return [*_ancestors(talk.parent), talk.parent] if talk.parent else []


def _from(talk: Talk, line: Line) -> list[Line]:
    """Every line of a conversation from one on, whether it speaks or not."""
    own = talk.lines[1:] if talk.parent else talk.lines
    every = [*talk.kept, *own]
    return every[_place(every, line) :]


def _silence(talk: Talk, first: Line) -> None:
    for line in _from(talk, first):
        line.is_live = False


def _place(lines: list[Line], wanted: Line) -> int:
    return next(at for at, line in enumerate(lines) if line is wanted)
