"""`${VAR}` and `${VAR:-default}` in the texts of a configuration; `$${` stands for a literal `${`."""

import re
from collections.abc import Mapping

from segue.config.kinds import Key, Problem

_UNSET = re.compile("\x1aunset:([A-Za-z0-9_]+)\x1a")
_REFERENCE = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\})?")


def substitute(value: object, environ: Mapping[str, str], key: Key = (), *, later: bool = False) -> object:
    """The value with every reference replaced; where a default is given, an empty variable counts as unset.

    What is needed only `later` may be unset until then: `unset_in` says which variable it is.
    """
    match value:
        case str():
            return _REFERENCE.sub(lambda reference: _meaning(reference, environ, key, later=later), value)
        case Mapping():
            return {name: substitute(item, environ, (*key, str(name)), later=later) for name, item in value.items()}
        case list() | tuple():
            return [substitute(item, environ, (*key, f"[{at}]"), later=later) for at, item in enumerate(value)]
    return value


def unset_in(value: object) -> str | None:
    """A variable that something needs and that is not set."""
    match value:
        case str():
            found = _UNSET.search(value)
            return found[1] if found else None
        case Mapping():
            return next(filter(None, map(unset_in, value.values())), None)
        case list() | tuple():
            return next(filter(None, map(unset_in, value)), None)
    return None


def _meaning(reference: re.Match[str], environ: Mapping[str, str], key: Key, *, later: bool) -> str:
    name, default = reference["name"], reference["default"]
    if reference[0] == "$${":
        return "${"
    if name is None:
        raise Problem(key, "has a ${ that begins neither ${VAR} nor ${VAR:-default}; write $${ for a literal one")
    if default is not None:
        return environ.get(name) or default
    if name not in environ and later:
        return f"\x1aunset:{name}\x1a"
    if name not in environ:
        raise Problem(key, f"needs the environment variable {name}, which is not set")
    return environ[name]
