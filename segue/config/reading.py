"""From `config.yaml` and the environment to settings: substitute variables, translate aliases, read each value."""

import os
from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from stat import S_ISREG

from segue.config.aliases import ALIASES, Translation, translate
from segue.config.kinds import Key, Problem, Section, UnknownName, kinds_of
from segue.config.masking import dotted
from segue.config.settings import CONFIG_FILE, Settings
from segue.config.substitution import substitute
from segue.config.zones import HOST, zone_of
from segue.core.errors import InvalidSettings
from segue.core.policy import UNRESETTABLE
from segue.core.sharing import DmScope

_LARGEST = 1 << 20  # bytes
_LONGEST_NAME = 100
_CONNECTED = "platforms"
"""What only a gateway needs, whose secrets need not be everywhere."""
_DEFAULT_HOME = "~/.segue"


def home_from(environ: Mapping[str, str]) -> Path:
    """The home folder, absolute: SEGUE_HOME, or `~/.segue`."""
    wanted = Path(environ.get("SEGUE_HOME") or _DEFAULT_HOME)
    if wanted.parts[:1] == ("~",) and environ.get("HOME"):
        wanted = Path(environ["HOME"], *wanted.parts[1:])
    try:
        return wanted.expanduser().absolute()
    except RuntimeError as error:
        raise InvalidSettings(f"{wanted} is in nobody's home; set SEGUE_HOME to an absolute path.") from error


def from_environment() -> Settings:
    """The settings of whoever runs this process; what is wrong with them is said with the name of the file."""
    try:
        return load(home_from(os.environ), os.environ)
    except InvalidSettings as error:
        file = str(config_file())
        raise error if file in str(error) else InvalidSettings(f"In {file}, {error}") from error


def notes_from_environment() -> list[str]:
    """What `check` says of the same settings."""
    return check(home_from(os.environ), os.environ)


def config_file() -> Path:
    """Where the configuration is, or would be, whatever it says."""
    return home_from(os.environ) / CONFIG_FILE


def token_of_environment() -> str:
    """The token for a gateway elsewhere."""
    return os.environ.get("SEGUE_TOKEN", "").strip()


def page_like_git() -> None:
    """Let the pager show colours, and not take the screen for what fits on it, unless somebody set it up already."""
    os.environ.setdefault("LESS", "FRX")
    os.environ.setdefault("LESSCHARSET", "utf-8")


def zone_here() -> tzinfo:
    """The zone of this machine, which knows its clock changes."""
    return zone_of(HOST, os.environ.get("TZ"))


def wants_colour() -> bool:
    """Whether the terminal may be coloured."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def wanted_columns() -> int | None:
    """How wide the terminal is to be taken for, when somebody said so."""
    said = os.environ.get("COLUMNS", "")
    return int(said) if said.isdecimal() and int(said) else None


def environment_of_models() -> dict[str, str]:
    """The variables that say where models are, and with which keys."""
    return {name: value for name, value in os.environ.items() if name.endswith(("_API_KEY", "_BASE_URL"))}


def environment_of_tools() -> dict[str, str]:
    """All variables; which of them a tool hands on is its own concern."""
    return dict(os.environ)


def load(home: Path, environ: Mapping[str, str]) -> Settings:
    """The settings of a home; the defaults when it has no `config.yaml`."""
    return settings_from(_written(home / CONFIG_FILE), home, environ)


def check(home: Path, environ: Mapping[str, str]) -> list[str]:
    """What is worth knowing about a configuration that is valid: aliases, and settings that change nothing."""
    settings, translation = _read(_written(home / CONFIG_FILE), home, environ)
    return translation.notes + _advice(settings)


def settings_from(raw: Mapping[str, object], home: Path, environ: Mapping[str, str]) -> Settings:
    """The settings that a mapping as in `config.yaml` stands for."""
    return _read(raw, home, environ)[0]


def _read(raw: Mapping[str, object], home: Path, environ: Mapping[str, str]) -> tuple[Settings, Translation]:
    translation = Translation({}, [], {})
    try:
        substituted = {
            name: substitute(value, environ, (str(name),), later=name == _CONNECTED) for name, value in raw.items()
        }
        translation = translate(substituted)
        settings: Settings = Section(Settings).read(translation.settings, (), home=home, tz=environ.get("TZ"))
        _refuse_shared_ids(settings)
    except UnknownName as unknown:
        raise InvalidSettings(_unknown(unknown, translation)) from unknown
    except Problem as problem:
        raise InvalidSettings(f"{dotted(translation.as_written(problem.key))} {problem.says}.") from problem
    return settings, translation


def _written(file: Path) -> dict[str, object]:
    text = _text_of(file)
    if all(line.lstrip()[:1] in ("", "#") for line in text.splitlines()):
        return {}  # nothing but comments, as `segue init` leaves it: no need to load YAML
    from segue.config.parsing import parse

    return parse(text, str(file))


def _text_of(file: Path) -> str:
    try:
        if not S_ISREG(file.stat().st_mode):
            raise InvalidSettings(f"{file} is no file.")
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InvalidSettings(f"{file} cannot be read: {error.strerror}.") from error
    if len(data) > _LARGEST:
        raise InvalidSettings(f"{file} is larger than 1 MiB, which is more than a configuration needs.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidSettings(f"{file}, line {line}: this is not UTF-8 text.") from error


def _refuse_shared_ids(settings: Settings) -> None:
    holders: dict[str, str] = {}
    for name, ids in settings.session.identity_links.items():
        for one in ids:
            if holders.setdefault(one, name) != name:
                raise Problem(("session", "identity_links"), f"gives {one} to both {holders[one]} and {name}")


def _advice(settings: Settings) -> list[str]:
    advice = [
        f"session.reset_by_platform.{name} has no effect: {name} never resets by itself."
        for name in settings.session.reset_by_platform
        if name in UNRESETTABLE
    ]
    if settings.session.dm_scope is DmScope.MAIN and not settings.owners:
        advice.append("session.dm_scope is main but owners is empty, so nobody's direct messages go to the main lane.")
    advice += [
        f"access.{name}.dm is open: everybody who finds your agent there can talk to it."
        for name, rules in settings.access.items()
        if rules.dm == "open"
    ]
    advice += [
        f'access.{name}.groups has "*": everybody in every group that your agent is in can talk to it.'
        for name, rules in settings.access.items()
        if "*" in rules.groups
    ]
    return advice


def _unknown(unknown: UnknownName, translation: Translation) -> str:
    """The sentence about an unknown key, with the key that was probably meant."""
    key = unknown.key
    if ".".join(key) in _names(Settings):
        hint = "write sections inside each other, without dots."
    elif meant := _meant(key, unknown.known):
        hint = f"did you mean {meant}?"
    else:
        key = _innermost(key, unknown.value)
        shallow = key == unknown.key
        hint = f"known there: {', '.join(unknown.known)}." if shallow else "`segue config show` lists them all."
    return f"{dotted(translation.as_written(key))} is no setting; {hint}"


def _meant(key: Key, known: tuple[str, ...]) -> str | None:
    from difflib import get_close_matches  # only a mistake needs it

    *above, name = key
    name = name[:_LONGEST_NAME]  # what is longer resembles nothing, slowly
    here = {one: dotted((*above, one)) for one in known} | {
        alias.rpartition(".")[2]: one for alias, one in ALIASES.items() if alias.rpartition(".")[0] == ".".join(above)
    }
    if near := get_close_matches(name, here, 1, 0.7):
        return here[near[0]]
    everywhere = {one.rpartition(".")[2]: one for one in _names(Settings)}
    near = get_close_matches(name, everywhere, 1, 0.8)
    return everywhere[near[0]] if near else None


def _names(section: type, above: Key = ()) -> list[str]:
    names = []
    for name, kind in kinds_of(section).items():
        names.append(".".join((*above, name)))
        if isinstance(kind, Section):
            names += _names(kind.of, (*above, name))
    return names


def _innermost(key: Key, value: object) -> Key:
    while isinstance(value, Mapping) and value:
        name, value = next(iter(value.items()))
        key = (*key, name)
    return key
