"""What importing the contract brings into the process."""

from __future__ import annotations

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
    "logging",
    "sqlite3",
    "toolfault.telemetry",
    "toolfault.tools",
    "toolfault.integrations",
]
SLOW = [
    "uuid",
    "inspect",
    "dataclasses",
    "difflib",
    "pydantic",
    "pydantic_core",
    "msgspec",
    "jsonschema",
    "datetime",
    "typing",
    "decimal",
    "unicodedata",
    "ast",
]


def modules_after(code: str) -> set[str]:
    """The modules of a fresh process after *code*."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("layer", LAYERS)
def test_the_contract_imports_no_transport(layer):
    """[P-09] No transport, client, collector or upper layer comes with the contract."""
    loaded = modules_after(f"import toolfault.{layer}")

    assert loaded.isdisjoint(TRANSPORT)


@pytest.mark.parametrize("layer", LAYERS)
def test_the_contract_imports_nothing_slow(layer):
    """[P-09] What costs time to import is loaded when it is needed."""
    assert modules_after(f"import toolfault.{layer}").isdisjoint(SLOW)


def test_redaction_is_loaded_with_the_first_failure():
    """[P-09] Patterns are compiled once something failed, not at start."""
    assert "toolfault.errors._redact" not in modules_after("import toolfault.errors")
    after = modules_after("import toolfault.errors as e; e.ToolError('t', 'm').render()")
    assert "toolfault.errors._redact" in after


def test_annotated_types_do_not_import_pydantic():
    """[H-09] LLMInt and friends are built without pydantic."""
    loaded = modules_after("from toolfault.coerce import LLMInt, LLMJson, LLMList\nLLMList[int]")

    assert "pydantic" not in loaded
    assert "pydantic_core" not in loaded


@pytest.mark.parametrize("layer", LAYERS)
def test_public_names_exist_and_are_all(layer):
    """[P-09] Every name of `__all__` exists, late ones too, and there are no others."""
    module = __import__(f"toolfault.{layer}", fromlist=["*"])

    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = module.nope
