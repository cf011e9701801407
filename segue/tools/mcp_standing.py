"""How things stand with a server, and what people have not been told of that yet.

They are told what is so when they are told: a server that went and came back meanwhile is one line, not two.
"""

from segue.core.text import one_line, shorten

_LONGEST_REASON = 300
_GONE, _NEVER_THERE = "is gone", "cannot be used"
_AGAIN = {_GONE: "is back, with its tools.", _NEVER_THERE: "can be used now."}


class Standing:
    """Of one server."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._has_come = False
        self._reason = ""
        """Why it is not there; nothing while it is, and before it was tried."""
        self._unsaid = ""
        """Why it went since people were told something."""
        self._said = ""
        """What people believe it to be, unless they believe it to be there."""
        self._notes: dict[str, bool] = {}

    @property
    def is_missed(self) -> bool:
        """Whether it was tried in vain, or is gone."""
        return bool(self._reason)

    def came(self) -> None:
        self._has_come, self._reason = True, ""

    def lost(self, reason: str) -> None:
        self._reason = self._unsaid = shorten(one_line(reason), _LONGEST_REASON)

    def note(self, said: str) -> None:
        """Tell something else, but never twice."""
        self._notes.setdefault(f"The MCP server {self._name} {said}", False)

    def news(self) -> list[str]:
        """What is to be told now."""
        lines = [f"The MCP server {self._name} {self._change()}"] if self._is_other else []
        self._unsaid = ""
        lines += [note for note, is_told in self._notes.items() if not is_told]
        self._notes = dict.fromkeys(self._notes, True)
        return lines

    @property
    def _is_other(self) -> bool:
        """Whether people believe what is not so, or have missed that it was gone."""
        return bool(self._reason) != bool(self._said) or (bool(self._unsaid) and not self._reason)

    def _change(self) -> str:
        if self._reason:
            self._said = _GONE if self._has_come else _NEVER_THERE
            return f"{self._said}, and its tools are not there: {self._reason}"
        if self._said:
            believed, self._said = self._said, ""
            return _AGAIN[believed]
        return f"was gone and is back: {self._unsaid}"
