"""What the operating system says of a process."""

from __future__ import annotations

from pathlib import Path

__all__ = ["handles_of", "memory_of", "most_memory_of"]


def memory_of(pid: int) -> int:
    """Bytes of memory that the process has now."""
    return _status(pid, "VmRSS")


def most_memory_of(pid: int) -> int:
    """The most bytes of memory that the process ever had."""
    return _status(pid, "VmHWM")


def handles_of(pid: int) -> tuple[int, int]:
    """How many files and threads the process has open."""
    process = Path(f"/proc/{pid}")
    return len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))


def _status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1_024
