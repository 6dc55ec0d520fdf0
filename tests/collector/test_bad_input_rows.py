"""No row of the tables of bad inputs and of promises is without a test."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from tests.collector.bad_input_rows import ROWS, Elsewhere, Row
from tests.collector.promise_rows import PROMISES

ROOT = Path(__file__).parents[2]
SERVER_ROWS = {number: row for number, row in ROWS.items() if isinstance(row, Row)}


@cache
def _tests_of(path: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name: node for node in tree.body if isinstance(node, kinds)}


def test_every_row_is_decided() -> None:
    """All seventy rows are there; one that is not the server's says why."""
    assert sorted(ROWS) == list(range(1, 71))
    assert all(row.why for row in ROWS.values() if isinstance(row, Elsewhere))


@pytest.mark.parametrize("number", SERVER_ROWS)
def test_the_tests_of_a_row_exist(number: int) -> None:
    """Every test that a row names is there, and one with a table of cases has a case of the row."""
    for name in SERVER_ROWS[number].tests:
        path, _, function = name.partition("::")
        test = _tests_of(path).get(function)

        assert test is not None, f"row {number}: there is no {name}"
        numbers = _rows_of_cases(path, test)
        assert not numbers or number in numbers, f"row {number}: no case in {name}"


@pytest.mark.parametrize("name", PROMISES)
def test_the_tests_of_a_promise_exist(name: str) -> None:
    """Every test that a promise names is there; one that is not the server's says why."""
    row = PROMISES[name]
    if isinstance(row, Elsewhere):
        assert row.why
        return
    for each in row.tests:
        path, _, function = each.partition("::")
        assert function in _tests_of(path), f"{name}: there is no {each}"


def test_every_promise_of_the_collector_is_decided() -> None:
    """C1 to C20 are all there, and of access what the collector answers for."""
    access = {"A1", "A2", "A3", "A7", "A13", "A14"}
    assert {f"C{number}" for number in range(1, 21)} | access <= PROMISES.keys()


def _rows_of_cases(path: str, test: ast.FunctionDef | ast.AsyncFunctionDef) -> set[int]:
    """Rows of the cases of *test*: first arguments of ``case(...)`` in its decorators."""
    del path
    return {
        call.args[0].value
        for decorator in test.decorator_list
        for call in ast.walk(decorator)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "case"
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, int)
    }
