"""A query as SQLite's full-text index reads it.

The expression proposes every message that may be meant, and perhaps some more; `is_exact` says that there are no more.
No expression at all means that the index cannot tell, and every message must be looked at.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from segue.core.matching import Needle, needle_of
from segue.core.query import And, Node, Not, Only, Or, Part
from segue.core.tokens import Tokens, is_dense, tokens_of

WordsWith = Callable[[str], list[str] | None]
"""Every word that has a part, or None when there are too many."""

_NOTHING = '"\ue000"'  # a token that no text has


class Rendered(NamedTuple):
    expression: str | None
    is_exact: bool


_ANYTHING = Rendered(None, is_exact=False)


def render(node: Node, words_with: WordsWith) -> Rendered:
    match node:
        case And(nodes):
            return _all(nodes, words_with)
        case Or(nodes):
            return _any([render(one, words_with) for one in nodes])
        case Not() | Only():
            return _ANYTHING
        case Part():
            return _part(needle_of(node).part, words_with)
    return _needle(needle_of(node))


def _needle(needle: Needle) -> Rendered:
    return Rendered(_phrase(needle.tokens), needle.is_exact) if needle.tokens.words else _ANYTHING


def _all(nodes: Sequence[Node], words_with: WordsWith) -> Rendered:
    wanted = [render(node, words_with) for node in nodes if not isinstance(node, Not)]
    unwanted = [render(node.node, words_with) for node in nodes if isinstance(node, Not)]
    said = [one.expression for one in wanted if one.expression is not None]
    if not said:
        return _ANYTHING
    expression = " AND ".join(said)
    certain = [one.expression for one in unwanted if one.is_exact and one.expression is not None]
    for absent in certain:
        expression = f"({expression}) NOT {absent}"
    is_exact = all(one.is_exact for one in wanted) and len(certain) == len(unwanted)
    return Rendered(f"({expression})", is_exact)


def _any(parts: list[Rendered]) -> Rendered:
    if any(one.expression is None for one in parts):
        return _ANYTHING
    joined = " OR ".join(str(one.expression) for one in parts)
    return Rendered(f"({joined})", all(one.is_exact for one in parts))


def _phrase(tokens: Tokens) -> str:
    return f'"{" ".join(tokens.words)}"{" *" if tokens.is_open else ""}'


def _part(part: str, words_with: WordsWith) -> Rendered:
    """A part of the text: the words inside it are certain, those at its edges may be parts of longer ones."""
    tokens = tokens_of(part)
    if not tokens:
        return _ANYTHING
    pairs = [token for token in tokens if len(token) == 2 and is_dense(token[0])]
    if certain := pairs or tokens[1:-1]:
        return Rendered(_joined(" AND ", certain), is_exact=False)
    if len(tokens) == 2 or is_dense(tokens[0][0]):
        return Rendered(_phrase(Tokens((tokens[-1],), True)), is_exact=False)
    words = words_with(tokens[0])
    if words is None:
        return _ANYTHING
    return Rendered(_joined(" OR ", words) if words else _NOTHING, is_exact=False)


def _joined(operator: str, words: Sequence[str]) -> str:
    return f"({operator.join(_phrase(Tokens((word,), is_open=False)) for word in words)})"
