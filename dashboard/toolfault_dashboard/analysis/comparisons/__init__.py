"""One side against another: metrics, intervals, verdicts, experiments."""
