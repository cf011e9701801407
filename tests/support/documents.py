"""What the documents show, block by block."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: Path, *languages: str) -> Iterator[str]:
    for block in BLOCK.finditer(document.read_text("utf-8")):
        if block["language"] in languages:
            yield block["text"]


def file_shown_in(document: Path, name: str) -> str:
    """The one block whose first line says that it is this file."""
    (text,) = (block for block in blocks(document, "python", "toml", "yaml") if block.startswith(f"# {name}\n"))
    return text
