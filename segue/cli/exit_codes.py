"""What a command ends with. 0 is success; batch and the doctor say with 1 that not everything is well."""

from segue.core.errors import Invalid, SegueError, WrongState

FAILED = 1
"""The input was understood, and what it asks for was not done: not there, refused, in use, or a fault."""
BAD_INPUT = 2
"""The input cannot be taken as it is: an unknown command, option or value."""
OUR_FAULT = 70  # as sysexits.h has it
INTERRUPTED = 130


def exit_code(error: SegueError) -> int:
    """Return the code for what Segue says no to."""
    is_bad_input = isinstance(error, Invalid) and not isinstance(error, WrongState)
    return BAD_INPUT if is_bad_input else FAILED
