r"""`segue completion`, and what TAB offers where a command takes an id or a title.

Stored text is never shell code: each shell gets a candidate as data. fish quotes what it inserts; bash and zsh insert
what they are given, so that the quoting for them is done here. What a terminal must not be shown is not offered, and
neither is what a command would take for an option. A home that is missing or broken offers nothing and stays as it is.
"""

import re
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem, ShellComplete, add_completion_class

from segue import app
from segue.core.errors import SegueError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sessions import Kind
from segue.core.sources import BATCH
from segue.core.text import one_line, printable, shorten
from segue.ports.store import Filter, Transaction
from segue.sessions import listing

W = TypeVar("W")

_VARIABLE = "_SEGUE_COMPLETE"
_OFFERED = 50
_LONGEST_HELP = 50
_PLAIN = re.compile(r"[\w%+,./:@-]", re.ASCII)

_BASH = r"""%(complete_func)s() {
    local answer kind value help
    answer=$(env %(complete_var)s=bash_complete %(prog_name)s "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null </dev/null)
    COMPREPLY=()
    while IFS=$'\t' read -r kind value help; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            file) compopt -o default 2>/dev/null ;;
            dir) compopt -o dirnames 2>/dev/null ;;
        esac
    done <<< "$answer"
}
complete -o nosort -F %(complete_func)s %(prog_name)s 2>/dev/null || complete -F %(complete_func)s %(prog_name)s
"""

_ZSH = r"""#compdef %(prog_name)s
%(complete_func)s() {
    local answer kind value help
    local -a values shown
    [[ -z $compstate[quote] || $compstate[quote] == [\'\"] ]] || return 1
    answer=$(env %(complete_var)s=zsh_complete %(prog_name)s "$compstate[quote]" \
        "${(@Q)words[1,CURRENT-1]}" "${(Q)IPREFIX}${(Q)PREFIX}" 2>/dev/null </dev/null)
    while IFS=$'\t' read -r kind value help; do
        case $kind in
            plain) values+=("$value"); shown+=("${(Q)value}${help:+  -- $help}") ;;
            file) _files ;;
            dir) _files -/ ;;
        esac
    done <<< "$answer"
    if (( $#values )); then
        IPREFIX=
        compadd -Q -U -l -V segue -d shown -a values
    fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i; }
    compdef %(complete_func)s %(prog_name)s
fi
"""

_FISH = r"""function %(complete_func)s
    set -l current (commandline -ct | string collect)
    for line in (env %(complete_var)s=fish_complete %(prog_name)s (commandline -opc) "$current" 2>/dev/null </dev/null)
        switch $line
            case 'plain*'
                string replace -r '^plain\t' '' -- $line
            case 'file*'
                __fish_complete_path "$current"
            case 'dir*'
                __fish_complete_directories "$current"
        end
    end
end
complete --no-files --keep-order --command %(prog_name)s --arguments '(%(complete_func)s)'
"""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what teaches your shell to complete commands, ids and titles with TAB.

    \b
    bash, in ~/.bashrc:   eval "$(segue completion bash)"
    zsh, in ~/.zshrc:     eval "$(segue completion zsh)"
    fish, once:           segue completion fish > ~/.config/fish/completions/segue.fish
    """
    click.echo(_SHELLS[shell](ctx.find_root().command, {}, "segue", _VARIABLE).source(), nl=False)


def complete_session(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The most recently active sessions whose id or title begins so; before anything is typed, what a list shows."""
    if incomplete:
        return _looked_up(_listed, Filter(archived=None, tips_only=False, beginning=incomplete), incomplete)
    shown = Filter(kinds=(Kind.INTERACTIVE,), archived=ctx.info_name == "unarchive")
    return _looked_up(_listed, shown._replace(pinned=True) if ctx.info_name == "unpin" else shown, incomplete)


def complete_trashed(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """What was deleted last, of what is in the trash."""
    return _looked_up(_trashed, None, incomplete)


def complete_person(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Who was let in, as `platform:id`."""
    return _looked_up(_let_in, None, incomplete)


def complete_lane(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The keys of lanes, the most recently used first."""
    return _looked_up(_lanes, None, incomplete)


def complete_token(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The tokens that there are, by name."""
    return _looked_up(_tokens, None, incomplete)


def complete_job(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The jobs that there are."""
    return _looked_up(_jobs, None, incomplete)


def complete_batch(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The batches that were run."""
    return _looked_up(_batches, None, incomplete)


class Candidate(NamedTuple):
    """A session as its names; the beginning is for those who see neither in it."""

    id: str
    title: str | None
    first_line: str


def offers(candidates: Iterable[Candidate], incomplete: str) -> list[CompletionItem[str]]:
    """The names that begin so, each once; a title comes before the id when nothing was typed yet."""
    found: dict[str, str] = {}
    for one in candidates:
        names = [name for name in (one.title, one.id) if name and _is_offered(name, incomplete)]
        for name in names if incomplete else names[:1]:
            found.setdefault(name, one.id if name == one.title else one.title or one.first_line)
    return [CompletionItem(name, help=told) for name, told in list(found.items())[:_OFFERED]]


def _is_offered(name: str, incomplete: str) -> bool:
    if not name.startswith(incomplete) or (name.startswith("-") and not incomplete):
        return False  # a leading dash makes an option of it, unless somebody typed `--` and a dash already
    return printable(name) == name and "\n" not in name and "\t" not in name


def _looked_up(
    work: Callable[[Transaction, W], list[Candidate]], wanted: W, incomplete: str
) -> list[CompletionItem[str]]:
    try:
        settings = app.settings()
        if not settings.is_on_server and not settings.database_path.exists():
            return []
        with app.open_store(read_only=True) as store:
            return offers(store.read(OWNER_AT_CONSOLE, work, wanted), incomplete)
    except (SegueError, OSError):
        return []  # somebody is typing; the command itself will say what is wrong


def _listed(tx: Transaction, wanted: Filter) -> list[Candidate]:
    return [Candidate(one.id, one.title, one.first_line) for one in listing.list_sessions(tx, wanted, _OFFERED)]


def _trashed(tx: Transaction, _wanted: None) -> list[Candidate]:
    return [Candidate(one.session_id, one.title, one.first_line) for one in tx.trash.listed()]


def _let_in(tx: Transaction, _wanted: None) -> list[Candidate]:
    return [Candidate(one.id, None, one.name) for one in tx.people.listed()]


def _lanes(tx: Transaction, _wanted: None) -> list[Candidate]:
    return [Candidate(one.key, None, one.origin.description if one.origin else "") for one in tx.lanes.listed()]


def _tokens(tx: Transaction, _wanted: None) -> list[Candidate]:
    return [Candidate(one.name, None, one.level) for one in tx.tokens.listed()]


def _jobs(tx: Transaction, _wanted: None) -> list[Candidate]:
    return [Candidate(one.name, None, one.prompt) for one in tx.jobs.listed()]


def _batches(tx: Transaction, _wanted: None) -> list[Candidate]:
    return [Candidate(one.chat, None, f"{sum(one.states.values())} asked") for one in tx.inbox.chats(BATCH)]


class _Completion(ShellComplete):
    """The shell hands over words as arguments, and gets a line for each candidate: kind, value, help."""

    def get_completion_args(self) -> tuple[list[str], str]:
        *words, incomplete = sys.argv[1:]
        return words[1:], incomplete

    def complete(self) -> str:
        words, incomplete = self.get_completion_args()
        name, equals, _ = incomplete.partition("=")
        lead = name + equals if equals and name.startswith("--") and "--" not in words else ""
        found = self.get_completions(words, incomplete)  # click takes a lone "=" for nothing typed
        items = [item for item in found if item.type != "plain" or (lead + item.value).startswith(incomplete)]
        values = self.quoted([lead + item.value for item in items])
        return "\n".join(
            f"{item.type}\t{value}\t{shorten(one_line(item.help or ''), _LONGEST_HELP)}".rstrip("\t")
            for item, value in zip(items, values, strict=True)
        )

    def quoted(self, values: list[str]) -> list[str]:
        return values


class _Zsh(_Completion):
    """zsh hands over the open quote first. It would quote by itself, but then insert half a quotation that fits all."""

    name = "zsh"
    source_template = _ZSH

    def get_completion_args(self) -> tuple[list[str], str]:
        words, incomplete = super().get_completion_args()
        return words[1:], incomplete

    def quoted(self, values: list[str]) -> list[str]:
        return quoted_for_line(values, sys.argv[1])


class _Fish(_Completion):
    name = "fish"
    source_template = _FISH

    def get_completion_args(self) -> tuple[list[str], str]:
        words, incomplete = super().get_completion_args()
        return words, split_typed(incomplete).words[-1]


class _Bash(_Completion):
    """bash hands over the line as it was typed, and the end of it that it is going to replace."""

    name = "bash"
    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        typed = split_typed(sys.argv[1])
        return typed.words[1:-1], typed.words[-1]

    def quoted(self, values: list[str]) -> list[str]:
        line, replaced = sys.argv[1:3]
        if not line.endswith(replaced):
            return [""] * len(values)
        kept = split_typed(line.removesuffix(replaced)).words[-1]
        return quoted_for_line([value.removeprefix(kept) for value in values], split_typed(line).quote)


class Typed(NamedTuple):
    """A line taken apart: the last word is the one at the cursor, and `quote` the one that is still open there."""

    words: list[str]
    quote: str


def split_typed(line: str) -> Typed:
    """What a shell would make of a line that is not finished; nothing in it is expanded."""
    words, quote, is_inside = [""], "", False
    characters = iter(line)
    for one in characters:
        if one == "\\" and quote != "'":
            following = next(characters, "")
            words[-1] += following if not quote or following in '\\$"`' else one + following
            is_inside = True
        elif quote and one == quote:
            quote = ""
        elif not quote and one in "'\"":
            quote, is_inside = one, True
        elif not quote and one.isspace():
            words += [""] if is_inside else []
            is_inside = False
        else:
            words[-1] += one
            is_inside = True
    return Typed(words, quote)


def quoted_for_line(values: list[str], quote: str = "") -> list[str]:
    """Each value so that bash and zsh read it as it is where it stands, outside quotes or inside open ones.

    They insert what the values have in common. That must not end between a backslash and what it quotes, so where
    every value goes on with a backslash, one goes on in another way.
    """
    quoted = [[_quoted(character, quote) for character in value] for value in values]
    at = next((at for at, column in enumerate(zip(*values, strict=False)) if len(set(column)) > 1), None)
    if at is not None and all(pieces[at].startswith("\\") for pieces in quoted):
        quoted[0][at] = '"\'"' if values[0][at] == "'" else f"{quote}'{values[0][at]}'{quote}"
    return ["".join(pieces) for pieces in quoted]


def _quoted(character: str, quote: str) -> str:
    if quote == "'":
        return r"'\''" if character == "'" else character
    if quote == '"':
        if character == "!":  # inside double quotes the backslash before it would stay
            return "\"'!'\""
        return f"\\{character}" if character in '\\$"`' else character
    return character if _PLAIN.match(character) or not character.isascii() else f"\\{character}"


_SHELLS: dict[str, type[ShellComplete]] = {shell.name: add_completion_class(shell) for shell in (_Bash, _Zsh, _Fish)}
