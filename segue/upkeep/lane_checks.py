"""Whether what people said is answered, and what was answered arrives.

None of it is mended by itself: whether an old question is worth an answer is for people to say.
"""

from collections.abc import Sequence
from datetime import timedelta

from segue.core.inbox import Entry, InboxState
from segue.core.links import LinkState, called
from segue.core.moments import DAY, instant
from segue.core.outbox import Letter, OutboxState
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sources import BATCH, CRON
from segue.core.text import count, one_line
from segue.ports.store import Transaction
from segue.sessions.requeueing import with_full_reason
from segue.sessions.watching import Watch, long_interrupted, watch
from segue.upkeep.findings import Finding, Patient, advice
from segue.upkeep.living import is_gone

_SHOWN = 3
_TRIED_AGAIN = "It is tried again by itself; `segue status` says when."
_LONGEST_WAIT = 60.0
_LONGEST_DOUBT = 600.0
_NEWS_DAYS = 7
"""What could not be delivered is told for so long; nobody can do anything about it later."""


def check_waiting(patient: Patient) -> list[Finding]:
    """A message waits only while somebody is at work before it."""
    watched = _watched(patient)
    late = [queue for queue in watched.unattended if watched.now - queue.oldest_at > _LONGEST_WAIT]
    if not late:
        return []
    says = f"{_waiting(sum(queue.waiting for queue in late))} in {_some([queue.lane_key for queue in late])}"
    if not watched.is_up:
        return [Finding(f"{says}, and no gateway runs.", "`segue gateway run` starts one; it answers them in order.")]
    return [
        Finding(
            f"{says}, and nobody works there although a gateway runs.",
            "After repeated crashes a cut-off answer waits for a minute; `segue inbox retry ID` asks anew at once."
            " Otherwise a platform or a model may be unreachable: `segue status` and the log of the gateway say more.",
        )
    ]


def check_platforms(patient: Patient) -> list[Finding]:
    """What a gateway that runs cannot reach."""
    watched = _watched(patient)
    if not watched.is_up:
        return []
    return [
        *(
            Finding(
                f"{called(one.platform, one.account)} is not connected: {one.trouble or 'it is not said why'}",
                _TRIED_AGAIN,
            )
            for one in watched.platforms
            if one.state in (LinkState.FAILED, LinkState.RESTING)
        ),
        *(
            Finding(f"{one_line(name)} is left out: {sentence}", "Mend that, then `segue gateway restart`.")
            for name, sentence in watched.left_out.items()
        ),
    ]


def check_messages(patient: Patient) -> list[Finding]:
    with patient.opened(read_only=True) as store:
        dead = store.read(OWNER_AT_CONSOLE, _dead)
    if not dead:
        return []
    return [
        advice(
            f"The answer to {count(len(dead), 'message')} failed: {_reasons([entry.reason for entry in dead])}",
            "`segue inbox list` shows them; `segue inbox retry` answers them after all, `segue inbox cancel` does not.",
        )
    ]


def check_deliveries(patient: Patient) -> list[Finding]:
    with patient.opened(read_only=True) as store:
        doubtful, dead = store.read(OWNER_AT_CONSOLE, _troubled, patient.now)
        stranded = store.read(OWNER_AT_CONSOLE, _stranded, patient)
    found = []
    if stranded:
        names = _some(sorted({letter.platform for letter in stranded}))
        found.append(
            advice(
                f"{count(len(stranded), 'reply piece')} wait for a platform that no setting here names: {names}.",
                "Name it under `platforms` in config.yaml and start the gateway again; `segue outbox list` shows them.",
            )
        )
    if doubtful:
        found.append(
            advice(
                f"Of {count(len(doubtful), 'reply piece')} nobody knows whether they arrived, in {_lanes(doubtful)}.",
                "The gateway sends them again, with a mark that says so, once the platform is connected.",
            )
        )
    if dead:
        found.append(
            advice(
                f"{count(len(dead), 'reply piece')} of the last {_NEWS_DAYS} days could not be delivered:"
                f" {_reasons([letter.reason for letter in dead])}",
                f"`segue outbox list` tells what they say, and `segue outbox retry` sends them again; they were for"
                f" {_lanes(dead)}.",
            )
        )
    return found


def check_lanes(patient: Patient) -> list[Finding]:
    longest = timedelta(seconds=patient.settings.agent.auto_continue_freshness)
    with patient.opened(read_only=True) as store:
        lanes = store.read(OWNER_AT_CONSOLE, long_interrupted, instant(patient.now), longest)
    if not lanes:
        return []
    return [
        advice(
            f"In {count(len(lanes), 'lane')} an answer was cut off and not carried on in time:"
            f" {_some([lane.key for lane in lanes])}.",
            "The next message there goes on all the same; `segue lanes reset` begins a new conversation.",
        )
    ]


def _dead(tx: Transaction) -> list[Entry]:
    return [with_full_reason(tx, entry) for entry in tx.inbox.listed((InboxState.DEAD,))]


def _watched(patient: Patient) -> Watch:
    with patient.opened(read_only=True) as store:
        return store.read(OWNER_AT_CONSOLE, watch, is_gone)


def _troubled(tx: Transaction, now: float) -> tuple[list[Letter], list[Letter]]:
    """What nobody knows to have arrived, and what lately could not."""
    unknown = tx.outbox.listed((OutboxState.UNKNOWN,))
    dead = tx.outbox.listed((OutboxState.DEAD,))
    return (
        [letter for letter in unknown if now - letter.created_at > _LONGEST_DOUBT],
        [letter for letter in dead if now - (letter.ended_at or letter.created_at) < _NEWS_DAYS * DAY],
    )


def _stranded(tx: Transaction, patient: Patient) -> list[Letter]:
    """What nobody will send: its platform is not in the settings, or switched off there."""
    platforms = {BATCH, CRON, *(name for name, said in patient.settings.platforms.items() if said.enabled)}
    return [
        letter
        for letter in tx.outbox.listed((OutboxState.PENDING,))
        if letter.platform not in platforms and patient.now - letter.created_at > _LONGEST_DOUBT
    ]


def _waiting(number: int) -> str:
    return "1 message waits" if number == 1 else f"{number:,} messages wait"


def _reasons(reasons: Sequence[str | None]) -> str:
    """The latest of them, each once."""
    return " ".join(dict.fromkeys(reason or "Nobody knows why." for reason in reversed(reasons[-_SHOWN:])))


def _lanes(letters: Sequence[Letter]) -> str:
    return _some(list(dict.fromkeys(letter.lane_key for letter in letters)))


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")
