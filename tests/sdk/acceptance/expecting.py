"""Comparing a result with what ``expected.json`` says about a case, text by text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.acceptance.words import in_todays_words

from toolfault import ToolResult

_EXPECTED = Path(__file__).with_name("expected.json")


def expected_case(case: str) -> dict[str, Any]:
    """Everything ``expected.json`` says about ``case``, in the installed pydantic's words."""
    told: dict[str, Any] = in_todays_words(json.loads(_EXPECTED.read_text("utf-8"))[case])
    return told


class Expect:
    """Checks one result against one case of the contract."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.caplog = caplog

    def __call__(self, case: str, result: ToolResult[Any]) -> None:
        """Compare every surface the case names."""
        told = expected_case(case)
        surfaces = {
            "llm": lambda: result.message,
            "user": lambda: self.rendered(result, "user"),
            "system": lambda: self.rendered(result, "system"),
            "payload": lambda: self.payload(result),
            "dict": result.to_dict,
        }
        for name, read in surfaces.items():
            if name in told:
                assert read() == told[name], name
        if "log" in told:
            self.log(told["log"], stack=told["stack"])

    def rendered(self, result: ToolResult[Any], audience: str) -> str:
        """The failure in the words of ``audience``."""
        assert result.error is not None
        return result.error.render(audience)

    def payload(self, result: ToolResult[Any]) -> dict[str, Any]:
        """The payload, after a way through JSON."""
        assert result.error is not None
        made: dict[str, Any] = json.loads(
            json.dumps(result.error.to_llm_payload(), allow_nan=False)
        )
        return made

    def log(self, line: str, *, stack: bool) -> None:
        """Exactly one local line at warning or above, with the given text."""
        lines = [
            (f"{record.levelname} {record.getMessage()}", record.exc_info is not None)
            for record in self.caplog.records
            if record.name == "toolfault" and record.levelname in ("WARNING", "ERROR")
        ]
        assert (line, stack) in lines
