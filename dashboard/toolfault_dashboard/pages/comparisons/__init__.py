"""One cohort against another: changes, experiments, any query beside any other."""
