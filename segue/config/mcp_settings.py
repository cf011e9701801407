"""The settings of MCP servers: programs and places that bring tools of their own."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from segue.config.declaring import about, is_word, nothing
from segue.config.kinds import Key, Listing, Problem, Secret, Section, Table, Text

_SERVER = re.compile("[A-Za-z0-9-]{1,32}")
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile("[A-Za-z0-9-]+")
_WEB = "an address that begins with http:// or https://"


def _is_web_or_nothing(text: str) -> bool:
    return text == "" or (text.startswith(("http://", "https://")) and is_word(text))


def _is_part(text: str) -> bool:
    return "\x00" not in text


def _is_header_value(text: str) -> bool:
    return text.isascii() and (text.isprintable() or text == "")


def _matches(pattern: re.Pattern[str], name: object) -> bool:
    return isinstance(name, str) and pattern.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class McpServerSettings:
    """One server: a program that is started, or an address that is asked."""

    command: tuple[str, ...] = field(
        default=(), metadata=about(Listing(Text("a text", _is_part)), "The program and its arguments.")
    )
    env: Mapping[str, str] = field(
        default_factory=nothing,
        metadata=about(
            Table(
                Text("the name of a variable", lambda name: _matches(_VARIABLE, name)),
                Secret("a text", _is_part),
                "a mapping from a name to a text",
            ),
            "What the program finds in its environment beside what every command does.",
        ),
    )
    url: str = field(default="", metadata=about(Text(_WEB, _is_web_or_nothing), "Where the server is."))
    headers: Mapping[str, str] = field(
        default_factory=nothing,
        metadata=about(
            Table(
                Text("the name of a header", lambda name: _matches(_HEADER, name)),
                Secret("a text of printable ASCII characters", _is_header_value),
                "a mapping from a name to a text",
            ),
            "What each request says, like Authorization.",
        ),
    )


class _ServerKind(Section):
    allowed = "a mapping with command and env, or with url and headers"

    def read(self, value: object, key: Key, **given: object) -> McpServerSettings:
        said: McpServerSettings = super().read(value, key, **given)
        if bool(said.command) == bool(said.url):
            raise Problem(key, "must have either a command or a url")
        if said.command and (said.headers or not said.command[0]):
            raise Problem(key, "has a command, which must begin with a program and has env, not headers")
        if said.url and said.env:
            raise Problem(key, "has a url, and so headers, not env")
        return said


@dataclass(frozen=True, slots=True)
class McpSettings:
    """Servers that bring tools of their own, for owners alone."""

    servers: Mapping[str, McpServerSettings] = field(
        default_factory=nothing,
        metadata=about(
            Table(
                Text(
                    "at most 32 letters, digits and hyphens, which the names of its tools begin with",
                    lambda name: _matches(_SERVER, name),
                ),
                _ServerKind(McpServerSettings),
                "a mapping from a name to command and env, or to url and headers",
            ),
            "Each by a name of your own: {files: {command: [my-server, --stdio]}} is started with the chat, {wiki: "
            "{url: 'https://wiki.example.org/mcp', headers: {Authorization: 'Bearer ${WIKI_TOKEN}'}}} is asked over "
            "HTTP.",
        ),
    )
