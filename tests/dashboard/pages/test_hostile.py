"""Stored text stays text: whatever a sender stores, a page shows it and never obeys it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import Engine
from tests.dashboard.addresses import LISTS
from tests.dashboard.generated import NOW
from tests.dashboard.hostile import HARMLESS, PAYLOADS, hostile_events, three_hundred
from tests.dashboard.pages.conftest import open_browser

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse

pytestmark = pytest.mark.slow


def _empty(template: Path, folder: Path) -> Engine:
    shutil.copyfile(template, folder / "toolfault.db")
    return open_engine(f"sqlite:///{folder / 'toolfault.db'}")


def _engine(template: Path, folder: Path, text: str) -> Engine:
    engine = _empty(template, folder)
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "hostile")
        receipt = store_events(
            conn, project, hostile_events(text), received_at=NOW, time_policy="import"
        )
        refused = {"type": "tool_call", "tool": text, "surprise": text}
        store_events(conn, project, [refused], received_at=NOW)
    assert receipt.accepted == 4, receipt.rejected
    return engine


def paths_of(engine: Engine) -> list[str]:
    """A page of each template, of the first project."""
    with read_connection(engine) as conn:
        scope = Scope(1, parse(""), NOW)
        failure = queries.failure_list(conn, scope).rows[-1]
        chain = queries.chain_list(conn, scope).rows[0]
        change = queries.changes(conn, scope)[0]
    return [
        "/",
        "/failures",
        f"/failures/{failure.event_id}",
        "/round-trips",
        f"/chains/{chain.chain_id}",
        "/codes",
        "/tools",
        "/tool?" + urlencode({"name": failure.tool}),
        "/messages",
        "/fix-next",
        "/rejected",
        "/changes",
        f"/changes/{change.event_id}",
        "/failures?group=kind",
        f"/chains/{chain.chain_id}?told=diff",
        "/experiments",
        "/compare?" + urlencode({"before": "since:7d", "after": "until:7d"}),
    ]


def _nodes(soup: BeautifulSoup) -> Counter[str]:
    """Every element with the names of its attributes; places to break a line aside.

    What depends on the data is taken out of *soup*.
    """
    # Which facets are of use depends on the data; what they are made of does not.
    for facet in soup.find_all(True, {"aria-label": "Facets"}):
        assert {tag.name for tag in facet.find_all(True)} <= {
            "div",
            "h2",
            "ul",
            "li",
            "a",
            "span",
            "p",
            "wbr",
        }
        facet.extract()
    # A text with "=" or "," is a different list of trials; what its rows are made of is the same.
    for table in soup.find_all(True, {"aria-label": "Experiments"}):
        for rows in table.find_all("tbody"):
            assert {tag.name for tag in rows.find_all(True)} <= {
                "tr",
                "th",
                "td",
                "a",
                "span",
                "wbr",
            }
            rows.extract()
    return Counter(
        f"{tag.name} {sorted(tag.attrs)}" for tag in soup.find_all(True) if tag.name != "wbr"
    )


def _look(template: Path, folder: Path, text: str) -> Iterator[tuple[str, str]]:
    engine = _engine(template, folder, text)
    for browser in open_browser(engine):
        for index, path in enumerate(paths_of(engine)):
            answer = browser.client.get(f"{path}{'&' if '?' in path else '?'}window=all")
            assert answer.status_code == 200, f"{path}: {answer.text[:500]}"
            yield str(index), answer.text
    engine.dispose()


@pytest.fixture(scope="module")
def baseline(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Counter[str]]:
    """The elements of every page when every text is harmless."""
    folder = tmp_path_factory.mktemp("harmless")
    return {
        page: _nodes(BeautifulSoup(html, "html.parser"))
        for page, html in _look(sqlite_template, folder, HARMLESS)
    }


# One of each kind: an element, a way out of an attribute, of a title and of a comment, a template,
# and what is escaped already.
# All of them at once are read below.
KINDS = (0, 1, 3, 7, 10, 12)
FIRST = (3,)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(PAYLOADS[each], marks=() if each in FIRST else pytest.mark.long, id=str(each))
        for each in KINDS
    ],
)
def test_no_stored_text_becomes_markup(
    sqlite_template: Path, tmp_path: Path, baseline: dict[str, Counter[str]], payload: str
):
    """With a payload in every field each page has exactly the elements it has without one."""
    seen = 0
    for page, html in _look(sqlite_template, tmp_path, payload):
        soup = BeautifulSoup(html, "html.parser")
        seen += payload in soup.get_text()
        assert _nodes(soup) == baseline[page], f"page {page}"
    assert seen > 3


HIDDEN = "\x1b\u202e\u2066\u200b\ufeff\u2028"


def test_hidden_characters_are_shown(sqlite_template: Path, tmp_path: Path):
    """Bidi controls and zero-width characters appear by their number and never as themselves."""
    shown = Counter[str]()
    for _, html in _look(sqlite_template, tmp_path, f"a{HIDDEN}b"):
        assert not set(HIDDEN) & set(html)
        shown.update(each for each in HIDDEN if f"⟨U+{ord(each):04X}⟩" in html)
    assert min(shown[each] for each in HIDDEN) >= 9


def _store_many(engine: Engine, payloads: list[str]) -> None:
    for start in range(0, len(payloads), 50):
        events = [
            {**event, "session_id": f"c-{start + index}"}
            for index, text in enumerate(payloads[start : start + 50])
            for event in hostile_events(text)[:1]
        ]
        with write_transaction(engine) as conn:
            project = ensure_project(conn, "hostile")
            receipt = store_events(conn, project, events, received_at=NOW, time_policy="import")
        assert receipt.accepted == len(events), receipt.rejected


class _Tags(HTMLParser):
    """The elements of a page, each with its attributes; which is inside which nobody asks."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@lru_cache(maxsize=1)  # of one page both its kinds and its addresses are asked
def _tags(html: str) -> list[tuple[str, dict[str, str | None]]]:
    return _Tags(html).found


def _kinds(html: str) -> set[str]:
    """Each kind of element with the names of its attributes."""
    return {f"{name} {sorted(attributes)}" for name, attributes in _tags(html)}


def _addresses(html: str) -> set[str]:
    names = ("href", "src", "action", "formaction", "data", "xlink:href", "poster")
    return {
        str(attributes[name])
        for _, attributes in _tags(html)
        for name in names
        if name in attributes
    }


EXPORTS = (
    "/failures.csv", "/chains.csv", "/codes.csv", "/fields.csv", "/tools.csv", "/messages.csv",
    "/fix-next.csv", "/phantom-arguments.csv", "/repeated-executions.csv", "/api/v1/failures",
    "/api/v1/exports/failures.json",
    "/api/v1/exports/failures.ndjson", "/api/v1/exports/issues.csv", "/api/v1/facets",
)  # fmt: skip


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.long)])
def test_three_hundred_payloads(every: int, sqlite_template: Path, tmp_path: Path):
    """All at once, in every field: pages hold no element, attribute or address that is not ours."""
    payloads = three_hundred()[::every]
    assert len(payloads) == -(-300 // every)
    plain, hostile = tmp_path / "plain", tmp_path / "hostile"
    plain.mkdir()
    hostile.mkdir()
    allowed: dict[str, set[str]] = {}
    for folder, texts in (
        (plain, [f"{HARMLESS} {n}" for n, _ in enumerate(payloads)]),
        (hostile, payloads),
    ):
        engine = _engine(sqlite_template, folder, HARMLESS)
        _store_many(engine, texts)
        with read_connection(engine) as conn:
            scope = Scope(1, parse(""), NOW)
            # Harmless texts all make the same page; lists show every payload, an eighth its page.
            shown = queries.failure_list(conn, scope, limit=80 if folder is plain else 400).rows[
                ::8
            ]
        paths = {path: path for path in LISTS}
        paths |= {f"/failures/{row.event_id}": "detail" for row in shown}
        for browser in open_browser(engine):
            for path, kind in paths.items():
                answer = browser.client.get(path, params={"window": "all"})
                assert answer.status_code == 200, path
                assert "script-src 'self'" in answer.headers["content-security-policy"]
                if folder is plain:
                    allowed.setdefault(kind, set()).update(_kinds(answer.text))
                    continue
                assert _kinds(answer.text) <= allowed[kind] | {"wbr []"}, path
                for address in _addresses(answer.text):
                    assert address.startswith(("/", "#", "?")), f"{path}: {address}"
                    assert not address.startswith("//"), f"{path}: {address}"
            for path in EXPORTS if folder is hostile else ():
                answer = browser.client.get(
                    path, params={"window": "all"} if "api" not in path else {}
                )
                assert answer.status_code == 200, path
                assert "html" not in answer.headers["content-type"], path
                assert answer.headers["x-content-type-options"] == "nosniff"
        engine.dispose()


NAMES = (
    "a\x1b[31mb", "tab\there", "line\nbreak", "cr\rlf\n", "bell\x07", "low\x01\x02", "\u2028sep",
    "\u202ertl", '"quoted"', "back\\slash", "back\\", "star*s", "comma,comma", "co:lon", "-minus",
    "!not", "50%_off", " spaces around ", "a&b=c#d?e+f", "..", "/", "ü" * 200, "\ufeffmark", "\x7f",
)  # fmt: skip


def test_every_link_to_an_odd_name_works(sqlite_template: Path, tmp_path: Path):
    """A tool or field may be called anything: what links to it finds it."""
    engine = _empty(sqlite_template, tmp_path)
    _store_many(engine, list(NAMES))
    for browser in open_browser(engine):
        seen: set[str] = set()
        for page in ("/failures", "/codes", "/tools", "/round-trips", "/messages", "/fix-next"):
            html = browser.client.get(page, params={"window": "all"}).text
            seen |= {each for each in _addresses(html) if each.startswith("/") and "q=" in each}
        assert len(seen) > 100
        for address in sorted(seen)[::12]:
            assert browser.client.get(address).status_code == 200, address
        for name in NAMES:
            for query in (parse("").toggled("tool", name), parse("").toggled("field", name)):
                answer = browser.client.get("/api/v1/failures", params={"q": str(query)})
                assert answer.status_code == 200, (name, answer.text)
                assert answer.json()["total"] == 1, (name, str(query))
    engine.dispose()


def test_long_text_is_cut_and_reachable(sqlite_template: Path, tmp_path: Path):
    """The longest texts that are stored make no endless page: lists cut, the failure shows all."""
    line, lines = "x" * 16_384, "a line of a traceback\n" * 2_900
    event = hostile_events(HARMLESS)[0]
    event["error"] |= {"received": line, "snippet": line, "renderings": {"llm": line[:8_192]}}
    event["error"]["exception"]["traceback"] = lines
    engine = _empty(sqlite_template, tmp_path)
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "hostile")
        store_events(conn, project, [event], received_at=NOW, time_policy="import")
    for browser in open_browser(engine):
        for path in LISTS:
            assert len(browser.client.get(path, params={"window": "all"}).text) < 200_000, path
        detail = browser.client.get(f"/failures/{event['event_id']}").text
        assert line in detail.replace("<wbr>", "")
        assert detail.count("a line of a traceback") >= 2_900
        assert len(detail) < 1_000_000
    engine.dispose()


def test_what_is_typed_into_the_box_stays_text(sqlite_template: Path, tmp_path: Path):
    """A query with markup comes back in the box and in errors as text."""
    engine = _engine(sqlite_template, tmp_path, HARMLESS)
    for browser in open_browser(engine):
        for path in ("/failures", "/", "/tool"):
            scripts = BeautifulSoup(browser.client.get(path).text, "html.parser").find_all("script")
            for payload in PAYLOADS[::4] if path == "/failures" else PAYLOADS[:1]:
                answer = browser.client.get(path, params={"q": payload, "window": payload})
                soup = BeautifulSoup(answer.text, "html.parser")
                assert soup.find_all("script") == scripts
                assert not soup.find_all(["img", "iframe", "base", "style"])
    engine.dispose()
