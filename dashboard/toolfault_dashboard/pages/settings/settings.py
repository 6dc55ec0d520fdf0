"""Settings: keys, people and roles, what the server keeps, and who changed what."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from os import environ
from typing import Annotated as Doc
from typing import ClassVar, Final, cast

from fastapi import APIRouter, HTTPException
from sqlalchemy import Connection
from starlette.responses import Response

from toolfault_collector.admin.audit import Act, acts, note
from toolfault_collector.admin.keys import KeyKind, create_key, list_keys, revoke_key, shown
from toolfault_collector.admin.project_settings import (
    ProjectSettings,
    change_settings,
    kept,
    settings_of,
)
from toolfault_collector.clickhouse import outbox
from toolfault_collector.otlp.soft_rules import soft_rules_of, switch_soft_rules
from toolfault_collector.pipeline.quota import events_left
from toolfault_collector.retention.policy import Limits, prune_projects, why_refused
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_dashboard.access import signin
from toolfault_dashboard.access.policy import ROLES
from toolfault_dashboard.access.signin import Account
from toolfault_dashboard.alerts.addresses import networks_of
from toolfault_dashboard.alerts.service import send_test
from toolfault_dashboard.alerts.store import ChannelRow, channel_rows, make_channel, remove_channel
from toolfault_dashboard.analysis.prices import ENVIRONMENT as PRICES
from toolfault_dashboard.analysis.prices import parse_prices
from toolfault_dashboard.formats import count, percent, percent_interval, plural
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.forms import Submitted
from toolfault_dashboard.pages.shared.frame import Context
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.predictions import held, outcomes
from toolfault_dashboard.queries.reading import EventsUnavailable
from toolfault_dashboard.queries.rows import ProjectRow
from toolfault_dashboard.render import query_string
from toolfault_dashboard.search import parse
from toolfault_dashboard.search.states import NEW_DAYS
from toolfault_dashboard.writes.picked_fixes import picked_fixes

__all__ = ["API_KEYS", "AUDIT", "CHANNELS", "PEOPLE", "router"]


@dataclass(frozen=True, slots=True)
class ProjectLine:
    """A project in the list."""

    row: Doc[ProjectRow, "What is stored."]
    href: Doc[str, "Its settings."]
    current: Doc[bool, "Whether these settings are its."]


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One setting of the project that can be changed here."""

    name: Doc[str, "Name of its field."]
    label: Doc[str, "What it is, in words."]
    value: Doc[str, "What is stored; empty where the server decides."]
    default: Doc[str, "What the server decides, as it would be written here."]
    meaning: Doc[str, "What it does, and what an empty field means."]
    number: Doc[bool, "Whether it is a whole number."]


@dataclass(frozen=True, slots=True)
class SettingsContext(Context):
    """What `settings.html` shows."""

    template: ClassVar[str] = "settings.html"

    project: Doc[str, "The project whose keys are shown; empty before there is one."]
    projects: Doc[Drawn, "All projects of this server, by name."]
    keys: Doc[Drawn, "Its keys, oldest first, revoked ones included."]
    accounts: Doc[Drawn, "All accounts, by name."]
    roles: Doc[tuple[str, ...], "The roles to choose from, lowest first."]
    acts: Doc[Drawn, "The newest rows of the audit log, newest first."]
    role_meanings: Doc[Drawn, "Each role: its name, what it sees, what it may write."]
    settings: Doc[tuple[SettingLine, ...], "Retention, new kinds and prices of the project."]
    predictions: Doc[str, "How well predictions of Fix next held, as a sentence."]
    soft_rules: Doc[Drawn, "Soft rules as they are for the project."]
    server: Doc[Drawn, "What the environment decides: name, value, variable."]
    channels: Doc[Drawn, "Where alerts are sent, without what is secret."]
    links: Doc[dict[str, str], "Addresses of the tables as CSV: keys, channels, people, audit."]
    secret: Doc[str, "A key or sign-in link just made, shown this once; else empty."]
    secret_title: Doc[str, "What the secret is, in words."]
    secret_hint: Doc[str, "What becomes of it."]
    done: Doc[str, "What was just done, as a sentence; else empty."]
    problem: Doc[str, "Why something was not done; else empty."]


router = APIRouter()

_FILES: Final = ("keys", "channels", "people", "audit")
_HASHED: Final = "It is shown this once and kept as a hash only."
_KINDS: Final = ("ingest", "read")
_RULES_APPLY: Final = "This counts for what arrives from now on; what is stored stays as it is."
_ACTS: Final = 100_000  # years of it
ACTS: Final = 50  # of the audit log; `toolfault audit` lists all
ROLE_MEANINGS: Final = (
    ("viewer", "what users were told; counts, rates and chains", "saved views of their own"),
    (
        "developer",
        "also what the model was told, sent and received",
        "changes, states of kinds, Fix next, alert rules",
    ),
    ("operator", "everything, also tracebacks, users and rejected events", "as a developer"),
    ("admin", "everything", "API keys, people and roles, retention and prices, alert channels"),
)
"""Role, what it sees, what it may write."""
API_KEYS: Final = Table(
    Column("prefix", "Key", "key", file={"key": ""}),
    Column("kind", "Kind", "kind", file={"kind": ""}),
    Column("label", "Label", nothing="–", file={"label": ""}),
    Column("created_at", "Created", "day", file={"created_at": "time"}),
    Column("last_used_at", "Last used", "moment", nothing="never", file={"last_used_at": "time"}),
    Column("revoked_at", "Revoke", "revoke", hidden=True, style="num", label="",
           file={"revoked_at": "time"}),
    file="keys", rows=lambda ask: list_keys(ask.conn, ask.project.id) if ask.project else [],
)  # fmt: skip
CHANNELS: Final = Table(
    Column("name", "Channel"),
    Column("kind", "Type"),
    Column("state", "State", "channel_state", "failures", style="cell-text"),
    Column("sent_at", "Last sent", "moment", nothing="never"),
    Column("test", "Test or remove", "test_or_remove", "name", hidden=True, style="num", label=""),
    file="channels",
    row=ChannelRow,
    rows=lambda ask: channel_rows(ask.conn, ask.project.id) if ask.project else (),
)
PEOPLE: Final = Table(
    Column("name", "Name"),
    Column("state", "State", "state", label=""),
    Column("last_sign_in_at", "Last sign-in", "moment", nothing="never"),
    Column("role", "Role", "role"),
    file="people", row=Account, rows=lambda ask: signin.accounts(ask.conn),
)  # fmt: skip
SOFT_RULES: Final = Table(
    Column("name", "Rule", "rule"),
    Column("meaning", "A call failed if", "ticked", style="cell-text", label=""),
    Column("since", "Since", "moment", label=""),
)
PROJECTS: Final = Table(
    Column("name", "Project", "project_name", "row.name", term=""),
    Column("created", "Created", "day", "row.created_at"),
    Column("last_failure", "Last failure", "moment", "row.last_failure_at",
           nothing="none, or of unknown time"),
)  # fmt: skip
ROLE_TABLE: Final = Table(
    Column("role", "Role", value=itemgetter(0)),
    Column("sees", "Sees", value=itemgetter(1)),
    Column("writes", "May write", value=itemgetter(2)),
)
SERVER: Final = Table(
    Column("name", "What", value=itemgetter(0)),
    Column("value", "Now", value=itemgetter(1)),
    Column("variable", "Variable", "variable", itemgetter(2)),
)
AUDIT: Final = Table(
    Column("when", "When", "moment", "occurred_at", label=""),
    Column("actor", "Who"),
    Column("action", "What", "whole_code", label=""),
    Column("project", "Project", nothing="–", term=""),
    Column("detail", "Details", "detail", style="cell-text", label=""),
    file="audit", row=Act, rows=lambda ask: acts(ask.conn, limit=_ACTS), header="actor",
)  # fmt: skip


def _server(settings: Settings, left: int | None, copied: str) -> tuple[tuple[str, str, str], ...]:
    """Return what the environment decides: name, value in words, variable.

    Args:
        settings: Of the server.
        left: Events that the project may still send now; None without a quota.
        copied: How far events are copied to ClickHouse; empty where none are.
    """
    quota = settings.quota_events_per_minute
    in_force = f"{plural(quota, 'event')} a minute" if quota else "no limit"
    if left is not None:
        in_force += f"; {count(quota - left)} used, {count(left)} left at this moment"
    return (
        ("Quota of a project", in_force, "TOOLFAULT_QUOTA_EVENTS_PER_MINUTE"),
        ("Trace links", settings.trace_url or "none", "TOOLFAULT_TRACE_URL"),
        ("Links in alerts", settings.public_url or "none", "TOOLFAULT_PUBLIC_URL"),
        (
            "Private networks for alerts",
            settings.alert_networks or "none",
            "TOOLFAULT_ALERT_NETWORKS",
        ),
        *([("Events on ClickHouse", copied, "TOOLFAULT_EVENTS_URL")] if copied else []),
    )


def _copied(conn: Connection) -> str:
    if not outbox.is_installed(conn):
        return ""
    if not outbox.is_noting(conn):
        return "not for now: ClickHouse was away for too long; all are copied anew once it answers"
    waiting = outbox.count(conn)
    return f"{plural(waiting, 'change')} not copied yet" if waiting else "all are copied"


def _settings(stored: ProjectSettings, server: Settings) -> tuple[SettingLine, ...]:
    """Return the settings of the project as fields of a form."""
    prices = environ.get(PRICES, "")
    return (
        SettingLine(
            "retention_days",
            "Keep calls for (days)",
            _written(stored.retention_days),
            str(server.retention_days or "0: keep for ever"),
            "Deletes conversations received more than so many days ago. 0 = never.",
            number=True,
        ),
        SettingLine(
            "retention_calls",
            "Keep at most (calls)",
            _written(stored.retention_calls),
            str(server.retention_calls or "0, no limit"),
            "Deletes the oldest conversations beyond about so many calls. 0 = no limit.",
            number=True,
        ),
        SettingLine(
            "new_kind_days",
            "A kind is new for (days)",
            _written(stored.new_kind_days),
            str(NEW_DAYS),
            "Kinds of failure count as new for so many days, unless somebody touches them.",
            number=True,
        ),
        SettingLine(
            "token_prices",
            "Prices of a million tokens",
            _written(stored.token_prices),
            prices or "none",
            "Shows tokens lost as money, in any currency that all prices share. Write model=price; "
            "the first match counts, and * matches anything: gpt*=3,*=1.",
            number=False,
        ),
    )


def _written(value: object) -> str:
    return "" if value is None else str(value)


def _predictions(ask: Ask) -> str:
    picked = picked_fixes(ask.conn, ask.project.id) if ask.project else ()
    if not picked:
        return "Nobody has added a fix to Fix next yet, so there is no prediction to check."
    try:
        found = held(outcomes(ask.conn, ask.scope_of(parse("")), picked))
    except EventsUnavailable as away:
        return str(away)
    if not found.n:
        added = plural(len(picked), "fix", "fixes")
        return (
            f"Not enough data: of {added} that people added to Fix next, none has a prediction and"
            " a change of its tool since, with enough calls after it."
        )
    return (
        f"{count(found.count)} of {plural(found.n, 'prediction')} held:"
        f" {percent(found.value)} (95%: {percent_interval(found)}). A prediction holds when what"
        " was saved since the change of the tool lies within the interval predicted for so long a"
        " time; some 95% should."
    )


def _page(
    ask: Ask,
    *,
    secret: tuple[str, str] = ("", ""),
    hint: str = _HASHED,
    done: str = "",
    problem: str = "",
    status: int = 200,
) -> Response:
    # A snapshot of its own: the request's began before what was just written.
    with read_connection(ask.services.engine) as conn:
        keys = list_keys(conn, ask.project.id) if ask.project else []
        channels = channel_rows(conn, ask.project.id) if ask.project else ()
        accounts = signin.accounts(conn)
        log = acts(conn, limit=ACTS)
        stored = settings_of(conn, ask.project.id) if ask.project else ProjectSettings()
        rules = soft_rules_of(conn, ask.project.id) if ask.project else ()
        quota = ask.services.settings.quota_events_per_minute
        copied = _copied(conn)
        left = (
            events_left(conn, ask.project.id, quota, now=ask.now) if ask.project and quota else None
        )
    context = SettingsContext(
        project=ask.project.name if ask.project else "",
        projects=PROJECTS.drawn(
            ProjectLine(
                row=each,
                href="/settings" + query_string({"project": each.name}),
                current=each == ask.project,
            )
            for each in sorted(ask.projects, key=lambda each: each.name)
        ),
        keys=API_KEYS.drawn(keys),
        channels=CHANNELS.drawn(channels),
        accounts=PEOPLE.drawn(accounts),
        roles=ROLES,
        acts=AUDIT.drawn(log),
        role_meanings=ROLE_TABLE.drawn(ROLE_MEANINGS),
        settings=_settings(stored, ask.services.settings),
        predictions=_predictions(ask),
        soft_rules=SOFT_RULES.drawn(rules),
        server=SERVER.drawn(_server(ask.services.settings, left, copied)),
        links={name: ask.link(f"/{name}.csv", "", window="") for name in _FILES},
        secret_title=secret[0],
        secret=secret[1],
        secret_hint=hint,
        done=done,
        problem=problem,
    )
    return ask.render(context, title="Settings", status=status)


@router.get("/settings", name="settings")
def settings(ask: Asked) -> Response:
    """Render keys and people."""
    return _page(ask)


@router.post("/settings/keys", name="make_key")
def make_key(ask: Asked, form: Submitted) -> Response:
    """Make a key and show it this once."""
    kind, label = form.get("kind", ""), form.get("label", "").strip()[:128]
    if ask.project is None or kind not in _KINDS:
        return _page(ask, problem="Choose what the key is for.", status=422)
    with write_transaction(ask.services.engine) as conn:
        key = create_key(conn, ask.project.id, cast("KeyKind", kind), label=label)
        note(
            conn,
            "key_created",
            actor=ask.viewer.name,
            project_id=ask.project.id,
            kind=kind,
            key=shown(key),
        )
    return _page(ask, secret=(f"New {kind} key of {ask.project.name}", key))


@router.post("/settings/keys/revoke", name="revoke_key")
def end_key(ask: Asked, form: Submitted) -> Response:
    """Revoke a key of this project; one of another project is not found."""
    number = form.get("id", "")
    if ask.project is None or not number.isdecimal() or len(number) > 9:
        raise HTTPException(404, "There is no such key in this project.")
    with write_transaction(ask.services.engine) as conn:
        ended = revoke_key(conn, int(number), project_id=ask.project.id)
        if not ended:
            raise HTTPException(404, "There is no such key in this project.")
        note(
            conn,
            "key_revoked",
            actor=ask.viewer.name,
            project_id=ask.project.id,
            key_id=int(number),
        )
    ask.services.forget_keys()
    return _page(ask, done="The key is revoked; whoever still uses it is refused.")


@router.post("/settings/project", name="change_settings")
def change(ask: Asked, form: Submitted) -> Response:
    """Change how long the calls of the project are kept and what its tokens cost."""
    if ask.project is None:
        raise HTTPException(404, "There is no project yet.")
    try:
        wanted = ProjectSettings(
            retention_days=_whole(form.get("retention_days", "")),
            retention_calls=_whole(form.get("retention_calls", "")),
            token_prices=form.get("token_prices", "").strip() or None,
            new_kind_days=_whole(form.get("new_kind_days", "")),
        )
        parse_prices(wanted.token_prices or "")
        with write_transaction(ask.services.engine) as conn:
            changed = change_settings(conn, ask.project.id, wanted, actor=ask.viewer.name)
    except ValueError as error:
        return _page(ask, problem=str(error), status=422)
    return _page(ask, done=_outlook(ask, wanted) if changed else "Nothing was changed.")


def _whole(text: str) -> int | None:
    """Read a whole number; None for an empty field.

    Raises:
        ValueError: It is none.
    """
    plain = text.strip()
    if not plain:
        return None
    if not (plain.isascii() and plain.isdecimal() and len(plain) <= 15):
        raise ValueError("Write days and calls as whole numbers, or leave the field empty.")
    return int(plain)


def _outlook(ask: Ask, wanted: ProjectSettings) -> str:
    """Say what the next maintenance makes of it, since what is removed does not come back."""
    assert ask.project is not None, "checked by the caller"
    days, calls = kept(wanted, ask.services.settings)
    if not (days or calls):
        return "Saved. Everything is kept."
    limits = {ask.project.id: Limits(days or None, calls or None)}
    with read_connection(ask.services.engine) as conn:
        refusal = why_refused(conn, limits, ask.now)
    if refusal is not None:
        return f"Saved, but nothing is removed for now: {refusal}."
    old = prune_projects(ask.services.engine, limits, dry_run=True, clock=lambda: ask.now)
    if not old.calls:
        return "Saved. Nothing is older than that."
    conversations, gone = plural(old.conversations, "conversation"), plural(old.calls, "call")
    return f"Saved. {conversations} with {gone} will be removed within five minutes."


@router.post("/settings/channels", name="make_channel")
def add_channel(ask: Asked, form: Submitted) -> Response:
    """Add a channel; its address is not shown again, the secret of a webhook this once."""
    if ask.project is None:
        raise HTTPException(404, "There is no project yet.")
    name = form.get("name", "").strip()
    try:
        secret = make_channel(
            ask.services.engine,
            ask.project.id,
            name=name,
            kind=form.get("kind", ""),
            url=form.get("url", "").strip(),
            allowed=networks_of(ask.services.settings.alert_networks),
            actor=ask.viewer.name,
            now=ask.now,
        )
    except ValueError as error:
        return _page(ask, problem=str(error), status=422)
    if not secret:
        return _page(ask, done=f"The channel {name} is added. Send a test to see that it works.")
    hint = "Its receiver checks signatures with it. It is shown this once."
    return _page(ask, secret=(f"Signing secret of the webhook {name}", secret), hint=hint)


@router.post("/settings/channels/remove", name="remove_channel")
def end_channel(ask: Asked, form: Submitted) -> Response:
    """Remove a channel of this project with what waits for it."""
    project, number = _of_project(ask, form)
    try:
        remove_channel(ask.services.engine, project, number, actor=ask.viewer.name)
    except LookupError:
        raise HTTPException(404, "There is no such channel in this project.") from None
    except ValueError as error:
        return _page(ask, problem=str(error), status=422)
    return _page(ask, done="The channel is removed, with the messages that waited for it.")


@router.post("/settings/channels/test", name="test_channel")
def test_channel(ask: Asked, form: Submitted) -> Response:
    """Send a test message now, and say how that went."""
    project, number = _of_project(ask, form)
    try:
        problem = send_test(
            ask.services.engine,
            ask.services.settings,
            project,
            number,
            actor=ask.viewer.name,
            now=ask.now,
        )
    except LookupError:
        raise HTTPException(404, "There is no such channel in this project.") from None
    if problem is not None:
        return _page(ask, problem=f"The test was not sent. {problem}", status=422)
    return _page(ask, done="The test is sent.")


def _of_project(ask: Ask, form: dict[str, str]) -> tuple[int, int]:
    """Return the project and the number of the channel that a form names."""
    number = form.get("id", "")
    if ask.project is None or not number.isdecimal() or len(number) > 18:
        raise HTTPException(404, "There is no such channel in this project.")
    return ask.project.id, int(number)


@router.post("/settings/soft-rules", name="switch_soft_rules")
def switch_rules(ask: Asked, form: Submitted) -> Response:
    """Switch the soft rules of the project: those that are checked count."""
    if ask.project is None:
        raise HTTPException(404, "There is no project yet.")
    with write_transaction(ask.services.engine) as conn:
        off = [each.name for each in soft_rules_of(conn, ask.project.id) if each.name not in form]
        changed = switch_soft_rules(conn, ask.project.id, off, actor=ask.viewer.name, now=ask.now)
    if not changed:
        return _page(ask, done="Nothing was changed.")
    named = ", ".join(f"{each.name} is {'on' if each.on else 'off'}" for each in changed)
    return _page(ask, done=f"{named}. {_RULES_APPLY}")


@router.post("/settings/people", name="invite")
def invite(ask: Asked, form: Submitted) -> Response:
    """Make a one-time sign-in link for an account, which is made if it is new."""
    name, role = form.get("name", "").strip(), form.get("role", "viewer")
    if not name.isprintable() or not 0 < len(name) <= 128 or role not in ROLES:
        return _page(ask, problem="Give a name of 1 to 128 characters and a role.", status=422)
    token = signin.create_link(
        ask.services.engine, now=ask.now, name=name, role=role, actor=ask.viewer.name
    )
    url = f"{ask.request.url.scheme}://{ask.request.url.netloc}/sign-in?token={token}"
    return _page(ask, secret=(f"Sign-in link for {name}, works once and for 24 hours", url))


@router.post("/settings/people/role", name="set_role")
def change_role(ask: Asked, form: Submitted) -> Response:
    """Give an account another role, or end it; its sessions end with that."""
    name, role = form.get("name", ""), form.get("role", "")
    try:
        if role == "none":
            signin.disable(ask.services.engine, name, now=ask.now, actor=ask.viewer.name)
        elif role in ROLES:
            signin.set_role(ask.services.engine, name, role, now=ask.now, actor=ask.viewer.name)
        else:
            return _page(ask, problem="Choose a role.", status=422)
    except LookupError:
        raise HTTPException(404, "There is no account of that name.") from None
    except signin.LastAdminError as error:
        return _page(ask, problem=str(error), status=422)
    return _page(ask, done=f"{name} has to sign in again.")
