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
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from tests.docs.pages import blocks

import toolfault
from toolfault.testing import MemoryTransport

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
OF_README = ("langchain", "openai_agents", "pydantic_ai")


def example(name: str, model: Any = None) -> dict[str, Any]:
    """Return what ``docs/examples/<name>.py`` returned, and its events.

    Args:
        name: A framework; its driver has the model, if the example takes one.
        model: The model, where there is no driver.
    """

    def run() -> Any:
        module = _module(name)
        takes_model = "model" in inspect.signature(module.run).parameters
        return module.run(model or _model(name)) if takes_model else module.run()

    return _reported(run)


def of_readme(name: str) -> dict[str, Any]:
    """Return what the block of the README for a framework left in ``result``, and its events.

    Args:
        name: A framework; the block gets the agent's parts from ``docs/examples/<name>.py``.
    """
    (block,) = (each for each in blocks("README.md") if f'("{name}", ' in each.text)

    def run() -> Any:
        given = {"model": _model(name), "question": "Book a table for four."}
        names = {**vars(_module(name)), **given}
        exec(compile(block.text, str(block), "exec"), names)
        return names["result"]

    return _reported(run)


def _reported(run: Callable[[], Any]) -> dict[str, Any]:
    """Run with what ``toolfault.init`` sends kept here."""
    transport = MemoryTransport()
    init = toolfault.init
    toolfault.init = functools.partial(init, transport=transport, successes="all")
    try:
        returned = run()
        if inspect.isawaitable(returned):
            returned = asyncio.run(_awaited(returned))
        toolfault.flush()
    finally:
        toolfault.close()
        toolfault.init = init
    calls = [event for event in transport.events if event["type"] != "conversation_end"]
    return {"returned": str(returned), "events": calls}


def _module(name: str) -> Any:
    spec = spec_from_file_location(f"example_of_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
