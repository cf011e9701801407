"""Where the gateway listens for programs, unless somebody says otherwise."""

from pathlib import Path

import pytest

from segue import config
from segue.listening.bodies import DEEPEST, MOST_BYTES, Refusal, read_body


def test_programs_are_listened_to_on_this_machine_alone(tmp_path: Path) -> None:
    assert config.load(tmp_path, {}).gateway.host == "127.0.0.1"


def test_every_door_reads_bodies_of_one_depth_and_size() -> None:
    assert (DEEPEST, MOST_BYTES) == (64, 1_048_576)
    assert read_body(b"[" * DEEPEST + b"]" * DEEPEST)
    with pytest.raises(Refusal, match="64 levels"):
        read_body(b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1))
