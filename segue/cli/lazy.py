"""A group of commands whose modules are imported only when one of them runs."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from segue.cli.groups import CommandGroup

Place = tuple[str, str, str]
"""Module, attribute, and the one line of help that a listing shows without importing it."""


class LazyGroup(CommandGroup):
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
        wanted = cmd_name if cmd_name in self._places else self._aliased(ctx, cmd_name)
        if wanted is None or wanted not in self._places:
            return super().get_command(ctx, cmd_name)
        module, attribute, _ = self._places[wanted]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def _help(self, ctx: click.Context, name: str) -> str:
        return self._places[name][2] if name in self._places else super()._help(ctx, name)
