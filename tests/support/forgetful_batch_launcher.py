"""`segue` whose batches do not name what they ask by its id, which is the control of the tests that kill them."""

import uuid
from typing import Any

from obedient_model import Obedient

from segue.app import crew
from segue.cli import main
from segue.core.batches import Line, inbound_of
from segue.sessions import batching


def _forget_names() -> None:
    def forgetful(name: str, line: Line) -> Any:
        return inbound_of(name, line)._replace(message_id=uuid.uuid4().hex)

    setattr(batching, "inbound_of", forgetful)  # noqa: B010 - as a test does it


if __name__ == "__main__":
    setattr(crew, "ProviderModel", Obedient)  # noqa: B010
    setattr(crew, "warm_up", len)  # noqa: B010
    _forget_names()
    main()
