"""The sorts of value a setting can have. A kind reads what was written, or says what it must be."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from enum import StrEnum
from importlib import import_module
from types import MappingProxyType
from typing import Any

from segue.config.masking import HIDDEN, masked, quoted
from segue.config.zones import HOST, is_known

Key = tuple[str, ...]

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,12})?")
_FLAGS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


class Problem(Exception):
    """What is wrong at a key; `says` completes the sentence that the key begins."""

    def __init__(self, key: Key, says: str) -> None:
        super().__init__(key, says)
        self.key, self.says = key, says


class UnknownName(Problem):
    """A name that no setting has; `known` are those that could stand in its place."""

    def __init__(self, key: Key, value: object, known: tuple[str, ...]) -> None:
        super().__init__(key, "is no setting")
        self.value, self.known = value, known


class Kind(ABC):
    """One sort of value; `allowed` ends the sentence "it must be …". Plain classes: dataclasses are slow to make."""

    allowed: str

    @abstractmethod
    def read(self, value: object, key: Key) -> Any:
        """The value as the program uses it; Problem when it is of another kind."""

    def plain(self, value: Any) -> object:
        """The value as it is written down."""
        return value

    def misfit(self, value: object, key: Key) -> Problem:
        return Problem(key, f"is {quoted(value)}, but must be {self.allowed}")


class Flag(Kind):
    allowed = "true or false"

    def read(self, value: object, key: Key) -> bool:
        flag = _FLAGS.get(str(value).strip().lower()) if isinstance(value, str | bool) or value in (0, 1) else None
        if flag is None:
            raise self.misfit(value, key)
        return flag


class Number(Kind):
    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most
        self.allowed = f"a whole number from {least} to {most}"

    def read(self, value: object, key: Key) -> int:
        number = int(value) if isinstance(value, str) and _INTEGER.fullmatch(value.strip()) else value
        if isinstance(number, bool) or not isinstance(number, int) or not self.least <= number <= self.most:
            raise self.misfit(value, key)
        return number


class Amount(Kind):
    """A number that may have a fraction, and is not negative."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.allowed = f"a number from 0 to {most:g}"

    def read(self, value: object, key: Key) -> float:
        number = float(value) if isinstance(value, str) and _DECIMAL.fullmatch(value.strip()) else value
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= self.most:
            raise self.misfit(value, key)
        return float(number)


class Choice(Kind):
    def __init__(self, choices: type[StrEnum]) -> None:
        *others, last = choices
        self.choices = choices
        self.allowed = f"{', '.join(others)} or {last}"

    def read(self, value: object, key: Key) -> StrEnum:
        if not isinstance(value, str) or value not in set(self.choices):
            raise self.misfit(value, key)
        return self.choices(value)

    def plain(self, value: StrEnum) -> str:
        return str(value)


class Text(Kind):
    """Text that passes a check, which `allowed` describes."""

    def __init__(self, allowed: str, check: Callable[[str], bool]) -> None:
        self.allowed, self.check = allowed, check

    def read(self, value: object, key: Key) -> str:
        if not isinstance(value, str) or not self.check(value):
            raise self.misfit(value, key)
        return value

    def plain(self, value: str) -> str:
        return masked(value)


class Secret(Text):
    """Text that is never shown."""

    def plain(self, value: str) -> str:
        return HIDDEN if value else ""

    def misfit(self, value: object, key: Key) -> Problem:  # noqa: ARG002 - it is not to be shown
        return Problem(key, f"must be {self.allowed}")


class Listing(Kind):
    """A list of values of one kind."""

    def __init__(self, of: Kind) -> None:
        self.of = of
        self.allowed = f"a list, each item {of.allowed}"

    def read(self, value: object, key: Key) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise self.misfit(value, key)
        return tuple(self.of.read(item, (*key, f"[{at}]")) for at, item in enumerate(value))

    def plain(self, value: tuple[Any, ...]) -> list[object]:
        return [self.of.plain(item) for item in value]


class Table(Kind):
    """Values of one kind, each under a name of the user's choice."""

    def __init__(self, names: Text, of: Kind, allowed: str) -> None:
        self.names, self.of, self.allowed = names, of, allowed

    def read(self, value: object, key: Key) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self.misfit(value, key)
        for name in value:
            if not self.names.check(name):
                raise Problem(key, f"has the name {quoted(name)}, but a name there must be {self.names.allowed}")
        said = {name: item for name, item in value.items() if item is not None}
        return MappingProxyType({name: self.of.read(item, (*key, name)) for name, item in said.items()})

    def plain(self, value: Mapping[str, Any]) -> dict[str, object]:
        return {name: self.of.plain(item) for name, item in value.items()}


class Section(Kind):
    """Settings that stand together under one name: a dataclass whose fields carry their kinds."""

    allowed = "a mapping"

    def __init__(self, of: type[Any]) -> None:
        self._of = of

    @property
    def of(self) -> type[Any]:
        return self._of

    def read(self, value: object, key: Key, **given: object) -> Any:
        if not isinstance(value, Mapping):
            raise self.misfit(value, key)
        kinds, attributes = kinds_of(self.of), {called(one): one.name for one in fields(self.of)}
        for name, item in value.items():
            if name not in kinds:
                raise UnknownName((*key, name), item, tuple(kinds))
            if item is not None:  # a key with nothing behind it says nothing
                given[attributes[name]] = kinds[name].read(item, (*key, name))
        return self.of(**given)

    def plain(self, value: Any) -> dict[str, object]:
        said = {name: (kind, getattr(value, name)) for name, kind in kinds_of(self.of).items()}
        return {name: kind.plain(item) for name, (kind, item) in said.items() if item is not None}


class Later(Section):
    """A section that few configurations have. It is loaded when one has it; dataclasses are slow to make."""

    def __init__(self, module: str, name: str) -> None:
        self._place = (module, name)

    @property
    def section(self) -> Section:
        module, name = self._place
        found: Section = getattr(import_module(module), name)
        return found

    @property
    def of(self) -> type[Any]:
        return self.section.of

    def read(self, value: object, key: Key, **given: object) -> Any:
        return self.section.read(value, key, **given)

    def plain(self, value: Any) -> dict[str, object]:
        return self.section.plain(value)


class Zone(Kind):
    allowed = f"{HOST}, or a time zone this system knows, like Europe/Berlin"

    def read(self, value: object, key: Key) -> str:
        if not isinstance(value, str) or not is_known(value):
            raise self.misfit(value, key)
        return value


def called(one: "Field[Any]") -> str:
    """The name of a setting. A field that begins with `_` holds what was said, and a property of its name the rest."""
    return one.name.removeprefix("_")


def kinds_of(section: type[Any]) -> dict[str, Kind]:
    """The settings of a section by name."""
    return {called(one): one.metadata["kind"] for one in fields(section) if "kind" in one.metadata}
