"""A document as one HTML page: no script, no network, light and dark, readable on paper.

Every text is escaped before it becomes part of the page, and the page itself forbids whatever it does not need.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from html import escape

from segue.core.documents import Block, Entry, Said, blocks
from segue.core.text import count

_LONG = 2000  # characters of a system message or summary that are not shown at once
_STYLE = """
:root { color-scheme: light dark; --page: #fbfaf8; --text: #1f2328; --dim: #6b7077; --line: #e3e0da; --card: #fff;
  --you: #b07a12; --assistant: #2c7a4b; --tool: #2f6f8f; --system: #7d4f9e; --you-card: #fdf6e7; --code: #f4f2ee; }
@media (prefers-color-scheme: dark) { :root { --page: #16181c; --text: #dfe2e6; --dim: #939aa3; --line: #2d3138;
  --card: #1d2025; --you: #e0b04f; --assistant: #6cc08b; --tool: #72b4d3; --system: #c094df; --you-card: #26231b;
  --code: #14161a; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0 auto; max-width: 52rem; padding: 2.5rem 1.25rem 5rem; background: var(--page); color: var(--text);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", "PingFang SC",
  "Hiragino Sans", "Microsoft YaHei", sans-serif; overflow-wrap: anywhere; }
h1, h2 { line-height: 1.25; margin: 0 0 .3rem; text-wrap: balance; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.35rem; }
a { color: inherit; text-decoration-color: var(--line); text-underline-offset: .2em; }
a:hover { text-decoration-color: currentColor; }
nav { margin: 1.5rem 0 3rem; } nav ol { padding: 0 0 0 2.2rem; margin: 0; } nav li { padding: .12rem 0; }
nav li::marker, nav time, .facts, .meta { color: var(--dim); }
nav time { font-size: .85rem; white-space: nowrap; }
section + section { margin-top: 4rem; padding-top: 2.5rem; border-top: 1px solid var(--line); }
.facts { margin: 0 0 2rem; font-size: .85rem; } .facts span + span::before, .meta > * + *::before { content: " · "; }
article { margin: 0 0 1.1rem; padding: .8rem 1.1rem .9rem; background: var(--card); border: 1px solid var(--line);
  border-inline-start: 3px solid var(--who); border-radius: .5rem; }
article:target { outline: 2px solid var(--who); outline-offset: 2px; }
.user { --who: var(--you); background: var(--you-card); } .assistant { --who: var(--assistant); }
.tool { --who: var(--tool); } .system, .summary { --who: var(--system); }
header { display: flex; flex-wrap: wrap; gap: 0 .8rem; align-items: baseline; }
header b { color: var(--who); }
.meta { font-size: .8rem; margin-inline-start: auto; } .meta a { text-decoration: none; }
.text { white-space: pre-wrap; margin-top: .25rem; } .text + .text, pre + .text { margin-top: .6rem; }
code, samp { font: .9em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { background: var(--code); border-radius: .25rem; padding: .05em .15em; }
samp { display: block; white-space: pre; overflow-x: auto; font-size: .85rem; }
.none { color: var(--dim); font-style: italic; }
pre { margin: .6rem 0 0; padding: .7rem .9rem; background: var(--code); border: 1px solid var(--line);
  border-radius: .4rem; font: .85rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono",
  "Noto Sans Mono CJK SC", monospace; white-space: pre-wrap; tab-size: 4; max-height: 32rem; overflow: auto; }
details { margin-top: .6rem; } article > details:only-child { margin: 0; }
summary { cursor: pointer; color: var(--dim); font-size: .9rem; } summary b { color: var(--tool); font-weight: 600; }
summary .meta { float: inline-end; }
article.tool { padding-block: .5rem; background: none; border-style: dashed; border-inline-start-style: solid; }
.break { margin: 2rem 0; color: var(--dim); font-size: .85rem; text-align: center; display: flex; gap: 1rem;
  align-items: center; } .break::before, .break::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
@media (max-width: 34rem) { body { padding: 1.2rem .7rem 3rem; } article { padding-inline: .75rem; }
  h1 { font-size: 1.4rem; } .meta { margin-inline-start: 0; }
  summary .meta { float: none; margin-inline-start: .6rem; } }
@media print { :root { --page: #fff; --card: #fff; --you-card: #fff; --code: #fff; --text: #000; --dim: #555; }
  body { max-width: none; padding: 0; font-size: 10.5pt; } pre { max-height: none; } article { break-inside: auto; }
  header, h1, h2 { break-after: avoid; } section + section { break-before: page; border: 0; margin: 0; } }
"""

_MARKED = re.compile(
    r"(?m)(?P<samp>(?:^[ \t]*\|.*\n?)+)"  # a table
    r"|(?P<b>^[#]{1,6}[ ].*$|\*\*[^*\n]{1,300}\*\*)|(?P<code>`[^`\n]{1,300}`)"
)


class Page:
    """Pieces of a document in HTML."""

    def __init__(self) -> None:
        self._level = "h1"

    def begin(self, contents: Iterator[Entry], total: int) -> Iterator[str]:
        entries = iter(contents)
        first = next(entries, None) if total == 1 else None
        title = first.title if first else count(total, "conversation")
        yield (
            '<!DOCTYPE html>\n<html lang="und">\n<head>\n<meta charset="utf-8">\n'
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="referrer" content="no-referrer">\n'
            f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        )
        if first:
            return
        self._level = "h2"
        yield f"<h1>{escape(title)}</h1>\n<nav>\n<ol>\n"
        for entry in entries:
            link = f'<a href="#c{entry.number}"><bdi>{escape(entry.title)}</bdi></a>'
            yield f"<li>{link} {_time(entry.began_at, '%Y-%m-%d')}</li>\n"
        yield "</ol>\n</nav>\n"

    def conversation(self, entry: Entry) -> str:
        facts = "".join(f"<span><bdi>{escape(fact)}</bdi></span>" for fact in entry.facts)
        return (
            f'<section id="c{entry.number}">\n<{self._level} dir="auto">{escape(entry.title)}</{self._level}>\n'
            f'<p class="facts"><span>{_time(entry.began_at)}</span>{facts}</p>\n'
        )

    def break_(self, text: str) -> str:
        return f'<p class="break"><bdi>{escape(text)}</bdi></p>\n'

    def message(self, said: Said) -> str:
        note = f"<span>{escape(said.note)}</span>" if said.note else ""
        meta = f'<span class="meta"><a href="#{said.anchor}">#{said.seq}</a><span>{_time(said.at)}</span>{note}</span>'
        begin = f'<article class="{escape(said.voice)}" id="{said.anchor}">\n'
        who = f"<b><bdi>{escape(said.name)}</bdi></b>"
        if said.voice == "tool" or (said.voice in ("system", "summary") and len(said.text) > _LONG):
            body = _pre(said.text) if said.voice == "tool" else "".join(map(_block, blocks(said.text)))
            return f"{begin}{_folded(who + meta, body)}</article>\n"
        body = "".join(map(_block, blocks(said.text))) if said.text else "" if said.calls else _NOTHING
        calls = "".join(
            _folded(f"→ <b><bdi>{escape(call.name)}</bdi></b>", _pre(call.arguments)) for call in said.calls
        )
        return f"{begin}<header>{who}{meta}</header>\n{body}{calls}</article>\n"

    def close_conversation(self) -> str:
        return "</section>\n"

    def end(self) -> str:
        return "</body>\n</html>\n"


_NOTHING = '<div class="none">(no words)</div>\n'


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n{body or _NOTHING}</details>\n"


def _block(block: Block) -> str:
    if block.is_code:
        return _pre(block.text)
    text = block.text.strip("\n")
    return f'<div class="text" dir="auto">{_styled(text)}</div>\n' if text else ""


def _styled(text: str) -> str:
    """The text, every character of it, with what its Markdown means made visible."""
    pieces, at = [], 0
    for found in _MARKED.finditer(text):
        tag = str(found.lastgroup)
        pieces += [escape(text[at : found.start()]), f"<{tag}>{escape(found[0])}</{tag}>"]
        at = found.end()
    return "".join([*pieces, escape(text[at:])])


def _pre(text: str) -> str:
    """Text as it is; a line end at its beginning would be swallowed, so one is always there."""
    return f'<pre dir="auto">\n{escape(text)}</pre>\n' if text else ""


def _time(moment: datetime, shown: str = "%Y-%m-%d %H:%M") -> str:
    return (
        f'<time datetime="{moment.isoformat()}" title="{moment:%Y-%m-%d %H:%M:%S %Z (UTC%z)}">{moment:{shown}}</time>'
    )
