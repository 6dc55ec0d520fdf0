"""No text from outside ever becomes the name of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product

import pytest
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.factories import failure

from toolfault_collector.storage.database.engine import open_engine

pytestmark = pytest.mark.slow

CANARY = "zzcanaryzz"
_opened: list[str] = []
_listening = False


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    # A hook cannot be taken away again, so it asks whether anybody listens.
    if _listening and event in ("open", "os.listdir", "os.remove", "os.rename", "os.mkdir"):
        _opened.append(str(arguments[0]))


sys.addaudithook(_listen)


@pytest.fixture
def watched(sqlite_url: str) -> Iterator[Browser]:
    """A server in this process, and every file that is opened while it serves."""
    global _listening
    engine = open_engine(sqlite_url)
    for browser in open_browser(engine):
        _opened.clear()
        _listening = True
        yield browser
        _listening = False
    engine.dispose()


def _traversals() -> list[str]:
    """Two hundred ways to write a path that leads elsewhere."""
    ups = ("../", "..\\", "%2e%2e/", "%2e%2e%2f", "..%2f", "..;/", "....//", "%252e%252e/", "/", "")
    roots = (
        "",
        "/",
        "file://",
        "C:\\",
        "\\\\host\\",
        "/proc/self/cwd/",
        "~/",
        "./",
        "//",
        "static/",
    )
    ends = ("", "%00.css")
    return [root + up * 3 + CANARY + end for root, up, end in product(roots, ups, ends)]


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.long)])
def test_no_text_becomes_a_path(every: int, watched: Browser):
    """Ids, names, headers, parameters and addresses: no file of that name is opened or made."""
    texts = _traversals()[::every]
    assert len(texts) >= 200 // every
    key = watched.client.post("/start").text.partition("tf_ingest_")[2][:43]
    headers = {"authorization": f"Bearer tf_ingest_{key}"}

    for number, text in enumerate(texts):
        encoded = text.replace("%", "%25").replace("\\", "%5C")
        events = [failure(text, session_id=text, event_id=text), failure(text, call_id=text)]
        batch = {"events": events, "resource": {"agent": text}}
        watched.client.post("/v1/events", json=batch, headers=headers)
        # Each text is the address of a file, and of one of four things by their id.
        by_id = (
            f"/failures/{encoded}",
            f"/chains/{text}",
            f"/api/v1/exports/{text}.csv",
            f"/api/v1/experiments/{encoded}",
        )
        for address in (f"/static/{text}", by_id[number // 5 % len(by_id)]):
            assert watched.get(address).status_code < 500, address
        answer = watched.get(
            "/failures.csv",
            params={"q": f'tool:"{CANARY}"', "project": text, "name": text},
            headers={"x-request-id": CANARY, "accept-language": CANARY},
        )
        assert answer.status_code < 500

    assert len(_opened) > 0  # the static files of the first page, at least
    assert [path for path in _opened if CANARY in path] == []
