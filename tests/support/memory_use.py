"""How much memory a process of its own uses, and has used at most."""

from pathlib import Path


class MemoryUse:
    """The growth of a process since this was made."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")
        (self._folder / "clear_refs").write_text("5")  # the highest use is counted from now on
        self._before = self._read("VmRSS")

    @property
    def growth(self) -> float:
        """How many megabytes more than at the beginning the process has used at most."""
        return (self._read("VmHWM") - self._before) / 1024

    def _read(self, name: str) -> int:
        lines = (self._folder / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
