"""Somebody's own agent: the function that `agent.entry` names."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from segue.app.others import agent_of_others
from segue.core.errors import Invalid


def load_entry(entry: str, home: Path) -> Callable[..., object]:
    """The function. Its module is looked for where Python looks, and then in the home folder."""
    if str(home) not in sys.path:
        sys.path.append(str(home))
    module, colon, name = entry.partition(":")
    if not colon:
        return _callable(entry, agent_of_others(entry))
    try:
        found: object = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise Invalid(_unloadable(entry, module, home, error)) from error
    return _callable(entry, found)


def _callable(entry: str, found: object) -> Callable[..., object]:
    if found is None:
        raise Invalid(
            f"agent.entry is {entry}, and no package that is installed here has an agent of that name; a"
            " function is written with its module, like mypackage.agents:answer."
        )
    if not callable(found):
        raise Invalid(f"agent.entry is {entry}, which is no function.")
    return found


def _unloadable(entry: str, module: str, home: Path, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and module.startswith(error.name):
        return (
            f"agent.entry is {entry}, and there is no module {error.name}: put it into {home}, install it, or name its"
            " folder in PYTHONPATH."
        )
    said = str(error) if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
    return f"agent.entry is {entry}, which cannot be loaded: {said.rstrip('.')}."
