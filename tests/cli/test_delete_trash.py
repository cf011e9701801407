"""`segue sessions delete` and `trash`: shown first, asked about, brought back, or gone from every byte."""

import json
import os
import pty
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from homes import Beside, configure
from zygote import Zygote

from segue import SessionDB
from segue.app import open_store
from segue.core.scope import OWNER_AT_CONSOLE
from segue.sessions.discarding import discard_conversation
from segue.storage.schema import TABLES, Table

Run = Callable[..., subprocess.CompletedProcess[str]]
MARKER = "Xylophonquark"
DAY = 86400.0


@pytest.fixture
def shelf(home: Path) -> Path:
    """A home with two conversations, and a third in three parts with a subagent."""
    with SessionDB() as db:
        for name, title in [("alpha", "First"), ("beta", None), ("story", "Story")]:
            db.create_session(name, title=title)
            db.append_message(name, "user", f"This is {name}.")
        for parent, name in [("story", "child"), ("child", "a-grandchild")]:
            db.end_session(parent, "compression")
            db.create_session(name, parent_session_id=parent, title=db.get_next_title_in_lineage("Story"))
            db.append_message(name, "user", f"This is {name}.")
        db.create_session("scout", "subagent", spawned_by="child")
    return home


def everything() -> list[dict[str, object]]:
    """All that is stored, as an export would have it."""
    with SessionDB() as db:
        return db.export_all()


def names() -> set[object]:
    return {session["id"] for session in everything()}


def trashed(run: Run) -> list[str]:
    return [entry["session_id"] for entry in json.loads(run("sessions", "trash", "list", "--json").stdout)]


def put_into_the_trash(name: str, days_ago: float) -> None:
    with open_store() as store:
        store.write(OWNER_AT_CONSOLE, discard_conversation, name, time.time() - days_ago * DAY)


def bytes_of(home: Path) -> bytes:
    """Every byte that the database left on disk; no store may be open in this process."""
    return b"".join(file.read_bytes() for file in sorted(home.glob("state.db*")))


def on_a_terminal(zygote: Zygote, home: Path, answer: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command for somebody at a keyboard who types an answer."""
    keyboard, line = pty.openpty()
    try:
        os.write(keyboard, answer.encode())
        environment = os.environ | {"SEGUE_HOME": str(home), "PYTHONIOENCODING": "utf-8"}
        return zygote.run_bytes(arguments, Path(os.ttyname(line)), environment)
    finally:
        os.close(keyboard)
        os.close(line)


def test_a_dry_run_shows_what_would_go_and_changes_nothing(run: Run, shelf: Path) -> None:
    before = everything()
    result = run("sessions", "delete", "First", "a-grand", "--dry-run", COLUMNS="100")
    assert (result.returncode, result.stderr) == (0, "")
    title, header, _, alpha, story, last = result.stdout.splitlines()
    assert last == "Nothing was changed."
    assert title == "Into the trash:"
    assert header.split()[-5:] == ["Parts", "Messages", "Last", "Active", "ID"]
    assert alpha.split() == ["First", "1", "1", "just", "now", "alpha"]
    assert story.split() == ["Story", "#3", "4", "3", "just", "now", "a-grandchild"]
    assert everything() == before
    assert trashed(run) == []


@pytest.mark.on_file
@pytest.mark.parametrize("arguments", [("alpha",), ("alpha", "--purge")])
def test_without_a_terminal_and_without_yes_nothing_happens(run: Run, shelf: Path, arguments: tuple[str, ...]) -> None:
    before = everything()
    result = run("sessions", "delete", *arguments, stdin="y\n")
    assert result.returncode == 1
    assert "First" in result.stdout
    assert len(result.stderr.splitlines()) == 1
    assert "--yes" in result.stderr
    assert everything() == before


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("answer", "agreed", "left"), [("y\n", True, 5), ("n\n", False, 6), ("\n", False, 6), ("\x04", False, 6)]
)
def test_somebody_at_a_terminal_is_asked(zygote: Zygote, shelf: Path, answer: str, agreed: bool, left: int) -> None:
    result = on_a_terminal(zygote, shelf, answer, "sessions", "delete", "alpha")
    assert (result.returncode == 0) == agreed
    assert b"First" in result.stdout
    assert b"[y/N]" in result.stderr
    assert len(names()) == left


def test_yes_moves_a_conversation_into_the_trash(run: Run, shelf: Path) -> None:
    result = run("sessions", "delete", "First", "--yes")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("1 conversation moved to the trash for 7 days.\n")
    assert "alpha" not in names()
    assert trashed(run) == ["alpha"]


@pytest.mark.on_file
def test_the_days_in_the_trash_are_those_of_the_settings(run: Run, shelf: Path) -> None:
    configure(shelf, "retention: {trash_days: 1}\n")
    assert "for 1 day." in run("sessions", "delete", "alpha", "-y").stdout


def test_what_is_deleted_is_data_for_programs_too(run: Run, shelf: Path) -> None:
    refused = run("sessions", "delete", "alpha", "--json")
    assert (refused.returncode, refused.stdout, "--yes" in refused.stderr) == (1, "", True)
    done = run("sessions", "delete", "alpha", "child", "--yes", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    alpha, story = told["conversations"]
    assert (alpha["title"], alpha["preview"], alpha["parts"]) == ("First", "This is alpha.", ["alpha"])
    assert (story["id"], story["message_count"]) == ("a-grandchild", 3)
    assert (told["purged"], told["dry_run"]) == (False, False)
    purged = json.loads(run("sessions", "delete", "alpha", "--purge", "--yes", "--json").stdout)
    assert ([one["id"] for one in purged["conversations"]], purged["purged"]) == (["alpha"], True)
    assert "alpha" not in trashed(run)


def test_several_go_at_once(run: Run, shelf: Path) -> None:
    result = run("sessions", "delete", "alpha", "beta", "--yes")
    assert result.stdout.endswith("2 conversations moved to the trash for 7 days.\n")
    assert not {"alpha", "beta"} & names()


@pytest.mark.parametrize("twice", [("alpha", "First", "alp"), ("story", "child")])
def test_a_conversation_named_twice_goes_once(run: Run, shelf: Path, twice: tuple[str, ...]) -> None:
    result = run("sessions", "delete", *twice, "--yes")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("1 conversation moved to the trash for 7 days.\n")


def test_when_one_of_several_is_not_there_none_goes(run: Run, shelf: Path) -> None:
    before = everything()
    result = run("sessions", "delete", "alpha", "nobody", "--yes")
    assert (result.returncode, result.stdout) == (1, "")
    assert "'nobody'" in result.stderr
    assert everything() == before


@pytest.mark.parametrize("part", ["story", "Story #2"])
def test_a_lineage_goes_whole_and_comes_back_whole(run: Run, shelf: Path, part: str) -> None:
    before = everything()
    assert run("sessions", "delete", part, "--yes").returncode == 0
    assert names() == {"alpha", "beta"}
    assert sorted(trashed(run)) == ["a-grandchild", "child", "scout", "story"]
    result = run("sessions", "trash", "restore", "scout")
    assert (result.returncode, result.stderr) == (0, "")
    assert everything() == before
    assert trashed(run) == []


def test_the_trash_is_listed_with_the_latest_first(run: Run, shelf: Path) -> None:
    put_into_the_trash("alpha", days_ago=3)
    put_into_the_trash("beta", days_ago=1.5)
    result = run("sessions", "trash", "list", COLUMNS="80")
    assert (result.returncode, result.stderr) == (0, "")
    header, _, beta, alpha = result.stdout.splitlines()
    assert header.split()[-3:] == ["Messages", "Deleted", "ID"]
    assert beta.split() == ["This", "is", "beta.", "1", "yesterday", "beta"]
    assert alpha.split() == ["First", "1", "3d", "ago", "alpha"]


def test_the_trash_is_data_for_programs_too(run: Run, shelf: Path) -> None:
    put_into_the_trash("alpha", days_ago=3)
    (entry,) = json.loads(run("sessions", "trash", "list", "--json").stdout)
    assert abs(entry["trashed_at"] - (time.time() - 3 * DAY)) < 600
    wanted = {
        "session_id": "alpha",
        "conversation": "alpha",
        "title": "First",
        "first_line": "This is alpha.",
        "source": "cli",
        "principal": "owner",
        "audience": "",
        "message_count": 1,
    }
    assert wanted.items() <= entry.items()


@pytest.mark.on_file
def test_an_empty_trash_is_no_error(run: Run) -> None:
    result = run("sessions", "trash", "list")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "The trash is empty.\n")
    assert run("sessions", "trash", "list", "--json").stdout == "[]\n"
    result = run("sessions", "trash", "empty")
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("wanted", ["alpha", "alp", "First"])
def test_a_conversation_comes_back_as_it_was(run: Run, shelf: Path, wanted: str) -> None:
    before = everything()
    put_into_the_trash("alpha", days_ago=1)
    result = run("sessions", "trash", "restore", wanted)
    assert (result.returncode, result.stdout, result.stderr) == (0, "Restored alpha.\n", "")
    assert everything() == before


def test_a_title_that_was_given_away_comes_back_with_a_number(run: Run, shelf: Path) -> None:
    put_into_the_trash("alpha", days_ago=1)
    with SessionDB() as db:
        db.set_session_title("beta", "First")
    result = run("sessions", "trash", "restore", "alpha")
    assert result.returncode == 0
    assert "'First #2'" in result.stderr
    with SessionDB() as db:
        assert db.get_session_title("alpha") == "First #2"


@pytest.mark.on_file
def test_what_is_not_in_the_trash_cannot_come_back(run: Run, shelf: Path) -> None:
    result = run("sessions", "trash", "restore", "alpha")
    assert (result.returncode, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1
    assert "'alpha'" in result.stderr
    assert "sessions trash list" in result.stderr


def test_a_beginning_that_fits_several_in_the_trash_lists_them(run: Run, shelf: Path) -> None:
    with SessionDB() as db:
        db.create_session("alphabet")
    put_into_the_trash("alpha", days_ago=1)
    put_into_the_trash("alphabet", days_ago=1)
    result = run("sessions", "trash", "restore", "alph")
    assert (result.returncode, result.stdout) == (1, "")
    assert "alpha, alphabet" in result.stderr
    assert run("sessions", "trash", "restore", "alpha").returncode == 0


def test_a_copy_in_the_trash_does_not_claim_to_be_restored_over_the_session_that_is_here(run: Run, shelf: Path) -> None:
    replace_alpha(run)
    result = run("sessions", "trash", "restore", "alpha")
    assert result.returncode != 0
    assert result.stdout == ""
    assert "alpha is here already" in result.stderr


def test_only_what_is_old_enough_leaves_the_trash(run: Run, shelf: Path) -> None:
    put_into_the_trash("alpha", days_ago=3)
    put_into_the_trash("beta", days_ago=1)
    result = run("sessions", "trash", "empty", "--older-than", "2", "--dry-run")
    assert "alpha" in result.stdout
    assert "beta" not in result.stdout
    assert trashed(run) == ["beta", "alpha"]
    result = run("sessions", "trash", "empty", "--older-than", "2")
    assert result.returncode == 1
    assert "--yes" in result.stderr
    assert trashed(run) == ["beta", "alpha"]
    result = run("sessions", "trash", "empty", "--older-than", "2", "--yes")
    assert result.stdout.endswith("1 session removed.\n")
    assert trashed(run) == ["beta"]
    assert run("sessions", "trash", "empty", "--yes").returncode == 0
    assert trashed(run) == []


def mark_everything() -> None:
    """A conversation that says a word wherever a word can be kept."""
    word = {"role": "assistant", "content": MARKER, "reasoning": MARKER, "provider": MARKER, "finish_reason": MARKER}
    call = {"id": MARKER, "type": "function", "function": {"name": MARKER, "arguments": MARKER}}
    messages = [
        {"role": "user", "content": f"{MARKER} " * 3000, "author": MARKER, "attachments": [MARKER]},
        word | {"tool_calls": [call], "seq": 2, "state": "compacted"},
        {"role": "tool", "content": [{"type": "text", "text": MARKER}], "tool_name": MARKER, "tool_call_id": MARKER},
        {"role": "user", "content": MARKER, "state": "undone", "unheard_of": MARKER},
    ]
    marked = dict.fromkeys(("title", "user_id", "model", "cwd", "agent", "model_config", "system_prompt"), MARKER)
    first = {"id": "marked", "source": "cli", "tags": [MARKER], "messages": messages, **marked}
    second = {"id": "marked-2", "source": "cli", "parent_session_id": "marked", "messages": messages}
    with SessionDB() as db:
        assert db.import_sessions([first, second])["added"] == 2


def replace_alpha(run: Run) -> None:
    """Another alpha comes in, and the old one goes into the trash."""
    other = {"id": "alpha", "source": "cli", "messages": [{"role": "user", "content": "Another alpha"}]}
    result = run("sessions", "import", "-", "--on-conflict", "replace", stdin=json.dumps(other))
    assert result.stdout == "1 replaced.\n"


@pytest.mark.on_file
@pytest.mark.parametrize("at_first", ["at hand", "trashed", "trashed and restored"])
def test_a_purge_leaves_no_byte_of_a_conversation(run: Run, shelf: Path, at_first: str) -> None:
    mark_everything()
    if at_first != "at hand":
        assert run("sessions", "delete", "marked", "--yes").returncode == 0
    if at_first == "trashed and restored":
        assert run("sessions", "trash", "restore", "marked-2").returncode == 0
    assert MARKER.encode() in bytes_of(shelf)
    result = run("sessions", "delete", "marked", "--purge", "--yes")
    assert (result.returncode, result.stderr) == (0, "")
    assert "1 conversation removed" in result.stdout
    assert MARKER.encode() not in bytes_of(shelf)
    assert {"alpha", "beta", "story"} <= names()
    assert trashed(run) == []


def test_a_purge_claims_what_holds_on_its_database(run: Run, shelf: Path, database: str) -> None:
    """A file is rewritten; of a server only the rows can be vouched for."""
    mark_everything()
    result = run("sessions", "delete", "marked", "--purge", "--yes")
    assert (result.returncode, result.stderr) == (0, "")
    if database == "sqlite":
        assert "1 conversation removed; no copy is left in the database.\n" in result.stdout
    else:
        assert "1 conversation removed; no row of the database holds it." in result.stdout
        assert "may keep its bytes in free pages, its log and its backups" in result.stdout
    with Beside(shelf) as beside:
        assert [table.name for table in TABLES if holds_marker(beside, table)] == []


def holds_marker(beside: Beside, table: Table) -> bool:
    texts = [column.name for column in table.columns if column.type == "TEXT"]
    conditions = " OR ".join(f"{name} LIKE ?" for name in texts) or "1 = 0"
    values = [f"%{MARKER}%"] * len(texts)
    return bool(beside.ask(f"SELECT 1 FROM {table.name} WHERE {conditions} LIMIT 1", *values))


@pytest.mark.on_file
@pytest.mark.parametrize("is_trashed", [False, True])
def test_a_purge_takes_what_was_typed_and_leaves_the_rest(run: Run, shelf: Path, is_trashed: bool) -> None:
    history = shelf / "history"
    history.write_text('"hello"\n"This is child."\n"This is alpha."\n"/quit"\n"This is story."\n')
    history.chmod(0o600)
    if is_trashed:
        assert run("sessions", "delete", "child", "--yes").returncode == 0
    result = run("sessions", "delete", "child", "--purge", "--yes")
    assert "2 lines removed from what you typed before." in result.stdout
    assert history.read_text() == '"hello"\n"This is alpha."\n"/quit"\n'
    assert history.stat().st_mode & 0o777 == 0o600


@pytest.mark.on_file
def test_a_purge_of_what_was_replaced_takes_the_old_copy_too(run: Run, shelf: Path) -> None:
    replace_alpha(run)
    assert b"This is alpha." in bytes_of(shelf)
    assert run("sessions", "delete", "alpha", "--purge", "--yes").returncode == 0
    assert b"Another alpha" not in bytes_of(shelf)
    assert b"This is alpha." not in bytes_of(shelf)
    assert trashed(run) == []


def test_a_purge_is_shown_first_and_a_dry_run_keeps_everything(run: Run, shelf: Path) -> None:
    before = everything()
    result = run("sessions", "delete", "child", "--purge", "--dry-run")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("For good")
    assert "a-grandchild" in result.stdout
    assert everything() == before


@pytest.mark.on_file
def test_an_emptied_trash_leaves_no_byte(run: Run, shelf: Path) -> None:
    mark_everything()
    put_into_the_trash("marked", days_ago=1)
    assert MARKER.encode() in bytes_of(shelf)
    assert run("sessions", "trash", "empty", "--yes").returncode == 0
    assert MARKER.encode() not in bytes_of(shelf)


@pytest.mark.on_file
@pytest.mark.parametrize("columns", [40, 80])
def test_previews_fit_the_terminal(run: Run, shelf: Path, columns: int) -> None:
    with SessionDB() as db:
        db.create_session("20250305_091523_a1b2c3d4", title="A title that is rather long for a narrow terminal")
    preview = run("sessions", "delete", "20250305", "--dry-run", COLUMNS=str(columns)).stdout.splitlines()
    put_into_the_trash("20250305_091523_a1b2c3d4", days_ago=1)
    listed = run("sessions", "trash", "list", COLUMNS=str(columns)).stdout.splitlines()
    assert [line for line in preview + listed if len(line) > columns] == []
