"""What the keys do to a conversation. Each is one transaction and answers with a sentence for the person who asked."""

import re
from pathlib import Path
from typing import NamedTuple

from segue.cli.files import opened, writer
from segue.cli.forms import Form, Wanted, form_of, ids_of, write_export
from segue.core.errors import Invalid
from segue.core.redaction import Secrets
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sessions import Session
from segue.core.text import count
from segue.ports.store import Store, Transaction
from segue.sessions import discarding, finding, marking, titling

_LONGEST_NAME = 100


class Doomed(NamedTuple):
    """What goes when a conversation is deleted."""

    name: str
    sessions: int
    messages: int


def rename(tx: Transaction, session_id: str, title: str) -> str:
    kept = titling.set_title(tx, session_id, title)
    return f"It is called '{kept}' now." if kept else "It has no title now."


def toggle_tag(tx: Transaction, session_id: str, typed: str) -> str:
    """A tag that it has is taken away; another one is added."""
    tag = marking.clean_tag(typed)
    if tag in tags_of(tx, session_id):
        marking.tag_conversation(tx, session_id, remove=[tag])
        return f"The tag '{tag}' is gone."
    marking.tag_conversation(tx, session_id, add=[tag])
    return f"Tagged '{tag}'."


def toggle_archived(tx: Transaction, session_id: str) -> str:
    session = finding.get_session(tx, session_id)
    marking.archive_conversation(tx, session_id, archived=not session.archived)
    return f"'{_name(session)}' is {'back in the list' if session.archived else 'archived; v shows the archive'}."


def toggle_pinned(tx: Transaction, session_id: str) -> str:
    session = finding.get_session(tx, session_id)
    marking.pin_conversation(tx, session_id, pinned=not session.pinned)
    return f"'{_name(session)}' {'can be pruned again' if session.pinned else 'is pinned'}."


def delete(tx: Transaction, session_id: str, now: float) -> str:
    name = _name(finding.get_session(tx, session_id))
    discarding.discard_conversation(tx, session_id, now)
    return f"'{name}' is in the trash; u brings it back."


def undo_delete(tx: Transaction, session_id: str) -> str:
    restored = discarding.restore_conversation(tx, session_id)
    if not restored.session_ids:
        raise Invalid(" ".join(["Nothing was restored.", *restored.notes]))
    name = _name(finding.get_session(tx, restored.session_ids[0]))
    return " ".join([f"'{name}' is back.", *restored.notes])


def file_name_for(session_id: str) -> str:
    """A name to suggest; an id may hold anything."""
    return re.sub(r"[^\w.-]|^[.-]", "_", session_id)[:_LONGEST_NAME] + ".jsonl"


def export(store: Store, session_id: str, file_name: str, *, is_redacted: bool) -> str:
    """Write a conversation to a new file that only its owner can read; the ending of its name says as what."""
    file = _new_file(file_name.strip())
    form = form_of(file)
    secrets = Secrets(redacts=is_redacted or form is not Form.JSONL)
    wanted = Wanted((), tuple(store.read(OWNER_AT_CONSOLE, ids_of, (session_id,), form)))
    with opened(file) as target:
        written = store.read(OWNER_AT_CONSOLE, write_export, form, writer(target), secrets, wanted, bool)
    return f"{count(written, 'session' if form is Form.JSONL else 'conversation')} written to {file}.{_about(secrets)}"


def _new_file(name: str) -> Path:
    if not name:
        raise Invalid("Name a file to write to.")
    try:
        file = Path.cwd() / Path(name).expanduser()
        is_there = file.exists()
    except (RuntimeError, OSError, ValueError) as error:
        raise Invalid(f"{name} cannot be a file here: {error}.") from error
    if is_there:
        raise Invalid(f"{file} is there already; choose another name.")
    return file


def _about(secrets: Secrets) -> str:
    if not secrets.count:
        return ""
    state = "replaced" if secrets.redacts else "left in it"
    return f" What looks like a secret was {state}: {secrets.count:,}."


def doomed_with(tx: Transaction, session_id: str) -> Doomed:
    parts = [finding.get_session(tx, part) for part in finding.find_conversation(tx, session_id)]
    name = _name(finding.get_session(tx, session_id))
    return Doomed(name, len(parts), sum(part.message_count for part in parts))


def title_of(tx: Transaction, session_id: str) -> str:
    return finding.get_session(tx, session_id).title or ""


def tags_of(tx: Transaction, session_id: str) -> list[str]:
    return tx.sessions.tags([session_id]).get(session_id, [])


def _name(session: Session) -> str:
    return session.title or session.first_line or session.id
