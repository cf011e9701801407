"""`/sethome` and `/handoff`: where a platform is at home, and how a conversation goes there."""

from segue.core.errors import Invalid, InvalidSession
from segue.core.text import one_line
from segue.ports.store import Transaction
from segue.sessions.commanding.acts import Answer, Handed, Situation, session_of
from segue.sessions.handing import get_home, hand_over, set_home, take_out

_TERMINAL = "cli"


def sethome(tx: Transaction, _argument: str, situation: Situation) -> Answer:
    if situation.route is None:
        raise Invalid("The terminal is no home channel: type /sethome in a chat of a platform.")
    set_home(tx, situation.route)
    return Answer(f"This is the home channel of {one_line(situation.route.platform)} now.")


def handoff(tx: Transaction, argument: str, situation: Situation) -> Answer:
    session = session_of(tx, situation)
    if session is None:
        raise InvalidSession("There is nothing to hand over: nothing has been said yet.")
    if not argument:
        raise Invalid("/handoff takes the name of a platform, such as /handoff telegram.")
    platform = argument.lower()
    if platform == _TERMINAL:
        if situation.route is None:
            raise Invalid("You are at the terminal already.")
        take_out(tx, session, situation.now)
        told = f"This conversation goes on at the terminal, under its id.\n{one_line(session.id)}"
        return Answer(told, Handed(session.id))
    hand_over(tx, session, get_home(tx, platform, situation.homes), situation.keys, situation.now)
    return Answer(f"This conversation goes on in the home channel of {one_line(platform)}.", Handed(session.id))
