"""Writes docs/config.md from the settings in the program; with --check, only says whether it is up to date."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from segue.config.documenting import page  # noqa: E402 - the line above lets it be found without an installation

PAGE = ROOT / "docs" / "config.md"


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: scripts/config_docs.py [--check]", file=sys.stderr)
        return 2
    if not arguments:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        print("docs/config.md is out of date: run python scripts/config_docs.py.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
