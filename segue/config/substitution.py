"""`${VAR}` and `${VAR:-default}` in the texts of a configuration; `$${` stands for a literal `${`."""

import re
from collections.abc import Mapping

from segue.config.kinds import Key, Problem

_REFERENCE = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\})?")


def substitute(value: object, environ: Mapping[str, str], key: Key = ()) -> object:
    """The value with every reference replaced; where a default is given, an empty variable counts as unset."""
    match value:
        case str():
            return _REFERENCE.sub(lambda reference: _meaning(reference, environ, key), value)
        case Mapping():
            return {name: substitute(item, environ, (*key, str(name))) for name, item in value.items()}
        case list() | tuple():
            return [substitute(item, environ, (*key, f"[{at}]")) for at, item in enumerate(value)]
    return value


def _meaning(reference: re.Match[str], environ: Mapping[str, str], key: Key) -> str:
    name, default = reference["name"], reference["default"]
    if reference[0] == "$${":
        return "${"
    if name is None:
        raise Problem(key, "has a ${ that begins neither ${VAR} nor ${VAR:-default}; write $${ for a literal one")
    if default is not None:
        return environ.get(name) or default
    if name not in environ:
        raise Problem(
            key, f"needs the environment variable {name}, which is not set; set it or write ${{{name}:-default}}"
        )
    return environ[name]
