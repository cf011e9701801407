"""What an export is written as, and the writing of it."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from segue.core.errors import Invalid
from segue.core.markdown import Markdown
from segue.core.page import Page
from segue.core.redaction import Secrets
from segue.ports.store import Filter, Transaction
from segue.sessions import exporting, finding


class Form(StrEnum):
    """What an export is written as."""

    JSONL = "jsonl"
    MARKDOWN = "md"
    HTML = "html"


_SUFFIXES = {
    ".jsonl": Form.JSONL,
    ".ndjson": Form.JSONL,
    ".md": Form.MARKDOWN,
    ".markdown": Form.MARKDOWN,
    ".html": Form.HTML,
    ".htm": Form.HTML,
}


def form_of(file: Path) -> Form:
    """Return the form that the suffix of a file names: JSON lines without one. Refuse a suffix of another form."""
    suffix = file.suffix.lower()
    if form := _SUFFIXES.get(suffix):
        return form
    if any(character.isalpha() for character in suffix):
        raise Invalid(
            f"{file} cannot be written as {suffix}: export writes .jsonl, .md and .html. Name FILE so, or choose the"
            " format with --format."
        )
    return Form.JSONL


class Wanted(NamedTuple):
    """Which conversations: those of some platforms, or some by their ids; all when nothing is said."""

    sources: tuple[str, ...]
    ids: tuple[str, ...]


def ids_of(tx: Transaction, named: tuple[str, ...], form: Form) -> list[str]:
    """The sessions that are meant: every part for JSON lines, the newest one for a document."""
    found = [finding.find_parts(tx, finding.get_id(tx, wanted)) for wanted in named]
    return [part.id for parts in found for part in (parts if form is Form.JSONL else parts[-1:])]


def counted(wanted: Wanted, form: Form) -> Filter:
    return exporting.conversations(wanted.sources)._replace(tips_only=form is not Form.JSONL)


def write_export(
    tx: Transaction,
    form: Form,
    write: Callable[[str], object],
    secrets: Secrets,
    wanted: Wanted,
    advance: Callable[[int], object],
) -> int:
    if form is Form.JSONL:
        return exporting.export_lines(tx, write, wanted.sources, wanted.ids, advance, mask=secrets)
    document = Markdown() if form is Form.MARKDOWN else Page()
    return exporting.export_document(tx, write, document, secrets, wanted.sources, wanted.ids, advance)
