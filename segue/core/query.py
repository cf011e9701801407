"""The search language: any string is a query, and searches for what it says.

words              all of them, in any order             lisbon hotel
"a phrase"         these words, one after the other      "third week"
a OR b, a NOT b    in capitals; AND is understood        lisbon OR porto
(…)                groups                                (lisbon OR porto) hotel
begin*             words that begin so                   deplo*
~part              any part of the text                  ~onfig
name:value         only where it is valid: source role title tag after before session in:tools

A word with signs in it (`C#`, `--json`, `user@example.com`) is looked for with its signs; what ends a sentence or
encloses a word (`delta?`, `(so)`) is not part of it. An operator without its operands is an ordinary word.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from enum import StrEnum
from typing import NamedTuple

from segue.core.messages import ROLES
from segue.core.text import storable
from segue.core.tokens import fold, is_dense, is_letter

MOST_CHARACTERS = 512
MOST_TERMS = 64
_DEEPEST = 32

_LEADING = "\"'([{«“„‚‘「『【《（,;:!?、。，；：！？"
_TRAILING = "\"')]}»”’」』】》）.,;:!?…、。，；：！？।॥؟،؛"
_PAIRS = {")": "(", "]": "[", "}": "{"}
_OPERATORS = ("AND", "OR", "NOT")


class Word(NamedTuple):
    """A word as it was typed, with the signs in it."""

    text: str

    def __str__(self) -> str:
        return self.text


class Phrase(NamedTuple):
    """Words one after the other."""

    text: str

    def __str__(self) -> str:
        return f'"{self.text}"'


class Prefix(NamedTuple):
    """The beginning of a word."""

    text: str

    def __str__(self) -> str:
        return f"{self.text}*"


class Part(NamedTuple):
    """Any part of the text."""

    text: str

    def __str__(self) -> str:
        return f'~"{self.text}"'


class Field(StrEnum):
    """What can be narrowed by name."""

    SOURCE = "source"
    ROLE = "role"
    TITLE = "title"
    TAG = "tag"
    AFTER = "after"
    BEFORE = "before"
    SESSION = "session"
    IN = "in"


class Only(NamedTuple):
    """Messages of which something else is true."""

    field: Field
    value: str

    def __str__(self) -> str:
        return f'{self.field}:"{self.value}"'


class Not(NamedTuple):
    node: "Node"

    def __str__(self) -> str:
        return f"NOT {_grouped(self.node)}"


class And(NamedTuple):
    nodes: "tuple[Node, ...]"

    def __str__(self) -> str:
        return " ".join(map(_grouped, self.nodes))


class Or(NamedTuple):
    nodes: "tuple[Node, ...]"

    def __str__(self) -> str:
        return " OR ".join(map(_grouped, self.nodes))


Term = Word | Phrase | Prefix | Part
Node = Term | Only | Not | And | Or


class Query(NamedTuple):
    """What somebody searches for; nothing when they typed nothing."""

    tree: Node | None
    in_tools: bool = False
    is_cut: bool = False
    """Whether only the beginning was taken, because it was too long."""

    def __str__(self) -> str:
        said = "" if self.tree is None else str(self.tree)
        return f"{said} in:tools".strip() if self.in_tools else said


def parse(text: str) -> Query:
    """The query that a text is."""
    taken = storable(text[:MOST_CHARACTERS])
    lexemes = list(_lexed(taken))
    reader = _Reader(lexemes[: 2 * MOST_TERMS])
    tree = reader.either()
    if tree is None and taken.strip() and not reader.in_tools:
        tree = Word(" ".join(taken.split()))
    return Query(tree, reader.in_tools, len(text) > MOST_CHARACTERS or reader.is_cut or len(lexemes) > 2 * MOST_TERMS)


def terms_of(node: Node | None) -> Iterator[Term]:
    """Every term that a match may be recognised by: those that are not to be absent."""
    match node:
        case And(nodes) | Or(nodes):
            for one in nodes:
                yield from terms_of(one)
        case Word() | Phrase() | Prefix() | Part():
            yield node


class _Sign(StrEnum):
    OPEN = "("
    CLOSE = ")"
    AND = "AND"
    OR = "OR"
    NOT = "NOT"


_Lexeme = _Sign | Term | Only
_QUOTED = re.compile(r'"([^"]+)"(?=\s|\)|$)')
_SUBSTRING = re.compile(r'~(?:"([^"]+)"(?=\s|\)|$)|(?=[^\W_]|[^\x00-\x7f])(\S+))')
_ONLY = re.compile(rf'({"|".join(Field)}):(?:"([^"]+)"(?=\s|\)|$)|([^\s"()]+)(?=\s|\)|$))')


def _lexed(text: str) -> Iterator[_Lexeme]:
    at, depth = 0, 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] == "(":
            depth += 1
            at += 1
            yield _Sign.OPEN
        elif text[at] == ")" and depth:
            depth -= 1
            at += 1
            yield _Sign.CLOSE
        else:
            lexeme, at = _next(text, at, depth)
            if lexeme is not None:
                yield lexeme


def _next(text: str, at: int, depth: int) -> tuple[_Lexeme | None, int]:
    if (quoted := _QUOTED.match(text, at)) and _says_something(quoted[1]):
        return Phrase(" ".join(quoted[1].split())), quoted.end()
    if part := _SUBSTRING.match(text, at):
        said, end = (part[1], part.end()) if part[1] else _unclosed(part[2], part.start(2), depth)
        if plain := " ".join(said.replace('"', "").split()):
            return Part(plain), end
    if (only := _ONLY.match(text, at)) and (kept := _only(only)):
        return kept, only.end()
    end = next((end for end in range(at, len(text)) if text[end].isspace()), len(text))
    typed, end = _unclosed(text[at:end], at, depth)
    return _word(typed), end


def _unclosed(typed: str, at: int, depth: int) -> tuple[str, int]:
    """Closing brackets at the end belong to the groups that are open, unless they close one of the word's own."""
    while depth and typed.endswith(")") and typed.count(")") > typed.count("("):
        typed, depth = typed[:-1], depth - 1
    return typed, at + len(typed)


def _word(typed: str) -> _Lexeme | None:
    if typed in _OPERATORS:
        return _Sign(typed)
    bare = _stripped(typed)
    if (
        bare.endswith("*")
        and len(bare) > 1
        and _reads_as_word(bare)
        and (is_letter(fold(bare[-2])[-1:]) or is_dense(bare[-2]))
    ):
        return Prefix(bare[:-1])
    if not bare:
        return None
    return Word(bare) if _reads_as_word(bare) else Phrase(" ".join(bare.replace('"', " ").split()))


def _reads_as_word(bare: str) -> bool:
    """Whether a word means the same when it is read again, alone or in a group."""
    return (
        bare not in _OPERATORS
        and {"(", ")", '"'}.isdisjoint(bare)
        and not _SUBSTRING.match(bare)
        and not ((only := _ONLY.match(bare)) and _only(only))
    )


def _stripped(typed: str) -> str:
    """A word without what only ends a sentence or encloses it."""
    bare = typed.lstrip(_LEADING)
    while bare and bare[-1] in _TRAILING and not _closes(bare):
        bare = bare[:-1]
    return bare


def _closes(typed: str) -> bool:
    """Whether the bracket at the end belongs to one inside."""
    opening = _PAIRS.get(typed[-1])
    return opening is not None and typed.count(opening) >= typed.count(typed[-1])


def _says_something(text: str) -> bool:
    return bool(text.strip())


def _only(found: re.Match[str]) -> Only | None:
    field, value = Field(found[1]), " ".join((found[2] or found[3]).split())
    return Only(field, value) if value and _IS_VALID.get(field, bool)(value) else None


def _is_date(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


_IS_VALID: dict[Field, Callable[[str], bool]] = {
    Field.ROLE: ROLES.__contains__,
    Field.AFTER: _is_date,
    Field.BEFORE: _is_date,
    Field.IN: "tools".__eq__,
}


class _Reader:
    """Reads lexemes by descent. What has no meaning where it stands is read as a word, or passed over."""

    def __init__(self, lexemes: Sequence[_Lexeme]) -> None:
        self._lexemes = lexemes
        self._at = 0
        self._depth = 0
        self._terms = 0
        self.in_tools = False
        self.is_cut = False

    def either(self) -> Node | None:
        nodes = [node for node in [self._all()] if node]
        while self._peek() is _Sign.OR:
            self._at += 1
            other = self._all()
            if other is not None:
                nodes.append(other)
            elif nodes:
                nodes[-1] = _joined(And, [nodes[-1], Phrase("OR")])
        return _joined(Or, nodes) if nodes else None

    def _all(self) -> Node | None:
        nodes: list[Node] = []
        while (lexeme := self._peek()) is not None and lexeme is not _Sign.CLOSE:
            if lexeme is _Sign.OR and nodes and self._has_operand(self._at + 1):
                break
            node = self._one()
            if node is not None:
                nodes.append(node)
        return _joined(And, nodes) if nodes else None

    def _one(self) -> Node | None:
        lexeme = self._lexemes[self._at]
        self._at += 1
        match lexeme:
            case _Sign.OPEN:
                return self._group()
            case _Sign.NOT if self._has_operand(self._at):
                node = self._one()
                return None if node is None else node.node if isinstance(node, Not) else Not(node)
            case _Sign.AND if self._at > 1 and self._has_operand(self._at) and self._is_operand(self._at - 2):
                return None  # understood
            case _Sign():
                return self._term(Phrase(lexeme.value))
            case Only(Field.IN):
                self.in_tools = True
                return None
        return self._term(lexeme)

    def _term(self, node: Node) -> Node | None:
        self._terms += 1
        if self._terms > MOST_TERMS:
            self.is_cut = True
            return None
        return node

    def _group(self) -> Node | None:
        self._depth += 1
        node = self.either() if self._depth < _DEEPEST else None
        self._depth -= 1
        if self._peek() is _Sign.CLOSE:
            self._at += 1
        return node

    def _peek(self) -> _Lexeme | None:
        return self._lexemes[self._at] if self._at < len(self._lexemes) else None

    def _has_operand(self, at: int) -> bool:
        lexeme = self._lexemes[at] if at < len(self._lexemes) else None
        return lexeme is not None and lexeme not in (_Sign.CLOSE, _Sign.AND, _Sign.OR)

    def _is_operand(self, at: int) -> bool:
        return self._lexemes[at] not in (_Sign.OPEN, _Sign.AND, _Sign.OR, _Sign.NOT)


def _joined(kind: type[And] | type[Or], nodes: list[Node]) -> Node:
    """Several nodes as one, without a group of one and without a group in a group of the same kind."""
    flat = [inner for node in nodes for inner in (node.nodes if isinstance(node, kind) else (node,))]
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def _grouped(node: Node) -> str:
    return f"({node})" if isinstance(node, And | Or) else str(node)
