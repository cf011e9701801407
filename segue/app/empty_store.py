"""An empty store, for commands that only look at a home in which nothing was stored yet."""

from pathlib import Path
from tempfile import TemporaryDirectory

from segue.storage.engines import engine_at
from segue.storage.store import SqlStore


class EmptyStore(SqlStore):
    """Lives in a temporary folder, which goes when it is closed."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="segue-")
        super().__init__(engine_at(Path(self._folder.name) / "state.db"))

    def size(self) -> int:
        """Bytes on disk: none, in the home."""
        return 0

    def close(self) -> None:
        super().close()
        self._folder.cleanup()
