"""A scripted coding agent applies the first five fixes to the demo's agents; then they work again.

The agents' source is a copy of the demo. Two weeks of their work are recorded, the agent of
`docs/examples/coding_agent.py` reads them over MCP and edits the copy, and two more weeks are
recorded. What toolfault predicted of the five fixes stands beside what came of them.

    python benchmarks/coding_agent/first_five.py --seed 7
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mcp import Client, StdioServerParameters

ROOT = Path(__file__).resolve().parents[2]
DAY = 86_400.0
_LIVE = """
import asyncio, sys
from fleet.history import live_through
from fleet.live import quiet_tools
quiet_tools()
dsn, seed, until, days = sys.argv[1:]
asyncio.run(live_through(dsn=dsn, seed=int(seed), until=float(until), days=int(days)))
"""


def example():
    """The agent is an example of the documentation, not a module of a package."""
    path = ROOT / "docs" / "examples" / "coding_agent.py"
    spec = importlib.util.spec_from_file_location("coding_agent", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def copied_source(folder: Path) -> Path:
    """Copy the demo's agents as a package ``fleet`` that can be edited."""
    import toolfault_demo

    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "fleet"
    shutil.copytree(
        Path(toolfault_demo.__file__).parent,
        source,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for path in source.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("toolfault_demo", "fleet"), encoding="utf-8")
    return source


def live(folder: Path, dsn: str, *, seed: int, until: float, days: int) -> None:
    """Let the agents of the copy work for some days."""
    arguments = [sys.executable, "-c", _LIVE, dsn, str(seed), str(until), str(days)]
    subprocess.run(arguments, cwd=folder, check=True)


async def run(server, folder: Path, *, seed: int = 7, days: int = 14) -> dict[str, object]:
    """Record, fix, record again; return what was predicted and what came of it.

    Args:
        server: A running server (`tests.live_server`).
        folder: Where the copy of the source goes.
        seed: Of the agents.
        days: Length of each of the two recordings, at most 14.
    """
    agent = example()
    source = copied_source(folder)
    now = time.time()
    changed = now - days * DAY
    dsn = server.dsn("fleet")
    live(folder, dsn, seed=seed, until=changed, days=days)
    tools = StdioServerParameters(
        command=server.command[0],
        args=["mcp", "--project", "fleet"],
        env={"TOOLFAULT_DATABASE_URL": server.database_url},
    )
    async with Client(tools) as client:
        before = await agent.ask(client, "overview")
        applied = await agent.apply_fixes(client, source, number=5)
        live(folder, dsn, seed=seed + 1, until=now, days=days)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(changed))
        found = await agent.ask(
            client, "compare", before=f"until:{moment}", after=f"since:{moment}"
        )
    (metric,) = (each for each in found["metrics"] if each["metric"] == "first_try_success")
    operations = before["first_try_success"]["n"]
    rise = sum(fix.chains for fix in applied) / operations
    difference = metric["difference"]
    return {
        "seed": seed,
        "applied": [f"{fix.tool}.{fix.argument}: {fix.remedy}" for fix in applied],
        "first_try_before": metric["before"],
        "first_try_after": metric["after"],
        "n": metric["n"],
        "predicted_rise": round(rise, 4),
        "rise": difference,
        "verdict": metric["verdict"],
        "within": difference["low"] <= rise <= difference["high"],
    }


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from tests.live_server import live_server

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    for number in range(arguments.runs):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with live_server(folder) as server:
                seed = arguments.seed + 10 * number
                print(json.dumps(asyncio.run(run(server, folder, seed=seed))), flush=True)


if __name__ == "__main__":
    main()
