"""Settings as the agent reads them."""

from segue.config import Settings
from segue.core.pruning import Pruning, Rules


def rules_of(settings: Settings) -> Rules:
    """When a conversation is made shorter, and how."""
    said = settings.pruning
    pruning = Pruning(said.keep_last, said.soft, said.hard, said.min_chars, said.max_chars, said.head, said.tail)
    return Rules(settings.compression.threshold, settings.compression.protect_last_n, pruning)
