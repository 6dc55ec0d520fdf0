"""Channels reach no private network, show no secret, and sign what they send."""

from __future__ import annotations

import json
import os
import socket
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import Engine
from tests.dashboard.alerts.conftest import LOCAL, Office
from tests.dashboard.alerts.receiver import Receiver
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.admin.audit import acts
from toolfault_collector.clock import format_time
from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard.alerts.addresses import RefusedFile, guarded, networks_of
from toolfault_dashboard.alerts.channels import Channel, Outgoing, check_url, send, signature
from toolfault_dashboard.alerts.service import send_test
from toolfault_dashboard.alerts.store import channel_rows

MESSAGE = Outgoing("msg_1", "firing", "demo", "rule", "", "Title", "Text", "tool:x", "", 0)
PRIVATE = (
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0",
    "100.64.0.1", "224.0.0.1", "[::1]", "[fd00::1]", "[fe80::1]", "[::ffff:10.0.0.1]",
    "[64:ff9b::a00:1]", "[2002:a00:1::]", "localhost", "2130706433", "0x7f.1",
)  # fmt: skip


@pytest.mark.parametrize("host", PRIVATE)
def test_a_private_address_is_refused_when_made_and_when_sent_to(host: str) -> None:
    """However it is written: neither stored, nor connected to if it got stored somehow."""
    url = f"http://{host}/hook"
    with pytest.raises(ValueError, match="private network"):
        check_url("webhook", url, [])
    problem = send(Channel(1, 1, "c", "webhook", url, "whsec_AAAA"), MESSAGE, [], now=0)
    assert problem is not None
    assert "private network" in problem


def test_a_public_address_is_taken() -> None:
    """What is on the internet may be a channel, and so may a name that is not known yet."""
    for url in ("https://93.184.215.14/x", "https://[2606:2800:21f::1]/x", "https://no.invalid/x"):
        assert check_url("webhook", url, []) == "webhook"


def test_a_name_that_changes_its_mind_gains_nothing(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is public when it is looked at and private when it is connected to is refused."""
    port = int(receiver.url.split(":")[2].split("/")[0])
    public = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", port))]
    private = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    answers: Iterator[Any] = iter([public, private])
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: next(answers))
    url = f"http://rebinding.example:{port}/hook"
    assert check_url("webhook", url, []) == "webhook"
    channel = Channel(1, 1, "c", "webhook", url, "whsec_AAAA")

    assert "private network" in str(send(channel, MESSAGE, [], now=0))
    assert receiver.deliveries == []


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    """A receiver cannot send the server on to somewhere else."""
    receiver.status, receiver.location = 307, receiver.url
    channel = Channel(1, 1, "c", "webhook", receiver.url, "whsec_AAAA")
    problem = send(channel, MESSAGE, networks_of(LOCAL), now=0)
    assert problem == "It answered with status 307."
    assert len(receiver.deliveries) == 1


def test_apprise_sends_and_is_held_to_the_same_networks(receiver: Receiver) -> None:
    """A service of apprise is reached where that is allowed, and not where it is not."""
    url = receiver.url.replace("http://", "json://")
    channel = Channel(1, 1, "c", "apprise", url, "")
    assert "private network" in str(send(channel, MESSAGE, [], now=0))
    assert receiver.deliveries == []
    assert send(channel, MESSAGE, networks_of(LOCAL), now=0) is None
    assert receiver.deliveries[0].document["title"] == "Title"
    with pytest.raises(ValueError, match="private network"):
        check_url("apprise", url, [])
    receiver.status = 500
    assert send(channel, MESSAGE, networks_of(LOCAL), now=0) is not None


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("webhook", ""),
        ("webhook", "ftp://example.org/x"),
        ("webhook", "https:///x"),
        ("webhook", "http://example.org:99999/x"),
        ("apprise", "nonsense-tell-nobody"),
        ("apprise", "syslog://"),
        ("apprise", "dbus://"),
        ("pigeon", "https://example.org"),
    ],
)
def test_what_is_no_channel_is_refused_without_repeating_it(kind: str, url: str) -> None:
    """The reason is a sentence in which the address does not stand."""
    with pytest.raises(ValueError) as refused:
        check_url(kind, url, [])
    assert not url or url not in str(refused.value)


@pytest.mark.parametrize("scheme", ["mqtt", "MQTTS", "xmpp", " xmpps"])
def test_a_service_that_connects_from_a_thread_is_refused(scheme: str) -> None:
    """Its addresses cannot be checked, whether or not its library is installed."""
    with pytest.raises(ValueError, match="from a thread of its own"):
        check_url("apprise", f"{scheme}://user:pass@example.org/topic", [])


@pytest.mark.parametrize(
    "url",
    [
        "workflows://example.org/WORKFLOW/SIGNATURE/?template={file}",
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js/?template={file}",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/?template={file}",
        "tgram://123456789:abcdefghijklmnopqrstuvwxyz/12315544/?template={file}",
        "fcm://project/device/?mode=oauth2&keyfile={file}",
        "mailto://user:pass@example.org?pgppub={file}&pgp=encrypt",
        "mailtos://user:pass@example.org?pgpprv=file://{file}&pgp=sign",
        "deltachats://user:pass@example.org?pgppub={file}",
    ],
)
def test_no_address_names_a_file_of_the_server(tmp_path: Path, url: str) -> None:
    """What it names would be read there and sent to whoever receives the messages."""
    secret = tmp_path / "secret.json"
    secret.write_text('{"password": "hunter2"}')
    named = url.format(file=secret)
    with pytest.raises(ValueError, match="Leave out what names a file"):
        check_url("apprise", named, [])
    problem = send(Channel(1, 1, "c", "apprise", named, ""), MESSAGE, [], now=0)
    assert problem is not None


def test_no_file_is_read_or_written_while_a_channel_is_used(tmp_path: Path) -> None:
    """Whatever a service makes of its address; packages load their code all the same."""
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    packages = sysconfig.get_paths()["purelib"]
    disguised = f"{packages}/{os.path.relpath(secret, packages)}"
    made = tmp_path / "made"
    with guarded([]) as guard:
        for opened in (secret, "/etc/passwd", disguised):
            with pytest.raises(RefusedFile, match="Leave out what names a file"):
                open(opened)  # noqa: PTH123, SIM115 - by every way that there is
        with pytest.raises(RefusedFile):
            made.write_text("x")
        with pytest.raises(RefusedFile):
            os.open(made, os.O_CREAT | os.O_WRONLY)
        assert isinstance(guard.refused, RefusedFile)
        assert Path(sysconfig.__file__).read_text()
    assert secret.read_text() == "hunter2"
    assert not made.exists()


def test_a_message_that_went_without_a_file_is_sent(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries look for passwords of a person in ~/.netrc: that is refused, and not told."""
    passwords = tmp_path / ".netrc"
    passwords.write_text("machine 127.0.0.1 login somebody password hunter2\n")
    monkeypatch.setenv("NETRC", str(passwords))
    url = receiver.url.replace("http", "json", 1)
    assert send(Channel(1, 1, "c", "apprise", url, ""), MESSAGE, networks_of(LOCAL), now=0) is None
    (request,) = receiver.deliveries
    assert "authorization" not in {name.lower() for name in request.headers}


@pytest.mark.parametrize("scheme", ["syslog", " Syslog", "vapid"])
def test_no_message_is_shown_on_the_servers_machine(scheme: str) -> None:
    """Its log, its desktop and its files belong to whoever runs it."""
    with pytest.raises(ValueError, match="the server's own machine"):
        check_url("apprise", f"{scheme}://user@example.org", [])


def test_the_signature_is_that_of_the_standard() -> None:
    """The example of Standard Webhooks' own reference implementations comes out."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    made = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body)
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def _browser(engine: Engine, office: Office) -> Iterator[Browser]:
    yield from open_browser(engine, now=office.now, alert_networks=LOCAL)


def test_what_is_secret_is_shown_nowhere(
    sqlite_office: Office, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """The signing secret is shown once, the address never: pages, files, audit log, logs."""
    office, told = sqlite_office, "tell-nobody-0815"
    for browser in _browser(office.engine, office):
        form = {"name": "hook", "kind": "webhook", "url": f"{office.receiver.url}/{told}"}
        page = browser.post("/settings/channels?project=demo", form, status=200)
        (secret,) = page.section("Signing secret of the webhook hook").snippets
        assert secret.startswith("whsec_")
        with read_connection(office.engine) as conn:
            number = str(channel_rows(conn, office.project)[0].id)
        answers = [
            browser.client.post("/settings/channels/test?project=demo", data={"id": number}).text
        ]
        assert "The test is sent." in answers[0]
        assert _next_try(browser) is None
        office.receiver.status = 500
        answers.append(
            browser.client.post("/settings/channels/test?project=demo", data={"id": number}).text
        )
        assert "It answered with status 500." in answers[1]
        assert (_next_try(browser) or "") > format_time(office.now)
        # Refused forms do not repeat what was typed.
        twice = browser.client.post("/settings/channels?project=demo", data=form)
        wrong = form | {"name": "x", "url": f"ftp://{told}"}
        answers += [twice.text, browser.client.post("/settings/channels", data=wrong).text]
        assert twice.status_code == 422
        files = ("channels.csv", "channels.ndjson", "alerts.csv", "alert-history.csv", "audit.csv")
        for path in ("settings", "alerts", "alert", *files):
            answer = browser.get(f"/{path}?project=demo")
            assert answer.status_code == 200, path
            answers.append(answer.text)
    with read_connection(office.engine) as conn:
        answers += [str(acts(conn)), str(channel_rows(conn, office.project))]
    captured = capfd.readouterr()
    answers += [caplog.text, captured.out, captured.err]
    for text in answers:
        assert told not in text
        assert quote(told) not in text
        assert secret not in text
        assert secret.removeprefix("whsec_") not in text
    assert told not in repr(Channel(1, 1, "c", "webhook", told, secret))


def _next_try(browser: Browser) -> str | None:
    """When the only channel is tried again, as its file says."""
    (row,) = browser.get("/channels.ndjson?project=demo").text.splitlines()
    found: str | None = json.loads(row)["retry_at"]
    return found


def test_a_test_that_goes_well_frees_a_channel_that_waited(sqlite_office: Office) -> None:
    """Whoever mends a channel and sends a test need not wait for the next try, nor what waits."""
    office = sqlite_office
    office.channel()
    office.rule(condition="new_kind")
    office.receiver.status = 503
    service = office.service()
    office.later(1)
    office.calls(failed=1, succeeded=0)
    service.run_once()
    with read_connection(office.engine) as conn:
        (row,) = channel_rows(conn, office.project)
    assert (row.failures, row.waiting) == (1, 1)
    office.receiver.status = 204
    problem = send_test(
        office.engine, office.settings, office.project, row.id, actor="ada", now=office.now
    )
    assert problem is None
    with read_connection(office.engine) as conn:
        (row,) = channel_rows(conn, office.project)
    assert (row.failures, row.error) == (0, "")
    service.run_once()
    assert office.outbox()[0].sent_at == office.now
