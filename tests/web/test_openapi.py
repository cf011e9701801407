"""The OpenAPI document says what the gateway takes and tells: somebody who only reads it calls, and is not deceived."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway_there import There, gateway_at
from torture_rounds import rounds
from waiting import DEADLINE

from segue.web.document import document
from segue.web.rpc.catalogue import METHODS

EXAMPLES, FEW_EXAMPLES = rounds(15, in_torture=40), rounds(8, in_torture=20)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    with gateway_at(tmp_path_factory.mktemp("there") / "home") as gateway:
        yield gateway


def test_every_method_is_in_the_document_with_what_it_takes() -> None:
    requests = document()["components"]["schemas"]["Request"]["oneOf"]
    assert [one["properties"]["method"]["const"] for one in requests] == list(METHODS)
    assert all(one["additionalProperties"] is False for one in requests)
    schemas = document()["components"]["schemas"]
    for method in METHODS.values():
        assert method.about.endswith("."), method.name
        assert (
            schemas[method.params.__name__ if method.params.__name__ in schemas else _long(method.params)][
                "additionalProperties"
            ]
            is False
        )


def _long(model: type) -> str:
    return f"{model.__module__}.{model.__qualname__}".replace(".", "__")


@pytest.mark.process
@pytest.mark.torture
def test_somebody_who_only_read_the_document_is_not_deceived(there: There, tmp_path: Path) -> None:
    """JSON-RPC says in its answer that something was wrong, so that no status is looked at for that."""
    phases = ("--phases", "examples,coverage,fuzzing", "-n", str(EXAMPLES))
    call_as_written(there, tmp_path, "negative_data_rejection", *phases, "--exclude-path-regex", "^/v1/")


@pytest.mark.process
@pytest.mark.torture
def test_somebody_who_only_read_what_openai_has_is_not_deceived(there: There, tmp_path: Path) -> None:
    """What items and messages must be is said in sentences, so that not everything of the right form is taken.

    Whoever calls without a token again and again is told so in another way after a while.
    """
    excluded = "positive_data_acceptance,ignored_auth,missing_required_header"
    phases = ("--phases", "fuzzing", "-n", str(FEW_EXAMPLES))
    call_as_written(there, tmp_path, excluded, *phases, "--include-path-regex", "^/v1/")


def call_as_written(there: There, folder: Path, excluded: str, *which: str) -> None:
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{there.url}/openapi.json", *which),
        *("-H", f"Authorization: Bearer {there.token}"),
        *("--seed", "1", "--exclude-checks", excluded, "--no-color"),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=5 * DEADLINE)
    assert done.returncode == 0, done.stdout[-8000:]
    assert "generated" in done.stdout
    assert "Traceback" not in there.log
