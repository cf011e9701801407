"""How many examples a property is tried with: enough for every change, and many more under `just torture`."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from torture_rounds import rounds

Test = TypeVar("Test", bound=Callable[..., Any] | type)


def examples(usual: int, *, in_torture: int, **more: Any) -> Callable[[Test], Test]:
    """As `settings(max_examples=…)`, for a test that is tried with more examples under `just torture`."""

    def decorate(test: Test) -> Test:
        return also_in_torture(settings(max_examples=rounds(usual, in_torture=in_torture), **more)(test))

    return decorate


def also_in_torture(test: Test) -> Test:
    """A test that is one of `just check`, and selected by `just torture` as well."""
    return pytest.mark.torture(test) if os.environ.get("SEGUE_TORTURE") else test
