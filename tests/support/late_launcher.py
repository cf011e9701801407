"""`segue` with a model that does what it is told, by a clock that a test can put forward:

    SEGUE_TEST_LATER=FILE python late_launcher.py gateway run

FILE holds by how many seconds it is later than it is.
"""

import os
import time
from pathlib import Path

_true_time = time.time


def _later() -> float:
    try:
        return _true_time() + float(Path(os.environ["SEGUE_TEST_LATER"]).read_text())
    except (OSError, ValueError):
        return _true_time()


if __name__ == "__main__":
    time.time = _later

    from obedient_model import Obedient

    from segue.app import crew
    from segue.cli import main

    setattr(crew, "ProviderModel", Obedient)  # noqa: B010 - as a test does it
    setattr(crew, "warm_up", len)  # noqa: B010
    main()
