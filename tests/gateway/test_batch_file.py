"""The file of a batch: what it says, and the one sentence about what is wrong with it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.batches import Line
from segue.core.errors import Invalid
from segue.platforms.batch.inbound import read_lines

pytestmark = pytest.mark.on_file


def test_lines_are_read_in_order_and_named_by_their_number_unless_they_say_otherwise() -> None:
    body = '\ufeff{"prompt": "one"}\r\n\n  {"id": "tea", "prompt": "Tee ü", "agent": "b"}\n{"prompt": "4", "id": 7}'
    assert read_lines(body.encode()) == [Line(1, "1", "one"), Line(3, "tea", "Tee ü", "b"), Line(4, "7", "4")]


def test_a_separator_of_unicode_inside_a_prompt_ends_no_line() -> None:
    assert read_lines('{"prompt": "a\u2028b\x85c"}'.encode()) == [Line(1, "1", "a\u2028b\x85c")]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "There are no prompts in the file"),
        (b"\n \n", "There are no prompts in the file"),
        (b'{"prompt": "a"}\nnonsense', "Line 2 is no JSON: nonsense"),
        (b'{"prompt": "a"}\n"b"', "Line 2 is no JSON object"),
        (b'\n{"prompt": "a", "promt": "b"}', "Line 2 has the unknown key 'promt': it knows id, prompt, agent."),
        (b'{"prompt": "a", "prompt": "b"}', "Line 1 has the key 'prompt' twice."),
        (b"{}", "Line 1 needs a prompt"),
        (b'{"prompt": " "}', "Line 1 needs a prompt"),
        (b'{"prompt": ["a"]}', "Line 1 needs a prompt"),
        (b'{"prompt": "a", "id": ""}', "The id of line 1 must be"),
        (b'{"prompt": "a", "id": null}', "The id of line 1 must be"),
        (b'{"prompt": "a", "id": true}', "The id of line 1 must be"),
        (b'{"prompt": "a", "id": 1.5}', "The id of line 1 must be"),
        (b'{"prompt": "a", "id": "\\u0000"}', "The id of line 1 must be"),
        (json.dumps({"prompt": "a", "id": "x" * 201}).encode(), "The id of line 1 must be"),
        (b'{"prompt": "a", "agent": ""}', "The agent of line 1 must be the name of one."),
        (b'{"prompt": "a", "agent": null}', "The agent of line 1 must be the name of one."),
        (b'{"prompt": "a", "id": "x"}\n{"prompt": "b", "id": "x"}', "Lines 1 and 2 have the same id 'x'."),
        (b'{"prompt": "a", "id": 2}\n{"prompt": "b"}', "Lines 1 and 2 have the same id '2'."),
        (b'{"prompt": "a"}\n\xff', "Line 2 is not UTF-8."),
        (b"[" * 100_000, "Line 1 is no JSON"),
    ],
)
def test_whatever_is_wrong_is_said_with_its_line(body: bytes, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_lines(body)
    assert str(refused.value).startswith(says)
    assert "\n" not in str(refused.value)


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5))
def test_every_prompt_comes_through_as_it_was_written(prompts: list[str]) -> None:
    body = "\n".join(json.dumps({"prompt": one}) for one in prompts).encode()
    assert [line.prompt for line in read_lines(body)] == prompts


@given(st.binary(max_size=200))
def test_whatever_a_file_holds_is_read_or_refused(body: bytes) -> None:
    try:
        lines = read_lines(body)
    except Invalid:
        return
    assert lines
