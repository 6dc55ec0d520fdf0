"""The public face of the SDK: its names, and when they are loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import toolfault

NAMES = """
    Audience AvailabilityReason Client ConfigError Conversation ErrorCategory InvocationKind Issue
    Stats ToolError ToolErrorCode ToolInvocationError ToolManager ToolRegistry ToolResult
    ToolfaultError __version__ capture_failure capture_messages client close coerce conversation
    errors flush format_validation_errors formatting init instrument integrations record_change
    report_validation_error
    set_tags stats testing tool tools validators variant wrap_anthropic wrap_openai
"""


def test_names_are_those_released() -> None:
    """Names may be added here on purpose; none goes."""
    assert sorted(toolfault.__all__) == sorted(NAMES.split())
    assert dir(toolfault) == sorted(toolfault.__all__)


def test_every_name_can_be_used() -> None:
    """Each name leads to something, and unknown ones are refused as Python does."""
    for name in toolfault.__all__:
        assert getattr(toolfault, name) is not None, name
    assert not hasattr(toolfault, "no_such_name")


def test_star_import_gives_all_names() -> None:
    """``from toolfault import *`` gives what ``__all__`` says."""
    names: dict[str, object] = {}
    exec("from toolfault import *", names)
    assert set(toolfault.__all__) - {"__version__"} <= set(names) - {"__builtins__"} | {
        "__version__"
    }


def test_version_is_the_distribution_version() -> None:
    """One version, in the package and in its metadata."""
    text = (Path(__file__).parents[2] / "sdk" / "pyproject.toml").read_text("utf-8")
    assert f'version = "{toolfault.__version__}"' in text


def test_import_loads_nothing_else_of_the_sdk() -> None:
    """``import toolfault`` loads what loads the rest; that follows with the first name."""
    program = "import sys, toolfault; print(*[n for n in sys.modules if n.startswith('toolfault')])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == {"toolfault", "toolfault._forks"}
