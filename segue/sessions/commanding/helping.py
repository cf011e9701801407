"""`/help`: what can be typed."""

from segue.core.commands import Spec, Unknown, find_spec, known, near
from segue.core.errors import Invalid
from segue.core.text import one_line, shorten
from segue.ports.store import Transaction
from segue.sessions.commanding.acts import Answer, Situation
from segue.sessions.commanding.wording import table

_SHOWN = 32


def help_(_tx: Transaction, argument: str, situation: Situation) -> Answer:
    if not argument:
        return Answer(_overview(list(known(in_terminal=situation.in_terminal))))
    spec = find_spec(argument, in_terminal=situation.in_terminal)
    if spec is None:
        name = argument.removeprefix("/").lower()
        raise Invalid(unknown(Unknown(name, near(name, situation.in_terminal))))
    also = f" Also: {', '.join(f'/{alias}' for alias in spec.aliases)}." if spec.aliases else ""
    return Answer(f"{spec.shown}: {spec.help}.\n{spec.more}{also}\nFor example: {spec.example}")


def unknown(said: Unknown) -> str:
    """What somebody is told who typed what looks like a command."""
    if find_spec(said.name, in_terminal=False) and not find_spec(said.name):
        return f"/{said.name} is for chats on platforms, where a gateway answers; the terminal needs none."
    hint = f"did you mean /{said.near}?" if said.near else "/help shows those there are."
    return f"There is no command /{shorten(one_line(said.name), _SHOWN)}; {hint}"


def _overview(specs: list[Spec]) -> str:
    width = max(len(spec.shown) for spec in specs)
    groups = dict.fromkeys(spec.group for spec in specs)
    return "\n".join(
        f"{group}\n" + table((f"  {spec.shown}".ljust(width + 2), spec.help) for spec in specs if spec.group == group)
        for group in groups
    )
