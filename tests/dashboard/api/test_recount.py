"""Every number of the API, the command line and the pages' tables equals a naive recount.

On the demo's data, sent by the SDK over HTTP, on a generated history of senders that sample, and on
imported real transcripts.
"""

from __future__ import annotations

import asyncio
import csv
import http.cookiejar
import io
import json
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from fastapi.openapi.utils import get_openapi
from sqlalchemy import Engine
from tests.dashboard.addresses import LISTS
from tests.dashboard.api.asked import Asked, steady
from tests.dashboard.api.command_recounts import compared_changes, compared_variants, weekly
from tests.dashboard.api.page_recounts import PAGES, WITHOUT_FIGURES
from tests.dashboard.api.recounts import RECOUNTS
from tests.dashboard.api.shown import Shown
from tests.dashboard.generated import sampled
from tests.live_server import LiveServer, live_server

from toolfault_collector.gatekeeper import Gatekeeper
from toolfault_dashboard.api import create_api
from toolfault_dashboard.demo.history import live_through

pytestmark = pytest.mark.slow

SOURCES = ("demo", "sampled", "tau_bench_airline", "agentrx_tau_retail", "claude_code_sessions")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server for one project of each source."""
    with live_server(tmp_path_factory.mktemp("recount")) as running:
        yield running


@pytest.fixture(scope="module")
def filled(server: LiveServer):
    """Fills the project of a source when it is first asked for."""

    @cache
    def fill(source: str, folder: Path | None) -> Asked:
        if folder is None:
            asyncio.run(
                live_through(dsn=server.dsn(source), seed=3, until=time.time() - 7_200, days=7)
            )
            refuse(server.dsn(source), 3)
        else:
            server.run("import", str(folder), "--project", source)
        said = server.run("keys", "create", "--project", source, "--kind", "read")
        path = Path(server.database_url.removeprefix("sqlite:///"))
        return Asked(server.address, said.strip().splitlines()[-1].strip(), source, path)

    return fill


def refuse(dsn: str, number: int) -> None:
    """Send *number* events that cannot be stored."""
    scheme, _, rest = dsn.partition("://")
    key, _, host = rest.partition("@")
    events = [{"type": "tool_call", "tool": number} for number in range(number)]
    body = json.dumps({"schema_version": 1, "events": events}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{scheme}://{host}/v1/events", body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert len(json.load(answer)["rejected"]) == number


@pytest.fixture(scope="module")
def sampled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What senders wrote that send each half and each fourth conversation only."""
    folder = tmp_path_factory.mktemp("sampled")
    lines = (json.dumps(event) for event in sampled(19, rates=(1.0, 0.5, 0.25)))
    (folder / "events.ndjson").write_text("\n".join(lines))
    return folder


@pytest.fixture(params=SOURCES)
def asked(request: pytest.FixtureRequest, filled) -> Asked:
    """The project of a source."""
    if request.param == "demo":
        return filled("demo", None)
    if request.param == "sampled":
        return filled("sampled", request.getfixturevalue("sampled_folder"))
    folder = request.getfixturevalue("shared_data") / request.param
    if not folder.is_dir():
        pytest.skip(f"no transcripts at {folder}")
    return filled(request.param, folder)


def test_every_operation_has_a_recount(empty_sqlite: Engine) -> None:
    """The operations that answer readers are those that are recounted; a new one must be, too."""
    api = create_api(empty_sqlite, Gatekeeper(empty_sqlite), lambda: 0)
    paths = get_openapi(title="", version="1", routes=api.routes)["paths"]
    assert {way["operationId"] for each in paths.values() for way in each.values()} == set(RECOUNTS)


@pytest.mark.parametrize("operation", RECOUNTS)
def test_the_answer_is_what_the_rows_say(operation: str, asked: Asked) -> None:
    """Every number of the answer is counted again from the exported rows."""
    RECOUNTS[operation](asked)


def test_the_command_line_says_the_same(server: LiveServer, asked: Asked) -> None:
    """Summary, lists, tables and comparisons of the command are those of the API."""
    RECOUNTS["get_summary"](asked)
    project = ("--project", asked.project)
    assert server.summary(*project) == asked.get("/summary")
    for command in ("errors", "chains"):
        rows = json.loads(server.run(command, *project, "--format", "json"))
        frame = asked.sent_failures if command == "errors" else asked.sent_chains
        assert [row[frame.columns[0]] for row in rows] == frame[frame.columns[0]].tolist()
    for table in ("codes", "fields", "fixes", "round_trips_by_tool", "costs_by_model"):
        said = json.loads(server.run("table", table, *project, "--format", "json"))
        assert [steady(row) for row in said] == [
            steady(row) for row in asked.get(f"/exports/{table}.json")
        ], table
    sides = ("tool:*a*", "-tool:*a*")
    said = json.loads(
        server.run("compare", "--before", sides[0], "--after", sides[1], *project,
                   "--format", "json")
    )  # fmt: skip
    answer = asked.get("/compare", before=sides[0], after=sides[1])
    assert said["effect"]["metrics"] == answer["effect"]["metrics"]


@pytest.mark.parametrize("recount", [weekly, compared_changes, compared_variants])
def test_reports_and_comparisons_of_the_command_line(
    recount: Callable[[LiveServer, Asked], None], server: LiveServer, asked: Asked
) -> None:
    """The week, ``compare --change`` and ``compare --variants`` say what the rows say."""
    recount(server, asked)


@pytest.fixture(scope="module")
def signed_in(server: LiveServer) -> urllib.request.OpenerDirector:
    """A browser without a screen, signed in as an administrator."""
    link = server.run("sign-in-link", "--url", server.address).split()[-1]
    opener = urllib.request.build_opener(
        urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    )
    form = urllib.parse.urlencode({"token": link.partition("token=")[2]}).encode()
    request = urllib.request.Request(
        f"{server.address}/sign-in", form, headers={"Origin": server.address}
    )
    opener.open(request, timeout=30).read()
    return opener


def test_the_tables_of_the_pages_say_the_same(
    server: LiveServer, signed_in: urllib.request.OpenerDirector, asked: Asked
) -> None:
    """What a page exports beside its table is the table of that name; headlines are the summary."""

    def rows(path: str) -> list[dict[str, str]]:
        address = f"{server.address}{path}?project={asked.project}&q=&window=all"
        with signed_in.open(address, timeout=60) as answer:
            text = answer.read().decode()
        return list(csv.DictReader(io.StringIO(text, newline="")))

    summary = asked.get("/summary")
    figures = {row["figure"]: row["value"] for row in rows("/overview.csv")}
    for name in ("calls", "failures", "chains", "recovered", "round_trips", "conversations"):
        assert float(figures[name]) == summary[name], name
    for page, table in (("codes", "codes"), ("fields", "fields"), ("round-trips",
                        "round_trips_by_tool"), ("fix-next", "fixes"), ("failures", "failures"),
                        ("chains", "chains")):  # fmt: skip
        found = rows(f"/{page}.csv")
        expected = asked.get(f"/exports/{table}.json")
        assert len(found) == len(expected), page
        counted = "round_trips" if "round_trips" in (expected or [{}])[0] else "failures"
        if expected and counted in expected[0]:
            assert [float(row[counted]) for row in found] == [row[counted] for row in expected]
    tools = {row["tool"]: (int(row["calls"]), int(row["failures"])) for row in rows("/tools.csv")}
    assert tools == {
        name: (each["calls"], each["failures"]) for name, each in summary["tools"].items()
    }
    with signed_in.open(
        f"{server.address}/?project={asked.project}&q=&window=all", timeout=60
    ) as answer:
        digits = re.sub(r"(?<=\d)\s(?=\d)", "", answer.read().decode())  # thin spaces
    for name in ("calls", "failures", "round_trips", "conversations"):
        assert re.search(rf"\b{summary[name]}\b", digits), name


def test_every_page_has_a_recount() -> None:
    """A page of the navigation is recounted or counts nothing; a new one has to be either."""
    assert set(LISTS) <= {*PAGES, *WITHOUT_FIGURES}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_the_rows_say(
    page: str, asked: Asked, signed_in: urllib.request.OpenerDirector
) -> None:
    """Every figure in the HTML of a page is counted again from the exported rows."""
    PAGES[page](Shown(asked, signed_in))
