"""`segue sessions search` as people use it."""

import json
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner

from segue import SessionDB
from segue.cli.searching import search
from segue.sessions.searching import INCOMPLETE, Answer
from segue.sessions.searching import search as search_messages

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def told(home: Path) -> None:
    with SessionDB() as db:
        db.create_session("trip", "cli", title="Spring \x1b[31mred")
        db.append_message("trip", "user", "Which week is best for \x1b[2JLisbon >>>now<<<?")
        db.append_message("trip", "assistant", "In Lisbon, the third.")
        db.create_session("other", "telegram", title="天气")
        db.append_message("other", "user", "明天天气如何")


@pytest.mark.usefixtures("told")
def test_matches_are_grouped_by_conversation_and_lead_back_to_it(run: Run) -> None:
    done = run("sessions", "search", "lisbon")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "Spring [31mred  trip", "its escape character is gone"
    assert sum(line.startswith(("●", "◆")) for line in lines) == 2
    assert "\x1b" not in done.stdout
    assert run(*lines[-1].removeprefix("segue ").split()).returncode == 0


@pytest.mark.usefixtures("told")
def test_it_answers_programs_and_says_when_there_is_nothing(run: Run) -> None:
    [hit] = json.loads(run("sessions", "search", "天", "--json").stdout)
    assert (hit["session_id"], hit["snippet"]) == ("other", "明>>>天天<<<气如何")
    none = run("sessions", "search", "elephant")
    assert (none.returncode, none.stdout, none.stderr) == (0, "", "Nothing was found.\n")
    assert run("sessions", "search").returncode == 2


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(
    "query", ["(", "--jso", '"', "*", "NOT", "-", "a" * 5000, "~", "-1", "---", "-hello", "--foo=1"]
)
def test_no_query_is_an_error(run: Run, query: str) -> None:
    done = run("sessions", "search", query)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("Nothing was found.\n")


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rm", "-rf"), "rm -rf build"),
        (("--foo",), "try --foo"),
        (("--limit", "1", "-rf", "build"), "rm -rf build"),
        (("-n1", "-rf", "build"), "rm -rf build"),
        (("-rf", "build", "-n", "1"), "rm -rf build"),
        (("find", "-name"), "find -name x"),
        (("rm", "-rf", "--json"), "rm -rf build"),
        (("-zh",), "tar -zh"),
        (("--", "--json"), "give it --json"),
        (("--sort", "new", "--", "-h"), "df -h"),
        (("git", "--", "--"), "git -- file"),
    ],
)
def test_what_is_no_option_is_a_word(run: Run, home: Path, arguments: tuple[str, ...], said: str) -> None:
    with SessionDB() as db:
        db.create_session("notes", "cli", title="Notes")
        for text in (
            "rm -rf build",
            "try --foo",
            "tar -zh",
            "give it --json",
            "df -h",
            "git -- file",
            "find -name x",
            "rm rf foo zh h",
        ):
            db.append_message("notes", "user", text)
    done = run("sessions", "search", *arguments)
    assert done.returncode == 0, done.stderr
    if "--json" in arguments and "--" not in arguments:
        assert [hit["snippet"] for hit in json.loads(done.stdout)] == [">>>rm<<< >>>-rf<<< build"]
    else:
        assert [plain(line) for line in done.stdout.splitlines() if line.startswith("●")] == [said]


def plain(line: str) -> str:
    return line.removeprefix("● ").replace(">>>", "").replace("<<<", "").split("  #")[0]


@pytest.mark.on_file
def test_its_own_options_stay_options(run: Run, home: Path) -> None:
    for arguments in (("-h",), ("lisbon", "--help"), ("--foo", "-h")):
        assert run("sessions", "search", *arguments).stdout.startswith("Usage: ")
    wrong: dict[tuple[str, ...], str] = {
        ("lisbon", "--limit"): "Option '--limit' requires an argument.",
        ("--limit=none", "lisbon"): "Invalid value for '--limit'",
        ("lisbon", "--offset", "-1"): "Invalid value for '--offset'",
        ("lisbon", "--role", "system"): "Invalid value for '--role'",
        ("--",): "Missing argument 'QUERY'.",
        ("--after", "2026-W28-5", "x"): "'2026-W28-5' is no date; write it like 2025-03-05, ",
        ("--before", "20260710", "x"): "'20260710' is no date; write it like 2025-03-05, ",
        ("--before", "tomorrow", "x"): "'tomorrow' is no date; write it like 2025-03-05, ",
    }
    for given, sentence in wrong.items():
        done = run("sessions", "search", *given)
        assert (done.returncode, done.stdout) == (2, "")
        assert sentence in done.stderr


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def dated(home: Path) -> None:
    with SessionDB() as db:
        for source, role, moment in (
            ("cli", "user", "2026-07-09T23:30"),
            ("telegram", "user", "2026-07-10T00:30"),
            ("cli", "assistant", "2026-01-10T23:30"),
            ("cron", "tool", "2026-01-11T00:30"),
        ):
            name = moment[5:10]
            db.create_session(name, source)
            at = datetime.fromisoformat(moment).replace(tzinfo=BERLIN).timestamp()
            db.append_message(name, role, f"Lisbon on {name}", timestamp=at)


@pytest.mark.usefixtures("dated")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--after 2026-07-10", {"07-10"}),
        ("--since 2026-07-10", {"07-10"}),
        ("--since 2026-07-10T00:00", {"07-10"}),
        ("--since 2026-07-09T23:45", {"07-10"}),
        ("--before 2026-07-09T23:45", {"07-09", "01-10"}),
        ("--since 7d", set()),
        ("--before 2026-07-10", {"07-09", "01-10"}),
        ("--before 2026-01-11", {"01-10"}),
        ("--after 2026-07-09 --before 2026-07-10", {"07-09"}),
        ("after:2026-07-10", {"07-10"}),
        ("before:2026-01-11", {"01-10"}),
        ("after:2026-07-09 --before 2026-07-10", {"07-09"}),
        ("--after 0001-01-01 --before 9999-12-31", {"07-09", "07-10", "01-10"}),
        ("--exclude-source cli", {"07-10"}),
        ("--exclude-source cli --exclude-source telegram", set[str]()),
        ("--role user", {"07-09", "07-10"}),
        ("--role user --role assistant --source cli", {"07-09", "01-10"}),
        ("--role tool", {"01-11"}),
        ("in:tools", {"07-09", "07-10", "01-10", "01-11"}),
        ("--sort new --limit 1", {"07-10"}),
        ("--sort new --limit 1 --offset 1", {"07-09"}),
        ("--sort new --offset 2", {"01-10"}),
        ("--offset 3", set[str]()),
    ],
)
def test_options_narrow_by_day_platform_and_speaker(run: Run, arguments: str, expected: set[str]) -> None:
    done = run("sessions", "search", "lisbon", *arguments.split(), "--json", TZ="Europe/Berlin")
    assert {hit["session_id"] for hit in json.loads(done.stdout)} == expected


@pytest.mark.on_file
def test_a_summary_that_is_found_is_not_taken_for_the_persons_words(run: Run, home: Path) -> None:
    said = [{"role": "user", "content": "Where to?"}]
    summary = [{"seq": 0, "role": "user", "content": "They chose Lisbon."}]
    with SessionDB() as db:
        db.import_sessions([{"id": "one", "source": "cli", "messages": said, "end_reason": "compression"}])
        db.import_sessions([{"id": "two", "source": "cli", "parent_session_id": "one", "messages": summary}])
    assert "■ They chose >>>Lisbon<<<." in run("sessions", "search", "lisbon").stdout


@pytest.mark.on_file
def test_what_was_said_around_a_match_is_shown(run: Run, home: Path) -> None:
    with SessionDB() as db:
        db.create_session("trip", "cli", title="Trip")
        for role, text in [
            ("user", "Good morning"),
            ("assistant", "Where to? " + "Tell me. " * 50),
            ("user", "Lisbon,\nperhaps \x1b[2J"),
            ("assistant", "Lisbon it is."),
            ("user", "Thanks"),
            ("assistant", "You are welcome."),
            ("user", "How far is it?"),
            ("assistant", "Lisbon is two hours away."),
        ]:
            db.append_message("trip", role, text)
    done = run("sessions", "search", "lisbon", "--context", COLUMNS="40")
    name, *lines, _, last = done.stdout.splitlines()
    assert name == "Trip  trip"
    assert [line.split("  #")[0] for line in lines] == [
        "  ◆ Where to? Tell me. Tell me. Tell me…",
        "● >>>Lisbon<<<, perhaps",
        "◆ >>>Lisbon<<< it is.",
        "  ● Thanks",
        "  ⋮",
        "  ● How far is it?",
        "◆ >>>Lisbon<<< is two hours away.",
    ]
    assert last.startswith("segue sessions show trip --around ")
    assert "Thanks" not in run("sessions", "search", "lisbon").stdout


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_what_is_to_be_known_about_the_answer_is_said_beside_it(run: Run, more: tuple[str, ...]) -> None:
    done = run("sessions", "search", "lisbon", "elephant", *more)
    assert "these have some of the words" in done.stderr
    assert "some of the words" not in done.stdout
    assert not more or len(json.loads(done.stdout)) == 2


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("more", [(), ("--json",), ("--context",)])
def test_a_session_that_goes_meanwhile_is_shown_as_it_was(
    home: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    def look_and_lose(*args: Any) -> Answer:
        answer = search_messages(*args)
        with SessionDB() as db:
            db.delete_session("trip")
        return answer

    monkeypatch.setattr("segue.facade.searching.search", look_and_lose)
    done = CliRunner().invoke(search, ["lisbon", *more])
    assert done.exception is None
    assert "the third." in done.output
    with SessionDB() as db:
        assert db.get_session("trip") is None


@pytest.mark.usefixtures("told")
def test_the_index_is_examined_and_made_anew(run: Run, home: Path) -> None:
    done = run("doctor", "--reindex")
    assert done.returncode == 0, done.stdout
    assert "made anew" in done.stderr
    assert "✓ search" in done.stdout


@pytest.mark.on_file
@pytest.mark.usefixtures("told")
def test_more_is_promised_only_where_there_may_be_more(run: Run) -> None:
    done = run("sessions", "search", "lisbon", "--limit", "1")
    assert "--offset 1 shows the next." in done.stderr
    assert "There are no more." in run("sessions", "search", "lisbon", "--offset", "50").stderr
    assert "--limt was searched for as a word; did you mean --limit?" in run("sessions", "search", "x", "--limt").stderr


@pytest.mark.on_file
def test_the_short_way_is_pointed_out(run: Run) -> None:
    assert "did you mean `segue sessions search`?" in run("search", "lisbon").stderr


@pytest.mark.on_file
@pytest.mark.usefixtures("told")
def test_what_is_to_be_known_stands_below_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("segue.cli.searching.pages", shown.extend)
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)
    assert CliRunner().invoke(search, ["lisbo"]).exception is None
    assert [line for line in shown if "these have" in line] == shown[-1:]
    assert sum("●" in line or "◆" in line for line in shown[:-1]) == 2


@pytest.mark.usefixtures("told")
def test_a_search_cut_off_by_time_is_incomplete_and_not_without_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.facade.searching.TIME", 0.0)
    for more in [[], ["--json"], ["--offset", "5"], ["--sort", "new"]]:
        done = CliRunner().invoke(search, ["lisbon", *more])
        assert done.stderr == f"{INCOMPLETE}\n"
        assert "incomplete" in INCOMPLETE
