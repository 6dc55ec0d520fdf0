"""Compare what observers record: ``python -m tests.integrations.compare`` makes the tables anew.

Runs the table under toolfault and every other observer, each in a process of its own, in the
environments ``<framework>-observed``. What came of it is kept in ``compared.json``;
``docs/frameworks.md`` is written from that, between two marks. ``--write`` only writes it.
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
from tests.integrations.observe import OBSERVERS
from tests.integrations.scenarios import SCENARIOS
from tests.integrations.seen import judged

__all__ = ["COMPARED", "PAGE", "written"]

ROOT = Path(__file__).parents[2]
COMPARED = Path(__file__).parent / "compared.json"
PAGE = ROOT / "docs" / "frameworks.md"
_MARKED = re.compile(r"(?<=<!-- compared -->\n).*(?=<!-- /compared -->)", re.DOTALL)
_TITLES = {
    "langchain": "LangChain and LangGraph",
    "openai_agents": "OpenAI Agents SDK",
    "pydantic_ai": "Pydantic AI",
    "mcp": "MCP SDK",
    "fastmcp": "FastMCP",
}
_SHOWN = re.compile(
    r"^(openinference-instrumentation-(?:langchain|openai-agents|pydantic-ai)|logfire|sentry-sdk"
    r"|opentelemetry-(?:sdk|instrumentation-genai-[a-z-]+)|langchain|openai-agents"
    r"|pydantic-ai-slim|mcp|fastmcp)==([^ ]+)",
    re.MULTILINE,
)


def measured(driver: str) -> dict[str, dict[str, list[str]]]:
    """Return what each observer records of each scenario, one line per call.

    Of a scenario that the framework does not have, the reason, under ``lacks``.

    Args:
        driver: A key of ``OBSERVERS``, whose environment was made.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for observer in ("toolfault", *OBSERVERS[driver]):
        answer = _ran(driver, observer)
        for scenario, seen in answer["scenarios"].items():
            found.setdefault(scenario, {})[observer] = judged(seen)
        for scenario, reason in answer["lacks"].items():
            found[scenario] = {"lacks": [reason]}
    return found


def _ran(driver: str, observer: str) -> dict[str, Any]:
    done = subprocess.run(
        [python_of(_environment(driver)), "-m", "tests.integrations.observe", driver, observer],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "sdk")},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _environment(driver: str) -> str:
    return f"{driver.replace('_', '-')}-observed"


def written(page: str, compared: dict[str, Any]) -> str:
    """Return the page with the tables of what was compared.

    Args:
        page: Text of ``docs/frameworks.md``.
        compared: Content of ``compared.json``.
    """
    tables = "\n".join(
        _table(driver, compared[driver]) for driver in OBSERVERS if driver in compared
    )
    return _MARKED.sub(lambda _: f"\n{tables}\n", page)


def _table(driver: str, found: dict[str, dict[str, list[str]]]) -> str:
    observers = ("toolfault", *OBSERVERS[driver])
    lines = [
        f"### {_TITLES[driver]}: what is recorded",
        "",
        f"Run with {_versions(driver)}.",
        "",
        f"| the call | {' | '.join(observers)} |",
        f"|---|{'---|' * len(observers)}",
    ]
    for scenario in SCENARIOS:
        of = found.get(scenario.name, {})
        if of:
            cells = [" / ".join(of.get(each, ["-"])) for each in observers]
            if "lacks" in of:
                cells[0] = f"- ({of['lacks'][0]})"
            lines.append(f"| {scenario.name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _versions(driver: str) -> str:
    """Return the versions of the framework and of what observes it."""
    folder = Path(__file__).parent / "requirements"
    framework = driver.replace("_", "-")
    named = []
    for kind in ("new", "observed"):
        listed = (folder / f"{framework}-{kind}.txt").read_text(encoding="utf-8")
        for name, version in _SHOWN.findall(listed):
            if kind == "observed" or name.startswith(framework):
                named.append(f"{name} {version}")
    return ", ".join(named)


def main() -> int:
    """Measure what can be measured and write the page; 1 if an environment is missing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help=", ".join(OBSERVERS))
    parser.add_argument("--write", action="store_true", help="only write the page")
    given = parser.parse_args()
    compared = json.loads(COMPARED.read_text(encoding="utf-8")) if COMPARED.exists() else {}
    for driver in () if given.write else given.drivers or OBSERVERS:
        name = _environment(driver)
        if not is_made(name):
            sys.stderr.write(f"Make it first: python -m tests.integrations.environments {name}\n")
            return 1
        compared[driver] = measured(driver)
    text = json.dumps(compared, indent=1, ensure_ascii=False)
    COMPARED.write_text(f"{text}\n", encoding="utf-8")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), compared), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
