"""`/model`, `/think`, `/verbose`, `/send`, `/queue`: how this conversation is answered."""

from enum import StrEnum
from typing import TypeVar

from segue.core.errors import Invalid
from segue.core.preferences import Effort, Preferences, Verbosity, encode
from segue.core.queueing import QueueMode
from segue.core.sending import Override
from segue.core.text import count, one_line, storable
from segue.ports.store import Transaction
from segue.sessions.commanding.acts import Answer, Prefer, Situation, chosen_in, session_of

DEFAULT = "default"
_LONGEST_MODEL = 200
_SYNONYMS = {"on": "tools", "full": "all"}

C = TypeVar("C", bound=StrEnum)


def model(tx: Transaction, argument: str, situation: Situation) -> Answer:
    chosen = chosen_in(session_of(tx, situation), situation)
    if not argument:
        wanted = f"chosen as {one_line(chosen.model)}" if chosen.model else "by the configuration"
        return Answer(f"The model is {one_line(situation.model_named)}, {wanted}.")
    if argument.lower() == DEFAULT:
        return _prefer(tx, situation, chosen._replace(model=None), "The model is the one of the configuration now.")
    if len(argument) > _LONGEST_MODEL:
        raise Invalid(f"The name of a model has at most {_LONGEST_MODEL} characters.")
    used, given = one_line(situation.models(argument)), one_line(argument)
    if not situation.is_for_owner_alone:
        used = given  # which provider has it is the owner's to know
    meant = used if used == given else f"{used} ({given})"
    return _prefer(tx, situation, chosen._replace(model=storable(argument)), f"The model is {meant} now.")


def think(tx: Transaction, argument: str, situation: Situation) -> Answer:
    chosen = chosen_in(session_of(tx, situation), situation)
    if not argument:
        return Answer(f"Thinking: {thinking(chosen)}. /think takes {_choices(Effort)}.")
    chosen = chosen._replace(effort=_chosen(Effort, argument, "/think"))
    return _prefer(tx, situation, chosen, f"Thinking: {thinking(chosen)}.")


def verbose(tx: Transaction, argument: str, situation: Situation) -> Answer:
    chosen = chosen_in(session_of(tx, situation), situation)
    if not argument:
        return Answer(f"Verbose: {verbosity(chosen)}. /verbose takes {_choices(Verbosity)}.")
    word = argument.lower()
    chosen = chosen._replace(verbose=_chosen(Verbosity, _SYNONYMS.get(word, word), "/verbose"))
    return _prefer(tx, situation, chosen, f"Verbose: {verbosity(chosen)}.")


def send(tx: Transaction, argument: str, situation: Situation) -> Answer:
    chosen = chosen_in(session_of(tx, situation), situation)
    if not argument:
        return Answer(f"Sending: {chosen.send or Override.INHERIT}. /send takes {', '.join(Override)}.")
    word = argument.lower()
    if word not in list(Override):
        raise Invalid(f"{one_line(argument)!r:.60} is not known: /send takes {', '.join(Override)}.")
    chosen = chosen._replace(send=None if word == Override.INHERIT else word)
    return _prefer(tx, situation, chosen, f"Sending: {word}.")


def queue(tx: Transaction, argument: str, situation: Situation) -> Answer:
    chosen = chosen_in(session_of(tx, situation), situation)
    word = argument.strip().lower()
    if not word:
        return Answer(f"{count(situation.waiting, 'message')} waiting. Mode: {queue_mode(chosen, situation)}.")
    chosen = chosen._replace(queue=_chosen(QueueMode, word, "/queue"))
    return _prefer(tx, situation, chosen, f"Messages that come while it answers: {queue_mode(chosen, situation)}.")


def queue_mode(chosen: Preferences, situation: Situation) -> str:
    """Return the mode that holds, and where it comes from."""
    if chosen.queue:
        return f"{chosen.queue}, chosen here"
    return f"{situation.lane.queue_mode if situation.lane else DEFAULT}, by the settings"


def sending(chosen: Preferences, situation: Situation) -> str:
    """Return whether answers are sent, and why."""
    if chosen.send in (Override.ON, Override.OFF):
        return f"{chosen.send}, chosen here"
    return "on" if situation.lane is None or situation.lane.is_sent else "off, by the send policy"


def thinking(chosen: Preferences) -> str:
    return chosen.effort or DEFAULT


def verbosity(chosen: Preferences) -> str:
    return chosen.verbose or DEFAULT


def _prefer(tx: Transaction, situation: Situation, chosen: Preferences, told: str) -> Answer:
    if situation.session_id:
        tx.sessions.change(situation.session_id, model_config=encode(chosen))
    return Answer(told, Prefer(chosen))


def _chosen(choices: type[C], argument: str, command: str) -> C | None:
    word = argument.lower()
    if word == DEFAULT:
        return None
    if word not in list(choices):
        raise Invalid(f"{one_line(argument)!r:.60} is no level: {command} takes {_choices(choices)}.")
    return choices(word)


def _choices(choices: type[StrEnum]) -> str:
    return f"{', '.join(choices)} or {DEFAULT}"
