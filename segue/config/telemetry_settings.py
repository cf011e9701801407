"""The settings of traces: where they are sent, and in whose name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from segue.config.declaring import about, is_word, nothing
from segue.config.kinds import Secret, Section, Table, Text

_HEADER = re.compile("[A-Za-z0-9-]+")
_PATH = "/v1/traces"


def _is_web_or_nothing(text: str) -> bool:
    return text == "" or (text.startswith(("http://", "https://")) and is_word(text))


def _is_header(name: object) -> bool:
    return isinstance(name, str) and _HEADER.fullmatch(name) is not None


def _is_header_value(text: str) -> bool:
    return text.isascii() and (text.isprintable() or text == "")


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Where a gateway sends traces of its answers."""

    endpoint: str = field(
        default="",
        metadata=about(
            Text("an address that begins with http:// or https://", _is_web_or_nothing),
            f"A collector that takes OTLP over HTTP, like http://127.0.0.1:4318; {_PATH} is added unless it is there. "
            "Without one, nothing is traced.",
        ),
    )
    headers: Mapping[str, str] = field(
        default_factory=nothing,
        metadata=about(
            Table(
                Text("the name of a header", _is_header),
                Secret("a text of printable ASCII characters", _is_header_value),
                "a mapping from a name to a text",
            ),
            "What each request to it says, like Authorization.",
        ),
    )
    service_name: str = field(
        default="segue", metadata=about(Text("a word", is_word), "What this gateway is called in traces.")
    )

    @property
    def address(self) -> str:
        """Where spans are sent; nothing when they are not."""
        base = self.endpoint.rstrip("/")
        return base if not base or base.endswith(_PATH) else base + _PATH


TELEMETRY = Section(TelemetrySettings)
