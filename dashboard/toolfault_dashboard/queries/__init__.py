"""Every SELECT of the dashboard: one function per question, typed rows as answers.

All functions take an open SQLAlchemy connection first and never write. A function that takes a
``Scope`` binds its ``project_id`` in every statement; figures of one page agree when they are read
inside one transaction (``toolfault_collector.storage.database.engine.read_connection``).
"""

from toolfault_dashboard.queries.chains.chains import chain_detail, chain_list
from toolfault_dashboard.queries.chains.conversations import (
    CALLS_PER_PAGE,
    calls_before_recovery,
    calls_beside,
    conversation_detail,
)
from toolfault_dashboard.queries.chains.costs import (
    COST_GROUPS,
    CostGroup,
    CostRow,
    Costs,
    arm_costs,
    costs,
)
from toolfault_dashboard.queries.chains.naming import (
    ConversationRungs,
    RungRow,
    conversation_rungs,
)
from toolfault_dashboard.queries.chains.prices import prices_of
from toolfault_dashboard.queries.chains.round_trips import (
    CHAIN_GROUPS,
    chains_by,
    chains_by_argument,
    round_trips,
)
from toolfault_dashboard.queries.comparisons.changes import all_changes, change, changes
from toolfault_dashboard.queries.comparisons.detected import detected_changes
from toolfault_dashboard.queries.comparisons.effects import (
    Comparison,
    change_comparison,
    change_control,
    change_effect,
    cohort_scope,
    cohorts_of_change,
    comparison,
    effect,
    touched_by,
)
from toolfault_dashboard.queries.comparisons.experiments import (
    experiment,
    experiment_looks,
    experiments,
)
from toolfault_dashboard.queries.comparisons.trials import TrialLook, TrialLooks
from toolfault_dashboard.queries.counting.sampling_weights import sampling
from toolfault_dashboard.queries.failures.facets import facets, values_of
from toolfault_dashboard.queries.failures.failures import (
    count_failures,
    failure_detail,
    failure_list,
)
from toolfault_dashboard.queries.failures.kinds import (
    KIND_ORDERS,
    KindOrder,
    KindRow,
    Kinds,
    kinds,
)
from toolfault_dashboard.queries.failures.phantoms import PhantomRow, phantom_arguments
from toolfault_dashboard.queries.failures.repeats import RepeatRow, repeated_executions
from toolfault_dashboard.queries.failures.silent import SilentRow, silent_successes
from toolfault_dashboard.queries.figures.frequencies import (
    FREQUENCIES,
    Dimension,
    frequency,
    new_signatures,
)
from toolfault_dashboard.queries.figures.matrices import Matrix, MatrixCell, MatrixTool, matrix
from toolfault_dashboard.queries.figures.over_time import Bucket, failures_over_time
from toolfault_dashboard.queries.figures.summaries import (
    ToolRates,
    overview,
    rates_by_code,
    rates_by_tool,
    summary,
)
from toolfault_dashboard.queries.figures.weekly import Week, week_end, weekly
from toolfault_dashboard.queries.fixes.fix_next import FixList, FixRow, fix_next
from toolfault_dashboard.queries.fixes.messages import MessageGroup, MessageRow, message_efficacy
from toolfault_dashboard.queries.lists.cursors import CursorError
from toolfault_dashboard.queries.lists.streams import (
    RowStream,
    iter_chains,
    iter_failures,
    iter_issues,
)
from toolfault_dashboard.queries.periods import period_before
from toolfault_dashboard.queries.projects import project_by_name, projects
from toolfault_dashboard.queries.scope import Audience, Scope
from toolfault_dashboard.queries.windows import window

__all__ = [
    "CALLS_PER_PAGE",
    "CHAIN_GROUPS",
    "COST_GROUPS",
    "FREQUENCIES",
    "KIND_ORDERS",
    "Audience",
    "Bucket",
    "Comparison",
    "ConversationRungs",
    "CostGroup",
    "CostRow",
    "Costs",
    "CursorError",
    "Dimension",
    "FixList",
    "FixRow",
    "KindOrder",
    "KindRow",
    "Kinds",
    "Matrix",
    "MatrixCell",
    "MatrixTool",
    "MessageGroup",
    "MessageRow",
    "PhantomRow",
    "RepeatRow",
    "RowStream",
    "RungRow",
    "Scope",
    "SilentRow",
    "ToolRates",
    "TrialLook",
    "TrialLooks",
    "Week",
    "all_changes",
    "arm_costs",
    "calls_before_recovery",
    "calls_beside",
    "chain_detail",
    "chain_list",
    "chains_by",
    "chains_by_argument",
    "change",
    "change_comparison",
    "change_control",
    "change_effect",
    "changes",
    "cohort_scope",
    "cohorts_of_change",
    "comparison",
    "conversation_detail",
    "conversation_rungs",
    "costs",
    "count_failures",
    "detected_changes",
    "effect",
    "experiment",
    "experiment_looks",
    "experiments",
    "facets",
    "failure_detail",
    "failure_list",
    "failures_over_time",
    "fix_next",
    "frequency",
    "iter_chains",
    "iter_failures",
    "iter_issues",
    "kinds",
    "matrix",
    "message_efficacy",
    "new_signatures",
    "overview",
    "period_before",
    "phantom_arguments",
    "prices_of",
    "project_by_name",
    "projects",
    "rates_by_code",
    "rates_by_tool",
    "repeated_executions",
    "round_trips",
    "sampling",
    "silent_successes",
    "summary",
    "touched_by",
    "values_of",
    "week_end",
    "weekly",
    "window",
]
