"""Comparing two queries: the page, the command and the API answer by one rule."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import Engine
from tests.dashboard.pages.conftest import Browser

from toolfault_collector.admin.keys import create_key
from toolfault_collector.admin.projects import find_project
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_dashboard.cli.app import run

GATE = ["--fail-if", "failure_rate worse"]


@pytest.mark.parametrize(
    ("common", "before", "after"),
    [
        pytest.param("", "variant:b=2", "variant:b=3", marks=pytest.mark.long),  # at random
        ("", "tool:search variant:b=2", "variant:b=3"),  # also differ in what is compared
        pytest.param(
            "", "variant:b=2 tool:search", "variant:b=3 tool:search", marks=pytest.mark.long
        ),
        ("tool:search", "tool:http_request", "agent:*"),  # a cohort names a key of the common query
    ],
)
def test_page_command_and_api_compare_by_one_rule(
    own_browser: Browser,
    own_engine: Engine,
    capfd: pytest.CaptureFixture[str],
    common: str,
    before: str,
    after: str,
) -> None:
    """The same two queries give the same figures, however they are asked for."""
    with write_transaction(own_engine) as conn:
        key = create_key(conn, find_project(conn, "generated") or 0, "read")
    cohorts = {"q": common, "before": before, "after": after}
    answer = own_browser.client.get(
        "/api/v1/compare", params=cohorts, headers={"Authorization": f"Bearer {key}"}
    )
    api = answer.json()["effect"]["metrics"]
    url = own_engine.url.render_as_string(hide_password=False)
    capfd.readouterr()  # what the server has written so far
    told = ["compare", *common.split(), "--before", before, "--after", after, "--format", "json"]
    assert run([*told, "--project", "generated", "--database-url", url]) == 0
    command = json.loads(capfd.readouterr().out)["effect"]["metrics"]
    answer = own_browser.get(
        "/comparison.ndjson", params=cohorts | {"project": "generated", "window": "all"}
    )
    page = [json.loads(line) for line in answer.text.splitlines()]

    wanted = [(each["difference"], each["method"], each["n_before"]) for each in api]
    for found in (command, page):
        assert [(each["difference"], each["method"], each["n_before"]) for each in found] == wanted


def test_calls_on_both_sides_are_told_everywhere(
    own_browser: Browser, own_engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    """API, page, table, report and a gate name the same number of calls that both queries match."""
    with write_transaction(own_engine) as conn:
        key = create_key(conn, find_project(conn, "generated") or 0, "read")
    cohorts = {"before": "tool:search", "after": ""}
    answer = own_browser.client.get(
        "/api/v1/compare", params=cohorts, headers={"Authorization": f"Bearer {key}"}
    )
    overlap = answer.json()["overlap"]
    assert overlap == answer.json()["effect"]["before"]["calls"] > 1
    told = f"{overlap:,} calls are in both cohorts."
    assert (
        told
        in own_browser.get(
            "/compare", params=cohorts | {"project": "generated", "window": "all"}
        ).text
    )
    url = own_engine.url.render_as_string(hide_password=False)
    command = ["compare", "--before", "tool:search", "--after", "", "--project", "generated"]
    capfd.readouterr()  # what the server has written so far
    for format_of, gate in (("table", []), ("markdown", []), ("csv", []), ("table", GATE)):
        run([*command, *gate, "--format", format_of, "--database-url", url])
        found = capfd.readouterr()
        assert told in " ".join((found.err if gate or format_of == "csv" else found.out).split())
