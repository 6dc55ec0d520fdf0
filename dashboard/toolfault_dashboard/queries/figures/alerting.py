"""What alerts ask beyond the figures of the pages: when kinds began, what came, what was lost."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, and_, func, select

from toolfault_collector.storage.drops import HOUR_US
from toolfault_collector.storage.tables import (
    chain,
    drop_counts,
    kind_state,
    quarter_version,
    signature,
    tool_call,
)
from toolfault_dashboard.analysis.comparisons.estimates import Estimate, crude
from toolfault_dashboard.analysis.comparisons.metrics import METRICS
from toolfault_dashboard.queries.buckets import bucket_of, bucket_start
from toolfault_dashboard.queries.comparisons.cohorts import cohort_of
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search.states import kinds_with_state, seen_after_fix

__all__ = [
    "CameBack",
    "arrivals",
    "came_back",
    "decided_states",
    "dropped",
    "failures_per_hour",
    "newest_beginnings",
    "round_trips_of",
]

_ROUND_TRIPS = next(each for each in METRICS if each.name == "round_trips_per_operation")


def newest_beginnings(conn: Connection, scope: Scope) -> dict[str, int]:
    """Return, by fingerprint, when the newest chain with a failure of that kind began.

    A chain begins with the end of its first failure, wherever that lies; a failure in no chain is
    its own beginning. Only failures of *scope* count. In microseconds.
    """
    own = and_(chain.c.chain_id == tool_call.c.chain_id, chain.c.project_id == scope.project_id)
    began = func.coalesce(chain.c.first_failed_at, tool_call.c.occurred_at)
    rows = conn.execute(
        select(signature.c.fingerprint, func.max(began))
        .select_from(
            tool_call.join(signature, signature.c.id == tool_call.c.signature_id).outerjoin(
                chain, own
            )
        )
        .where(failures_of(scope))
        .group_by(signature.c.fingerprint)
    )
    return {fingerprint: int(at) for fingerprint, at in rows}


def decided_states(conn: Connection, project_id: int) -> frozenset[str]:
    """Return the states that somebody gave any kind of the project: most have none."""
    decided = select(kind_state.c.state).where(kind_state.c.project_id == project_id).distinct()
    return frozenset(conn.execute(decided).scalars())


class CameBack(NamedTuple):
    """When a kind was fixed, and when it was first seen after that, in microseconds."""

    fixed_at: int
    seen_at: int


def came_back(conn: Connection, project_id: int) -> dict[str, CameBack]:
    """Return when kinds came back after their fix, by fingerprint.

    Only kinds that are regressed: a newer fix takes the moment back. The first that was seen is the
    first that is still stored.
    """
    same = tool_call.c.signature_id == signature.c.id
    rows = conn.execute(
        select(signature.c.fingerprint, kind_state.c.fixed_at, func.min(tool_call.c.occurred_at))
        .select_from(kinds_with_state().join(tool_call, same))
        .where(
            signature.c.project_id == project_id,
            kind_state.c.state == "fixed",
            seen_after_fix(),
        )
        .group_by(signature.c.fingerprint, kind_state.c.fixed_at)
    )
    return {fingerprint: CameBack(int(fixed), int(seen)) for fingerprint, fixed, seen in rows}


def round_trips_of(conn: Connection, scope: Scope) -> Estimate:
    """Return round trips per operation of *scope*, as comparisons estimate them for one cohort."""
    return crude(_ROUND_TRIPS, cohort_of(conn, scope, ""))


def dropped(conn: Connection, project_id: int, since: int, until: int) -> int:
    """Return how many events senders said they lost, in the hours from *since* to *until*.

    Whole hours count: the one in which *since* lies too. Both in microseconds.
    """
    counts = drop_counts.c
    found = conn.execute(
        select(func.coalesce(func.sum(counts.events), 0)).where(
            counts.project_id == project_id,
            counts.period >= since - since % HOUR_US,
            counts.period < until,
        )
    )
    return int(found.scalar_one())


def arrivals(conn: Connection) -> dict[int, str]:
    """Return, by project, a text that is another one as soon as anything was stored in it."""
    version = quarter_version.c
    rows = conn.execute(
        select(version.project_id, func.count(), func.sum(version.version)).group_by(
            version.project_id
        )
    )
    return {project: f"{days}:{versions}" for project, days, versions in rows}


def failures_per_hour(conn: Connection, scope: Scope) -> dict[int, int]:
    """Return failures of *scope* by the start of their hour in microseconds."""
    hour = bucket_of(tool_call.c.occurred_at, "hour").label("hour")
    rows = conn.execute(select(hour, func.count()).where(failures_of(scope)).group_by(hour))
    return {bucket_start(int(number), "hour"): failures for number, failures in rows}
