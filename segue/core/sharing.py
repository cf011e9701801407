"""Which messages share a lane, as somebody can choose."""

from enum import StrEnum


class DmScope(StrEnum):
    """Whose direct messages share a lane."""

    MAIN = "main"
    PER_PEER = "per-peer"
    PER_CHANNEL_PEER = "per-channel-peer"
    PER_ACCOUNT_CHANNEL_PEER = "per-account-channel-peer"
