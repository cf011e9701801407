"""The line that is typed into, and the one below it that says where we are."""

from collections.abc import Callable
from typing import NamedTuple

from prompt_toolkit.filters import Condition, is_done
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import PromptSession
from prompt_toolkit.styles import Style

from segue.cli.chatting.completion import Menu
from segue.cli.chatting.offers import Offers
from segue.cli.chatting.past import FromThePast, Past

Editor = PromptSession[str | None]
Fragments = StyleAndTextTuples

SIGN: tuple[str, str] = ("class:sign", "● ")
_QUIET = "fg:ansibrightblack"
_STYLE = Style.from_dict(
    {
        "sign": "fg:ansiyellow bold",
        "waiting": "fg:ansicyan",
        "below": _QUIET,
        "auto-suggestion": _QUIET,
        "completion-menu": "noinherit",
        "completion-menu.completion": "",
        "completion-menu.completion.current": "fg:ansiyellow bold noreverse",
        "completion-menu.meta.completion": _QUIET,
        "completion-menu.meta.completion.current": "",
        "scrollbar.background": "",
        "scrollbar.button": "reverse",
    }
)


class Terminal(NamedTuple):
    """Where keys come from and where lines are drawn."""

    input: Input | None
    output: Output


def terminal_here() -> Terminal:
    """Never asked where its cursor is: over a slow line the answer would come late and look like typing."""
    output = create_output()
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return Terminal(None, output)


def editor(
    terminal: Terminal, past: Past, offers: Offers, keys: KeyBindings, below: Callable[[], Fragments], *, erases: bool
) -> Editor:
    """A line with a past, a menu behind the slash, and something below it while it is being typed."""
    session: Editor = PromptSession(
        multiline=True,
        history=past,
        completer=Menu(offers),
        complete_in_thread=True,
        complete_while_typing=Condition(lambda: session.default_buffer.text.startswith("/")),
        auto_suggest=FromThePast(),
        key_bindings=keys,
        prompt_continuation=[("", "  ")],
        style=_STYLE,
        enable_suspend=True,
        enable_open_in_editor=True,
        erase_when_done=erases,
        reserve_space_for_menu=6,
        input=terminal.input,
        output=terminal.output,
    )
    line = Window(FormattedTextControl(below), height=1, style="class:below")
    focused = session.layout.current_window
    session.layout.container = HSplit([session.layout.container, ConditionalContainer(line, ~is_done)])
    session.layout = session.app.layout = Layout(session.layout.container, focused)
    return session


def type_first(editor: Editor, typed: str) -> None:
    """Let the line begin with keys that were pressed before it was there."""
    keys: list[KeyPress] = []
    parser = Vt100Parser(keys.append)
    parser.feed(typed)
    parser.flush()
    store_typeahead(editor.app.input, keys)
