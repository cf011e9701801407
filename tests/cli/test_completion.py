"""TAB: what is offered, and what real shells make of it. A title is data at TAB and at Enter, whatever it says."""

import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import wait_until
from zygote import Zygote

from segue import SessionDB
from segue.cli.completing import Candidate, offers, quoted_for_line, split_typed

pytestmark = pytest.mark.on_file

Run = Callable[..., subprocess.CompletedProcess[str]]

SHELLS = ["bash", "zsh", "fish"]
READY = "ready> "
_BEHIND = "Q"
"""Stands in nothing that is typed or listed."""
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")

TITLES = {
    "words": "week in Lisbon",
    "quotes": "it's \"quoted\" 'twice'",
    "substitution": "run $(touch x) ${HOME} $HOME",
    "backticks": "back `touch x`",
    "operators": "op; touch x & touch x | touch x > x < x (y)",
    "backslashes": "slash \\n \\\\ \\",
    "history": "bang !! !1 !x ^a^b",
    "patterns": "glob * ? [a-z] {a,b} **",
    "unicode": "über 日本語 👩‍👩‍👧 é مرحبا",
    "breaks": "colon:a=b@c:d #2 100% ~",
    "tilde": "~root",
    "equals": "=ls",
    "hash": "#1 in the list",
    "star": "*",
    "dollar": "$(touch x)",
    "semicolon": ";touch x",
    "dashes": "--json is the best",
    "dash": "-n",
}


def table(*typed: tuple[str, str]) -> list[object]:
    return [pytest.param(name, words, id=f"{name}: {words}") for name, words in typed]


TYPED = table(
    ("words", "week"),
    ("words", "week\\ in\\ L"),
    ("words", "'week in"),
    ("words", '"week in'),
    ("quotes", "it"),
    ("quotes", '"it'),
    ("quotes", "\"it's"),
    ("quotes", "it\\'s\\ "),
    ("substitution", "run"),
    ("substitution", '"run'),
    ("substitution", "'run $(to"),
    ("backticks", "back"),
    ("backticks", '"back'),
    ("operators", "op"),
    ("operators", "'op; "),
    ("backslashes", "slash"),
    ("backslashes", "'slash"),
    ("backslashes", '"slash'),
    ("history", "bang"),
    ("history", "'bang"),
    ("history", '"bang'),
    ("patterns", "glob"),
    ("unicode", "über"),
    ("unicode", "übe"),
    ("breaks", "col"),
    ("breaks", "colon:a"),
    ("breaks", "colon:a="),
    ("tilde", "'~"),
    ("equals", "'="),
    ("equals", "\\="),
    ("hash", "'#"),
    ("hash", "\\#1"),
    ("star", "'*"),
    ("star", "\\*"),
    ("dollar", "'$"),
    ("dollar", "\\$"),
    ("semicolon", "\\;"),
    ("dashes", "-- --js"),
    ("dash", "-- -n"),
)


class Completer:
    """Answers the shells: `segue` as they call it for completion, without Python starting each time."""

    def __init__(self, folder: Path, zygote: Zygote) -> None:
        self.program = folder / "complete"
        self.complaints: list[bytes] = []
        self._folder, self._zygote = folder, zygote
        for name in ("asked", "answer"):
            os.mkfifo(folder / name)
        self.program.write_text(
            f"#!/bin/sh\ncd {folder} || exit\n"
            "printf '%s\\0' \"$@\" >arguments; env -0 >environment; echo ? >asked; cat answer\n"
        )
        self.program.chmod(0o755)
        self._thread = threading.Thread(target=self._answer)
        self._thread.start()

    def close(self) -> None:
        (self._folder / "asked").write_text("")
        self._thread.join()

    def _answer(self) -> None:
        while (self._folder / "asked").read_text():
            arguments, variables = (
                [os.fsdecode(one) for one in (self._folder / name).read_bytes().split(b"\0")[:-1]]
                for name in ("arguments", "environment")
            )
            environment = dict(one.partition("=")[::2] for one in variables)
            done = self._zygote.run_bytes(arguments, b"", environment)
            self.complaints += [done.stderr] if done.stderr else []
            (self._folder / "answer").write_bytes(done.stdout)


class Shell:
    """An interactive shell on a terminal of its own, in which `segue` completes, and otherwise notes its arguments."""

    def __init__(self, name: str, folder: Path, home: Path, completer: Path) -> None:
        self.folder, self.name = folder / "work", name
        self._noted, self._answered = folder / "noted", folder / "answered"
        programs = folder / "bin"
        for made in (self.folder, programs, folder / ".config" / "fish"):
            made.mkdir(parents=True)
        python = shlex.quote(sys.executable)
        (programs / "segue").write_text(
            "#!/bin/sh\n"
            f'if [ -n "$_SEGUE_COMPLETE" ]; then {completer} "$@"; echo done >{self._answered}; exit; fi\n'
            f"printf '%s\\0' \"$@\" >{self._noted}.part; mv {self._noted}.part {self._noted}\n"
        )
        (programs / "segue").chmod(0o755)
        (folder / ".bashrc").write_text(f"PS1='{READY}'\nbind 'set bell-style none'\neval \"$(segue_real)\"\n")
        (folder / ".zshrc").write_text(f"PS1='{READY}'\nunsetopt beep\neval \"$(segue_real)\"\n")
        fish = f"function fish_prompt; echo -n '{READY}'; end\nset fish_greeting\nsegue_real | source\n"
        (folder / ".config" / "fish" / "config.fish").write_text(fish)
        (programs / "segue_real").write_text(f"#!/bin/sh\nexec {python} -m segue completion {name}\n")
        (programs / "segue_real").chmod(0o755)
        words = {"bash": ["bash", "--noprofile", "--rcfile", str(folder / ".bashrc"), "-i"]}.get(name, [name, "-i"])
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        environment = {
            "HOME": str(folder),
            "ZDOTDIR": str(folder),
            "SEGUE_HOME": str(home),
            "TERM": "xterm",
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "HISTFILE": str(folder / "history"),
        }
        self._process = subprocess.Popen(
            words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=self.folder, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""
        self._until(lambda: READY in self.seen)

    def tab(self, line: str) -> None:
        """Type a line and complete it."""
        self._answered.unlink(missing_ok=True)
        self._type(line + "\t")
        self._until(self._answered.exists)

    def list_choices(self, line: str) -> None:
        """Complete a line once more than that, which makes the shell list what there is; leave it, and run nothing.

        What is typed behind is shown when the shell has listed all, and not before.
        """
        self.tab(line)
        before = self.seen.count(_BEHIND)
        self._type(f"\t{_BEHIND}")
        self._until(lambda: self.seen.count(_BEHIND) > before)
        self._answered_by_prompt("\x03")

    def enter(self) -> list[str]:
        """Run the line; the arguments that arrived."""
        self._noted.unlink(missing_ok=True)
        self._answered_by_prompt("\r")
        self._until(self._noted.exists)
        return self._noted.read_text().split("\0")[:-1]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)

    def _answered_by_prompt(self, key: str) -> None:
        before = self.seen.count(READY)
        self._type(key)
        self._until(lambda: self.seen.count(READY) > before)

    def _type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def _until(self, is_so: Callable[[], bool]) -> None:
        def is_reached() -> bool:
            self._listen(0.01)
            return is_so()

        try:
            wait_until(is_reached)
        except TimeoutError:
            raise AssertionError(f"{self.name} did not get there: {self.seen[-2000:]!r}") from None

    def _listen(self, seconds: float) -> None:
        """Read until there is nothing for so long."""
        while select.select([self._terminal], [], [], seconds)[0]:
            self.seen += os.read(self._terminal, 65536).decode(errors="replace")


@pytest.fixture(scope="module")
def full_home(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Path:
    """A home with every title, twins that differ in what must be quoted, and one that is in the trash."""
    home = tmp_path_factory.mktemp("full") / "home"
    with SessionDB(home / "state.db") as db:
        for name, title in TITLES.items():
            db.create_session(f"id-{name}", title=title)
        for name, title in {"1": "twin $(touch x)", "2": "twin ;touch x", "3": "twin 'x"}.items():
            db.create_session(f"pair-{name}", title=title)
        db.create_session("evil\x1b]0;owned\x07id")
        db.create_session("gone-1", title="gone for now $(touch x)")
    words = ["sessions", "delete", "gone-1", "--yes"]
    assert zygote.run(words, None, os.environ | {"SEGUE_HOME": str(home)}).returncode == 0
    return home


@pytest.fixture(scope="module")
def completer(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Iterator[Completer]:
    made = Completer(tmp_path_factory.mktemp("completer"), zygote)
    yield made
    made.close()
    assert made.complaints == []


@pytest.fixture(scope="module", params=SHELLS)
def shell(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, full_home: Path, completer: Completer
) -> Iterator[Shell]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    opened = Shell(request.param, tmp_path_factory.mktemp(request.param), full_home, completer.program)
    yield opened
    opened.close()


@pytest.mark.parametrize(("name", "typed"), TYPED)
def test_an_accepted_title_is_one_argument_and_runs_nothing(shell: Shell, name: str, typed: str) -> None:
    shell.tab(f"segue sessions show {typed}")
    before = ["--"] if typed.startswith("-- ") else []
    assert shell.enter() == ["sessions", "show", *before, TITLES[name]]
    assert list(shell.folder.iterdir()) == []


def test_what_fits_several_is_listed_and_completed_as_far_as_they_agree(shell: Shell) -> None:
    shell.list_choices("segue sessions show tw")
    shell.tab("segue sessions show tw")
    shell.tab("\\;")
    assert shell.enter() == ["sessions", "show", "twin ;touch x"]
    assert list(shell.folder.iterdir()) == []


def test_everything_can_be_listed_and_nothing_runs(shell: Shell) -> None:
    shell.list_choices("segue sessions show ")
    shell.list_choices("segue sessions show evil")
    assert "owned" not in shell.seen
    assert list(shell.folder.iterdir()) == []


def test_commands_options_and_the_trash_are_completed(shell: Shell) -> None:
    shell.tab("segue sess")
    shell.tab("tras")
    shell.tab("rest")
    shell.tab("gone\\ ")
    assert shell.enter() == ["sessions", "trash", "restore", "gone for now $(touch x)"]
    shell.tab("segue sessions export - --session")
    shell.tab("week")
    assert shell.enter() == ["sessions", "export", "-", "--session-id", "week in Lisbon"]
    assert list(shell.folder.iterdir()) == []


Answer = Callable[..., list[list[str]]]


@pytest.fixture
def answer(zygote: Zygote) -> Answer:
    """What a shell that hands over plain words is told: kind, value and help of each candidate; and nothing else."""

    def told(home: Path, *words: str) -> list[list[str]]:
        environment = os.environ | {"SEGUE_HOME": str(home), "_SEGUE_COMPLETE": "fish_complete"}
        result = zygote.run_bytes(["segue", *words], b"", environment)
        assert (result.returncode, result.stderr) == (0, b"")
        text = result.stdout.decode()
        assert DANGEROUS.findall(text) == []
        return [line.split("\t") for line in text.split("\n") if line]

    return told


@pytest.mark.parametrize(
    ("candidate", "incomplete", "offered"),
    [
        (Candidate("id-1", "title", "hello"), "", {"title": "id-1"}),
        (Candidate("id-1", None, "hello"), "", {"id-1": "hello"}),
        (Candidate("id-1", "title", "hello"), "id", {"id-1": "title"}),
        (Candidate("same-1", "same title", ""), "same", {"same title": "same-1", "same-1": "same title"}),
        (Candidate("id-1", "title", ""), "other", {}),
        (Candidate("id-1", "--json", ""), "", {"id-1": "--json"}),
        (Candidate("id-1", "--json", ""), "--", {"--json": "id-1"}),
        (Candidate("-1", None, ""), "", {}),
        (Candidate("evil\x1b[31m", "title", ""), "", {"title": "evil\x1b[31m"}),
        (Candidate("evil\x1b[31m", None, ""), "", {}),
        (Candidate("two\nlines", "a\ttab", ""), "", {}),
        (Candidate("id-1", "right\u202eleft", ""), "", {"id-1": "right\u202eleft"}),
    ],
)
def test_what_is_offered(candidate: Candidate, incomplete: str, offered: dict[str, str]) -> None:
    assert {item.value: item.help for item in offers([candidate], incomplete)} == offered


def test_at_most_fifty_are_offered_the_most_recently_active_first(home: Path, db: SessionDB, answer: Answer) -> None:
    sessions = [{"id": f"id-{n:03}", "source": "cli", "title": f"My {n}", "started_at": n} for n in range(120)]
    assert db.import_sessions(sessions)["added"] == 120
    for typed in ("", "My", "id-"):
        values = [value for _, value, _ in answer(home, "sessions", "show", typed)]
        assert len(values) == 50
        assert values[0] == ("id-119" if typed == "id-" else "My 119")
    assert [value for _, value, _ in answer(home, "sessions", "show", "My\\ 7")][:2] == ["My 79", "My 78"]


def test_archived_pinned_and_older_parts_are_found_where_they_are_wanted(
    home: Path, run: Run, db: SessionDB, answer: Answer
) -> None:
    db.create_session("id-1", title="put aside")
    db.create_session("id-2", title="kept")
    assert run("sessions", "archive", "id-1").returncode == run("sessions", "pin", "id-2").returncode == 0
    assert [row[1] for row in answer(home, "sessions", "show", "")] == ["kept"]
    assert [row[1] for row in answer(home, "sessions", "show", "put")] == ["put aside"]
    assert [row[1] for row in answer(home, "sessions", "unarchive", "")] == ["put aside"]
    assert [row[1] for row in answer(home, "sessions", "unpin", "")] == ["kept"]


@pytest.mark.parametrize(
    "words",
    ["show", "rename", "delete", "archive", "unarchive", "pin", "unpin", "tag", "untag", "export - --session-id"],
)
def test_every_id_or_title_is_completed(full_home: Path, words: str, answer: Answer) -> None:
    assert answer(full_home, "sessions", *words.split(), "week") == [["plain", "week in Lisbon", "id-words"]]
    assert answer(full_home, "sessions", *words.split(), "gone") == []


def test_a_value_after_an_equals_sign_is_completed_with_its_option(full_home: Path, answer: Answer) -> None:
    found = answer(full_home, "sessions", "export", "-", "--session-id=week")
    assert [value for _, value, _ in found] == ["--session-id=week in Lisbon"]


def test_the_trash_offers_what_is_in_it(full_home: Path, answer: Answer) -> None:
    assert answer(full_home, "sessions", "trash", "restore", "") == [["plain", "gone for now $(touch x)", "gone-1"]]
    assert answer(full_home, "sessions", "trash", "restore", "week") == []


def test_hostile_text_never_reaches_the_terminal(home: Path, db: SessionDB, answer: Answer) -> None:
    hostile = "\x1b]0;owned\x07\x9b31m\u202e\r\nx\ty"
    db.import_sessions([{"id": "evil", "source": "cli", "messages": [{"role": "user", "content": hostile}]}])
    db.import_sessions([{"id": f"evil{hostile}", "source": "cli", "title": f"evil {hostile}"}])
    values = [row[1] for row in answer(home, "sessions", "show", "evil")]
    assert len(values) == 2
    assert all(value.startswith("evil") for value in values)


def spoil_nothing(home: Path) -> None:
    pass


def spoil_database(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "state.db").write_bytes(b"no database " * 1000)


def spoil_settings(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "state.db").touch()
    (home / "config.yaml").write_text("]: [")


def spoil_folder(home: Path) -> None:
    home.write_text("not a folder")


@pytest.mark.parametrize("spoil", [spoil_nothing, spoil_database, spoil_settings, spoil_folder])
def test_a_missing_or_broken_home_offers_nothing_and_stays_as_it_is(
    home: Path, spoil: Callable[[Path], None], answer: Answer
) -> None:
    spoil(home)
    before = sorted(home.parent.rglob("*"))
    for words in (["show", ""], ["show", "x"], ["trash", "restore", ""]):
        assert answer(home, "sessions", *words) == []
    assert sorted(home.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("line", "words", "quote"),
    [
        ("", [""], ""),
        ("segue ", ["segue", ""], ""),
        ("segue  show My\\ ti", ["segue", "show", "My ti"], ""),
        ("segue 'it is", ["segue", "it is"], "'"),
        ('segue "a \\"b\\" \\n $(x)', ["segue", 'a "b" \\n $(x)'], '"'),
        ("segue 'a'\"b\" c", ["segue", "ab", "c"], ""),
        ("segue ''", ["segue", ""], ""),
        ("segue '' ", ["segue", "", ""], ""),
        ("segue My\\", ["segue", "My"], ""),
    ],
)
def test_an_unfinished_line_is_taken_apart(line: str, words: list[str], quote: str) -> None:
    assert split_typed(line) == (words, quote)


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_bash_reads_each_quoted_value_as_it_was(quote: str) -> None:
    values = [*TITLES.values(), *(f"x{chr(code)}{chr(code)}" for code in range(32, 127))]
    line = " ".join(f"{quote}{value}{quote}" for value in quoted_for_line(values, quote))
    result = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True)
    assert result.stdout.decode().split("\0")[:-1] == values


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("values", [["a $", 'a "'], ["a `b", "a \\c", "a $d"], ["it's", "it$"], ["a $b", "a $ b"]])
def test_what_values_have_in_common_never_ends_in_half_a_quotation(values: list[str], quote: str) -> None:
    quoted = quoted_for_line(values, quote)
    beginnings = [quoted[0][:length] for length in range(len(quoted[0]) + 1)]
    common = max((one for one in beginnings if all(other.startswith(one) for other in quoted)), key=len)
    assert not common.replace("\\\\", "").endswith("\\")
    assert [split_typed(quote + one + quote).words for one in quoted] == [[value] for value in values]


@pytest.mark.parametrize("shell_name", SHELLS)
def test_the_script_is_printed_and_its_help_says_how_to_install_it(run: Run, shell_name: str, home: Path) -> None:
    result = run("completion", shell_name)
    assert (result.returncode, result.stderr) == (0, "")
    assert f"_SEGUE_COMPLETE={shell_name}_complete" in result.stdout
    assert 'eval "$(segue completion bash)"' in run("completion", "--help").stdout
    assert not home.exists()
