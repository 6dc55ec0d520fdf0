"""The public face passes the strict modes of mypy and pyright."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a checker and return what it says."""
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.long
def test_mypy() -> None:
    """[W-14] mypy in strict mode finds nothing (as does `make check`), also no unused ignore."""
    done = run("mypy", "--strict", str(HERE / "public_api.py"), cwd=ROOT)

    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_pyright() -> None:
    """[W-14] pyright in strict mode finds nothing."""
    done = run("pyright", "-p", "pyrightconfig.json", "--outputjson", cwd=HERE)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        pytest.skip(f"pyright cannot start here (it needs Node): {done.stderr[-200:]}")

    assert report["generalDiagnostics"] == []
    assert report["summary"]["filesAnalyzed"] >= 1


def test_the_distribution_is_typed() -> None:
    """[W-14] The marker that tells checkers to read the annotations is there."""
    import toolfault

    assert (Path(toolfault.__file__).parent / "py.typed").is_file()
