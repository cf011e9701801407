"""Groups of commands: aliases, suggestions for a mistyped name, and one line of help for each command.

A suggestion is never the name that was typed, and never a command that destroys something.
"""

import click

ALIASES = {"ls": ("list",), "rm": ("delete", "remove", "revoke")}
"""Other names of commands: each stands for the first of these that a group has."""


class DestructiveCommand(click.Command):
    """A command that removes or replaces something, so that it is never suggested for a mistyped name."""


class CommandGroup(click.Group):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        wanted = self._aliased(ctx, cmd_name) if command is None else None
        return super().get_command(ctx, wanted) if wanted else command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            near = self._suggestion(ctx, name)
            hint = f"did you mean `{near}`?" if near else f"`{ctx.command_path} --help` lists the commands."
            ctx.fail(f"There is no command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def _aliased(self, ctx: click.Context, name: str) -> str | None:
        names = self.list_commands(ctx)
        return next((one for one in ALIASES.get(name, ()) if one in names), None)

    def _suggestion(self, ctx: click.Context, name: str) -> str | None:
        """Return the command line that was probably meant: one of a group below this one, or one spelt alike."""
        from difflib import get_close_matches  # only a mistake needs it

        if name == "help":
            return f"segue help {' '.join(ctx.command_path.split()[1:])}"
        path = ctx.command_path
        groups = [one for one in self._by_use(ctx) if isinstance(self.get_command(ctx, one), click.Group)]
        for group in groups:
            below = self.get_command(ctx, group)
            assert isinstance(below, click.Group)
            command = below.get_command(ctx, name)
            if command is not None and not isinstance(command, DestructiveCommand):
                return f"{path} {group} {name}"
        near = get_close_matches(name, self.list_commands(ctx), 3)
        safe = (one for one in near if not isinstance(self.get_command(ctx, one), DestructiveCommand))
        return next((f"{path} {one}" for one in safe if one != name), None)

    def _by_use(self, ctx: click.Context) -> list[str]:
        """The commands, the group that most people mean first."""
        return sorted(self.list_commands(ctx), key=lambda name: name != "sessions")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(self._with_aliases(ctx, name), self._help(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _with_aliases(self, ctx: click.Context, name: str) -> str:
        return ", ".join([name, *(alias for alias in ALIASES if self._aliased(ctx, alias) == name)])

    def _help(self, ctx: click.Context, name: str) -> str:
        """Return the first sentence about a command, whole however narrow the terminal is."""
        command = self.get_command(ctx, name)
        return command.get_short_help_str(_WHOLE) if command else ""


_WHOLE = 1_000
"""Characters; longer than any first sentence."""
