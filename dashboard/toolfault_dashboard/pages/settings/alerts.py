"""Alerts: the rules with what they think, what was said, and the form with its preview."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter, HTTPException
from starlette.responses import RedirectResponse, Response

from toolfault_collector.clock import DAY_US
from toolfault_dashboard.access.policy import allows, sees
from toolfault_dashboard.alerts.evaluation import Figure
from toolfault_dashboard.alerts.preview import DAYS, Firing, Preview, preview, suggested
from toolfault_dashboard.alerts.rules import (
    CONDITIONS,
    HOUR_US,
    Condition,
    Rule,
    as_written,
    read_rule,
)
from toolfault_dashboard.alerts.store import (
    AlertMessage,
    ChannelRow,
    RuleRow,
    channel_rows,
    message_history,
    remove_rule,
    rule_rows,
    save_rule,
    snooze_rule,
)
from toolfault_dashboard.alerts.wording import figure_in_words, notice_text, rule_in_words
from toolfault_dashboard.formats import duration, plural, when
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.forms import Submitted
from toolfault_dashboard.pages.shared.frame import Context
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.queries.periods import first_call, last_call
from toolfault_dashboard.queries.projects import has_untimed
from toolfault_dashboard.search import QueryError, parse

__all__ = ["HISTORY", "RULES", "router"]


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One rule in the list."""

    row: Doc[RuleRow, "What is stored."]
    words: Doc[str, "What it watches, in words."]
    figure: Doc[str, "What was measured last, with its interval and n."]
    state: Doc[str, "`firing`, `pending`, `quiet` or `snoozed`."]
    tone: Doc[str, "How its badge is coloured."]
    href: Doc[str, "Where it is changed."]
    scope: Doc[str, "The failures that it is about."]


@dataclass(frozen=True, slots=True)
class AlertMessageLine:
    """One message in the history."""

    row: Doc[AlertMessage, "What is stored."]
    became: Doc[str, "Whether it was sent, in words."]
    href: Doc[str, "The failures that it is about."]


@dataclass(frozen=True, slots=True)
class AlertsContext(Context):
    """What `alerts.html` shows."""

    template: ClassVar[str] = "alerts.html"

    rules: Doc[Drawn, "The rules of the project, by name."]
    history: Doc[Drawn, "The newest messages, newest first."]
    channels: Doc[int, "How many channels the project has."]
    failing: Doc[tuple[str, ...], "Names of channels that could not be reached last time."]
    may_settings: Doc[bool, "Whether this person may make channels."]
    done: Doc[str, "What was just done, as a sentence; else empty."]
    links: Doc[dict[str, str], "Addresses: new, rules_csv, history_csv, settings."]


@dataclass(frozen=True, slots=True)
class FiringLine:
    """One time at which the rule would have spoken."""

    began_at: Doc[int, "When, in microseconds."]
    ended: Doc[str, "How long it went on, in words; empty where that has no meaning."]
    title: Doc[str, "What it would have said."]
    figure: Doc[str, "What was measured then; empty where it is a kind of failure."]


@dataclass(frozen=True, slots=True)
class PreviewLines:
    """What the rule would have said in the past days."""

    sentence: Doc[str, "How often it would have fired."]
    now: Doc[str, "What is measured now, or at the end of what was looked at."]
    method: Doc[str, "What was looked at."]
    firings: Doc[Drawn, "Each time, newest first."]


@dataclass(frozen=True, slots=True)
class AlertContext(Context):
    """What `alert.html` shows."""

    template: ClassVar[str] = "alert.html"

    number: Doc[int, "The rule that is changed; 0 for a new one."]
    title: Doc[str, "Heading of the page."]
    form: Doc[dict[str, str], "The fields as typed: name, condition, q, threshold, ..."]
    condition: Doc[Condition, "What is watched."]
    conditions: Doc[tuple[Condition, ...], "What can be watched."]
    windows: Doc[tuple[tuple[str, str], ...], "How much of the past: value and label."]
    channels: Doc[tuple[ChannelRow, ...], "Where messages can go."]
    usual: Doc[str, "What the figure was in the last 30 days, in words; empty if none."]
    preview: Doc[PreviewLines | None, "When it would have fired; None where the form is wrong."]
    problem: Doc[str, "What is wrong with the form; empty if nothing."]
    may_settings: Doc[bool, "Whether this person may make channels."]
    links: Doc[dict[str, str], "Addresses: alerts, settings."]


router = APIRouter()

SHOWN: Final = 50  # messages of the history on the page; the file has more
_SNOOZES: Final = {"1h": HOUR_US, "24h": DAY_US, "7d": 7 * DAY_US, "0": 0}
_OF_CONDITION: Final = ("threshold", "least", "last")
_FIELDS: Final = ("name", "condition", "q", *_OF_CONDITION, "channel", "quiet", "zone")
_TONES: Final = {"firing": "bad", "pending": "warn", "quiet": "good", "snoozed": "info"}
_DONE: Final = {
    "saved": "The rule is saved. It is evaluated within a minute.",
    "removed": "The rule is removed.",
    "snoozed": "The rule says nothing until then. What still fires afterwards is told then.",
    "woken": "The rule speaks again.",
}


_ALL: Final = 100_000  # messages of 90 days
RULES: Final = Table(
    Column("rule", "Rule", "rule", "row.rule.name", style="cell-text", file={"name": ""}),
    Column("condition", value=lambda row: rule_in_words(row.rule), file={"condition": ""}),
    Column("query", value="rule.query", file={"query": ""}),
    Column("state", "State", "state", value=lambda row: row.firing, file={"firing": "integer"}),
    Column("pending", file={"pending": "integer"}),
    Column("measured", "Measured last", "measured", "row.figure", style="cell-text",
           file={"value": "number", "low": "number", "high": "number", "n": "integer"}),
    Column("evaluated", "Evaluated", "moment", lambda row: row.evaluated_at or None,
           nothing="not yet", file={"evaluated_at": "time"}),
    Column("snooze", "Snooze", "snooze", "row.rule"),
    Column("problem", file={"problem": ""}),
    Column("remove", "Remove", "remove", "row.rule", hidden=True, style="num", label=""),
    file="alerts", rows=lambda ask: rule_rows(ask.conn, ask.project.id) if ask.project else [],
)  # fmt: skip
HISTORY: Final = Table(
    Column("when", "When", "moment", "row.decided_at", label=""),
    Column("message", "Message", "message", "row.title", style="cell-text", term=""),
    Column("rule", "Rule", value="row.rule", style="cell-text"),
    Column("sent", "Sent", "sent", "became", style="cell-text"),
    file="alert-history",
    row=AlertMessage,
    rows=lambda ask: message_history(ask.conn, ask.project.id, limit=_ALL) if ask.project else (),
    header="message",
)
FIRINGS: Final = Table(
    Column("when", "When", "moment", "began_at", style="nowrap", label=""),
    Column("title", "Message", "name", style="cell-text", term=""),
    Column("figure", "Measured then", "plain", style="cell-text"),
    Column("ended", "Lasted", "plain"),
    header="title",
)


@router.get("/alerts", name="alerts")
def alerts(ask: Asked) -> Response:
    """Render the rules and what they said."""
    number = ask.project.id if ask.project else 0
    channels = channel_rows(ask.conn, number)
    context = AlertsContext(
        rules=RULES.drawn(_line(ask, row) for row in rule_rows(ask.conn, number)),
        history=HISTORY.drawn(
            _message(ask, row) for row in message_history(ask.conn, number, limit=SHOWN)
        ),
        channels=len(channels),
        failing=tuple(each.name for each in channels if each.failures),
        may_settings=allows(ask.viewer.role, "admin"),
        done=_DONE.get(ask.request.query_params.get("done", ""), ""),
        links={
            "new": ask.link("/alert", "", window=""),
            "rules_csv": ask.link("/alerts.csv", "", window=""),
            "history_csv": ask.link("/alert-history.csv", "", window=""),
            "settings": ask.link("/settings", "", window="") + "#channels",
        },
    )
    return ask.render(context, title="Alerts")


def _line(ask: Ask, row: RuleRow) -> AlertLine:
    rule, state = row.rule, _state(row, ask.now)
    return AlertLine(
        row=row,
        words=rule_in_words(rule),
        figure=figure_in_words(rule, row.figure),
        state=state,
        tone=_TONES[state],
        href=ask.link("/alert", "", window="", id=str(rule.id)),
        scope=ask.link("/failures", rule.query, window=""),
    )


def _state(row: RuleRow, now: int) -> str:
    if row.rule.snoozed_until > now:
        return "snoozed"
    return "firing" if row.firing else "pending" if row.pending else "quiet"


def _message(ask: Ask, row: AlertMessage) -> AlertMessageLine:
    if row.sent_at is not None:
        became = f"sent to {row.channel}"
    elif not row.channel:
        became = "no channel"
    elif row.attempts:
        became = f"{row.channel}: {plural(row.attempts, 'attempt')} failed, tried again"
    else:
        became = f"waits for {row.channel}"
    return AlertMessageLine(row, became, ask.link("/failures", row.query, window=""))


@router.get("/alert", name="alert")
def alert(ask: Asked) -> Response:
    """Render the form of one rule, filled from the rule or the address, with its preview."""
    given = ask.request.query_params
    number = _number(given.get("id", ""))
    form = _fitting({name: given[name] for name in (*_FIELDS, "was") if name in given})
    if number and "condition" not in form:
        form = as_written(_own_rule(ask, number).rule)
    return _page(ask, form, number)


def _fitting(form: dict[str, str]) -> dict[str, str]:
    """Return the form without what was typed for another condition than it asks for now."""
    if not _has_turned(form):
        return form
    return {name: text for name, text in form.items() if name not in _OF_CONDITION}


def _has_turned(form: dict[str, str]) -> bool:
    return form.get("was", "") not in ("", form.get("condition", ""))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= 18 else 0


def _own_rule(ask: Ask, number: int) -> RuleRow:
    rows = rule_rows(ask.conn, ask.project.id) if ask.project else []
    found = next((row for row in rows if row.rule.id == number), None)
    if found is None:
        raise HTTPException(404, "There is no such rule in this project.")
    return found


def _read(ask: Ask, form: dict[str, str], number: int) -> Rule:
    return read_rule(
        form,
        project_id=ask.project.id if ask.project else 0,
        audience=sees(ask.viewer.role),
        now=ask.now,
        id=number,
    )


def _page(ask: Ask, form: dict[str, str], number: int, problem: str = "") -> Response:
    """Render the form with what *form* holds; what it leaves out gets its default."""
    status = 422 if problem else 200
    condition = CONDITIONS.get(form.get("condition", ""), CONDITIONS["failure_rate"])
    lines, usual = None, ""
    try:
        rule = _read(ask, form, number)
        if ask.project is not None:
            end = _looked_until(ask)
            rule, usual = _with_usual(ask, rule, form, end)
            lines = _preview(ask, rule, preview(ask.conn, rule, end), end)
            if lines.method and first_call(ask.conn, ask.scope_of(parse(""))) is None:
                lines = replace(lines, sentence=_without_times(ask), now="", method="")
        form = as_written(rule) | {"name": form.get("name", "")}
    except (ValueError, QueryError) as error:
        problem, status = problem or str(error), 422
    number_of_project = ask.project.id if ask.project else 0
    context = AlertContext(
        number=number,
        title="Change the alert" if number else "New alert",
        form={name: form.get(name, "") for name in _FIELDS},
        condition=condition,
        conditions=tuple(CONDITIONS.values()),
        windows=_windows(condition.kind),
        channels=channel_rows(ask.conn, number_of_project),
        usual=usual,
        preview=lines,
        problem=problem,
        may_settings=allows(ask.viewer.role, "admin"),
        links={
            "alerts": ask.link("/alerts", "", window=""),
            "settings": ask.link("/settings", "", window="") + "#channels",
        },
    )
    return ask.render(context, title=context.title, status=status)


def _looked_until(ask: Ask) -> int:
    """Return where the past to look at ends: now, or with the day of an old newest failure.

    Who imports transcripts of last year sees what a rule would have said then. Where calls go on
    and none of them fails, the past is the last days.
    """
    newest = ask.project.last_failure_at if ask.project else None
    if newest is None or newest >= ask.now - DAYS * DAY_US:
        return ask.now
    called = last_call(ask.conn, ask.scope_of(parse("")))
    goes_on = called is not None and called >= ask.now - DAYS * DAY_US
    return ask.now if goes_on else (newest // DAY_US + 1) * DAY_US


def _past(ask: Ask, days: str, end: int) -> str:
    """Name the *days* that end at *end*, to be put into a sentence."""
    if end == ask.now:
        return f"in the last {days} days"
    day = when(end - 1).partition(",")[0]
    return f"in the {days} days that end with {day}, the day of the newest failure"


def _without_times(ask: Ask) -> str:
    if ask.project is not None and has_untimed(ask.conn, ask.project.id):
        return (
            "The calls of this project have no times, as in some transcripts, so the past cannot "
            "be looked at. The rule speaks about calls that arrive from now on."
        )
    return "No call of this project has arrived yet."


def _windows(kind: str) -> tuple[tuple[str, str], ...]:
    if kind == "digest":
        return (("24h", "every day"), ("7d", "every Monday"))
    return (("1h", "hour"), ("6h", "6 hours"), ("24h", "24 hours"), ("7d", "7 days"))


def _with_usual(ask: Ask, rule: Rule, form: dict[str, str], end: int) -> tuple[Rule, str]:
    """Return the rule with a threshold that fits its past until *end*, unless one was given."""
    usual, threshold = suggested(ask.conn, rule, end)
    if usual is None:
        return rule, ""
    past = _past(ask, str(DAYS), end)
    words = f"{past[0].upper()}{past[1:]}: {figure_in_words(rule, usual)}"
    return (
        rule if form.get("threshold", "").strip() else replace(rule, threshold=threshold)
    ), words


def _preview(ask: Ask, rule: Rule, found: Preview, end: int) -> PreviewLines:
    if rule.asks.kind == "digest":
        return PreviewLines(
            "It is sent when there is something to tell.", "", "", FIRINGS.drawn(())
        )
    project = ask.project.name if ask.project else ""
    times = len(found.firings)
    often = "not have fired" if not times else f"have fired {plural(times, 'time')}"
    days = (found.moments - 1) * found.step / DAY_US
    past = _past(ask, str(DAYS) if found.complete else f"{days:.1f}", end)
    method = (
        f"Looked at {plural(found.moments, 'moment')}, {duration(found.step / 1_000)} apart; the "
        "server looks every minute."
    )
    if not found.complete:
        method += " There was no time to look further back."
    return PreviewLines(
        sentence=f"It would {often} {past}.",
        now=f"{'Now' if end == ask.now else 'Then'}: {_now(rule, found)}.",
        method=method,
        firings=FIRINGS.drawn(_firing(rule, each, project) for each in reversed(found.firings)),
    )


def _now(rule: Rule, found: Preview) -> str:
    if rule.asks.kind == "kinds":
        kinds = len([each for each in found.now.sightings if each.failures >= rule.least])
        return f"{plural(kinds, 'kind')} in the last {rule.window}"
    return figure_in_words(rule, found.now.figure)


def _firing(rule: Rule, firing: Firing, project: str) -> FiringLine:
    notice = firing.notice
    figure: Figure | None = notice.figure
    if figure is None:
        ended = ""
    elif firing.ended_at is None:
        ended = "still"
    else:
        ended = duration((firing.ended_at - firing.began_at) / 1_000)
    return FiringLine(
        began_at=firing.began_at,
        ended=ended,
        title=notice_text(rule, notice, project).title,
        figure="" if figure is None else figure_in_words(rule, figure),
    )


@router.post("/alerts", name="save_alert")
def save(ask: Asked, form: Submitted) -> Response:
    """Store a rule; a form with a mistake comes back with what to do about it."""
    number = _number(form.get("id", ""))
    if ask.project is None:
        raise HTTPException(404, "There is no project yet.")
    if _has_turned(form):
        return _page(ask, _fitting(form), number, "Look at the fields of this condition, and save.")
    try:
        rule = _read(ask, form, number)
        save_rule(ask.services.engine, rule, actor=ask.viewer.name)
    except LookupError:
        raise HTTPException(404, "There is no such rule or channel in this project.") from None
    except ValueError as error:
        return _page(ask, form, number, str(error))
    return _done(ask, "saved")


def _done(ask: Ask, what: str) -> Response:
    return RedirectResponse(ask.link("/alerts", "", window="", done=what), status_code=303)


@router.post("/alerts/remove", name="remove_alert")
def remove(ask: Asked, form: Submitted) -> Response:
    """Remove a rule."""
    try:
        remove_rule(
            ask.services.engine,
            ask.project.id if ask.project else 0,
            _number(form.get("id", "")),
            actor=ask.viewer.name,
        )
    except LookupError:
        raise HTTPException(404, "There is no such rule in this project.") from None
    return _done(ask, "removed")


@router.post("/alerts/snooze", name="snooze_alert")
def snooze(ask: Asked, form: Submitted) -> Response:
    """Let a rule say nothing for a while, or let it speak again."""
    length = _SNOOZES.get(form.get("for", ""))
    if length is None:
        raise HTTPException(422, f"Snooze a rule for one of {', '.join(_SNOOZES)}.")
    try:
        snooze_rule(
            ask.services.engine,
            ask.project.id if ask.project else 0,
            _number(form.get("id", "")),
            ask.now + length if length else 0,
            actor=ask.viewer.name,
        )
    except LookupError:
        raise HTTPException(404, "There is no such rule in this project.") from None
    return _done(ask, "snoozed" if length else "woken")
