"""One cohort against another: metrics, intervals, verdicts, experiments."""
