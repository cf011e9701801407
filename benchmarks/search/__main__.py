"""Search in Segue and in its peers, how fast and how well, in one run: `just bench-search`."""

import argparse
import shlex
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import peer
from benchmarks.report import machine
from benchmarks.search import report, speed
from benchmarks.search.processes import WORDS_ALONE, Side, opened, own_sides, peer_side
from benchmarks.search.recall import Quality, found_out
from benchmarks.server import serving
from benchmarks.store import ROOT, WORKSHOP, make_workshop

PAGE = ROOT / "docs" / "search-benchmarks.md"
SIZES = ("40k", "400k", "1M")
QUICK_SIZES = ("4k",)
DISTRACTORS, QUICK_DISTRACTORS = 3000, 300
_SCALES = {"k": 1_000, "M": 1_000_000}


def main() -> None:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was made is removed
    make_workshop()
    try:
        peers = [] if options.without_peers else [_installed(one) for one in (peer.HERMES, peer.LLM)]
    except peer.PeerMissing as error:
        sys.exit(str(error))
    with TemporaryDirectory(prefix="search-", dir=options.folder or WORKSHOP) as made, serving(Path(made)) as server:
        folder = Path(made)
        sides = [*own_sides(server), *peers]
        stores = [] if options.quality_only else _speed(options, sides, folder)
        quality = None if options.speed_only else _quality(options, [WORDS_ALONE, *sides], folder)
        facts = _facts(sides, folder / "facts")
        titles = {side.name: side.title for side in (WORDS_ALONE, *sides)}
        found = report.Findings(titles, stores, quality, facts, machine(folder), _command())
    if options.write:
        PAGE.write_text(report.page(found), "utf-8")
        print(f"Written to {PAGE.relative_to(ROOT)}.", file=sys.stderr)
    else:
        print(report.page(found))


def _installed(chosen: peer.Peer) -> Side:
    return peer_side(chosen, peer.install(WORKSHOP, chosen))


def _speed(options: argparse.Namespace, sides: list[Side], folder: Path) -> list[speed.Measured]:
    plan = speed.QUICK if options.quick else speed.FULL
    stores = []
    for size in options.sizes:
        stores.append(speed.measured(sides, size, plan, folder / str(size), _say))
        print(report.speed_table(stores[-1], {side.name: side.title for side in sides}), file=sys.stderr)
    return stores


def _quality(options: argparse.Namespace, sides: list[Side], folder: Path) -> Quality:
    return found_out(sides, QUICK_DISTRACTORS if options.quick else DISTRACTORS, folder / "quality", _say)


def _facts(sides: list[Side], folder: Path) -> dict[str, dict[str, str]]:
    with opened(sides, folder) as processes:
        return {process.side.name: process.ask("facts") for process in processes}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="just bench-search", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small store and few distractors: a minute")
    sizes = "messages: 40k 400k 1M unless said otherwise, of which 1M takes more than an hour, most of it filling peers"
    parser.add_argument("--sizes", nargs="+", type=messages_of, metavar="SIZE", help=sizes)
    parser.add_argument("--without-peers", action="store_true", help="install and measure no peer")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--quality-only", action="store_true", help="measure no times")
    only.add_argument("--speed-only", action="store_true", help="ask no questions")
    parser.add_argument("--write", action="store_true", help="rewrite docs/search-benchmarks.md")
    parser.add_argument("--folder", type=Path, help="where to put the stores that are measured; removed afterwards")
    options = parser.parse_args()
    if options.write and (options.quality_only or options.speed_only or options.without_peers):
        parser.error("--write wants everything")
    options.sizes = options.sizes or [messages_of(size) for size in (QUICK_SIZES if options.quick else SIZES)]
    return options


def messages_of(size: str) -> int:
    """How many `40k` or `1M` are."""
    number, scale = (size[:-1], _SCALES[size[-1]]) if size[-1:] in _SCALES else (size, 1)
    return int(number) * scale


def _say(sentence: str) -> None:
    print(f"[{time.monotonic() - _BEGAN:5.0f} s] {sentence}", file=sys.stderr)


def _command() -> str:
    return shlex.join(["just", "bench-search", *sys.argv[1:]])


_BEGAN = time.monotonic()

if __name__ == "__main__":
    main()
