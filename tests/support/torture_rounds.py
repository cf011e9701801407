"""How long the tests go on that could go on for ever."""

import os


def rounds(usual: int, *, in_torture: int) -> int:
    """So many here, and more when `just torture` asks for it."""
    return in_torture if os.environ.get("SEGUE_TORTURE") else usual
