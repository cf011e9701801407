"""How a command ended, in words."""

import signal


def ending(exit_code: int | None) -> str:
    """An exit code is negative when a signal ended a command."""
    if exit_code is None:
        return "it could not be stopped"
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"ended by signal {-exit_code}"
