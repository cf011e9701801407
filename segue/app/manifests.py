"""The platforms that come with Segue, as their manifests tell: what each is called, and what it has to be told."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import segue.platforms
from segue.core.policy import UNRESETTABLE


class Question(NamedTuple):
    """Something that a platform has to be told before it can be connected."""

    key: str
    """Of the platform's settings."""
    question: str
    variable: str
    """Of the environment, from which it can come as well."""
    secret: bool = False
    like: str = ""
    """A pattern that an answer fits."""


class Manifest(NamedTuple):
    name: str
    title: str
    extra: str
    asks: tuple[Question, ...]
    you: str = ""
    """How somebody says who they are there."""
    you_like: str = ""
    """A pattern that such an id fits."""


def asking_manifests() -> list[Manifest]:
    """Those of platforms that one has to be asked about, in the order of their names."""
    found = sorted(Path(segue.platforms.__path__[0]).glob("*/manifest.toml"))
    read = [_read(path) for path in found]
    return [one for one in read if one.asks]


def platform_names(configured: Iterable[str] = ()) -> frozenset[str]:
    """The names that a session can come from: what comes with Segue, and what the settings name."""
    folders = (path.parent.name for path in Path(segue.platforms.__path__[0]).glob("*/manifest.toml"))
    return frozenset({*UNRESETTABLE, *folders, *configured})


def unlikely_owners(owners: Iterable[str]) -> list[str]:
    """Of those who are called owners, the ones who cannot be anybody on a platform that comes with Segue."""
    patterns = {one.name: one.you_like for one in asking_manifests() if one.you_like}
    said = [(owner, *owner.partition(":")[::2]) for owner in owners]
    return [owner for owner, name, peer in said if name in patterns and not re.fullmatch(patterns[name], peer)]


def _read(path: Path) -> Manifest:
    said = tomllib.loads(path.read_text("utf-8"))
    asks = tuple(Question(**one) for one in said.get("ask", ()))
    return Manifest(said["name"], said["title"], said["extra"], asks, said.get("you", ""), said.get("you_like", ""))
