"""A document as Markdown.

What somebody said is a quotation: every line of it begins with `>`, so that no heading, list or unclosed fence in it
can reach past its end. Inside, Markdown works as it was meant: emphasis, lists, tables, links and code. Taken away is
only what has an effect beyond its place or beyond the page: HTML and entities are escaped, an image becomes a link that
has to be clicked, a link leads to the web or nowhere, and a reference cannot be defined for the rest of the document.

Whether a `<` needs escaping depends on whether it is code, and a reader of Markdown must not disagree with us about
that. So code is written anew: a fenced block at the edge of the quotation with a fence longer than any in it, a code
span only where it begins and ends on one line, and every other backtick as a plain character.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from html import escape

from segue.core.documents import Block, Entry, Said, blocks
from segue.core.text import count

_SPECIAL = re.compile(r"[\\`*_\[\]<>&#|~!$]")
_EFFECTIVE = re.compile(
    r"\\[!-/:-@\[-`{-~]"  # an escape that is there already
    r"|`+|~{3,}|<(?=[A-Za-z/!?])|&(?=#?\w{1,40};)|!(?=\[)|(?<=\]):|(?<=\])\((?P<target>[^\s()\[\]!]*)|\[(?=!)"
)
_BACKTICKS = re.compile("`+")
_ENTITY = re.compile(r"&(?=#?\w{1,40};)")
_TAG = re.compile("<[A-Za-z/!?]")
_OPENS_A_DEFINITION = re.compile(r"[\s>*+\d.)-]*\[")
_ON_THE_WEB = re.compile(r"(?i)https?://|mailto:|[^:]*\Z|[^:/?#]*[/?#]")
_TIME = "%Y-%m-%d %H:%M %Z"


class Markdown:
    """Pieces of a document in Markdown."""

    def __init__(self) -> None:
        self._level = "#"

    def begin(self, contents: Iterator[Entry], total: int) -> Iterator[str]:
        if total == 1:
            return
        self._level = "##"
        yield f"# {count(total, 'conversation')}\n\n"
        for entry in contents:
            yield f"{entry.number}. [{inline(entry.title)}](#c{entry.number}) · {entry.began_at:%Y-%m-%d}\n"
        yield "\n"

    def conversation(self, entry: Entry) -> str:
        anchor = f'<a id="c{entry.number}"></a>\n\n' if self._level == "##" else ""
        facts = " · ".join(map(inline, [f"{entry.began_at:{_TIME}}", *entry.facts]))
        return f"{anchor}{self._level} {inline(entry.title)}\n\n{facts}\n\n"

    def break_(self, text: str) -> str:
        return f"---\n\n*{inline(text)}*\n\n"

    def message(self, said: Said) -> str:
        when = f"#{said.seq} · {said.at:{_TIME}}" + (f" · {said.note}" if said.note else "")
        if said.voice == "tool":
            return _folded(f"⚙ {said.name} · {when}", said.text or "(no words)")
        pieces = [f"**{inline(said.name)}** · {when}\n\n"]
        if said.text or not said.calls:
            pieces.append(quoted(said.text or "*(no words)*") + "\n\n")
        pieces += [_folded(f"→ {call.name}", call.arguments) for call in said.calls]
        return "".join(pieces)

    def close_conversation(self) -> str:
        return ""

    def end(self) -> str:
        return ""


def inline(text: str) -> str:
    """One line of plain text as Markdown that shows exactly that."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def quoted(text: str) -> str:
    """A message as a quotation."""
    lines = [line for block in blocks(text) for line in _lines(block)]
    return "\n".join(f"> {line}" if line.strip() else ">" for line in lines)


def _folded(summary: str, text: str) -> str:
    """Plain text under a line that unfolds it."""
    body = fenced(text) if text else "*(nothing)*"
    return f"<details><summary>{escape(summary)}</summary>\n\n{body}\n\n</details>\n\n"


def fenced(text: str, language: str = "") -> str:
    """Text as a block of code, with a fence longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _lines(block: Block) -> list[str]:
    if block.is_code:
        return fenced(block.text, block.language).split("\n")
    return [_harmless(line) for line in block.text.split("\n")]


def _harmless(line: str) -> str:
    """A line of Markdown without what has an effect beyond its place."""
    pieces: list[str] = []
    at = 0
    opening = _OPENS_A_DEFINITION.match(line)
    if opening and ("]:" in line or "]" not in line[opening.end() :]):
        at = opening.end()
        pieces.append(line[: at - 1] + "\\[")
    ticks = _runs(line)
    while found := _EFFECTIVE.search(line, at):
        pieces.append(line[at : found.start()])
        at = found.end()
        if found[0][0] == "`":
            end = _end_of_code(line, found, ticks)
            pieces.append(line[found.start() : end] if end else "\\`" * len(found[0]))
            at = end or at
        else:
            pieces.append(_without_effect(found))
    return "".join([*pieces, line[at:]])


def _without_effect(found: re.Match[str]) -> str:
    sign = found[0][0]
    if sign in "<&":
        return "&lt;" if sign == "<" else "&amp;"
    if sign == "~":
        return "\\~" * len(found[0])
    if sign == "(":
        leads_astray = not found["target"] or not _ON_THE_WEB.match(found["target"])
        return f"\\({_plain_target(found['target'])}" if leads_astray else f"({_plain_target(found['target'])}"
    return found[0] if sign == "\\" else f"\\{found[0]}"


def _plain_target(target: str) -> str:
    """The target of a link, in which neither code nor HTML begins."""
    return _ENTITY.sub("&amp;", target.replace("`", "%60").replace("<", "%3C"))


def _runs(line: str) -> dict[int, list[int]]:
    """Where the runs of backticks of each length begin."""
    found: dict[int, list[int]] = {}
    for run in _BACKTICKS.finditer(line):
        found.setdefault(len(run[0]), []).append(run.start())
    return found


def _end_of_code(line: str, opening: re.Match[str], ticks: dict[int, list[int]]) -> int | None:
    """Where the code that begins here ends, if it does on this line and no table can cut it in two."""
    length = len(opening[0])
    starts = ticks.get(length, [])
    position = bisect_left(starts, opening.end())
    if position == len(starts):
        return None
    end = starts[position] + length
    code = line[opening.start() : end]
    return None if "|" in code and _TAG.search(code) else end
