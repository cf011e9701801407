"""The menu that opens behind a slash."""

from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from segue.cli.chatting.offers import Offers
from segue.core.text import one_line, shorten

_WIDEST_MEANING = 60
_MOST = 50


class Menu(Completer):
    def __init__(self, offers: Offers) -> None:
        self._offers = offers

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterable[Completion]:
        typed, offers = self._offers.for_line(document.text_before_cursor)
        for number, offer in enumerate(offers):
            value = one_line(offer.value)
            if number == _MOST:
                return
            if value == offer.value:  # another could not be found by what is typed
                meaning = shorten(one_line(offer.meaning), _WIDEST_MEANING)
                yield Completion(value, start_position=-len(typed), display_meta=meaning)
