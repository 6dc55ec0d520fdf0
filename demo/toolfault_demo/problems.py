"""The planted problems: what is wrong with the demo's tools, and what is worth mending first.

Later features (Fix next, Messages, Changes) are tested on this data, so what they should find is
said here and not deduced from what they show. ``PLANTED`` is ordered by the round trips each
problem costs in two weeks with the default seed; the simulation counts them itself
(``Ledger.round_trips``), independently of the collector, and a test holds the order.

Besides the ranking:

- ``http_request`` is the tool whose validation was improved after day 7: until then it reports one
  problem at a time and says little, from then on it coerces and says everything. The change is
  recorded; its failure rate must come out as ``improved``.
- ``get_weather`` got a required ``country`` on day 10: recorded, must come out as ``worse``.
- ``read_file`` got a shorter description on day 4: recorded, changes nothing.
- The experiment ``all-issues-at-once`` gives half of the support conversations a ``create_ticket``
  that reports all problems at once; the other half are told one at a time.
- ``atlas-mini`` writes numbers and booleans as text, ``birch-2`` invents field names,
  ``cobalt-r1`` spoils JSON and repeats itself, ``atlas-large`` does little wrong.
- ``atlas-mini`` forgets now and then that it has booked a hotel or sent a mail, and does it again
  (``Ledger.repeated``): the tools are marked as not idempotent and do not notice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolfault_demo.slips import Slip

__all__ = [
    "ARMS",
    "CHANGES",
    "EXPERIMENT",
    "EXPERIMENT_AGENT",
    "PLANTED",
    "PLANTED_OTHERWISE",
    "SLIPS",
    "Phase",
    "Planted",
    "RecordedChange",
]

EXPERIMENT: Final = "all-issues-at-once"
EXPERIMENT_AGENT: Final = "support-desk"
ARMS: Final = ("control", "treatment")


@dataclass(frozen=True, slots=True)
class Phase:
    """Which of the changed tools the agents use at a moment.

    Attributes:
        improved: ``http_request`` coerces and says what is wrong.
        worsened: ``get_weather`` wants a country.
    """

    improved: bool
    worsened: bool


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change that the agents' developers recorded.

    Attributes:
        after_days: When, days after the start of a history of 14; others are scaled.
        tool: Which tool was changed.
        label: What they wrote.
    """

    after_days: float
    tool: str
    label: str


CHANGES: Final = (
    RecordedChange(4.0, "read_file", "Shorter description of read_file"),
    RecordedChange(7.0, "http_request", "Coerce values and report all issues in http_request"),
    RecordedChange(10.0, "get_weather", "Require the country in get_weather"),
)

# The history that every ``after_days`` is a moment of; a shorter or longer one is scaled.
HISTORY_DAYS: Final = 14.0


def phase_after(days: float) -> Phase:
    """Return which tools the agents use ``days`` after the start of a history of 14 days."""
    _, improvement, worsening = CHANGES
    return Phase(improved=days >= improvement.after_days, worsened=days >= worsening.after_days)


@dataclass(frozen=True, slots=True)
class Planted:
    """A problem that Fix next should find.

    Attributes:
        tool: Where it is.
        field: Which field, or None when the tool itself is the problem.
        remedy: What would mend it, in the words of the wire protocol where it has one.
    """

    tool: str
    field: str | None
    remedy: str


# Values that could be accepted, the most expensive problem first.
PLANTED: Final = (
    Planted("send_email", "to", "wrap_in_list"),
    Planted("create_calendar_event", "attendees", "json_from_string"),
    Planted("book_hotel", "refundable", "bool_from_string"),
    Planted("search_flights", "origin", "alias"),
    Planted("convert_currency", "to_currency", "fold_case"),
    Planted("get_weather", "country", "describe"),
    Planted("run_sql", "limit", "clamp"),
)

# Problems of another kind, which have no place in that order: what mending them saves is not every
# round trip they cost.
PLANTED_OTHERWISE: Final = (
    Planted("create_ticket", None, "all_at_once"),
    Planted("apply_patch", None, "reword"),
    Planted("web_search", None, "expose"),
)

SLIPS: Final = (
    # The ranking, most expensive first.
    Slip("send_email", "to", "first_item", 0.38, kind="shape"),
    Slip("create_calendar_event", "attendees", "as_text", 0.62, kind="shape"),
    Slip("book_hotel", "refundable", "as_text", 0.22),
    Slip("search_flights", "origin", "rename", 0.13, detail="origin_airport", kind="name"),
    Slip("convert_currency", "to_currency", "lower_case", 0.21, kind="choice"),
    Slip("get_weather", "country", "leave_out", 0.08, kind="state"),
    Slip("run_sql", "limit", "replace_number", 0.009, detail="5000", kind="range"),
    # Mended half-way by coercion.
    Slip("http_request", "follow_redirects", "as_text", 0.15),
    Slip("http_request", "timeout_seconds", "as_text", 0.13),
    Slip("http_request", "headers", "as_text", 0.06, kind="shape"),
    Slip("http_request", "headers", "bearer_text", 0.02, kind="shape"),
    # One problem at a time, or all at once: the experiment.
    Slip("create_ticket", "priority", "replace", 0.75, detail="urgent", in_haste=True),
    Slip("create_ticket", "component", "replace", 0.75, detail="billing-service", in_haste=True),
    Slip("create_ticket", "customer_id", "digits_only", 0.75, in_haste=True),
    # A message that helps nobody, and some that do.
    Slip("apply_patch", "diff", "misquote", 0.07, detail="return total>return sum", kind="state"),
    Slip("apply_patch", "diff", "misquote", 0.02, detail="@@ -1,3 +1,3 @@\n>", kind="shape"),
    Slip("read_file", "path", "misquote", 0.04, detail="src/>source/", kind="state"),
    Slip("run_sql", "query", "misquote", 0.05, detail="customer_id>client_id", kind="state"),
    # Noise.
    Slip("book_hotel", "nights", "as_text", 0.01),
    Slip("book_hotel", "room_type", "replace", 0.02, detail="double room", kind="choice"),
    Slip("search_flights", "passengers", "as_text", 0.01),
    Slip("search_flights", "cabin", "replace", 0.01, detail="Economy", kind="choice"),
    Slip("send_email", "priority", "replace", 0.01, detail="urgent", kind="choice"),
    Slip("send_email", "smtp_password", "add", 0.01, detail="hunter2-demo", kind="name"),
    Slip("run_sql", "database", "replace", 0.01, detail="sale", kind="choice"),
    Slip("get_weather", "days", "as_text", 0.12),
    Slip("read_file", "max_lines", "as_text", 0.01),
    Slip("create_calendar_event", "duration_minutes", "as_text", 0.01),
)
