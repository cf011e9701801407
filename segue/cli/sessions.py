"""`segue sessions`: the list, which must be quick. Every other command is in a file of its own, loaded when it runs."""

import time
from typing import TYPE_CHECKING

import click

from segue import app
from segue.cli.lazy import LazyGroup
from segue.cli.options import AS_JSON, REMOTE, limit_option, since_option
from segue.cli.output import note, show_json, table
from segue.cli.sources import check_sources, check_sources_there, source_option
from segue.cli.tables import session_table
from segue.cli.tidying import tidy_up
from segue.core.errors import Invalid
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sessions import Kind, kind_of
from segue.ports.store import Filter
from segue.sessions import listing

if TYPE_CHECKING:
    from segue.cli.remote import Asked

_MAX_MINUTES = 10**9


@click.group(
    cls=LazyGroup,
    default="list",
    commands_in={
        "browse": ("segue.cli.browse", "browse", "Look through conversations on a full screen."),
        "search": ("segue.cli.searching", "search", "Find messages by what they say."),
        "show": ("segue.cli.showing", "show", "Read a conversation from its beginning."),
        "rename": ("segue.cli.marking", "rename", "Give a conversation a title."),
        "stats": ("segue.cli.status", "stats", "Count conversations and messages."),
        "delete": ("segue.cli.removing", "delete", "Move conversations into the trash, or remove every trace."),
        "prune": ("segue.cli.removing", "prune", "Move old, ended conversations into the trash."),
        "end": ("segue.cli.ending", "end", "End conversations that are open; -r goes on with them."),
        "archive": ("segue.cli.marking", "archive", "Put conversations aside."),
        "unarchive": ("segue.cli.marking", "unarchive", "Bring archived conversations back."),
        "pin": ("segue.cli.marking", "pin", "Keep conversations from being pruned."),
        "unpin": ("segue.cli.marking", "unpin", "Let conversations be pruned again."),
        "tag": ("segue.cli.marking", "tag", "Give a conversation tags."),
        "untag": ("segue.cli.marking", "untag", "Take tags away."),
        "trash": ("segue.cli.removing", "trash", "List, restore or empty the trash."),
        "export": ("segue.cli.moving", "export", "Write conversations to a file, complete."),
        "import": ("segue.cli.moving", "import_", "Take conversations in from a file."),
    },
)
def sessions() -> None:
    """List, read, name, move and remove conversations. Options alone, such as --json, are those of list."""


@sessions.command("list")
@source_option()
@limit_option(20)
@click.option(
    "--active", "active_minutes", type=float, metavar="MINUTES", help="Only those active in the last minutes."
)
@since_option("Only those active since a date or a span ago: 2025-03-05, yesterday, 7d.")
@click.option("--archived", is_flag=True, help="The archived ones instead.")
@click.option("--kind", type=click.Choice([kind.value for kind in Kind]), help="Another kind than interactive.")
@click.option("--tag", help="Only those with this tag.")
@click.option("--agent", help="Only those of this agent.")
@click.option("--all", "every", is_flag=True, help="Every kind, and every part of a conversation.")
@REMOTE
@AS_JSON
def list_(
    source: tuple[str, ...],
    limit: int,
    active_minutes: float | None,
    since: float | None,
    archived: bool,
    kind: str | None,
    tag: str | None,
    agent: str | None,
    every: bool,
    there: "Asked | None",
    as_json: bool,
) -> None:
    """Show the most recently active conversations, newest first."""
    now = time.time()
    wanted = Filter(
        sources=source,
        kinds=(kind,) if kind else () if every else tuple({kind_of(one) for one in source} or {Kind.INTERACTIVE}),
        archived=None if every and not archived else archived,
        tips_only=not every,
        tag=tag,
        agent=agent,
        active_since=_earliest(now, active_minutes, since),
    )
    if there:
        from segue.cli.remote_sessions import show_listed  # only this needs it

        check_sources_there(there, source)
        show_listed(there, wanted, limit, as_json=as_json)
        return
    settings = app.settings()
    with app.open_for_reading(settings) as store:
        check_sources(store, source)
        if as_json:
            show_json(store.read(OWNER_AT_CONSOLE, listing.list_rows, wanted, limit))
            return
        found = store.read(OWNER_AT_CONSOLE, listing.list_sessions, wanted, limit + 1)
        has_others = not found and bool(store.read(OWNER_AT_CONSOLE, listing.list_sessions, Filter(), 1))
        tidy_up(store, settings)
    if not found:
        is_filtered = wanted != Filter(kinds=(Kind.INTERACTIVE,))
        note(
            "No conversation fits; --all also looks at archived ones, every kind and every part."
            if is_filtered
            else f"No conversations yet in {settings.home}; --all also shows what ran by itself."
            if has_others
            else f"No conversations yet in {settings.home}."
        )
        return
    table(*session_table(found[:limit], now))
    if len(found) > limit:
        note(f"… and more; --limit {limit * 2} shows more of them.")


def _earliest(now: float, active_minutes: float | None, since: float | None) -> float | None:
    if active_minutes is not None and not 0 <= active_minutes < _MAX_MINUTES:
        raise Invalid(f"--active takes a number of minutes, not {active_minutes}.")
    moments = [] if active_minutes is None else [now - 60 * active_minutes]
    return max([*moments, *([] if since is None else [since])], default=None)
