"""Turns that nobody is to see: what the agent is asked in them, and which answers are none."""

NO_REPLY = "NO_REPLY"

FLUSH_REQUEST = f"""\
[The person does not see this. This conversation is about to be summarised, and you will be told the summary alone. If
something in it should outlast it, write it down with the memory tool now: what the person wants remembered, decisions,
names, how things are done. List your notes first, and do not write anything twice. Then answer {NO_REPLY}.]"""

FAREWELL_REQUEST = f"""\
[The person does not see this. This conversation is over: what is said next begins a new one, in which you are told
nothing of this one. If something in it should outlast it, write it down with the memory tool now: what the person wants
remembered, decisions, names, how things are done, what is left to do. List your notes first, and do not write anything
twice. Then answer {NO_REPLY}.]"""


def is_silent(text: str) -> bool:
    """Whether an answer says that there is nothing to be said."""
    words = text.strip().strip(".!\"'*`")
    return not words or words.startswith(NO_REPLY) or words.endswith(NO_REPLY)


def may_be_silent(beginning: str) -> bool:
    """Whether an answer that begins so may turn out to be none."""
    words = beginning.strip().strip(".!\"'*`")
    return words.startswith(NO_REPLY) or NO_REPLY.startswith(words)
