"""Options that several commands share, so that they are spelt and explained alike."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print data for programs.")
YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
REPLACE = click.option("--yes", "-y", is_flag=True, help="Replace a file that exists already, without asking.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only say what would happen.")


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
