"""Frameworks are found when they are loaded, and nothing is loaded to find them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import toolfault

PACKAGES = {
    "agents/__init__.py": "",
    "agents/tool.py": "async def maybe_invoke_function_tool_failure_error_function(): ...\n",
    "pydantic_ai/__init__.py": "",
    "pydantic_ai/tool_manager.py": "class ToolManager:\n    def validate_tool_call(self): ...\n",
}


@pytest.fixture
def frameworks(tmp_path: Path) -> Path:
    """Packages with the names of frameworks; of the second one, a target is missing."""
    for name, text in PACKAGES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def ran(program: str, path: Path) -> list[str]:
    """Run a program that can import ``path``, and return the words it printed."""
    head = f"import sys; sys.path.insert(0, {str(path)!r}); import toolfault\n"
    done = subprocess.run(
        [sys.executable, "-c", head + program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_init_loads_no_framework(frameworks: Path) -> None:
    """Neither a framework nor an integration is loaded by ``init``."""
    program = (
        "toolfault.init()\n"
        "print([m for m in sys.modules if m.startswith(('agents', 'pydantic_ai'))],"
        "'toolfault.integrations.seen' in sys.modules)"
    )
    assert ran(program, frameworks) == ["[]", "False"]


@pytest.mark.parametrize("first", ["toolfault.init()", "import agents.tool"])
def test_the_order_of_imports_does_not_matter(frameworks: Path, first: str) -> None:
    """What is loaded is hooked at once, the rest when it gets loaded, and each place once."""
    program = (
        f"{first}\nimport agents.tool\ntoolfault.init()\ntoolfault.instrument()\n"
        "from toolfault.integrations import _discover as d\n"
        "print(*d.hooked['openai_agents'])"
    )
    assert ran(program, frameworks) == [
        "agents.tool.maybe_invoke_function_tool_failure_error_function"
    ]


def test_a_missing_target_is_noted(frameworks: Path) -> None:
    """The framework is loaded as without us, and the doctor can tell what is missing."""
    program = (
        "toolfault.init()\nimport pydantic_ai.tool_manager as m\nm.ToolManager()\n"
        "from toolfault.integrations import _discover as d\n"
        "print(*d.missing['pydantic_ai'])"
    )
    assert ran(program, frameworks) == ["pydantic_ai.tool_manager.ToolManager.execute_tool_call"]


def test_the_doctor_names_what_is_hooked_and_what_is_missing(frameworks: Path) -> None:
    """Of each framework that is installed: its version, every hook, and each missing target."""
    known = frameworks / "pydantic_ai_slim-9.9.dist-info" / "METADATA"
    known.parent.mkdir()
    known.write_text("Metadata-Version: 2.1\nName: pydantic-ai-slim\nVersion: 9.9\n", "utf-8")
    # Without the packages that are installed here, which take seconds to load.
    done = subprocess.run(
        [sys.executable, "-S", "-m", "toolfault", "doctor"],
        env={"PYTHONPATH": f"{Path(toolfault.__file__).parents[1]}{os.pathsep}{frameworks}"},
        capture_output=True,
        text=True,
        check=False,
    )
    place = "pydantic_ai.tool_manager.ToolManager"
    assert done.stdout.splitlines()[:2] == [
        f"FAIL  pydantic_ai  pydantic-ai-slim 9.9: hooked {place}.validate_tool_call",
        f"      missing in this version: {place}.execute_tool_call",
    ], done.stderr


def test_integrations_can_be_turned_off(frameworks: Path) -> None:
    """With ``integrations=False`` nothing waits for imports."""
    program = (
        "toolfault.init(integrations=False)\nimport agents.tool\n"
        "from toolfault.integrations import _discover as d\nprint(d.hooked)"
    )
    assert ran(program, frameworks) == ["{}"]


def test_an_unknown_framework_is_reported(frameworks: Path) -> None:
    """A name that does not exist is said, and left out."""
    program = "toolfault.instrument('no_such')\nprint('on')"
    assert ran(program, frameworks) == ["on"]
