"""The lines around the list: the filter above it, what just happened and the keys below it."""

from collections.abc import Sequence

from textual.content import Content
from textual.events import Click
from textual.widgets import Input, Static

from segue.cli.browsing.cells import line
from segue.cli.browsing.keys import KEYS, Key, fitting, key_at


class FilterLine(Input):
    def __init__(self) -> None:
        super().__init__(placeholder="/ to filter by title, id or anything said", compact=True, id="filter")


class StatusLine(Static):
    """What was done, or why not, in one sentence."""

    def __init__(self) -> None:
        super().__init__(id="status")

    def say(self, sentence: str) -> None:
        self.set_class(False, "-wrong")
        self.update(Content(line(sentence)))

    def complain(self, sentence: str) -> None:
        self.set_class(True, "-wrong")
        self.update(Content(line(sentence)))


class KeyLine(Static):
    """The keys there is room for; each can be clicked."""

    def __init__(self) -> None:
        super().__init__(id="keys")
        self._keys: Sequence[Key] = KEYS

    def show(self, keys: Sequence[Key]) -> None:
        self._keys = keys
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    async def on_click(self, event: Click) -> None:
        key = key_at(self._shown, event.get_content_offset_capture(self).x)
        if key is not None and key.action:
            await self.run_action(f"app.{key.action}")

    @property
    def _shown(self) -> list[Key]:
        return fitting(self._keys, self.content_size.width)

    def _draw(self) -> None:
        signs = [Content.assemble((key.sign, "bold $accent"), f" {key.label}") for key in self._shown]
        self.update(Content("  ").join(signs))
