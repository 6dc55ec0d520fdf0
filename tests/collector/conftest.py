"""Fixtures of the collector's tests: disks of a size that can be filled."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

# Room for a database of some thousand failures and its log.
SMALL_DISK_MIB = 16


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB in memory, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    size = f"size={SMALL_DISK_MIB}m,mode=0777"
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("no `mount` here, so no small disk to fill")
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
