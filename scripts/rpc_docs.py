"""Writes the reference of methods in docs/rpc.md; with --check, only says whether it is up to date."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from segue.web.rpc.documenting import with_reference  # noqa: E402 - the line above lets it be found without an installation

PAGE = ROOT / "docs" / "rpc.md"


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: scripts/rpc_docs.py [--check]", file=sys.stderr)
        return 2
    page = PAGE.read_text(encoding="utf-8")
    wanted = with_reference(page)
    if not arguments:
        PAGE.write_text(wanted, encoding="utf-8")
    elif page != wanted:
        print("docs/rpc.md is out of date: run python scripts/rpc_docs.py.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
