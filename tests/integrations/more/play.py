"""``python -m tests.integrations.more.play DRIVER``: play what stdin asks for with one framework.

Stdin is one JSON object: ``scenarios`` (names), ``hooked``, ``improve`` and ``decorated``. Stdout
gets one line of JSON about the driver and one for each scenario: name, outcome and events.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import asdict, replace
from importlib import import_module

from tests.integrations.more.scenes import SCENARIOS, Outcome

# Where frameworks would call home.
QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
}


def main(driver: str) -> None:
    """Play scenarios with one driver."""
    os.environ.update(QUIET)
    asked = json.load(sys.stdin)
    answers, sys.stdout = sys.stdout, sys.stderr  # frameworks print
    logging.disable(logging.CRITICAL)
    import toolfault
    from toolfault.testing import capture_events

    module = import_module(f"tests.integrations.more.drivers.{driver}")
    if asked["hooked"] and module.FRAMEWORKS:
        toolfault.instrument(*module.FRAMEWORKS, improve=asked["improve"])
    facts = {
        "lacks": module.LACKS,
        "side": getattr(module, "SIDE", "agent"),
        "joined": getattr(module, "JOINED", False),
        "names_agent": getattr(module, "NAMES_AGENT", True),
        "own_ids": getattr(module, "OWN_IDS", False),
        "idempotent": getattr(module, "IDEMPOTENT", {}),
    }
    answers.write(json.dumps([None, facts, []]) + "\n")
    for name in asked["scenarios"]:
        if name in module.LACKS:
            continue
        scenario = replace(SCENARIOS[name], decorated=asked["decorated"], improve=asked["improve"])
        outcome = Outcome()
        with capture_events(agent="process", integrations=False) as events:
            try:
                module.run(scenario, outcome)
            except Exception as error:
                outcome.error = f"{type(error).__name__}: {error}"
        calls = [event for event in events if event["type"] != "conversation_end"]
        answers.write(json.dumps([name, asdict(outcome), calls]) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
