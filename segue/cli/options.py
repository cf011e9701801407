"""Options that several commands share, so that they are spelt and explained alike."""

import click

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print data for programs.")
YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only say what would happen.")
