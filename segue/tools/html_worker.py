"""A program beside ours that reads one HTML page, and may take no more time and memory than one page is worth.

The first line of its input is the address of the page, the rest the page. What it prints is the text.
"""

import os
import resource
import sys

from segue.tools.html_text import text_of

CPU_SECONDS = 5
MEMORY_BYTES = 1_500_000_000
MAX_CHARS = 1_000_000
"""Of the text that is passed on."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(10)  # nobody else waits for a page
    base, _, page = sys.stdin.buffer.read().partition(b"\n")
    text = text_of(page.decode("utf-8", "replace"), base.decode("utf-8", "replace"))
    sys.stdout.buffer.write(text[:MAX_CHARS].encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
