"""`segue` with a model that does what it is told, in a process that may be cut off: matrix_launcher.py gateway run

SEGUE_TEST_DIES_AT=after_sent:2 ends it without a warning when that point is passed for the second time.
SEGUE_TEST_PAUSE=0.1 is how many seconds a platform that has failed is left alone at first, and then ten times at most.
SEGUE_TEST_FORGETS_KEYS=1 takes away what keeps a message single that is sent twice.
"""

import os
import signal
import uuid

from obedient_model import Obedient

from segue.app import crew
from segue.cli import main
from segue.gateway import connecting
from segue.platforms.matrix import platform
from segue.ports.failpoints import Point, arm


def _die_at(name: str, nth: int) -> None:
    passed = 0

    def act(point: Point) -> None:
        nonlocal passed
        passed += point == name
        if point == name and passed == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    arm(act)


if __name__ == "__main__":
    setattr(crew, "ProviderModel", Obedient)  # noqa: B010 - as a test does it
    setattr(crew, "warm_up", len)  # noqa: B010
    if place := os.environ.get("SEGUE_TEST_DIES_AT"):
        _die_at(place.partition(":")[0], int(place.partition(":")[2]))
    if pause := os.environ.get("SEGUE_TEST_PAUSE"):
        connecting.FIRST_PAUSE = connecting.KEPT_SECONDS = float(pause)
        connecting.LONGEST_PAUSE = 10 * float(pause)
    if os.environ.get("SEGUE_TEST_FORGETS_KEYS"):
        setattr(platform, "transaction_of", lambda _key: uuid.uuid4().hex)  # noqa: B010
    main()
