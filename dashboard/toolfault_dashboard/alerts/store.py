"""Rules, channels, states and the outbox: what is stored of alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import uuid_utils
from sqlalchemy import (
    LABEL_STYLE_TABLENAME_PLUS_COL,
    Connection,
    Engine,
    delete,
    func,
    insert,
    select,
    update,
)

from toolfault_collector.admin.audit import note
from toolfault_collector.clock import DAY_US, MINUTE_US, SECOND_US
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import (
    alert_channel,
    alert_message,
    alert_rule,
    alert_state,
    project,
)
from toolfault_dashboard.alerts.addresses import Networks
from toolfault_dashboard.alerts.channels import Channel, check_url, new_secret
from toolfault_dashboard.alerts.evaluation import Figure, State
from toolfault_dashboard.alerts.rules import Rule
from toolfault_dashboard.alerts.wording import Text
from toolfault_dashboard.queries.figures.alerting import came_back

__all__ = [
    "FORGOTTEN_US",
    "KEPT_US",
    "MOST_CHANNELS",
    "MOST_PER_MINUTE",
    "MOST_RULES",
    "AlertMessage",
    "ChannelRow",
    "Due",
    "RuleRow",
    "back_off",
    "channel_of",
    "channel_rows",
    "due_messages",
    "end_waiting",
    "make_channel",
    "mark_failed",
    "mark_sent",
    "message_history",
    "note_channel",
    "note_evaluation",
    "prune_messages",
    "put_messages",
    "remove_channel",
    "remove_rule",
    "rule_rows",
    "save_rule",
    "snooze_rule",
    "states_of",
    "write_states",
]

MOST_RULES: Final = 50
"""Rules of one project: each costs a look at the figures a minute."""

MOST_CHANNELS: Final = 20
"""Channels of one project."""

MOST_PER_MINUTE: Final = 20
"""Messages that one channel is sent in a minute; the others wait."""

KEPT_US: Final = 90 * DAY_US
"""How long a message that was sent stays in the history."""

FORGOTTEN_US: Final = 30 * DAY_US
"""After how long a rule forgets that it told of a kind that was quiet since."""

_FIRST_RETRY_US: Final = MINUTE_US
_LAST_RETRY_US: Final = 60 * MINUTE_US
_LONGEST_NAME: Final = 128


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule as it is listed, with what its last evaluation found."""

    rule: Rule
    project: str
    created_by: str
    evaluated_at: int  # 0 before the first
    seen: str  # how much of the project that evaluation knew
    figure: Figure | None
    problem: str
    firing: int  # subjects that it fires for
    pending: int


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A channel as it is shown: without its address and its secret."""

    id: int
    name: str
    kind: str
    created_by: str
    created_at: int
    failures: int  # attempts in a row that failed
    error: str  # why the last one did; empty when it went well
    retry_at: int | None  # when it is tried again; None where the last attempt went well
    sent_at: int | None
    waiting: int  # messages that are not sent yet


@dataclass(frozen=True, slots=True)
class AlertMessage:
    """One message to one channel, as the history lists it."""

    decided_at: int
    rule: str
    event: str
    title: str
    body: str
    query: str
    channel: str  # empty where there was none
    attempts: int
    sent_at: int | None
    error: str


@dataclass(frozen=True, slots=True)
class Due:
    """A message that is to be sent now, and where to."""

    id: int
    attempts: int
    failures: int  # of the channel, in a row
    message_id: str
    project: str
    rule: str
    event: str
    subject: str
    title: str
    body: str
    query: str
    decided_at: int
    channel: Channel


def rule_rows(conn: Connection, project_id: int | None = None) -> list[RuleRow]:
    """Return the rules of a project, or of all, by name."""
    rule, state = alert_rule.c, alert_state.c

    def subjects(phase: str) -> Any:
        counted = select(func.count()).select_from(alert_state)
        return counted.where(state.rule_id == rule.id, state.phase == phase).scalar_subquery()

    statement = (
        select(
            alert_rule,
            project.c.name.label("project"),
            subjects("firing").label("firing"),
            subjects("pending").label("pending"),
        )
        .join(project, project.c.id == rule.project_id)
        .order_by(rule.name, rule.id)
    )
    if project_id is not None:
        statement = statement.where(rule.project_id == project_id)
    return [_rule_row(row) for row in conn.execute(statement)]


def _rule_row(row: Any) -> RuleRow:
    rule = Rule(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        condition=row.condition,
        query=row.query,
        audience=row.audience,
        threshold=row.threshold,
        least=row.least,
        window_us=row.window_us,
        channel_id=row.channel_id,
        quiet=row.quiet,
        zone=row.zone,
        snoozed_until=row.snoozed_until,
        created_at=row.created_at,
    )
    return RuleRow(
        rule=rule,
        project=row.project,
        created_by=row.created_by,
        evaluated_at=row.evaluated_at,
        seen=row.seen,
        figure=Figure(**row.figure) if row.figure else None,
        problem=row.problem or "",
        firing=row.firing,
        pending=row.pending,
    )


# What a rule means; the rest says where its messages go and when.
_MEANING: Final = ("condition", "query", "threshold", "least", "window_us", "audience")


def save_rule(engine: Engine, rule: Rule, *, actor: str) -> int:
    """Store *rule*, new where its id is 0, and return its number.

    A rule that now means something else begins anew: nothing from before is news to it.

    Args:
        engine: A writable engine.
        rule: As `rules.read_rule` gives it; its ``created_at`` is now.
        actor: Who makes it.

    Raises:
        LookupError: There is no such rule or channel in the project.
        ValueError: The name is taken, or there are too many rules.
    """
    table = alert_rule.c
    own = table.project_id == rule.project_id
    with write_transaction(engine) as conn:
        if rule.channel_id is not None:
            channel_of(conn, rule.project_id, rule.channel_id)
        others = conn.execute(select(table.id, table.name).where(own)).all()
        if any(name == rule.name and number != rule.id for number, name in others):
            raise ValueError(f"There is a rule {rule.name!r} already; give this one another name.")
        values = {
            name: getattr(rule, name) for name in ("name", "channel_id", "quiet", "zone", *_MEANING)
        }
        if not rule.id:
            if len(others) >= MOST_RULES:
                raise ValueError(f"There are {MOST_RULES} rules already; remove one first.")
            row = {
                "project_id": rule.project_id,
                "created_by": actor[:128],
                "created_at": rule.created_at,
                "snoozed_until": 0,
                "evaluated_at": 0,
                "seen": "",
            }
            made = conn.execute(insert(alert_rule).values(**values, **row).returning(table.id))
            number = int(made.scalar_one())
            _note(conn, "alert_made", rule, actor)
            return number
        before = _own_rule(conn, rule.project_id, rule.id)
        if any(getattr(before, name) != getattr(rule, name) for name in _MEANING):
            conn.execute(delete(alert_state).where(alert_state.c.rule_id == rule.id))
            values |= {"created_at": rule.created_at, "evaluated_at": 0, "seen": "", "figure": None}
        conn.execute(update(alert_rule).where(own, table.id == rule.id).values(values))
        _note(conn, "alert_changed", rule, actor)
        return rule.id


def _own_rule(conn: Connection, project_id: int, number: int) -> Any:
    table = alert_rule.c
    row = conn.execute(
        select(alert_rule).where(table.project_id == project_id, table.id == number)
    ).one_or_none()
    if row is None:
        raise LookupError(number)
    return row


def _note(conn: Connection, action: str, rule: Rule, actor: str) -> None:
    note(
        conn,
        action,
        actor=actor,
        project_id=rule.project_id,
        rule=rule.name,
        condition=rule.condition,
        query=rule.query[:200],
    )


def remove_rule(engine: Engine, project_id: int, number: int, *, actor: str) -> None:
    """Remove a rule; what it said stays in the history, what waits is still sent.

    Raises:
        LookupError: There is no such rule in the project.
    """
    with write_transaction(engine) as conn:
        name = _own_rule(conn, project_id, number).name
        conn.execute(delete(alert_state).where(alert_state.c.rule_id == number))
        conn.execute(delete(alert_rule).where(alert_rule.c.id == number))
        note(conn, "alert_removed", actor=actor, project_id=project_id, rule=name)


def snooze_rule(engine: Engine, project_id: int, number: int, until: int, *, actor: str) -> None:
    """Let a rule say nothing until a moment (microseconds); 0 ends the snooze.

    Raises:
        LookupError: There is no such rule in the project.
    """
    with write_transaction(engine) as conn:
        name = _own_rule(conn, project_id, number).name
        conn.execute(
            update(alert_rule).where(alert_rule.c.id == number).values(snoozed_until=until)
        )
        note(conn, "alert_snoozed", actor=actor, project_id=project_id, rule=name, until=until)


def channel_rows(conn: Connection, project_id: int) -> tuple[ChannelRow, ...]:
    """Return the channels of a project by name, with how each goes and without its secrets."""
    channel, message = alert_channel.c, alert_message.c
    waiting = (
        select(func.count())
        .select_from(alert_message)
        .where(message.channel_id == channel.id, message.sent_at.is_(None))
        .scalar_subquery()
        .label("waiting")
    )
    shown = ("id", "name", "kind", "created_by", "created_at", "failures", "error", "retry_at")
    rows = conn.execute(
        select(*(channel[name] for name in shown), channel.sent_at, waiting)
        .where(channel.project_id == project_id)
        .order_by(channel.name, channel.id)
    )
    return tuple(
        ChannelRow(
            id=row.id,
            name=row.name,
            kind=row.kind,
            created_by=row.created_by,
            created_at=row.created_at,
            failures=row.failures,
            error=row.error or "",
            retry_at=row.retry_at or None,
            sent_at=row.sent_at,
            waiting=row.waiting,
        )
        for row in rows
    )


def channel_of(conn: Connection, project_id: int, number: int) -> Channel:
    """Return a channel with its secrets, to send.

    Raises:
        LookupError: There is no such channel in the project.
    """
    table = alert_channel.c
    row = conn.execute(
        select(table.id, table.project_id, table.name, table.kind, table.url, table.secret).where(
            table.project_id == project_id, table.id == number
        )
    ).one_or_none()
    if row is None:
        raise LookupError(number)
    return Channel(row.id, row.project_id, row.name, row.kind, row.url, row.secret or "")


def make_channel(
    engine: Engine,
    project_id: int,
    *,
    name: str,
    kind: str,
    url: str,
    allowed: Networks,
    actor: str,
    now: int,
) -> str:
    """Store a channel and return the secret that signs what it is sent; "" where nothing signs.

    Raises:
        ValueError: Name or address cannot be used, or there are too many channels.
    """
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise ValueError(f"Give the channel a name of 1 to {_LONGEST_NAME} characters.")
    known = check_url(kind, url, allowed)
    secret = new_secret() if known == "webhook" else ""
    table = alert_channel.c
    with write_transaction(engine) as conn:
        names = conn.execute(select(table.name).where(table.project_id == project_id)).scalars()
        taken = set(names)
        if name in taken:
            raise ValueError(f"There is a channel {name!r} already; remove it first.")
        if len(taken) >= MOST_CHANNELS:
            raise ValueError(f"There are {MOST_CHANNELS} channels already; remove one first.")
        conn.execute(
            insert(alert_channel).values(
                project_id=project_id,
                name=name,
                kind=known,
                url=url,
                secret=secret or None,
                created_by=actor[:128],
                created_at=now,
                failures=0,
                retry_at=0,
            )
        )
        note(conn, "channel_made", actor=actor, project_id=project_id, channel=name, kind=known)
    return secret


def remove_channel(engine: Engine, project_id: int, number: int, *, actor: str) -> None:
    """Remove a channel with what waits for it.

    Raises:
        LookupError: There is no such channel in the project.
        ValueError: A rule sends to it alone.
    """
    with write_transaction(engine) as conn:
        name = channel_of(conn, project_id, number).name
        rules = conn.execute(
            select(alert_rule.c.name).where(alert_rule.c.channel_id == number)
        ).scalars()
        if used := list(rules):
            raise ValueError(f"The rule {used[0]!r} sends to it alone; change that rule first.")
        message = alert_message.c
        conn.execute(
            delete(alert_message).where(message.channel_id == number, message.sent_at.is_(None))
        )
        conn.execute(
            update(alert_message).where(message.channel_id == number).values(channel_id=None)
        )
        conn.execute(delete(alert_channel).where(alert_channel.c.id == number))
        note(conn, "channel_removed", actor=actor, project_id=project_id, channel=name)


def states_of(conn: Connection, rule_id: int) -> dict[str, State]:
    """Return what a rule thinks, by subject."""
    state = alert_state.c
    columns = (state.phase, state.since, state.clear_since, state.told, state.told_until)
    rows = conn.execute(select(state.subject, *columns).where(state.rule_id == rule_id))
    return {subject: State(*values) for subject, *values in rows}


def write_states(
    conn: Connection, rule: Rule, before: Mapping[str, State], after: Mapping[str, State], now: int
) -> None:
    """Store what changed of the states of *rule*; forget kinds that have been quiet for long.

    Those that came back and were told are known for as long as they are regressed.
    """
    table = alert_state.c
    old = {
        subject
        for subject, state in after.items()
        if subject and state.phase == "quiet" and now - state.since >= FORGOTTEN_US
    }
    forgotten = old - came_back(conn, rule.project_id).keys() if old else old
    kept = {subject: state for subject, state in after.items() if subject not in forgotten}
    gone = [subject for subject in before if before[subject] != kept.get(subject)]
    if gone:
        conn.execute(delete(alert_state).where(table.rule_id == rule.id, table.subject.in_(gone)))
    rows = [
        {"project_id": rule.project_id, "rule_id": rule.id, "subject": subject, **asdict(state)}
        for subject, state in kept.items()
        if before.get(subject) != state
    ]
    if rows:
        conn.execute(insert(alert_state), rows)


def note_evaluation(
    conn: Connection, rule: Rule, *, now: int, seen: str, figure: Figure | None, problem: str
) -> bool:
    """Store what an evaluation found; say whether the rule is still there and still the same."""
    table = alert_rule.c
    done = conn.execute(
        update(alert_rule)
        .where(table.id == rule.id, table.created_at == rule.created_at)
        .values(
            evaluated_at=now,
            seen=seen,
            figure=None if figure is None else asdict(figure),
            problem=problem[:256] or None,
        )
    )
    return done.rowcount == 1


def put_messages(
    conn: Connection, rule: Rule, texts: Sequence[Text], *, now: int, not_before: int
) -> None:
    """Put what *rule* has to say into the outbox: once for each of its channels.

    Without a channel it is in the history alone.

    Args:
        conn: In the transaction that stores the states it follows from.
        rule: The rule.
        texts: What is to be said.
        now: When it was decided, in microseconds.
        not_before: When it may go out.
    """
    if not texts:
        return
    table = alert_channel.c
    statement = select(table.id, table.name).where(table.project_id == rule.project_id)
    if rule.channel_id is not None:
        statement = statement.where(table.id == rule.channel_id)
    found = conn.execute(statement.order_by(table.id)).all()
    channels = [(number, name) for number, name in found] or [(None, "")]
    rows = [
        {
            "project_id": rule.project_id,
            "message_id": str(uuid_utils.uuid7()),
            "rule_id": rule.id,
            "rule_name": rule.name,
            "channel_id": number,
            "channel_name": name,
            "event": text.event,
            "subject": text.subject,
            "title": text.title,
            "body": text.body,
            "query": text.query,
            "decided_at": now,
            "not_before": not_before,
            "attempts": 0,
        }
        for text in texts
        for number, name in channels
    ]
    conn.execute(insert(alert_message), rows)


def due_messages(conn: Connection, now: int) -> list[Due]:
    """Return messages that may be sent now, those that were tried least first, then the oldest.

    Of a channel that failed none is due before its next try, and of each no more than
    `MOST_PER_MINUTE` less what it was sent in the last minute.
    """
    message, channel = alert_message.c, alert_channel.c
    order = (message.attempts, message.id)
    place = func.row_number().over(partition_by=message.channel_id, order_by=order)
    ranked = (
        select(message.id, place.label("place"))
        .join(alert_channel, channel.id == message.channel_id)
        .where(message.sent_at.is_(None), message.not_before <= now, channel.retry_at <= now)
        .subquery()
    )
    first = select(ranked.c.id).where(ranked.c.place <= MOST_PER_MINUTE)
    rows = conn.execute(
        select(alert_message, alert_channel, project.c.name.label("project_name"))
        .join(alert_channel, channel.id == message.channel_id)
        .join(project, project.c.id == message.project_id)
        .where(message.id.in_(first))
        .order_by(*order)
        .set_label_style(LABEL_STYLE_TABLENAME_PLUS_COL)
    ).all()
    lately: Counter[int] = Counter()
    if rows:
        lately.update(
            conn.execute(
                select(message.channel_id)
                .where(message.sent_at > now - 60 * SECOND_US)
                .limit(MOST_PER_MINUTE * 1_000)
            ).scalars()
        )
    found = []
    for row in rows:
        lately[row.alert_channel_id] += 1
        if lately[row.alert_channel_id] <= MOST_PER_MINUTE:
            found.append(_due(row))
    return found


def _due(row: Any) -> Due:
    return Due(
        id=row.alert_message_id,
        attempts=row.alert_message_attempts,
        failures=row.alert_channel_failures,
        message_id=row.alert_message_message_id,
        project=row.project_name,
        rule=row.alert_message_rule_name,
        event=row.alert_message_event,
        subject=row.alert_message_subject,
        title=row.alert_message_title,
        body=row.alert_message_body,
        query=row.alert_message_query,
        decided_at=row.alert_message_decided_at,
        channel=Channel(
            row.alert_channel_id,
            row.alert_channel_project_id,
            row.alert_channel_name,
            row.alert_channel_kind,
            row.alert_channel_url,
            row.alert_channel_secret or "",
        ),
    )


def mark_sent(conn: Connection, due: Due, now: int) -> None:
    """Note that a message was taken, and that its channel works."""
    conn.execute(
        update(alert_message)
        .where(alert_message.c.id == due.id)
        .values(sent_at=now, attempts=due.attempts + 1, error=None)
    )
    note_channel(conn, due.channel.id, now=now, problem=None, failures=0)


def mark_failed(conn: Connection, due: Due, now: int, problem: str) -> None:
    """Note that a message was not taken; message and channel wait, the channel for all others."""
    conn.execute(
        update(alert_message)
        .where(alert_message.c.id == due.id)
        .values(
            attempts=due.attempts + 1,
            error=problem[:256],
            not_before=now + back_off(due.attempts + 1),
        )
    )
    note_channel(conn, due.channel.id, now=now, problem=problem, failures=due.failures + 1)


def note_channel(
    conn: Connection, number: int, *, now: int, problem: str | None, failures: int
) -> None:
    """Note how sending to a channel went: well where *problem* is None."""
    values: dict[str, Any] = {"failures": failures, "error": problem and problem[:256]}
    if problem is None:
        values |= {"sent_at": now, "retry_at": 0}
    else:
        values["retry_at"] = now + back_off(failures)
    conn.execute(update(alert_channel).where(alert_channel.c.id == number).values(values))


def end_waiting(conn: Connection, number: int, now: int) -> None:
    """Let the messages that a channel did not take be tried again at once."""
    message = alert_message.c
    # What was never tried waits for the end of quiet hours, not for the channel.
    conn.execute(
        update(alert_message)
        .where(message.channel_id == number, message.sent_at.is_(None), message.attempts > 0)
        .values(not_before=now)
    )


def back_off(failures: int) -> int:
    """Return how long to wait after so many failures in a row: 1 min, doubled up to an hour."""
    return min(_FIRST_RETRY_US << min(max(failures, 1) - 1, 16), _LAST_RETRY_US)


def message_history(
    conn: Connection, project_id: int, *, limit: int = 100
) -> tuple[AlertMessage, ...]:
    """Return the newest messages of a project, newest first."""
    message = alert_message.c
    names = ("decided_at", "rule_name", "event", "title", "body", "query", "channel_name")
    rows = conn.execute(
        select(*(message[name] for name in names), message.attempts, message.sent_at, message.error)
        .where(message.project_id == project_id)
        .order_by(message.decided_at.desc(), message.id.desc())
        .limit(limit)
    )
    return tuple(AlertMessage(*row[:9], row[9] or "") for row in rows)


def prune_messages(conn: Connection, now: int) -> None:
    """Remove messages that are older than `KEPT_US`, but for those that wait to be sent."""
    message = alert_message.c
    done = message.sent_at.is_not(None) | message.channel_id.is_(None)
    conn.execute(delete(alert_message).where(message.decided_at < now - KEPT_US, done))
