"""Matrix does as every adapter does, in plain and in encrypted rooms."""

import asyncio
from pathlib import Path

import pytest
from matrix_counterpart import MatrixCounterpart
from synapse_server import Synapse

from segue.testing.kit import Case, cases_for

CASES = [
    pytest.param(case, marks=pytest.mark.torture) if case.name in ("backlog", "odd event") else case
    for case in cases_for(MatrixCounterpart.cannot)
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "encrypted"])
def test_matrix_does_as_every_adapter_does(case: Case, is_encrypted: bool, synapse: Synapse, tmp_path: Path) -> None:
    asyncio.run(case.run(MatrixCounterpart(synapse, tmp_path, is_encrypted=is_encrypted)))
