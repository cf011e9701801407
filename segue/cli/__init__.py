"""The command line: one file per command family, each imported only when its command runs."""

import os
import sys
import time
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from segue import __version__
from segue.cli.chatting.command import chat_options, join_titles
from segue.cli.chatting.command import run as run_chat
from segue.cli.exit_codes import FAILED, INTERRUPTED, OUR_FAULT, exit_code
from segue.cli.lazy import LazyGroup
from segue.core.errors import SegueError
from segue.core.text import one_line, printable, storable
from segue.storage.waiting import tell_waits_to

_NOT_SUGGESTED = frozenset({"--purge", "--replace", "--yes"})
"""Options that destroy something, or keep a command from asking."""
_told: set[str] = set()
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Segue(LazyGroup):
    """All commands. Without one a chat begins, whose options it takes itself."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, join_titles(args))


@click.group(
    cls=Segue,
    commands_in={
        "chat": ("segue.cli.chatting.command", "chat", "Talk to your agent; the same as segue alone."),
        "ls": ("segue.cli.sessions", "list_", "List conversations; the same as `segue sessions list`."),
        "rm": ("segue.cli.removing", "delete", "Delete conversations; the same as `segue sessions delete`."),
        "help": ("segue.cli.helping", "help_", "Show the help of a command, as --help does."),
        "models": ("segue.cli.models", "models", "Which models can be asked, and how they are called."),
        "sessions": ("segue.cli.sessions", "sessions", "List, read, name, move and remove conversations."),
        "status": ("segue.cli.status", "status", "What is where, how big, and whether it is well."),
        "doctor": ("segue.cli.doctoring", "doctor", "Find what is wrong with the home, and mend it."),
        "backup": ("segue.cli.keeping", "backup", "Write everything to one verified file."),
        "restore": ("segue.cli.keeping", "restore", "Bring everything back from a backup."),
        "db": ("segue.cli.databases", "db", "Move to another database, and back."),
        "insights": ("segue.cli.insights", "insights", "Tokens, costs, tools and activity of the last days."),
        "gateway": ("segue.cli.gateway", "gateway", "Connect platforms with your conversations."),
        "lanes": ("segue.cli.lanes", "lanes", "Where people talk to your agent: look, begin anew, forget."),
        "inbox": ("segue.cli.inbox", "inbox", "Messages that wait or were not answered: look, retry, cancel."),
        "outbox": ("segue.cli.outbox", "outbox", "Replies that are to be sent or were not delivered: look, retry."),
        "pairing": ("segue.cli.pairing", "pairing", "Let people in who write to your agent."),
        "cron": ("segue.cli.cron", "cron", "Let your agent do something at certain moments."),
        "batch": ("segue.cli.batch", "batch", "Ask your agent everything that a file says."),
        "tokens": ("segue.cli.tokens", "tokens", "Which programs may call the gateway."),
        "config": ("segue.cli.configuring", "config", "Show and check the settings."),
        "init": ("segue.cli.initialising", "init", "Make the home folder with a commented config.yaml."),
        "completion": ("segue.cli.completing", "completion", "Complete commands, ids and titles with TAB."),
    },
    context_settings=_SETTINGS,
    invoke_without_command=True,
)
@click.version_option(__version__, "-V", "--version", prog_name="segue", message="%(prog)s %(version)s")
@chat_options
@click.pass_context
def cli(ctx: click.Context, /, **options: Any) -> None:
    """Talk to your agent, and find, name, export and carry on every conversation you had with it.

    Without a command a chat begins.
    """
    if ctx.invoked_subcommand is None:
        run_chat(**options)
    elif any(options.values()):
        raise click.UsageError("These options belong to a chat; leave the command out, or say `segue chat`.")


def _keep_what_is_made_readable() -> None:
    """Let the umask hide files from others, and never from the user whose files they are."""
    os.umask(os.umask(0o077) & 0o077)


def main() -> None:
    """Run a command; whatever Segue says no to is one sentence on stderr and a non-zero exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows few characters is no reason to fail
    tell_waits_to(_tell_once)
    _keep_what_is_made_readable()
    if "_SEGUE_COMPLETE" in os.environ:
        import_module("segue.cli.completing")  # makes our shells known to click, which goes by that variable
    try:
        sys.exit(cli([storable(argument) for argument in sys.argv[1:]], prog_name="segue", standalone_mode=False))
    except SegueError as error:
        _complain(str(error), exit_code(error))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(error.exit_code)
    except click.UsageError as error:
        error = _with_safe_suggestions(error)
        usage = error.ctx.get_usage() + "\n" if error.ctx else ""
        click.echo(printable(usage), nl=False, err=True)
        _complain(error.format_message(), error.exit_code)
    except click.ClickException as error:
        _complain(error.format_message(), error.exit_code)
    except click.Abort:
        _complain("Interrupted.", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has seen enough
        sys.exit(0)
    except OSError as error:
        if error.filename is not None:
            _confess(error)
        _complain(f"The output could not be written: {error.strerror}", FAILED)
    except Exception as error:  # noqa: BLE001 - a mistake of ours: written down whole, told in a sentence
        _confess(error)


def _tell_once(sentence: str) -> None:
    """What is waited for is told once, however many writes have to wait for it."""
    if sentence not in _told:
        from segue.cli.output import note

        _told.add(sentence)
        note(sentence)


def _with_safe_suggestions(error: click.UsageError) -> click.UsageError:
    """The same error, without suggestions that would destroy something."""
    if not isinstance(error, click.NoSuchOption):
        return error
    safe = [one for one in error.possibilities or () if one not in _NOT_SUGGESTED]
    return click.NoSuchOption(error.option_name, possibilities=safe, ctx=error.ctx)


def _confess(error: Exception) -> None:
    from segue.config import config_file  # hardly ever needed
    from segue.upkeep.crashes import account_of, record_crash

    try:
        file = record_crash(config_file().parent, error, program=__version__, now=time.time())
    except (OSError, SegueError):
        click.echo(account_of(error, __version__), err=True)
        _complain("That was a mistake of Segue's, and there was no place to write it down but here", OUR_FAULT)
    _complain(f"That was a mistake of Segue's ({type(error).__name__}); what happened is in {file}", OUR_FAULT)


def _complain(sentence: str, code: int) -> None:
    from segue.cli.output import for_stderr
    from segue.core.redaction import redact  # its rules take time to load, and most commands never fail

    whole = redact(one_line(sentence))
    click.echo(for_stderr(f"segue: {whole}{'' if whole.endswith(('.', '?')) else '.'}"), err=True)
    sys.exit(code)
