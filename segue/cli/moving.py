"""`segue sessions export` and `segue sessions import`: complete, once, and never half."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import click

from segue import app
from segue.cli.completing import complete_session
from segue.cli.files import check_replacing, opened, writer
from segue.cli.forms import Form, Wanted, counted, form_of, ids_of, write_export
from segue.cli.options import AS_JSON, DRY_RUN, REMOTE, REPLACE
from segue.cli.output import note, progress, say, show_json
from segue.cli.sources import check_sources, check_sources_there, source_option
from segue.core.errors import Invalid, NotFound
from segue.core.portable import from_json
from segue.core.redaction import Secrets
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.spelling import dumps
from segue.core.text import count
from segue.ports.store import Store, Transaction
from segue.sessions import importing, listing
from segue.sessions.importing import Imported, OnConflict, Outcome

if TYPE_CHECKING:
    from segue.cli.remote import Asked

_LONGEST_LINE = 1 << 28
"""Bytes: far more than people say in one conversation, and less than there is memory for."""
_PIECE = 1 << 20
_MOST_COMPLAINTS = 10
_GZIP = b"\x1f\x8b"


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@source_option()
@click.option(
    "--session-id",
    multiple=True,
    metavar="ID or TITLE",
    shell_complete=complete_session,
    help="Only this conversation (may be repeated).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in Form]),
    help="JSON lines, which can be imported, or a document to read.  [default: by FILE's suffix; jsonl without one]",
)
@click.option("--redact", is_flag=True, help="Replace what looks like a key, token or password; md and html do anyway.")
@click.option("--raw", is_flag=True, help="Leave secrets in md and html as they are.")
@REPLACE
@REMOTE
def export(
    file: Path,
    source: tuple[str, ...],
    session_id: tuple[str, ...],
    form: str | None,
    redact: bool,
    raw: bool,
    yes: bool,
    there: "Asked | None",
) -> None:
    """Write conversations to FILE: as JSON lines, one session a line, or as a document; "-" is stdout."""
    if source and session_id:
        raise Invalid("--source and --session-id do not go together: a session is named or a platform is.")
    chosen = Form(form) if form else form_of(file)
    if redact and raw:
        raise Invalid("--redact and --raw do not go together: secrets are left out or left in.")
    if raw and chosen is Form.JSONL:
        raise Invalid("--raw is for md and html; JSON lines hold everything as it is unless --redact is given.")
    secrets = Secrets(redacts=not raw if chosen is not Form.JSONL else redact)
    if there:
        if chosen is not Form.JSONL:
            raise Invalid("From another machine, conversations come as JSON lines; import them to make a document.")
        _export_there(there, file, source, session_id, secrets, yes=yes)
        return
    with app.open_for_reading() as store:
        check_sources(store, source)
        wanted = Wanted(source, tuple(dict.fromkeys(store.read(OWNER_AT_CONSOLE, ids_of, session_id, chosen))))
        length = len(wanted.ids) or store.read(OWNER_AT_CONSOLE, listing.count_sessions, counted(wanted, chosen))
        if not length and (source or session_id):
            raise NotFound("No conversation fits; nothing was written.")
        check_replacing(file, yes=yes)
        with opened(file) as target, progress("Exporting", length) as advance:
            written = store.read(OWNER_AT_CONSOLE, write_export, chosen, writer(target), secrets, wanted, advance)
    if str(file) != "-":
        note(f"{count(written, 'session' if chosen is Form.JSONL else 'conversation')} written to {file}.")
    _tell_of(secrets, chosen)


def _export_there(
    there: "Asked", file: Path, source: tuple[str, ...], session_id: tuple[str, ...], secrets: Secrets, *, yes: bool
) -> None:
    """The same from another machine, a session at a time."""
    from segue.cli.remote_sessions import every_session, exported, part_ids  # only this needs it

    check_sources_there(there, source)
    named = [part for one in session_id for part in part_ids(there, one)]
    ids = list(dict.fromkeys(named)) if session_id else list(every_session(there, source))
    if not ids and source:
        raise NotFound("No conversation fits; nothing was written.")
    check_replacing(file, yes=yes)
    with opened(file) as target, progress("Exporting", len(ids)) as advance:
        write = writer(target)
        for one in ids:
            write(dumps(secrets(exported(there, one))) + "\n")
            advance(1)
    if str(file) != "-":
        note(f"{count(len(ids), 'session')} written to {file}.")
    _tell_of(secrets, Form.JSONL)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--on-conflict",
    type=click.Choice([policy.value for policy in OnConflict]),
    default=OnConflict.SKIP.value,
    show_default=True,
    help="What to do with a session that is here with other content.",
)
@DRY_RUN
@AS_JSON
def import_(file: Path, on_conflict: str, dry_run: bool, as_json: bool) -> None:
    """Take conversations in from FILE, as `export` wrote it. Doing it twice changes nothing."""
    report = _Report([], [])
    policy = OnConflict(on_conflict)
    is_new = dry_run and not app.has_store(app.settings())
    with _lines(file) as lines, app.open_for_reading() if is_new else app.open_store() as store:
        if dry_run:
            _rehearse(store, lines, policy, report)
        else:
            for number, line in lines:
                report.add(number, partial(store.write, OWNER_AT_CONSOLE, _import, line, policy))
            store.index_all()
    if as_json:
        show_json({"sessions": [one._asdict() for one in report.done], "errors": report.errors, "dry_run": dry_run})
    else:
        _tell(report, dry_run)
    if report.errors:
        sys.exit(1)


def _tell_of(secrets: Secrets, form: Form) -> None:
    things = count(secrets.count, "thing")
    if secrets.redacts:
        look = "looks like a secret was" if secrets.count == 1 else "look like secrets were"
        note(f"{things} that {look} replaced." if secrets.count else "Nothing in it looks like a secret.")
    elif secrets.count:
        look, them = ("looks like a secret", "it") if secrets.count == 1 else ("look like secrets", "them")
        remedy = "--redact leaves" if form is Form.JSONL else "without --raw, md and html leave"
        note(f"{things} in it {look}; {remedy} {them} out.")


class _Report(NamedTuple):
    """What became of each line."""

    done: list[Imported]
    errors: list[str]

    def add(self, number: int, attempt: Callable[[], Imported]) -> None:
        try:
            self.done.append(attempt())
        except Invalid as error:
            self.errors.append(f"Line {number} was left out: {str(error).rstrip('.')}.")


class _Undone(Exception):
    """Ends a transaction of which nothing is to stay."""


def _rehearse(store: Store, lines: Iterator[tuple[int, bytes]], policy: OnConflict, report: _Report) -> None:
    """Do everything in one transaction, then take it back. The file is read first, so that nobody waits for it."""
    waiting = list(lines)

    def work(tx: Transaction) -> None:
        for number, line in waiting:
            report.add(number, partial(_import, tx, line, policy))
        raise _Undone

    with suppress(_Undone):
        store.write(OWNER_AT_CONSOLE, work)


def _import(tx: Transaction, line: bytes, policy: OnConflict) -> Imported:
    return importing.import_session(tx, from_json(line), on_conflict=policy, now=time.time())


def _tell(report: _Report, dry_run: bool) -> None:
    for one in report.done:
        for sentence in one.notes:
            note(f"{one.session_id}: {sentence}.")
    for sentence in report.errors[:_MOST_COMPLAINTS]:
        note(sentence)
    if len(report.errors) > _MOST_COMPLAINTS:
        note(f"… and {len(report.errors) - _MOST_COMPLAINTS:,} more; --json names them all.")
    outcomes = Counter(one.outcome for one in report.done)
    counted = ", ".join(f"{outcomes[outcome]:,} {outcome}" for outcome in Outcome if outcomes[outcome])
    left_out = f", {len(report.errors):,} left out" if report.errors else ""
    way = "; --on-conflict replace or copy takes them in" if outcomes[Outcome.SKIPPED] else ""
    say(f"{'Would be: ' if dry_run else ''}{counted or 'Nothing to import'}{left_out}{way}.")


@contextmanager
def _lines(file: Path) -> Iterator[Iterator[tuple[int, bytes]]]:
    """The lines that say something, with their numbers; one that no session could fill is not read into memory."""
    if str(file) == "-":
        yield _numbered(sys.stdin.buffer, lambda _steps: None)
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}.") from error
    if stream.peek(2)[:2] == _GZIP:
        stream.close()
        raise Invalid(f"{file} is compressed; try `gunzip --stdout {file} | segue sessions import -`.")
    with stream, progress("Importing", file.stat().st_size) as advance:
        yield _numbered(stream, advance)


def _numbered(stream: BinaryIO, advance: Callable[[int], None]) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(_LONGEST_LINE):
        number += 1
        length = len(line)
        if length == _LONGEST_LINE and not line.endswith(b"\n"):
            line, rest = b"[]", b" "  # too long to be a session: reported as no object
            while rest and not rest.endswith(b"\n"):
                rest = stream.readline(_PIECE)
                length += len(rest)
        advance(length)
        if line.strip():
            yield number, line
