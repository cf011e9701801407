"""The settings of the log: how much is told, in which form, and where."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from segue.config.declaring import about, is_word
from segue.config.kinds import Choice, Section, Text


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def _is_file_or_nothing(text: str) -> bool:
    return text == "" or (is_word(text) and not text.endswith("/"))


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What a gateway tells of its work."""

    level: LogLevel = field(
        default=LogLevel.INFO,
        metadata=about(
            Choice(LogLevel),
            "The lowest level that is logged. `debug` is for Segue itself; libraries log at `info` then.",
        ),
    )
    format: LogFormat = field(
        default=LogFormat.TEXT,
        metadata=about(
            Choice(LogFormat),
            "Lines to read (text), or a JSON object per line with time, level, logger, message and, where they are "
            "known, lane_key, session_id and turn_id (json).",
        ),
    )
    file: str = field(
        default="",
        metadata=about(
            Text("the path of a file", _is_file_or_nothing),
            "The file that lines are added to, in the home folder unless the path says otherwise; it is opened again "
            "after somebody moved it away. Without one, they go to stderr.",
        ),
    )

    def path_in(self, home: Path) -> Path | None:
        """The file, if there is to be one."""
        return home / Path(self.file).expanduser() if self.file else None


LOG = Section(LogSettings)
