"""Data for programs: JSON in one spelling."""

import json
from typing import Any

from segue.core.text import escaped


def dumps(value: Any) -> str:
    """The one spelling of a value, so that equal sessions are equal bytes, and harmless ones in a terminal."""
    return escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
