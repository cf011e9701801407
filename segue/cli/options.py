"""Options that several commands share, so that they are spelt and explained alike."""

import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from segue.config import zone_here
from segue.core.errors import Invalid
from segue.core.moments import DAY, find_span, parse_moment

F = TypeVar("F", bound=Callable[..., Any])

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print data for programs.")
YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
REPLACE = click.option("--yes", "-y", is_flag=True, help="Replace a file that exists already, without asking.")
_MAX_LIMIT = 10**9
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only say what would happen.")


class _Moment(click.ParamType[float]):
    """A moment in the past as people name it, which becomes Unix seconds."""

    name = "DATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return parse_moment(str(value), time.time(), zone_here())
        except Invalid as error:
            self.fail(str(error).rstrip("."), param, ctx)


class _Days(click.ParamType[float]):
    """A number of days, or a span such as 30d, 2w or 12h; never minutes."""

    name = "DAYS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        span = find_span(str(value))
        if str(value).strip().lower().endswith("m"):  # minutes, which somebody may take for months
            self.fail(f"{value!r} would be minutes; write an age in days, such as 30 or 30d", param, ctx)
        try:
            return float(value) if span is None else span / DAY
        except ValueError:
            self.fail(f"{value!r} is no number of days, such as 30 or 30d", param, ctx)


MOMENT = _Moment()
DAYS = _Days()


def since_option(help: str) -> Callable[[F], F]:  # noqa: A002 - as click has it
    """Return the option that leaves out what is older than a moment."""
    return click.option("--since", "--after", "since", type=MOMENT, metavar="DATE", help=help)


def REMOTE(command: Callable[..., None]) -> Callable[..., None]:  # noqa: N802 - options, named as the others are
    """Lets a command ask a gateway elsewhere, which it is given as `there`; nothing when it is about this home."""

    @wraps(command)
    def located(*args: Any, url: str | None, token_file: Path | None, **options: Any) -> None:
        there = None
        if url or token_file:
            from segue.cli.remote import remote_at  # slow to load, and hardly ever needed

            there = remote_at(url, token_file)
        command(*args, there=there, **options)

    from_there = click.option("--url", metavar="URL", help="Ask the gateway there, with the token in SEGUE_TOKEN.")
    with_token = click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Where the token for --url is, in place of SEGUE_TOKEN.",
    )
    return from_there(with_token(located))


def limit_option(default: int, *, most: int = _MAX_LIMIT, help: str = "How many at most.") -> Callable[[F], F]:  # noqa: A002 - as click has it
    """Return the option that says how many rows a list has; a larger number than `most` means as many."""
    return click.option(
        *("--limit", "-n"),
        default=default,
        show_default=True,
        type=click.IntRange(1),
        metavar="N",
        callback=lambda _ctx, _param, value: min(value, most),
        help=help,
    )
