"""What the templates may use: one frozen dataclass per template, every field documented.

A template sees exactly two names: ``shell`` (:class:`Shell`, the frame around every page) and
``page`` (its own class below). ``TEMPLATES`` says which class belongs to which template; a test
compares every ``page.x`` of every template with the fields of its class, both ways.
"""

from __future__ import annotations

from typing import Final

from toolfault_dashboard.contexts.advice import FixNextContext, MessagesContext
from toolfault_dashboard.contexts.alerts import AlertContext, AlertsContext
from toolfault_dashboard.contexts.breakdown import BreakdownContext
from toolfault_dashboard.contexts.changes import (
    ChangeContext,
    ChangesContext,
    CodeLine,
    CompareContext,
    MetricLine,
)
from toolfault_dashboard.contexts.experiments import (
    ArmLine,
    ArmMetricLine,
    ExperimentContext,
    ExperimentLine,
    ExperimentsContext,
)
from toolfault_dashboard.contexts.failures import (
    AudienceText,
    ChainContext,
    ConversationContext,
    ConversationStep,
    FacetGroup,
    FacetLine,
    FailureContext,
    FailuresContext,
    OtherCall,
    Step,
)
from toolfault_dashboard.contexts.frequency import (
    CodesContext,
    FrequencyLine,
    HeatCell,
    HeatMap,
    HeatRow,
    ToolLine,
    ToolsContext,
)
from toolfault_dashboard.contexts.live import LiveContext
from toolfault_dashboard.contexts.overview import (
    OverviewContext,
    RoundTripsContext,
    StartContext,
    Tile,
    ToolContext,
)
from toolfault_dashboard.contexts.plain import (
    CountingContext,
    DocsContext,
    ErrorContext,
    GlossaryEntry,
    HelpContext,
    QueryErrorContext,
    SignInContext,
    TooSlowContext,
)
from toolfault_dashboard.contexts.settings import (
    ReceivedContext,
    RejectedContext,
    SettingsContext,
)
from toolfault_dashboard.contexts.shell import Chip, Link, NavItem, Shell, View
from toolfault_dashboard.contexts.times import TimeChart
from toolfault_dashboard.contexts.views import ViewsContext

__all__ = [
    "TEMPLATES",
    "AlertContext",
    "AlertsContext",
    "ArmLine",
    "ArmMetricLine",
    "AudienceText",
    "BreakdownContext",
    "ChainContext",
    "ChangeContext",
    "ChangesContext",
    "Chip",
    "CodeLine",
    "CodesContext",
    "CompareContext",
    "ConversationContext",
    "ConversationStep",
    "CountingContext",
    "DocsContext",
    "ErrorContext",
    "ExperimentContext",
    "ExperimentLine",
    "ExperimentsContext",
    "FacetGroup",
    "FacetLine",
    "FailureContext",
    "FailuresContext",
    "FixNextContext",
    "FrequencyLine",
    "GlossaryEntry",
    "HeatCell",
    "HeatMap",
    "HeatRow",
    "HelpContext",
    "Link",
    "LiveContext",
    "MessagesContext",
    "MetricLine",
    "NavItem",
    "OtherCall",
    "OverviewContext",
    "QueryErrorContext",
    "ReceivedContext",
    "RejectedContext",
    "RoundTripsContext",
    "SettingsContext",
    "Shell",
    "SignInContext",
    "StartContext",
    "Step",
    "Tile",
    "TimeChart",
    "TooSlowContext",
    "ToolContext",
    "ToolLine",
    "ToolsContext",
    "View",
    "ViewsContext",
]

TEMPLATES: Final[dict[str, type]] = {
    "overview.html": OverviewContext,
    "start.html": StartContext,
    "failures.html": FailuresContext,
    "failure.html": FailureContext,
    "round_trips.html": RoundTripsContext,
    "chain.html": ChainContext,
    "conversation.html": ConversationContext,
    "codes.html": CodesContext,
    "breakdown.html": BreakdownContext,
    "tools.html": ToolsContext,
    "tool.html": ToolContext,
    "changes.html": ChangesContext,
    "change.html": ChangeContext,
    "compare.html": CompareContext,
    "experiments.html": ExperimentsContext,
    "experiment.html": ExperimentContext,
    "fix_next.html": FixNextContext,
    "messages.html": MessagesContext,
    "views.html": ViewsContext,
    "alerts.html": AlertsContext,
    "alert.html": AlertContext,
    "live.html": LiveContext,
    "rejected.html": RejectedContext,
    "received.html": ReceivedContext,
    "settings.html": SettingsContext,
    "help.html": HelpContext,
    "docs.html": DocsContext,
    "sign_in.html": SignInContext,
    "error.html": ErrorContext,
    "query_error.html": QueryErrorContext,
    "too_slow.html": TooSlowContext,
    "counting.html": CountingContext,
}
