"""The pytest plugin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from toolfault import ToolError, tool


@tool
def divide(a: int, b: int) -> float:
    """Divide."""
    return a / b


def test_failures_are_collected(captured_failures: list[ToolError]) -> None:
    """Every failed call of the test is there, in order, and nothing else."""
    divide.call(a=1, b=1)
    divide.call(a="x", b=1)
    divide.call(a=1, b=0)

    assert [failure.code.value for failure in captured_failures] == ["wrong_type", "internal_error"]


def test_nothing_is_left_over(captured_failures: list[ToolError]) -> None:
    """Each test starts with none."""
    assert captured_failures == []


def test_the_plugin_is_harmless_where_it_is_not_used(tmp_path: Path) -> None:
    """Loading the plugin loads nothing of the SDK but the plugin."""
    (tmp_path / "test_other.py").write_text(
        """
import sys

def test_other(request):
    assert request.config.pluginmanager.hasplugin("toolfault")
    loaded = [name for name in sys.modules if name.startswith("toolfault.")]
    names = ["_forks", "integrations", "integrations.pytest_plugin"]
    assert loaded == [f"toolfault.{name}" for name in names]
"""
    )

    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            # By the name of its entry point, without all that is installed here beside it.
            *("--disable-plugin-autoload", "-p", "toolfault", str(tmp_path)),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout
