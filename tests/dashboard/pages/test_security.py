"""Headers everywhere, other sites kept out, sessions that end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import Engine, select
from starlette.datastructures import Headers
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import ORIGIN, Browser, open_browser
from tests.tables import tables_of

from toolfault_collector.clock import DAY_US, SECOND_US
from toolfault_collector.runtime import Collector
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import open_engine
from toolfault_collector.storage.tables import login_session, user_account
from toolfault_dashboard.access import signin
from toolfault_dashboard.access.security import CSP, same_origin
from toolfault_dashboard.app import NoAccount, create_app, sign_in_url
from toolfault_dashboard.pages.settings.sign_in import local_path

FORM = {"content-type": "application/x-www-form-urlencoded"}


def test_every_answer_carries_the_security_headers(own_browser: Browser):
    """Pages, static files, redirects and errors of every kind have CSP, nosniff and no-store."""
    answers = [
        own_browser.client.request(method, path, follow_redirects=False, **options)
        for method, path, options in (
            ("GET", "/", {}),
            ("GET", "/failures?q=tol:x", {}),
            ("GET", "/failures?form=1&tool=x", {}),
            ("GET", "/nothing", {}),
            ("DELETE", "/failures", {}),
            ("POST", "/changes", {"headers": {"content-type": "text/plain"}}),
            ("POST", "/changes", {"headers": FORM, "content": "label="}),
            ("POST", "/changes", {"headers": {**FORM, "origin": "https://evil.example"}}),
            ("POST", "/changes", {"headers": FORM, "content": "a=" + "b" * 70_000}),
            ("GET", "/static/app.css", {}),
            ("GET", "/static/nothing", {}),
            ("GET", "/sign-in?token=nothing", {}),
            ("GET", "/failures.csv", {}),
            ("POST", "/v1/events", {}),
            ("GET", "/healthz", {}),
        )
    ]
    statuses = [answer.status_code for answer in answers]
    assert statuses == [200, 400, 303, 404, 405, 415, 422, 403, 413, 200, 404, 410, 200, 401, 200]
    for answer in answers:
        # What programs ask for holds no page, and the collector allows it nothing at all.
        machine = str(answer.url).endswith(("/v1/events", "/healthz"))
        allowed = (CSP, "default-src 'none'; frame-ancestors 'none'") if machine else (CSP,)
        assert answer.headers["content-security-policy"] in allowed
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "x-request-id" in answer.headers
        kept = answer.headers["cache-control"]
        assert kept == "no-store" or "/static/" in str(answer.url)


def test_a_fault_of_a_page_is_a_page_with_headers_and_without_details(own_browser: Browser):
    """An exception inside a page becomes 500 with an id and none of its text."""
    with own_browser.engine.begin() as conn:
        conn.exec_driver_sql("ALTER TABLE change RENAME TO gone")
    answer = own_browser.get("/changes")
    assert answer.status_code == 500
    assert answer.headers["content-security-policy"] == CSP
    assert answer.headers["x-request-id"] in answer.text
    assert "no such table" not in answer.text


def test_a_static_file_with_its_hash_may_be_kept(browser: Browser):
    """The address in the page is immutable; a plain one must be asked for again."""
    (href,) = re.findall(r'rel="stylesheet" href="([^"]+)"', browser.get("/").text)
    assert "immutable" in browser.get(href).headers["cache-control"]
    assert browser.get("/static/app.css").headers["cache-control"] == "no-cache"


SAME = {"host": "tf.example:8321"}


@pytest.mark.parametrize(
    ("method", "headers", "scheme", "allowed"),
    [
        ("GET", {"sec-fetch-site": "cross-site"}, "http", True),
        ("HEAD", {"origin": "https://evil.example"}, "http", True),
        ("POST", {"sec-fetch-site": "same-origin"}, "http", True),
        ("POST", {"sec-fetch-site": "none"}, "http", True),
        ("POST", {"sec-fetch-site": "same-site"}, "http", False),
        ("POST", {"sec-fetch-site": "cross-site"}, "http", False),
        ("POST", {"sec-fetch-site": ""}, "http", False),
        ("POST", {"sec-fetch-site": "SAME-ORIGIN"}, "http", True),
        ("POST", {"sec-fetch-site": "same-origin, none"}, "http", False),
        (
            "POST",
            {"sec-fetch-site": "cross-site", "origin": "http://tf.example:8321"},
            "http",
            False,
        ),
        ("POST", {"sec-fetch-site": "same-origin", "origin": "https://evil.example"}, "http", True),
        ("POST", {}, "http", True),
        ("POST", {"origin": "http://tf.example:8321"}, "http", True),
        ("POST", {"origin": "HTTP://TF.EXAMPLE:8321"}, "http", True),
        ("POST", {"origin": "https://tf.example:8321"}, "https", True),
        ("POST", {"origin": "http://tf.example:8321"}, "https", False),
        ("POST", {"origin": "https://tf.example:8321"}, "http", True),
        ("POST", {"origin": "http://tf.example"}, "http", False),
        ("POST", {"origin": "http://tf.example:80"}, "http", False),
        ("POST", {"origin": "http://tf.example:83210"}, "http", False),
        ("POST", {"origin": "http://evil.example:8321"}, "http", False),
        ("POST", {"origin": "http://tf.example:8321.evil.example"}, "http", False),
        ("POST", {"origin": "http://evil.example/tf.example:8321"}, "http", False),
        ("POST", {"origin": "http://user@tf.example:8321"}, "http", False),
        ("POST", {"origin": "null"}, "http", False),
        ("POST", {"origin": ""}, "http", False),
        ("POST", {"origin": "http://"}, "http", False),
        ("POST", {"origin": "http://[::1"}, "http", False),
        ("POST", {"origin": "ftp://tf.example:8321"}, "http", False),
        ("POST", {"origin": "file://tf.example:8321"}, "http", False),
        ("PUT", {"origin": "https://evil.example"}, "http", False),
        ("DELETE", {"origin": "https://evil.example"}, "http", False),
        ("PATCH", {"sec-fetch-site": "cross-site"}, "http", False),
    ],
)
def test_same_origin(method: str, headers: dict[str, str], scheme: str, allowed: bool):
    """Unsafe requests pass only from our own pages or from no browser; nothing malformed raises."""
    assert same_origin(method, Headers(SAME | headers), scheme) is allowed


@pytest.mark.parametrize(
    "path", ["/sign-in", "/sign-out", "/theme", "/clock", "/changes", "/start"]
)
def test_another_site_cannot_post(own_browser: Browser, path: str):
    """Every form refuses a request from another site, also the one that signs in."""
    headers = {**FORM, "sec-fetch-site": "cross-site"}
    answer = own_browser.client.post(path, headers=headers, follow_redirects=False)
    assert answer.status_code == 403


def test_text_plain_is_no_form(own_browser: Browser):
    """The content type that another site may send without asking is refused."""
    answer = own_browser.client.post(
        "/changes", content="label=x", headers={"content-type": "text/plain"}
    )
    assert answer.status_code == 415


def test_reading_changes_nothing(own_browser: Browser):
    """Getting pages leaves every table as it was, but for the note of an export."""

    def state() -> list[object]:
        from toolfault_collector.storage.tables import audit_log

        tables = [
            select(table) for table in tables_of(own_browser.engine) if table is not audit_log
        ]
        others = select(audit_log).where(audit_log.c.action != "exported")
        with own_browser.engine.connect() as conn:
            return [conn.execute(query).all() for query in (*tables, others)]

    before = state()
    for path in (
        "/",
        "/failures",
        "/round-trips",
        "/codes",
        "/tools",
        "/changes",
        "/start",
        "/help",
        "/failures.csv",
        "/sign-in?token=x",
        "/nothing",
    ):
        own_browser.get(path)
    assert state() == before


# Sessions.


def _link(engine: Engine, now: int = NOW) -> str:
    return signin.create_link(engine, now=now, name="ada", role="developer")


def _cookie(browser: Browser) -> str:
    return "; ".join(f"{name}={value}" for name, value in browser.client.cookies.items())


@pytest.fixture
def stranger(own_engine: Engine):
    """Somebody without a session, on a database of this test alone."""
    yield from open_browser(own_engine, role=None)


def test_following_a_link_shows_a_button_and_uses_nothing_up(stranger: Browser):
    """A GET of the link signs nobody in, however often a mail scanner repeats it."""
    token = _link(stranger.engine)
    for _ in range(3):
        soup = stranger.page(f"/sign-in?token={token}")
        assert soup.form("/sign-in").buttons
    assert stranger.get("/").status_code == 303


def test_a_link_leads_back_to_where_the_reader_wanted(stranger: Browser):
    """Who is sent to sign in gets there with any link; the command names the server's address."""
    asked = stranger.get("/failures?q=tool:x")
    elsewhere = {"Host": "tf.example.org:9000"}
    explained = stranger.client.get(asked.headers["location"], headers=elsewhere).text
    assert "toolfault sign-in-link --url http://tf.example.org:9000" in explained
    soup = stranger.page(f"/sign-in?token={_link(stranger.engine)}")
    assert soup.form("/sign-in").fields["next"] == "/failures?q=tool:x"


def test_where_the_reader_wanted_is_forgotten_after_signing_in(stranger: Browser):
    """The next link leads to the first page, and asking for the sign-in page leads there too."""
    stranger.get("/sign-in?next=/sign-in")
    stranger.get("/sign-in?next=/failures")
    first = stranger.page(f"/sign-in?token={_link(stranger.engine)}").form("/sign-in")
    assert first.fields["next"] == "/failures"
    stranger.client.post("/sign-in", data=dict(first.fields), follow_redirects=False)
    assert "toolfault-next" not in stranger.client.cookies
    assert stranger.get("/sign-in?next=/sign-in").headers["location"] == "/"


def test_the_button_signs_in_once(stranger: Browser):
    """The first POST makes a session and goes on to where the reader wanted; the second is 410."""
    token = _link(stranger.engine)
    answer = stranger.client.post(
        "/sign-in", data={"token": token, "next": "/failures?q=tool:x"}, follow_redirects=False
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/failures?q=tool:x")
    assert stranger.get("/failures").status_code == 200
    again = stranger.client.post("/sign-in", data={"token": token}, follow_redirects=False)
    assert again.status_code == 410


def test_the_cookie_is_guarded(stranger: Browser):
    """The session cookie is HttpOnly, SameSite=Lax, for the whole site and named by port."""
    answer = stranger.client.post(
        "/sign-in", data={"token": _link(stranger.engine)}, follow_redirects=False
    )
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("toolfault_session_8321=")
    for part in ("HttpOnly", "SameSite=lax", "Path=/", "Max-Age=2592000"):
        assert part in cookie
    assert "Secure" not in cookie


def test_the_cookie_is_secure_on_tls(own_engine: Engine):
    """Over https the cookie never leaves on a plain connection."""
    from fastapi.testclient import TestClient

    settings = Settings(database_url=str(own_engine.url))
    app = create_app(settings, collector=Collector(settings, engine=own_engine), clock=lambda: NOW)
    with TestClient(app, base_url="https://tf.example") as client:
        answer = client.post("/sign-in", data={"token": _link(own_engine)}, follow_redirects=False)
    assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize(("trusted", "secure"), [("testclient", True), ("10.0.0.1", False)])
def test_the_cookie_is_secure_behind_a_proxy(own_engine: Engine, trusted: str, secure: bool):
    """A proxy that ends TLS is believed where it is trusted, and nobody else is."""
    from fastapi.testclient import TestClient

    settings = Settings(database_url=str(own_engine.url), trusted_proxies=trusted)
    app = create_app(settings, collector=Collector(settings, engine=own_engine), clock=lambda: NOW)
    headers = {"x-forwarded-proto": "https", "x-forwarded-for": "203.0.113.9"}
    with TestClient(app, base_url="http://tf.example", headers=headers) as client:
        answer = client.post("/sign-in", data={"token": _link(own_engine)}, follow_redirects=False)
    assert ("Secure" in answer.headers["set-cookie"]) is secure


def test_tokens_are_kept_as_hashes_only(stranger: Browser):
    """Neither the link nor the cookie can be read from the database."""
    token = _link(stranger.engine)
    stranger.client.post("/sign-in", data={"token": token}, follow_redirects=False)
    (cookie,) = [each.value for each in stranger.client.cookies.jar]
    with stranger.engine.connect() as conn:
        stored = str(conn.execute(select(login_session)).all())
    assert token not in stored
    assert str(cookie) not in stored


def test_signing_out_ends_the_session_on_the_server(stranger: Browser):
    """A copied cookie is worth nothing after its owner signed out."""
    stranger.client.post("/sign-in", data={"token": _link(stranger.engine)}, follow_redirects=False)
    copied = _cookie(stranger)
    stranger.client.post("/sign-out", headers=FORM, follow_redirects=False)
    stranger.client.cookies.clear()
    assert stranger.get("/", headers={"cookie": copied}).status_code == 303


def test_a_new_session_ends_the_one_before(stranger: Browser):
    """Signing in again changes the cookie and revokes the old one: no session is fixed."""
    stranger.client.post("/sign-in", data={"token": _link(stranger.engine)}, follow_redirects=False)
    old = _cookie(stranger)
    stranger.client.post("/sign-in", data={"token": _link(stranger.engine)}, follow_redirects=False)
    assert _cookie(stranger) != old
    stranger.client.cookies.clear()
    assert stranger.get("/", headers={"cookie": old}).status_code == 303


def test_a_changed_role_ends_all_sessions(stranger: Browser):
    """Whoever gets another role signs in again, so that nothing of the old one stays."""
    stranger.client.post("/sign-in", data={"token": _link(stranger.engine)}, follow_redirects=False)
    assert stranger.get("/").status_code == 200
    signin.set_role(stranger.engine, "ada", "viewer", now=NOW)
    assert stranger.get("/").status_code == 303


@pytest.mark.parametrize("column", ["expired", "disabled", "unknown role"])
def test_a_session_that_lost_its_ground_is_none(stranger: Browser, column: str):
    """An expired session, a disabled account and an unknown role do not get in."""
    stranger.client.post("/sign-in", data={"token": _link(stranger.engine)}, follow_redirects=False)
    with stranger.engine.connect().execution_options(toolfault_write=True) as conn, conn.begin():
        if column == "expired":
            conn.execute(login_session.update().values(expires_at=NOW))
        elif column == "disabled":
            conn.execute(user_account.update().values(disabled_at=NOW + 1))
        else:
            conn.execute(user_account.update().values(role="owner"))
    assert stranger.get("/").status_code == 303


@pytest.mark.parametrize("token", ["", "x", "ä", "\ud800", "' OR 1=1", "a" * 5000])
def test_a_wrong_token_is_told_nothing(stranger: Browser, token: str):
    """Whatever a link holds, the answer is the same page and the same status."""
    from urllib.parse import quote

    body = "token=" + quote(token, safe="", errors="surrogatepass")
    answer = stranger.client.post("/sign-in", content=body, headers=FORM, follow_redirects=False)
    assert answer.status_code in (400, 410)
    assert "ada" not in answer.text


def test_an_expired_link_does_not_work(stranger: Browser):
    """A link is valid for 24 hours."""
    ages = {DAY_US - SECOND_US: 200, DAY_US: 410}
    for age, status in ages.items():
        token = _link(stranger.engine, NOW - age)
        stranger.page(f"/sign-in?token={token}", status=status)


def test_a_disabled_account_is_not_revived_by_a_link(stranger: Browser):
    """A link of somebody who was disabled later does not sign in."""
    token = _link(stranger.engine)
    with stranger.engine.connect().execution_options(toolfault_write=True) as conn, conn.begin():
        conn.execute(user_account.update().values(disabled_at=NOW + 5))
    stranger.page(f"/sign-in?token={token}", status=410)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("/failures?q=tool:x", "/failures?q=tool:x"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("failures", "/"),
        ("/\r\nSet-Cookie: a=b", "/"),
        ("", "/"),
        *((broken, "/") for broken in ("//[", "http://[", "//[::1", "//]")),
    ],
)
def test_no_address_leads_off_this_server(given: str, kept: str):
    """Where to go after a form is always a path of this server."""
    assert local_path(given) == kept


# Who may be served.


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "tf.example"])
def test_a_public_address_needs_somebody_who_can_sign_in(sqlite_url: str, host: str):
    """Without an account or an open link a public address is refused; with either it is served."""
    settings = Settings(database_url=sqlite_url, host=host)
    engine = open_engine(sqlite_url)
    with pytest.raises(NoAccount, match="sign-in-link"):
        sign_in_url(settings, engine, "http://tf.example:8321", now=NOW)
    signin.create_link(engine, now=NOW)
    url = sign_in_url(settings, engine, "http://tf.example:8321", now=NOW)
    assert url is not None
    signin.sign_in(engine, url.split("token=")[1], now=NOW)
    assert sign_in_url(settings, engine, "http://tf.example:8321", now=NOW) is None
    engine.dispose()


def test_the_server_itself_refuses_to_start_open(sqlite_url: str):
    """The check is part of starting, not of one command: whoever serves the application has it."""
    from fastapi.testclient import TestClient

    settings = Settings(database_url=sqlite_url, host="0.0.0.0")
    with pytest.raises(NoAccount), TestClient(create_app(settings)):
        pass


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.1.2.3"])
def test_a_loopback_address_prints_a_link_until_somebody_signed_in(sqlite_url: str, host: str):
    """The first start prints a link that works; after it was used none is printed."""
    settings = Settings(database_url=sqlite_url, host=host)
    engine = open_engine(sqlite_url)
    url = sign_in_url(settings, engine, "http://x:1", now=NOW)
    assert url is not None
    assert url.startswith("http://x:1/sign-in?token=")
    signin.sign_in(engine, url.split("token=")[1], now=NOW)
    assert sign_in_url(settings, engine, "http://x:1", now=NOW) is None
    engine.dispose()


def test_a_new_file_is_prepared_before_the_link_is_made(tmp_path: Path):
    """The very first start, without any schema, prints a link too."""
    settings = Settings(database_url=f"sqlite:///{tmp_path / 'new.db'}")
    engine = open_engine(settings.database_url)
    assert sign_in_url(settings, engine, ORIGIN, now=NOW)
    engine.dispose()
