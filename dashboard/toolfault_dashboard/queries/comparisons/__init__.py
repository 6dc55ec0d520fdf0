"""One side against another: changes, experiments, and any two queries."""
