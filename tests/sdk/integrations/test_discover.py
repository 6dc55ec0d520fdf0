"""Frameworks are found when they are loaded, and nothing is loaded to find them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PLACE = "maybe_invoke_function_tool_failure_error_function"
PACKAGES = {
    "agents/__init__.py": "",
    "agents/tool.py": f"async def {PLACE}(): ...\noriginal = {PLACE}\n",
    "pydantic_ai/__init__.py": "",
    "pydantic_ai/tool_manager.py": "class ToolManager:\n    def validate_tool_call(self): ...\n",
    "mcp/__init__.py": "",  # the one that is installed takes seconds to load
    "pydantic_ai_slim-1.0.dist-info/METADATA": "Name: pydantic-ai-slim\nVersion: 1.0\n",
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
        f"{first}\nimport agents.tool as m\ntoolfault.init()\nhooked = m.{PLACE}\n"
        f"toolfault.instrument()\nprint(hooked is not m.original, m.{PLACE} is hooked)"
    )
    assert ran(program, frameworks) == ["True", "True"]


def test_a_missing_target_is_noted(frameworks: Path) -> None:
    """The framework is loaded as without us, and the doctor tells what is missing."""
    program = (
        "toolfault.init()\nimport pydantic_ai.tool_manager as m\nm.ToolManager()\n"
        "from toolfault.__main__ import main\nmain(['doctor'])"
    )
    said = " ".join(ran(program, frameworks))
    assert "FAIL pydantic_ai pydantic-ai-slim 1.0: hooked pydantic_ai.tool_manager." in said
    place = "pydantic_ai.tool_manager.ToolManager.execute_tool_call"
    assert f"missing in this version: {place}" in said


def test_integrations_can_be_turned_off(frameworks: Path) -> None:
    """With ``integrations=False`` nothing waits for imports."""
    program = (
        "toolfault.init(integrations=False)\nimport agents.tool as m\n"
        f"print(m.{PLACE} is m.original)"
    )
    assert ran(program, frameworks) == ["True"]


def test_an_unknown_framework_is_reported(frameworks: Path) -> None:
    """A name that does not exist is said, and left out."""
    program = "sys.stderr = sys.stdout\ntoolfault.instrument('no_such')\nprint('on')"
    said = " ".join(ran(program, frameworks))
    assert "there is no integration 'no_such'; there are: langchain, openai_agents" in said
    assert said.endswith(" on")
