"""Groups of commands: what is suggested for a mistyped name, other names of commands, and their help."""

import subprocess
from collections.abc import Callable, Iterator

import click
import pytest

from segue.cli import cli
from segue.cli.completing import completion
from segue.cli.groups import ALIASES, CommandGroup, DestructiveCommand

pytestmark = pytest.mark.on_file

Run = Callable[..., subprocess.CompletedProcess[str]]
DESTRUCTIVE = {
    *("restore", "rm", "sessions delete", "sessions prune", "sessions trash empty", "lanes reset", "lanes delete"),
    *("inbox cancel", "cron remove", "tokens revoke", "pairing revoke"),
}


def groups(at: click.Group, ctx: click.Context) -> Iterator[tuple[click.Group, click.Context]]:
    yield at, ctx
    for name in at.list_commands(ctx):
        below = at.get_command(ctx, name)
        if isinstance(below, click.Group):
            yield from groups(below, click.Context(below, parent=ctx, info_name=name))


GROUPS = {ctx.command_path: (group, ctx) for group, ctx in groups(cli, click.Context(cli, info_name="segue"))}


def command_at(path: str) -> click.Command:
    command: click.Command | None = cli
    for word in path.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    return command


def misspelt(name: str) -> Iterator[str]:
    """What somebody may type in place of a name."""
    yield from (name[:at] + name[at + 1 :] for at in range(len(name)))
    yield from (name[:at] + name[at + 1] + name[at] + name[at + 2 :] for at in range(len(name) - 1))
    yield from (name + "s", name.upper(), name.capitalize(), f"{name}-all", name)


def complaint(group: click.Group, ctx: click.Context, typed: str) -> str:
    with pytest.raises(click.UsageError) as refused:
        group.resolve_command(ctx, [typed])
    return refused.value.format_message()


@pytest.mark.parametrize("path", GROUPS)
def test_a_suggestion_is_safe_and_never_what_was_typed(path: str) -> None:
    group, ctx = GROUPS[path]
    names = {name.rpartition(" ")[2] for name in DESTRUCTIVE} | set(group.list_commands(ctx)) | {"remove", "list"}
    for typed in {one for name in names for one in misspelt(name) if one and not group.get_command(ctx, one)}:
        sentence = complaint(group, ctx, typed)
        if "did you mean" in sentence:
            suggested = sentence.partition("did you mean `")[2].removesuffix("`?")
            assert suggested != f"{path} {typed}"
            assert not isinstance(command_at(suggested.removeprefix("segue ")), DestructiveCommand), sentence
        else:
            assert sentence.endswith(f"`{path} --help` lists the commands.")


@pytest.mark.parametrize("path", sorted(DESTRUCTIVE))
def test_what_destroys_is_known_as_destructive(path: str) -> None:
    assert isinstance(command_at(path), DestructiveCommand)


def test_every_group_treats_mistakes_alike() -> None:
    assert [path for path, (group, _) in GROUPS.items() if not isinstance(group, CommandGroup)] == []


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        (["list"], "segue sessions list"),
        (["search"], "segue sessions search"),
        (["lst"], "segue ls"),
        (["sessoins"], "segue sessions"),
        (["sessions", "lits"], "segue sessions list"),
        (["sessions", "help"], "segue help sessions"),
        (["config", "chek"], "segue config check"),
    ],
)
def test_what_may_have_been_meant_is_suggested(run: Run, typed: list[str], suggested: str) -> None:
    result = run(*typed)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].endswith(f"did you mean `{suggested}`?")


def test_a_mistyped_option_never_leads_to_one_that_destroys(run: Run) -> None:
    assert "--purge" not in run("sessions", "delete", "x", "--purg").stderr
    assert "--replace" not in run("db", "migrate", "--to", "sqlite", "--replac").stderr


def test_a_word_of_a_search_is_not_suggested_to_itself(run: Run) -> None:
    assert "did you mean" not in run("sessions", "search", "--", "--json").stderr
    assert "did you mean --limit?" in run("sessions", "search", "--limti", "tea").stderr


# Other names


@pytest.mark.parametrize("path", GROUPS)
def test_ls_and_rm_are_names_wherever_something_is_listed_or_removed(path: str) -> None:
    group, ctx = GROUPS[path]
    names = group.list_commands(ctx)
    for alias, meant in ALIASES.items():
        known = [name for name in meant if name in names]
        found = group.get_command(ctx, alias)
        assert found is (
            group.get_command(ctx, known[0]) if known else cli.get_command(ctx, alias) if path == "segue" else None
        )


def test_ls_and_rm_alone_are_about_conversations() -> None:
    assert command_at("ls") is command_at("sessions list") is command_at("sessions ls")
    assert command_at("rm") is command_at("sessions delete") is command_at("sessions rm")


def test_ls_lists_as_list_does(run: Run) -> None:
    listed = run("sessions", "list", "--json", "-n", "5")
    assert (listed.returncode, listed.stdout) == (0, "[]\n")
    assert run("ls", "--json", "-n", "5").stdout == run("sessions", "ls", "--json").stdout == listed.stdout


def test_help_shows_other_names(run: Run) -> None:
    shown = [line.split("  ")[1] for line in run("sessions", "--help").stdout.splitlines() if line.startswith("  ")]
    assert {"list, ls", "delete, rm"} <= set(shown)


@pytest.mark.parametrize("path", GROUPS)
def test_every_limit_can_be_said_as_n(path: str) -> None:
    group, ctx = GROUPS[path]
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        for option in command.params:
            assert "--limit" not in option.opts or "-n" in option.opts


# Help


@pytest.mark.parametrize("words", [[], ["sessions"], ["sessions", "list"], ["sessions", "trash", "empty"], ["rm"]])
def test_help_says_what_the_option_says(run: Run, words: list[str]) -> None:
    told = run("help", *words)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == run(*words, "--help").stdout


@pytest.mark.parametrize("words", [["nonsense"], ["sessions", "nonsense"], ["sessions", "list", "nonsense"]])
def test_help_on_nothing_is_bad_input(run: Run, words: list[str]) -> None:
    told = run("help", *words)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith("Usage: ")


@pytest.mark.parametrize("path", GROUPS)
def test_the_line_about_a_command_is_a_whole_sentence(path: str) -> None:
    group, ctx = GROUPS[path]
    words = " ".join(click.Context(group, parent=ctx.parent, info_name=ctx.info_name).get_help().split())
    assert "..." not in words.partition("Commands:")[2]


def test_completion_offers_each_command_once() -> None:
    ctx = click.Context(cli, info_name="segue")
    assert cli.get_command(ctx, "completion") is completion
    assert len(set(cli.list_commands(ctx))) == len(cli.list_commands(ctx))
