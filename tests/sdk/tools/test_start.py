"""What the tools layer costs before it is used, and which Pythons it runs on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import toolfault

SDK = Path(toolfault.__file__).parents[1]

HEAVY = (
    "http",
    "pydantic",
    "msgspec",
    "toolfault.telemetry",
)

DECORATING = """
import sys
from toolfault import ToolManager, tool

@tool(context="HTTP request", timeout=3)
async def fetch(url: str) -> str:
    return url

manager = ToolManager([fetch])
heavy = [name for name in {heavy!r} if name in sys.modules]
assert not heavy, heavy
"""


def run(program: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """Run a program that may import the SDK and nothing else of ours."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [python, "-W", "error", "-c", program],
        env={**environment, "PYTHONPATH": str(SDK)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_decorating_loads_nothing_heavy() -> None:
    """[P-09] Tools depend on the contract: no transport, no client, no collector code."""
    done = run(DECORATING.format(heavy=HEAVY))

    assert done.returncode == 0, done.stderr


def test_tools_work_without_telemetry() -> None:
    """[P-09] A call, failed or not, never loads the client."""
    done = run(
        "import sys; from toolfault import tool\n"
        "f = tool(lambda a: 1 / a); f.call(a=1); f.call(a=0); f.call('{')\n"
        "assert 'toolfault.telemetry' not in sys.modules"
    )

    assert done.returncode == 0, done.stderr


SMOKE = """
import asyncio, enum, json
from dataclasses import dataclass
from typing import Annotated, Dict, List, Literal, NamedTuple, Optional, Tuple, TypedDict, Union
from toolfault import ToolManager, ToolResult, tool
from toolfault.coerce import LLMInt, LLMJson

class Color(enum.Enum):
    RED = "red"

class Bound:
    le = 9

@dataclass
class Point:
    x: int
    y: float = 0.0

class Options(TypedDict, total=False):
    limit: int

class Pair(NamedTuple):
    left: int
    right: int = 0

@tool(name="everything", hints="derived", echo="n", error_defaults={"got": None})
def everything(
    n: Annotated[int, Bound()],
    color: Color = Color.RED,
    point: Optional[Point] = None,
    options: Union[Options, None] = None,
    pair: Tuple[int, str] = (1, "a"),
    named: Optional[Pair] = None,
    items: List[Dict[str, int]] = [],
    mode: Literal["a", "b"] = "a",
    port: LLMInt = 80,
    body: LLMJson = None,
) -> dict:
    return {"got": [n, color.value, point, port]}

good = everything.call(json.dumps({
    "n": 1, "color": "red", "point": {"x": 1}, "options": {"limit": 3}, "pair": [1, "b"],
    "named": {"left": 1}, "items": [{"a": 1}], "mode": "b", "port": "443", "body": "[1]",
}))
assert good.success, good.message
assert good.value["got"] == [1, "red", Point(1), 443]
bad = everything.call(n=10, color="blue", point={"x": "1"}, pair=[1], items=[{"a": "x"}],
                      mode="c", port="x", extra=1)
codes = [issue.code.value for issue in bad.error.issues]
assert codes == ["field_too_large", "invalid_choice", "wrong_type", "field_too_small", "wrong_type",
                 "invalid_choice", "wrong_type", "unknown_field"], codes
assert set(bad.to_dict()) == {"success", "error", "n", "got", "error_code", "error_details"}

@tool(timeout=0.01)
async def slow() -> None:
    await asyncio.Event().wait()

async def main() -> None:
    manager = ToolManager([everything, slow])
    (_, first), (_, second) = await manager.call_tools([("1", "slow", {}), ("2", "nope", {})])
    assert first.error.code == "timeout", first.error
    assert second.message == "This tool is not available"
    assert (await manager.call_tool("everything", {"n": 1})).success

asyncio.run(main())
print("ok")
"""


def interpreters() -> list[str]:
    """Every other Python of the supported range that is installed here."""
    found = []
    for version in ("3.10", "3.11", "3.12", "3.13", "3.14"):
        here = shutil.which(f"python{version}")
        candidates = [here] if here else []
        home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        candidates += [str(path) for path in sorted(home.glob(f"{version}.*/bin/python"))]
        found += candidates[-1:]
    return found


INSTALLED = interpreters() or [sys.executable]


@pytest.mark.parametrize(
    "python",
    [
        pytest.param(path, marks=[] if place in (0, len(INSTALLED) - 1) else pytest.mark.long)
        for place, path in enumerate(INSTALLED)
    ],
    ids=lambda path: path[-24:],
)
def test_every_python_found_here(python: str) -> None:
    """Hints, coercions, manager and timeouts work on every installed Python, without packages."""
    done = run(SMOKE, python)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "ok"


def test_one_failing_call_stays_in_a_dozen_files() -> None:
    """A failing call walks through at most 120 functions of the SDK in at most 12 of its files."""
    walk = SDK.parent / "benchmarks" / "sdk" / "walk.py"
    done = run(f"import runpy, sys; sys.argv = ['walk', '--check', 'validation']; "
               f"runpy.run_path({str(walk)!r}, run_name='__main__')")  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_public_names() -> None:
    """What the package offers is listed, and what is listed is there."""
    import toolfault.tools as tools

    assert dir(tools) == sorted(tools.__all__)
    assert all(getattr(tools, name) is not None for name in tools.__all__)
    with pytest.raises(AttributeError):
        tools.nothing_of_the_kind  # noqa: B018
