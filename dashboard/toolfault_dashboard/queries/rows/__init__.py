"""What the queries answer with: one frozen dataclass per kind of row.

Units: times are microseconds since the Unix epoch, UTC, or ``None`` where the source of a row had
no times (``time_source == "none"``), so that nothing can show an invented time as real. Rates are
``analysis.Rate`` and always carry their n and interval.
"""

from toolfault_dashboard.queries.rows.chains import (
    OUTCOMES,
    Attempt,
    Beside,
    CalledFirst,
    ChainDetail,
    ChainGroup,
    ChainPage,
    ChainRow,
    ConversationCall,
    ConversationDetail,
    Funnel,
    Outcome,
    RoundTripBin,
    RoundTrips,
)
from toolfault_dashboard.queries.rows.failures import (
    FailureDetail,
    FailurePage,
    FailureRow,
    SignatureRow,
)
from toolfault_dashboard.queries.rows.figures import (
    ChangeRow,
    Facet,
    Facets,
    FacetValue,
    FailuresOverTime,
    FrequencyRow,
    FrequencyTable,
    Overview,
    ProjectRow,
    Series,
    Summary,
    ToolCount,
    ToolRow,
)
from toolfault_dashboard.queries.rows.issues import IssueRow

__all__ = [
    "OUTCOMES",
    "Attempt",
    "Beside",
    "CalledFirst",
    "ChainDetail",
    "ChainGroup",
    "ChainPage",
    "ChainRow",
    "ChangeRow",
    "ConversationCall",
    "ConversationDetail",
    "Facet",
    "FacetValue",
    "Facets",
    "FailureDetail",
    "FailurePage",
    "FailureRow",
    "FailuresOverTime",
    "FrequencyRow",
    "FrequencyTable",
    "Funnel",
    "IssueRow",
    "Outcome",
    "Overview",
    "ProjectRow",
    "RoundTripBin",
    "RoundTrips",
    "Series",
    "SignatureRow",
    "Summary",
    "ToolCount",
    "ToolRow",
]
