"""Stored text stays text: whatever a sender stores, a page shows it and never obeys it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import Engine
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import open_browser
from tests.factories import event_id

from toolfault_collector.clock import MINUTE_US, SECOND_US, format_time
from toolfault_collector.engine import open_engine, read_connection, write_transaction
from toolfault_collector.projects import ensure_project
from toolfault_collector.schema import prepare
from toolfault_collector.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse

HARMLESS = "plain"
PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</pre><iframe src=javascript:alert(1)>",
    "javascript:alert(1)",
    "{{7*7}}",
    "{% raw %}<b>x</b>",
    "${alert(1)}",
    "<!--<script>-->",
    "]]><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<a href=//evil.example>x</a>",
    "<style>*{display:none}</style>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content=0>",
    "<form action=//evil.example><input>",
    "\u202egnp.exe\u202c",
    "\u2066hidden\u2069",
    "a\u200bb\u200fc",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "`-alert(1)-`",
    "\\u003cscript\\u003e",
    '<math><mi xlink:href="data:x,<script>alert(1)</script>">',
    "<details open ontoggle=alert(1)>",
    "onmouseover=alert(1) x=",
    '" autofocus onfocus=alert(1) "',
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
)


def _error(text: str) -> dict[str, Any]:
    issue = {
        "field": text,
        "code": "wrong_type",
        "message": text,
        "expected": text,
        "received": text,
        "received_type": text,
        "type": text,
        "near_miss": ["alias"],
    }
    return {
        "code": "wrong_type",
        "category": "parameter",
        "audience": "llm",
        "reason": text,
        "kind": text[:32],
        "phase": text[:32],
        "field": text,
        "expected": text,
        "received": text,
        "received_type": text,
        "snippet": text,
        "retry_hint": text,
        "retry_context": {text: text},
        "issues": [issue],
        "issues_total": 1,
        "retryable": True,
        "renderings": {"user": text, "llm": text, "system": text},
        "exception": {"type": text, "module": text, "message": text, "traceback": text},
    }


def _events(text: str) -> list[dict[str, Any]]:
    """Two failures, a success and a change that carry *text* wherever a text can stand."""
    shared = {
        "type": "tool_call",
        "session_id": f"c-{text}",
        "tool": text,
        "tool_requested": f"{text}!",
        "agent": text,
        "model": text,
        "provider": text,
        "environment": text,
        "release": text,
        "variant": f"trial={text}",
        "user": text,
        "run_id": text,
        "trace_id": text,
        "span_id": text,
        "turn": None,
        "duration_ms": 5.0,
        "tags": {"tag": text},
        "args_diff": [{"path": text, "change": text, "from_type": text, "to_type": text}],
    }
    calls = [
        {
            **shared,
            "event_id": event_id(),
            "call_id": f"{text}{number}",
            "occurred_at": format_time(NOW - MINUTE_US + number * SECOND_US),
            "seq": number,
            "success": number == 2,
            **({} if number == 2 else {"error": _error(text)}),
        }
        for number in range(3)
    ]
    for call in calls:
        call.pop("turn")
    change = {
        "type": "change",
        "event_id": event_id(),
        "occurred_at": format_time(NOW - MINUTE_US),
        "label": text,
        "tool": text,
    }
    return [*calls, change]


def _engine(folder: Any, text: str) -> Engine:
    engine = open_engine(f"sqlite:///{folder / 'toolfault.db'}")
    prepare(engine, migrate=True)
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "hostile")
        receipt = store_events(conn, project, _events(text), received_at=NOW, time_policy="import")
        refused = {"type": "tool_call", "tool": text, "surprise": text}
        store_events(conn, project, [refused], received_at=NOW)
    assert receipt.accepted == 4, receipt.rejected
    return engine


def _paths(engine: Engine) -> list[str]:
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
        "/experiments",
        "/compare?" + urlencode({"before": "since:7d", "after": "until:7d"}),
    ]


def _nodes(html: str) -> Counter[str]:
    """Every element with the names of its attributes; places to break a line aside."""
    soup = BeautifulSoup(html, "html.parser")
    # Which facets are of use depends on the data; what they are made of does not.
    for facet in soup.select(".facet"):
        assert {tag.name for tag in facet.find_all(True)} <= {"h2", "ul", "li", "a", "span", "p"}
        facet.extract()
    # A text with "=" or "," is a different list of trials; what its rows are made of is the same.
    for rows in soup.select(".trials tbody"):
        assert {tag.name for tag in rows.find_all(True)} <= {"tr", "th", "td", "a", "span", "wbr"}
        rows.extract()
    return Counter(
        f"{tag.name} {sorted(tag.attrs)}" for tag in soup.find_all(True) if tag.name != "wbr"
    )


def _look(folder: Any, text: str) -> Iterator[tuple[str, str]]:
    engine = _engine(folder, text)
    for browser in open_browser(engine):
        for index, path in enumerate(_paths(engine)):
            answer = browser.client.get(f"{path}{'&' if '?' in path else '?'}window=all")
            assert answer.status_code == 200, f"{path}: {answer.text[:500]}"
            yield str(index), answer.text
    engine.dispose()


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counter[str]]:
    """The elements of every page when every text is harmless."""
    folder = tmp_path_factory.mktemp("harmless")
    return {page: _nodes(html) for page, html in _look(folder, HARMLESS)}


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_no_stored_text_becomes_markup(
    tmp_path: Any, baseline: dict[str, Counter[str]], payload: str
):
    """With a payload in every field each page has exactly the elements it has without one."""
    seen = 0
    for page, html in _look(tmp_path, payload):
        assert _nodes(html) == baseline[page], f"page {page}"
        seen += payload in BeautifulSoup(html, "html.parser").get_text()
    hidden = any(ord(each) < 32 or 0x200B <= ord(each) <= 0x2069 for each in payload)
    assert hidden or seen > 3


@pytest.mark.parametrize("character", ["\x1b", "\u202e", "\u2066", "\u200b", "\ufeff", "\u2028"])
def test_hidden_characters_are_shown(tmp_path: Any, character: str):
    """Bidi controls and zero-width characters appear by their number and never as themselves."""
    shown = 0
    for _, html in _look(tmp_path, f"a{character}b"):
        assert character not in html
        shown += f"⟨U+{ord(character):04X}⟩" in html
    assert shown >= 9


def _many() -> list[str]:
    """Three hundred payloads: every way out of a text, with every element that runs a script."""
    ways_out = (
        "",
        '">',
        "'>",
        "</title>",
        "</textarea>",
        "</script>",
        "-->",
        "]]>",
        "</style>",
        "&#62;",
    )
    elements = (
        "<script>alert(1)</script>",
        "<script src=//evil.example/x.js></script>",
        "<img src=x onerror=alert(1)>",
        "<svg onload=alert(1)>",
        "<svg><animate onbegin=alert(1) attributeName=x></svg>",
        "<body onload=alert(1)>",
        "<iframe srcdoc='<script>alert(1)</script>'>",
        "<iframe src=javascript:alert(1)>",
        "<video><source onerror=alert(1)></video>",
        "<audio src=x onerror=alert(1)>",
        "<object data=javascript:alert(1)>",
        "<embed src=javascript:alert(1)>",
        "<details open ontoggle=alert(1)>",
        "<input autofocus onfocus=alert(1)>",
        "<select autofocus onfocus=alert(1)>",
        "<marquee onstart=alert(1)>",
        "<a href=javascript:alert(1)>x</a>",
        "<a href='java&#115;cript:alert(1)'>x</a>",
        "<form action=//evil.example><button>x</button></form>",
        "<button formaction=javascript:alert(1)>x</button>",
        "<math><maction actiontype=statusline xlink:href=javascript:alert(1)>x</maction></math>",
        "<link rel=stylesheet href=//evil.example/x.css>",
        "<style>@import'//evil.example/x.css'</style>",
        "<meta http-equiv=refresh content='0;url=//evil.example'>",
        "<base href=//evil.example/>",
        "<template><script>alert(1)</script></template>",
        "<div style=background:url(javascript:alert(1))>x</div>",
        "<x onclick=alert(1)>x</x>",
    )
    made = [way + element for way in ways_out for element in elements]
    return list(dict.fromkeys([*made, *PAYLOADS]))[:300]


def _store_many(engine: Engine, payloads: list[str]) -> None:
    for start in range(0, len(payloads), 50):
        events = [
            {**event, "session_id": f"c-{start + index}"}
            for index, text in enumerate(payloads[start : start + 50])
            for event in _events(text)[:1]
        ]
        with write_transaction(engine) as conn:
            project = ensure_project(conn, "hostile")
            receipt = store_events(conn, project, events, received_at=NOW, time_policy="import")
        assert receipt.accepted == len(events), receipt.rejected


def _kinds(html: str) -> set[str]:
    """Each kind of element with the names of its attributes."""
    return {
        f"{tag.name} {sorted(tag.attrs)}"
        for tag in BeautifulSoup(html, "html.parser").find_all(True)
    }


def _addresses(html: str) -> set[str]:
    soup = BeautifulSoup(html, "html.parser")
    names = ("href", "src", "action", "formaction", "data", "xlink:href", "poster")
    return {tag[name] for name in names for tag in soup.find_all(attrs={name: True})}


LISTS = (
    "/", "/failures", "/round-trips", "/codes", "/tools", "/messages", "/fix-next", "/changes",
    "/live", "/views", "/rejected", "/settings",
)  # fmt: skip
EXPORTS = (
    "/failures.csv", "/chains.csv", "/codes.csv", "/fields.csv", "/tools.csv", "/messages.csv",
    "/fix-next.csv", "/api/v1/failures", "/api/v1/exports/failures.json",
    "/api/v1/exports/failures.ndjson", "/api/v1/exports/issues.csv", "/api/v1/facets",
)  # fmt: skip


@pytest.mark.slow
def test_three_hundred_payloads(tmp_path: Any):
    """All at once, in every field: pages hold no element, attribute or address that is not ours."""
    payloads = _many()
    assert len(payloads) == 300
    plain, hostile = tmp_path / "plain", tmp_path / "hostile"
    plain.mkdir()
    hostile.mkdir()
    allowed: dict[str, set[str]] = {}
    for folder, texts in ((plain, [f"{HARMLESS} {n}" for n in range(300)]), (hostile, payloads)):
        engine = _engine(folder, HARMLESS)
        _store_many(engine, texts)
        with read_connection(engine) as conn:
            scope = Scope(1, parse(""), NOW)
            # Harmless texts all make the same page.
            most = 10 if folder is plain else 400
            shown = queries.failure_list(conn, scope, limit=most).rows
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
            for path in EXPORTS:
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


def test_every_link_to_an_odd_name_works(tmp_path: Any):
    """A tool or field may be called anything: what links to it finds it."""
    engine = open_engine(f"sqlite:///{tmp_path / 'toolfault.db'}")
    prepare(engine, migrate=True)
    _store_many(engine, list(NAMES))
    for browser in open_browser(engine):
        seen: set[str] = set()
        for page in ("/failures", "/codes", "/tools", "/round-trips", "/messages", "/fix-next"):
            html = browser.client.get(page, params={"window": "all"}).text
            seen |= {each for each in _addresses(html) if each.startswith("/") and "q=" in each}
        assert len(seen) > 100
        for address in sorted(seen):
            assert browser.client.get(address).status_code == 200, address
        for name in NAMES:
            for query in (parse("").toggled("tool", name), parse("").toggled("field", name)):
                answer = browser.client.get("/api/v1/failures", params={"q": str(query)})
                assert answer.status_code == 200, (name, answer.text)
                assert answer.json()["total"] == 1, (name, str(query))
    engine.dispose()


def test_long_text_is_cut_and_reachable(tmp_path: Any):
    """The longest texts that are stored make no endless page: lists cut, the failure shows all."""
    line, lines = "x" * 16_384, "a line of a traceback\n" * 2_900
    event = _events(HARMLESS)[0]
    event["error"] |= {"received": line, "snippet": line, "renderings": {"llm": line[:8_192]}}
    event["error"]["exception"]["traceback"] = lines
    engine = open_engine(f"sqlite:///{tmp_path / 'toolfault.db'}")
    prepare(engine, migrate=True)
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


def test_what_is_typed_into_the_box_stays_text(tmp_path: Any):
    """A query with markup comes back in the box and in errors as text."""
    engine = _engine(tmp_path, HARMLESS)
    for browser in open_browser(engine):
        for path in ("/failures", "/", "/tool"):
            scripts = BeautifulSoup(browser.client.get(path).text, "html.parser").find_all("script")
            for payload in PAYLOADS:
                answer = browser.client.get(path, params={"q": payload, "window": payload})
                soup = BeautifulSoup(answer.text, "html.parser")
                assert soup.find_all("script") == scripts
                assert not soup.find_all(["img", "iframe", "base", "style"])
    engine.dispose()
