"""``python -m tests.integrations.more.table``: play the newest frameworks, write what is recorded.

What each records is kept in ``recorded.json``; the table of ``docs/frameworks.md`` is written from
that, between two marks. ``--write`` only writes it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.integrations.environments import is_made, python_of
from tests.integrations.more.scenes import MODES, SCENARIOS

__all__ = ["COLUMNS", "PAGE", "RECORDED", "recorded", "written"]

ROOT = Path(__file__).parents[3]
RECORDED = Path(__file__).parent / "recorded.json"
PAGE = ROOT / "docs" / "frameworks.md"
COLUMNS = {
    "crewai": ("CrewAI", "crewai-new"),
    "google_adk": ("Google ADK", "google-adk-new"),
    "strands": ("Strands", "strands-new"),
    "agent_framework": ("MS Agent Framework", "agent-framework-new"),
    "llama_index": ("LlamaIndex", "llama-index-new"),
    "smolagents": ("smolagents", "smolagents-new"),
    "fastmcp_hooked": ("FastMCP server", "fastmcp-new"),
    "mcp_lowlevel": ("low-level MCP server", "mcp-new"),
}
"""Of each driver, the title of its column and the environment."""
_MARKED = re.compile(r"(?<=<!-- recorded -->\n).*(?=<!-- /recorded -->)", re.DOTALL)


def recorded(lines: str) -> dict[str, Any]:
    """Return what a driver lacks, and by scenario what the event of each call says.

    Args:
        lines: What ``play`` printed.
    """
    first, *rest = map(json.loads, lines.splitlines())
    rows: dict[str, dict[str, list[str]]] = {}
    for way, name, mode, _, events in rest:
        if way == "hooked":
            rows.setdefault(name, {})[mode] = sorted(map(_said, events))
    return {"modes": first["modes"], "lacks": first["lacks"], "rows": rows}


def _said(event: dict[str, Any]) -> str:
    error = event.get("error")
    if error is None:
        dropped = len(event.get("phantom_arguments", ()))
        return f"succeeded ({dropped} dropped)" if dropped else "succeeded"
    issues = len(error.get("issues", ()))
    return f"{error['code']} ({issues})" if issues else str(error["code"])


def written(page: str, found: dict[str, Any]) -> str:
    """Return the page with the table of what was recorded.

    Args:
        page: Text of ``docs/frameworks.md``.
        found: Content of ``recorded.json``.
    """
    drivers = [driver for driver in COLUMNS if driver in found]
    reasons: list[str] = []
    lines = [
        f"| the call | {' | '.join(COLUMNS[driver][0] for driver in drivers)} |",
        f"|---|{'---|' * len(drivers)}",
    ]
    for row in (*SCENARIOS, *MODES):
        cells = (_cell(found[driver], row, reasons) for driver in drivers)
        lines.append(f"| {_WAYS.get(row, row)} | {' | '.join(cells)} |")
    notes = [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    table = "\n".join([*lines, "", *notes])
    return _MARKED.sub(lambda _: f"\n{table}\n\n", page)


_WAYS = {"sync": "synchronously", "async": "asynchronously", "stream": "streamed"}


def _cell(of: dict[str, Any], row: str, reasons: list[str]) -> str:
    lacks = of["lacks"]
    if row in lacks:
        return f"- [{_number(lacks[row], reasons)}]"
    if row in MODES:
        return "yes"
    modes = of["rows"][row]
    said = {" / ".join(events) or "no event" for events in modes.values()}
    cell = " or ".join(sorted(said))
    missing = [mode for mode in of["modes"] if f"{row}, {mode}" in lacks]
    notes = [f"not {_WAYS[mode]} [{_number(lacks[f'{row}, {mode}'], reasons)}]" for mode in missing]
    return "; ".join([cell, *notes])


def _number(reason: str, reasons: list[str]) -> int:
    if reason not in reasons:
        reasons.append(reason)
    return reasons.index(reason) + 1


def main() -> int:
    """Play what can be played and write the page; 1 if an environment is missing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help=", ".join(COLUMNS))
    parser.add_argument("--write", action="store_true", help="only write the page")
    given = parser.parse_args()
    found = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    for driver in () if given.write else given.drivers or COLUMNS:
        name = COLUMNS[driver][1]
        if not is_made(name):
            sys.stderr.write(f"Make it first: python -m tests.integrations.environments {name}\n")
            return 1
        found[driver] = recorded(_play(driver, name))
    text = json.dumps(found, indent=1, ensure_ascii=False)
    RECORDED.write_text(f"{text}\n", encoding="utf-8")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    return 0


def _play(driver: str, environment: str) -> str:
    return subprocess.run(
        [python_of(environment), "-m", "tests.integrations.more.play", driver],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "sdk"), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
