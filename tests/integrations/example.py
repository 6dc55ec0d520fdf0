"""Run an example of the documentation: ``python -m tests.integrations.example NAME``.

Its model is scripted and leaves an argument out. Prints one JSON object: what the example returned
and the events.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import toolfault
from toolfault.testing import MemoryTransport

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
STAND_IN = Path(__file__).with_name("claude_stand_in.py")


def example(name: str, model: Any = None) -> dict[str, Any]:
    """Return what ``docs/examples/<name>.py`` returned, and its events.

    Args:
        name: A framework; its driver has the model, if the example takes one.
        model: The model, where there is no driver.
    """
    transport = MemoryTransport()
    init = toolfault.init
    toolfault.init = functools.partial(init, transport=transport, successes="all")
    try:
        returned = _run(name, model)
        toolfault.flush()
    finally:
        toolfault.close()
        toolfault.init = init
    calls = [event for event in transport.events if event["type"] != "conversation_end"]
    return {"returned": str(returned), "events": calls}


def _run(name: str, model: Any) -> Any:
    spec = spec_from_file_location(f"example_of_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    if name == "claude_agent_sdk":  # its model is behind a program
        module.options.cli_path = STAND_IN
    given = [model or _model(name)] if "model" in inspect.signature(module.run).parameters else []
    returned = module.run(*given)
    return asyncio.run(_awaited(returned)) if inspect.isawaitable(returned) else returned


def _model(name: str) -> Any:
    """Return the scripted model of a driver; it leaves the argument ``restaurant`` out."""
    try:
        driver = import_module(f"tests.integrations.drivers.{name}")
    except ModuleNotFoundError:
        from tests.integrations.more.scenes import SCENARIOS as SCENES

        return import_module(f"tests.integrations.more.drivers.{name}").model_of(SCENES["missing"])
    from tests.integrations.scenarios import SCENARIOS

    return driver.model_of(next(each for each in SCENARIOS if each.name == "missing"))


async def _awaited(returned: Any) -> Any:
    return await returned


if __name__ == "__main__":
    from tests.integrations.more.play import QUIET

    os.environ.update(QUIET)
    logging.disable(logging.CRITICAL)
    answers, sys.stdout = sys.stdout, sys.stderr  # frameworks print
    answers.write(json.dumps(example(sys.argv[1])))
    answers.flush()
