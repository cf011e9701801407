"""A group of commands whose modules are imported only when one of them runs."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

Place = tuple[str, str, str]
"""Module, attribute, and the one line of help that a listing shows without importing it."""


class LazyGroup(click.Group):
    def __init__(self, *args: Any, commands_in: Mapping[str, Place], default: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._places = commands_in
        self._default = default
        """The command that options alone are for, as in `segue sessions --json`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_option = bool(args) and args[0].startswith("-") and args[0] not in self.get_help_option_names(ctx)
        return super().parse_args(ctx, [self._default, *args] if self._default and is_option else args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self._places, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._places:
            return super().get_command(ctx, cmd_name)
        module, attribute, _ = self._places[cmd_name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            near = self._meant(ctx, name)
            hint = f"did you mean '{near}'?" if near else f"`{ctx.command_path} --help` lists them."
            ctx.fail(f"There is no command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, name: str) -> str | None:
        """What somebody may have meant who typed a command that is not here: one of a group, or one spelt alike."""
        from difflib import get_close_matches  # only a mistake needs it

        for group in self.list_commands(ctx):
            command = self.get_command(ctx, group)
            if isinstance(command, click.Group) and name in command.list_commands(ctx):
                return f"{ctx.command_path} {group} {name}"
        return next(iter(get_close_matches(name, self.list_commands(ctx), 1)), None)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._help(ctx, name)) for name in self.list_commands(ctx)])

    def _help(self, ctx: click.Context, name: str) -> str:
        if name in self._places:
            return self._places[name][2]
        command = super().get_command(ctx, name)
        return command.get_short_help_str(100) if command else ""
