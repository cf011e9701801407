"""Commands that programs give in lanes: the same that people give there, carried out by the same hands."""

import asyncio

from segue.sessions.responding import Outcome
from segue.web.rpc.method import Caller
from segue.web.rpc.troubles import NOT_NOW, Refused
from segue.web.speaking import OUTSIDE, Speech, inbound_from, say, wait_for

LONGEST_COMMAND = 120.0
"""Seconds after which a command is not waited for; it is carried out all the same."""


async def carried_out(caller: Caller, lane_key: str, command: str) -> str:
    """Give a command in a lane; what is told when it has been carried out."""
    premises = caller.premises
    with premises.onlookers.watching(lane_key) as onlooker:
        async with caller.order:
            entry = await say(premises, inbound_from(caller.credential, Speech(OUTSIDE, command, lane=lane_key)))
        try:
            async with asyncio.timeout(LONGEST_COMMAND):
                outcome = await wait_for(premises, entry, onlooker)
        except TimeoutError:
            sentence = f"{command!r} has not been carried out yet; it will be, when its turn comes."
            raise Refused(NOT_NOW, sentence) from None
    return told(outcome)


def told(outcome: Outcome) -> str:
    return "\n\n".join(filter(None, [outcome.text, *outcome.notices])) or outcome.entry.reason or ""
