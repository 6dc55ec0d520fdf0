"""What importing the contract brings into the process."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

LAYERS = ["errors", "formatting", "validators", "coerce"]
TRANSPORT = [
    "http.client",
    "urllib.request",
    "urllib3",
    "requests",
    "httpx",
    "httpx2",
    "socket",
    "ssl",
    "asyncio",
    "sqlite3",
    "toolfault.telemetry",
    "toolfault.tools",
    "toolfault.integrations",
]
LIBRARIES = ["pydantic", "pydantic_core", "msgspec", "jsonschema"]


def test_the_contract_imports_no_transport_and_no_library() -> None:
    """[P-09][H-09] The contract brings no transport, no upper layer and no library."""
    imports = "".join(f"import toolfault.{layer}\n" for layer in LAYERS)
    annotated = (
        "from toolfault.coerce import LLMInt, LLMJson, LLMList\nLLMList[int]\n"
        "toolfault.errors.ToolError('t', 'm').render('llm')"
    )
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}\n{imports}contract = set(sys.modules)\n"
        f"{annotated}\nprint(*contract)\nprint(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    contract, in_use = (set(line.split()) for line in done.stdout.splitlines())

    assert contract.isdisjoint(TRANSPORT)
    assert contract.isdisjoint(LIBRARIES)
    assert in_use.isdisjoint({"http.client", "socket", "ssl", "toolfault.telemetry"})
    assert in_use.isdisjoint({"pydantic", "pydantic_core"})


def test_public_names_exist_and_are_all() -> None:
    """[P-09] Every name of `__all__` exists, late ones too, and there are no others."""
    for layer in LAYERS:
        module = importlib.import_module(f"toolfault.{layer}")

        assert [name for name in module.__all__ if not hasattr(module, name)] == []
        assert len(set(module.__all__)) == len(module.__all__)
        with pytest.raises(AttributeError, match="no attribute 'nope'"):
            _ = module.nope
