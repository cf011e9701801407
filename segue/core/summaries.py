"""What is asked of whoever summarises a conversation, whether an answer is of use, and a summary without any help."""

from collections.abc import Sequence

from segue.core.messages import Said, first_line_of
from segue.core.sizes import tokens_in
from segue.core.stopwords import is_telling
from segue.core.text import cut
from segue.core.tokens import fold, tokens_of

INSTRUCTIONS = """\
You summarise a conversation between a person and an agent, so that the agent can go on with it without having read it.
Keep every fact that may matter later, in the words that were used: names, numbers, dates, paths, commands, decisions
and their reasons, what the person wants and how they want it, what was done and with what outcome, what is still open.
Leave out greetings and what was superseded. Write in the language of the conversation, in short paragraphs or lists.
Answer with the summary alone."""

_WORDS_OF_A_TOKEN = 0.6
_LEAST_SHARED = 0.1
_LONGEST_LINE = 200
_TOKENS_OF_A_LINE = 20
_HEADING = "How it went, in the words that were used:"


def request(earlier: str, words: str, focus: str, most_tokens: int) -> str:
    """What the one who summarises is told: what is known already, and what was said after that."""
    wish = f"At most {int(most_tokens * _WORDS_OF_A_TOKEN)} words."
    if focus:
        wish += f" Above all, keep what has to do with this: {focus}"
    before = f"The summary of what came before, to be taken up into yours:\n{earlier}\n\n" if earlier else ""
    return f"{wish}\n\n{before}What was said:\n{words}"


def accepted(answer: str, source: str, most_tokens: int) -> str | None:
    """A summary as far as there is room for it; nothing when it has nothing to do with what was said."""
    summary = answer.strip()
    return fitted(summary, most_tokens) if _is_about(summary, source) else None


def _is_about(summary: str, source: str) -> bool:
    """Whether a summary shares words with its source: one that shares next to none is of something else."""
    words = {token for token in tokens_of(fold(summary)) if is_telling(token)}
    shared = words & set(tokens_of(fold(source)))
    return bool(shared) and len(shared) >= _LEAST_SHARED * len(words)


def plain_summary(earlier: str, told: Sequence[Said], most_tokens: int) -> str:
    """The beginnings of what was said, evenly taken, for when nobody can do better."""
    before = fitted(earlier, most_tokens // 3)
    room = max(most_tokens - tokens_in(before) - tokens_in(_HEADING), _TOKENS_OF_A_LINE)
    lines = [f"- {_speaker(message)}: {line}" for message in told if (line := _line(message))]
    most = max(room // _TOKENS_OF_A_LINE, 1)
    chosen = lines if len(lines) <= most else [lines[at * len(lines) // most] for at in range(most)]
    share = room // max(len(chosen), 1)
    said = "\n".join(fitted(line, share) for line in chosen)
    return "\n\n".join(part for part in (before, f"{_HEADING}\n{said}") if part)


def fitted(text: str, most_tokens: int) -> str:
    """The beginning of a text, at most so many tokens."""
    while (tokens := tokens_in(text)) > most_tokens and text:
        text = cut(text, min(int(len(text) * most_tokens / tokens), len(text) - 1))
    return text


def _speaker(message: Said) -> str:
    return "Person" if message.role == "user" else "Agent"


def _line(message: Said) -> str:
    return first_line_of(message.content, _LONGEST_LINE) if message.role in ("user", "assistant") else ""
