"""`--source`: the platforms that a command is about, which must be known."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeVar

import click

from segue.core.scope import OWNER_AT_CONSOLE
from segue.ports.store import Store

if TYPE_CHECKING:
    from segue.cli.remote import Asked

F = TypeVar("F", bound=Callable[..., Any])


def source_option(*names: str, help: str = "Only this platform (may be repeated).") -> Callable[[F], F]:  # noqa: A002 - as click has it
    return click.option(*(names or ("--source",)), multiple=True, metavar="PLATFORM", help=help)


def check_sources(store: Store, wanted: Collection[str]) -> None:
    """Refuse a platform that neither Segue nor the settings know, and that no session is from."""
    if wanted:
        from segue.sessions import listing

        store.read(OWNER_AT_CONSOLE, listing.check_sources, wanted, _known())


def check_sources_there(gateway: "Asked", wanted: Collection[str]) -> None:
    """The same for the sessions of another machine."""
    if any(name not in _known() for name in wanted):
        from segue.sessions import listing

        listing.refuse_unknown(wanted, {*_known(), *gateway.ask("status", {})["sources"]})


def _known() -> frozenset[str]:
    from segue import app
    from segue.app.manifests import platform_names  # only this needs it

    return platform_names(app.settings().platforms)
