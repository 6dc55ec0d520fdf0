"""One cohort against another: changes, experiments, and any two queries."""
