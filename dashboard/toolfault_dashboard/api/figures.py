"""Figures: summary, overview, frequencies, round trips, matrices, facets, messages, fixes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query

from toolfault_dashboard import queries
from toolfault_dashboard.api.answers import Json
from toolfault_dashboard.api.reader import Asked
from toolfault_dashboard.api.shapes import model_of
from toolfault_dashboard.queries import (
    Bucket,
    ConversationRungs,
    CostGroup,
    Costs,
    Dimension,
    FixList,
    Matrix,
    MessageGroup,
    PhantomRow,
    RepeatRow,
    SilentRow,
)
from toolfault_dashboard.queries.rows import (
    ChainGroup,
    Facets,
    FailuresOverTime,
    FrequencyTable,
    Overview,
    RoundTrips,
    Summary,
)

__all__ = ["router"]

router = APIRouter(tags=["figures"])

By = Annotated[CostGroup, Path(description="What to group the chains by.")]
Most = Annotated[int, Query(ge=1, le=10_000, description="Most rows.")]
MostNames = Annotated[int, Query(ge=1, le=200, description="Most of them; the rest is hidden.")]


@dataclass(frozen=True, slots=True)
class Messages:
    """The wordings of every tool and code."""

    groups: tuple[MessageGroup, ...]


@dataclass(frozen=True, slots=True)
class ChainGroups:
    """Chains by one dimension."""

    by: str
    groups: tuple[ChainGroup, ...]


@dataclass(frozen=True, slots=True)
class Phantoms:
    """What models sent, a tool does not have, and nobody refused."""

    rows: tuple[PhantomRow, ...]


@dataclass(frozen=True, slots=True)
class Repeats:
    """What agents executed again after it had succeeded."""

    rows: tuple[RepeatRow, ...]


@dataclass(frozen=True, slots=True)
class Silent:
    """Successes that look like errors."""

    rows: tuple[SilentRow, ...]


@router.get("/summary", operation_id="get_summary", response_model=model_of(Summary))
def summary(asked: Asked) -> Any:
    """Count calls, failures, chains and round trips."""
    return Json(queries.summary(asked.conn, asked.scope))


@router.get("/overview", operation_id="get_overview", response_model=model_of(Overview))
def overview(asked: Asked) -> Any:
    """Return the summary with its intervals."""
    return Json(queries.overview(asked.conn, asked.scope))


@router.get(
    "/failures-over-time",
    operation_id="get_failures_over_time",
    response_model=model_of(FailuresOverTime),
)
def failures_over_time(
    asked: Asked,
    bucket: Annotated[
        Bucket | None,
        Query(
            description="Length of a step; unless said, by the time shown. More than 1,000 steps"
            " are refused."
        ),
    ] = None,
    top: Annotated[
        int, Query(ge=1, le=50, description="Most codes; the rest is added up as `other`.")
    ] = 8,
) -> Any:
    """Count failures by code and time."""
    return Json(queries.failures_over_time(asked.conn, asked.scope, bucket=bucket, top=top))


@router.get("/round-trips", operation_id="get_round_trips", response_model=model_of(RoundTrips))
def round_trips(asked: Asked) -> Any:
    """Return funnel, distribution and groups of the chains."""
    return Json(queries.round_trips(asked.conn, asked.scope))


@router.get(
    "/frequencies/{by}", operation_id="get_frequencies", response_model=model_of(FrequencyTable)
)
def frequencies(
    asked: Asked,
    by: Annotated[Dimension, Path(description="What to count by.")],
    minimum_calls: Annotated[int, Query(ge=0, le=10**9, description="Fewest calls of a row.")] = 0,
    limit: Most = 100,
) -> Any:
    """Count failures by one dimension, with rates."""
    return Json(
        queries.frequency(asked.conn, asked.scope, by, minimum_calls=minimum_calls, limit=limit)
    )


@router.get("/matrices/{by}", operation_id="get_matrix", response_model=model_of(Matrix))
def matrices(
    asked: Asked,
    by: Annotated[Literal["code", "field"], Path(description="What the columns are.")],
    tools: MostNames = 20,
    columns: MostNames = 20,
) -> Any:
    """Count failures by tool and code, or tool and argument."""
    return Json(queries.matrix(asked.conn, asked.scope, by, tools=tools, columns=columns))


@router.get(
    "/round-trips/{by}", operation_id="get_round_trips_by", response_model=model_of(ChainGroups)
)
def round_trips_by(asked: Asked, by: By) -> Any:
    """Group the chains by one dimension, most round trips first."""
    return Json(ChainGroups(by, queries.chains_by(asked.conn, asked.scope, by)))


@router.get(
    "/conversation-rungs",
    operation_id="get_conversation_rungs",
    response_model=model_of(ConversationRungs),
)
def conversation_rungs(asked: Asked) -> Any:
    """Say what named the conversations of the failures, and which cannot be chained, and why."""
    return Json(queries.conversation_rungs(asked.conn, asked.scope))


@router.get("/costs/{by}", operation_id="get_costs", response_model=model_of(Costs))
def costs(asked: Asked, by: By) -> Any:
    """Say what chains cost in time, tokens and money, and of how many that is known."""
    prices = queries.prices_of(asked.conn, asked.scope.project_id)
    return Json(queries.costs(asked.conn, asked.scope, by, prices))


@router.get("/facets", operation_id="get_facets", response_model=model_of(Facets))
def facets(
    asked: Asked,
    limit: Annotated[int, Query(ge=1, le=1_000, description="Most values of a key.")] = 10,
) -> Any:
    """Count the values of every key under the filter."""
    return Json(queries.facets(asked.conn, asked.scope, limit=limit))


@router.get("/messages", operation_id="get_messages", response_model=model_of(Messages))
def messages(
    asked: Asked,
    minimum: Annotated[
        int,
        Query(ge=1, le=10**9, description="Fewest failures of a wording that is best or worst."),
    ] = 10,
) -> Any:
    """Say which wording leads to a call that succeeds."""
    return Json(Messages(queries.message_efficacy(asked.conn, asked.scope, minimum=minimum)))


@router.get(
    "/silent-successes", operation_id="get_silent_successes", response_model=model_of(Silent)
)
def silent_successes(asked: Asked) -> Any:
    """List successes whose result reads like an error, by tool and rule."""
    return Json(Silent(queries.silent_successes(asked.conn, asked.scope)))


@router.get(
    "/phantom-arguments", operation_id="get_phantom_arguments", response_model=model_of(Phantoms)
)
def phantom_arguments(asked: Asked) -> Any:
    """Count the arguments that tools ignored, by tool and model."""
    return Json(Phantoms(queries.phantom_arguments(asked.conn, asked.scope)))


@router.get(
    "/repeated-executions",
    operation_id="get_repeated_executions",
    response_model=model_of(Repeats),
)
def repeated_executions(asked: Asked) -> Any:
    """Count the calls that were executed again after they had succeeded, by tool and model."""
    return Json(Repeats(queries.repeated_executions(asked.conn, asked.scope)))


@router.get("/fix-next", operation_id="get_fix_next", response_model=model_of(FixList))
def fix_next(asked: Asked, limit: Most = 100) -> Any:
    """Rank what to mend by the calls it would save."""
    return Json(queries.fix_next(asked.conn, asked.scope, limit=limit))
