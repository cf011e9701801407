"""`segue help`: what `--help` says of a command."""

import click


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of segue or of one of its commands, as --help does: `segue help sessions list`."""
    click.echo(_context_of(ctx.find_root(), words).get_help())


def _context_of(at: click.Context, words: tuple[str, ...]) -> click.Context:
    for word in words:
        if not isinstance(at.command, click.Group):
            at.fail(f"`{at.command_path}` has no commands of its own.")
        name, command, _ = at.command.resolve_command(at, [word])
        assert command is not None  # whatever is unknown has failed by now
        at = click.Context(command, parent=at, info_name=name)
    return at
