"""Alerts by hand: a rule is made with a preview, changed, snoozed, removed, and takes mistakes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.pages.places import scope_of
from tests.dashboard.reading import Page

from toolfault_collector.admin.audit import acts
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_dashboard import queries
from toolfault_dashboard.alerts.evaluation import Figure, Measured, State, advance
from toolfault_dashboard.alerts.figures import measure
from toolfault_dashboard.alerts.preview import moments, preview
from toolfault_dashboard.alerts.rules import CONDITIONS, Rule, read_rule
from toolfault_dashboard.alerts.service import AlertService
from toolfault_dashboard.alerts.store import rule_rows
from toolfault_dashboard.cli.app import run
from toolfault_dashboard.formats import percent
from toolfault_dashboard.queries.figures.alerting import newest_beginnings

PROJECT = "project=generated"
NOTHING = f"{PROJECT}&q=tool:nothing"  # whose preview looks at no moment


@pytest.fixture
def developer(own_engine: Engine) -> Iterator[Browser]:
    """A developer, who may make rules and no channels."""
    yield from open_browser(own_engine, role="developer")


def _rule(**form: str) -> Rule:
    return read_rule(form, project_id=1, audience="system", now=NOW)


def _save(browser: Browser, address: str, **changed: str) -> Page:
    """Open the form at *address*, change some of its fields and press Save."""
    page = browser.page(address).main
    (form,) = [each for each in page.forms if "/alerts" in each.sends_to]
    return browser.post(form.sends_to["/alerts"], dict(form.fields) | changed).main


def test_the_link_on_a_list_carries_its_scope_and_the_form_shows_what_it_measures(
    developer: Browser,
):
    """The query is there, the figure is that of the same list on its page, with interval and n."""
    query = "tool:search -code:timeout"
    page = developer.page(f"/failures?{PROJECT}&q={query}&window=7d").main
    page = developer.page(page.link("Alert me about this")).main
    (form,) = [each for each in page.forms if "/alerts" in each.sends_to]
    assert form.fields["q"] == query

    form_of = f"/alert?{PROJECT}&q={query}&condition=failure_rate&last=7d&threshold=99"
    said = developer.page(form_of).main.section("Preview").text
    with read_connection(developer.engine) as conn:
        scope = scope_of(developer.engine, f"{query} since:7d until:0s -time:none")
        found = queries.overview(conn, scope).failure_rate
    assert f"Now: {percent(found.value)} (95% interval {percent(found.low)} to " in said
    assert f"n = {found.n:,} calls" in said


def test_a_project_without_calls_is_not_said_to_be_quiet(developer: Browser):
    """The preview says that nothing has arrived, not that nothing would have fired."""
    with write_transaction(developer.engine) as conn:
        ensure_project(conn, "silent")
    said = developer.page("/alert?project=silent&condition=failure_rate").main.section("Preview")
    assert "No call of this project has arrived yet." in said.text
    assert "fired" not in said.text


def test_every_condition_has_a_form_that_can_be_saved(developer: Browser):
    """Its defaults are taken as they stand; the rule is listed, in the file too."""
    for condition in CONDITIONS:
        page = developer.post(f"/alerts?{PROJECT}", {"condition": condition}).main
    listed = page.table("Rule", "State").rows
    names = sorted(row["Rule"].text.partition(")")[0] + ")" for row in listed)
    assert all(any(name.startswith(each.label) for name in names) for each in CONDITIONS.values())
    rows = list(csv.DictReader(io.StringIO(developer.get(page.files[0]).text)))
    assert sorted(each["name"] for each in rows) == names


def test_a_rule_is_changed_snoozed_and_removed(developer: Browser):
    """Each is said, listed and written down; a new name leaves the rule what it is."""
    page = _save(developer, f"/alert?{NOTHING}", name="mine", quiet="22:00-07:00")
    page = _save(developer, page.table("Rule").rows[0]["Rule"].href, name="ours", threshold="35")
    assert "ours" in page.table("Rule").rows[0]["Rule"].text
    assert "above 35.0%" in page.table("Rule").rows[0]["Rule"].text

    snooze = page.forms_to("/alerts/snooze")[0]
    page = developer.post(snooze.action, {**snooze.fields, "for": "24h"}).main
    assert page.table("Rule").rows[0]["State"].text.startswith("snoozed until")
    page = developer.post(snooze.action, {**snooze.fields, "for": "0"}).main
    assert page.table("Rule").rows[0]["State"].text == "quiet"
    remove = page.forms_to("/alerts/remove")[0]
    page = developer.post(remove.action, dict(remove.fields)).main
    assert "No alert yet" in page.text

    with read_connection(developer.engine) as conn:
        done = [act.action for act in acts(conn) if act.action.startswith("alert")]
    assert done == [
        "alert_removed", "alert_snoozed", "alert_snoozed", "alert_changed", "alert_made",
    ]  # fmt: skip


def test_what_was_said_is_listed_with_what_became_of_it(developer: Browser):
    """Without a channel a message is in the history alone, and leads to its failures."""
    form_of = f"/alert?{NOTHING}&condition=failure_rate&last=7d"
    _save(developer, form_of, threshold="1", name="loud", q="")
    moment = [NOW]
    service = AlertService(developer.engine, Settings(), clock=lambda: moment[0])
    for moment[0] in (NOW, NOW + 10 * MINUTE_US):
        service.run_once()
    page = developer.page(f"/alerts?{PROJECT}").main
    (row,) = page.table("Message", "Sent").rows
    assert row["Message"].text == "Alert: loud [generated]"
    assert row["Sent"].text == "no channel"
    assert page.table("Rule", "State").rows[0]["State"].text == "firing"
    assert developer.page(row["Message"].href).main.heading == "Failures"


MISTAKES = {
    "threshold": ("many", "Write the threshold as a number"),
    "least": ("0", "as a whole number above 0"),
    "q": ("tol:search", "Did you mean"),
    "quiet": ("22-7", "Write quiet hours as 22:00-07:00"),
    "zone": ("Mars/Olympus", "Write the time zone as Europe/Berlin"),
    "last": ("3y", "Choose a window"),
    "channel": ("x", "Choose a channel"),
}


def test_a_mistake_comes_back_with_what_to_write(developer: Browser):
    """The form keeps what was typed and says what to do; nothing is stored."""
    for field, (typed, said) in MISTAKES.items():
        form = {"condition": "failure_rate", "name": "kept", field: typed}
        page = developer.post(f"/alerts?{PROJECT}", form, status=422).main
        assert said in page.text, field
        (again,) = [each for each in page.forms if "/alerts" in each.sends_to]
        assert again.fields["name"] == "kept", field
    with read_connection(developer.engine) as conn:
        assert rule_rows(conn) == []


def test_another_condition_gets_its_own_fields_before_it_is_saved(developer: Browser):
    """What was typed for one condition is not stored for another."""
    form = {"was": "failure_rate", "condition": "recovery_rate", "threshold": "20", "least": "9"}
    page = developer.post(f"/alerts?{NOTHING}", form, status=422).main
    (again,) = [each for each in page.forms if "/alerts" in each.sends_to]
    assert again.fields["was"] == "recovery_rate"
    assert again.fields["least"] == str(CONDITIONS["recovery_rate"].least)


def test_a_rule_and_a_channel_of_another_project_are_not_found(own_browser: Browser):
    """No number of one project leads anywhere under the other."""
    _save(own_browser, f"/alert?{NOTHING}", name="mine")
    with write_transaction(own_browser.engine) as conn:
        number = str(conn.execute(text("SELECT id FROM alert_rule")).scalar_one())
    form = {"name": "c", "kind": "webhook", "url": "https://93.184.215.14/x"}
    own_browser.post(f"/settings/channels?{PROJECT}", form, status=200)
    channel = {"channel": "1", "condition": "no_data"}
    for path, sent in (
        ("/alerts", {"id": number, "condition": "no_data"}),
        ("/alerts", channel),
        ("/alerts/remove", {"id": number}),
        ("/alerts/snooze", {"id": number, "for": "1h"}),
        ("/settings/channels/remove", {"id": "1"}),
        ("/settings/channels/test", {"id": "1"}),
    ):
        answer = own_browser.client.post(f"{path}?project=other", data=sent)
        assert answer.status_code == 404, path
    assert own_browser.get(f"/alert?project=other&id={number}").status_code == 404


def test_the_preview_is_the_state_machine_over_the_figures_of_each_moment(engine: Engine):
    """For every condition: the same firings as measuring every moment and advancing by hand."""
    for condition in CONDITIONS.values():
        if condition.kind == "digest":
            continue
        rule = _rule(condition=condition.name, last="24h", least="5", threshold="10")
        with read_connection(engine) as conn:
            at = moments(rule, NOW, 1)
            found = preview(conn, rule, NOW, days=1, seconds=float("inf"))
            states: dict[str, State] = {}
            expected: list[int] = []
            begun = read_rule(
                {"condition": condition.name, "last": "24h", "least": "5", "threshold": "10"},
                project_id=1, audience="system", now=at[0],
            )  # fmt: skip
            for moment in at:
                states, notices = advance(begun, states, measure(conn, rule, moment), moment)
                expected += [moment for each in notices if each.event == "firing"]
        assert [each.began_at for each in found.firings] == expected, condition.name
        assert (found.moments, found.complete) == (len(at), True)


def test_kinds_and_counts_are_those_of_the_rows(engine: Engine):
    """What a rule measures is recounted from the stored rows in plain Python."""
    scope = scope_of(engine, "since:20d -time:none")
    with read_connection(engine) as conn:
        began = newest_beginnings(conn, scope)
        rows = conn.execute(
            text(
                "SELECT s.fingerprint, c.occurred_at, c.chain_id FROM tool_call c JOIN signature s"
                " ON s.id = c.signature_id WHERE c.project_id = :p AND c.success = 0"
                " AND c.occurred_at >= :since AND c.time_source != 'none'"
            ),
            {"p": scope.project_id, "since": NOW - 20 * DAY_US},
        ).all()
        chains: dict[str, int] = dict(
            conn.execute(
                text("SELECT chain_id, first_failed_at FROM chain WHERE project_id = :p"),
                {"p": scope.project_id},
            ).all()
        )
        calls = measure(conn, _rule(condition="no_data", last="7d"), NOW)
        known = queries.summary(conn, scope_of(engine, "since:7d until:0s -time:none")).calls
    expected: dict[str, int] = {}
    for fingerprint, at, chain in rows:
        expected[fingerprint] = max(expected.get(fingerprint, 0), chains.get(chain, at))
    assert began == expected
    assert calls == Measured(Figure(known, known, known, calls.figure.n if calls.figure else 0))


def test_the_command_lists_previews_and_tests(
    developer: Browser, capfd: pytest.CaptureFixture[str]
):
    """Rules with their figure, when one would have fired, and why a channel is not there."""
    _save(developer, f"/alert?{NOTHING}&condition=failure_rate", name="loud", threshold="1")
    url = developer.engine.url.render_as_string(hide_password=False)
    where = ["--database-url", url, "--project", "generated"]
    assert run(["alerts", "list", *where]) == 0
    assert "loud" in capfd.readouterr().out
    assert run(["alerts", "preview", "loud", "--days", "2", *where]) == 0
    capfd.readouterr()
    assert run(["alerts", "preview", "quiet", *where]) == 1
    assert "alerts list" in capfd.readouterr().err
    assert run(["alerts", "test", "nowhere", *where]) == 1
    assert "There is no channel 'nowhere'" in capfd.readouterr().err
