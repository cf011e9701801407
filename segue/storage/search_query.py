"""A query as the index of a database reads it.

The expression proposes every message that may be meant, and perhaps some more; `is_exact` says that there are no more.
No expression at all means that the index cannot tell, and every message must be looked at.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from segue.core.matching import Needle, needle_of
from segue.core.query import And, Node, Not, Only, Or, Part
from segue.core.tokens import LONGEST, Tokens, is_dense, is_letter, tokens_of

WordsWith = Callable[[str], list[str] | None]
"""Every word that has a part, or None when there are too many."""


class Rendered(NamedTuple):
    expression: str | None
    is_exact: bool


_ANYTHING = Rendered(None, is_exact=False)


class Spelling(NamedTuple):
    """How an index wants its expressions written."""

    all_of: str
    any_of: str
    but_not: str
    tokens: Callable[[Tokens], str]
    knows_places: bool
    """Whether it can tell that tokens stand next to each other."""


def _fts5(tokens: Tokens) -> str:
    return f'"{" ".join(tokens.words)}"{" *" if tokens.is_open else ""}'


def _tsquery(tokens: Tokens) -> str:
    *firsts, last = (f"'{word}'" for word in tokens.words)
    return f"({' & '.join([*firsts, f'{last}:*' if tokens.is_open else last])})"


FTS5 = Spelling(" AND ", " OR ", " NOT ", _fts5, knows_places=True)
TSQUERY = Spelling(" & ", " | ", " & !", _tsquery, knows_places=False)


def render(node: Node, words_with: WordsWith, spelling: Spelling) -> Rendered:
    return _Renderer(words_with, spelling).render(node)


class _Renderer:
    def __init__(self, words_with: WordsWith, spelling: Spelling) -> None:
        self._words_with = words_with
        self._as = spelling

    def render(self, node: Node) -> Rendered:
        match node:
            case And(nodes):
                return self._all(nodes)
            case Or(nodes):
                return self._any([self.render(one) for one in nodes])
            case Not() | Only():
                return _ANYTHING
            case Part():
                return self._part(needle_of(node).part)
        return self._needle(needle_of(node))

    def _needle(self, needle: Needle) -> Rendered:
        if not needle.tokens.words:
            return _ANYTHING
        is_one = len(needle.tokens.words) == 1
        return Rendered(self._as.tokens(needle.tokens), needle.is_exact and (is_one or self._as.knows_places))

    def _all(self, nodes: Sequence[Node]) -> Rendered:
        wanted = [self.render(node) for node in nodes if not isinstance(node, Not)]
        unwanted = [self.render(node.node) for node in nodes if isinstance(node, Not)]
        said = [one.expression for one in wanted if one.expression is not None]
        if not said:
            return _ANYTHING
        expression = self._as.all_of.join(said)
        certain = [one.expression for one in unwanted if one.is_exact and one.expression is not None]
        for absent in certain:
            expression = f"({expression}){self._as.but_not}{absent}"
        is_exact = all(one.is_exact for one in wanted) and len(certain) == len(unwanted)
        return Rendered(f"({expression})", is_exact)

    def _any(self, parts: list[Rendered]) -> Rendered:
        if any(one.expression is None for one in parts):
            return _ANYTHING
        joined = self._as.any_of.join(str(one.expression) for one in parts)
        return Rendered(f"({joined})", all(one.is_exact for one in parts))

    def _part(self, part: str) -> Rendered:
        """A part of the text: the words inside it are certain, those at its edges may be parts of longer ones."""
        tokens = tokens_of(part)
        if not tokens:
            return _ANYTHING
        pairs = [token for token in tokens if len(token) == 2 and is_dense(token[0])]
        if not pairs and any(len(token) == LONGEST for token in tokens):
            return _ANYTHING  # a piece of a longer word, which may have been cut elsewhere
        if certain := pairs or tokens[1:-1]:
            return Rendered(self._joined(self._as.all_of, certain), is_exact=False)
        if len(tokens) > 1 or not is_letter(tokens[0][0]):
            return Rendered(self._as.tokens(Tokens((tokens[-1],), True)), is_exact=False)
        return self._part_of_word(tokens[0])

    def _part_of_word(self, part: str) -> Rendered:
        words = self._words_with(part) if len(part) > 1 else None
        if words is None:
            return _ANYTHING
        return Rendered(self._joined(self._as.any_of, [part, *words]), is_exact=False)

    def _joined(self, operator: str, words: Sequence[str]) -> str:
        return f"({operator.join(self._as.tokens(Tokens((word,), is_open=False)) for word in words)})"
