"""Segue, on SQLite and on PostgreSQL, beside raw SQLite and beside a peer, in one run: `just bench`."""

import argparse
import shlex
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import peer, report
from benchmarks.measure import Bench
from benchmarks.rounds import FULL, QUICK
from benchmarks.rows import NAMES
from benchmarks.server import serving
from benchmarks.sides import known_sides

ROOT = Path(__file__).resolve().parent.parent
WORKSHOP = ROOT / ".bench"
PAGE = ROOT / "docs" / "benchmarks.md"


def main() -> None:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was made is removed
    make_workshop()
    try:
        python = None if options.without_peer else peer.install(WORKSHOP)
    except peer.PeerMissing as error:
        sys.exit(str(error))
    with TemporaryDirectory(prefix="run-", dir=options.folder or WORKSHOP) as made, serving(Path(made)) as server:
        folder = Path(made)
        bench = Bench(known_sides(python, server), QUICK if options.quick else FULL, folder, options.rows)
        rows = []
        for row in bench.rows():
            rows.append(row)
            print(report.table(rows[-1:]).splitlines()[-1], file=sys.stderr)
        found = report.Findings(rows, bench.facts, report.machine(folder), _command())
    if options.write:
        PAGE.write_text(report.page(found), "utf-8")
        print(f"Written to {PAGE.relative_to(ROOT)}.", file=sys.stderr)
    else:
        print(report.summary(found))


def make_workshop() -> None:
    """Where environments and stores are, kept out of the repository."""
    WORKSHOP.mkdir(exist_ok=True)
    (WORKSHOP / ".gitignore").write_text("*\n", "utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="just bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller stores and fewer rounds: a few minutes")
    parser.add_argument("--rows", nargs="+", metavar="NAME", choices=NAMES, default=(), help=", ".join(NAMES))
    parser.add_argument("--without-peer", action="store_true", help="install and measure no peer")
    parser.add_argument("--write", action="store_true", help="rewrite docs/benchmarks.md")
    parser.add_argument("--folder", type=Path, help="where to put the stores that are measured; removed afterwards")
    options = parser.parse_args()
    if options.write and options.rows:
        parser.error("--write wants every row")
    return options


def _command() -> str:
    return shlex.join(["just", "bench", *sys.argv[1:]])


if __name__ == "__main__":
    main()
