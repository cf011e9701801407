"""Documents show what was said, in its place: no text reaches out of it, and none gets lost."""

import json
import re
from collections.abc import Iterator
from datetime import UTC
from html.parser import HTMLParser
from typing import Any

import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from segue.core.documents import Entry, Format, Said, blocks, entry_of, is_shown, said
from segue.core.markdown import Markdown, fenced, inline, quoted
from segue.core.messages import Message
from segue.core.moments import instant
from segue.core.page import Page
from segue.core.redaction import Secrets
from segue.core.sessions import Session
from segue.core.text import one_line, printable


class Gullible(MarkdownIt):
    """A reader that follows every link."""

    def validateLink(self, url: str) -> bool:  # noqa: N802
        return True


READER = Gullible("commonmark").enable(["table", "strikethrough"])
AT = instant(1741162523.4)
VOID = {"meta", "br"}
FRAGMENTS = (
    *(
        "`",
        "``",
        "```",
        "~~~",
        "````",
        "\n",
        "\n\n",
        " ",
        "    ",
        "\t",
        "- ",
        "1. ",
        "> ",
        "# ",
        "---",
        "===",
        "|",
        "| --- |",
    ),
    *(
        "<script>",
        "</article>",
        "</blockquote>",
        "<!--",
        "-->",
        "<![CDATA[",
        "<?php",
        "<b",
        "<",
        ">",
        "&lt;",
        "&#60;",
        "&",
    ),
    *(
        "[a]: http://example.org",
        "[a]",
        "](",
        "](javascript:alert(1))",
        "](java&colon;x)",
        "](http://example.org)",
        "![",
        "[^1]: x",
    ),
    *(
        "\\",
        "\\`",
        "*",
        "**",
        "[!NOTE]",
        "]:",
        "</details>",
        "<details>",
        "\r",
        "\u2028",
        "\x1b[31m",
        "\u202e",
        "\x00",
        "é",
        "語",
        "שלום",
    ),
    *("```python\ncode\n```", "word", '"', "'", "on=x", "</pre>", "</textarea>", "%%", "$$", "***"),
)
nasty = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=6), max_size=16).map("".join)
HOSTILE = [
    "foo ` bar\n`<script>alert(1)</script>`",
    "| a | b |\n| --- | --- |\n| `a | <script> | b` |",
    "1. x\n   ```\n<script>alert(1)</script>",
    "- ```\n<script>alert(1)</script>",
    "- ~~~\n<script>alert(1)</script>\n~~~",
    "```\nnever closed",
    "```` a\n```\n<script>\n````\n</blockquote>",
    "[a`]: /url`",
    "[a\nb]: /url",
    "- [a]: http://evil.example",
    "[a](javascript:alert(1)) [b](java&colon;script) [c](\njavascript:x)",
    "![x](http://tracker.example/a.png)",
    "](![](javascript:alert(1)) [a](b![](http://tracker.example/a.png)",
    "\\`<script>`",
    "text\n     ```\n     <script>\n     ```",
    "<div\nonclick=x>",
    "a\r<script>\r\n</blockquote>\u2028# heading",
]


def message(content: str | None = "Hello", **fields: Any) -> Message:
    said_by_default = {"id": 1, "session_id": "s", "seq": 3, "state": "live", "role": "user", "timestamp": 0.0}
    columns: dict[str, Any] = dict.fromkeys(Message._fields) | said_by_default | {"content": content} | fields
    return Message(**columns)


def spoken(text: str, **fields: Any) -> Said:
    return said(message(text, **fields), 1, 1, lambda value: value, UTC)


def entries(*titles: str) -> Iterator[Entry]:
    return (Entry(number, title, ("id", "cli"), AT) for number, title in enumerate(titles, 1))


def written(form: Format, *texts: str, titles: tuple[str, ...] = ("Title",), **fields: Any) -> str:
    """A document in which each conversation says the same."""
    pieces = list(form.begin(entries(*titles), len(titles)))
    for entry in entries(*titles):
        pieces += [
            form.conversation(entry),
            form.break_("begun anew"),
            *(form.message(spoken(text, **fields)) for text in texts),
        ]
        pieces.append(form.close_conversation())
    return "".join([*pieces, form.end()])


class Outline(HTMLParser):
    """The elements of a page, and the text in each class of them. Complains about what is not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.said: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))
        if tag == "article":
            self.said.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if any(attrs.get("class") == "text" or tag == "pre" for tag, attrs in self.open):
            self.said[-1] += data.removeprefix("\n") if self.open[-1][0] == "pre" else data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def shown(text: str) -> str:
    """What a page shows of a message: everything but the lines that fence code, and white space between blocks."""
    return re.sub(r"\s+", "", "".join(block.text for block in blocks(printable(text).strip("\n"))))


ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "nav", "ol", "li", "a", "bdi", "time", "section"),
    *("p", "span", "article", "header", "b", "div", "pre", "code", "samp", "details", "summary"),
}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "href", "id", "class", "dir", "datetime", "title"}


@given(st.lists(nasty, max_size=3), nasty, nasty)
@examples(50, in_torture=1000)
@example(HOSTILE, "</title><script>", '"><img src=x onerror=alert(1)>')
def test_a_page_holds_every_character_as_text_and_nothing_as_html(texts: list[str], title: str, name: str) -> None:
    page = written(Page(), *texts, titles=(one_line(title), "Other"), author=name)
    outline = Outline(page)
    assert set(outline.tags) <= ALLOWED
    assert outline.names <= ATTRIBUTES
    assert outline.tags.count("article") == 2 * len(texts)
    assert [re.sub(r"\s+", "", one) for one in outline.said] == [shown(text) for text in texts] * 2
    assert page == printable(page)
    assert not re.search(
        r"(?i)<script|<img|<iframe|javascript:[^<]*\">|url\(", re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    )


def test_a_page_needs_no_network_and_forbids_scripts() -> None:
    page = written(Page(), "Hello")
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page
    assert not re.search(r"https?://|@import|src=|url\(", page)


@given(nasty)
@examples(60, in_torture=1500)
@pytest.mark.parametrize("role", ["tool", "assistant"])
def test_tool_results_and_calls_are_folded_and_escaped(role: str, text: str) -> None:
    calls = json.dumps([{"function": {"name": text, "arguments": json.dumps({"text": text})}}])
    outline = Outline(written(Page(), text, role=role, tool_calls=calls if role == "assistant" else None))
    assert set(outline.tags) <= ALLOWED
    assert "details" in outline.tags


def kinds(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from kinds(token.children or [])


@given(nasty)
@examples(40, in_torture=500)
@pytest.mark.parametrize("hostile", [None, *HOSTILE])
def test_a_quotation_in_markdown_keeps_everything_inside(hostile: str | None, text: str) -> None:
    source = printable(text if hostile is None else hostile + text)
    env: dict[str, Any] = {}
    tokens = READER.parse(quoted(source) + "\n\nAfterwards [a] [foo].\n", env)
    outside = [token.type for token in tokens if token.level == 0]
    assert outside == ["blockquote_open", "blockquote_close", "paragraph_open", "paragraph_close"]
    every = list(kinds(tokens))
    assert not [token for token in every if token.type in ("html_block", "html_inline", "image")]
    assert env.get("references", {}) == {}
    links = [str(token.attrs["href"]) for token in every if token.type == "link_open"]
    assert not [link for link in links if re.match(r"(?i)\s*(?:javascript|data|vbscript|file):", link)]


@given(nasty)
@examples(60, in_torture=1500)
def test_fenced_text_is_one_block_with_exactly_that_text(text: str) -> None:
    source = printable(text)
    first, *rest = READER.parse(fenced(source) + "\n\nAfterwards\n")
    assert (first.type, first.content) == ("fence", source + "\n")
    assert [token.type for token in rest] == ["paragraph_open", "inline", "paragraph_close"]


@given(nasty)
@examples(60, in_torture=1500)
def test_a_line_of_ours_shows_its_text_and_nothing_else(text: str) -> None:
    plain = one_line(text)
    (_, line, _) = READER.parse("x" + inline(plain))
    assert {token.type for token in line.children or []} <= {"text", "text_special"}
    assert "".join(token.content for token in line.children or []) == "x" + plain


@given(st.lists(nasty, max_size=3), nasty)
@examples(50, in_torture=1000)
def test_a_document_in_markdown_has_only_our_headings_and_html(texts: list[str], title: str) -> None:
    document = written(Markdown(), *texts, titles=("One " + one_line(title), "Two"), role="tool", tool_name=title)
    document += written(Markdown(), *texts, titles=("One " + one_line(title), "Two"), author=title)
    tokens = READER.parse(document)
    headings = [token for token in tokens if token.type == "heading_open" and token.level == 0]
    assert [token.tag for token in headings] == ["h1", "h2", "h2"] * 2
    html = [token.content for token in tokens if token.type == "html_block"]
    assert all(re.fullmatch(r"</details>\n|<details><summary>[^<>]*</summary>\n", one) for one in html)
    assert document == printable(document)


ORDINARY = """\
## A heading

It is **important**, see [the page](https://example.org/a?b=1&c=2) and `List<String>`:

- one
- *two*

| a | b |
|---|---|
| 1 | 2 |

```python
print("<b>", a < b, `x`)
```
Done & dusted: a < b."""


def test_ordinary_markdown_still_reads_as_it_was_meant() -> None:
    html = READER.render(quoted(ORDINARY))
    for part in (
        "<h2>A heading</h2>",
        "<strong>important</strong>",
        '<a href="https://example.org/a?b=1&amp;c=2">the page</a>',
        "<code>List&lt;String&gt;</code>",
        "<li>one</li>",
        "<em>two</em>",
        "<td>2</td>",
        '<code class="language-python">print(&quot;&lt;b&gt;&quot;, a &lt; b, `x`)\n</code>',
        "Done &amp; dusted: a &lt; b.",
    ):
        assert part in html


def test_a_fence_that_only_some_readers_see_is_plain_text() -> None:
    assert "fence" not in {token.type for token in kinds(READER.parse(quoted("~~~ a`b\ntext\n- ~~~\n- ```")))}


def test_blocks_are_words_and_code_in_order() -> None:
    assert [tuple(block) for block in blocks("a\n  ```py\n  x\n    y\n  ```\nb\n~~~\nz")] == [
        ("a", False, ""),
        ("x\n  y", True, "py"),
        ("b", False, ""),
        ("z", True, ""),
    ]
    assert [block.text for block in blocks("```\n```\n")] == ["", ""]


def test_what_was_undone_is_not_shown_and_what_a_summary_speaks_for_is() -> None:
    assert [is_shown(message(state=state)) for state in ("live", "undone", "compacted")] == [True, False, True]
    assert spoken("x", state="compacted").note == "compacted"


def test_reasoning_is_left_out() -> None:
    for form in (Markdown(), Page()):
        assert "the thought" not in written(form, "Hello", reasoning="the thought", reasoning_content="the thought")


def test_a_secret_that_hides_behind_a_control_character_is_found() -> None:
    key = "ghp_" + "A1b2C3d4" * 5
    mask = Secrets(redacts=True)
    split = key[:10] + "\x1b[31m" + key[10:]
    assert said(message(split), 1, 1, mask, UTC).text == "[redacted: GitHub token]"
    calls = json.dumps(
        [{"function": {"name": "run", "arguments": json.dumps({"key": [split], "password": ["hunter2x"]})}}]
    )
    (call,) = said(message(None, role="assistant", tool_calls=calls), 1, 1, mask, UTC).calls
    assert json.loads(call.arguments) == {"key": ["[redacted: GitHub token]"], "password": ["[redacted: named]"]}
    assert mask.count == 3


def test_the_heading_of_a_conversation_comes_from_its_parts() -> None:
    first = Session("a", "cli", started_at=1741162523.4, message_count=2, first_line="Hello there")
    last = Session("b", "cli", started_at=1741169999.0, message_count=3, first_line="Hello there", model="m")
    entry = entry_of(1, [first, last], lambda value: value, UTC)
    assert (entry.title, entry.facts, entry.began_at) == ("Hello there", ("b", "cli", "m", "5 messages", "open"), AT)
    assert entry_of(1, [last._replace(title="Name")], lambda value: value).title == "Name"
    cut = "word " * 39 + "hunte"
    assert entry_of(1, [first._replace(first_line=cut)], lambda value: value).title.endswith("word…")


def test_a_table_of_contents_stands_only_where_there_are_several() -> None:
    assert "<nav>" not in written(Page(), "Hello")
    assert '<a href="#c2"><bdi>Two</bdi></a>' in written(Page(), "Hello", titles=("One", "Two"))
    assert "[Two](#c2)" in written(Markdown(), "Hello", titles=("One", "Two"))
    assert written(Markdown(), "Hello").startswith("# Title\n")
