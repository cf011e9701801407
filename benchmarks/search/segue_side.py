"""Segue as it is searched: through its Python API; and the same without what its ranking adds to the words."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import segue_side
from benchmarks.search.asking import Asked
from segue import SessionDB, app
from segue.core import ranking
from segue.sessions import searching


class Side:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._place = segue_side.place_of(folder)
        self._db = SessionDB(self._place)

    def facts(self) -> dict[str, str]:
        return segue_side.facts_of(self._place)

    def fill(self, sessions: Iterable[dict[str, Any]]) -> None:
        store = segue_side.Side(self._folder)
        store.fill(sessions)
        store.close()
        self._index(anew=False)  # what is left of the last batch, as the command that imports does

    def reindex(self) -> None:
        self._index(anew=True)

    def search(self, asked: Asked) -> list[str]:
        query = f"~{asked.text}" if asked.is_part else asked.text
        if asked.since:
            query += f" after:{asked.since}"
        sources = [asked.source] if asked.source else None
        return [row["session_id"] for row in self._db.search_messages(query, sources, limit=asked.limit)]

    def close(self) -> None:
        self._db.close()

    def _index(self, *, anew: bool) -> None:
        with app.open_store(self._place) as store:
            store.index_all(anew=anew)


class WordsAlone(Side):
    """The same index and the same fallbacks; ranked by BM25 over all matches, whatever their age, title or origin."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for name, neutral in {"_FRESHNESS": 0.0, "_TITLE": 0.0, "_AUTOMATION": 1.0}.items():
            assert hasattr(ranking, name), name
            setattr(ranking, name, neutral)
        searching.RANKED = 1_000_000
