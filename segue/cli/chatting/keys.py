"""What the keys do while a message is typed."""

from collections.abc import Callable

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

Key = Callable[[Buffer], None]


def typing_keys(send: Key, interrupt: Key, leave: Key, paste: Callable[[str], str]) -> KeyBindings:
    """Enter sends, Alt-Enter and Ctrl-J begin a line, Ctrl-C interrupts, Ctrl-D leaves, and pastes are cleaned."""

    def enter(event: KeyPressEvent) -> None:
        if event.current_buffer.text.strip():
            send(event.current_buffer)

    def take_paste(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(paste(event.data))

    keys = KeyBindings()
    is_typing = has_focus(DEFAULT_BUFFER)  # and not searching in the past
    keys.add("enter", filter=is_typing)(enter)
    keys.add("escape", "enter", filter=is_typing)(_begin_line)
    keys.add("c-j", filter=is_typing)(_begin_line)
    keys.add("c-c", filter=is_typing)(lambda event: interrupt(event.current_buffer))
    is_empty = Condition(lambda: not get_app().current_buffer.text)
    keys.add("c-d", filter=is_typing & is_empty)(lambda event: leave(event.current_buffer))
    keys.add("<sigint>")(lambda event: interrupt(event.current_buffer))
    keys.add(Keys.BracketedPaste, filter=is_typing)(take_paste)
    return keys


def _begin_line(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n")
