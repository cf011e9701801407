"""The text that every side stores: seeded, so that the same seed writes the same bytes anywhere.

English, accents, Cyrillic, Arabic, CJK and emoji; tool calls with JSON arguments; tool outputs of up to 50 kB.
A message is a dictionary of `role`, `content`, `timestamp` and, for tools, `tool_calls`, `tool_call_id`, `tool_name`.
A session is a dictionary of `id`, `source`, `started_at`, `ended_at`, `end_reason` and `messages`.
"""

import json
import random
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Session = dict[str, Any]

DAY = 86400.0
LONGEST_OUTPUT = 50_000
_LONG_OUTPUTS = 0.02  # of the tool results
_OTHER_SCRIPTS = (
    "¿Puedes resumir la reunión de mañana, por favor?",
    "Der Zug nach Köln fährt über Münster; größere Verspätungen häufen sich.",
    "Пожалуйста, проверь журнал сервера ещё раз и пришли отчёт.",
    "هل يمكنك ترجمة هذه الرسالة إلى العربية؟",
    "東京の天気を調べて、来週の予定を教えてください。",
    "请把这份报告翻译成中文,并列出三个要点。",
    "서버 로그를 확인하고 오류를 요약해 주세요.",
    "Shipped! 🚀🎉 Tests pass ✅ and the café is open 👩‍💻☕️",
    "naïve façade — “quoted” … ½ × 3 ≠ 2 €",
)
_COMMON = """
the of and to in is that it for you was on are with as at be this have from or by not but what all were when we
there can an your which their said if do will each about how up out them then she many some so these would other
into has more her two like him see time could no make than first been its who now people my made over did server
deploy error log build test file branch commit database query index session message token model prompt
"""
_SYLLABLES = "an ber co den el fa gor hi in jo ka lu men no or pa qui ra sil ta un ver wo xen yo zar"
_TOOLS = ("read_file", "search_web", "run_command", "list_folder", "query_database")
_SOURCES = ("cli", "telegram", "discord", "slack")


class Corpus:
    """An endless supply of messages and sessions."""

    def __init__(self, seed: int, start: float) -> None:
        self._random = random.Random(seed)
        self._at = start
        self._calls = 0
        syllables = _SYLLABLES.split()
        rare = ("".join(self._random.choices(syllables, k=self._random.randint(2, 4))) for _ in range(4000))
        self._words = [*_COMMON.split(), *rare]
        # Words of real text are as rare as their rank says.
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(len(self._words))))

    def messages(self, count: int) -> list[Message]:
        """Turns of a conversation: a question, perhaps a tool call and its result, an answer."""
        said: list[Message] = []
        while len(said) < count:
            said += self._turn(count - len(said))
        return said

    def sessions(self, count: int, messages: int, *, begin: int = 0, is_short: bool = False) -> Iterator[Session]:
        for number in range(begin, begin + count):
            started_at = self._at
            said = self.chatter(messages) if is_short else self.messages(messages)
            yield {
                "id": f"bench_{number:06d}",
                "source": _SOURCES[number % len(_SOURCES)],
                "started_at": started_at,
                "ended_at": self._at,
                "end_reason": "user_exit",
                "messages": said,
            }
            self._at += 60

    def chatter(self, count: int) -> list[Message]:
        """Short questions and short answers."""
        return [self._said("user" if number % 2 == 0 else "assistant", self._prose(12)) for number in range(count)]

    def _turn(self, most: int) -> Iterator[Message]:
        yield self._said("user", self._prose(self._random.randint(4, 40)))
        if most == 1:
            return
        if most >= 4 and self._random.random() < 0.6:
            self._calls += 1
            name, call = self._random.choice(_TOOLS), f"call_{self._calls:07d}"
            arguments = {
                "path": f"/srv/{self._prose(2)}",
                "query": self._prose(6),
                "limit": self._random.randint(1, 99),
            }
            function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
            tool_calls = [{"id": call, "type": "function", "function": function}]
            yield self._said("assistant", self._prose(5), tool_calls=tool_calls)
            yield self._said("tool", self._output(), tool_call_id=call, tool_name=name)
        yield self._said("assistant", self._prose(self._random.randint(30, 200)))

    def _said(self, role: str, content: str, **more: Any) -> Message:
        self._at += 1
        return {"role": role, "content": content, "timestamp": self._at, **more}

    def _prose(self, words: int) -> str:
        text = " ".join(self._random.choices(self._words, cum_weights=self._weights, k=words))
        return f"{text} {self._random.choice(_OTHER_SCRIPTS)}" if self._random.random() < 0.25 else text

    def _output(self) -> str:
        wanted = LONGEST_OUTPUT if self._random.random() < _LONG_OUTPUTS else self._random.randint(50, 3000)
        lines = [f"{number}: {self._prose(12)}" for number in range(wanted // 60 + 1)]
        return "\n".join(lines)[:wanted].strip()


def text_bytes(message: Message) -> int:
    """What a message says, in bytes: its words and its tool calls."""
    calls = message.get("tool_calls")
    said = message["content"] + (json.dumps(calls, ensure_ascii=False) if calls else "")
    return len(said.encode("utf-8"))


def write(path: Path, items: Iterable[Any]) -> None:
    """One JSON object a line."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
