"""What the page about the gateway shows is what the commands print."""

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

from documents import ROOT, blocks
from lane_rows import answered, died, opened

from segue.core.crash_recovery import CRASH_SPAN, MAX_BLAME, MAX_CRASHES

Run = Callable[..., subprocess.CompletedProcess[str]]

PAGE = ROOT / "docs" / "gateway.md"


def furnish(home: Path) -> None:
    """Alice was answered, and Bob was not."""
    with opened(home) as store:
        answered(store, "Which week in May is best?", platform="telegram", chat_id="5")
        unreachable = "The model is not reachable."
        died(store, "Is the shop open?", "bob", unreachable, platform="telegram", chat_id="7")


def test_the_commands_of_the_page_print_what_it_says(home: Path, run: Run) -> None:
    furnish(home)
    transcript = "".join(blocks(PAGE, "console"))
    told: list[str] = []
    for line in transcript.splitlines():
        if not line.startswith("$ segue "):
            continue
        words = shlex.split(line.removeprefix("$ segue "))
        done = run(*words, COLUMNS="120")
        assert (done.returncode, done.stderr) == (0, ""), line
        told += [line, *([] if "--json" in words else done.stdout.splitlines())]
    assert told == transcript.splitlines()


def test_the_page_explains_the_rule_for_crashes_with_the_numbers_that_hold() -> None:
    told = PAGE.read_text("utf-8").partition("### After a crash")[2].partition("\n## ")[0]
    assert (MAX_CRASHES, CRASH_SPAN.total_seconds(), MAX_BLAME) == (3, 60, 3)
    assert "Three crashes within 60 seconds are a crash loop" in told
    assert "the blame of three whole crashes is given up" in " ".join(told.split())
    assert "continued until 60 seconds have passed without a crash" in told
