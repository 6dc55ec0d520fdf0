"""Changes, comparisons and experiments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from toolfault_collector.http.problems import Problem
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.comparisons.experiments import Experiment
from toolfault_dashboard.analysis.comparisons.metrics import MetricName
from toolfault_dashboard.api.answers import Json
from toolfault_dashboard.api.reader import Asked
from toolfault_dashboard.api.shapes import model_of
from toolfault_dashboard.queries import Comparison, TrialLooks
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.search import QueryError

__all__ = ["After", "Before", "router"]

router = APIRouter(tags=["comparisons"])


def _cohort(example: str) -> Any:
    return Query(
        description="Query of this cohort, within q; a key that it names takes the place of that"
        " key of q.",
        max_length=8_192,
        examples=[example],
    )


Before = Annotated[str, _cohort("until:7d")]
After = Annotated[str, _cohort("since:7d")]
# Beyond that every interval is everything, and its bounds are no numbers.
Confidence = Annotated[float, Query(gt=0.5, le=0.9999, description="Confidence of the intervals.")]
ChangeId = Annotated[str, Path(description="Event id of the change.")]
Name = Annotated[str, Path(description="Name of the trial.")]
Control = Annotated[
    str, Query(description="Arm to compare with; `control` or the first by name.", max_length=128)
]


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes, newest first."""

    changes: tuple[ChangeRow, ...]


@dataclass(frozen=True, slots=True)
class Trials:
    """Randomised trials and their arms."""

    experiments: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial."""

    name: str
    arms: tuple[str, ...]


@router.get("/changes", operation_id="list_changes", response_model=model_of(Changes))
def changes(
    asked: Asked,
    detected: Annotated[
        bool,
        Query(
            description="Also the models, releases, schemas and variants that were seen for the"
            " first time, which nobody recorded; their source is `toolfault`."
        ),
    ] = True,
) -> Any:
    """List the changes of the project, newest first."""
    return Json(Changes(queries.all_changes(asked.conn, asked.scope, detected=detected)))


@router.get(
    "/changes/{event_id}/effect",
    operation_id="get_change_effect",
    response_model=model_of(Comparison),
)
def change_effect(asked: Asked, event_id: ChangeId, confidence: Confidence = 0.95) -> Any:
    """Compare before and after a change."""
    change = queries.change(asked.conn, asked.scope, event_id)
    if change is None:
        raise Problem(404, "unknown_change", "There is no change of that id in this project.")
    return Json(queries.change_comparison(asked.conn, asked.scope, change, confidence=confidence))


@router.get("/compare", operation_id="compare", response_model=model_of(Comparison))
def compare(
    asked: Asked,
    before: Before,
    after: After,
    confidence: Confidence = 0.95,
    equal_mix: Annotated[
        bool | None,
        Query(
            description="Weight tools, models and agents alike in both cohorts; unless said, this"
            " is done except where the cohorts differ in their variant alone."
        ),
    ] = None,
) -> Any:
    """Compare any query with any other."""
    left, right = (
        queries.cohort_scope(asked.scope, before),
        queries.cohort_scope(asked.scope, after),
    )
    return Json(
        queries.comparison(asked.conn, left, right, confidence=confidence, equal_mix=equal_mix)
    )


@router.get("/experiments", operation_id="list_experiments", response_model=model_of(Trials))
def experiments(asked: Asked) -> Any:
    """List the randomised trials of the scope."""
    found = queries.experiments(asked.conn, asked.scope)
    return Json(Trials(tuple(Trial(name, arms) for name, arms in found.items())))


@router.get(
    "/experiments/{name:path}/looks",
    operation_id="get_experiment_looks",
    response_model=model_of(TrialLooks),
)
def experiment_looks(
    asked: Asked,
    name: Name,
    metric: Annotated[MetricName, Query(description="What is measured.")] = "failure_rate",
    control: Control = "",
    confidence: Confidence = 0.95,
) -> Any:
    """Say how the effect of each arm was known day after day."""
    with _named_arms():
        found = queries.experiment_looks(
            asked.conn, asked.scope, name, control=control or None, metric=metric,
            confidence=confidence,
        )  # fmt: skip
    return Json(_known(found))


@router.get(
    "/experiments/{name:path}", operation_id="get_experiment", response_model=model_of(Experiment)
)
def experiment(
    asked: Asked,
    name: Name,
    control: Control = "",
    weights: Annotated[
        str,
        Query(
            description="Shares the arms were meant to get: `control:9,treatment:1`; else equal."
        ),
    ] = "",
    confidence: Confidence = 0.95,
) -> Any:
    """Compare the arms of a trial with its control."""
    with _named_arms():
        found = queries.experiment(
            asked.conn, asked.scope, name, control=control or None, weights=_weights(weights),
            confidence=confidence,
        )  # fmt: skip
    return Json(_known(found))


@contextmanager
def _named_arms() -> Iterator[None]:
    try:
        yield
    except QueryError:
        raise
    except ValueError as error:
        raise Problem(422, "bad_parameter", str(error)) from None


def _known(found: Any) -> Any:
    if found is None:
        raise Problem(404, "unknown_experiment", "There is no trial of that name here.")
    return found


def _weights(text: str) -> dict[str, float] | None:
    """Read ``control:9,treatment:1``.

    Raises:
        ValueError: It is written otherwise.
    """
    if not text:
        return None
    found: dict[str, float] = {}
    for part in text.split(","):
        arm, _, share = part.rpartition(":")
        if not share.isascii() or not share.isdigit():
            raise ValueError("Write weights in whole numbers, as control:9,treatment:1.")
        found[arm] = float(share)
    return found
