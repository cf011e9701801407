"""What somebody is shown who comes back to a conversation."""

from typing import Any

import pytest

from segue.core.messages import SUMMARY_SEQ, Message, State, draft
from segue.core.recap import Line, Recap, Voice, recap


def stored(*messages: tuple[str, Any] | tuple[str, Any, list[Any]], state: State = State.LIVE) -> list[Message]:
    return [
        Message(seq, "s", seq, state, *draft(role, content, 1.0, tool_calls=calls[0] if calls else None))
        for seq, (role, content, *calls) in enumerate(messages, 1)
    ]


def call(name: str) -> dict[str, Any]:
    return {"id": "a", "type": "function", "function": {"name": name, "arguments": "{}"}}


def only_line(role: str, content: Any) -> str:
    (line,) = recap(stored((role, content))).lines
    return line.text


USER, REPLY, TOOLS = Voice.USER, Voice.ASSISTANT, Voice.TOOLS


def test_a_conversation_is_told_again() -> None:
    messages = stored(
        ("system", "Be brief."),
        ("user", "Fix the build."),
        ("assistant", "Looking.", [call("terminal"), call("web_search"), call("terminal")]),
        ("tool", "exit 0"),
        ("assistant", "Done."),
    )
    assert recap(messages) == Recap(
        0,
        (
            Line(USER, "Fix the build."),
            Line(REPLY, "Looking."),
            Line(TOOLS, "[3 tool calls: terminal, web_search]"),
            Line(REPLY, "Done."),
        ),
    )


def test_a_summary_is_not_told_as_something_that_the_person_said() -> None:
    summary, *rest = stored(("user", "They spoke of leeks."), *[("user", f"question {number}") for number in range(10)])
    told = recap([summary._replace(seq=SUMMARY_SEQ), *rest])
    assert told.lines[0] == Line(Voice.SUMMARY, "They spoke of leeks.")
    assert (told.earlier, len(told.lines)) == (0, 11), "a summary is no exchange"


def test_an_empty_conversation_has_nothing_to_tell() -> None:
    assert recap([]) == Recap(0, ())
    assert recap(stored(("system", "Be brief."), ("tool", "x"), ("assistant", None), ("user", ""))) == Recap(0, ())


@pytest.mark.parametrize(
    ("role", "text", "shown"),
    [
        ("user", "x" * 300, "x" * 300),
        ("user", "x" * 301, "x" * 300 + "…"),
        ("user", "1\n2\n3\n4\n5", "1\n2\n3\n4\n5"),
        ("user", "x" * 299 + " y", "x" * 299 + "…"),
        ("assistant", "x" * 200, "x" * 200),
        ("assistant", "x" * 201, "x" * 200 + "…"),
        ("assistant", "1\n2\n3", "1\n2\n3"),
        ("assistant", "1\n2\n3\n4", "1\n2\n3 …"),
        ("assistant", "1\r\n2\r\n3\r\n4", "1\n2\n3 …"),
        ("assistant", "x" * 199 + "\n2\n3\n4", "x" * 199 + "…"),
        ("assistant", "x" * 201 + "\n2\n3\n4", "x" * 200 + "…"),
        ("assistant", "\n\n  hi  \n\n", "hi"),
        ("user", "\x1b[31mred\x07", "red"),
        ("assistant", "\u202eevil\x1b]0;x\x07", "evil"),
        ("user", [{"type": "text", "text": "see"}, {"type": "image_url"}], "see\n[image]"),
    ],
)
def test_what_is_shown_of_a_message(role: str, text: Any, shown: str) -> None:
    assert only_line(role, text) == shown


@pytest.mark.parametrize(
    ("calls", "shown"),
    [
        ([call("terminal")], "[1 tool call: terminal]"),
        ([call("terminal"), call("terminal")], "[2 tool calls: terminal]"),
        ([call("b"), call("a"), call("b")], "[3 tool calls: b, a]"),
        ([call("\x1b[31mred")], "[1 tool call: red]"),
        ([call("two\nlines")], "[1 tool call: two lines]"),
        ([{"id": "a"}], "[1 tool call: ?]"),
        ([{"id": "a", "function": {}}], "[1 tool call: ?]"),
        ([{"id": "a", "function": None}], "[1 tool call: ?]"),
        ([{"id": "a", "function": "terminal"}], "[1 tool call: ?]"),
    ],
)
def test_tool_calls_are_told_in_one_line(calls: list[Any], shown: str) -> None:
    assert recap(stored(("assistant", None, calls))).lines == (Line(TOOLS, shown),)


@pytest.mark.parametrize(("exchanges", "earlier"), [(1, 0), (10, 0), (11, 2), (25, 30)])
def test_only_the_last_ten_exchanges_are_told(exchanges: int, earlier: int) -> None:
    messages = stored(
        *(pair for n in range(exchanges) for pair in (("user", f"question {n}"), ("assistant", f"answer {n}")))
    )
    shown = recap(messages)
    assert shown.earlier == earlier
    assert len(shown.lines) == 2 * min(exchanges, 10)
    assert shown.lines[-1] == Line(REPLY, f"answer {exchanges - 1}")
    assert shown.lines[0] == Line(USER, f"question {max(0, exchanges - 10)}")


def test_earlier_messages_are_those_that_would_have_been_shown() -> None:
    hidden = [("system", "x"), ("tool", "x"), ("assistant", "")]
    exchange = [("user", "question"), ("assistant", "one"), ("assistant", "two")]
    assert recap(stored(*(hidden + exchange) * 11)).earlier == 3


def test_a_greeting_before_the_first_question_is_told() -> None:
    assert recap(stored(("assistant", "Hello!"), ("user", "Hi."))).lines == (Line(REPLY, "Hello!"), Line(USER, "Hi."))


@pytest.mark.parametrize("state", [State.UNDONE, State.COMPACTED])
def test_what_no_longer_speaks_is_not_told(state: State) -> None:
    gone = stored(("user", "gone"), ("assistant", "gone too"), state=state)
    assert recap([*gone, *stored(("user", "here"))]) == Recap(0, (Line(USER, "here"),))


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_message_of_which_nothing_can_be_printed_is_not_told(role: str) -> None:
    assert recap(stored((role, "\x1b[2J"))).lines == ()


def test_reasoning_is_not_told() -> None:
    row = draft("assistant", "Yes.", 1.0, reasoning="secret", reasoning_details=[{"text": "secret"}])
    assert recap([Message(1, "s", 1, State.LIVE, *row)]).lines == (Line(REPLY, "Yes."),)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("There is **one** file: `notes_*.txt`.", "There is one file: notes_*.txt."),
        ("# Soup\n\nIt is *hot*.", "Soup\n\nIt is hot."),
        ("```python\nx = 2 * 3 * 4\n```", "x = 2 * 3 * 4"),
        ("a \\*star\\* and __init__", "a *star* and __init__"),
        ("5 * 3 and **not closed", "5 * 3 and **not closed"),
    ],
)
def test_the_signs_of_markdown_are_left_out(said: str, told: str) -> None:
    assert only_line("assistant", said) == told
    assert only_line("user", said) == said
