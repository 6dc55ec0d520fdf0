"""``check_contract``: does a tool keep its contract?"""

from __future__ import annotations

from typing import Any

import pytest

from toolfault import tool
from toolfault.testing import check_contract


@tool(echo="keyword", error_defaults={"results": []})
async def search(keyword: str) -> dict[str, Any]:
    """Keep the contract."""
    if not keyword:
        raise RuntimeError("upstream exploded")
    return {"results": [keyword]}


def test_a_tool_that_complies() -> None:
    """[K-11][K-01][K-03] Good and bad arguments give answers with the same data keys."""
    report = check_contract(search, {"keyword": "a"}, [{"keyword": ""}, {}, {"keyword": 3}, "{"])

    assert report.complies
    assert len(report.checked) >= 16
    assert report.table_row() == f"| `search` | {len(report.checked)} | yes |"


async def test_inside_a_running_loop() -> None:
    """[K-11] The helper works in an async test as well."""
    assert check_contract(search, '{"keyword": "a"}', {"keyword": ""}).complies


def test_what_breaks_the_contract() -> None:
    """[K-11][K-03][K-06] Every broken rule is named, with what to do."""

    @tool
    def sloppy(keyword: str) -> dict[str, Any]:
        if not keyword:
            raise RuntimeError("no")
        return {"results": [keyword]}

    with pytest.raises(AssertionError, match=r"error_defaults= or echo= should give \['results'\]"):
        check_contract(sloppy, {"keyword": "a"}, {"keyword": ""})

    report = check_contract(sloppy, {"keyword": ""}, {"keyword": "a"}, must_comply=False)
    assert not report.complies
    assert "good arguments succeed" in report.broken[0]
    assert "no: good arguments" in report.table_row()
    assert repr(report).startswith("<ContractReport 'sloppy': ")


def test_context_is_given() -> None:
    """[K-11] A tool with context parameters gets them from the test."""

    @tool(context="db", error_defaults={"value": None})
    def get(db: dict[str, int], key: str) -> dict[str, int]:
        return {"value": db[key]}

    assert check_contract(get, {"key": "a"}, {"key": "b"}, context={"db": {"a": 1}}).complies
