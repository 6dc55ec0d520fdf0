"""Checking that a tool keeps the contract that agents rely on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolfault.errors import ToolResult
from toolfault.tools import ToolManager, as_tool

__all__ = ["ContractReport", "check_contract"]

_SHAPE = frozenset({"success", "error", "error_code", "error_details", "metadata"})


class ContractReport:
    """What was checked and what was broken.

    Attributes:
        tool: Name of the tool.
        checked: The rules that were checked, one sentence each.
        broken: What broke a rule, one sentence each.
    """

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.checked: list[str] = []
        self.broken: list[str] = []

    @property
    def complies(self) -> bool:
        """Whether no rule was broken."""
        return not self.broken

    def rule(self, text: str, *, holds: bool, detail: str = "") -> None:
        """Note one rule and whether it holds."""
        self.checked.append(text)
        if not holds:
            self.broken.append(f"{text}{f': {detail}' if detail else ''}")

    def table_row(self) -> str:
        """Return the line of a compliance table in Markdown."""
        state = "yes" if self.complies else "no: " + "; ".join(self.broken)
        return f"| `{self.tool}` | {len(self.checked)} | {state} |"

    def __repr__(self) -> str:
        return f"<ContractReport {self.tool!r}: {len(self.broken)} of {len(self.checked)} broken>"


def check_contract(
    tool: Callable[..., Any],
    ok_args: Mapping[str, Any] | str,
    failing_args: Mapping[str, Any] | str | Iterable[Mapping[str, Any] | str],
    *,
    context: Mapping[str, Any] | None = None,
    must_comply: bool = True,
) -> ContractReport:
    """Call a tool with good and with bad arguments and check what it gives back.

    The tool really runs, once per set of arguments; an async one in a loop of its own.

    Args:
        tool: The decorated function, or a bare one.
        ok_args: Arguments that have to succeed.
        failing_args: Arguments that have to fail: one set, or several.
        context: Values for the tool's context parameters.
        must_comply: Whether a broken rule raises.

    Returns:
        What was checked and what was broken.

    Raises:
        AssertionError: A rule is broken and ``must_comply`` is true; the text lists them all.
    """
    manager = ToolManager([tool], context=context)
    name = as_tool(tool).name
    report = ContractReport(name)
    good = manager.call_tool_sync(name, ok_args)
    _check_success(report, good)
    sets = [failing_args] if isinstance(failing_args, (str, Mapping)) else list(failing_args)
    for place, arguments in enumerate(sets):
        _check_failure(report, manager.call_tool_sync(name, arguments), good, place)
    if must_comply and report.broken:
        raise AssertionError(f"tool {name!r} breaks its contract:\n" + "\n".join(report.broken))
    return report


def _check_success(report: ContractReport, result: ToolResult[Any]) -> None:
    shape = result.to_dict()
    report.rule(
        "good arguments succeed",
        holds=result.success,
        detail="" if result.success else result.message,
    )
    report.rule("a success says success true", holds=shape.get("success") is result.success)
    report.rule(
        "success and error agree", holds=(shape.get("success") is True) == (shape["error"] is None)
    )
    report.rule("a success is plain JSON", holds=_is_json(shape))


def _check_failure(
    report: ContractReport, result: ToolResult[Any], good: ToolResult[Any], place: int
) -> None:
    shape = result.to_dict()
    which = f"failing arguments {place}"
    report.rule(f"{which} fail", holds=not result.success)
    error = shape.get("error")
    report.rule(
        f"{which}: the error is a text",
        holds=result.success or (isinstance(error, str) and bool(error)),
        detail=repr(error),
    )
    report.rule(f"{which}: the answer is plain JSON", holds=_is_json(shape))
    wanted, got = set(good.to_dict()) - _SHAPE, set(shape) - _SHAPE
    report.rule(
        f"{which}: a failure has the data keys of a success",
        holds=wanted == got,
        detail=f"error_defaults= or echo= should give {sorted(wanted)}, not {sorted(got)}",
    )


def _is_json(shape: object) -> bool:
    try:
        return bool(json.loads(json.dumps(shape, allow_nan=False)) == shape)
    except (TypeError, ValueError):
        return False
