"""What is said in a Matrix room is what was meant, in HTML that harms nobody, and never too large."""

import json
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segue.core.attachments import Attachment
from segue.core.sources import SessionSource
from segue.platforms.matrix.markup import html_from
from segue.platforms.matrix.outbound import (
    LARGEST,
    LONGEST,
    edit_content,
    file_content,
    measured,
    text_content,
    transaction_of,
)
from segue.ports.platform import Post

KNOWN = """
del h1 h2 h3 h4 h5 h6 blockquote p a ul ol sup sub li b i u strong em s code hr br div table thead tbody tr th td
caption pre span
"""
TAGS = frozenset(KNOWN.split())
VOID = frozenset({"br", "hr"})
MARKS = st.text(alphabet="ab <>&\"'*_~`[]()!#-|\n\t\\:/1.é字", max_size=200)
PIECES = st.lists(
    st.sampled_from(
        [
            *(
                "**bold**",
                "_it_",
                "`code`",
                "```py\nx < 1\n```",
                "[a](https://x.y/?q=1&r=2)",
                "[a](javascript:alert(1))",
            ),
            *(
                "<script>alert(1)</script>",
                "<img src=x onerror=y>",
                "![p](https://x.y/p.png)",
                "| a | b |\n|---|--:|\n| 1 | 2 |",
            ),
            *(
                "> quote",
                "- item",
                "7. item",
                "# head",
                "~~gone~~",
                "<https://x.y>",
                "<b>",
                "&lt;",
                "\n\n",
                "\n",
                "[x]: data:text/html,y\n\n[x]",
            ),
        ]
    )
).map(" ".join)


class Strict(HTMLParser):
    """Raises when something is open at the end, or is not to be there."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        for name, value in attrs:
            assert (tag, name) in {("a", "href"), ("ol", "start"), ("code", "class")}, (tag, name)
            if name == "href":
                assert (value or "").lower().startswith(("http://", "https://", "mailto:")), value
            if name == "class":
                assert (value or "").startswith("language-"), value
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


@given(MARKS | PIECES | st.text(max_size=200))
@example("[a]()")
def test_html_is_balanced_and_safe_whatever_was_said(text: str) -> None:
    html = html_from(text)
    if html is not None:
        reader = Strict()
        reader.feed(html)
        reader.close()
        assert reader.open == []


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain words", None),
        ("two\nlines & <b>", None),
        ("two\n\nparagraphs", None),
        ("", None),
        ("**so**", "<p><strong>so</strong></p>"),
        ("a\n- b", "<p>a</p>\n<ul>\n<li>b</li>\n</ul>"),
        ("*a*\nb", "<p><em>a</em><br />\nb</p>"),
        ("`<b>`", "<p><code>&lt;b&gt;</code></p>"),
        ("1 \\* 2", "<p>1 * 2</p>"),
        ("[a]()", "<p><a>a</a></p>"),
        ("0. a", '<ol start="0">\n<li>a</li>\n</ol>'),
    ],
)
def test_there_is_html_where_there_is_something_to_format(text: str, html: str | None) -> None:
    assert html_from(text) == html


def post(text: str, thread: str | None = None, reply_to: str | None = None) -> Post:
    return Post(SessionSource(platform="matrix", chat_id="!r", thread_id=thread), text, "key", reply_to)


def test_a_text_is_said_to_the_letter_and_mentions_nobody() -> None:
    assert text_content(post(" plain \n")) == {"msgtype": "m.text", "body": " plain \n", "m.mentions": {}}


@pytest.mark.parametrize(
    ("thread", "reply_to", "relation"),
    [
        (None, None, None),
        (None, "$a", {"m.in_reply_to": {"event_id": "$a"}}),
        (
            *("$root", "$a"),
            {
                "rel_type": "m.thread",
                "event_id": "$root",
                "is_falling_back": True,
                "m.in_reply_to": {"event_id": "$a"},
            },
        ),
        (
            *("$root", None),
            {
                "rel_type": "m.thread",
                "event_id": "$root",
                "is_falling_back": True,
                "m.in_reply_to": {"event_id": "$root"},
            },
        ),
    ],
)
def test_an_answer_stands_where_it_belongs(
    thread: str | None, reply_to: str | None, relation: dict[str, object] | None
) -> None:
    assert text_content(post("x", thread, reply_to)).get("m.relates_to") == relation


def test_an_edit_replaces_and_shows_its_beginning_to_those_who_know_no_edits() -> None:
    content = edit_content(post("**new**"), "$e")
    assert content["m.relates_to"] == {"rel_type": "m.replace", "event_id": "$e"}
    assert content["body"] == "* **new**"
    assert content["m.new_content"]["body"] == "**new**"
    assert content["m.new_content"]["formatted_body"] == "<p><strong>new</strong></p>"


def test_a_file_is_shown_as_what_it_is_with_what_stands_below_it() -> None:
    picture = Attachment("cat.png", "image/png", 9, "0" * 64)
    content = file_content(post("my *cat*"), picture, {"url": "mxc://a/b"})
    assert (content["msgtype"], content["body"], content["filename"]) == ("m.image", "my *cat*", "cat.png")
    assert (content["info"], content["url"]) == ({"mimetype": "image/png", "size": 9}, "mxc://a/b")
    bare = file_content(post(""), picture._replace(kind="text/plain"), {"url": "mxc://a/b"})
    assert (bare["msgtype"], bare["body"]) == ("m.file", "cat.png")


@pytest.mark.parametrize("piece", ["*a* ", "& ", "字", "👍", '"', "`x` "])
@pytest.mark.parametrize("is_edit", [False, True])
def test_no_event_is_too_large_though_it_may_go_without_html(piece: str, is_edit: bool) -> None:
    text = piece * (LONGEST // len(piece.encode()))
    content = edit_content(post(text), "$" + "e" * 43) if is_edit else text_content(post(text))
    assert measured(content) <= LARGEST
    said = content["m.new_content"] if is_edit else content
    assert said["body"] == text


def test_a_key_has_one_transaction_and_another_key_another() -> None:
    assert transaction_of("a:1") == transaction_of("a:1") != transaction_of("a:2")
    assert transaction_of("ü/ \ud800").isascii()
    assert json.dumps(transaction_of("x")).isprintable()
