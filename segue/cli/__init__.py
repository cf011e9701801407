"""The command line: one file per command family, each imported only when its command runs."""

import sys

import click

from segue import __version__
from segue.cli.lazy import LazyGroup
from segue.core.errors import SegueError
from segue.core.text import printable

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(
    cls=LazyGroup,
    commands_in={
        "sessions": ("segue.cli.sessions", "sessions", "List, read, name, move and remove conversations."),
        "status": ("segue.cli.status", "status", "What is where, how big, and whether it is well."),
        "config": ("segue.cli.configuring", "config", "Show and check the settings."),
        "init": ("segue.cli.configuring", "init", "Make the home folder with a commented config.yaml."),
    },
    context_settings=_SETTINGS,
)
@click.version_option(__version__, "-V", "--version", prog_name="segue", message="%(prog)s %(version)s")
def cli() -> None:
    """Segue keeps the conversations of AI agents: resume, name, export and carry them on anywhere."""


def main() -> None:
    """Run a command; whatever Segue says no to is one sentence on stderr and a non-zero exit code."""
    try:
        cli()
    except SegueError as error:
        click.echo(f"segue: {printable(str(error))}", err=True)
        sys.exit(1)
