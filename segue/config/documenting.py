"""What a user reads about settings: those in force, the template of `config.yaml`, and the reference page."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, cast

from segue.config.aliases import ALIASES, WITHOUT_EFFECT
from segue.config.kinds import Section, Table, called, kinds_of
from segue.config.settings import CONFIG_FILE, Settings
from segue.config.zones import HOST
from segue.core.policy import ResetMode

_TEMPLATE = """\
# Segue's settings. Every line below shows a default: to change one, remove the # at its beginning,
# and that of the section above it. Texts may use ${VAR} and ${VAR:-default} from the environment.
# `segue config check` says whether the file is right.
"""

_PAGE = f"""\
# Configuration

Segue reads `{CONFIG_FILE}` in its home, `~/.segue` or what the environment variable `SEGUE_HOME` says. Everything has a
default, so the file may be missing. `segue config path` says where it is, `segue config show` what is in force, and
`segue config check` whether the file is right. A key that does not exist or a value that is not allowed is an error, a
key with nothing behind it says nothing, and a file larger than 1 MiB is refused.

```yaml
owners: ["telegram:123456789"]
session:
  reset:
    mode: daily
    at_hour: ${{RESET_HOUR:-4}}
  reset_by_type:
    group: {{mode: idle, idle_minutes: 120}}
```

This page is made from the settings in the program by `scripts/config_docs.py`.
"""

_SUBSTITUTION = """\
## Variables

A text may take parts from the environment, as often as needed:

| written | stands for |
|---|---|
| `${VAR}` | the value of the variable `VAR`; an error when it is not set |
| `${VAR:-default}` | the same, or `default` when it is not set or empty |
| `$${` | a literal `${` |

Numbers and flags may come from a variable too: `at_hour: ${HOUR:-4}`. Inside brackets YAML wants quotation marks:
`owners: ["telegram:${OWNER}"]`. Names of keys are never substituted.
"""

_PROVIDERS = """\
providers:
  mine:
    kind: openai
    base_url: https://models.example.org/v1
    api_key: ${MINE_API_KEY}
    models: [some-model, small-model]
"""
_ABOUT_PROVIDERS = (
    "`kind` is `openai` or `anthropic`; the address of the first is what stands before `/chat/completions`, mostly with"
    " `/v1` at its end, and that of the second stands without `/v1`."
)
_PLACES = f"""\
## Places with models

```yaml
{_PROVIDERS}```

{_ABOUT_PROVIDERS} A server on this machine needs no `api_key`. Any of its models can be named in full:
`model: mine/some-model`, `-m mine/some-model`, or an alias for that. Those in `models`, and those that another setting
names or a server on this machine lists, can be named alone, too.
"""

_TIME_ZONES = """\
## Time zones

`host` is the zone that the variable `TZ` names or, without it, the one in `/etc/localtime`. Both follow changes of
the clock. Where neither can be read, Segue asks the C library of the system, which follows them as well. Any other
value is an IANA name such as `Europe/Berlin`; the names come from the system's time zone database or from the Python
package tzdata.
"""

_ALIASES = """\
## Aliases

Files written for other programs may use these names; `*` stands for any name. `segue config check` lists those that
occur. The same setting under two names is an error. `session.idle_minutes` without `session.reset` and
`session.reset_by_type` also means the mode idle.

| written | read as |
|---|---|
"""


_TABLES = ("access", "platforms", "agents")
"""With a section under each name."""


class _Group(NamedTuple):
    """A section as a reader sees it: its own settings, without those of the sections in it."""

    key: tuple[str, ...]
    meaning: str
    rows: list[tuple[str, str, object, str]]


def shown(settings: Settings) -> dict[str, Any]:
    """The settings in force, ready for JSON and free of secrets; writing them down again changes nothing."""
    plain = cast(dict[str, Any], Section(Settings).plain(settings))
    policy = settings.reset_policies.default
    plain["session"]["reset"] = {
        "mode": str(policy.mode),
        "at_hour": policy.at_hour,
        # Beside daily an idle time would mean both.
        "idle_minutes": None if policy.mode is ResetMode.DAILY else int(policy.idle.total_seconds() // 60),
        "notify": policy.notify,
        "timezone": settings.session.reset.timezone or HOST,
    }
    return plain


def template() -> str:
    """A `config.yaml` in which everything is commented out."""
    lines = [_TEMPLATE]
    for group in _groups():
        indent = "  " * len(group.key)
        if group.key:
            lines += [
                "" if len(group.key) == 1 else "#",
                *_comment(group.meaning, indent[2:]),
                f"#{indent[2:]}{group.key[-1]}:",
            ]
        for name, _, default, meaning in group.rows:
            lines += [*_comment(meaning, indent), *_example(name, group.key), f"#{indent}{name}: {_literal(default)}"]
    return "\n".join(lines) + "\n"


def _example(name: str, above: tuple[str, ...]) -> list[str]:
    if (*above, name) != ("providers",):
        return []
    return [*_comment(_ABOUT_PROVIDERS, ""), *(f"#   # {line}" for line in _PROVIDERS.splitlines())]


def _comment(meaning: str, indent: str) -> list[str]:
    """A comment that still is one when the # at the beginning of each line of a section is removed."""
    from textwrap import wrap  # only `segue init` needs it

    start = f"#{indent}# " if indent else "# "
    return wrap(meaning, 100, initial_indent=start, subsequent_indent=start, break_on_hyphens=False)


def page() -> str:
    """The reference page, in Markdown."""
    parts = [_PAGE, *map(_described, _groups()), *map(_described, _entries()), _PLACES, _SUBSTITUTION, _TIME_ZONES]
    aliases = "".join(f"| `{alias}` | `{name}` |\n" for alias, name in ALIASES.items())
    ignored = "".join(
        f"| `{name}{f': {only}' if only else ''}` | – (no effect) |\n" for name, only in WITHOUT_EFFECT.items()
    )
    return "\n".join([*parts, _ALIASES + aliases + ignored])


def _described(group: _Group) -> str:
    title = f"## {'.'.join(group.key)}" if group.key else "## Top level"
    head = f"{title}\n\n{group.meaning}\n\n| key | value | default | meaning |\n|---|---|---|---|\n"
    rows = (
        f"| `{'.'.join((*group.key, name))}` | {allowed} | `{_literal(default)}` | {meaning} |\n"
        for name, allowed, default, meaning in group.rows
    )
    return head + "".join(rows)


def _groups() -> Iterator[_Group]:
    yield from _walk(Settings, (), "Settings outside any section.", shown(Settings(Path())))


def _entries() -> Iterator[_Group]:
    """What stands under each name of a table, for the tables whose entries are described nowhere else."""
    for table in _TABLES:
        kind = kinds_of(Settings)[table]
        assert isinstance(kind, Table)
        assert isinstance(kind.of, Section)
        of, defaults = kind.of.of, kind.of.plain(kind.of.of())
        rows = [
            (called(one), one.metadata["kind"].allowed, defaults.get(called(one), "–"), one.metadata["help"])
            for one in fields(of)
            if one.metadata
        ]
        yield _Group((table, "*"), str(of.__doc__), rows)


def _walk(section: type[Any], key: tuple[str, ...], meaning: str, defaults: dict[str, Any]) -> Iterator[_Group]:
    documented = [(called(one), one.metadata["kind"], one.metadata["help"]) for one in fields(section) if one.metadata]
    rows = [
        (name, kind.allowed, defaults[name], meaning)
        for name, kind, meaning in documented
        if not isinstance(kind, Section)
    ]
    yield _Group(key, meaning, rows)
    for name, kind, meaning in documented:
        if isinstance(kind, Section):
            yield from _walk(kind.of, (*key, name), meaning, defaults[name])


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
