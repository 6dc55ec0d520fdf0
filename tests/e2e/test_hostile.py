"""Hostile payloads in a real browser: nothing runs, nothing is added, nothing is reported.

In process all of them are shown to stay text (``tests/dashboard/pages/test_hostile.py``); here a
real parser reads those that have every way out and every element once, on the pages that show names
in each of the forms that there are; in the long run all of them, on all pages.

Each text holds some payloads and stands in every field of its events, in a saved view, a picked
fix, a key's label and an account's name. Two more sets stand beside: the same texts without their
angle brackets, so that lists have the same rows, and plain words, which no parser can mistake.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Connection, Engine, insert, select
from tests.dashboard.addresses import LISTS
from tests.dashboard.hostile import hostile_events, three_hundred
from tests.e2e.browsing import Reader, cookies_of, dsn_of, rows_of, send
from tests.factories import failure
from tests.live_server import LiveServer, live_server

from toolfault_collector.admin.keys import create_key
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import chain, change, picked_fix, saved_view, tool_call
from toolfault_dashboard.access import signin

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1_800)]

LONGEST: Final = 120  # characters of one text: less than any name may have
TEXTS: Final = 20  # of one project, so that no list leaves one out
NINTH: Final = 9  # of the payloads: each element and each way out is among them
# The lists that show names and messages as cells, bars, facets, cards and fields of forms.
SHOWING: Final = ("/", "/failures", "/codes", "/tools", "/fix-next", "/messages", "/settings")
SERVER_WIDE: Final = ("/settings",)  # shows the people of all three sets

# What a page is made of: each element with the names of its attributes, and how many there are.
NODES: Final = """() => {
  const found = {};
  for (const each of document.querySelectorAll("*")) {
    if (each.localName === "wbr") continue;
    const place = each.closest("table.heat") ? "map " : "";
    const kind = place + each.localName + " " + each.getAttributeNames().sort().join(" ");
    found[kind] = (found[kind] || 0) + 1;
  }
  return found;
}"""
WATCH: Final = """window.reports = [];
addEventListener("securitypolicyviolation", each => window.reports.push(each.violatedDirective));"""


def _texts(every: int) -> list[str]:
    """Every so many of the payloads, as many to a text as go."""
    texts: list[str] = [""]
    for payload in three_hundred()[::every]:
        if len(texts[-1]) + len(payload) >= LONGEST and texts[-1]:
            texts.append("")
        texts[-1] = f"{texts[-1]} {payload}".strip()
    return texts


def _twin(text: str) -> str:
    return text.translate(str.maketrans("<>&", "()+"))


@dataclass(frozen=True)
class Planted:
    """One project of one set, and the addresses of its details."""

    name: str
    details: dict[str, list[str]]


@dataclass(frozen=True)
class Site:
    """A server with the three sets, and a way in."""

    server: LiveServer
    cookies: list[dict[str, Any]]
    sets: dict[str, list[Planted]]
    texts: list[str]
    is_whole: bool  # has all payloads


def _plant(engine: Engine, name: str, texts: list[str]) -> Planted:
    now = now_us()
    with write_transaction(engine) as conn:
        project = ensure_project(conn, name)
        for text in texts:
            receipt = store_events(
                conn, project, hostile_events(text), received_at=now, time_policy="import"
            )
            assert receipt.accepted == 4, receipt.rejected
            store_events(conn, project, [{"type": "tool_call", "tool": text}], received_at=now)
            create_key(conn, project, "read", label=text)
            conn.execute(
                insert(saved_view).values(
                    project_id=project, user_id=1, name=text, page="/failures", query=text,
                    shared=True, created_at=now,
                )
            )  # fmt: skip
            conn.execute(
                insert(picked_fix).values(
                    project_id=project, tool=text, field=text, remedy="strip", event_id="x",
                    added_by=text, added_at=now,
                )
            )  # fmt: skip
        return Planted(name, _details(conn, project, texts))


def _details(conn: Connection, project: int, texts: list[str]) -> dict[str, list[str]]:
    def ids(column: Any, *conditions: Any) -> list[str]:
        own = select(column).where(column.table.c.project_id == project, *conditions)
        return [str(each) for each in conn.execute(own.order_by(column.table.c.id)).scalars()]

    failed = ids(tool_call.c.event_id, tool_call.c.success.is_(False))
    return {
        "failure": [f"/failures/{each}" for each in failed[::2]],
        "chain": [f"/chains/{each}" for each in ids(chain.c.chain_id)],
        "tool": ["/tool?" + urlencode({"name": each}) for each in texts],
        "change": [f"/changes/{each}" for each in ids(change.c.event_id)],
    }


@pytest.fixture(
    scope="module", params=[NINTH, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"]
)
def site(
    request: pytest.FixtureRequest,
    sqlite_template: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    """A server on a database with all three sets; without the twins if it is not whole."""
    folder = tmp_path_factory.mktemp("hostile")
    url = f"sqlite:///{folder / 'toolfault.db'}"
    shutil.copyfile(sqlite_template, folder / "toolfault.db")
    engine = open_engine(url)
    token = signin.create_link(engine, now=now_us(), name="admin", role="admin")
    is_whole = request.param == 1
    texts = _texts(request.param)
    words = [f"plain words {number}" for number in range(TEXTS)]
    sets: dict[str, list[Planted]] = {
        "words": [_plant(engine, "words", words)],
        "twin": [],
        "hostile": [],
    }
    for start in range(0, len(texts), TEXTS):
        some = texts[start : start + TEXTS]
        if is_whole:
            sets["twin"].append(_plant(engine, f"twin {start}", [_twin(each) for each in some]))
        sets["hostile"].append(_plant(engine, f"hostile {start}", some))
    for text in texts:
        signin.create_link(engine, now=now_us(), name=text, role="viewer")
    engine.dispose()
    with live_server(folder, database_url=url) as server:
        cookies = cookies_of(server.address, token)
        yield Site(server, cookies, sets, texts, is_whole=is_whole)


@pytest.fixture
def reader(site: Site, chromium: Browser) -> Iterator[Reader]:
    """A window that asks nobody but the server."""
    context = chromium.new_context()
    context.add_cookies(site.cookies)  # type: ignore[arg-type]
    reader = Reader(context, context.new_page(), site.server.address)
    reader.watch()
    reader.page.add_init_script(WATCH)
    reader.page.on(
        "request",
        lambda each: (
            None
            if each.url.startswith(site.server.address)
            else reader.complaints.append(f"asked for {each.url}")
        ),
    )
    yield reader
    context.close()


def _open(reader: Reader, path: str, project: str) -> Counter[str]:
    joint = "&" if "?" in path else "?"
    answer = reader.page.goto(
        f"{reader.address}{path}{joint}{urlencode({'project': project, 'window': 'all'})}"
    )
    assert answer is not None
    assert answer.status == 200, path
    return _looked(reader.page, path)


def _looked(page: Page, path: str) -> Counter[str]:
    assert page.evaluate("window.reports") == [], path
    found: Counter[str] = Counter(page.evaluate(NODES))
    handlers = [kind for kind in found if any(name[:2] == "on" for name in kind.split()[1:])]
    assert handlers == [], path
    return found


def _outside_maps(found: Counter[str]) -> Counter[str]:
    """Leave maps out: of which equals one has rows and columns, the alphabet decides."""
    return Counter({kind: number for kind, number in found.items() if kind[:4] != "map "})


def test_no_list_gains_a_node(site: Site, reader: Reader):
    """No list has a kind of node that words lack; in the long run, none more than its twin."""
    lists = LISTS if site.is_whole else SHOWING
    known = {path: set(_open(reader, path, "words")) for path in lists}
    for number, hostile in enumerate(site.sets["hostile"]):
        for path in lists:
            found = _open(reader, path, hostile.name)
            assert set(found) <= known[path] | _optional(path), (hostile.name, path)
            # One for one it is counted in process, too; a page of kinds alone is half the time.
            if site.is_whole and path not in SERVER_WIDE:
                of_twin = _open(reader, path, site.sets["twin"][number].name)
                assert _outside_maps(found) == _outside_maps(of_twin), (hostile.name, path)
    assert reader.complaints == []


def _optional(path: str) -> set[str]:
    """Kinds that depend on how many values there are, not on what they are."""
    return {"p class", "span class"} if path == "/failures" else set()


def test_no_detail_gains_a_node(site: Site, reader: Reader):
    """Whatever stands in a failure, chain, tool or change, its page is made of the same kinds."""
    (words,) = site.sets["words"]
    for kind, paths in words.details.items():
        known: set[str] = set()
        for path in paths[:2]:
            known |= set(_open(reader, path, words.name))
        most = None if site.is_whole else 1  # the lists show every text
        for planted in site.sets["hostile"]:
            for path in planted.details[kind][:most]:
                assert set(_open(reader, path, planted.name)) <= known, path
    assert reader.complaints == []


def test_what_arrives_live_and_what_is_proposed_stays_text(site: Site, reader: Reader):
    """Rows and proposals that scripts build are made of the kinds that words make."""
    page = reader.page
    made: dict[str, set[str]] = {}
    hostile = site.texts
    for name, texts in (
        ("words", [f"plain words {number}" for number in range(len(hostile))]),
        ("hostile", hostile),
    ):
        # Of this test alone: what arrives would make the three sets differ from each other.
        project = urlencode({"project": f"live {name}"})
        dsn = dsn_of(site.server, f"live {name}")
        page.goto(f"{reader.address}/live?{project}")
        expect(page.get_by_role("status")).to_have_text("live")
        for text in texts:
            event = failure(text, at=now_us())
            event["error"] |= {"field": text, "renderings": {"llm": text}}
            send(dsn, event)
        rows = rows_of(page, "Newest failures, newest first")
        expect(rows.nth(min(len(texts), 20) - 1)).to_be_visible()
        made[name] = set(_looked(page, "/live"))
        page.goto(f"{reader.address}/failures?{project}")
        page.get_by_label("Query", exact=True).press_sequentially("tool:")
        expect(page.get_by_role("option").first).to_be_visible()
        made[name] |= set(_looked(page, "proposals"))
    assert made["hostile"] - made["words"] <= _optional("/failures")
    assert reader.complaints == []
