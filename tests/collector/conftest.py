"""Fixtures of the collector's tests: one collector for many requests, disks that can be filled."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.factories import success
from tests.running import RunningCollector

# Room for a database of some thousand failures and its log.
SMALL_DISK_MIB = 16


@pytest.fixture(scope="session")
def shared_collector(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningCollector]:
    """One collector process for all tests that neither end it nor set it up in their own way."""
    folder = tmp_path_factory.mktemp("shared")
    database = folder / "toolfault.db"
    database.write_bytes(sqlite_template.read_bytes())
    with RunningCollector(f"sqlite:///{database}", folder=folder) as running:
        yield running


@pytest.fixture(scope="module")
def collector(
    shared_collector: RunningCollector, request: pytest.FixtureRequest
) -> Iterator[RunningCollector]:
    """The shared collector with a project of this module: no request may matter to the next."""
    seen = shared_collector.of_project(request.node.path.stem)
    yield seen
    assert seen.post(success()).json()["accepted"] == 1
    seen.client.close()


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 16 MiB in memory, where this user may mount one."""
    # Not below pytest's own folder: if a run is killed the mount stays, and pytest could not remove
    # that folder at the end of a later run.
    folder = Path(tempfile.mkdtemp(prefix="toolfault-disk-"))
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
    folder.rmdir()
